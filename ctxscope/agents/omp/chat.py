"""Messages as omp writes them for Chat Completions (omp.md §4.6)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ctxscope.agents.omp.fold import Form
from ctxscope.agents.omp.responses import parsed
from ctxscope.agents.omp.spelling import Wire, dumped, logged, message, quoted, whole
from ctxscope.agents.omp.store import Store
from ctxscope.agents.omp.turns import Msg
from ctxscope.agents.omp.wording import OMITTED
from ctxscope.agents.pi.chat import REASONING_FIELDS, data_url
from ctxscope.agents.pi.texts import RESULT_IMAGES, SEE_IMAGE, blocks, images, joined_text, string
from ctxscope.model import Piece
from ctxscope.wire.json_text import js

FIELD = "reasoning_content"


def render(messages: list[Msg], form: Form, held: Store) -> list[Wire]:
    """A user's or developer's message, an answer, or a run of tool results followed by their images."""
    found: list[Wire] = []
    pictures: list[Piece | list[Piece]] = []
    for msg in [*messages, None]:
        if msg is not None and msg.role == "toolResult":
            found.append(_result(msg, form))
            pictures += [_image(b, msg, held) for b in images(msg.content) if form.vision != "omitted"]
            continue
        if pictures:
            lead = Piece(b'{"type":"text","text":%s}' % quoted(RESULT_IMAGES))
            found.append(message("user", [lead, *pictures]))
            pictures = []
        wire = None if msg is None else _answer(msg, form) if msg.role == "assistant" else _user(msg, form, held)
        found += [wire] if wire is not None else []
    return found


def _user(msg: Msg, form: Form, held: Store) -> Wire | None:
    """A string under the developer's role where the API has one, blocks always under the user's."""
    place = msg.item.entry.place
    if isinstance(msg.content, str):
        if not msg.content.strip() and msg.lead is None:
            return None
        inside = logged(quoted(msg.content)[1:], place, external=msg.item.external)
        lead = (*msg.lead.pieces(), Piece(b"\\n\\n")) if msg.lead is not None else ()
        role = msg.role if form.developer else "user"
        head = Piece(b'{"role":%s,"content":"' % dumped(role))
        return Wire(role, (head, *lead, inside, Piece(b"}")))
    written: list[Piece | list[Piece]] = []
    if msg.lead is not None:
        written.append([Piece(b'{"type":"text","text":"'), *msg.lead.pieces(), Piece(b'"}')])
    for block in blocks(msg.content):
        if block.get("type") == "image":
            written += [_image(block, msg, held)] if form.vision != "omitted" else []
        elif block.get("type") == "text" and string(block.get("text")).strip():
            data = b'{"type":"text","text":%s}' % quoted(string(block.get("text")))
            written.append(logged(data, place, external=msg.item.external))
    if form.vision == "omitted" and images(msg.content):
        written.append(Piece(b'{"type":"text","text":%s}' % quoted(OMITTED)))
    return message("user", written) if written else None


def _image(block: Mapping[str, Any], msg: Msg, held: Store) -> Piece:
    data, external = held.image(string(block.get("data")))
    value = {"type": "image_url", "image_url": {"url": data_url({**block, "data": data})}}
    return logged(dumped(value), msg.item.entry.place, external=external or msg.item.external)


def _answer(msg: Msg, form: Form) -> Wire | None:
    """An answer: role, content, the reasoning field, tool calls."""
    texts = [b for b in msg.content if b.get("type") == "text" and string(b.get("text")).strip()]
    calls = [b for b in msg.content if b.get("type") == "toolCall"]
    said = "".join(_said(b, last=i == len(texts) - 1) for i, b in enumerate(texts))
    value: dict[str, Any] = {"role": "assistant", "content": said}
    thoughts = [b for b in msg.content if b.get("type") == "thinking"]
    name = next((string(b.get("thinkingSignature")) for b in thoughts), "")
    thought = "\n".join(string(b.get("thinking")) for b in thoughts if string(b.get("thinking")).strip())
    if thought or form.reasoning:
        value[name if name in REASONING_FIELDS else FIELD] = thought
    if calls:
        value["tool_calls"] = [_call(b) for b in calls]
    if not (said or calls or len(value) > len(("role", "content"))):
        return None
    details = [d for d in (_detail(string(b.get("thoughtSignature"))) for b in calls) if d is not None]
    value |= {"reasoning_details": details} if details else {}
    data = logged(dumped(value), msg.item.entry.place, external=msg.item.external)
    return Wire("assistant", (data,))


def _said(block: Mapping[str, Any], *, last: bool) -> str:
    text = whole(string(block.get("text")))
    return f"{text}\n" if block.get("demoted") and not last else text


def _call(block: Mapping[str, Any]) -> dict[str, Any]:
    arguments = js(block.get("arguments") or {})
    return {
        "id": block.get("id"),
        "type": "function",
        "function": {"name": block.get("name"), "arguments": arguments},
    }


def _detail(signature: str) -> Any:
    found = parsed(signature) if signature else None
    return found if isinstance(found, Mapping) else None


def _result(msg: Msg, form: Form) -> Wire:
    text, pictures = joined_text(msg.content), images(msg.content)
    shown = text or (SEE_IMAGE if pictures else "")
    if pictures and form.vision == "omitted":
        shown = f"{text}\n{OMITTED}" if text else OMITTED
    data = b'{"role":"tool","content":%s,"tool_call_id":%s}' % (quoted(shown), dumped(msg.tool_id))
    return Wire("tool", (logged(data, msg.item.entry.place, external=msg.item.external),))
