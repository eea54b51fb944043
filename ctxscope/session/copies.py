"""Copies of a log or a recording: a link, a backup, a file saved under another name. They count once (DESIGN, "Sessions").

Two files are one where they are the same file on disk, or where the shorter is the beginning of the longer and both are
of one session. A recording is also what was imported from another. What was copied and then went on its own way is another, and so is a database that went on.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import BinaryIO

from ctxscope import capture
from ctxscope.agents.reading import files
from ctxscope.model import Exchange, SessionRef

_CHUNK = 1 << 20
_SQLITE = b"SQLite format 3\0"
_WAL = "-wal"
_INDEX = "index.jsonl"


@dataclass(eq=False, slots=True)
class Compared:
    """Which files were found to begin with which, so that of two that grow only what came is compared.

    Besides that, two windows of 64 KB, at the start and before what came. Not noticed, as when lines are read: a change
    outside both while the file grows, or within a tick of its clock. One that changed without growing is compared from
    its start.
    """

    _alike: dict[tuple[Path, Path], tuple[os.stat_result, os.stat_result]] = field(default_factory=dict)
    """By whole and part how both were."""

    def begins(self, whole: Path, part: Path) -> bool:
        """Whether a file begins with all of another. Raises ``OSError``."""
        if not (whole.is_file() and part.is_file()):
            return False
        before = self._alike.pop((whole, part), None)
        least, most = part.stat(), whole.stat()  # in this order: the whole may grow meanwhile
        if least.st_size > most.st_size:
            return False
        if before is not None and _grown(before[0], most) and _grown(before[1], least):
            seam = max(0, before[1].st_size - files.HEAD_BYTES)
            spans = [(0, min(seam, files.HEAD_BYTES)), (seam, least.st_size)]
        else:
            spans = [(0, least.st_size)]
        with whole.open("rb") as one, part.open("rb") as other:
            if not all(_alike(one, other, *span) for span in spans):
                return False
        self._alike[whole, part] = most, least
        return True


@dataclass(frozen=True, slots=True)
class Copy:
    """A log or a recording that is left out, since another holds all of it."""

    path: Path
    of: Path
    is_link: bool
    """Both names lead to one file."""
    _compared: Compared = field(default_factory=Compared, compare=False, repr=False)

    @property
    def notice(self) -> str:
        """What was left out, and for what, in words."""
        return f"{self.path}: {'another name' if self.is_link else 'a copy'} of {self.of}; what both hold counts once"

    @property
    def watched(self) -> Path:
        """The file that changes when it may have become another."""
        return _told_in(self.path)

    @property
    def lasts(self) -> bool:
        """Whether it still is nothing but a copy."""
        if self.of.is_dir() != self.path.is_dir():
            return holds_exchanges(self.of, self.path)
        held = holds_recording if self.path.is_dir() else holds
        return held(self.of, self.path, self._compared)

    @property
    def leads(self) -> bool:
        """Of a log that is no mere copy any more: whether it holds all of the other, and so stands for both."""
        return holds(self.path, self.of, self._compared)


def of_sessions(refs: Sequence[SessionRef]) -> tuple[list[SessionRef], list[Copy]]:
    """Sessions without those that another file of the same id holds too, in order, and each file left out for that."""
    groups: dict[tuple[str, str], list[SessionRef]] = {}
    for ref in refs:
        groups.setdefault((ref.agent, ref.id), []).append(ref)
    same = lru_cache(maxsize=None)(holds)  # of databases, asked for each of their sessions
    dropped: dict[int, Copy] = {}
    for group in groups.values():
        kept: list[SessionRef] = []
        for ref in sorted(group, key=lambda ref: (*_preference(ref.paths[0]), -(ref.size or 0))) if group[1:] else ():
            of = next((other for other in kept if _holds_session(other, ref, same)), None)
            if of is None:
                kept.append(ref)
            else:
                dropped[id(ref)] = Copy(ref.paths[0], of.paths[0], _is_one(of.paths[0], ref.paths[0]))
    return [ref for ref in refs if id(ref) not in dropped], list(dict.fromkeys(dropped.values()))


def of_known(
    refs: Iterable[SessionRef], known: Mapping[tuple[str, str], Sequence[SessionRef]]
) -> Iterator[Copy | None]:
    """For each session, what it is a copy of among others by agent and id, whichever of both holds more."""
    same = lru_cache(maxsize=None)(holds)
    for ref in refs:
        others = [other for other in known.get((ref.agent, ref.id), ()) if other.paths[0] != ref.paths[0]]
        found = (o for o in others if _holds_session(o, ref, same) or _holds_session(ref, o, same))
        of = next(found, None)
        yield None if of is None else Copy(ref.paths[0], of.paths[0], _is_one(of.paths[0], ref.paths[0]))


def of_recordings(paths: Sequence[Path]) -> tuple[list[Path], list[Copy]]:
    """Recordings without those that another holds too, in order, and each left out for that."""
    groups: dict[bytes, list[Path]] = {}
    for path in paths if paths[1:] else ():
        groups.setdefault(_first_line(_told_in(path)), []).append(path)
    dropped: dict[Path, Copy] = {}
    for group in groups.values():
        kept: list[Path] = []
        for path in sorted(group, key=lambda path: _preference(_told_in(path))) if group[1:] else ():
            of = next((other for other in kept if holds_recording(other, path)), None)
            if of is None:
                kept.append(path)
            else:
                dropped[path] = Copy(path, of, _is_one(of, path))
    dropped |= {copy.path: copy for copy in _of_imports([path for path in paths if path not in dropped])}
    return [path for path in paths if path not in dropped], list(dropped.values())


def _of_imports(paths: Sequence[Path]) -> Iterator[Copy]:
    """Imports of raw folders that are here too; of a folder, where more than that was imported with it."""
    folders = [path for path in paths if path.is_dir()]
    for path in paths if folders else ():
        if path.is_file() and capture.told(path).source:
            whole = next((folder for folder in folders if holds_exchanges(folder, path)), None)
            parts = [folder for folder in folders if whole is None and holds_exchanges(path, folder)]
            yield from (Copy(part, path, is_link=False) for part in parts)
            if whole is not None:
                yield Copy(path, whole, is_link=False)


def holds_exchanges(whole: Path, part: Path) -> bool:
    """Whether a recording has all exchanges of another, by the moment they came and the bytes that were sent; at least one."""
    heard = [capture.open_recording(path, 0).poll() for path in (whole, part)]
    for told in (_size_of, _request_of):  # bodies are read only where all else is alike
        all_of, some = (Counter((e.time, told(e)) for e in exchanges) for exchanges in heard)
        if not some or not some <= all_of:
            return False
    return True


def _size_of(exchange: Exchange) -> object:
    return exchange.request_bytes


def _request_of(exchange: Exchange) -> object:
    return sha256(exchange.request()).digest()


def holds(whole: Path, part: Path, compared: Compared | None = None) -> bool:
    """Whether a file begins with all of another that is not empty; of databases, whether both hold the very same.

    ``compared``: what is known of the files; of databases nothing is, since their pages change anywhere.
    """
    if _is_one(whole, part):
        return True
    try:
        begins = files.head(part) if part.is_file() else b""  # a pipe would wait for its writer
        if not begins.startswith(_SQLITE):
            return bool(begins) and (compared or Compared()).begins(whole, part)
        return _size(whole) == _size(part) and _begins(whole, part) and _same_wal(whole, part)
    except OSError:
        return False


def holds_recording(whole: Path, part: Path, compared: Compared | None = None) -> bool:
    """Whether a recording begins with all of another: with its exchanges, at least a line, and what is kept of each.

    ``compared``: what is known of their files.
    """
    begins = (compared or Compared()).begins
    if _is_one(whole, part):
        return True
    if whole.is_file() != part.is_file():
        return False
    try:
        if not _first_line(_told_in(part)) or not begins(_told_in(whole), _told_in(part)):
            return False
        return part.is_file() or all(begins(whole / name, part / name) for name in _bodies(part))
    except OSError:
        return False


def _holds_session(whole: SessionRef, part: SessionRef, same: Callable[[Path, Path], bool]) -> bool:
    one, other = whole.paths[0], part.paths[0]
    if _is_one(one, other):
        return True
    # Where nothing but the file's name is the id, two of one name may begin alike and be two sessions.
    is_told = part.id != other.stem or part.id.encode() in files.head(other)
    return same(one, other) and (is_told or _size(one) == _size(other))


def _preference(path: Path) -> tuple[int, bool, int, int, str]:
    """Sorts files that may hold the same: the longest first, then no link, the oldest, the one with the shortest name."""
    try:
        status = path.stat()
        real = path.resolve()
    except (OSError, RuntimeError):  # gone just now, or a loop of links
        return (0, True, 0, 0, str(path))
    return (-_size(path), real != path.absolute(), status.st_mtime_ns, len(str(path)), str(path))


def _begins(whole: Path, part: Path) -> bool:
    """Whether a file begins with all of another, of which nothing is known. Raises ``OSError``."""
    return Compared().begins(whole, part)


def _grown(before: os.stat_result, now: os.stat_result) -> bool:
    """Whether a file is as it was, or longer. One of the same length that changed was rewritten, a shorter one was too."""
    if (before.st_dev, before.st_ino) != (now.st_dev, now.st_ino) or now.st_size < before.st_size:
        return False
    return now.st_size > before.st_size or now.st_mtime_ns == before.st_mtime_ns


def _alike(one: BinaryIO, other: BinaryIO, start: int, end: int) -> bool:
    """Whether two files hold the same bytes from one offset to another, or to where both end."""
    one.seek(start)
    other.seek(start)
    while start < end:
        data = other.read(min(_CHUNK, end - start))
        if one.read(len(data)) != data:
            return False
        if not data:  # cut meanwhile, which the next look tells
            break
        start += len(data)
    return True


def _same_wal(one: Path, other: Path) -> bool:
    """Whether two databases of one size have the same beside them that is not in them yet."""
    sides = _beside(one, _WAL), _beside(other, _WAL)
    return _begins(*sides) if any(map(_size, sides)) else True


def _size(path: Path) -> int:
    """Bytes of a file; of a database, with those that are not in it yet. 0 where it is not there."""
    return sum(file.stat().st_size for file in (path, _beside(path, _WAL)) if file.is_file())


def _beside(path: Path, side: str) -> Path:
    return path.with_name(path.name + side)


def _told_in(recording: Path) -> Path:
    """The file that tells of a recording's exchanges."""
    return recording / _INDEX if recording.is_dir() else recording


def _first_line(path: Path) -> bytes:
    """The first line of a file with its line break; empty where that is not there, or not near."""
    try:
        line, newline, _ = files.head(path).partition(b"\n")
    except OSError:
        return b""
    return line + newline if newline else b""


def _bodies(recording: Path) -> list[str]:
    with os.scandir(recording) as items:
        return [item.name for item in items if item.name.endswith((".req", ".res"))]


def _is_one(one: Path, other: Path) -> bool:
    """Whether two names lead to one file or folder."""
    try:
        return one.samefile(other)
    except OSError:
        return False
