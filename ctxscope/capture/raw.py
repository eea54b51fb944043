"""Raw folders: ``index.jsonl`` with a line an exchange, beside ``NNNN.req`` and ``NNNN.res`` with exact decoded bodies."""

from __future__ import annotations

import math
import os
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ctxscope.model import Exchange
from ctxscope.wire.json_text import loads

_FINGERPRINT = 1024
_LAST_SECOND = 253_402_300_799
"""End of the year 9999: what lies beyond is no time in seconds (milliseconds, mostly) and no date can be made of it."""
_MOST_NUMBER = 10**12
"""Numbers of exchanges name files."""
_LISTED = 12
"""Bad lines of one kind that a notice names one by one."""


@dataclass
class _Seen:
    line: dict[str, Any]
    sizes: tuple[int | None, int | None] = (None, None)
    """Bytes of request and reply when last delivered."""
    trouble: tuple[str, ...] = ()
    """Why its bodies could not be read then."""


@dataclass(eq=False)
class RawFolder:
    """A raw folder, read by number; a line may come before its bodies, and a reply may grow (DESIGN §5)."""

    path: Path
    number: int
    notices: tuple[str, ...] = ()
    partial: bool = False
    _offset: int = 0
    _head: bytes = b""
    """First bytes of the index as read: other bytes there mean another file, whatever its inode."""
    _seen: dict[int, _Seen] = field(default_factory=dict)
    _bad: dict[str, list[int]] = field(default_factory=dict)
    """By what was expected, the lines of the index that do not hold it."""
    _line: int = 0

    def poll(self) -> list[Exchange]:
        """Exchanges new or changed since the last poll. A half line at the end of the index waits."""
        trouble = self._read_index()
        found, waiting = [], []
        for n in sorted(self._seen):
            seen = self._seen[n]
            sizes = (_size(self._file(n, "req")), _size(self._file(n, "res")))
            if sizes[0] is None:
                waiting.append(f"{self.path.name}: exchange {n} has no {n:04d}.req")
            elif sizes != seen.sizes:
                seen.sizes, seen.trouble = sizes, self._unreadable(n, sizes)
                found.append(self._exchange(n, seen))
        unreadable = (words for n in sorted(self._seen) for words in self._seen[n].trouble)
        self.notices = (*trouble, *self._bad_lines(), *waiting, *unreadable)
        return found

    def _bad_lines(self) -> Iterator[str]:
        for expected, lines in self._bad.items():
            named = ", ".join(map(str, lines[:_LISTED]))
            more = f" and {len(lines) - _LISTED} more" if len(lines) > _LISTED else ""
            yield f"{self.path / 'index.jsonl'} line {named}{more}: not an exchange; expected {expected}"

    def _unreadable(self, n: int, sizes: tuple[int | None, int | None]) -> tuple[str, ...]:
        """What is said of bodies that are there and cannot be read; they count as empty."""
        told = []
        for kind, size in zip(("req", "res"), sizes, strict=True):
            try:
                if size is not None:
                    self._file(n, kind).open("rb").close()
            except OSError as error:
                told.append(f"{self._file(n, kind)}: cannot be read: {error.strerror}")
        return tuple(told)

    def _file(self, n: int, kind: str) -> Path:
        return self.path / f"{n:04d}.{kind}"

    def _read_index(self) -> tuple[str, ...]:
        """Take the lines that are new; says what kept the index from being read."""
        index = self.path / "index.jsonl"
        try:
            with index.open("rb") as file:
                head = file.read(_FINGERPRINT)
                if not head.startswith(self._head) or os.fstat(file.fileno()).st_size < self._offset:
                    self._offset, self._line, self._seen, self._bad = 0, 0, {}, {}
                self._head = head
                file.seek(self._offset)
                data = file.read()
        except OSError as error:
            return (f"{index}: cannot be read: {error.strerror}",)
        whole, newline, rest = data.rpartition(b"\n")
        self.partial = bool(rest)
        self._offset += len(whole) + len(newline)
        for line in whole.split(b"\n") if newline else ():
            self._line += 1
            if line.strip():
                self._take(line)
        return ()

    def _take(self, line: bytes) -> None:
        value, n, expected = _parsed(line)
        if expected:
            self._bad.setdefault(expected, []).append(self._line)
            return
        if n not in self._seen or self._seen[n].line != value:
            self._seen[n] = _Seen(value)

    def _exchange(self, n: int, seen: _Seen) -> Exchange:
        line = seen.line
        headers = line.get("headers")
        status = line.get("status")
        request_bytes, response_bytes = seen.sizes
        return Exchange(
            recording=self.number,
            n=n,
            time=_seconds(line["t"]) or 0.0,
            method=_text(line.get("method"), "POST"),
            path=_text(line.get("path"), ""),
            headers={str(k).lower(): str(v) for k, v in headers.items()} if isinstance(headers, dict) else {},
            request=_loader(self._file(n, "req")),
            response=_loader(self._file(n, "res")),
            request_bytes=request_bytes or 0,
            response_bytes=response_bytes,
            status=status if isinstance(status, int) and not isinstance(status, bool) else None,
            first_byte=_seconds(line.get("t_first")),
            end=_seconds(line.get("t_end")),
        )


_INDEX_HEAD = 65_536


def is_index(path: Path) -> bool:
    """Whether a file is the index of a raw folder; agents have files of that name too, so its first line decides."""
    try:
        with path.open("rb") as file:
            first, newline, _ = file.read(_INDEX_HEAD).partition(b"\n")
    except OSError:
        return False
    if not newline:
        return not first or first.startswith(b"{")
    try:
        value = loads(first)
    except ValueError:
        return False
    return isinstance(value, dict) and {"n", "t", "path"} <= value.keys()


def _parsed(line: bytes) -> tuple[dict[str, Any], int, str]:
    """A line of the index and its number, or what was expected of it instead."""
    try:
        value = loads(line)
    except ValueError:
        value = None
    if not isinstance(value, dict) or not {"n", "t"} <= value.keys():
        return {}, 0, "a JSON object with n, t, path"
    n = _whole(value["n"])
    if n is None:
        return {}, 0, "a whole number as n"
    if _seconds(value["t"]) is None:
        return {}, 0, "seconds since the epoch as t"
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


def _seconds(value: Any) -> float | None:
    """Seconds since the epoch that a date can be made of; ``None`` for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        seconds = float(value)
    except (ValueError, OverflowError):
        return None
    return seconds if math.isfinite(seconds) and 0 <= seconds <= _LAST_SECOND else None


def _text(value: Any, otherwise: str) -> str:
    return value if isinstance(value, str) else otherwise


def _size(path: Path) -> int | None:
    """Bytes of a file; ``None`` when it is not there, or is none."""
    try:
        status = path.stat()
    except (OSError, ValueError):
        return None
    return status.st_size if stat.S_ISREG(status.st_mode) else None


def _loader(path: Path) -> Callable[[], bytes]:
    def load() -> bytes:
        try:
            return path.read_bytes()
        except OSError:  # gone since, or never readable, which a notice says
            return b""

    return load
