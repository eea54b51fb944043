"""What claude-tap keeps its records in: JSON lines, its SQLite store, or a portable bundle; repeated values stand apart.

The shapes, from claude-tap 0.1.146: a record may be wrapped (``__claude_tap_compact_record__`` beside ``record``), and
any value in it may be ``{"__claude_tap_blob_ref__": {hash, …}}``, which names one of the blobs: rows of ``record_blobs``
by session, or ``blobs`` of a bundle.
"""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ctxscope.capture.importers.imported import Damage, UnfitError
from ctxscope.capture.importers.json_lines import UNREADABLE, document, kind, objects
from ctxscope.model import CtxscopeError
from ctxscope.wire.json_text import loads

BUNDLE = "__claude_tap_compact_trace__"
MAGIC = b"SQLite format 3\0"
_WRAPPED = "__claude_tap_compact_record__"
_BLOB = "__claude_tap_blob_ref__"
_COMPANIONS = ("-wal", "-journal")
_ATTEMPTS, _PAUSE = 20, 0.05
"""How often a store that is being written is copied anew, and the seconds between."""
_DAMAGE = (sqlite3.Error, UnicodeError, OverflowError, MemoryError)
_RECORDS = "SELECT session_id, record_index, payload_json FROM records ORDER BY session_id, record_index"
_BLOBS = "SELECT session_id, hash, payload_json FROM record_blobs"

Blobs = Callable[[str], Any]
"""Gives a blob by its hash; raises ``KeyError``."""


@dataclass(frozen=True, slots=True)
class Stored:
    """One record as it is kept."""

    at: int | str
    """Where, for a person."""
    load: Callable[[], Mapping[str, Any]]
    """Reads it, blobs put back. Raises ``ValueError`` when it, or a blob it names, is not there."""


def lines(path: Path, damage: Damage) -> Iterator[Stored]:
    """The records of a file of JSON lines."""
    for line in objects(path, damage):
        yield Stored(line.number, lambda load=line.load: record(load(), _no_blobs))  # type: ignore[misc]


def bundle(path: Path, damage: Damage) -> Iterator[Stored]:
    """The records of a portable bundle."""
    try:
        value, _ = document(path)
    except ValueError:
        value = None
    records = value.get("records") if isinstance(value, dict) else None
    if not isinstance(records, list):
        raise CtxscopeError(f"{path}: found no list of records, expected a claude-tap bundle")
    kept = value.get("blobs")

    def blob(name: str) -> Any:
        return kept[name]["payload"]

    for number, each in enumerate(records, 1):
        if isinstance(each, dict):
            yield Stored(number, lambda each=each: record(each, blob if isinstance(kept, dict) else _no_blobs))  # type: ignore[misc]
        else:
            damage.add(number, kind(UNREADABLE if each is UNREADABLE else each))


def store(path: Path, damage: Damage) -> Iterator[Stored]:
    """The records of a SQLite store, session by session. It is read from a private copy: nothing of it is touched.

    Raises ``CtxscopeError`` when it is no such store, or is written to all the time.
    """
    try:
        with _copy(path.resolve()) as connection:
            names = {row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
            if "records" not in names:
                raise CtxscopeError(f"{path}: found a database without a table records, expected claude-tap's store")
            rows = list(_rows(connection, _RECORDS, damage))
            kept = list(_rows(connection, _BLOBS, damage)) if "record_blobs" in names else []
    except _DAMAGE as error:
        raise CtxscopeError(f"{path}: found no readable database ({error}), expected claude-tap's store") from error
    blobs = {(session, name): payload for session, name, payload in kept}
    for session, index, payload in rows:
        yield Stored(f"{index} of session {session}", _reader(session, payload, blobs))


def _rows(connection: sqlite3.Connection, query: str, damage: Damage) -> Iterator[Any]:
    """Rows up to the first that cannot be read."""
    number = 0
    try:
        for number, row in enumerate(connection.execute(query), 1):  # noqa: B007 - told where it ends
            yield row
    except _DAMAGE as error:
        damage.add(f"after row {number}", f"a damaged database ({error})")


def _reader(session: Any, payload: Any, blobs: Mapping[tuple[Any, Any], Any]) -> Callable[[], Mapping[str, Any]]:
    def load() -> Mapping[str, Any]:
        return record(loads(payload), lambda name: loads(blobs[session, name]))

    return load


@contextlib.contextmanager
def _copy(path: Path) -> Iterator[sqlite3.Connection]:
    """A connection to a copy of a database and of what SQLite keeps beside it, taken while nothing moved."""
    with tempfile.TemporaryDirectory(prefix="ctxscope-") as folder:
        copy = Path(folder) / "copy.db"
        for _ in range(_ATTEMPTS):
            before = _state(path)
            for suffix in ("", *_COMPANIONS):
                copy.with_name(copy.name + suffix).unlink(missing_ok=True)
                with contextlib.suppress(FileNotFoundError):
                    shutil.copyfile(path.with_name(path.name + suffix), copy.with_name(copy.name + suffix))
            if before == _state(path):
                break
            time.sleep(_PAUSE)
        else:
            raise CtxscopeError(f"{path}: found it changing all the time, expected a store that rests for a moment")
        with contextlib.closing(sqlite3.connect(copy)) as connection:
            connection.text_factory = lambda raw: raw.decode("utf-8", "surrogateescape")
            yield connection


def _state(path: Path) -> list[tuple[int, int] | None]:
    found: list[tuple[int, int] | None] = []
    for suffix in ("", *_COMPANIONS):
        try:
            status = path.with_name(path.name + suffix).stat()
            found.append((status.st_size, status.st_mtime_ns))
        except FileNotFoundError:
            found.append(None)
    return found


# --- blobs -----------------------------------------------------------------------------------------------------------


def record(value: Any, blobs: Blobs) -> Mapping[str, Any]:
    """A record with its blobs put back. Raises ``ValueError`` when it is none, or a blob is missing."""
    if isinstance(value, dict) and _WRAPPED in value:
        value = value.get("record")
        try:
            value = _filled(value, blobs)
        except (KeyError, TypeError):
            raise UnfitError("a record whose repeated values are missing") from None
        except RecursionError:
            raise UnfitError("a record that nests too deep") from None
    if not isinstance(value, dict):
        raise UnfitError(kind(value))
    return value


def _filled(value: Any, blobs: Blobs) -> Any:
    if isinstance(value, dict):
        named = value.get(_BLOB)
        if isinstance(named, dict) and len(value) == 1:
            return blobs(named["hash"])
        return {key: _filled(each, blobs) for key, each in value.items()}
    return [_filled(each, blobs) for each in value] if isinstance(value, list) else value


def _no_blobs(name: str) -> Any:
    raise KeyError(name)
