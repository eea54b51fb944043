"""Lines of a Gemini CLI chat file, and its side file, as entries (gemini.md §3)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from ctxscope.model import Entry, Record
from ctxscope.wire import json_text

SESSION, AGENT, SETTINGS = "session", "agent", "settings"
"""Source keys: the chat file, a subagent's (``agent:<its id>``), and the user's settings."""
MESSAGES = {"user", "gemini", "info", "error", "warning"}
"""Types of messages; the last three are shown to the user alone."""


def entries(record: Record) -> Iterator[Entry]:
    """The entry of one record; a line that is not understood is ``unknown``. Never raises.

    An entry is one line, known by its number: a message whose id comes again is told by two entries, and what it is
    then is for the reader of the log to say (``replay``).
    """
    value = record.value
    key = f"{record.source}:{record.key}"
    if value is None:
        yield Entry("gone", record.place, key, {}, source=record.source)
        return
    if not isinstance(value, bytes) or not value.strip():
        return
    data = parsed(value)
    if data is None:
        yield Entry("unknown", record.place, key, {}, source=record.source, raw=value)
    elif record.source == SETTINGS:
        yield Entry(SETTINGS, record.place, key, data, source=record.source, raw=value)
    else:
        yield Entry(kind_of(data), record.place, key, data, stamp(data), source=record.source, raw=value)


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
    """What a line is, asked in the order the program asks: ``rewind``, a message's type, ``set`` or ``session``."""
    if isinstance(data.get("$rewindTo"), str):
        return "rewind"
    if isinstance(data.get("id"), str):
        kind = data.get("type")
        return kind if isinstance(kind, str) and kind in MESSAGES else "unknown"
    if isinstance(data.get("$set"), Mapping):
        return "set"
    return "session" if is_header(data) else "unknown"


def is_header(data: Mapping[str, Any]) -> bool:
    """Whether a line begins a process' part of the file."""
    return all(isinstance(data.get(name), str) and data[name] for name in ("sessionId", "projectHash"))


def stamp(data: Mapping[str, Any]) -> float | None:
    """When a line was written, in seconds."""
    change = data.get("$set")
    told = (
        data.get("timestamp"),
        data.get("startTime"),
        change.get("lastUpdated") if isinstance(change, dict) else None,
    )
    for value in told:
        if isinstance(value, str):
            try:
                return datetime.fromisoformat(value).timestamp()
            except (ValueError, OverflowError):
                continue
    return None
