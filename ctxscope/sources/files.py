"""Looking at a file an agent may not have written yet, and saying in one sentence what is wrong with it."""

from __future__ import annotations

import os
import stat
import time
from pathlib import Path

from ctxscope.model import CtxscopeError

RACY_NS = 50_000_000
"""A file changed less than this (ns) ago may change again without its time of change moving: clocks of file systems
tick every 4 to 10 ms (the kernel's timer)."""


def look(path: Path) -> os.stat_result | None:
    """The status of a regular file, ``None`` when there is none; ``CtxscopeError`` for anything else at that path."""
    try:
        status = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise unreadable(path, error) from error
    if not stat.S_ISREG(status.st_mode):
        kind = "a folder" if stat.S_ISDIR(status.st_mode) else "something that is not a file"
        raise CtxscopeError(f"{path}: found {kind}, expected a file")
    return status


def signature(status: os.stat_result) -> tuple[int, int, int, int]:
    """Device, inode, size, time of change: equal means unchanged, as far as ``racy`` does not object."""
    return (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)


def racy(mtime_ns: int) -> bool:
    """Whether a file that changed then may have changed again without showing it."""
    return mtime_ns > time.time_ns() - RACY_NS


def missing(path: Path, expected: str) -> CtxscopeError:
    """The error for a required file that is not there."""
    return CtxscopeError(f"{path}: found no such file, expected {expected}")


def unreadable(path: Path, error: OSError) -> CtxscopeError:
    """The error for a file the system will not give."""
    reason = error.strerror or type(error).__name__
    return CtxscopeError(f"{path}: cannot be read ({reason}), expected a readable file")


def amount(size: int) -> str:
    """A number of bytes for a sentence: ``12 B``, ``3 KB``, ``1 MB``."""
    for unit, scale in (("GB", 10**9), ("MB", 10**6), ("KB", 10**3)):
        if size >= scale:
            return f"{size / scale:.3g} {unit}"
    return f"{size} B"
