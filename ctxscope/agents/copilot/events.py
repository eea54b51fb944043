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
    "abort",
    "assistant.message",
    "assistant.turn_end",
    "assistant.turn_start",
    "model.message",
    "model.messages_snapshot",
    "model.model_call_started",
    "model.model_call_success",
    "model.response",
    "model.turn_ended",
    "model.turn_started",
    "permission.completed",
    "permission.requested",
    "session.binary_asset",
    "session.compaction_complete",
    "session.compaction_start",
    "session.model_change",
    "session.resume",
    "session.shutdown",
    "session.start",
    "session.truncation",
    "session.usage_checkpoint",
    "session.usage_record",
    "session.warning",
    "subagent.completed",
    "subagent.configured",
    "subagent.started",
    "system.message",
    "system.notification",
    "tool.execution_complete",
    "tool.execution_start",
    "user.message",
)
"""Kinds that recorded sessions hold."""
PUBLISHED = (
    "assistant.intent",
    "assistant.reasoning",
    "assistant.usage",
    "hook.start",
    "hook.end",
    "model.call_failure",
    "session.context_changed",
    "session.context_cleared",
    "session.error",
    "session.handoff",
    "session.idle",
    "session.info",
    "session.mode_changed",
    "session.plan_changed",
    "session.snapshot_rewind",
    "session.task_complete",
    "session.title_changed",
    "session.usage_info",
    "session.workspace_file_changed",
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
