"""How omp spells text into a body: as ``JSON.stringify`` does, lone surrogates replaced (omp.md §4.5)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Literal

from ctxscope.agents.pi.texts import spelled
from ctxscope.model import Piece, Place
from ctxscope.wire.json_text import js_string

_SURROGATE = re.compile("[\ud800-\udfff]")
_TODAY = b"<system-reminder>\\nToday: "
_FOLDER = b"; current working directory: '"
_REST = b"'. Do not repeat this information in your reply.\\n</system-reminder>"


def whole(text: str) -> str:
    """A text with each lone surrogate as U+FFFD."""
    return text if text.isascii() else _SURROGATE.sub("\ufffd", text)


def quoted(text: str) -> bytes:
    """A text as a JSON string of the body."""
    return js_string(whole(text)).encode()


@dataclass(frozen=True, slots=True)
class Lead:
    """The reminder of date and folder that a user message is led by."""

    date: bytes
    """``2026-01-31``, the machine's local date."""
    provenance: Literal["derived", "learned", "echoed"]
    path: str
    folder: str
    folder_place: Place | None

    def pieces(self) -> list[Piece]:
        """Its text as the inside of a JSON string."""
        folder = quoted(self.folder.replace("\\", "/"))[1:-1]
        return [
            Piece(_TODAY),
            Piece(self.date, self.provenance, path="" if self.provenance == "derived" else self.path),
            Piece(_FOLDER),
            Piece(folder, "logged", self.folder_place) if self.folder_place else Piece(folder),
            Piece(_REST),
        ]


@dataclass(frozen=True, slots=True)
class Wire:
    """One message as it is sent."""

    role: str
    pieces: tuple[Piece, ...]
    mark: int = -1
    """Index of the piece that ends with the block a cache mark goes to; -1 for none."""
    text: Piece | None = None
    """The content where it is a string, which a mark makes a block."""
    own: bool = False
    """It is the user's own word."""

    @property
    def markable(self) -> bool:
        """Whether a cache mark can go to it."""
        return self.text is not None or self.mark >= 0

    def marked(self, cache: str) -> Wire:
        """The message with a cache mark (JSON text) on its last block."""
        note = b',"cache_control":' + cache.encode() + b"}"
        if self.text is not None:
            block = Piece(b'{"type":"text","text":' + self.text.data + note, self.text.provenance, self.text.place)
            head = b'{"role":%s,"content":[' % spelled(self.role)
            return Wire(self.role, (Piece(head), block, Piece(b"]}")))
        if self.mark < 0:
            return self
        old = self.pieces[self.mark]
        new = Piece(old.data[:-1] + note, old.provenance, old.place, old.path, old.external)
        return Wire(self.role, (*self.pieces[: self.mark], new, *self.pieces[self.mark + 1 :]))


def message(role: str, blocks: list[Piece | list[Piece]], *, key: bytes = b"content", last: int | None = None) -> Wire:
    """A message of blocks, each one piece or several; ``last`` is the block a mark would go to."""
    pieces = [Piece(b'{"role":%s,"%s":[' % (spelled(role), key))]
    mark = -1
    for i, block in enumerate(blocks):
        parts = [block] if isinstance(block, Piece) else list(block)
        if i:
            first = parts[0]
            parts[0] = Piece(b"," + first.data, first.provenance, first.place, first.path, first.external)
        pieces += parts
        if i == last:
            mark = len(pieces) - 1
    return Wire(role, (*pieces, Piece(b"]}")), mark)


def logged(data: bytes, place: Place | None, *, external: bool = False) -> Piece:
    """Bytes an entry holds, or, without a place, bytes that omp makes up."""
    return Piece(data, "logged", place, external=external) if place is not None else Piece(data)


def dumped(value: Any) -> bytes:
    """A parsed value as ``JSON.stringify`` writes it."""
    return spelled(value)
