"""Contents as omp writes them for Google's API (omp.md §4.8; read off the recorded session)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ctxscope.agents.omp.fold import Form
from ctxscope.agents.omp.spelling import Wire, dumped, logged, message, quoted, whole
from ctxscope.agents.omp.store import Store
from ctxscope.agents.omp.turns import Msg
from ctxscope.agents.pi.texts import SEE_IMAGE, blocks, images, joined_text, string
from ctxscope.agents.pi.transform import is_same
from ctxscope.model import Piece

_BASE64 = re.compile(r"[A-Za-z0-9+/]+={0,2}")
_PARTS = b"parts"


def render(messages: list[Msg], form: Form, held: Store) -> list[Wire]:
    """One content: a user's message, an answer, or a run of function responses."""
    found: list[Wire] = []
    run: list[Piece | list[Piece]] = []
    for msg in [*messages, None]:
        if msg is not None and msg.role == "toolResult":
            run += _result(msg, held)
            continue
        if run:
            found.append(message("user", run, key=_PARTS))
            run = []
        if msg is None:
            continue
        written = _answer(msg, form) if msg.role == "assistant" else _user(msg, held)
        if written:
            found.append(message("model" if msg.role == "assistant" else "user", written, key=_PARTS))
    return found


def _user(msg: Msg, held: Store) -> list[Piece | list[Piece]]:
    written: list[Piece | list[Piece]] = []
    if msg.lead is not None:
        written.append([Piece(b'{"text":"'), *msg.lead.pieces(), Piece(b'"}')])
    for block in blocks(msg.content):
        if block.get("type") == "image":
            written.append(_image(block, msg, held))
        else:
            data = b'{"text":%s}' % quoted(string(block.get("text")))
            written.append(logged(data, msg.item.entry.place, external=msg.item.external))
    return written


def _image(block: Mapping[str, Any], msg: Msg, held: Store) -> Piece:
    data, external = held.image(string(block.get("data")))
    value = {"inlineData": {"mimeType": block.get("mimeType"), "data": data}}
    return logged(dumped(value), msg.item.entry.place, external=external or msg.item.external)


def _answer(msg: Msg, form: Form) -> list[Piece | list[Piece]]:
    same = is_same(msg.item.message, form.target)
    parts = [p for p in (_part(b, same=same) for b in msg.content) if p]
    return [logged(dumped(p), msg.item.entry.place, external=msg.item.external) for p in parts]


def _part(block: Mapping[str, Any], *, same: bool) -> dict[str, Any]:
    kind = block.get("type")
    if kind == "text":
        text = whole(string(block.get("text")))
        return {"text": text, **_signature(block.get("textSignature"), same=same)} if text.strip() else {}
    if kind == "thinking":
        signature = _signature(block.get("thinkingSignature"), same=same)
        return {"thought": True, "text": whole(string(block.get("thinking"))), **signature}
    if kind != "toolCall":
        return {}
    call = {"name": block.get("name"), "args": block.get("arguments") or {}}
    return {"functionCall": call, **_signature(block.get("thoughtSignature"), same=same)}


def _signature(value: Any, *, same: bool) -> dict[str, str]:
    valid = isinstance(value, str) and len(value) % 4 == 0 and _BASE64.fullmatch(value) is not None
    return {"thoughtSignature": value} if same and valid else {}


def _result(msg: Msg, held: Store) -> list[Piece | list[Piece]]:
    text, pictures = joined_text(msg.content), images(msg.content)
    key = "error" if msg.item.message.get("isError") else "output"
    shown = whole(text) or (SEE_IMAGE if pictures else "")
    value = {"functionResponse": {"name": msg.item.message.get("toolName"), "response": {key: shown}}}
    response = logged(dumped(value), msg.item.entry.place, external=msg.item.external)
    return [response, *(_image(b, msg, held) for b in pictures)]
