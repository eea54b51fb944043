"""Records of the agent's files as entries, and the entries a question needs found again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ctxscope.agents import Log, shared_memo
from ctxscope.agents.hermes import telemetry
from ctxscope.agents.hermes.rows import listed
from ctxscope.model import Entry, Record

MESSAGE_SOURCES = frozenset({"messages", "parent_messages"})
_KINDS = {"session": "session", "parent_session": "session", "prompts": "prompt", "schema": "schema"}
_COUNTS = frozenset(
    [
        *("message_count", "tool_call_count", "api_call_count", "last_read_at"),
        *(f"{what}_tokens" for what in ("input", "output", "cache_read", "cache_write", "reasoning")),
        *(f"last_activity_{what}" for what in ("at", "description", "provenance")),
        *(f"{what}_cost_usd" for what in ("estimated", "actual")),
    ]
)
"""Columns of the session row that every flush rewrites and no request depends on: a change there tells nothing."""
_SPELLED = ("content", "tool_call_id", "tool_name", "reasoning_content", "platform_message_id")
OLD_SCHEMA = 22
"""0.19; from 0.20 on the table says 26 or more."""


def entries_of(record: Record) -> Iterable[Entry]:
    """The entry a record is; log lines that tell nothing give none. A record that left gives kind ``gone``."""
    key = f"{record.source}:{record.key}"
    if record.value is None:
        yield Entry("gone", record.place, key, {}, source=record.source)
    elif record.source == "agent_log":
        parsed = telemetry.parse(record.value) if isinstance(record.value, bytes) else None
        if parsed is not None:
            yield Entry("telemetry", record.place, key, parsed, source=record.source)
    elif isinstance(record.value, bytes):
        yield _file(record, key, record.value)
    else:
        yield _table_row(record, key, record.value)


def _file(record: Record, key: str, content: bytes) -> Entry:
    if record.source == "config":
        from ctxscope.agents.hermes.settings import scalars  # noqa: PLC0415 - settings asks this module for entries

        return Entry("config", record.place, key, scalars(content.decode("utf-8", "replace")), source=record.source)
    value = listed(content)
    if record.source == "snapshot" and isinstance(value, dict):
        kept = {k: value.get(k) for k in ("session_id", "model", "base_url", "platform", "tools")}
        return Entry("snapshot", record.place, key, kept, source=record.source)
    return Entry("unknown", record.place, key, {}, source=record.source)


def _table_row(record: Record, key: str, row: Mapping[str, Any]) -> Entry:
    if record.source in MESSAGE_SOURCES:
        role = row.get("role")
        kind = role if role in ("user", "assistant", "tool") and not blobs_of(row) else "unknown"
        stamp = row.get("timestamp")
        when = float(stamp) if isinstance(stamp, int | float) else None
        return Entry(kind, record.place, key, row, time=when, source=record.source)
    if record.source in {"session", "parent_session"}:
        written = row.get("cache_write_tokens")
        row = {name: cell for name, cell in row.items() if name not in _COUNTS}
        row["wrote_cache"] = written > 0 if isinstance(written, int) else None  # it turns once in a session, if at all
        row["model_config"] = listed(row.get("model_config"))
    return Entry(_KINDS.get(record.source, "unknown"), record.place, key, row, source=record.source)


def blobs_of(row: Mapping[str, Any]) -> list[str]:
    """Columns a request is made of that hold a BLOB: the agent takes it as it is and cannot spell it into a request."""
    return [name for name in _SPELLED if isinstance(row.get(name), bytes)]


def newest(log: Log, key: str) -> Entry | None:
    """The current version of an entry; ``None`` when it never was or has left."""
    at = log.index.get(key)
    if at is None or log.entries[at].kind == "gone":
        return None
    return log.entries[at]


def agent_log(log: Log) -> Sequence[Entry]:
    """What agent.log told, in the order observed; lines that a rotation took away stay true.

    Each line once: after a cut at its head the file tells under other numbers what it told before.
    """
    memo = shared_memo(log, "hermes.telemetry")
    told: list[Entry] = memo.setdefault("told", [])
    known: set[tuple[Any, ...]] = memo.setdefault("known", set())
    for entry in log.versions[memo.get("read", 0) :]:
        if entry.kind == "telemetry":
            line = (entry.data["time"], entry.data["event"], repr(entry.data))
            if line not in known:
                known.add(line)
                told.append(entry)
    memo["read"] = len(log.versions)
    return told


def notes_of(log: Log) -> Mapping[str, Any]:
    """The session's own notes (``model_config``): settings, and where it came from."""
    session = newest(log, f"session:{log.ref.id}")
    config = session.data.get("model_config") if session is not None else None
    return config if isinstance(config, dict) else {}


def schema_version(log: Log) -> int | None:
    """The one row of the ``schema_version`` table."""
    for entry in log.entries:
        if entry.kind == "schema":
            value = entry.data.get("version")
            return value if isinstance(value, int) else None
    return None


def is_old(log: Log) -> bool:
    """Whether 0.19 wrote the log: its table says so, or its session row holds the prompt text itself."""
    version = schema_version(log)
    if version is not None:
        return version <= OLD_SCHEMA
    session = newest(log, f"session:{log.ref.id}")
    return (
        session is not None and bool(session.data.get("system_prompt")) and not session.data.get("system_prompt_hash")
    )


def prompt_of(log: Log, seq: int | None) -> Entry | None:
    """The entry that holds the system prompt in force at an observation: a prompt row, or in 0.19 the session row.

    A prompt row deleted since (the agent drops those no session refers to) is found among the versions seen.
    """
    session = log.as_of(f"session:{log.ref.id}", seq)
    if session is None:
        return None
    digest = session.data.get("system_prompt_hash")
    if digest:
        return log.as_of(f"prompts:{digest}", None)
    return session if isinstance(session.data.get("system_prompt"), str) else None


def prompt_text(entry: Entry) -> str:
    """The system prompt an entry of ``prompt_of`` holds."""
    value = entry.data.get("prompt") if entry.kind == "prompt" else entry.data.get("system_prompt")
    return value if isinstance(value, str) else ""
