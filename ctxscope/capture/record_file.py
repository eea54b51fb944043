"""The file of a recording as its one writer holds it: locked, private, ending in a whole record whatever happened."""

from __future__ import annotations

import errno
import os
import stat
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from ctxscope.capture import SUFFIX, meta_record
from ctxscope.capture.record import FIRST, Record, records
from ctxscope.model import CtxscopeError

_FOLDER, _FILE = 0o700, 0o600
_ATTEMPTS, _PAUSE = 5, 0.05
"""Times the lock is tried, and seconds between: whoever asks whether a recording is being written holds it a moment."""


class RecordFile:
    """Appends records; what cannot be written whole is taken back.

    Raises ``CtxscopeError`` for what is no recording, which is left as it was, or one that another process writes, and
    ``OSError`` for one that cannot be opened or written.
    """

    def __init__(self, path: Path, *, sync: bool = False) -> None:
        self.path = path
        self.size = 0
        """Bytes of whole records."""
        self.dirty = False
        """Behind them stands a part of one that could not be taken away yet."""
        self._sync = sync
        self._file = _opened(path)
        try:
            _lock(self._file, path)
            self.last_number = 0
            """The highest number of an exchange that was there."""
            self.meta: Mapping[str, Any] | None = None
            """The fields of the last record that tells of the recording itself."""
            self._read()
            _make_private(self._file)
            if os.fstat(self._file).st_size > self.size:
                self._mend()
        except BaseException:
            os.close(self._file)
            raise

    def append(self, record: bytes) -> None:
        """Write a record behind the last; raises ``OSError`` with the file as it was before."""
        if os.fstat(self._file).st_nlink == 0:
            raise FileNotFoundError(errno.ENOENT, "the recording was removed", str(self.path))
        if self.dirty:
            self._mend()
        try:
            self._write(record)
        except OSError:
            self.dirty = True
            with suppress(OSError):
                self._mend()
            raise
        self.size += len(record)

    def close(self) -> None:
        """Give the file and its lock back; the part of a record that could not be taken away yet goes, if it can."""
        with suppress(OSError):
            if self.dirty:
                self._mend()
        os.close(self._file)

    def _write(self, record: bytes) -> None:
        """One call for the whole, as a rule: only a full disk or a signal makes it several."""
        left = memoryview(record)
        while left:
            written = os.write(self._file, left)
            left = left[written:]
        if self._sync:
            getattr(os, "fdatasync", os.fsync)(self._file)

    def _mend(self) -> None:
        os.ftruncate(self._file, self.size)
        self.dirty = False

    def _read(self) -> None:
        """What stands in the file; afterwards ``size`` is where its last whole record ends."""
        length = os.fstat(self._file).st_size
        with os.fdopen(os.dup(self._file), "rb") as file:
            for item in records(file, 0, length):
                self.size = item.end
                if isinstance(item, Record):
                    number = item.fields.get("id")
                    self.last_number = max(self.last_number, number if isinstance(number, int) else 0)
                    self.meta = item.fields if item.kind == meta_record.KIND else self.meta
            file.seek(0)
            begin = file.read(len(FIRST))
        damaged = self.size > 0 and self.path.suffix == SUFFIX
        if begin != FIRST[: len(begin)] and not damaged:
            raise CtxscopeError(f"{self.path}: found a file that is no recording; expected none, or a .ctxrec")


def _opened(path: Path) -> int:
    """The file, made with its folders where they are not there yet; nobody else may read those made here."""
    missing = [folder for folder in path.parents if not folder.exists()]
    for folder in reversed(missing):
        folder.mkdir(_FOLDER, exist_ok=True)
    # a pipe or a terminal is neither waited for nor taken over before it is refused
    wary = (getattr(os, name, 0) for name in ("O_CLOEXEC", "O_NONBLOCK", "O_NOCTTY"))
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | sum(wary), _FILE)
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        raise CtxscopeError(f"{path}: found no regular file; expected none, or a .ctxrec")
    return file


def _make_private(file: int) -> None:
    if hasattr(os, "fchmod"):
        with suppress(OSError):  # a file system without permissions
            os.fchmod(file, _FILE)


def _lock(file: int, path: Path) -> None:
    try:
        import fcntl  # noqa: PLC0415 - POSIX only
    except ImportError:
        return
    for left in reversed(range(_ATTEMPTS)):
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if left:
                time.sleep(_PAUSE)
        except OSError:  # a file system without locks
            return
        else:
            return
    raise CtxscopeError(f"{path}: another process is writing this recording; expected one writer a file")
