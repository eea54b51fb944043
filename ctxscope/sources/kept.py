"""Versions an agent's files no longer hold, kept in ctxscope's own data folder and found at the next opening."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ctxscope.model import Place, Record

LIMIT = 64 * 1000 * 1000
"""Bytes in all; the oldest are dropped."""

Observation = tuple[int, Record]
"""A record and the number it was observed under."""


def data_folder() -> Path:
    """Where ctxscope keeps what is its own: ``CTXSCOPE_DATA_DIR``, else the platform's place for user data."""
    chosen = os.environ.get("CTXSCOPE_DATA_DIR")
    if chosen:
        return Path(chosen)
    from platformdirs import user_data_dir  # noqa: PLC0415 - only when something is kept

    return Path(user_data_dir("ctxscope", appauthor=False))


class KeptVersions:
    """One file per session, a JSON line per observation; folder 0700, files 0600 (DESIGN law 3)."""

    def __init__(self, folder: Path | None = None, limit: int = LIMIT) -> None:
        self._folder = folder if folder is not None else data_folder() / "versions"
        self._limit = limit

    def keep(self, session_key: str, observations: Iterable[Observation]) -> None:
        """Add observations, in order, to what is kept for a session; ``OSError`` when the folder cannot be written."""
        lines = [line for seq, record in observations if len(line := _line(seq, record)) <= self._limit]
        if not lines:
            return
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._folder.chmod(0o700)
        path = self._path(session_key)
        _append(path, b"".join(lines))
        self._drop_oldest(path)

    def load(self, session_key: str) -> list[Observation]:
        """What is kept for a session, in order. Damaged lines and what two openings kept twice are left out."""
        try:
            lines = self._path(session_key).read_bytes().split(b"\n")
        except OSError:
            return []
        found: list[Observation] = []
        last: dict[tuple[str, str], Any] = {}
        for observation in filter(None, map(_observation, lines)):
            record = observation[1]
            unit = (record.source, record.key)
            if unit not in last or last[unit] != record.value:
                found.append(observation)
            last[unit] = record.value
        return found

    def _path(self, session_key: str) -> Path:
        name = hashlib.sha256(session_key.encode("utf-8", "surrogateescape")).hexdigest()[:32]
        return self._folder / f"{name}.jsonl"

    def _drop_oldest(self, current: Path) -> None:
        """Whole sessions, the one longest untouched first; of the current one its first lines."""
        others = sorted((path for path in self._folder.glob("*.jsonl") if path != current), key=_changed)
        total = current.stat().st_size + sum(map(_size, others))
        for path in others:
            if total <= self._limit:
                return
            total -= _size(path)
            path.unlink(missing_ok=True)
        if total > self._limit:
            content = current.read_bytes()
            # Half the bound, so that this is not done again at the very next append.
            start = content.find(b"\n", len(content) - self._limit // 2) + 1
            shorter = current.with_suffix(".tmp")
            shorter.unlink(missing_ok=True)
            _append(shorter, content[start:])
            shorter.replace(current)


def _append(path: Path, content: bytes) -> None:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        size = os.fstat(descriptor).st_size
        os.lseek(descriptor, max(0, size - 1), os.SEEK_SET)
        torn = size > 0 and os.read(descriptor, 1) != b"\n"
        left = memoryview((b"\n" if torn else b"") + content)
        while left:
            left = left[os.write(descriptor, left) :]
    finally:
        os.close(descriptor)


def _line(seq: int, record: Record) -> bytes:
    place = (record.place.log, record.place.at)
    row = {
        "seq": seq,
        "source": record.source,
        "key": record.key,
        "place": place,
        "version": record.version,
        "value": _plain(record.value),
    }
    return json.dumps(row, separators=(",", ":")).encode() + b"\n"


def _observation(line: bytes) -> Observation | None:
    with contextlib.suppress(ValueError, KeyError, TypeError):
        row = json.loads(line)
        log, at = row["place"]
        record = Record(row["source"], row["key"], Place(log, at), _value(row["value"]), row["version"])
        return (row["seq"], record)
    return None


def _plain(value: Any) -> Any:
    """A record's value as JSON can hold it: bytes and rows in an object that names them."""
    if isinstance(value, bytes):
        return {"bytes": base64.b64encode(value).decode()}
    if isinstance(value, Mapping):
        return {"row": {name: _plain(cell) for name, cell in value.items()}}
    return value


def _value(plain: Any) -> Any:
    if not isinstance(plain, dict):
        return plain
    if "bytes" in plain:
        return base64.b64decode(plain["bytes"], validate=True)
    return {name: _value(cell) for name, cell in plain["row"].items()}


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _changed(path: Path) -> int:
    return path.stat().st_mtime_ns if path.exists() else 0
