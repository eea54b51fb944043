"""Input items and tools as pi writes them for OpenAI Responses (pi.md §4.5)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ctxscope.agents.pi import texts
from ctxscope.agents.pi.chat import data_url
from ctxscope.agents.pi.fold import Form, Rendered
from ctxscope.agents.pi.head import Head
from ctxscope.agents.pi.texts import clean, quoted, spelled, string
from ctxscope.agents.pi.transform import LONGEST_ID, Msg, Target, short_hash
from ctxscope.model import Piece
from ctxscope.wire import json_text


def render(group: tuple[Msg, ...], form: Form, index: int, *, mark: bool) -> Rendered:  # noqa: ARG001 - one face for all APIs
    """The items of a user message, an answer, or a run of tool results."""
    if group[0].role == "toolResult":
        return [(_result(m, images=form.images),) for m in group]
    msg = group[0]
    if msg.role == "user":
        parts = [_part(b, images=form.images) for b in texts.blocks(msg.content)]
        items = [b'{"role":"user","content":[%s]}' % b",".join(parts)] if parts else []
    else:
        items = _answer(msg, form.target, index)
    return [(Piece(item, "logged", msg.place),) for item in items]


def _part(block: Mapping[str, Any], *, images: bool) -> bytes:
    if block.get("type") != "image":
        return b'{"type":"input_text","text":%s}' % quoted(string(block.get("text")))
    if not images:
        return b'{"type":"input_text","text":%s}' % quoted(texts.IMAGE_OMITTED)
    return spelled({"type": "input_image", "detail": "auto", "image_url": data_url(block)})


def _answer(msg: Msg, target: Target, index: int) -> list[bytes]:
    items: list[bytes] = []
    count = 0
    for block in msg.content:
        kind = block.get("type")
        if kind == "thinking":
            item = _parsed(string(block.get("thinkingSignature")))
            items += [spelled(item)] if item is not None else []
        elif kind == "text":
            items.append(_text(block, _fallback(index, count, target)))
            count += 1
        elif kind == "toolCall":
            items.append(_call(block))
    return items


def _fallback(index: int, count: int, target: Target) -> str:
    """The id pi gives a text that came without one: its message's number, then the text's."""
    if target.old:
        return f"msg_{index}"
    return f"msg_pi_{index}_{count}" if count else f"msg_pi_{index}"


def _text(block: Mapping[str, Any], fallback: str) -> bytes:
    name, phase = signed(string(block.get("textSignature")))
    name = name or fallback
    if len(name) > LONGEST_ID:
        name = f"msg_{short_hash(name)}"
    content = {"type": "output_text", "text": clean(string(block.get("text"))), "annotations": []}
    item = {"type": "message", "role": "assistant", "content": [content], "status": "completed", "id": name}
    return spelled({**item, **({"phase": phase} if phase else {})})


def signed(signature: str) -> tuple[str, str | None]:
    """Id and phase a text was signed with: JSON, or the bare id."""
    if signature.startswith("{"):
        found = _parsed(signature)
        if isinstance(found, dict) and isinstance(found.get("id"), str):
            return found["id"], found.get("phase")
    return signature, None


def _call(block: Mapping[str, Any]) -> bytes:
    """A function call; its item id goes along only where it is one (a foreign call's id was made one word before)."""
    call, _, item = string(block.get("id")).partition("|")
    head = {"id": item} if item.startswith("fc_") else {}
    arguments = json_text.js(block.get("arguments"))
    value = {"type": "function_call", **head, "call_id": call, "name": block.get("name"), "arguments": arguments}
    return spelled(value)


def _result(msg: Msg, *, images: bool) -> Piece:
    text, pictures = texts.joined_text(msg.content), texts.images(msg.content)
    if pictures and images:
        parts = [_part({"type": "text", "text": text}, images=True)] if text else []
        output = b"[" + b",".join([*parts, *(_part(b, images=True) for b in pictures)]) + b"]"
    else:
        output = quoted(text or (texts.SEE_IMAGE if pictures else texts.NO_OUTPUT))
    call = msg.tool_id.partition("|")[0]
    data = b'{"type":"function_call_output","call_id":%s,"output":%s}' % (spelled(call), output)
    return Piece(data, "logged", msg.place) if msg.place else Piece(data)


def _parsed(text: str) -> Any:
    try:
        return json_text.loads(text)
    except ValueError:
        return None


def tools(head: Head, *, strict: bool | None) -> tuple[Piece, ...]:
    """The tools value; ``strict`` where the form has that key."""
    pieces: list[Piece] = []
    for tool in head.tools.values():
        value = {"type": "function", **{k: tool.definition.get(k) for k in ("name", "description", "parameters")}}
        value |= {} if strict is None else {"strict": strict}
        pieces.append(Piece((b"," if pieces else b"[") + spelled(value), "logged", tool.place))
    return (*pieces, Piece(b"]")) if pieces else ()
