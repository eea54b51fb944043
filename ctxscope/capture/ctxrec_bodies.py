"""Request bodies of a ``.ctxrec``, each a change of an earlier one, read back.

In order, a body is put together from the one before, at the speed of memory. Out of order, copies are followed down the
chain until they lead to bytes of the file or to a body at hand: no ancestor is built.
"""

from __future__ import annotations

import hashlib
import threading
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any, BinaryIO

from ctxscope.capture import encodings
from ctxscope.capture.delta import Piece
from ctxscope.capture.record import Header
from ctxscope.capture.record_fields import MalformedError, count, is_count, is_pair, text

_KEPT_BYTES = 32 * 1024 * 1024
"""Of the bodies at hand."""


class DamagedError(Exception):
    """What is asked for is not what was stored; the message says how, as the end of a sentence."""


@dataclass(frozen=True, slots=True)
class Encoded:
    """The bytes that were sent for a body."""

    encoding: str
    size: int
    sha256: str
    recipe: str
    """How they are made again; empty: they stand at ``at``."""
    begins: bytes
    at: int


@dataclass(frozen=True, slots=True, eq=False)
class StoredBody:
    """Where the bytes of a body are."""

    size: int
    sha256: str
    parent: int | None
    pieces: tuple[Piece, ...]
    starts: tuple[int, ...]
    """Offset of each piece in the body."""
    literals: tuple[int, ...]
    """Offset of each piece in the file, were it a literal."""
    encoded: Encoded | None = None


def stored_body(record: Header) -> StoredBody:
    """The body of a ``req`` or ``ws`` record; raises ``MalformedError``."""
    fields = record.fields
    size, sha256 = count(fields, "len"), text(fields, "sha256")
    parent = count(fields, "par") if "par" in fields else None
    pieces = tuple(_pieces(fields.get("body")))
    lengths = [piece[1] if isinstance(piece, tuple) else piece for piece in pieces]
    new = [0 if isinstance(piece, tuple) else piece for piece in pieces]
    encoded = _encoded(fields["enc"], record.payload.at + sum(new)) if "enc" in fields else None
    behind = encoded.size if encoded and not encoded.recipe else 0
    if sum(lengths) != size or sum(new) + behind != record.payload.length or (parent is None and sum(new) != size):
        raise MalformedError("body")
    starts = tuple(accumulate(lengths, initial=0))[:-1]
    places = tuple(accumulate(new, initial=record.payload.at))[:-1]
    return StoredBody(size, sha256, parent, pieces, starts, places, encoded)


def _pieces(value: Any) -> Iterator[Piece]:
    if not isinstance(value, list):
        raise MalformedError("body")
    for piece in value:
        if is_count(piece):
            yield piece
        elif is_pair(piece) and all(map(is_count, piece)):
            yield (piece[0], piece[1])
        else:
            raise MalformedError("body")


def _encoded(value: Any, at: int) -> Encoded:
    if not isinstance(value, dict):
        raise MalformedError("enc")
    try:
        begins = bytes.fromhex(text(value, "begins"))
    except ValueError:
        raise MalformedError("enc") from None
    return Encoded(text(value, "ce"), count(value, "len"), text(value, "sha256"), text(value, "by"), begins, at)


class Bodies:
    """All bodies of one recording, by number of the exchange; safe to ask from several threads."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._stored: dict[int, StoredBody] = {}
        self._kept: OrderedDict[int, bytes] = OrderedDict()
        self._sound: set[int] = set()
        """Bodies whose bytes were once found to be those of their hash: what is stored of them never changes."""
        self._bytes = 0
        self._lock = threading.Lock()

    def __contains__(self, n: int) -> bool:
        return n in self._stored

    def __getitem__(self, n: int) -> StoredBody:
        return self._stored[n]

    def add(self, n: int, body: StoredBody) -> None:
        """Take a body whose parent, if it has one, is here; raises ``MalformedError`` when it copies what that one lacks."""
        if body.parent is not None:
            most = self._stored[body.parent].size
            if any(isinstance(piece, tuple) and piece[0] + piece[1] > most for piece in body.pieces):
                raise MalformedError("body")
        self._stored[n] = body

    def body(self, n: int) -> bytes:
        """A body; raises ``DamagedError`` when it is not the one that was stored, ``OSError`` when it cannot be read."""
        with self._lock:
            found = self._kept.get(n)
            if found is not None:
                self._kept.move_to_end(n)
                return found
            with self._path.open("rb") as file:
                found = self._built(n, file)
            if n not in self._sound:
                if hashlib.sha256(found).hexdigest() != self._stored[n].sha256:
                    raise DamagedError("its bytes are not those its hash was made of")
                self._sound.add(n)
            self._keep(n, found)
            return found

    def as_sent(self, n: int) -> bytes:
        """The bytes that crossed the wire, encoded as they were; raises as ``body`` does."""
        encoded = self._stored[n].encoded
        if encoded is None:
            return self.body(n)
        if encoded.recipe:
            found = encodings.encode(self.body(n), encoded.recipe, encoded.begins)
        else:
            with self._path.open("rb") as file:
                file.seek(encoded.at)
                found = file.read(encoded.size)
        if hashlib.sha256(found).hexdigest() != encoded.sha256:
            how = f"{encoded.recipe} makes other bytes here" if encoded.recipe else "its encoded bytes are damaged"
            raise DamagedError(how)
        return found

    def _keep(self, n: int, body: bytes) -> None:
        self._kept[n] = body
        self._bytes += len(body)
        while self._bytes > _KEPT_BYTES and len(self._kept) > 1:
            self._bytes -= len(self._kept.popitem(last=False)[1])

    def _built(self, n: int, file: BinaryIO) -> bytes:
        stored = self._stored[n]
        parent = self._kept.get(stored.parent) if stored.parent is not None else None
        if parent is None and stored.parent is not None:
            return self._followed(n, file)
        view, parts = memoryview(parent or b""), list[bytes | memoryview]()
        for piece, place in zip(stored.pieces, stored.literals, strict=True):
            if isinstance(piece, tuple):
                parts.append(view[piece[0] : piece[0] + piece[1]])
            else:
                file.seek(place)
                parts.append(file.read(piece))
        return b"".join(parts)

    def _followed(self, n: int, file: BinaryIO) -> bytes:
        """A body out of the literals of all it builds on."""
        stored: StoredBody | None = self._stored[n]
        assert stored is not None
        found = bytearray(stored.size)
        places: list[tuple[int, int, int]] = []
        """Offset in the file, in the body, and length."""
        ranges = [(0, 0, stored.size)]
        """Offset in the ancestor, in the body, and length."""
        while ranges and stored is not None:
            ranges = _resolved(stored, ranges, places)
            ancestor = stored.parent
            kept = self._kept.get(ancestor) if ancestor is not None else None
            if kept is not None:
                for start, target, length in ranges:
                    found[target : target + length] = memoryview(kept)[start : start + length]
                break
            stored = self._stored[ancestor] if ancestor is not None else None
        for place, target, length in sorted(places):
            file.seek(place)
            found[target : target + length] = file.read(length)
        return bytes(found)


def _resolved(
    stored: StoredBody, ranges: Sequence[tuple[int, int, int]], places: list[tuple[int, int, int]]
) -> list[tuple[int, int, int]]:
    """Ranges of a body as ranges of its parent; what is literal goes to ``places``."""
    above: list[tuple[int, int, int]] = []
    for first, target, length in ranges:
        start, end = first, first + length
        index = bisect_right(stored.starts, start) - 1
        while start < end:
            piece, begin = stored.pieces[index], stored.starts[index]
            size = piece[1] if isinstance(piece, tuple) else piece
            skip = start - begin
            take = min(size - skip, end - start)
            where = target + start - first
            if isinstance(piece, tuple):
                above.append((piece[0] + skip, where, take))
            elif take:
                places.append((stored.literals[index] + skip, where, take))
            start += take
            index += 1
    return above
