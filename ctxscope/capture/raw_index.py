"""The index of a raw folder: a line an exchange, followed as it grows, and read anew once it is another."""

from __future__ import annotations

import hashlib
import math
import os
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from ctxscope.wire.json_text import loads

LISTED = 12
"""Lines or files of one kind that a notice names one by one."""
_RACY_NS = 50_000_000
"""What changed less than this (ns) ago may change again without its time of change moving: file systems' clocks tick
every 4 to 10 ms."""
_WINDOW = 1024
"""Bytes at the start, and before the offset, that tell an append from another index."""
_LAST_SECOND = 253_402_300_799
"""End of the year 9999: what lies beyond is no time in seconds (milliseconds, mostly) and no date can be made of it."""
_MOST_NUMBER = 10**12
"""Numbers of exchanges name files."""
_HEAD = 65_536


@dataclass(eq=False)
class Index:
    """``index.jsonl`` by offsets. Only the byte 0x0A ends a line; an object that is whole without it counts, too."""

    path: Path
    lines: dict[int, dict[str, Any]] = field(default_factory=dict)
    """By number of the exchange, the last line that names it."""
    restarts: int = 0
    """How often it was found to be another than the one read before."""
    rest: int = 0
    """Bytes behind the last line break that are no whole line."""
    _trouble: str | None = None
    _bad: dict[str, list[int]] = field(default_factory=dict)
    """By what was expected, the lines that do not hold it."""
    _count: int = 0
    """Lines read."""
    _offset: int = 0
    _seen: tuple[int, int, int] | None = None
    """Inode, size and time of change when last read."""
    _settled: bool = False
    _loose: bytes = b""
    """A line taken before its line break came; the offset is still before it."""
    _head: bytes = b""
    _tail: bytes = b""
    _hash: hashlib.blake2b = field(default_factory=hashlib.blake2b)
    """Over all that was read up to the offset."""

    def read(self) -> None:
        """Take the lines that are new; a few system calls when nothing changed."""
        try:
            with self.path.open("rb") as file:
                status = os.fstat(file.fileno())
                now = (status.st_ino, status.st_size, status.st_mtime_ns)
                if now != self._seen or not self._settled:
                    self._follow(file, status.st_size)
                self._seen, self._settled = now, not is_racy(status.st_mtime_ns)
        except OSError as error:
            self._trouble = f"{self.path}: cannot be read: {error.strerror}"
        else:
            self._trouble = None

    def notices(self) -> Iterator[str]:
        """What could not be read, a sentence for each kind."""
        if self._trouble is not None:
            yield self._trouble
        if self.rest:
            yield (
                f"{self.path}: found {self.rest} bytes after line {self._count} that do not end in a line break; "
                "expected a whole line, and what it names is left out"
            )
        for expected, lines in self._bad.items():
            yield f"{self.path} line {listed(lines)}: not an exchange; expected {expected}"

    def _follow(self, file: BinaryIO, size: int) -> None:
        if self._is_another(file, size):
            self.restarts += 1
            self.lines, self._bad = {}, {}
            self._count = self._offset = 0
            self._head = self._tail = self._loose = b""
            self._hash = hashlib.blake2b()
        file.seek(self._offset)
        whole, newline, rest = file.read().rpartition(b"\n")
        data = whole + newline
        self._offset += len(data)
        self._head = (self._head + data)[:_WINDOW] if len(self._head) < _WINDOW else self._head
        self._tail = (self._tail + data)[-_WINDOW:]
        self._hash.update(data)
        for line in whole.split(b"\n") if newline else ():
            self._count += 1
            if line.strip():
                self._take(line)
        self._loose = rest if rest.endswith(b"}") and not parsed(rest)[2] else b""
        self.rest = len(rest) - len(self._loose)
        if self._loose:
            self._take(rest)

    def _is_another(self, file: BinaryIO, size: int) -> bool:
        """Whether what was read is not what stands there now, perhaps with more behind it.

        Not noticed: a change outside both windows in the same poll as an append.
        """
        if size < self._offset + len(self._loose) or file.read(len(self._head)) != self._head:
            return True
        file.seek(self._offset - len(self._tail))
        end = self._tail + self._loose
        if file.read(len(end)) != end or (self._loose and file.read(1) not in (b"", b"\r", b"\n")):
            return True
        if self._seen is None or size > self._seen[1]:
            return False
        file.seek(0)
        return hashlib.blake2b(file.read(self._offset)).digest() != self._hash.digest()

    def _take(self, line: bytes) -> None:
        value, n, expected = parsed(line)
        if expected:
            self._bad.setdefault(expected, []).append(self._count)
        else:
            self.lines[n] = value


def is_index(path: Path) -> bool:
    """Whether a file is the index of a raw folder; agents have files of that name too, so its first lines decide.

    One line of an exchange is enough, since others may be damaged; an empty file, or the beginning of a first line, may
    become one.
    """
    try:
        with path.open("rb") as file:
            lines = file.read(_HEAD).split(b"\n")
    except OSError:
        return False
    if len(lines) == 1:
        return not lines[0] or lines[0].startswith(b"{")
    return any(map(_is_exchange, lines))


def _is_exchange(line: bytes) -> bool:
    try:
        value = loads(line) if line.startswith(b"{") else None
    except ValueError:
        return False
    return isinstance(value, dict) and {"n", "t", "path"} <= value.keys()


def is_racy(mtime_ns: int) -> bool:
    """Whether a file that changed then may have changed again without showing it."""
    return mtime_ns > time.time_ns() - _RACY_NS


def listed(things: Iterable[object]) -> str:
    """The first dozen of some things, and how many more there are."""
    words = [str(thing) for thing in things]
    more = f" and {len(words) - LISTED} more" if len(words) > LISTED else ""
    return ", ".join(words[:LISTED]) + more


def parsed(line: bytes) -> tuple[dict[str, Any], int, str]:
    """A line of the index and its number, or what was expected of it instead."""
    try:
        value = loads(line)
    except ValueError:
        value = None
    if not isinstance(value, dict) or "n" not in value:
        return {}, 0, "a JSON object with n, t, path"
    n = _whole(value["n"])
    if n is None:
        return {}, 0, "a whole number as n"
    if seconds(value.get("t")) is None:
        return {}, 0, "seconds since the epoch as t, which calls are put in order by"
    return value, n, ""


def _whole(value: Any) -> int | None:
    """A number that can name a file, also one written as ``3.0`` or ``"3"``; ``None`` for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        whole = int(value)
    except (ValueError, OverflowError):
        return None
    return whole if 0 <= whole < _MOST_NUMBER and (isinstance(value, str) or whole == value) else None


def seconds(value: Any) -> float | None:
    """Seconds since the epoch that a date can be made of; ``None`` for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        found = float(value)
    except (ValueError, OverflowError):
        return None
    return found if math.isfinite(found) and 0 <= found <= _LAST_SECOND else None
