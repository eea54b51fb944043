"""How many pages a PDF has, where its own bytes say it and nothing in them speaks against it (ISO 32000-1: 7.5.7, 7.7.3, Annex F).

Nothing is rendered and no reference is followed. A file that is encrypted, was saved again on top of an older one, or
contradicts itself has pages nobody told.
"""

from __future__ import annotations

import base64
import re
import zlib
from collections.abc import Iterator
from itertools import pairwise

_MOST_CHARACTERS = 80 * 1024 * 1024
"""Of base64: providers take files of 50 MB at most."""
_MOST_INFLATED = 32 * 1024 * 1024
"""Bytes of all object streams together."""
_LINEARIZED = re.compile(rb"<<[^>]*/Linearized\b[^>]*>>")
_LENGTH, _PAGES = re.compile(rb"/L\s+(\d{1,9})\b"), re.compile(rb"/N\s+(\d{1,9})\b")
_STREAM = re.compile(rb"\bstream\r?\n")
_FIRST, _PLACE = re.compile(rb"/First\s+(\d{1,9})\b"), re.compile(rb"\d{1,9}")
_PAGE, _TREE = re.compile(rb"/Type\s*/Page(?![A-Za-z])"), re.compile(rb"/Type\s*/Pages(?![A-Za-z])")
_COUNT = re.compile(rb"/Count\s+(\d{1,9})\b")


def pdf_pages(data: str) -> int | None:
    """Pages of a PDF given as base64; ``None`` for anything else, and where they cannot be told for sure."""
    if len(data) > _MOST_CHARACTERS:
        return None
    try:
        raw = base64.b64decode(data)
    except ValueError:
        return None
    if not raw.startswith(b"%PDF-") or b"/Encrypt" in raw:
        return None
    told = _linearized(raw)
    if told is not None:
        return told
    return _counted(raw) if raw.count(b"startxref") == 1 else None


def _linearized(raw: bytes) -> int | None:
    """What a file written for the web says at its beginning, which holds as long as nothing was added to it."""
    head = _LINEARIZED.search(raw, 0, 1024)
    length, pages = (found.search(head[0]) if head else None for found in (_LENGTH, _PAGES))
    return int(pages[1]) if length and pages and int(length[1]) == len(raw) else None


def _counted(raw: bytes) -> int | None:
    """Pages that are there, where the root of their tree says as many."""
    pages, counts = 0, []
    for item in _objects(raw):
        if _TREE.search(item):
            counts += [int(count) for count in _COUNT.findall(item)]
        elif _PAGE.search(item):
            pages += 1
    return pages if pages and max(counts, default=0) == pages else None


def _objects(raw: bytes) -> Iterator[bytes]:
    """The dictionaries of all objects, those inside object streams too; never the content of another stream."""
    left, at = _MOST_INFLATED, 0
    while (end := raw.find(b"endobj", at)) >= 0:
        parts = _STREAM.split(raw[at:end].partition(b"obj")[2], maxsplit=1)
        at = end + len(b"endobj")
        if len(parts) == 1 or b"/ObjStm" not in parts[0]:
            yield parts[0]
            continue
        held = _inflated(parts[1], left)
        left -= len(held)
        yield from _inside(parts[0], held)


def _inflated(stream: bytes, most: int) -> bytes:
    try:
        return zlib.decompressobj().decompress(stream, max(most, 1))
    except zlib.error:
        return b""


def _inside(about: bytes, held: bytes) -> Iterator[bytes]:
    """The objects of an object stream: numbers and places in pairs, then the objects."""
    first = _FIRST.search(about)
    start = int(first[1]) if first else len(held)
    places = [int(word) + start for word in held[:start].split()[1::2] if _PLACE.fullmatch(word)]
    for at, end in pairwise([*places, len(held)]):
        yield held[at:end]
