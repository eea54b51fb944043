"""Parts of a message as the Gemini CLI and the SDK below it send them (gemini.md §4; read in 0.61.0).

The SDK writes a part's members in an order of its own and leaves out those it does not know. A function call or response
whose id begins with the tool's name loses that prefix on the wire, and with it whatever else stands beside id, name and
arguments or response.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ctxscope.wire.json_text import js

SYNTHETIC = "skip_thought_signature_validator"
"""Stands where a function call must have a signature and the process has none."""
_BEFORE = ("mediaResolution", "codeExecutionResult", "executableCode", "fileData")
_NO_CONTENT = {"text", "thought", "callIndex"}


@dataclass(frozen=True, slots=True)
class Part:
    """One part as it is sent, but for its signature."""

    start: bytes
    """The part up to where its signature stands, without a closing brace."""
    end: bytes
    signature: bytes | None
    """As JSON, where the log holds it."""
    call: bool
    open: bool
    """Whether the model's own signature may stand there, which the log does not hold."""
    patched: bool = False
    """Whether the stand-in is put there because the message's thoughts are left out."""


@dataclass(frozen=True, slots=True)
class Sent:
    """The parts of one message of the history, and what later rules ask about them."""

    parts: tuple[Part, ...]
    texts: bool
    """Whether a part has text."""
    responses: bool
    """Whether a part is a function response."""


def sent(role: str, parts: tuple[Mapping[str, Any], ...], *, fresh: bool) -> Sent | None:
    """A message without its thoughts; ``None`` when nothing of it is sent. ``fresh``: signatures are not in the log."""
    if role == "model" and any(
        not part or (part.get("text") == "" and not _others(part) and not part.get("thought")) for part in parts
    ):
        return None
    kept = [part for part in parts if not part.get("thought")]
    if len(kept) < len(parts) and not kept:
        return None
    patch = role == "model" and len(kept) < len(parts)
    found: list[Part] = []
    for part in kept:
        call = bool(part.get("functionCall"))
        if part.get("text") == "" and not _others(part):
            continue
        found.append(_part(part, call=call, fresh=fresh, patched=patch and call))
        patch = patch and not call
    texts = any(isinstance(p.get("text"), str) and p["text"] for p in kept)
    return Sent(tuple(found), texts, any(p.get("functionResponse") for p in kept))


def without_prefix(name: Any, identity: Any) -> str:
    """A tool call's id as the server knows it: the log writes the tool's name before it."""
    prefix = f"{(name.strip() if isinstance(name, str) else '') or 'generic_tool'}__"
    return identity.removeprefix(prefix) if isinstance(identity, str) else ""


def _others(part: Mapping[str, Any]) -> bool:
    return any(key not in _NO_CONTENT for key in part)


def _part(part: Mapping[str, Any], *, call: bool, fresh: bool, patched: bool) -> Part:
    shown: dict[str, Any] = {key: part[key] for key in _BEFORE if part.get(key) is not None}
    if (file := part.get("fileData")) is not None:
        shown["fileData"] = _ordered(file, ("fileUri", "mimeType"))
    if (function := part.get("functionCall")) is not None:
        shown["functionCall"] = _ordered(_stripped(function, "args"), ("id", "args", "name"))
    if (response := part.get("functionResponse")) is not None:
        shown["functionResponse"] = _stripped(response, "response")
    if (data := part.get("inlineData")) is not None:
        shown["inlineData"] = _ordered(data, ("data", "mimeType"))
    for key in ("text", "thought"):
        if part.get(key) is not None and not (key == "text" and part["text"] == ""):
            shown[key] = part[key]
    signature, video = part.get("thoughtSignature"), part.get("videoMetadata")
    start = spelled(shown)[:-1]
    end = (b',"videoMetadata":' + spelled(video) if video is not None else b"") + b"}"
    held = spelled(signature) if signature else None
    return Part(start, end if len(start) > 1 else end.lstrip(b","), held, call, fresh and held is None, patched)


def _stripped(value: Any, content: str) -> Any:
    """A function call or response without the tool's name before its id."""
    if not isinstance(value, Mapping):
        return value
    bare = without_prefix(value.get("name"), value.get("id"))
    if not value.get("id") or bare == value.get("id"):
        return value
    return {
        key: v for key, v in (("name", value.get("name")), (content, value.get(content)), ("id", bare)) if v is not None
    }


def _ordered(value: Any, keys: tuple[str, ...]) -> Any:
    return {key: value[key] for key in keys if value.get(key) is not None} if isinstance(value, Mapping) else value


def spelled(value: Any) -> bytes:
    """A parsed value as ``JSON.stringify`` writes it."""
    return js(value).encode("utf-8", "surrogatepass")
