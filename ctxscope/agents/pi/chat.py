"""Messages and tools as pi writes them for Chat Completions (pi.md §4.5)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ctxscope.agents.pi import texts
from ctxscope.agents.pi.fold import Form, Rendered
from ctxscope.agents.pi.head import Head
from ctxscope.agents.pi.texts import clean, quoted, spelled, string
from ctxscope.agents.pi.transform import Msg
from ctxscope.model import Piece
from ctxscope.wire import json_text

REASONING_FIELDS = {"reasoning_content", "reasoning", "reasoning_text"}


def render(group: tuple[Msg, ...], form: Form, index: int, *, mark: bool) -> Rendered:  # noqa: ARG001 - one face for all APIs
    """A user message or an answer, or a run of tool results followed by their images."""
    if group[0].role == "toolResult":
        return _results(group, images=form.images)
    msg = group[0]
    value = _user(msg.content, images=form.images) if msg.role == "user" else _answer(msg.content)
    return [(Piece(value, "logged", msg.place),)] if value else []


def _user(content: Any, *, images: bool) -> bytes:
    if isinstance(content, str):
        return b'{"role":"user","content":%s}' % quoted(content)
    parts = [_part(b, images=images) for b in texts.blocks(content)]
    return b'{"role":"user","content":[%s]}' % b",".join(parts) if parts else b""


def _part(block: Mapping[str, Any], *, images: bool) -> bytes:
    if block.get("type") != "image":
        return b'{"type":"text","text":%s}' % quoted(string(block.get("text")))
    if not images:
        return b'{"type":"text","text":%s}' % quoted(texts.IMAGE_OMITTED)
    return spelled({"type": "image_url", "image_url": {"url": data_url(block)}})


def data_url(block: Mapping[str, Any]) -> str:
    """An image block as a data URL."""
    return f"data:{block.get('mimeType')};base64,{block.get('data')}"


def _answer(content: list[Mapping[str, Any]]) -> bytes:
    """An answer: role, content, the reasoning field it came with, tool calls, reasoning details."""
    text = "".join(string(b.get("text")) for b in content if b.get("type") == "text" and string(b.get("text")).strip())
    calls = [b for b in content if b.get("type") == "toolCall"]
    if not text and not calls:
        return b""
    message: dict[str, Any] = {"role": "assistant", "content": clean(text) or None}
    details = _details(content, calls)
    thoughts = [b for b in content if b.get("type") == "thinking" and string(b.get("thinking")).strip()]
    name = string(thoughts[0].get("thinkingSignature")) if thoughts else ""
    if not _from_thinking(content) and name in REASONING_FIELDS:
        message[name] = "\n".join(clean(string(b.get("thinking"))) for b in thoughts)
    if calls:
        message["tool_calls"] = [_call(b) for b in calls]
    if details:
        message["reasoning_details"] = details
    return spelled(message)


def _call(block: Mapping[str, Any]) -> dict[str, Any]:
    arguments = json_text.js(block.get("arguments"))
    function = {"name": block.get("name"), "arguments": arguments}
    return {"id": block.get("id"), "type": "function", "function": function}


def _from_thinking(content: list[Mapping[str, Any]]) -> list[Any]:
    """The details list an answer's thinking carries as its signature."""
    for block in content:
        signature = string(block.get("thinkingSignature")) if block.get("type") == "thinking" else ""
        if signature.startswith("["):
            found = _parsed(signature)
            if isinstance(found, list):
                return found
    return []


def _details(content: list[Mapping[str, Any]], calls: list[Mapping[str, Any]]) -> list[Any]:
    found = _from_thinking(content)
    if found:
        return found
    kept = (_parsed(string(b.get("thoughtSignature"))) for b in calls if b.get("thoughtSignature"))
    return [d for d in kept if d is not None]


def _parsed(text: str) -> Any:
    try:
        return json_text.loads(text)
    except ValueError:
        return None


def _results(group: tuple[Msg, ...], *, images: bool) -> Rendered:
    out: Rendered = []
    parts: list[bytes] = []
    for msg in group:
        text, pictures = texts.joined_text(msg.content), texts.images(msg.content)
        shown = text or (texts.SEE_IMAGE if pictures else texts.NO_OUTPUT)
        data = b'{"role":"tool","content":%s,"tool_call_id":%s}' % (quoted(shown), spelled(msg.tool_id))
        out.append((Piece(data, "logged", msg.place) if msg.place else Piece(data),))
        parts += [_part(b, images=True) for b in pictures if images]
    if parts:
        lead = b'{"role":"user","content":[{"type":"text","text":%s},' % quoted(texts.RESULT_IMAGES)
        place = next(m.place for m in reversed(group) if texts.images(m.content))
        out.append((Piece(lead), Piece(b",".join(parts), "logged", place), Piece(b"]}")))
    return out


def system(head: Head, role: str) -> tuple[Piece, ...]:
    """The first message; empty when there is no text."""
    text = head.text()
    return (Piece(b'{"role":"%s","content":"' % role.encode()), *text, Piece(b'"}')) if text else ()


def tools(head: Head, *, strict: bool | None) -> tuple[Piece, ...]:
    """The tools value; ``strict`` where the form has that key."""
    pieces: list[Piece] = []
    for tool in head.tools.values():
        function = {k: tool.definition.get(k) for k in ("name", "description", "parameters")}
        function |= {} if strict is None else {"strict": strict}
        data = spelled({"type": "function", "function": function})
        pieces.append(Piece((b"," if pieces else b"[") + data, "logged", tool.place))
    return (*pieces, Piece(b"]")) if pieces else ()
