"""What an agent did in an overlay folder, brought to the folder it stands for.

An overlay (``view``) holds links to the originals. What is written through them needs nothing. What an agent put in
their place or beside them (a token written aside and renamed, a new session) is given to the original folder as the same
file: a hard link, so that what is still being written to it arrives too, and no moment passes in which either name is
missing. Across file systems it is copied instead, small files at once, others at the end.

Not brought over: empty folders (locks), sockets, and the removal of a file that was there before, which is told. A
database made during the run waits for the end, since its journal belongs beside it at every moment.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import shutil
import stat
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

SMALL = 1 << 20
"""Bytes of a file that is copied while the agent runs."""
_SQLITE = b"SQLite format 3\x00"
_BESIDE = ("-wal", "-journal")
_REBUILT = "-shm"
_DATABASE = frozenset({".db", ".sqlite", ".sqlite3"})

Mark = tuple[int, int, int, int]
"""A file as it was at some moment: device, inode, time of change, size."""


@dataclass(eq=False)
class Settling:
    """One overlay's folder, its original, and how far one has become the other."""

    view: Path
    original: Path
    kept: Path
    """Where a file goes that has no place in the original."""
    replaced: dict[str, str] = field(default_factory=dict)
    """Hash of each file that is ours and never goes back, by path in the folder."""
    linked: set[str] = field(default_factory=set)
    """What was there when the overlay was made."""
    made: set[str] = field(default_factory=set)
    """What came during the run and stands in both folders."""
    copied: dict[str, tuple[Mark, Mark]] = field(default_factory=dict)
    """What both files were when one was copied to the other."""
    told: list[str] = field(default_factory=list)
    """What the user should know, a sentence each."""

    def settle(self, last: bool = False) -> None:
        """Bring over what is new; ``last``: the agent has ended, so databases and big copies too."""
        names = list(_walk(self.view))
        self._follow_moves(names)
        for name in sorted(names, key=lambda n: (n.endswith(_BESIDE), n)):
            if name not in self.replaced:
                try:
                    self._settle_one(name, last)
                except FileNotFoundError:  # gone since
                    continue
                except OSError as error:
                    self._tell(f"{self.view / name}: cannot be brought to {self.original / name}: {error.strerror}")
        if self.view.is_dir():
            self._follow_removals(last)

    def unsettled(self) -> list[str]:
        """Files of the view, by path in it, that would be lost with it."""
        return [name for name in _walk(self.view) if name not in self.replaced and self._only_here(name)]

    def _only_here(self, name: str) -> bool:
        status = os.lstat(self.view / name)
        if not stat.S_ISREG(status.st_mode) or name.endswith(_REBUILT) or _same(status, _look(self.original / name)):
            return False
        if name in self.copied and self.copied[name][0] == _mark(status):
            return False
        return status.st_size > SMALL or digest(self.view / name) not in self.replaced.values()

    def keep(self, name: str) -> Path:
        """Put a file of the view where it is found again. Raises ``OSError``."""
        self.kept.mkdir(parents=True, exist_ok=True, mode=0o700)
        stamp = time.strftime("%Y-%m-%dT%H-%M-%S", time.gmtime())
        place = self.kept / f"{stamp}-{secrets.token_hex(2)}-{name.replace(os.sep, '-')}"
        shutil.copy2(self.view / name, place)
        place.chmod(0o600)
        return place

    def _settle_one(self, name: str, last: bool) -> None:
        mine, place = os.lstat(self.view / name), self.original / name
        if not stat.S_ISREG(mine.st_mode) or name.endswith(_REBUILT):
            return
        if not last and (name.endswith(_BESIDE) or _is_database(self.view / name, mine.st_size)):
            return
        if mine.st_size <= SMALL and self.replaced and digest(self.view / name) in self.replaced.values():
            return  # ours under another name, a backup that the agent made
        theirs = _look(place)
        if _same(mine, theirs):
            self.made.add(name)
            return
        if name in self.copied and self.copied[name][0] == _mark(mine):
            if theirs is not None and _mark(theirs) != self.copied[name][1]:
                self._link(name)  # somebody else wrote there since
            return
        if theirs is not None and theirs.st_mtime_ns > mine.st_ctime_ns:
            self._tell(f"{place}: newer than what the agent wrote, so it stays; the agent's is {self.keep(name)}")
            self._link(name)
            return
        if self._give(name, mine, last):
            self.made.add(name)

    def _give(self, name: str, mine: os.stat_result, last: bool) -> bool:
        """Have the original folder hold a file of the view; ``False``: later."""
        place = self.original / name
        _make_folders(place.parent, (self.view / name).parent, self.original)
        part = place.with_name(f".{place.name}.{secrets.token_hex(4)}.part")
        try:
            try:
                os.link(self.view / name, part, follow_symlinks=False)
            except OSError:
                if not last and mine.st_size > SMALL:
                    return False
                shutil.copy2(self.view / name, part, follow_symlinks=False)
                part.replace(place)
                self.copied[name] = (_mark(mine), _mark(os.lstat(place)))
                return True
            part.replace(place)
        finally:
            with suppress(FileNotFoundError):
                part.unlink()
        return True

    def _link(self, name: str) -> None:
        """Have the view show the original again."""
        part = (self.view / name).with_name(f".{secrets.token_hex(4)}.link")
        part.symlink_to(self.original / name)
        part.replace(self.view / name)
        self.copied.pop(name, None)

    # --- what was moved or removed ---

    def _follow_moves(self, names: Iterable[str]) -> None:
        """A link that now has another name: the agent renamed what it stands for (a log that is rotated)."""
        for name in names:
            if not (self.view / name).is_symlink():
                continue
            target = (self.view / name).readlink()
            if not target.is_relative_to(self.original):
                continue
            before = str(target.relative_to(self.original))
            link = self.view / before
            if before != name and not (link.is_symlink() and link.readlink() == target):
                with suppress(OSError):
                    target.replace(self.original / name)
                    self._link(name)
                    self.linked = {name if known == before else known for known in self.linked}

    def _follow_removals(self, last: bool) -> None:
        for name in sorted(self.made):
            if not os.path.lexists(self.view / name):
                with suppress(OSError):
                    (self.original / name).unlink()
                self.made.discard(name)
                self.copied.pop(name, None)
        if last:
            for name in sorted(self.linked):
                if not os.path.lexists(self.view / name) and os.path.lexists(self.original / name):
                    self._tell(f"{self.original / name}: the agent removed it from the overlay only; it is still there")

    def _tell(self, sentence: str) -> None:
        if sentence not in self.told:
            self.told.append(sentence)


def digest(path: Path) -> str:
    """What tells a file's content from another."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _walk(folder: Path, inside: str = "") -> Iterator[str]:
    """Files and links below a folder, by path in it; links are not followed."""
    with suppress(FileNotFoundError), os.scandir(folder) as entries:
        for entry in list(entries):
            name = f"{inside}{entry.name}"
            if entry.is_dir(follow_symlinks=False):
                yield from _walk(folder / entry.name, f"{name}{os.sep}")
            else:
                yield name


def _make_folders(place: Path, like: Path, top: Path) -> None:
    """A folder of the original with the modes that the view's has; nothing where it is there."""
    if not place.is_dir():
        if place != top:
            _make_folders(place.parent, like.parent, top)
        place.mkdir(parents=place == top, exist_ok=True, mode=stat.S_IMODE(like.stat().st_mode))


def _look(path: Path) -> os.stat_result | None:
    try:
        return os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None


def _mark(status: os.stat_result) -> Mark:
    return (status.st_dev, status.st_ino, status.st_mtime_ns, status.st_size)


def _same(mine: os.stat_result, theirs: os.stat_result | None) -> bool:
    return theirs is not None and (mine.st_dev, mine.st_ino) == (theirs.st_dev, theirs.st_ino)


def _is_database(path: Path, size: int) -> bool:
    if size == 0:
        return path.suffix in _DATABASE
    with path.open("rb") as file:
        return file.read(len(_SQLITE)) == _SQLITE
