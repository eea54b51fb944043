"""Where the agent keeps its sessions: one database per home, many sessions in it (hermes.md §2)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ctxscope.model import Record, SessionRef, SourceSpec

_MAGIC = b"SQLite format 3\x00"
_TABLES = (b"system_prompts", b"api_content", b"CREATE TABLE messages", b"compression_locks")
_SURE, _LIKELY = 0.8, 0.3
_MUTABLE_ROW = ("active", "compacted", "api_content", "display_metadata")
_MUTABLE_SESSION = (
    "system_prompt",
    "system_prompt_hash",
    "model",
    "model_config",
    "ended_at",
    "end_reason",
    "billing_base_url",
    "billing_provider",
    "rewind_count",
    "parent_session_id",
    "title",
)


def discover(home: Path) -> Iterable[SessionRef]:
    """The databases below ``home``, one reference each with an empty id: ``container`` and ``members`` list its sessions.

    The default profile's and those of named profiles.
    """
    base = home / ".hermes"
    for database in (base / "state.db", *sorted(base.glob("profiles/*/state.db"))):
        if database.is_file():
            yield _container(database, home)


def refs(path: Path, home: Path) -> Iterable[SessionRef]:
    """The database at ``path`` as one reference with an empty id."""
    return [_container(path, home)]


def claims(path: Path, head: bytes) -> float:
    """How sure a file is a database of this agent: its magic, its name and its table texts."""
    if not head.startswith(_MAGIC):
        return 0.0
    if any(text in head for text in _TABLES[:2]) or all(text in head for text in _TABLES[2:]):
        return _SURE
    return _LIKELY if path.name == "state.db" else 0.0


def container(ref: SessionRef) -> SourceSpec:
    """The table that lists a database's sessions."""
    return _table("sessions", ref.paths[0], "sessions", "id", "started_at")


def members(ref: SessionRef, records: Iterable[Record]) -> list[SessionRef]:
    """The sessions a ``container``'s records list; the database is the first of each one's paths."""
    out: list[SessionRef] = []
    database = ref.paths[0]
    for record in records:
        row = record.value
        if row is None or isinstance(row, bytes):
            continue
        name = str(row.get("id"))
        times = [_number(row.get(k)) for k in ("last_activity_at", "ended_at", "started_at")]
        out.append(
            SessionRef(
                agent="hermes",
                id=name,
                paths=(
                    database,
                    _snapshot(database, name),
                    database.parent / "logs" / "agent.log",
                    database.parent / "config.yaml",
                ),
                home=ref.home,
                directory=_text(row.get("cwd")),
                updated=next((t for t in times if t is not None), None),
                title=_text(row.get("title")),
                parent=_text(row.get("parent_session_id")),
                started=_number(row.get("started_at")),
            )
        )
    return out


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) else None


def _text(value: Any) -> str | None:
    """A column that should hold text; ``None`` when it is empty or holds something else."""
    return value if isinstance(value, str) and value else None


def sources(ref: SessionRef) -> tuple[SourceSpec, ...]:
    """The tables and files that make one session.

    Messages are read before the session row: a prompt replaced after an answer then counts from the next call on.
    """
    if not ref.id:
        return (container(ref),)
    database, snapshot, telemetry, settings = _paths(ref)
    parent = [] if ref.parent is None else [_messages("parent_messages", database, ref.parent)]
    return (
        _table("schema", database, "schema_version", "version", "version", optional=True),
        SourceSpec("config", settings, "whole", 3, optional=True, kept=False),
        SourceSpec("snapshot", snapshot, "whole", 1, optional=True),
        *parent,
        _messages("messages", database, ref.id),
        replace(
            _table("session", database, "sessions", "id", "started_at"), where=("id", ref.id), mutable=_MUTABLE_SESSION
        ),
        _table("prompts", database, "system_prompts", "hash", "hash", optional=True),
        SourceSpec("agent_log", telemetry, "lines", 2, optional=True),
    )


def _table(key: str, database: Path, table: str, column: str, order: str, *, optional: bool = False) -> SourceSpec:
    return SourceSpec(key, database, "sqlite", table=table, key_column=column, order_by=order, optional=optional)


def _messages(key: str, database: Path, session: str) -> SourceSpec:
    table = _table(key, database, "messages", "id", "id")
    return replace(table, where=("session_id", session), mutable=_MUTABLE_ROW)


def _paths(ref: SessionRef) -> Sequence[Path]:
    """Database, snapshot, agent.log and settings; those a reference does not name stand beside its database."""
    base = ref.paths[0].parent
    default = (ref.paths[0], _snapshot(ref.paths[0], ref.id), base / "logs" / "agent.log", base / "config.yaml")
    return [*ref.paths, *default[len(ref.paths) :]]


def _snapshot(database: Path, session: str) -> Path:
    return database.parent / "sessions" / f"session_{session}.json"


def _container(database: Path, home: Path) -> SessionRef:
    stat = database.stat()
    return SessionRef("hermes", "", (database,), home, updated=stat.st_mtime, size=stat.st_size)
