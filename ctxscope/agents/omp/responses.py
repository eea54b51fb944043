"""Input items as omp writes them for OpenAI Responses (omp.md §4.7)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ctxscope.agents.omp.fold import Form
from ctxscope.agents.omp.spelling import Wire, dumped, logged, message, quoted, whole
from ctxscope.agents.omp.store import Store
from ctxscope.agents.omp.turns import Msg
from ctxscope.agents.pi.chat import data_url
from ctxscope.agents.pi.texts import RESULT_IMAGES, SEE_IMAGE, blocks, images, joined_text, string
from ctxscope.model import Piece
from ctxscope.wire import json_text

_LEFT_OUT = {"id", "status"}
"""Of an item replayed as it came."""


def render(messages: list[Msg], form: Form, held: Store) -> list[Wire]:
    """Items of a user's message, an answer, or a run of tool results followed by their images."""
    found: list[Wire] = []
    pictures: list[Wire] = []
    for msg in [*messages, None]:
        if msg is not None and msg.role == "toolResult":
            found.append(_result(msg))
            pictures += _pictures(msg, held)
            continue
        found += pictures
        pictures = []
        if msg is not None:
            found += _answer(msg, form) if msg.role == "assistant" else _user(msg, held)
    return found


def _user(msg: Msg, held: Store) -> list[Wire]:
    place = msg.item.entry.place
    payload = msg.item.message.get("providerPayload")
    if isinstance(payload, Mapping) and isinstance(payload.get("items"), list):
        return [Wire(msg.role, (logged(dumped(_stripped(i)), place),)) for i in payload["items"]]
    written: list[Piece | list[Piece]] = []
    content = msg.content
    if msg.lead is not None and isinstance(content, str):
        inside = logged(quoted(content)[1:], place)
        written.append([_TEXT, *msg.lead.pieces(), Piece(b"\\n\\n"), inside, Piece(b"}")])
        content = []
    elif msg.lead is not None:
        written.append([_TEXT, *msg.lead.pieces(), Piece(b'"}')])
    for block in blocks(content):
        if block.get("type") == "image":
            written.append(_image(block, msg, held))
        elif string(block.get("text")).strip():
            data = b'{"type":"input_text","text":%s}' % quoted(string(block.get("text")))
            written.append(logged(data, place, external=msg.item.external))
    return [message(msg.role, written)] if written else []


_TEXT = Piece(b'{"type":"input_text","text":"')


def _image(block: Mapping[str, Any], msg: Msg, held: Store) -> Piece:
    data, external = held.image(string(block.get("data")))
    value = {"type": "input_image", "detail": "auto", "image_url": data_url({**block, "data": data})}
    return logged(dumped(value), msg.item.entry.place, external=external or msg.item.external)


def _answer(msg: Msg, form: Form) -> list[Wire]:
    """The provider's own items as they came, or what stands for them."""
    place, external = msg.item.entry.place, msg.item.external
    if msg.native is not None:
        items = [dumped(_stripped(item)) for item in msg.native]
    else:
        items = [item for item in (_made(b, form) for b in msg.content) if item]
    return [Wire("assistant", (logged(item, place, external=external),)) for item in items]


def _stripped(item: Any) -> Any:
    return {k: v for k, v in item.items() if k not in _LEFT_OUT} if isinstance(item, Mapping) else item


def _made(block: Mapping[str, Any], form: Form) -> bytes:
    kind = block.get("type")
    if kind == "text":
        text = whole(string(block.get("text")))
        content = [{"type": "output_text", "text": text, "annotations": []}]
        status = {"status": "completed"} if form.status else {}
        return dumped({"type": "message", "role": "assistant", "content": content, **status})
    if kind == "toolCall":
        call = string(block.get("id")).partition("|")[0]
        arguments = json_text.js(block.get("arguments") or {})
        return dumped({"type": "function_call", "call_id": call, "name": block.get("name"), "arguments": arguments})
    item = parsed(string(block.get("thinkingSignature"))) if kind == "thinking" else None
    return dumped(_stripped(item)) if isinstance(item, Mapping) and item.get("type") == "reasoning" else b""


def _result(msg: Msg) -> Wire:
    text = joined_text(msg.content)
    shown = text or (SEE_IMAGE if images(msg.content) else "")
    call = msg.tool_id.partition("|")[0]
    data = b'{"type":"function_call_output","call_id":%s,"output":%s}' % (dumped(call), quoted(shown))
    return Wire("tool", (logged(data, msg.item.entry.place, external=msg.item.external),))


def _pictures(msg: Msg, held: Store) -> list[Wire]:
    found = [_image(b, msg, held) for b in images(msg.content)]
    lead = Piece(b'{"type":"input_text","text":%s}' % quoted(RESULT_IMAGES))
    return [message("user", [lead, *found])] if found else []


def parsed(text: str) -> Any:
    """JSON in a signature; ``None`` for anything else."""
    try:
        return json_text.loads(text)
    except ValueError:
        return None
