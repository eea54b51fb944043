"""A content of the history as Chat Completions messages (qwen.md §4; read in 0.15.10 and 0.24.4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ctxscope.wire.json_text import js

_FORMATS = {"image": "image_url", "video": "video_url"}


@dataclass(frozen=True, slots=True)
class Form:
    """Choices that change how messages are written."""

    flat: bool = False
    """Contents are strings and every answer has its reasoning, as DeepSeek's models want it."""
    media: bool = True
    """The model is given files as they are; else a text that says it cannot read them."""
    joined: bool = False
    """What the user's side says in a row is one message (``joined``)."""
    mirrored: bool = False
    """Reasoning stands under two keys."""


@dataclass(frozen=True, slots=True, eq=False)
class Message:
    """One message; an answer in its parts, since its tool calls go when they have no result."""

    role: str
    data: bytes = b""
    """The whole message, of a user or a tool."""
    id: str = ""
    """Of the tool call that a result belongs to."""
    part: int = 0
    """The first part of the content that it is made of."""
    text: str | None = None
    calls: tuple[tuple[str, dict[str, Any]], ...] = ()
    reasoning: str = ""
    items: tuple[tuple[bytes, int], ...] = ()
    """Of a user whose words are joined with others: the items of the content, with the part each is made of."""


def messages(role: str, parts: Sequence[Mapping[str, Any]], form: Form) -> tuple[Message, ...]:
    """The messages of one content: an answer, or results of tools and then what else the user side says."""
    if role == "model":
        return _answer(parts)
    found = [
        _result(part["functionResponse"], form, number)
        for number, part in enumerate(parts)
        if isinstance(part.get("functionResponse"), Mapping)
    ]
    content = [(c, number) for number, part in enumerate(parts) for c in _content(part, form)]
    if content:
        told = [c for c, _ in content]
        if form.joined:
            items = tuple((_item(c, form), number) for c, number in content)
            return (*found, Message("user", part=content[0][1], items=items))
        written = spelled({"role": "user", "content": _flat(told) if form.flat else told})
        found.append(Message("user", written, part=content[0][1]))
    return tuple(found)


def answer(text: str | None, calls: Sequence[dict[str, Any]], reasoning: str, form: Form) -> bytes:
    """An answer as it is written."""
    message: dict[str, Any] = {"role": "assistant", "content": text}
    if calls:
        message["tool_calls"] = list(calls)
    if reasoning or form.flat:
        message["reasoning_content"] = reasoning
    if reasoning and form.mirrored:
        message["reasoning"] = reasoning
    return spelled(message)


def is_valid(parts: Sequence[Mapping[str, Any]]) -> bool:
    """Whether an answer stays in the history that is sent: one with an empty part, or with none, does not."""
    return bool(parts) and all(
        part
        and (part.get("thought") or part.get("thoughtSignature") or part.get("text") != "" or "functionCall" in part)
        for part in parts
    )


def result_text(response: Any) -> str:
    """What the model reads of a tool's response: its output, its error, or all of it as JSON."""
    if response is None or isinstance(response, str):
        return response or ""
    if isinstance(response, Mapping):
        for key in ("output", "error"):
            if isinstance(response.get(key), str):
                return str(response[key])
    return js(response)


def _answer(parts: Sequence[Mapping[str, Any]]) -> tuple[Message, ...]:
    thoughts = [p["text"] for p in parts if p.get("thought") and isinstance(p.get("text"), str) and p["text"]]
    texts = [p["text"] for p in parts if not p.get("thought") and isinstance(p.get("text"), str) and p["text"]]
    calls = [_call(p["functionCall"], i) for i, p in enumerate(_calling(parts))]
    if not (thoughts or texts or calls):
        return ()
    text = "".join(texts) or ("" if thoughts else None)
    return (Message("assistant", text=text, calls=tuple(calls), reasoning="".join(thoughts)),)


def _calling(parts: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    return [p for p in parts if isinstance(p.get("functionCall"), Mapping)]


def _call(function: Mapping[str, Any], number: int) -> tuple[str, dict[str, Any]]:
    name, args = _string(function.get("name")), function.get("args")
    identity = _string(function.get("id")) or f"call_{number}"
    arguments = js(args if args or isinstance(args, Mapping | list) else {})
    return identity, {"id": identity, "type": "function", "function": {"name": name, "arguments": arguments}}


def _result(response: Mapping[str, Any], form: Form, number: int) -> Message:
    text, identity = result_text(response.get("response")), _string(response.get("id"))
    nested = response.get("parts")
    content = [{"type": "text", "text": text}] if text else []
    listed = nested if isinstance(nested, Sequence) and not isinstance(nested, str) else ()
    content += [media for part in listed if isinstance(part, Mapping) and (media := _media(part, form))]
    shown = (_flat(content) if form.flat else content) if content else ""
    return Message("tool", spelled({"role": "tool", "tool_call_id": identity, "content": shown}), identity, number)


def _content(part: Mapping[str, Any], form: Form) -> list[dict[str, Any]]:
    text, found = part.get("text"), []
    if isinstance(text, str) and text and not part.get("thought"):
        found.append({"type": "text", "text": text})
    media = _media(part, form)
    return [*found, media] if media else found


def _media(part: Mapping[str, Any], form: Form) -> dict[str, Any] | None:
    """A file that stands in a part."""
    data = part.get("inlineData")
    if not isinstance(data, Mapping) or not data.get("mimeType") or not data.get("data"):
        return None
    mime, kind = str(data["mimeType"]), str(data["mimeType"]).partition("/")[0]
    shown = str(data.get("displayName") or mime)
    url = f"data:{mime};base64,{data['data']}"
    if mime == "application/pdf" and form.media:
        return {"type": "file", "file": {"filename": data.get("displayName") or "document.pdf", "file_data": url}}
    if kind in _FORMATS and form.media:
        return {"type": _FORMATS[kind], _FORMATS[kind]: {"url": url}}
    if kind in _FORMATS:
        return {"type": "text", "text": UNREAD.format(kind, shown)}
    return {"type": "text", "text": f"Unsupported inline media type: {mime} ({shown})."}


UNREAD = (
    '[Unsupported {0} file: "{1}". This model does not support {0} input. The read_file tool cannot process this type of '
    "file either. To handle this file, try using skills if applicable, or any tools installed at system wide, or let the "
    "user know you cannot process this type of file.]"
)
"""What a model that cannot see gets instead of an image or a film."""


def _item(item: Mapping[str, Any], form: Form) -> bytes:
    """An item of a content; the inside of a JSON string where contents are strings."""
    return spelled(_flat([item]))[1:-1] if form.flat else spelled(item)


def _flat(content: Sequence[Mapping[str, Any]]) -> str:
    told = (str(c["text"]) if c["type"] == "text" else f"[Unsupported content type: {c['type']}]" for c in content)
    return "\n\n".join(told)


def _string(value: Any) -> str:
    return value if isinstance(value, str) else ""


def spelled(value: Any) -> bytes:
    """A parsed value as ``JSON.stringify`` writes it."""
    return js(value).encode("utf-8", "surrogatepass")
