"""Where opencode keeps its sessions: one database for all of them, or one session exported as JSON (opencode.md §2)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from ctxscope.model import CtxscopeError, Record, SessionRef, SourceSpec
from ctxscope.wire.json_text import loads_leniently

DATABASES = "opencode*.db"
"""The stable channel's, and those of others (``opencode-dev.db``)."""
_MAGIC = b"SQLite format 3\x00"
_SESSION, _ROW = re.compile(rb"ses_[0-9a-f]{12}"), re.compile(rb"(?:evt|msg|prt)_[0-9a-f]{12}")
_EXPORT = re.compile(rb'\s*\{\s*"info"\s*:\s*\{')
_SURE, _BY_TEXT = 0.9, 0.8


def discover(home: Path) -> Iterator[SessionRef]:
    """The databases below ``home``, one reference each with an empty id: ``container`` and ``members`` list its sessions."""
    for path in sorted((home / ".local" / "share" / "opencode").glob(DATABASES)):
        if path.is_file():
            yield _database(path, home)


def claims(path: Path, head: bytes) -> float:
    """How surely a file is a database or an export of this agent: by its name or by the ids in it."""
    ids = _SESSION.search(head) is not None and _ROW.search(head) is not None
    if head.startswith(_MAGIC):
        return _SURE if path.match(DATABASES) else _BY_TEXT if ids else 0.0
    is_export = _EXPORT.match(head) is not None and b'"messages"' in head and b'"parts"' in head
    return _SURE if is_export and ids else 0.0


def refs(path: Path, home: Path) -> Iterator[SessionRef]:
    """A database as one reference with an empty id, or the session of an export; raises ``CtxscopeError`` for neither."""
    try:
        if _is_database(path):
            yield _database(path, home)
            return
        info = _object(_object_of(path.read_bytes()).get("info"))
    except OSError as error:
        raise CtxscopeError(f"{path}: cannot be read ({error.strerror}); an opencode database was expected") from None
    if not isinstance(info.get("id"), str):
        raise CtxscopeError(f"{path}: found neither a database nor an export of opencode")
    times, status = _object(info.get("time")), path.stat()
    ref = _ref(info["id"], path, home, info.get("directory"), info.get("title"), info.get("parentID"))
    yield replace(
        ref, updated=_seconds(times.get("updated")), started=_seconds(times.get("created")), size=status.st_size
    )


def container(ref: SessionRef) -> SourceSpec:
    """The table that lists a database's sessions."""
    return _table("session", ref.paths[0], "id")


def members(ref: SessionRef, records: Iterable[Record]) -> Iterator[SessionRef]:
    """The sessions that a ``container``'s records list; those of subagents name the session that started them."""
    for record in records:
        row = record.value
        if isinstance(row, Mapping) and isinstance(row.get("id"), str):
            found = _ref(
                row["id"], ref.paths[0], ref.home, row.get("directory"), row.get("title"), row.get("parent_id")
            )
            yield replace(found, updated=_seconds(row.get("time_updated")), started=_seconds(row.get("time_created")))


def sources(ref: SessionRef) -> tuple[SourceSpec, ...]:
    """The rows of one session: its messages, their parts, its own.

    Each change of a row moves its ``time_updated``.
    """
    path = ref.paths[0]
    if not ref.id:
        return (container(ref),)
    if not path.match(DATABASES) and path.is_file() and not _is_database(path):
        return (SourceSpec("export", path, "whole"),)
    own = ("session_id", ref.id)
    return (
        replace(_table("message", path, "time_created,id"), where=own, mutable=("time_updated",)),
        replace(_table("part", path, "id"), where=own, mutable=("time_updated",)),
        replace(_table("session", path, "id"), where=("id", ref.id)),
    )


def _is_database(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(len(_MAGIC)) == _MAGIC


def _table(name: str, path: Path, order: str) -> SourceSpec:
    return SourceSpec(name, path, "sqlite", table=name, key_column="id", order_by=order)


def _database(path: Path, home: Path) -> SessionRef:
    status = path.stat()
    return SessionRef("opencode", "", (path,), home, updated=status.st_mtime, size=status.st_size)


def _ref(name: str, path: Path, home: Path, directory: Any, title: Any, parent: Any) -> SessionRef:
    texts = [value if isinstance(value, str) and value else None for value in (directory, title, parent)]
    return SessionRef("opencode", name, (path,), home, directory=texts[0], title=texts[1], parent=texts[2])


def _seconds(value: Any) -> float | None:
    return value / 1000 if isinstance(value, int | float) and not isinstance(value, bool) else None


def _object_of(data: bytes) -> Mapping[str, Any]:
    try:
        return _object(loads_leniently(data))
    except ValueError:
        return {}


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}
