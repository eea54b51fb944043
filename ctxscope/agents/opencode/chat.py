"""Messages as the OpenAI-compatible client of the AI SDK writes them for Chat Completions (opencode.md §4)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ctxscope.agents.opencode.speech import Block, Speech, clean
from ctxscope.model import Piece
from ctxscope.wire.json_text import js, js_string

FORMS = ("interleaved", "apart")
"""How reasoning is sent back: the model's own field, in each answer and behind its calls; or by the client, where there is some."""


MARK = b',"cache_control":{"type":"ephemeral"}'
"""Set for models of Anthropic's on the last block of a message; texts of answers cannot carry it."""


def written(speech: Speech, form: str, *, marked: bool) -> Iterator[tuple[Piece, ...]]:
    """The messages one speech is sent as."""
    if speech.role == "tool":
        for block in speech.blocks:
            yield _result(block, MARK if marked and block is speech.blocks[-1] else b"")
    elif speech.role == "user":
        yield _user(speech.blocks, MARK if marked else b"")
    else:
        yield _answer(speech.blocks, form, MARK if marked else b"")


def _user(blocks: Sequence[Block], mark: bytes) -> tuple[Piece, ...]:
    if len(blocks) == 1 and blocks[0].kind == "text":
        return (Piece(b'{"role":"user","content":'), _text(blocks[0]), Piece(mark + b"}"))
    pieces = [Piece(b'{"role":"user","content":[')]
    for at, block in enumerate(blocks):
        comma, end = b"," if at else b"", (mark if block is blocks[-1] else b"") + b"}"
        if block.kind == "text":
            pieces += [Piece(comma + b'{"type":"text","text":'), _text(block), Piece(end)]
        else:
            pieces += [Piece(comma + _spelled(_file(block))[:-1], "logged", block.entry.place), Piece(end)]
    return (*pieces, Piece(b"]}"))


def _file(block: Block) -> dict[str, Any]:
    if block.name.startswith("image/"):
        return {"type": "image_url", "image_url": {"url": block.text}}
    name = (block.extra or {}).get("filename") or "document.pdf"
    return {"type": "file", "file": {"filename": name, "file_data": block.text}}


def _answer(blocks: Sequence[Block], form: str, mark: bytes) -> tuple[Piece, ...]:
    """Texts joined, reasoning joined, calls; each piece of them logged where it stands in the log."""
    texts = [b for b in blocks if b.kind == "text"]
    thoughts = [b for b in blocks if b.kind == "reasoning"]
    calls = [b for b in blocks if b.kind == "call"]
    shown = [b for b in blocks if form == "apart" or b.kind != "reasoning"]
    pieces = [Piece(b'{"role":"assistant","content":'), *_joined(texts)]
    if form == "apart" and any(b.text for b in thoughts):
        pieces += [Piece(b',"reasoning_content":'), *_joined(thoughts)]
    for at, call in enumerate(calls):
        function = {"name": call.name, "arguments": js(call.input)}
        value = {"id": call.id, "type": "function", "function": function}
        pieces += [Piece(b"," if at else b',"tool_calls":['), Piece(_spelled(value)[:-1], "logged", call.entry.place)]
        pieces.append(Piece((mark if call is shown[-1] else b"") + b"}"))
    pieces += [Piece(b"]")] if calls else []
    if form == "interleaved":
        pieces += [Piece(b',"reasoning_content":'), *_joined(thoughts)]
    return (*pieces, Piece(b"}"))


def _result(block: Block, mark: bytes) -> tuple[Piece, ...]:
    head = Piece(b'{"role":"tool","tool_call_id":%s,"content":' % _string(block.id), "logged", block.entry.place)
    if not block.files:
        return (head, _text(block), Piece(mark + b"}"))
    media = [{"type": "media", "mediaType": f.name, "data": f.text.partition(",")[2]} for f in block.files]
    content = [*([{"type": "text", "text": clean(block.text)}] if block.text else []), *media]
    return (head, Piece(_string(js(content)), "logged", block.entry.place), Piece(mark + b"}"))


def _text(block: Block) -> Piece:
    if block.learned is not None:
        return block.learned
    data = _string(clean(block.text))
    return Piece(data, "logged", block.entry.place) if block.is_logged else Piece(data)


def _joined(blocks: Sequence[Block]) -> list[Piece]:
    """One string of several texts."""
    inside = [Piece(_string(clean(b.text))[1:-1], "logged", b.entry.place) for b in blocks if b.text]
    return [Piece(b'"'), *inside, Piece(b'"')]


def _string(text: str) -> bytes:
    return js_string(text).encode("utf-8", "surrogatepass")


def _spelled(value: Any) -> bytes:
    return js(value).encode("utf-8", "surrogatepass")
