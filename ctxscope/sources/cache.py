"""Small values by hash, kept between launches in ctxscope's own cache folder; what it holds can be worked out again."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import weakref
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path

from ctxscope.resources import cache_folder

LIMIT = 200_000
"""Values in all, of counts about 30 MB of file; the oldest are dropped."""
LONGEST = 4_000
"""Bytes of a value; a longer one is not kept."""
_AT_ONCE = 500
"""Names in one query: the fewest that any SQLite takes is 999."""
_WAIT = 0.2
"""Seconds that another ctxscope may hold the file."""
_BROKEN = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_SCHEMA})
_MAKE = "CREATE TABLE IF NOT EXISTS kept (id INTEGER PRIMARY KEY, name BLOB NOT NULL UNIQUE, value BLOB NOT NULL)"


class Cache:
    """One SQLite file, folder 0700, file 0600. Never raises: one that cannot be used is as if nothing were kept.

    Several ctxscopes use one file. A damaged one is thrown away; one that another holds for long, or that cannot be
    written, is left alone from then on. Each value carries a checksum, since what is damaged may still be readable. Not
    for use by two threads at once.
    """

    def __init__(self, name: str, folder: Path | None = None, limit: int = LIMIT) -> None:
        """``name``: of the file. It is opened when first used, and made when there is something to keep."""
        self._name = name
        self._folder = folder
        self._limit = limit
        self._usable = True
        self._connection: sqlite3.Connection | None = None
        self._close: weakref.finalize[[], Cache] | None = None

    def load(self, names: Sequence[bytes]) -> dict[bytes, bytes]:
        """Those of some values that are kept."""
        found: dict[bytes, bytes] = {}
        if not self._usable:
            return found
        try:
            connection = self._opened()
            for at in range(0, len(names) if connection else 0, _AT_ONCE):
                assert connection is not None
                some = names[at : at + _AT_ONCE]
                marks = ",".join("?" * len(some))
                for name, value in connection.execute(f"SELECT name, value FROM kept WHERE name IN ({marks})", some):  # noqa: S608 - marks alone
                    if value[:4] == _checksum(name, value[4:]):
                        found[name] = value[4:]
        except (OSError, sqlite3.Error, TypeError) as error:
            self._give_up(error)
        return found

    def keep(self, values: Mapping[bytes, bytes]) -> None:
        """Add values."""
        rows = [(n, _checksum(n, v) + v) for n, v in values.items() if len(v) <= LONGEST]
        if not rows or not self._usable:
            return
        try:
            connection = self._opened(make=True)
            assert connection is not None
            with connection:
                connection.execute("BEGIN IMMEDIATE")
                connection.executemany("INSERT OR REPLACE INTO kept (name, value) VALUES (?, ?)", rows)
                self._drop_oldest(connection)
        except (OSError, sqlite3.Error, TypeError) as error:
            self._give_up(error)

    def close(self) -> None:
        """Give the file back; it is opened again when needed."""
        if self._close is not None:
            self._close()
        self._connection = self._close = None

    def _opened(self, *, make: bool = False) -> sqlite3.Connection | None:
        """The open file; ``None`` where there is none and none is to be made."""
        if self._connection is not None:
            return self._connection
        path = self._path()
        if make:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            path.parent.chmod(0o700)
            os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
        elif not path.exists():
            return None
        # Used by the one thread that holds the session's lock, whichever that is.
        connection = sqlite3.connect(path, timeout=_WAIT, isolation_level=None, check_same_thread=False)
        self._connection, self._close = connection, weakref.finalize(self, connection.close)
        connection.execute("PRAGMA synchronous=OFF")  # a power cut may cost the cache, nothing else
        connection.execute(_MAKE)
        return connection

    def _path(self) -> Path:
        return (self._folder if self._folder is not None else cache_folder()) / self._name

    def _drop_oldest(self, connection: sqlite3.Connection) -> None:
        first, last = connection.execute("SELECT (SELECT min(id) FROM kept), (SELECT max(id) FROM kept)").fetchone()
        if last - first >= self._limit:
            # A quarter more than must be, so that this is not done again at the very next one.
            connection.execute("DELETE FROM kept WHERE id <= ?", (last - self._limit * 3 // 4,))

    def _give_up(self, error: Exception) -> None:
        """Go on without; a damaged file makes room for a new one."""
        self.close()
        code = getattr(error, "sqlite_errorcode", None)
        if isinstance(error, TypeError) or (code is not None and code & 0xFF in _BROKEN):
            with contextlib.suppress(OSError):
                self._path().unlink()
                return
        self._usable = False


def _checksum(name: bytes, value: bytes) -> bytes:
    return zlib.crc32(name + value).to_bytes(4, "big")
