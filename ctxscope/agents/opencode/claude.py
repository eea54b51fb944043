"""Messages as the Anthropic client of the AI SDK writes them (opencode.md §4).

Messages of one role that follow one another are one on the wire. The last block of each of the last two has a cache
mark, which thinking cannot carry.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from ctxscope.agents.opencode.history import mapped
from ctxscope.agents.opencode.speech import Block, Speech, clean
from ctxscope.model import Piece
from ctxscope.wire.json_text import js, js_string

MARK = b',"cache_control":{"type":"ephemeral"}'
_NOT_IN_ID = re.compile(r"[^a-zA-Z0-9_-]")


def kept(speech: Speech) -> Speech | None:
    """What is left of a speech without texts that are empty and thoughts that say and prove nothing; ``None``: nothing."""
    blocks = tuple(b for b in speech.blocks if _is_sent(b))
    return Speech(speech.role, blocks) if blocks else None


def role_of(speech: Speech) -> str:
    """The role on the wire: results of tools are the user's."""
    return "assistant" if speech.role == "assistant" else "user"


def written(speech: Speech, *, claude: bool, marked: bool) -> tuple[Piece, ...]:
    """The blocks one speech is sent as, commas between them; ``claude``: a model whose ids are cleaned for it."""
    pieces: list[Piece] = []
    last = speech.blocks[-1] if marked else None
    for block in _ordered(speech.blocks):
        one = list(_block(block, claude=claude, mark=MARK if block is last else b""))
        if one:
            pieces += [Piece(b",")] if pieces else []
            pieces += one
    return tuple(pieces)


def _is_sent(block: Block) -> bool:
    if block.kind == "text":
        return bool(block.text)
    if block.kind != "reasoning":
        return True
    return bool(block.text.strip()) or any(_proof(block, name) for name in ("signature", "redactedData"))


def _proof(block: Block, name: str) -> str:
    value = mapped((block.extra or {}).get("anthropic")).get(name)
    return value if isinstance(value, str) else ""


def _ordered(blocks: Sequence[Block]) -> Iterator[Block]:
    """Between two thoughts the calls come last."""
    run: list[Block] = []
    for block in blocks:
        if block.kind == "reasoning":
            yield from sorted(run, key=_is_call)
            run = []
            yield block
        else:
            run.append(block)
    yield from sorted(run, key=_is_call)


def _is_call(block: Block) -> bool:
    return block.kind == "call"


def _block(block: Block, *, claude: bool, mark: bytes) -> Iterator[Piece]:
    place = block.entry.place
    name = _NOT_IN_ID.sub("_", block.id) if claude else block.id
    if block.kind == "text":
        yield Piece(b'{"type":"text","text":')
        yield _text(block)
    elif block.kind == "reasoning":
        yield from _thought(block)
        return
    elif block.kind == "call":
        value = {"type": "tool_use", "id": name, "name": block.name, "input": block.input}
        caller = mapped(mapped((block.extra or {}).get("anthropic")).get("caller"))
        if caller.get("type") == "direct":
            value["caller"] = {"type": "direct"}
        yield Piece(_spelled(value)[:-1], "logged", place)
    elif block.kind == "file":
        yield Piece(_spelled(_file(block))[:-1], "logged", place)
    else:
        yield Piece(b'{"type":"tool_result","tool_use_id":%s,"content":' % _string(name), "logged", place)
        yield from _content(block)
        if block.failed:
            yield Piece(b',"is_error":true')
    yield Piece(mark + b"}")


def _thought(block: Block) -> Iterator[Piece]:
    """Thinking with its signature; without one it is left out."""
    place = block.entry.place
    signature, redacted = _proof(block, "signature"), _proof(block, "redactedData")
    if signature:
        thinking = {"type": "thinking", "thinking": clean(block.text), "signature": signature}
        yield Piece(_spelled(thinking), "logged", place)
    elif redacted:
        yield Piece(_spelled({"type": "redacted_thinking", "data": redacted}), "logged", place)


def _content(block: Block) -> Iterator[Piece]:
    """A result's text, or a list of it and its files."""
    if not block.files:
        yield _text(block)
        return
    parts = [{"type": "text", "text": clean(block.text)}] if block.text else []
    parts += [_file(f) for f in block.files]
    yield Piece(_spelled(parts), "logged", block.entry.place)


def _file(block: Block) -> dict[str, Any]:
    kind = "image" if block.name.startswith("image/") else "document"
    data = block.text.partition(",")[2] if block.text.startswith("data:") else ""
    source = {"type": "base64", "media_type": block.name, "data": data} if data else {"type": "url", "url": block.text}
    title = (block.extra or {}).get("filename") if kind == "document" else None
    return {"type": kind, "source": source, **({"title": title} if title else {})}


def _text(block: Block) -> Piece:
    if block.learned is not None:
        return block.learned
    data = _string(clean(block.text))
    return Piece(data, "logged", block.entry.place) if block.is_logged else Piece(data)


def _string(text: str) -> bytes:
    return js_string(text).encode("utf-8", "surrogatepass")


def _spelled(value: Any) -> bytes:
    return js(value).encode("utf-8", "surrogatepass")
