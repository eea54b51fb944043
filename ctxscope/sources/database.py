"""Reading a live SQLite file without writing, littering or delaying its writer: the ladder of engineering.md §4."""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
import stat
import struct
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote

from ctxscope.model import CtxscopeError
from ctxscope.sources.files import amount, look, missing, racy, signature, unreadable

try:
    import fcntl
except ImportError:  # Windows: a database with a -wal is copied there
    fcntl = None  # type: ignore[assignment]

T = TypeVar("T")

FIRST_RETRY = 0.02
BUSY_MS = 50
MAGIC = b"SQLite format 3\0"
SHARED_FIRST, SHARED_SIZE = 0x40000002, 510
"""The byte range that every connection to a database in WAL mode holds a shared lock on (sqlite.org, fileformat)."""
FLOCK = {
    "linux": ("hhqqi4x", ("type", "whence", "start", "len", "pid")),
    "darwin": ("qqihh", ("start", "len", "pid", "type", "whence")),
}
"""``struct flock`` by system: its layout on 64 bits and the order of its fields."""
EXPECTED = "a SQLite 3 database"
MOST_WORDS = 100
"""Characters of what SQLite says that are told."""

DAMAGE = (sqlite3.Error, UnicodeError, OverflowError, MemoryError)
"""What reading a damaged file raises: SQLite's own word, its word in bytes that are no text, and sizes that a damaged
byte made up."""

_READING = threading.Lock()
"""POSIX drops a process's locks on a file when any of its descriptors closes: one read at a time in this process."""


class DatabaseBusyError(Exception):
    """Rows cannot be had right now: a commit is under way or the file keeps changing."""


class _ChangedError(Exception):
    """The files moved while they were read; what was read is void."""


class _CopyError(Exception):
    """The database cannot be opened where it is without leaving something there."""


@dataclass(frozen=True, slots=True)
class FileState:
    """A database file and its companions at one moment; equal states hold equal rows unless ``settled`` is false."""

    database: tuple[int, int, int, int]
    header: bytes
    """Its first 28 bytes: magic, WAL or not, change counter."""
    wal: tuple[int, int, bytes] | None
    """Size, time of change, header with salts; ``None`` when absent or empty."""
    journal: tuple[int, int] | None
    """Size and time of change of a hot rollback journal."""
    shm: bool = field(compare=False)
    settled: bool = field(compare=False)

    @property
    def identity(self) -> tuple[int, int]:
        """Device and inode."""
        return self.database[:2]


class Database:
    """One SQLite file, read in short transactions; holds nothing between them."""

    patience = 1.0
    """Seconds a commit under way is waited for."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = Path(os.path.realpath(path))
        """SQLite puts its companions beside the file a link points to."""
        self._blocked: tuple[tuple[int, int], float] | None = None
        """The journal in the way, and since when (monotonic seconds)."""
        self._read: FileState | None = None
        """The state the last successful read was made of."""
        self.replaced = False
        """Whether the file being read, or read last, is another than the one before; known to the query."""

    @property
    def identity(self) -> tuple[int, int] | None:
        """Device and inode of the file last read."""
        return None if self._read is None else self._read.identity

    def unchanged(self) -> bool:
        """Whether the files are as the last read left them."""
        return self._read is not None and self._read.settled and self._state() == self._read

    def exists(self) -> bool:
        """Whether there is a file."""
        return look(self.path) is not None

    def read(self, query: Callable[[sqlite3.Connection], T], *, wait: bool = True) -> T:
        """``query`` on a connection inside one read transaction, run again when the files changed meanwhile.

        It must not keep anything of a run that was not returned. ``wait``: stand up to ``patience`` seconds of a busy
        file, then ``CtxscopeError``; else ``DatabaseBusyError`` after one retry. ``CtxscopeError`` also for what is no
        database, is damaged, or cannot be read.
        """
        pause, left = FIRST_RETRY, self.patience if wait else FIRST_RETRY
        while True:
            try:
                with _READING:
                    result = self._attempt(query)
            except (DatabaseBusyError, _ChangedError) as error:
                if left <= 0:
                    raise self._gave_up(error, wait=wait) from error
                time.sleep(min(pause, left))
                left -= pause
                pause *= 2
            except DAMAGE as error:
                raise CtxscopeError(
                    f"{self.path}: found unreadable rows ({told(error)}), expected {EXPECTED}"
                ) from error
            else:
                self._blocked = None
                return result

    def _gave_up(self, error: Exception, *, wait: bool) -> Exception:
        if not wait:
            return DatabaseBusyError(str(error))
        found = "it kept changing" if isinstance(error, _ChangedError) else "locked"
        return CtxscopeError(
            f"{self.path}: found {found} for {self.patience:g} s by another process, expected {EXPECTED}"
        )

    def _attempt(self, query: Callable[[sqlite3.Connection], T]) -> T:
        before = self._state()
        self.replaced = self._read is not None and self._read.identity != before.identity
        result = self._on_rung(before, query)
        self._read = before
        return result

    def _on_rung(self, before: FileState, query: Callable[[sqlite3.Connection], T]) -> T:
        if self._held_exclusively():
            raise DatabaseBusyError("another process has it for itself")
        if before.journal is not None:
            if not self._abandoned(before.journal):
                raise DatabaseBusyError("a commit is under way")
            return self._copied(before, query)
        if before.wal is None:
            return self._immutable(before, query)
        if before.shm and before.header[18:19] == b"\x02":
            with contextlib.suppress(_CopyError):
                return self._live(query)
        return self._copied(before, query)

    def _abandoned(self, journal: tuple[int, int]) -> bool:
        """Whether the journal stayed as it is for as long as we are ready to wait: its writer crashed or is stuck."""
        now = time.monotonic()
        if self._blocked is None or self._blocked[0] != journal:
            self._blocked = (journal, now)
        return now - self._blocked[1] >= self.patience * 0.9

    def _held_exclusively(self) -> bool:
        """Whether another process lets no reader in. Asks only: a lock of ours, however short, could fail a commit."""
        if fcntl is None or sys.platform not in FLOCK or sys.maxsize < 1 << 32:
            return False
        layout, order = FLOCK[sys.platform]
        asked = {"type": fcntl.F_RDLCK, "whence": os.SEEK_SET, "start": SHARED_FIRST, "len": SHARED_SIZE, "pid": 0}
        try:
            with self._file.open("rb") as file:
                answer = fcntl.fcntl(file, fcntl.F_GETLK, struct.pack(layout, *(asked[name] for name in order)))
        except OSError:
            return False
        found: int = struct.unpack(layout, answer)[order.index("type")]
        return found != fcntl.F_UNLCK

    # --- the three ways to open it ---

    def _immutable(self, before: FileState, query: Callable[[sqlite3.Connection], T]) -> T:
        """No -wal, no journal: takes no lock and makes no file, and is true only if nothing moved meanwhile."""
        try:
            with _connection(self._file, "mode=ro&immutable=1") as connection:
                result = query(connection)
        except DAMAGE:
            if self._state() != before:
                raise _ChangedError from None
            raise
        if self._state() != before:
            raise _ChangedError
        return result

    def _live(self, query: Callable[[sqlite3.Connection], T]) -> T:
        """A -wal and its -shm: as one more reader among the agent's own, for the time of one short transaction.

        With ``readonly_shm`` (SQLite 3.22; wal.c, walTryBeginRead) a reader sets no mark of its own in the -shm but
        holds one that is there, so that no byte of it changes; after a crash SQLite keeps the index of the -wal in memory.
        """
        with self._shared_lock():
            if not (_size(self._beside("-wal")) and self._beside("-shm").exists()):
                raise _ChangedError
            try:
                with _connection(self._file, "mode=ro&readonly_shm=1") as connection:
                    return query(connection)
            except sqlite3.OperationalError as error:
                code = primary_code(error)
                if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL):
                    raise DatabaseBusyError(str(error)) from error
                if code in (
                    sqlite3.SQLITE_READONLY,
                    sqlite3.SQLITE_CANTOPEN,
                    sqlite3.SQLITE_PERM,
                    sqlite3.SQLITE_IOERR,
                ):
                    raise _CopyError from error
                raise

    @contextlib.contextmanager
    def _shared_lock(self) -> Iterator[None]:
        """The lock any connection in WAL mode holds, taken before the companions are looked at.

        The agent's last connection deletes them under an exclusive lock; were they deleted between our look and our
        opening, SQLite would make new ones and leave them.
        """
        if fcntl is None:
            raise _CopyError
        with self._file.open("rb") as file:
            try:
                fcntl.lockf(file, fcntl.LOCK_SH | fcntl.LOCK_NB, SHARED_SIZE, SHARED_FIRST)
            except (BlockingIOError, PermissionError) as error:
                raise DatabaseBusyError("its last connection is closing") from error
            except OSError as error:
                raise _CopyError from error
            yield

    def _copied(self, before: FileState, query: Callable[[sqlite3.Connection], T]) -> T:
        """A private copy with its -wal or journal, never its -shm: recovers there what the agent's folder must not."""
        with tempfile.TemporaryDirectory(prefix="ctxscope-") as folder:
            copy = Path(folder) / "copy.db"
            try:
                shutil.copyfile(self._file, copy)
                for suffix, present in (("-wal", before.wal), ("-journal", before.journal)):
                    if present is not None:
                        shutil.copyfile(self._beside(suffix), copy.with_name(copy.name + suffix))
            except FileNotFoundError as error:
                raise _ChangedError from error
            except OSError as error:
                raise unreadable(self.path, error) from error
            if self._state() != before:
                raise _ChangedError
            with _connection(copy, "mode=rw") as connection:
                return query(connection)

    # --- what is on disk ---

    def _beside(self, suffix: str) -> Path:
        return self._file.with_name(self._file.name + suffix)

    def _state(self) -> FileState:
        status = look(self._file)
        if status is None:
            raise missing(self.path, EXPECTED)
        try:
            header = _head(self._file, 28)
            wal = _companion(self._beside("-wal"), 32)
            journal = _companion(self._beside("-journal"), 1)
        except FileNotFoundError as error:
            raise _ChangedError from error
        except OSError as error:
            raise unreadable(self.path, error) from error
        if header and not header.startswith(MAGIC):
            found = f"{amount(status.st_size)} of something that is not SQLite"
            raise CtxscopeError(f"{self.path}: found {found}, expected {EXPECTED}")
        # A first byte of zero is a journal done with, kept by journal_mode=PERSIST; TRUNCATE keeps an empty one.
        hot = None if journal is None or journal[2] == b"\0" else journal[:2]
        newest = max(status.st_mtime_ns, wal[1] if wal else 0)
        return FileState(signature(status), header, wal, hot, self._beside("-shm").exists(), not racy(newest))


def primary_code(error: BaseException) -> int | None:
    """SQLite's result code; ``None`` for what it did not raise itself."""
    code: int | None = getattr(error, "sqlite_errorcode", None)
    return None if code is None else code & 0xFF


def told(error: BaseException) -> str:
    """An error in words; SQLite's message on a schema quotes it, and when that is no text, the message cannot be had."""
    if isinstance(error, UnicodeError):
        return "its schema is no text"
    words = " ".join(str(error).split()) or type(error).__name__
    return words if len(words) <= MOST_WORDS else f"{words[:MOST_WORDS]}…"


def _companion(path: Path, length: int) -> tuple[int, int, bytes] | None:
    """Size, time of change and first bytes of a file; ``None`` when it is absent or empty."""
    try:
        status = path.stat()
        if not status.st_size or not stat.S_ISREG(status.st_mode):
            return None
        return (status.st_size, status.st_mtime_ns, _head(path, length))
    except FileNotFoundError:
        return None


def _head(path: Path, length: int) -> bytes:
    with path.open("rb", buffering=0) as file:
        return file.read(length)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


@contextlib.contextmanager
def _connection(path: Path, options: str) -> Iterator[sqlite3.Connection]:
    """A connection inside a read transaction, which ends as it closes; rows by name, text that is not UTF-8 kept by surrogate escapes."""
    uri = f"file:{quote(os.fsencode(path))}?{options}"
    connection = sqlite3.connect(uri, uri=True, timeout=BUSY_MS / 1000, isolation_level=None)
    with contextlib.closing(connection):
        connection.execute("PRAGMA query_only=1")
        connection.row_factory = sqlite3.Row
        connection.text_factory = lambda raw: raw.decode("utf-8", "surrogateescape")
        connection.execute("BEGIN")
        yield connection
