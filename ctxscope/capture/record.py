r"""One record of a ``.ctxrec`` file: a line of JSON, as many raw bytes as it says, a line break.

``{"v":1,"t":"res","id":7,…,"n":512,"crc":3735928559}`` + 512 bytes as they are + ``\n``. ``n`` and ``crc`` come last;
``crc`` is the CRC-32 of the line before ``,"crc"`` followed by the payload, so that a record proves itself alone. Header
lines are plain ASCII and payloads verbatim: ``grep -a`` finds a text of a body, ``jq -R 'fromjson?'`` reads the headers.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO

from ctxscope.wire.json_text import loads

BEGINS = b'{"v":1,'
"""What every record begins with."""
_CRC = b',"crc":'
_MOST_HEAD = 4 * 1024 * 1024
"""A longer first line is none of a record: its longest part, the times of 10,000 chunks, takes 250 KB."""
_BLOCK = 1024 * 1024
_MOST_TRIED = 8
"""Times the file's size that payloads are read of lines which only look like a record's."""


@dataclass(frozen=True, slots=True)
class Record:
    """A whole record as it stands in a file."""

    kind: str
    fields: Mapping[str, Any]
    at: int
    """Offset of its first byte."""
    payload: int
    """Offset of its payload."""
    data: bytes
    """The payload."""

    @property
    def end(self) -> int:
        """Offset behind it."""
        return self.payload + len(self.data) + 1


@dataclass(frozen=True, slots=True)
class Damage:
    """Bytes between two records that are none."""

    at: int
    end: int


def spell(kind: str, fields: Mapping[str, Any], payload: bytes = b"") -> bytes:
    """The bytes of a record; ``fields`` without ``v``, ``t``, ``n`` and ``crc``."""
    text = json.dumps({"v": 1, "t": kind, **fields, "n": len(payload)}, separators=(",", ":"))
    head = text[:-1].encode("ascii")
    return b'%b,"crc":%d}\n%b\n' % (head, zlib.crc32(payload, zlib.crc32(head)), payload)


def records(file: BinaryIO, at: int, size: int) -> Iterator[Record | Damage]:
    """The records of a file of ``size`` bytes from an offset on.

    Behind damage it goes on with the next line that is a whole record. What the file ends in and is no record, torn or
    still being written, is left: the last of what was given ends before it.
    """
    while at < size:
        found = _read(file, _header(file, at, size))
        if found is None:
            found = _next(file, at, size)
            if found is None:
                return
            yield Damage(at, found.at)
        yield found
        at = found.end


def first(file: BinaryIO, size: int) -> Record | None:
    """The record a file begins with."""
    return _read(file, _header(file, 0, size))


@dataclass(frozen=True, slots=True)
class _Header:
    """A line that may be a record's."""

    fields: Mapping[str, Any]
    kind: str
    at: int
    payload: int
    length: int
    check: int
    """What was computed of the line."""
    crc: int
    """What must come out with the payload."""


def _header(file: BinaryIO, at: int, size: int) -> _Header | None:
    file.seek(at)
    if file.read(len(BEGINS)) != BEGINS:
        return None
    line = BEGINS + file.readline(_MOST_HEAD)
    head, mark, end = line.rpartition(_CRC)
    if not mark or not end.endswith(b"}\n"):
        return None
    try:
        fields, crc = loads(head + b"}"), int(end[:-2])
    except ValueError:
        return None
    length, kind, payload = fields.get("n"), fields.get("t"), at + len(line)
    # the line break behind the payload must be there; should it be damaged, nothing is lost
    if type(length) is not int or not 0 <= length < size - payload or not isinstance(kind, str):
        return None
    return _Header(fields, kind, at, payload, length, zlib.crc32(head), crc)


def _read(file: BinaryIO, header: _Header | None) -> Record | None:
    if header is None:
        return None
    file.seek(header.payload)
    data = file.read(header.length)
    if len(data) != header.length or zlib.crc32(data, header.check) != header.crc:
        return None
    return Record(header.kind, header.fields, header.at, header.payload, data)


def _next(file: BinaryIO, at: int, size: int) -> Record | None:
    """The first line after an offset that is a whole record; ``None`` also when too many only look like one."""
    mark, tried = b"\n" + BEGINS, 0
    while at < size:
        file.seek(at)
        block = file.read(min(_BLOCK, size - at))
        hit = block.find(mark)
        while hit >= 0:
            header = _header(file, at + hit + 1, size)
            tried += header.length if header else 0
            if tried > _MOST_TRIED * size:
                return None
            found = _read(file, header)
            if found is not None:
                return found
            hit = block.find(mark, hit + 1)
        if len(block) < len(mark):
            return None
        at += len(block) - len(mark) + 1
    return None
