"""Lines of a Qwen Code chat file, and its side file, as entries (qwen.md §3)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from ctxscope.model import Entry, Record
from ctxscope.wire import json_text

SESSION, SETTINGS = "session", "settings"
"""Source keys: the chat file and the user's settings."""
TYPES = {"user", "assistant", "tool_result", "system"}
COMPRESSION, TELEMETRY, REWIND = "chat_compression", "ui_telemetry", "rewind"
SENT = "attribution_snapshot"
"""Written as a prompt goes out."""
NO_TURN = ("mid_turn_user_message",)
"""Of what the user says: with the results of tools, while the model is at work."""
SUBTYPES = {
    COMPRESSION,
    TELEMETRY,
    REWIND,
    SENT,
    "slash_command",
    "at_command",
    "custom_title",
    "notification",
    "cron",
    "background_task_completed",
    "branch_checkpoint",
    "file_history_snapshot",
    "goal_runtime",
    "goal_state",
    "goal_turn_end",
    "omni_recall",
    "parent_session",
    "session_artifact_event",
    "session_artifact_snapshot",
    "session_model",
    "session_source",
    "session_sources_snapshot",
    "turn_result",
    "user_text_elements",
}
"""Subtypes of system lines (0.15.10, 0.24.4)."""


def entries(record: Record) -> Iterator[Entry]:
    """The entry of one record; a line that is not understood is ``unknown``. Never raises.

    An entry's key is its uuid, that of a line without one its number. A system line's kind is its subtype.
    """
    value = record.value
    line = f"line:{record.key}" if record.source == SESSION else record.source
    if value is None:
        yield Entry("gone", record.place, line, {}, source=record.source)
        return
    if not isinstance(value, bytes) or not value.strip():
        return
    data = parsed(value)
    if data is None:
        yield Entry("unknown", record.place, line, {}, source=record.source, raw=value)
    elif record.source == SETTINGS:
        yield Entry(SETTINGS, record.place, line, data, source=record.source, raw=value)
    else:
        name = data.get("uuid")
        key = name if isinstance(name, str) and name else line
        yield Entry(kind_of(data), record.place, key, data, stamp(data), raw=value)


def parsed(value: bytes) -> dict[str, Any] | None:
    """A line as Node reads it: bytes that are no UTF-8 become U+FFFD. ``None``: not a JSON object."""
    try:
        data = json_text.loads(value)
    except ValueError:
        try:
            data = json_text.loads(value.decode("utf-8", "replace"))
        except ValueError:
            return None
    return data if isinstance(data, dict) else None


def kind_of(data: Mapping[str, Any]) -> str:
    """``user``, ``assistant``, ``tool_result``, or what a system line is about."""
    kind, subtype = data.get("type"), data.get("subtype")
    if not isinstance(kind, str) or kind not in TYPES or not isinstance(data.get("uuid"), str):
        return "unknown"
    if kind != "system":
        return kind
    return subtype if isinstance(subtype, str) and subtype in SUBTYPES else "unknown"


def stamp(data: Mapping[str, Any]) -> float | None:
    """When a line was written, in seconds."""
    value = data.get("timestamp")
    try:
        return datetime.fromisoformat(value).timestamp() if isinstance(value, str) else None
    except (ValueError, OverflowError):
        return None


def payload(entry: Entry) -> Mapping[str, Any]:
    """What a system line is about."""
    found = entry.data.get("systemPayload")
    return found if isinstance(found, Mapping) else {}


def event(entry: Entry) -> Mapping[str, Any]:
    """The event of a telemetry line."""
    found = payload(entry).get("uiEvent")
    return found if isinstance(found, Mapping) else {}
