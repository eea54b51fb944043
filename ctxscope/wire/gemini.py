"""The Gemini ``generateContent`` API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ctxscope.model import ApiName, Block, BlockKind, Body, Message, Reply, Segment, Stop, StopState, Usage
from ctxscope.wire import cutting
from ctxscope.wire.blocks import (
    arguments,
    error_text,
    first,
    indexed,
    integer,
    joined_text,
    listed,
    mapped,
    number,
    param,
    string,
    top,
)
from ctxscope.wire.forms import Shape
from ctxscope.wire.json_text import loads
from ctxscope.wire.layout import Fields, Layout, Slot, text_of
from ctxscope.wire.sse import events, is_stream

name: ApiName = "gemini"

_STOPS: Mapping[str, StopState] = {
    "STOP": "complete",
    "MAX_TOKENS": "truncated",
    **dict.fromkeys(
        (
            "CONTINUATION",
            "TOO_MANY_TOOL_CALLS",
            "MALFORMED_FUNCTION_CALL",
            "UNEXPECTED_TOOL_CALL",
            "MALFORMED_RESPONSE",
            "MISSING_THOUGHT_SIGNATURE",
            "IMAGE_OTHER",
            "NO_IMAGE",
            "OTHER",
        ),
        "incomplete",
    ),
    **dict.fromkeys(
        (
            "SAFETY",
            "RECITATION",
            "LANGUAGE",
            "BLOCKLIST",
            "PROHIBITED_CONTENT",
            "SPII",
            "IMAGE_SAFETY",
            "IMAGE_PROHIBITED_CONTENT",
            "IMAGE_RECITATION",
            "MODEL_ARMOR",
            "ESCALATION",
            "PUP_LIMITED_DISABLED",
        ),
        "blocked",
    ),
}
"""prompt_caching §10."""
_ENDPOINTS = (":generateContent", ":streamGenerateContent")


def _kind(part: Mapping[str, Any]) -> BlockKind:
    """Kind of a part by the members it has; of a segment's members the spelling is enough."""
    if "functionCall" in part:
        return "tool_call"
    if "functionResponse" in part:
        return "tool_result"
    if part.get("thought") in (True, "true"):
        return "thinking"
    if "text" in part:
        return "text"
    return "image" if "inlineData" in part else "other"


def _role(fields: Fields) -> str:
    return text_of(fields, "role")


_PART = Shape(
    dict.fromkeys(("functionCall", "functionResponse", "inlineData", "fileData"), Shape()),
)
_SYSTEM = Slot("system", 0, _PART, array=False, inner=frozenset({"parts"}))
_LAYOUT = Layout(
    name,
    {
        "systemInstruction": _SYSTEM,
        "system_instruction": _SYSTEM,
        "tools": Slot("tool", 1, Shape(), inner=frozenset({"functionDeclarations", "function_declarations"})),
        "contents": Slot("message", 2, _PART, inner=frozenset({"parts"})),
    },
    _role,
    _kind,
)


def matches(path: str, headers: Mapping[str, str], body: bytes) -> bool:  # noqa: ARG001 - the face of all APIs
    """``…:generateContent`` or ``…:streamGenerateContent``, with a body."""
    return bool(body) and path.partition("?")[0].endswith(_ENDPOINTS)


def segments(body: bytes, parent: Body | None) -> tuple[Segment, ...]:
    """See ``WireApi``; a segment for each part and each function declaration."""
    return cutting.segments(_LAYOUT, body, parent)


def prompt(body: bytes, segment: Segment) -> bytes:
    """See ``WireApi``."""
    return cutting.prompt(_LAYOUT, body, segment)


def requested_max(body: Body) -> int | None:
    """``generationConfig.maxOutputTokens``."""
    settings = (mapped(param(body, key)) for key in ("generationConfig", "generation_config"))
    return first(*(integer(s.get(key)) for s in settings for key in ("maxOutputTokens", "max_output_tokens")))


def messages(body: Body, behind: str = "") -> tuple[Message, ...]:
    """See ``WireApi``."""
    found = []
    for index, content in indexed(body, "contents", behind):
        path = f"/contents/{index}"
        parts = listed(mapped(content).get("parts"))
        blocks = tuple(_block(mapped(p), f"{path}/parts/{i}") for i, p in enumerate(parts))
        found.append(Message(string(mapped(content).get("role")), blocks, path))
    return tuple(found)


def system(body: Body) -> str:
    """See ``WireApi``."""
    told, alias = top(body, "systemInstruction", "system_instruction")
    instruction = mapped(told) or mapped(alias)
    return joined_text(instruction.get("parts"))


def is_continuation(body: Body) -> bool:  # noqa: ARG001 - the face of all APIs
    """Never: this endpoint has no state."""
    return False


def expand(*_: object, **__: object) -> Body | None:
    """Never: this endpoint has no continuations."""
    return None


def reply(data: bytes, headers: Mapping[str, str]) -> Reply:  # noqa: ARG001 - the face of all APIs
    """See ``WireApi``; a stream is SSE or one array of chunks, its end the chunk with a finish reason."""
    if is_stream(data):
        return _reply([e.value for e in events(data)])
    try:
        value = loads(data)
    except ValueError:
        return Reply(stop=Stop(None, "incomplete"), complete=False)
    return _reply(value if isinstance(value, list) else [value])


def _reply(chunks: list[Any]) -> Reply:
    around: dict[str, Any] = {}
    parts: list[dict[str, Any]] = []
    reason, blocked = "", ""
    error: str | None = None
    for chunk in map(mapped, chunks):
        error = error or error_text(chunk)
        around |= {k: v for k, v in chunk.items() if v}
        blocked = string(mapped(chunk.get("promptFeedback")).get("blockReason")) or blocked
        candidate = mapped(next(iter(listed(chunk.get("candidates"))), None))
        reason = string(candidate.get("finishReason")) or reason
        for part in listed(mapped(candidate.get("content")).get("parts")):
            _extend(parts, mapped(part))
    ended = bool(reason or blocked)
    state = _STOPS.get(reason, "unknown") if reason else "blocked" if blocked else "incomplete"
    return Reply(
        string(around.get("responseId")) or None,
        string(around.get("modelVersion")) or None,
        tuple(_block(p) for p in parts),
        _usage(mapped(around.get("usageMetadata")), ended=ended),
        Stop(reason or blocked or None, state if error is None else "error"),
        error,
        None,
        ended or error is not None,
    )


def _extend(parts: list[dict[str, Any]], part: dict[str, Any]) -> None:
    """Text that goes on in the next chunk is one part; a signature closes it."""
    last = parts[-1] if parts else {}
    open_text = "text" in last and "thoughtSignature" not in last
    if open_text and "text" in part and bool(last.get("thought")) == bool(part.get("thought")):
        text = string(last["text"]) + string(part["text"])
        parts[-1] = {**last, **part, "text": text}
    else:
        parts.append(part)


def _block(part: Mapping[str, Any], path: str = "") -> Block:
    kind = _kind(part)
    envelope = string(part.get("thoughtSignature"))
    if kind in ("text", "thinking"):
        return Block(kind, string(part.get("text")), envelope=envelope, path=path)
    if kind == "tool_call":
        call = mapped(part["functionCall"])
        called = arguments(call.get("args", {}))
        return Block(kind, called, string(call.get("id")), string(call.get("name")), envelope, path)
    if kind == "tool_result":
        result = mapped(part["functionResponse"])
        text = _result_text(result.get("response"))
        return Block(kind, text, string(result.get("id")), string(result.get("name")), envelope, path)
    return Block(kind, envelope=envelope, path=path)


def _result_text(response: Any) -> str:
    """The text of a tool's response; a form of its own is given as JSON."""
    fields = mapped(response)
    for key in ("output", "error"):
        if fields.keys() == {key} and isinstance(fields[key], str):
            return str(fields[key])
    return arguments(response) if response is not None else ""


def _usage(source: Mapping[str, Any], *, ended: bool) -> Usage | None:
    """Thoughts are output beside the candidates, cached tokens part of the prompt, absent means 0 (prompt_caching §7).

    A server that counts thoughts among the candidates shows it by its total, so where there is one it decides. Each
    chunk counts what was written so far: of a stream that did not end (``ended``) the whole is not known.
    """
    prompt_tokens, visible = number(source, "promptTokenCount"), number(source, "candidatesTokenCount")
    thoughts, tools = number(source, "thoughtsTokenCount"), number(source, "toolUsePromptTokenCount")
    if prompt_tokens is None and visible is None and thoughts is None:
        return None
    cached = number(source, "cachedContentTokenCount") or 0
    output = None if visible is None and thoughts is None else (visible or 0) + (thoughts or 0)
    total = number(source, "totalTokenCount")
    if output is not None and total is not None and total == (prompt_tokens or 0) + (tools or 0) + (visible or 0):
        output = visible or 0
    return Usage(
        None if prompt_tokens is None else max(0, prompt_tokens + (tools or 0) - cached),
        cached,
        None,
        output if ended else None,
        thoughts if ended else None,
    )
