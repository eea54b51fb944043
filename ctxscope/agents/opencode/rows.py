"""Rows of a session as entries, and what of them is not known (opencode.md §3).

A row's JSON and its columns make one entry; an export holds the same objects, which give the same entries.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ctxscope.agents import Log
from ctxscope.agents.reading import drift
from ctxscope.model import Entry, Place, Record
from ctxscope.wire.json_text import js, loads_leniently

ROLES = ("user", "assistant")
_EXPORTED = {"sessionID": "session_id", "messageID": "message_id", "parentID": "parent_id"}
"""Names an export has for columns."""


def entries(record: Record) -> Iterator[Entry]:
    """The entries of one row, or of a whole export; ``unknown`` where a row is not understood. Never raises."""
    value = record.value
    if value is None:
        yield Entry("gone", record.place, f"{record.source}:{record.key}", {}, source=record.source)
    elif isinstance(value, bytes):
        yield from _exported(record, value)
    elif record.source == "session":
        yield Entry("session", record.place, f"session:{record.key}", dict(value), source="session")
    else:
        text = value.get("data")
        data = _object(text)
        columns = {name: cell for name, cell in value.items() if name != "data"}
        raw = text if isinstance(text, bytes) else str(text).encode("utf-8", "surrogatepass")
        whole = {**data, **columns} if data else {}
        yield _entry(record.source, record.key, record.place, whole, raw)


def notices(log: Log) -> Sequence[str]:
    """Rows and fields that are not known, counted, and rows that could not be read."""
    bad = [e for e in log.entries if e.kind == "unreadable"]
    told = [f"{len(bad)} rows hold no JSON object; the first is {bad[0].place}"] if bad else []
    return (*told, *drift.notices(log, DIALECT))


def _entry(source: str, key: str, place: Place, data: dict[str, Any], raw: bytes) -> Entry:
    kind = data.get("role" if source == "message" else "type")
    is_known = isinstance(kind, str) and kind in (ROLES if source == "message" else PARTS)
    name = "unreadable" if not data else str(kind) if is_known else "unknown"
    stamp = data.get("time_created")
    when = stamp / 1000 if isinstance(stamp, int | float) and not isinstance(stamp, bool) else None
    return Entry(name, place, f"{source}:{key}", data, when, source=source, raw=raw)


def _exported(record: Record, value: bytes) -> Iterator[Entry]:
    whole = _object(value)
    info = whole.get("info")
    if not isinstance(info, dict):
        yield Entry("unreadable", record.place, "export", {}, source="export")
        return
    name = str(info.get("id"))
    model = info.get("model")
    session = {**info, "parent_id": info.get("parentID"), "model": js(model) if isinstance(model, dict) else model}
    yield Entry("session", record.place, f"session:{name}", session, source="export")
    listed = whole.get("messages")
    for number, message in enumerate(listed if isinstance(listed, list) else ()):
        place = replace(record.place, at=f"message {number + 1}")
        if isinstance(message, dict):
            yield from _exported_message(place, message)


def _exported_message(place: Place, message: Mapping[str, Any]) -> Iterator[Entry]:
    info, parts = message.get("info"), message.get("parts")
    for source, item in [("message", info), *(("part", p) for p in (parts if isinstance(parts, list) else ()))]:
        if isinstance(item, dict) and isinstance(item.get("id"), str):
            data = dict(item)
            for theirs, ours in _EXPORTED.items():
                if theirs in data and (source, theirs) != ("message", "parentID"):
                    data[ours] = data.pop(theirs)
            times = data.get("time")
            if source == "message" and isinstance(times, dict):
                data["time_created"] = times.get("created")
            yield _entry(source, item["id"], place, data, js(item).encode("utf-8", "surrogatepass"))


def _object(text: Any) -> dict[str, Any]:
    if not isinstance(text, str | bytes):
        return {}
    try:
        data = loads_leniently(text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass"))
    except ValueError:
        return {}
    return data if isinstance(data, dict) else {}


def _kind(entry: Entry) -> str:
    if entry.source == "session":
        return "session"
    kind = entry.data.get("role" if entry.source == "message" else "type")
    return kind if isinstance(kind, str) else ""


def _version(entry: Entry) -> str | None:
    version = entry.data.get("version") if entry.kind == "session" else None
    return version if isinstance(version, str) else None


PARTS: Mapping[str, tuple[str, ...]] = {
    "text": ("text", "synthetic", "ignored", "time", "metadata"),
    "reasoning": ("text", "time", "metadata"),
    "tool": ("tool", "callID", "state", "metadata"),
    "file": ("mime", "filename", "url", "source", "synthetic"),
    "agent": ("name", "source"),
    "subtask": ("prompt", "description", "agent", "model", "command"),
    "compaction": ("auto", "overflow", "tail_start_id", "diagnostics"),
    "retry": ("attempt", "error", "time"),
    "step-start": ("snapshot",),
    "step-finish": ("reason", "snapshot", "cost", "tokens"),
    "snapshot": ("snapshot",),
    "patch": ("hash", "files"),
}
"""Known parts, with the fields of each."""
_SESSION = (
    *(
        "project_id",
        "workspace_id",
        "parent_id",
        "slug",
        "directory",
        "path",
        "title",
        "version",
        "share_url",
        "metadata",
    ),
    *("summary_additions", "summary_deletions", "summary_files", "summary_diffs", "cost", "revert", "permission"),
    *("tokens_input", "tokens_output", "tokens_reasoning", "tokens_cache_read", "tokens_cache_write", "agent", "model"),
    *("time_compacting", "time_archived"),
)
DIALECT = drift.Dialect(
    title="opencode",
    kinds={
        "session": _SESSION,
        "user": ("role", "time", "format", "summary", "agent", "model", "fallbackModels", "system", "tools"),
        "assistant": (
            *("role", "time", "error", "parentID", "modelID", "providerID", "mode", "agent", "path", "summary"),
            *("cost", "tokens", "structured", "variant", "finish"),
        ),
        **{kind: ("type", *fields) for kind, fields in PARTS.items()},
    },
    common=("id", "session_id", "message_id", "time_created", "time_updated"),
    versions=("1.18.33", "1.18.34"),
    kind=_kind,
    version=_version,
    sources=("session", "message", "part"),
)
