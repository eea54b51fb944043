"""Versions an agent's files no longer hold, kept in ctxscope's own data folder and found at the next opening."""

from __future__ import annotations

import base64
import contextlib
import errno
import hashlib
import json
import os
import zlib
from collections.abc import Collection, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from ctxscope.resources import data_folder
from ctxscope.sources.observed import Observation, Observations, spelled

LIMIT = 32 * 1000 * 1000
"""Bytes in all; the oldest are dropped."""
BATCH = 500
"""Observations to a line."""


class KeptVersions:
    """One file per session; folder 0700, files 0600 (DESIGN law 3).

    A line holds some observations, compressed, since one compaction rewrites every row alike. Several followers of a
    session add to one file; what they keep twice counts once.
    """

    def __init__(self, folder: Path | None = None, limit: int = LIMIT) -> None:
        self._folder = folder if folder is not None else data_folder() / "versions"
        self._limit = limit

    def keep(self, session_key: str, observations: Sequence[Observation]) -> None:
        """Add observations, in order, to what is kept for a session.

        ``OSError`` when the folder cannot be written, or when they alone are more than the bound.
        """
        lines, size = [], 0
        for line in _lines(spelled(observations)):
            lines.append(line)
            size += len(line)
            if size > self._limit:
                raise OSError(errno.EFBIG, os.strerror(errno.EFBIG))
        if not lines:
            return
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._folder.chmod(0o700)
        path = self._path(session_key)
        _append(path, b"".join(lines))
        self._drop_oldest(path)

    def load(self, session_key: str, passing: Collection[str] = ()) -> Observations:
        """What is kept for a session, in order; damaged lines are left out.

        Versions of the ``passing`` sources, which nobody keeps any more, are left out, and the file is written anew
        without them.
        """
        found, dropped = Observations(), False
        path = self._path(session_key)
        with contextlib.suppress(OSError), path.open("rb") as file:
            for line in file:
                items = _items(line)
                left = _without(passing, items)
                dropped |= len(left) < len(items)
                found.add(left)
        if dropped:
            with contextlib.suppress(OSError):
                lines = path.read_bytes().splitlines(keepends=True)
                _replace(path, b"".join(_lines(item for line in lines for item in _without(passing, _items(line)))))
        return found

    def _path(self, session_key: str) -> Path:
        name = hashlib.sha256(session_key.encode("utf-8", "surrogateescape")).hexdigest()[:32]
        return self._folder / f"{name}.kept"

    def _drop_oldest(self, current: Path) -> None:
        """Whole sessions, the one longest untouched first; of the current one its first lines."""
        others = sorted((path for path in self._folder.glob("*.kept") if path != current), key=_changed)
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
            _replace(current, content[start:])


def _replace(path: Path, content: bytes) -> None:
    shorter = path.with_suffix(".tmp")
    shorter.unlink(missing_ok=True)
    _append(shorter, content)
    shorter.replace(path)


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


def _items(line: bytes) -> list[Any]:
    """What a line holds; nothing of a damaged one."""
    with contextlib.suppress(ValueError, RecursionError, zlib.error):
        items = json.loads(zlib.decompress(base64.b64decode(line.rstrip(), validate=True)))
        return items if isinstance(items, list) else []
    return []


def _without(sources: Collection[str], items: list[Any]) -> list[Any]:
    """Items but for versions of these sources; that a unit of theirs was seen stays."""
    return [item for item in items if not (isinstance(item, dict) and str(item.get("source")) in sources)]


def _lines(items: Iterator[Any]) -> Iterator[bytes]:
    while batch := list(islice(items, BATCH)):
        data = json.dumps(batch, separators=(",", ":")).encode()
        yield base64.b64encode(zlib.compress(data)) + b"\n"


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _changed(path: Path) -> int:
    return path.stat().st_mtime_ns if path.exists() else 0
