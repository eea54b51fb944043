"""Contents as omp writes them for Google's API (omp.md §4.8; read off the recorded session)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ctxscope.agents.omp.fold import Form
from ctxscope.agents.omp.spelling import Wire, dumped, logged, message, quoted, whole
from ctxscope.agents.omp.store import Store
from ctxscope.agents.omp.turns import Msg
from ctxscope.agents.omp.wording import TOOL_IMAGE, demoted
from ctxscope.agents.pi.texts import SEE_IMAGE, blocks, images, joined_text, string
from ctxscope.agents.pi.transform import is_same
from ctxscope.model import Piece

_BASE64 = re.compile(r"[A-Za-z0-9+/]+={0,2}")
_PARTS = b"parts"
SENTINEL = "skip_thought_signature_validator"
"""What stands for a missing signature where the model wants one."""


def render(messages: list[Msg], form: Form, held: Store) -> list[Wire]:
    """One content: a user's message, an answer, or a run of function responses."""
    found: list[Wire] = []
    run: list[Piece | list[Piece]] = []
    pictures: list[Piece | list[Piece]] = []
    for msg in [*messages, None]:
        if msg is not None and msg.role == "toolResult":
            run.append(_result(msg, form, held))
            pictures += [] if form.nested else _apart(msg, held)
            continue
        if run:
            found.append(message("user", run, key=_PARTS))
            found += [message("user", pictures, key=_PARTS)] if pictures else []
            run, pictures = [], []
        if msg is None:
            continue
        written = _answer(msg, form) if msg.role == "assistant" else _user(msg, held)
        if written:
            found.append(message("model" if msg.role == "assistant" else "user", written, key=_PARTS))
    return found


def _user(msg: Msg, held: Store) -> list[Piece | list[Piece]]:
    written: list[Piece | list[Piece]] = []
    if msg.lead is not None and isinstance(msg.content, str):
        inside = logged(quoted(msg.content)[1:], msg.item.entry.place, external=msg.item.external)
        return [[Piece(b'{"text":"'), *msg.lead.pieces(), Piece(b"\\n\\n"), inside, Piece(b"}")]]
    if msg.lead is not None:
        written.append([Piece(b'{"text":"'), *msg.lead.pieces(), Piece(b'"}')])
    for block in blocks(msg.content):
        if block.get("type") == "image":
            written.append(_image(block, msg, held))
        elif block.get("type") == "text" and string(block.get("text")).strip():
            data = b'{"text":%s}' % quoted(string(block.get("text")))
            written.append(logged(data, msg.item.entry.place, external=msg.item.external))
    return written


def _image(block: Mapping[str, Any], msg: Msg, held: Store) -> Piece:
    data, external = held.image(string(block.get("data")))
    return logged(dumped(_inline(block, data)), msg.item.entry.place, external=external or msg.item.external)


def _answer(msg: Msg, form: Form) -> list[Piece | list[Piece]]:
    same = is_same(msg.item.message, form.target)
    parts = [p for p in (_part(b, form, same=same) for b in msg.content) if p]
    return [logged(dumped(p), msg.item.entry.place, external=msg.item.external) for p in parts]


def _part(block: Mapping[str, Any], form: Form, *, same: bool) -> dict[str, Any]:
    kind = block.get("type")
    if kind == "text":
        text = whole(string(block.get("text")))
        return {"text": text, **_signature(block.get("textSignature"), same=same)} if text.strip() else {}
    if kind == "thinking":
        signature = _signature(block.get("thinkingSignature"), same=same)
        text = whole(string(block.get("thinking")))
        if not text.strip():
            return {}
        return {"thought": True, "text": text, **signature} if signature else {"text": demoted(text, form.target.model)}
    if kind != "toolCall":
        return {}
    call = {"name": block.get("name"), "args": block.get("arguments") or {}}
    call |= {"id": block.get("id")} if form.part_ids else {}
    signature = _signature(block.get("thoughtSignature"), same=same)
    fallback = {"thoughtSignature": SENTINEL} if form.sentinel else {}
    return {"functionCall": call, **(signature or fallback)}


def _signature(value: Any, *, same: bool) -> dict[str, str]:
    valid = isinstance(value, str) and len(value) % 4 == 0 and _BASE64.fullmatch(value) is not None
    return {"thoughtSignature": value} if same and valid else {}


def _result(msg: Msg, form: Form, held: Store) -> Piece:
    """A function's response; images stand inside it where the model takes them there."""
    text, pictures = joined_text(msg.content), images(msg.content)
    key = "error" if msg.item.message.get("isError") else "output"
    shown = whole(text) or (SEE_IMAGE if pictures else "")
    value: dict[str, Any] = {"name": msg.item.message.get("toolName"), "response": {key: shown}}
    external = msg.item.external
    if pictures and form.nested:
        found = [held.image(string(b.get("data"))) for b in pictures]
        external = external or any(restored for _, restored in found)
        value["parts"] = [_inline(b, data) for b, (data, _) in zip(pictures, found, strict=True)]
    value |= {"id": msg.tool_id} if form.part_ids else {}
    return logged(dumped({"functionResponse": value}), msg.item.entry.place, external=external)


def _apart(msg: Msg, held: Store) -> list[Piece | list[Piece]]:
    """The images of a tool result as they stand in a message of their own."""
    found = [_image(b, msg, held) for b in images(msg.content)]
    return [Piece(b'{"text":%s}' % quoted(TOOL_IMAGE)), *found] if found else []


def _inline(block: Mapping[str, Any], data: str) -> dict[str, Any]:
    return {"inlineData": {"mimeType": block.get("mimeType"), "data": data}}
