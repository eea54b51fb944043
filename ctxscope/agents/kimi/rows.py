"""Lines of a session's files as entries, and which of them are known (kimi.md §3).

Context rows: ``_system_prompt``, ``_checkpoint`` (before each user input and each step), ``_usage`` (size of the context),
and the messages user, assistant, tool. Events: what the screen was told, each answer's id and usage among them.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Any

from ctxscope.agents.reading import drift
from ctxscope.model import Entry, Record
from ctxscope.wire.json_text import loads_leniently

MESSAGES = ("prompt", "user", "assistant", "tool", "system")
"""Kinds of entries that requests are made of."""
_KINDS = {"_system_prompt": "prompt", "_checkpoint": "checkpoint", "_usage": "usage"}
_TELLING = (
    *("metadata", "TurnBegin", "StepBegin", "ContentPart", "ToolCall", "StatusUpdate"),
    *("SubagentEvent", "CompactionEnd"),
)
"""Events that something is read from; of the others, which repeat long outputs, the kind is kept."""
_EVENTS = (
    *("SteerInput", "TurnEnd", "StepInterrupted", "CompactionBegin", "ToolResult"),
    *("ToolCallPart", "ToolCallRequest", "ApprovalRequest", "ApprovalResponse", "ApprovalRequestResolved"),
    *("QuestionRequest", "QuestionResponse", "HookTriggered", "HookResolved", "HookRequest", "HookResponse"),
    *("MCPLoadingBegin", "MCPLoadingEnd", "Notification", "PlanDisplay", "BtwBegin", "BtwEnd"),
)


def entries(record: Record) -> Iterator[Entry]:
    """The entry of one line; ``unknown`` where it is not understood, ``gone`` where it left its file. Never raises.

    A row is known by its number and a hash of it, and so stays itself when its file is renamed; the rows that a file
    begins with because the one before it did are those very rows.
    """
    source, place, value = record.source, record.place, record.value
    if not isinstance(value, bytes):
        yield Entry("gone", place, f"gone:{source}:{record.key}", {}, source=source)
    elif source == "config":
        yield Entry("config", place, "config", _settings(value), source=source)
    elif source.startswith("wire"):
        yield _event(source, record, _object(value))
    else:
        data = _object(value)
        agent = agent_of(source)
        key = f"{agent}{':' if agent else ''}{record.key}:{sha256(value).hexdigest()[:16]}"
        yield Entry(_kind(data), place, key, data, source=source, raw=value)


def agent_of(source: str) -> str:
    """Id of the subagent whose file a source is; empty for the session's own."""
    return next((part for part in source.split(":")[1:] if not part.isdigit()), "")


def rotation_of(source: str) -> float:
    """Number of a context file's rotation, by which they are in order; the current one is the last."""
    last = source.rpartition(":")[2]
    return int(last) if last.isdigit() else float("inf")


def parts(content: Any) -> Sequence[Mapping[str, Any]]:
    """A message's content as the list it stands for: a string is one text, nothing is none."""
    if isinstance(content, str):
        return ({"type": "text", "text": content},)
    return content if isinstance(content, list) else ()


def text_of(part: Mapping[str, Any], kind: str = "text") -> str:
    """The text of a part of some kind (``text``, ``think``); empty for any other."""
    text = part.get(kind) if part.get("type") == kind else ""
    return text if isinstance(text, str) else ""


def calls_of(row: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """The tool calls of an assistant row."""
    found = row.get("tool_calls")
    return [call for call in found if isinstance(call, dict)] if isinstance(found, list) else ()


def function_of(call: Mapping[str, Any]) -> Mapping[str, Any]:
    """Name and arguments of a tool call."""
    found = call.get("function")
    return found if isinstance(found, dict) else {}


def payload_of(event: Entry) -> tuple[str, Mapping[str, Any]]:
    """Kind and content of an event."""
    message = event.data.get("message", {})
    payload = message.get("payload") if isinstance(message, dict) else None
    return _event_kind(event), payload if isinstance(payload, dict) else {}


def _kind(row: Mapping[str, Any]) -> str:
    """What a row is; ``unknown`` for one that the agent itself passes over."""
    role, content = row.get("role"), row.get("content")
    if not isinstance(role, str):
        return "unknown"
    if role in _KINDS:
        key, kind = {"_system_prompt": ("content", str), "_usage": ("token_count", int)}.get(role, ("id", int))
        return _KINDS[role] if isinstance(row.get(key), kind) else "unknown"
    whole = "content" in row and (content is None or isinstance(content, str | list))
    whole = whole and all(isinstance(part, dict) and isinstance(part.get("type"), str) for part in parts(content))
    return role if role in MESSAGES and role != "prompt" and whole else "unknown"


def _event(source: str, record: Record, data: dict[str, Any]) -> Entry:
    kind = data.get("type")
    message = data.get("message")
    if isinstance(message, dict):
        kind = message.get("type")
        if kind not in _TELLING:
            data["message"] = {"type": kind}
        elif kind == "SubagentEvent" and isinstance(message.get("payload"), dict):
            wanted = ("agent_id", "parent_tool_call_id")
            data["message"] = {"type": kind, "payload": {name: message["payload"].get(name) for name in wanted}}
    stamp = data.get("timestamp")
    when = float(stamp) if isinstance(stamp, int | float) and not isinstance(stamp, bool) else None
    known = isinstance(kind, str) and kind in (*_TELLING, *_EVENTS)
    return Entry("event" if known else "unknown", record.place, f"{source}:{record.key}", data, when, source=source)


def _event_kind(entry: Entry) -> str:
    message = entry.data.get("message")
    kind = message.get("type") if isinstance(message, dict) else entry.data.get("type")
    return kind if isinstance(kind, str) else ""


def _row_or_event(entry: Entry) -> str:
    role = entry.data.get("role")
    return role if isinstance(role, str) else _event_kind(entry)


def _protocol(entry: Entry) -> str | None:
    version = entry.data.get("protocol_version")
    return version if isinstance(version, str) else None


DIALECT = drift.Dialect(
    title="wire protocol",
    kinds={
        "_system_prompt": ("role", "content"),
        "_checkpoint": ("role", "id"),
        "_usage": ("role", "token_count"),
        **dict.fromkeys(("user", "system"), ("role", "name", "content", "partial")),
        "assistant": ("role", "name", "content", "tool_calls", "partial"),
        "tool": ("role", "name", "content", "tool_call_id", "partial"),
        "metadata": ("type", "protocol_version"),
        **dict.fromkeys((*_TELLING[1:], *_EVENTS), ("timestamp", "message")),
    },
    versions=("1.9",),
    kind=_row_or_event,
    version=_protocol,
    sources=("context", "wire"),
)


def _settings(value: bytes) -> dict[str, Any]:
    try:
        return tomllib.loads(value.decode())
    except (ValueError, RecursionError):
        return {}


def _object(value: bytes) -> dict[str, Any]:
    try:
        data = loads_leniently(value)
    except ValueError:
        return {}
    return data if isinstance(data, dict) else {}
