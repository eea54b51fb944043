"""Lines of a pi session file, and its side files, as entries."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from ctxscope.model import Entry, Record
from ctxscope.wire import json_text

SESSION, SETTINGS, MODELS = "session", "settings", "models"
"""Source keys: the log itself, and the agent folder's two files of limits."""
ROLES = {"user", "assistant", "toolResult", "system", "bashExecution", "custom"}
OLD_ROLES = {"hookMessage": "custom"}
"""Version 2 files name an extension's message so; pi renames it when it loads them (pi.md §2)."""


def entries(record: Record) -> Iterator[Entry]:
    """The entry of one record; a line that is no object, or not JSON, is ``unknown``. Never raises.

    A line or a file that left gives kind ``gone``. An entry's key is its id, so that it stays itself when its line
    moves; where a line has no id (version 1, what is not understood) the line is what it is known by.
    """
    value = record.value
    if value is None:
        key = f"line:{record.key}" if record.source == SESSION else record.source
        yield Entry("gone", record.place, key, {}, source=record.source)
        return
    if not isinstance(value, bytes):
        return
    if record.source != SESSION:
        data = _parsed(value)
        kind = record.source if data is not None else "unknown"
        yield Entry(kind, record.place, record.source, data or {}, source=record.source, raw=value)
        return
    if not value.strip():
        return
    data = _parsed(value)
    if data is None:
        yield Entry("unknown", record.place, f"line:{record.key}", {}, raw=value)
        return
    name = data.get("id")
    key = name if isinstance(name, str) and name else f"line:{record.key}"
    yield Entry(_kind(data), record.place, key, data, written(data), raw=value)


def _parsed(value: bytes) -> dict[str, Any] | None:
    """A line as Node reads it: bytes that are no UTF-8 become U+FFFD, one for each maximal part of a character."""
    try:
        data = json_text.loads(value if is_utf8(value) else value.decode("utf-8", "replace"))
    except ValueError:
        return None
    return data if isinstance(data, dict) else None


def is_utf8(value: bytes) -> bool:
    """Whether nothing in a line had to be replaced to read it."""
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True


def _kind(data: Mapping[str, Any]) -> str:
    kind = data.get("type")
    if kind != "message":
        return kind if isinstance(kind, str) else "unknown"
    message = data.get("message")
    role = message.get("role") if isinstance(message, Mapping) else None
    role = OLD_ROLES.get(str(role), role)
    return role if isinstance(role, str) and role in ROLES else "unknown"


def written(data: Mapping[str, Any]) -> float | None:
    """When an entry was written, in seconds: its ISO stamp, else the message's own in milliseconds."""
    stamp = data.get("timestamp")
    if isinstance(stamp, str):
        try:
            return datetime.fromisoformat(stamp).timestamp()
        except ValueError:
            return None
    milliseconds = message_stamp(data)
    return milliseconds / 1000 if milliseconds is not None else None


def message_stamp(data: Mapping[str, Any]) -> float | None:
    """The message's own stamp in milliseconds since the epoch."""
    message = data.get("message")
    stamp = message.get("timestamp") if isinstance(message, Mapping) else None
    if not isinstance(stamp, int | float) or isinstance(stamp, bool):
        return None
    return float(stamp) if abs(stamp) <= sys.float_info.max else None  # neither NaN nor endless
