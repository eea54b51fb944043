"""A private folder that an agent takes for its own: links to everything in the original, but for a few files of ours.

It lives in ctxscope's data folder for one run (0700) and is settled every second and at the end (``settling``). If
ctxscope is killed, what the agent did is found in it, and settled by the next run; a lock tells that nobody owns it.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from ctxscope.cli.settling import Mark, Settling, digest
from ctxscope.model import CtxscopeError, Overlay

EVERY_SECONDS = 1.0
_MANIFEST, _LOCK, _VIEW = "manifest.json", "lock", "view"


@dataclass(eq=False)
class OverlayFolder:
    """An overlay on disk, owned by this process."""

    folder: Path
    settling: Settling
    lock: IO[bytes]
    _written: str = ""
    """The manifest as it was last written."""

    @classmethod
    def make(cls, overlay: Overlay, base: Path) -> OverlayFolder:
        """Lay an overlay below ``base``. Raises ``CtxscopeError`` when it cannot be."""
        folder = base / secrets.token_hex(8)
        try:
            base.mkdir(parents=True, exist_ok=True, mode=0o700)
            lock = _locked(folder)
            original = overlay.original.resolve()
            settling = Settling(folder / _VIEW, original, base / "kept")
            _lay(settling, overlay)
        except OSError as error:
            raise CtxscopeError(
                f"{error.filename or folder}: cannot be used for an overlay of {overlay.original}: {error.strerror}; "
                "expected a folder that can be read, and one that can be written"
            ) from error
        self = cls(folder, settling, lock)
        self._remember()
        return self

    @classmethod
    def left(cls, folder: Path, kept: Path) -> OverlayFolder | None:
        """One that a run left behind; ``None`` while its run goes on, or when it never came to be one."""
        try:
            lock = (folder / _LOCK).open("r+b")
        except OSError:
            return None
        try:
            _take(lock)
            if not (folder / _MANIFEST).exists():  # killed before anything was started in it
                shutil.rmtree(folder, ignore_errors=True)
            said: dict[str, Any] = json.loads((folder / _MANIFEST).read_bytes())
            settling = Settling(
                folder / _VIEW,
                Path(said["original"]),
                kept,
                dict(said["replaced"]),
                set(said["linked"]),
                {name: (_mark(mine), _mark(theirs)) for name, (mine, theirs) in said["agreed"].items()},
            )
        except (OSError, ValueError, KeyError, TypeError):
            lock.close()
            return None
        return cls(folder, settling, lock)

    @property
    def view(self) -> Path:
        """The folder to give to the agent."""
        return self.settling.view

    def settle(self) -> None:
        """Bring over what is new, as far as it can be while the agent runs."""
        self.settling.settle()
        self._remember()

    def close(self) -> list[str]:
        """Bring over all there is and remove the overlay; what the user should know, a sentence each."""
        settling = self.settling
        settling.settle(last=True)
        told = [*settling.told, *self._changed()]
        lost = settling.unsettled()
        if lost:
            self._remember()
            told.append(f"{self.view}: kept, since {', '.join(lost)} could not be brought to {settling.original}")
        else:
            shutil.rmtree(self.folder, ignore_errors=True)
        self.lock.close()
        return told

    def _changed(self) -> Iterator[str]:
        """Files of ours that the agent wrote: its version is kept, since the user's own must not get our settings."""
        for name, ours in self.settling.replaced.items():
            path = self.view / name
            with suppress(OSError):
                if path.is_file() and digest(path) != ours:
                    kept = self.settling.keep(name)
                    original = self.settling.original / name
                    yield f"the agent changed {name}, which was ours for this run: {original} is as it was, its version is {kept}"

    def _remember(self) -> None:
        settling = self.settling
        said = json.dumps(
            {
                "original": str(settling.original),
                "replaced": settling.replaced,
                "linked": sorted(settling.linked),
                "agreed": settling.agreed,
            }
        )
        if said != self._written:
            part = self.folder / f"{_MANIFEST}.part"
            with suppress(OSError):  # a full disk: what is done stays done, only a later run would not know
                part.write_text(said, encoding="utf-8")
                part.replace(self.folder / _MANIFEST)
                self._written = said


@contextmanager
def watched(overlay: OverlayFolder | None, told: Callable[[str], None]) -> Iterator[None]:
    """Settle an overlay every second while the agent runs, and close it at the end."""
    if overlay is None:
        yield
        return
    over = threading.Event()

    def settle() -> None:
        while not over.wait(EVERY_SECONDS):
            with suppress(OSError):
                overlay.settle()

    watcher = threading.Thread(target=settle, name="ctxscope-overlay", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join()
        for sentence in overlay.close():
            told(sentence)


def settle_left(base: Path) -> list[str]:
    """Settle and remove what runs that were killed left below ``base``; what the user should know, a sentence each."""
    told: list[str] = []
    with suppress(OSError):  # none was ever made
        for folder in sorted(base.iterdir()):
            overlay = OverlayFolder.left(folder, base / "kept")
            if overlay is not None:
                told += [f"from a run that was killed: {sentence}" for sentence in overlay.close()]
    return told


def _lay(settling: Settling, overlay: Overlay) -> None:
    """Fill a new view: our files, and a link for every other entry."""
    ours = {Path(name).as_posix(): data for name, data in overlay.files.items()}
    folders = {str(parent) for name in ours for parent in Path(name).parents}
    for inside in sorted(folders | {"."}):
        here = settling.view / inside
        here.mkdir(mode=0o700, parents=True, exist_ok=True)
        with suppress(FileNotFoundError), os.scandir(settling.original / inside) as entries:
            for entry in entries:
                name = (Path(inside) / entry.name).as_posix()
                if name not in ours and name not in folders:
                    settling.show(name)
                    settling.linked.add(name)
    for name, data in ours.items():
        path = settling.view / name
        path.touch(mode=0o600)
        path.write_bytes(data)
        settling.replaced[name] = digest(path)


def _mark(said: list[int] | None) -> Mark | None:
    """A file's mark out of a manifest."""
    if said is None:
        return None
    device, inode, changed, size = said
    return device, inode, changed, size


def _locked(folder: Path) -> IO[bytes]:
    """Make an overlay's folder with a lock in it that is ours before it can be seen there."""
    part = folder.with_name(f".{folder.name}.{_LOCK}")
    lock = part.open("xb")
    try:
        _take(lock)
        folder.mkdir(mode=0o700)
        part.rename(folder / _LOCK)
    except OSError:
        lock.close()
        part.unlink(missing_ok=True)
        raise
    return lock


def _take(lock: IO[bytes]) -> None:
    """Own an overlay for as long as the file is open. Raises ``OSError`` when another process does."""
    import fcntl  # noqa: PLC0415 - POSIX only

    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
