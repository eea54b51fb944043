"""What an agent did in an overlay folder, brought to the folder it stands for.

An overlay (``view``) holds links to the originals. What is written through them needs nothing. What an agent put in
their place or beside them (a token written aside and renamed, a new session) is given to the original folder as the same
file: a hard link, so that what is still being written to it arrives too, and no moment passes in which either name is
missing. Across file systems it is copied instead, small files at once, others at the end.

Others write to the original meanwhile: the user, another run, a run after one that was killed. So a file there is written
over or removed only while it is the one that was last found or put there (``agreed``). Else theirs stays, the view
shows it, and what the agent wrote is set aside in ctxscope's own folder and told. It counts as written after theirs, as
it would have been without an overlay, where the view showed theirs when it was written.

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
Agreed = tuple[Mark | None, Mark | None]
"""What both folders held of a file when they last said the same: the view (``None``: a link), the original (nothing)."""
_NOTHING: Agreed = (None, None)


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
    agreed: dict[str, Agreed] = field(default_factory=dict)
    """By path in the folder; what is not in it the view never had from the original, nor gave it."""
    told: list[str] = field(default_factory=list)
    """What the user should know, a sentence each."""
    _copies: dict[str, Mark | None] = field(default_factory=dict)
    """Files that hold what is ours under another name."""
    _stamp: str = field(default_factory=lambda: f"{_now()}-{secrets.token_hex(2)}")

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

    def show(self, name: str) -> None:
        """Have the view hold a link to what the original has."""
        part = (self.view / name).with_name(f".{secrets.token_hex(4)}.link")
        part.symlink_to(self.original / name)
        part.replace(self.view / name)
        self.agreed[name] = (None, _mark(_look(self.original / name)))

    def unsettled(self) -> list[str]:
        """Files of the view, by path in it, that would be lost with it."""
        return [name for name in _walk(self.view) if name not in self.replaced and self._only_here(name)]

    def _only_here(self, name: str) -> bool:
        mine = os.lstat(self.view / name)
        if not stat.S_ISREG(mine.st_mode) or name.endswith(_REBUILT) or _same(mine, _look(self.original / name)):
            return False
        return self.agreed.get(name, _NOTHING)[0] != _mark(mine) and not self._is_a_copy(name, mine)

    def keep(self, name: str) -> Path:
        """Put a file of the view where it is found again. Raises ``OSError``."""
        self.kept.mkdir(parents=True, exist_ok=True, mode=0o700)
        plain = self.kept / f"{self._stamp}-{name.replace(os.sep, '-')}"
        place = next(p for p in _numbered(plain) if not os.path.lexists(p))
        mine = self.view / name
        if mine.stat().st_nlink == 1:  # an agent that has it open goes on writing to it
            with suppress(OSError):
                os.link(mine, place)
        if not place.exists():
            shutil.copy2(mine, place)
        place.chmod(0o600)
        return place

    # --- one file ---

    def _settle_one(self, name: str, last: bool) -> None:
        mine, theirs = os.lstat(self.view / name), _look(self.original / name)
        if self._is_settled(name, mine, theirs):
            return
        if not last and (name.endswith(_BESIDE) or _is_database(self.view / name, mine.st_size)):
            return
        if self._is_a_copy(name, mine):
            return
        if theirs is not None and self.agreed.get(name, _NOTHING)[0] == _mark(mine):
            self.show(name)  # what the agent wrote was there, and somebody wrote after it
        elif any(map(self._is_taken, together := self._belonging(name, mine))):
            for one in reversed(together):
                self._set_aside(one)
        else:
            self._give(name, mine, _mark(theirs), last)

    def _is_settled(self, name: str, mine: os.stat_result, theirs: os.stat_result | None) -> bool:
        """Whether both say the same, which is remembered, or it is nothing to bring over."""
        if stat.S_ISLNK(mine.st_mode):
            if (self.view / name).readlink() == self.original / name:
                self.agreed[name] = (None, _mark(theirs))
            return True
        if not stat.S_ISREG(mine.st_mode) or name.endswith(_REBUILT):
            return True
        now = (_mark(mine), _mark(theirs))
        if _same(mine, theirs):
            self.agreed[name] = now
        return now == self.agreed.get(name)  # or one is a copy of the other

    def _is_taken(self, name: str) -> bool:
        """Whether the original holds of a file what the agent could not know of when it wrote the view's."""
        mine, theirs = _look(self.view / name), _look(self.original / name)
        known = self.agreed.get(name)
        if mine is None or known is None:
            return theirs is not None
        if stat.S_ISLNK(mine.st_mode) or _mark(theirs) == known[1] or _same(mine, theirs):
            return False
        return known[0] is not None or theirs is None or mine.st_mtime_ns <= theirs.st_ctime_ns

    def _belonging(self, name: str, mine: os.stat_result) -> list[str]:
        """The file, and for a database or its journal those that go with it: one's journal beside another spoils both."""
        base = next((name.removesuffix(end) for end in _BESIDE if name.endswith(end)), name)
        if base == name and not _is_database(self.view / name, mine.st_size):
            return [name]
        return [base, *(f"{base}{end}" for end in _BESIDE)]

    def _is_a_copy(self, name: str, mine: os.stat_result) -> bool:
        """Whether it holds what is ours under another name, a backup that the agent made."""
        if self._copies.get(name) == _mark(mine):
            return True
        found = mine.st_size <= SMALL and bool(self.replaced) and digest(self.view / name) in self.replaced.values()
        if found:
            self._copies[name] = _mark(mine)
        return found

    def _give(self, name: str, mine: os.stat_result, seen: Mark | None, last: bool) -> None:
        """Have the original folder hold a file of the view, in place of what was ``seen`` there; or later."""
        place = self.original / name
        _make_folders(place.parent, (self.view / name).parent, self.original)
        part = place.with_name(f".{place.name}.{secrets.token_hex(4)}.part")
        try:
            try:
                os.link(self.view / name, part, follow_symlinks=False)
            except OSError:
                if not last and mine.st_size > SMALL:
                    return
                shutil.copy2(self.view / name, part, follow_symlinks=False)
            if _mark(_look(place)) == seen:
                given = _mark(os.lstat(part))
                part.replace(place)
                self.agreed[name] = (_mark(mine), given)
        finally:
            with suppress(FileNotFoundError):
                part.unlink()

    def _set_aside(self, name: str) -> None:
        """Keep what the agent wrote in a folder of ours, and have the view show what the original has."""
        mine, theirs = _look(self.view / name), _look(self.original / name)
        if mine is None or not stat.S_ISREG(mine.st_mode) or _same(mine, theirs):
            return
        if mine.st_size and not self._says_the_same(name, mine, theirs):
            what = "somebody else removed it" if theirs is None else "somebody else wrote it too"
            self._tell(f"{self.original / name}: {what}, and that stays; what the agent wrote is {self.keep(name)}")
        if theirs is not None or name in self.linked:
            self.show(name)
        else:
            (self.view / name).unlink()
            self.agreed.pop(name, None)

    def _says_the_same(self, name: str, mine: os.stat_result, theirs: os.stat_result | None) -> bool:
        if theirs is None or not stat.S_ISREG(theirs.st_mode) or not mine.st_size == theirs.st_size <= SMALL:
            return False
        return digest(self.view / name) == digest(self.original / name)

    # --- what was moved or removed ---

    def _follow_moves(self, names: Iterable[str]) -> None:
        """A link that now has another name: the agent renamed what it stands for (a log that is rotated)."""
        for name in names:
            before = self._moved_from(name)
            if before is not None:
                with suppress(OSError):
                    self._follow_move(before, name)

    def _moved_from(self, name: str) -> str | None:
        if not (self.view / name).is_symlink():
            return None
        target = (self.view / name).readlink()
        if not target.is_relative_to(self.original):
            return None
        before = str(target.relative_to(self.original))
        link = self.view / before
        still = before == name or (link.is_symlink() and link.readlink() == target)
        return before if before in self.agreed and not still else None

    def _follow_move(self, before: str, name: str) -> None:
        source, place = self.original / before, self.original / name
        known = self.agreed.pop(before, _NOTHING)[1]
        if not _is_still(known, _look(source)) or not _is_still(self.agreed.get(name, _NOTHING)[1], _look(place)):
            self._tell(
                f"{source}: the agent renamed it to {place.name}, but somebody else changed one of the two: both stay"
            )
        elif known is not None:
            source.replace(place)
            self.linked = {name if one == before else one for one in self.linked}
        self.show(name)

    def _follow_removals(self, last: bool) -> None:
        given = [name for name, (mine, _) in self.agreed.items() if mine is not None]
        for name in sorted(name for name in given if not os.path.lexists(self.view / name)):
            place, theirs = self.original / name, _look(self.original / name)
            _, known = self.agreed.pop(name)
            if theirs is not None and (_mark(theirs) == known or self._holds(theirs)):
                with suppress(OSError):
                    place.unlink()
            elif theirs is not None:
                self._tell(
                    f"{place}: the agent removed what it had made, but somebody else wrote it since: it is still there"
                )
        if last:
            for name in sorted(self.linked):
                if not os.path.lexists(self.view / name) and os.path.lexists(self.original / name):
                    self._tell(f"{self.original / name}: the agent removed it from the overlay only; it is still there")

    def _holds(self, theirs: os.stat_result) -> bool:
        """Whether the view has this very file under some name: then no other can have its inode."""
        return any(_same(theirs, _look(self.view / name)) for name in _walk(self.view))

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


def _numbered(path: Path) -> Iterator[Path]:
    yield path
    number = 2
    while True:
        yield path.with_name(f"{path.name}.{number}")
        number += 1


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H-%M-%S", time.gmtime())


def _look(path: Path) -> os.stat_result | None:
    try:
        return os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None


def _mark(status: os.stat_result | None) -> Mark | None:
    return None if status is None else (status.st_dev, status.st_ino, status.st_mtime_ns, status.st_size)


def _same(one: os.stat_result | None, two: os.stat_result | None) -> bool:
    return one is not None and two is not None and (one.st_dev, one.st_ino) == (two.st_dev, two.st_ino)


def _is_still(known: Mark | None, status: os.stat_result | None) -> bool:
    """Whether a name stands for the same file, whatever was written to it."""
    if known is None or status is None:
        return known is None and status is None
    return known[:2] == (status.st_dev, status.st_ino)


def _is_database(path: Path, size: int) -> bool:
    if size == 0:
        return path.suffix in _DATABASE
    with path.open("rb") as file:
        return file.read(len(_SQLITE)) == _SQLITE
