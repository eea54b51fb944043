"""Messages as the OpenAI client of the AI SDK writes them for the Responses API, nothing stored there (checked with 1.18.33)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ctxscope.agents.opencode.history import mapped
from ctxscope.agents.opencode.speech import Block, Speech, clean
from ctxscope.model import Piece
from ctxscope.wire.json_text import js, js_string


def kept(speech: Speech) -> Speech | None:
    """What is left of a speech without thoughts that no envelope proves; ``None``: nothing."""
    blocks = tuple(b for b in speech.blocks if b.kind != "reasoning" or _envelope(b))
    return Speech(speech.role, blocks) if blocks else None


def count(speech: Speech) -> int:
    """How many items one speech is sent as."""
    return 1 if speech.role == "user" else len(list(_runs(speech.blocks)))


def written(speech: Speech) -> Iterator[tuple[Piece, ...]]:
    """The items one speech is sent as: a message, a thought, a call or a result each."""
    if speech.role == "user":
        yield _user(speech.blocks)
        return
    for run in _runs(speech.blocks):
        block = run[0]
        if block.kind == "reasoning":
            yield _thought(run)
        elif block.kind == "call":
            call = {"type": "function_call", "call_id": block.id, "name": block.name, "arguments": js(block.input)}
            yield (Piece(_spelled(call), "logged", block.entry.place),)
        elif block.kind == "result":
            yield _result(block)
        else:
            head = Piece(b'{"role":"assistant","content":[{"type":"output_text","text":')
            yield (head, _text(block), Piece(b"}]}"))


def _runs(blocks: Sequence[Block]) -> Iterator[list[Block]]:
    """Blocks that are one item: thoughts of the same item of the provider's; any other alone."""
    run: list[Block] = []
    for block in blocks:
        if run and block.kind == run[-1].kind == "reasoning" and _item(block) == _item(run[-1]) != "":
            run.append(block)
            continue
        if run:
            yield run
        run = [block]
    if run:
        yield run


def _user(blocks: Sequence[Block]) -> tuple[Piece, ...]:
    pieces = [Piece(b'{"role":"user","content":[')]
    for at, block in enumerate(blocks):
        comma = b"," if at else b""
        if block.kind == "text":
            pieces += [Piece(comma + b'{"type":"input_text","text":'), _text(block), Piece(b"}")]
        else:
            pieces.append(Piece(comma + _spelled(_file(block)), "logged", block.entry.place))
    return (*pieces, Piece(b"]}"))


def _thought(run: Sequence[Block]) -> tuple[Piece, ...]:
    pieces = [Piece(b'{"type":"reasoning","encrypted_content":%s,"summary":[' % _string(_envelope(run[-1])))]
    for block in run:
        if block.text:
            comma = b"," if len(pieces) > 1 else b""
            pieces += [Piece(comma + b'{"type":"summary_text","text":'), _text(block), Piece(b"}")]
    pieces[0] = Piece(pieces[0].data, "logged", run[-1].entry.place)
    return (*pieces, Piece(b"]}"))


def _result(block: Block) -> tuple[Piece, ...]:
    place = block.entry.place
    head = Piece(b'{"type":"function_call_output","call_id":%s,"output":' % _string(block.id), "logged", place)
    if not block.files:
        return (head, _text(block), Piece(b"}"))
    content = [{"type": "input_text", "text": clean(block.text)}] if block.text else []
    return (head, Piece(_spelled([*content, *map(_file, block.files)]), "logged", place), Piece(b"}"))


def _file(block: Block) -> dict[str, Any]:
    if block.name.startswith("image/"):
        return {"type": "input_image", "image_url": block.text}
    name = (block.extra or {}).get("filename") or "document.pdf"
    return {"type": "input_file", "filename": name, "file_data": block.text}


def _envelope(block: Block) -> str:
    return _told(block, "reasoningEncryptedContent")


def _item(block: Block) -> str:
    return _told(block, "itemId")


def _told(block: Block, name: str) -> str:
    value = mapped((block.extra or {}).get("openai")).get(name)
    return value if isinstance(value, str) else ""


def _text(block: Block) -> Piece:
    if block.learned is not None:
        return block.learned
    data = _string(clean(block.text))
    return Piece(data, "logged", block.entry.place) if block.is_logged else Piece(data)


def _string(text: str) -> bytes:
    return js_string(text).encode("utf-8", "surrogatepass")


def _spelled(value: Any) -> bytes:
    return js(value).encode("utf-8", "surrogatepass")
