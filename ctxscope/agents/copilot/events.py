"""Lines of a Copilot CLI ``events.jsonl`` as entries, and what is known of their kinds (copilot.md §3)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from ctxscope.agents.reading.drift import Dialect
from ctxscope.model import Entry, Record
from ctxscope.wire import json_text
from ctxscope.wire.blocks import mapped, string

SESSION = "session"
"""Source key of the log."""

RECORDED = (
    "session.start",
    "session.resume",
    "session.shutdown",
    "session.usage_record",
    "system.message",
    "user.message",
    "assistant.turn_start",
    "assistant.turn_end",
    "assistant.message",
    "tool.execution_start",
    "tool.execution_complete",
    "permission.requested",
    "permission.completed",
)
"""Kinds that recorded sessions hold."""
PUBLISHED = (
    "abort",
    "assistant.intent",
    "assistant.reasoning",
    "assistant.usage",
    "hook.start",
    "hook.end",
    "model.call_failure",
    "session.compaction_start",
    "session.compaction_complete",
    "session.context_changed",
    "session.context_cleared",
    "session.error",
    "session.handoff",
    "session.idle",
    "session.info",
    "session.mode_changed",
    "session.model_change",
    "session.plan_changed",
    "session.snapshot_rewind",
    "session.task_complete",
    "session.title_changed",
    "session.truncation",
    "session.usage_info",
    "session.warning",
    "session.workspace_file_changed",
    "subagent.started",
    "subagent.completed",
    "subagent.failed",
    "subagent.selected",
    "tool.execution_partial_result",
    "tool.execution_progress",
    "tool.user_requested",
)
"""Kinds that the vendor's SDK declares (its ``session-events`` types) and no recorded session holds."""
KINDS = frozenset((*RECORDED, *PUBLISHED))


def version_of(entry: Entry) -> str | None:
    """The version that started or took up the session, where a line says it."""
    return string(mapped(entry.data.get("data")).get("copilotVersion")) or None


DIALECT = Dialect(
    title="GitHub Copilot CLI",
    kinds=dict.fromkeys(KINDS, ()),
    common=("type", "data", "id", "timestamp", "parentId", "ephemeral", "agentId"),
    versions=("1.0.102",),
    version=version_of,
)


def entries(record: Record) -> Iterator[Entry]:
    """The entry of one line; what is no event of a known kind is ``unknown``, a line that left ``gone``. Never raises.

    An entry's key is the event's id, or its line where it has none.
    """
    value, line = record.value, f"line:{record.key}"
    if value is None:
        yield Entry("gone", record.place, line, {}, source=record.source)
        return
    if not isinstance(value, bytes) or not value.strip():
        return
    data = _parsed(value)
    if data is None:
        yield Entry("unknown", record.place, line, {}, source=record.source, raw=value)
        return
    kind = data.get("type")
    known = isinstance(kind, str) and kind in KINDS
    yield Entry(
        kind if isinstance(kind, str) and known else "unknown",
        record.place,
        string(data.get("id")) or line,
        data,
        _written(data.get("timestamp")),
        source=record.source,
        raw=value,
    )


def payload(entry: Entry) -> Mapping[str, Any]:
    """What an event tells; empty where that is no object."""
    return mapped(entry.data.get("data"))


def _parsed(value: bytes) -> dict[str, Any] | None:
    try:
        data = json_text.loads(value)
    except ValueError:
        try:
            data = json_text.loads(value.decode("utf-8", "replace"))
        except ValueError:
            return None
    return data if isinstance(data, dict) else None


def _written(stamp: Any) -> float | None:
    if not isinstance(stamp, str):
        return None
    try:
        return datetime.fromisoformat(stamp).timestamp()
    except (ValueError, OverflowError, OSError):
        return None
