"""Waking up when a watched file may have changed; whether it did is for its reader to say."""

from __future__ import annotations

import contextlib
import os
import stat
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path

DEBOUNCE_MS, STEP_MS = 50, 10
"""Measured in engineering.md §3: a wake-up about 16 ms after an append for 1 % of a core."""
SWEEP = 1.0
"""Seconds between looks at every file: network file systems tell nothing, and any event can be lost."""
COMPANIONS = ("", "-wal", "-journal")
"""What beside a file tells of changes to it; the last two are SQLite's."""

Look = tuple[tuple[int, int, int] | None, ...]


class _Rearm(threading.Event):
    """Set when other folders must be listened to.

    ``watchfiles`` asks for it at every step; the first time it does, it has begun to listen, and what happened until
    then is caught up with.
    """

    def __init__(self, begun: Callable[[], None]) -> None:
        super().__init__()
        self._begun: Callable[[], None] | None = begun

    def is_set(self) -> bool:
        """Whether to stop."""
        begun, self._begun = self._begun, None
        if begun is not None:
            begun()
        return super().is_set()


class Watcher:
    """Watches files and folders, existing or not yet.

    For a file its folder is watched (or, until that exists, the nearest one above); for a folder, what is directly in
    it. ``WATCHFILES_FORCE_POLLING`` is honoured. ``add``, ``wake`` and ``close`` may be called from any thread;
    ``wait`` from one.
    """

    def __init__(self, paths: Iterable[Path], sweep: float = SWEEP) -> None:
        self._condition = threading.Condition()
        self._sweep = sweep
        self._due = time.monotonic() + sweep
        """When every file is looked at next."""
        self._looks: dict[Path, Look] = {}
        self._stirred: set[Path] = set()
        self._woken = self._closed = False
        self._folders: frozenset[Path] = frozenset()
        """What the thread listens to now."""
        self._rearm = _Rearm(self._catch_up)
        self.add(paths)
        self._thread = threading.Thread(target=self._listen, name="ctxscope-watch", daemon=True)
        self._thread.start()

    def add(self, paths: Iterable[Path]) -> None:
        """Watch these too, from what they are now."""
        with self._condition:
            for path in paths:
                self._looks.setdefault(path, _look(path))
            self._rearm_if_moved()

    def wait(self, timeout: float) -> set[Path] | None:
        """The watched paths that changed, as soon as any did; empty after ``timeout`` seconds or ``wake``; ``None`` once closed."""
        end = time.monotonic() + timeout
        with self._condition:
            while not (self._closed or self._woken or self._stirred):
                self._condition.wait(max(0.0, min(end, self._due) - time.monotonic()))
                now = time.monotonic()
                if now >= self._due:
                    self._due = now + self._sweep
                    self._catch_up()
                if now >= end:
                    break
            stirred, self._stirred, self._woken = self._stirred, set(), False
            if self._closed:
                return None
            for path in stirred & self._looks.keys():
                # Before the caller reads: what is written while it does must wake it again.
                self._looks[path] = _look(path)
            return stirred

    def wake(self) -> None:
        """End the wait under way, or the next one, at once."""
        with self._condition:
            self._woken = True
            self._condition.notify_all()

    def close(self) -> None:
        """End every wait for good and stop listening."""
        with self._condition:
            self._closed = True
            self._rearm.set()
            self._condition.notify_all()
        self._thread.join()

    # --- the listening thread ---

    def _listen(self) -> None:
        from watchfiles import watch  # noqa: PLC0415 - a native library, loaded by those who watch

        while True:
            with self._condition:
                if self._closed:
                    return
                self._rearm = rearm = _Rearm(self._catch_up)
                self._folders = self._wanted()
                folders = sorted(self._folders)
            with contextlib.suppress(OSError):
                # A folder that went away meanwhile, or no inotify watches left: the sweep goes on without.
                for changes in watch(
                    *folders,
                    watch_filter=None,
                    debounce=DEBOUNCE_MS,
                    step=STEP_MS,
                    stop_event=rearm,
                    recursive=False,
                    ignore_permission_denied=True,
                ):
                    self._heard({Path(name) for _, name in changes})
            rearm.wait()

    def _heard(self, changed: set[Path]) -> None:
        with self._condition:
            for path in self._looks:
                real = _real(path)
                names = {real.with_name(real.name + suffix) for suffix in COMPANIONS}
                if names & changed or any(real == other.parent for other in changed):
                    self._stirred.add(path)
            self._rearm_if_moved()
            if self._stirred:
                self._condition.notify_all()

    def _catch_up(self) -> None:
        """Look at every file."""
        with self._condition:
            self._stirred |= {path for path, look in self._looks.items() if _look(path) != look}
            self._rearm_if_moved()
            if self._stirred:
                self._condition.notify_all()

    def _rearm_if_moved(self) -> None:
        if self._wanted() != self._folders:
            self._rearm.set()

    def _wanted(self) -> frozenset[Path]:
        return frozenset(_nearest_folder(_real(path)) for path in self._looks)


def _real(path: Path) -> Path:
    """The path as the system's events spell it."""
    return Path(os.path.realpath(path))


def _nearest_folder(path: Path) -> Path:
    """The path itself when it is a folder, else the nearest folder above it."""
    return next((folder for folder in (path, *path.parents) if folder.is_dir()), Path(path.anchor))


def _look(path: Path) -> Look:
    """Inode, size and time of change of a path and its companions, each ``None`` when absent.

    The size of a folder is its number of entries: two may come within one tick of its clock.
    """
    found: list[tuple[int, int, int] | None] = []
    for suffix in COMPANIONS:
        name = f"{path}{suffix}"
        try:
            status = os.stat(name)  # noqa: PTH116 - on every file every second: no Path built
            entries = os.listdir(name) if stat.S_ISDIR(status.st_mode) else None  # noqa: PTH208 - likewise
        except OSError:
            found.append(None)
        else:
            size = status.st_size if entries is None else len(entries)
            found.append((status.st_ino, size, status.st_mtime_ns))
    return tuple(found)
