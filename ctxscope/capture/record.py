r"""One record of a ``.ctxrec`` file: a line of JSON, as many raw bytes as it says, a line break.

``{"v":1,"t":"res","id":7,…,"n":512,"hcrc":907060870,"crc":3735928559}`` + 512 bytes as they are + ``\n``. The last three
come last: ``hcrc`` is the CRC-32 of the line before ``,"hcrc"``, ``crc`` goes on from it over the payload. So a record
proves itself alone, and its line does before the payload is read or is there. Header lines are plain ASCII and payloads
verbatim: ``grep -a`` finds a text of a body, ``jq -R 'fromjson?'`` reads the headers.
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
FIRST = BEGINS + b'"t":"meta",'
"""What a recording begins with."""
_PROOF, _CRC = b',"hcrc":', b',"crc":'
_MOST_HEAD = 4 * 1024 * 1024
"""A longer first line is none of a record: its longest part, the times of 10,000 chunks, takes 250 KB."""
_BLOCK = 128 * 1024
_MOST_TRIED = 8
"""Times the file's size that payloads are read which are not those their lines tell of."""


@dataclass(frozen=True, slots=True)
class Payload:
    """Where a record's bytes are, and what proves them."""

    at: int
    """Offset in the file."""
    length: int
    seed: int
    """CRC-32 of the line, as far as it counts."""
    crc: int
    """What comes out when that goes on over the bytes."""

    def read(self, file: BinaryIO) -> bytes | None:
        """The bytes; ``None`` when they are not those that were written."""
        file.seek(self.at)
        data = file.read(self.length)
        return data if len(data) == self.length and zlib.crc32(data, self.seed) == self.crc else None


@dataclass(frozen=True, slots=True)
class Header:
    """The line of a record, which is as it was written; whether its payload is, or is there, is another thing."""

    kind: str
    fields: Mapping[str, Any]
    at: int
    """Offset of its first byte."""
    payload: Payload

    @property
    def end(self) -> int:
        """Offset behind the record."""
        return self.payload.at + self.payload.length + 1


@dataclass(frozen=True, slots=True)
class Record(Header):
    """A whole record as it stands in a file."""

    data: bytes
    """The payload."""


@dataclass(frozen=True, slots=True)
class Damage:
    """Bytes between two records that are none."""

    at: int
    end: int


def spell(kind: str, fields: Mapping[str, Any], payload: bytes = b"") -> bytes:
    """The bytes of a record; ``fields`` without ``v``, ``t``, ``n``, ``hcrc`` and ``crc``."""
    text = json.dumps({"v": 1, "t": kind, **fields, "n": len(payload)}, separators=(",", ":"))
    head = text[:-1].encode("ascii")
    seed = zlib.crc32(head)
    return b'%b,"hcrc":%d,"crc":%d}\n%b\n' % (head, seed, zlib.crc32(payload, seed), payload)


def records(file: BinaryIO, at: int, size: int) -> Iterator[Record | Damage]:
    """The records of a file of ``size`` bytes from an offset on.

    What the file ends in and is no whole record, torn or still being written, is left: the last of what was given ends
    before it. Nothing in the payload of such a one is taken for a record, nor in that of one whose payload alone is
    damaged. Behind any other damage it goes on with the next line that is a record's.
    """
    tried = 0
    while at < size:
        header = _header(file, at)
        if header is not None and header.end > size:
            return
        data = header.payload.read(file) if header else None
        if header is not None and data is not None:
            yield _whole(header, data)
            at = header.end
            continue
        tried += header.payload.length if header else 0
        found = _resumed(file, at, size, header)
        if found is None or tried > _MOST_TRIED * size:
            return
        yield Damage(at, found)
        at = found


def headers(file: BinaryIO, size: int) -> Iterator[Header]:
    """The lines of all records whose payload is there, none of which is read: some may be damaged."""
    at: int | None = 0
    while at is not None and at < size:
        header = _header(file, at)
        if header is None:
            at = _next(file, at, size)
        elif header.end > size:
            return
        else:
            yield header
            at = header.end


def first(file: BinaryIO, size: int) -> Record | None:
    """The record a file begins with."""
    header = _header(file, 0)
    data = header.payload.read(file) if header is not None and header.end <= size else None
    return None if header is None or data is None else _whole(header, data)


def _whole(header: Header, data: bytes) -> Record:
    return Record(header.kind, header.fields, header.at, header.payload, data)


def _header(file: BinaryIO, at: int) -> Header | None:
    file.seek(at)
    if file.read(len(BEGINS)) != BEGINS:
        return None
    line = BEGINS + file.readline(_MOST_HEAD)
    head, mark, rest = line.rpartition(_PROOF)
    proof, between, crc = rest.partition(_CRC)
    if not mark or not between or not crc.endswith(b"}\n"):
        return None
    seed = zlib.crc32(head)
    try:
        if int(proof) != seed:
            return None
        fields, expected = loads(head + b"}"), int(crc[:-2])
    except ValueError:
        return None
    length, kind = fields.get("n"), fields.get("t")
    if type(length) is not int or length < 0 or not isinstance(kind, str):
        return None
    return Header(kind, fields, at, Payload(at + len(line), length, seed, expected))


def _resumed(file: BinaryIO, at: int, size: int, header: Header | None) -> int | None:
    """Where it goes on behind what is no whole record; ``None`` when nothing follows.

    A line that proves itself tells where the next begins, unless bytes of its payload are missing.
    """
    if header is not None:
        file.seek(header.end)
        behind = file.read(len(BEGINS))
        if behind == BEGINS[: len(behind)]:
            return header.end if behind else None
    return _next(file, at, size)


def _next(file: BinaryIO, at: int, size: int) -> int | None:
    """Where, after an offset, the next line of a record begins."""
    mark = b"\n" + BEGINS
    while at < size:
        file.seek(at)
        block = file.read(min(_BLOCK, size - at))
        hit = block.find(mark)
        while hit >= 0:
            if _header(file, at + hit + 1) is not None:
                return at + hit + 1
            hit = block.find(mark, hit + 1)
        if len(block) < len(mark):
            return None
        at += len(block) - len(mark) + 1
    return None
