"""How the DeepSeek Harness spells JSON (``JSON.stringify``), and the fixed texts its requests are told by (dsh.md §4)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from ctxscope.model import Piece, Place
from ctxscope.wire.json_text import js

COMPACTOR = "You are now acting as a compaction engine"
"""How the instruction begins that closes a compaction's request; the rest is a constant of that version."""
TITLER = "Generate the session title from this JSON array"
"""How the one message of a title request begins."""
NO_OUTPUT = "(no output)"
"""What Chat Completions are sent for a tool result without text."""


def spelled(value: Any) -> bytes:
    """A parsed value as ``JSON.stringify`` writes it; ``null`` for what nests too deep to be written."""
    try:
        return js(value).encode("utf-8", "surrogatepass")
    except RecursionError:
        return b"null"


def string(value: Any) -> str:
    """A field that should be a string, or nothing."""
    return value if isinstance(value, str) else ""


def whole(value: Any) -> int | None:
    """A field that should be a whole number; ``None`` for anything else."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def mapped(value: Any) -> Mapping[str, Any]:
    """A field that should be an object, or an empty one."""
    return value if isinstance(value, Mapping) else {}


def listed(value: Any) -> Sequence[Any]:
    """A field that should be an array, or an empty one."""
    return value if isinstance(value, list) else ()


def blocks(content: Any) -> list[Mapping[str, Any]]:
    """The blocks of a message's content."""
    return [b for b in listed(content) if isinstance(b, Mapping)]


def text_of(content: Any) -> str:
    """The texts of a content, one right behind the other."""
    return "".join(string(b.get("text")) for b in blocks(content) if b.get("type") == "text")


def logged(value: Any, place: Place | None) -> Piece:
    """A value that stands in the log as it does in the request."""
    return Piece(spelled(value), "logged", place)


def derived(data: bytes) -> Piece:
    """Punctuation, keys and constants of the version."""
    return Piece(data)


def members(fields: Iterable[tuple[str, bytes | Piece | Sequence[Piece]]]) -> tuple[Piece, ...]:
    """An object out of keys and values; bytes are constants, and run together with the keys around them."""
    out: list[Piece] = []
    lead = b"{"
    for key, value in fields:
        lead += spelled(key) + b":"
        if isinstance(value, bytes):
            lead += value + b","
            continue
        out += [derived(lead), *((value,) if isinstance(value, Piece) else value)]
        lead = b","
    return (*out, derived(lead[:-1] + b"}" if lead != b"{" else b"{}"))


@lru_cache(maxsize=256)
def _run(lead: bytes, data: bytes) -> Piece:
    return Piece(lead + data)


def led(lead: bytes, value: Sequence[Piece]) -> Sequence[Piece]:
    """A value with punctuation before it, which runs together with its own: requests consist of many such pieces."""
    first = value[0]
    if first.provenance != "derived":
        return (Piece(lead), *value)
    return (_run(lead, first.data), *value[1:])


def array(items: Iterable[Sequence[Piece]]) -> tuple[Piece, ...]:
    """An array of values that are pieces already."""
    out: list[Piece] = []
    for item in items:
        out += led(b"," if out else b"[", item)
    return (*out, derived(b"]" if out else b"[]"))
