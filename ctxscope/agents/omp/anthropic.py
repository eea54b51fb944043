"""Messages as omp writes them for Anthropic Messages (omp.md §4.5)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ctxscope.agents.omp.fold import Form
from ctxscope.agents.omp.spelling import Wire, dumped, logged, message, quoted
from ctxscope.agents.omp.store import Store
from ctxscope.agents.omp.turns import Msg
from ctxscope.agents.pi.texts import SEE_IMAGE, blocks, string
from ctxscope.model import Piece

OFFICIAL = "anthropic"
"""Provider that signs thinking and takes none unsigned."""
_UNPREFIXED = {"web_search", "code_execution", "text_editor", "computer"}


def render(messages: list[Msg], form: Form, held: Store) -> list[Wire]:
    """One message for a user's, an answer, or a run of tool results."""
    found: list[Wire] = []
    run: list[Piece | list[Piece]] = []
    for msg in [*messages, None]:
        if msg is not None and msg.role == "toolResult":
            run.append(_result(msg, held))
            continue
        if run:
            found.append(message("user", run, last=len(run) - 1))
            run = []
        wire = None if msg is None else _answer(msg, form) if msg.role == "assistant" else _user(msg, held)
        found += [wire] if wire is not None else []
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
    if block.get("type") != "image":
        text = string(block.get("text"))
        return (b'{"type":"text","text":%s}' % quoted(text) if text.strip() else b""), False
    data, external = held.image(string(block.get("data")))
    source = {"type": "base64", "media_type": block.get("mimeType"), "data": data}
    return dumped({"type": "image", "source": source}), external


def _answer(msg: Msg, form: Form) -> Wire | None:
    signed = any(_signature(b) for b in msg.content if b.get("type") == "thinking")
    written: list[Piece | list[Piece]] = []
    last = -1
    for block in msg.content:
        data, marked = _answer_block(block, form, signed=signed)
        if data:
            written.append(logged(data, msg.item.entry.place, external=msg.item.external))
            last = len(written) - 1 if marked else last
    return message("assistant", written, last=last) if written else None


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
        return b'{"type":"text","text":%s}' % quoted(text), True
    return b'{"type":"thinking","thinking":%s,"signature":""}' % quoted(text), False


def _signature(block: Mapping[str, Any]) -> str:
    signature = string(block.get("thinkingSignature"))
    return signature if signature.strip() else ""


def _result(msg: Msg, held: Store) -> Piece:
    """A tool result: its content a list of blocks, or an empty string."""
    parts = list(blocks(msg.content))
    written = [_block(b, held) for b in parts]
    shown = [data for data, _ in written if data]
    if any(b.get("type") == "image" for b in parts) and not any(data.startswith(b'{"type":"text"') for data in shown):
        shown.insert(0, b'{"type":"text","text":%s}' % quoted(SEE_IMAGE))
    content = b"[" + b",".join(shown) + b"]" if shown else b'""'
    block = b'{"type":"tool_result","tool_use_id":%s,"content":%s,"is_error":%s}' % (
        dumped(msg.tool_id),
        content,
        dumped(bool(msg.item.message.get("isError"))),
    )
    external = msg.item.external or any(e for _, e in written)
    return logged(block, msg.item.entry.place, external=external)
