"""Messages as omp writes them for Anthropic Messages (omp.md §4.5)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ctxscope.agents.omp.fold import Form
from ctxscope.agents.omp.spelling import Wire, dumped, logged, message, quoted
from ctxscope.agents.omp.store import Store
from ctxscope.agents.omp.turns import OFFICIAL, Msg
from ctxscope.agents.omp.wording import TOOL_FAILED, TOOL_IMAGES, demoted
from ctxscope.agents.pi.texts import SEE_IMAGE, blocks, string
from ctxscope.model import Piece

_UNPREFIXED = {"web_search", "code_execution", "text_editor", "computer"}


def render(messages: list[Msg], form: Form, held: Store) -> list[Wire]:
    """One message for a user's, an answer, or a run of tool results."""
    found: list[Wire] = []
    run: list[Piece | list[Piece]] = []
    pictures: list[Piece] = []
    for msg in [*messages, None]:
        if msg is not None and msg.role == "toolResult":
            result, hoisted = _result(msg, held)
            run.append(result)
            pictures += hoisted
            continue
        if run:
            lead = [Piece(b'{"type":"text","text":%s}' % quoted(TOOL_IMAGES))] if pictures else []
            run += [*lead, *pictures]
            found.append(message("user", run, last=len(run) - 1))
            run, pictures = [], []
        wire = None if msg is None else _answer(msg, form) if msg.role == "assistant" else _user(msg, held)
        if wire is not None and msg is not None:
            found.append(replace(wire, own=msg.role == "user" and msg.item.conversational))
    return found


def _user(msg: Msg, held: Store) -> Wire | None:
    place = msg.item.entry.place
    if isinstance(msg.content, str):
        return _said(msg)
    written: list[Piece | list[Piece]] = []
    if msg.lead is not None:
        written.append([Piece(b'{"type":"text","text":"'), *msg.lead.pieces(), Piece(b'"}')])
    for block in blocks(msg.content):
        data, external = _block(block, held)
        if data:
            written.append(logged(data, place, external=external or msg.item.external))
    return message("user", written, last=len(written) - 1) if written else None


def _said(msg: Msg) -> Wire | None:
    """A user message whose content is a string."""
    if not msg.content.strip() and msg.lead is None:
        return None
    text = logged(quoted(msg.content), msg.item.entry.place, external=msg.item.external)
    if msg.lead is None:
        return Wire("user", (Piece(b'{"role":"user","content":'), text, Piece(b"}")), text=text)
    inside = logged(text.data[1:], text.place, external=text.external)
    lead = (Piece(b'{"role":"user","content":"'), *msg.lead.pieces(), Piece(b"\\n\\n"))
    whole = Piece(b"".join(p.data for p in lead[1:]).join((b'"', b"")) + inside.data, "logged", text.place)
    return Wire("user", (*lead, inside, Piece(b"}")), text=whole)


def _block(block: Mapping[str, Any], held: Store) -> tuple[bytes, bool]:
    """A text or image block, and whether a blob restored it; empty for a blank text."""
    if block.get("type") == "text":
        text = string(block.get("text"))
        return (b'{"type":"text","text":%s}' % quoted(text) if text.strip() else b""), False
    if block.get("type") != "image":
        return b"", False
    data, external = held.image(string(block.get("data")))
    source = {"type": "base64", "media_type": block.get("mimeType"), "data": data}
    return dumped({"type": "image", "source": source}), external


def _answer(msg: Msg, form: Form) -> Wire | None:
    signed = any(_signature(b) for b in msg.content if b.get("type") == "thinking")
    written: list[tuple[Piece, bool]] = []
    for block in msg.content:
        data, marked = _answer_block(block, form, signed=signed)
        if data:
            written.append((logged(data, msg.item.entry.place, external=msg.item.external), marked))
    # Calls stand last, whatever was said behind them.
    written.sort(key=lambda w: w[0].data.startswith(b'{"type":"tool_use"'))
    last = max((i for i, (_, marked) in enumerate(written) if marked), default=-1)
    return message("assistant", [piece for piece, _ in written], last=last) if written else None


def _answer_block(block: Mapping[str, Any], form: Form, *, signed: bool) -> tuple[bytes, bool]:
    """A block of an answer, and whether it can bear a cache mark; empty for one that is not sent."""
    kind = block.get("type")
    if kind == "text":
        text = string(block.get("text"))
        return (b'{"type":"text","text":%s}' % quoted(text) if text.strip() else b""), True
    if kind == "toolCall":
        name = string(block.get("name"))
        name = f"_{name}" if form.prefix and name.lower() not in _UNPREFIXED else name
        parts = dumped(block.get("id")), dumped(name), dumped(block.get("arguments") or {})
        return b'{"type":"tool_use","id":%s,"name":%s,"input":%s}' % parts, True
    if kind == "redactedThinking":
        data = string(block.get("data"))
        return (dumped({"type": "redacted_thinking", "data": data}) if data.strip() else b""), False
    if kind != "thinking":
        return b"", False
    return _thinking(block, form, signed=signed)


def _thinking(block: Mapping[str, Any], form: Form, *, signed: bool) -> tuple[bytes, bool]:
    text, signature = string(block.get("thinking")), _signature(block)
    if signature:
        # Beside a signature nothing is touched, lone surrogates either.
        return b'{"type":"thinking","thinking":%s,"signature":%s}' % (dumped(text), dumped(signature)), False
    if not text.strip() or form.target.provider == OFFICIAL:
        return b"", False
    if signed:
        return b'{"type":"text","text":%s}' % quoted(demoted(text, form.target.model)), True
    return b'{"type":"thinking","thinking":%s,"signature":""}' % quoted(text), False


def _signature(block: Mapping[str, Any]) -> str:
    signature = string(block.get("thinkingSignature"))
    return signature if signature.strip() else ""


def _result(msg: Msg, held: Store) -> tuple[Piece, list[Piece]]:
    """A tool result, its content a list of blocks or an empty string; and images that one which failed may not hold."""
    parts = list(blocks(msg.content))
    failed, place = bool(msg.item.message.get("isError")), msg.item.entry.place
    written = [_block(b, held) for b in parts]
    shown = [data for data, _ in written if data]
    if any(b.get("type") == "image" for b in parts) and not any(data.startswith(b'{"type":"text"') for data in shown):
        shown.insert(0, b'{"type":"text","text":%s}' % quoted(SEE_IMAGE))
    hoisted = [d for d, _ in written if failed and not d.startswith(b'{"type":"text"') and d]
    shown = [d for d in shown if d not in hoisted]
    content = b"[" + b",".join(shown) + b"]" if shown else quoted(TOOL_FAILED) if failed else b'""'
    block = b'{"type":"tool_result","tool_use_id":%s,"content":%s,"is_error":%s}' % (
        dumped(msg.tool_id),
        content,
        dumped(failed),
    )
    external = msg.item.external or any(e for _, e in written)
    return logged(block, place, external=external), [logged(d, place, external=external) for d in hoisted]
