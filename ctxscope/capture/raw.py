"""Raw folders: ``index.jsonl`` with a line an exchange, beside ``NNNN.req`` and ``NNNN.res`` with exact decoded bodies."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ctxscope.model import Exchange
from ctxscope.wire.json_text import loads

_FINGERPRINT = 1024


@dataclass
class _Seen:
    line: dict[str, Any]
    sizes: tuple[int | None, int | None] = (None, None)
    """Bytes of request and reply when last delivered."""


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
    _bad: list[str] = field(default_factory=list)
    _line: int = 0

    def poll(self) -> list[Exchange]:
        """Exchanges new or changed since the last poll. A half line at the end of the index waits."""
        self._read_index()
        found, waiting = [], []
        for n in sorted(self._seen):
            seen = self._seen[n]
            sizes = (_size(self._file(n, "req")), _size(self._file(n, "res")))
            if sizes[0] is None:
                waiting.append(n)
            elif sizes != seen.sizes:
                seen.sizes = sizes
                found.append(self._exchange(n, seen))
        self.notices = (*self._bad, *(f"{self.path.name}: exchange {n} has no {n:04d}.req" for n in waiting))
        return found

    def _file(self, n: int, kind: str) -> Path:
        return self.path / f"{n:04d}.{kind}"

    def _read_index(self) -> None:
        index = self.path / "index.jsonl"
        try:
            with index.open("rb") as file:
                head = file.read(_FINGERPRINT)
                if not head.startswith(self._head) or os.fstat(file.fileno()).st_size < self._offset:
                    self._offset, self._line, self._seen, self._bad = 0, 0, {}, []
                self._head = head
                file.seek(self._offset)
                data = file.read()
        except OSError as error:
            self.notices = (f"{index}: {error.strerror}",)
            return
        whole, newline, rest = data.rpartition(b"\n")
        self.partial = bool(rest)
        self._offset += len(whole) + len(newline)
        for line in whole.split(b"\n") if newline else ():
            self._line += 1
            if line.strip():
                self._take(line)

    def _take(self, line: bytes) -> None:
        try:
            value = loads(line)
            n = int(value["n"])
            float(value["t"])
        except (ValueError, KeyError, TypeError):
            self._bad.append(f"{self.path / 'index.jsonl'} line {self._line}: not an exchange; expected n, t, path")
            return
        sizes = self._seen[n].sizes if n in self._seen and self._seen[n].line == value else (None, None)
        self._seen[n] = _Seen(value, sizes)

    def _exchange(self, n: int, seen: _Seen) -> Exchange:
        line = seen.line
        headers = line.get("headers")
        status = line.get("status")
        request_bytes, response_bytes = seen.sizes
        return Exchange(
            recording=self.number,
            n=n,
            time=float(line["t"]),
            method=str(line.get("method", "POST")),
            path=str(line.get("path", "")),
            headers={str(k).lower(): str(v) for k, v in headers.items()} if isinstance(headers, dict) else {},
            request=_loader(self._file(n, "req")),
            response=_loader(self._file(n, "res")),
            request_bytes=request_bytes or 0,
            response_bytes=response_bytes,
            status=status if isinstance(status, int) else None,
            first_byte=_number(line.get("t_first")),
            end=_number(line.get("t_end")),
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


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _size(path: Path) -> int | None:
    try:
        return path.stat().st_size
    except OSError:
        return None


def _loader(path: Path) -> Callable[[], bytes]:
    def load() -> bytes:
        try:
            return path.read_bytes()
        except FileNotFoundError:
            return b""

    return load
