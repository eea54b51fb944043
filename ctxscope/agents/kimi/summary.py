"""The request for a summary: all but the last messages as texts, and behind them what is asked (kimi.md §5)."""

from __future__ import annotations

from collections.abc import Iterator

from ctxscope.agents.kimi.rows import parts, text_of
from ctxscope.model import Body, Learned, Piece, Point
from ctxscope.wire.blocks import listed, mapped, parsed
from ctxscope.wire.json_text import py

COMPACTS = "You are a helpful assistant that compacts conversation context."


def messages(point: Point, learned: Learned) -> tuple[Piece, ...]:
    """The messages as sent; the text that asks is left out where none was ever seen."""
    texts, path = list(_texts(point)), place(point)
    known = learned.values.get(path)
    if known is not None and known.data is not None:
        words, said = point.data["focus"]
        asks = Piece(b'{"type":"text","text":"'), Piece(known.data, known.provenance, path=path)
        texts.append((*asks, *([Piece(inside(words), "logged", said)] if words else ()), Piece(b'"}')))
    joined = [piece for text in texts for piece in (Piece(b","), *text)][1:]
    first = Piece(b'[{"role":"system","content":"%s"},{"role":"user","content":[' % COMPACTS.encode())
    return (first, *joined, Piece(b"]}]"))


def asked(point: Point, body: Body) -> bytes | None:
    """In what words a served request asks, but for the user's own, which events tell; ``None`` if it does not."""
    at = len(list(_texts(point)))
    found = listed(parsed(body.data).get("messages"))[1:2]
    content = listed(mapped(found[0]).get("content")) if found else []
    text = mapped(content[at]).get("text") if len(content) == at + 1 else None
    return inside(text.removesuffix(point.data["focus"].words)) if isinstance(text, str) else None


def place(point: Point) -> str:
    """Where it asks: behind all texts."""
    return f"/messages/1/content/{len(list(_texts(point)))}/text"


def inside(text: str) -> bytes:
    """A text as it stands between the quotes."""
    return py(text)[1:-1].encode("utf-8", "surrogatepass")


def _texts(point: Point) -> Iterator[tuple[Piece, ...]]:
    """The texts of all messages to be summarised, each message led by its number and role."""
    rows = [row for row in point.context if row.kind != "prompt"]
    for number, row in enumerate(rows, 1):
        yield (Piece(_text(f"## Message {number}\nRole: {row.kind}\nContent:\n")),)
        for part in parts(row.data.get("content")):
            if part.get("type") == "text":
                yield (Piece(_text(text_of(part)), "logged", row.place),)


def _text(text: str) -> bytes:
    return b'{"type":"text","text":"%s"}' % inside(text)
