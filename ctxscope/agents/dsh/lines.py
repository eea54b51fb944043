"""Lines of a session's log as entries, and which records the harness is known to write (dsh.md §3)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ctxscope.agents.dsh.texts import listed, mapped, whole
from ctxscope.agents.reading.drift import Dialect
from ctxscope.model import Entry, Record
from ctxscope.wire import json_text

SESSION = "session"
"""Key of the one source, and the type of its first line."""
SURFACE = frozenset({"user/message", "assistant/message", "tool/result", "system/message"})
PACKED = {"text-chunks": "texts", "reasoning-chunks": "texts", "tool-call-chunks": "args"}
"""v0: one line for a run of deltas, each of which has a number of its own; by type, the member with a delta each."""
DELIVERY = "session-log-deepseek/delivery-accepted"
KNOWN = frozenset(  # as the harness lists them (dsh-session 0.1.0-rc.8), and what was seen of later versions
    {
        *SURFACE,
        "request/header",
        "request/context",
        "turn/start",
        "turn/end",
        "step/start",
        "step/end",
        "tool/call",
        "agent/inbox/spliced",
        "agent-preset/selected",
        "job/registered",
        "job/settled",
        "permission/preset",
        "plan/mode",
        "sandbox/mode",
        "approval/policy",
        "approval/asked",
        "approval/decided",
        "command/run",
        "command/done",
        "feedback/record",
        "goal/change",
        "hook/invoked",
        "hook/result",
        "schedule/change",
        "subagent/descriptor",
        "team/member",
        "team/message/delivered",
        "team/message/queued",
        "team/task",
        "todo/write",
        "tool/code-dispatch",
        "tool/code-dispatch-start",
        "tool-workflow/agent-end",
        "tool-workflow/agent-start",
        "tool-workflow/run-end",
        "tool-workflow/run-start",
        "session/title",
        "session/title-llm-request",
        "session/end-seed",
        "llm/retry",
        "llm/retry-started",
        "assistant/attempt",
        "assistant/chunk",
        "compaction/prune",
        "compaction/start",
        "compaction/summary",
        "compaction/end",
        "web/deepseek-search-llm-request",
        DELIVERY,
    }
)
_ENVELOPE = ("type", "seq", "time", "data", "sourceEventSeqs", "surfaceOp", "ignorable")
_HEADER = (
    *("version", "id", "createdAt", "cwd", "isSeeded", "delegationDepth", "parentSession", "seedLength", "origin"),
    "agentPreset",
)


def _version(entry: Entry) -> str | None:
    number = whole(entry.data.get("version")) if entry.kind == SESSION else None
    return None if number is None else f"v{number}"


DIALECT = Dialect(
    title="a DeepSeek Harness with log format",
    kinds={SESSION: _HEADER, **dict.fromkeys(PACKED, ("seq0", "time0")), **dict.fromkeys(KNOWN, ())},
    common=_ENVELOPE,
    versions=("v0", "v3", "v4"),
    version=_version,
)


def entries(record: Record) -> Iterator[Entry]:
    """The entry of one line; what is no JSON object, or of a type not known, is ``unknown``. Never raises.

    A line that left the file gives kind ``gone``. Lines are known by their number: the harness only ever adds to a log.
    """
    key, value = f"line:{record.key}", record.value
    if value is None:
        yield Entry("gone", record.place, key, {}, source=record.source)
        return
    if not isinstance(value, bytes) or not value.strip():
        return
    try:
        data = json_text.loads(value)
    except ValueError:
        data = None
    if not isinstance(data, dict):
        yield Entry("unknown", record.place, key, {}, raw=value)
        return
    yield Entry(_kind(data), record.place, key, data, _written(data), raw=value)


def _kind(data: Mapping[str, Any]) -> str:
    kind = data.get("type")
    known = isinstance(kind, str) and (kind in KNOWN or kind in PACKED or kind == SESSION)
    return str(kind) if known else "unknown"


def _written(data: Mapping[str, Any]) -> float | None:
    """When a record was written, in seconds; logged in milliseconds since the epoch."""
    for name in ("time", "time0", "createdAt"):
        stamp = data.get(name)
        if isinstance(stamp, int | float) and not isinstance(stamp, bool):
            return stamp / 1000 if -_LATEST <= stamp <= _LATEST else None
    return None


_LATEST = 8_640_000_000_000_000
"""The last moment a JavaScript date can be, in milliseconds."""


def numbers(entry: Entry) -> tuple[int, int] | None:
    """The first and the last number (``seq``) a record has; ``None`` where it has none."""
    data = entry.data
    first = whole(data.get("seq"))
    if first is not None:
        return first, first
    first = whole(data.get("seq0"))
    deltas = listed(mapped(data.get("data")).get(PACKED.get(entry.kind, "")))
    return None if first is None else (first, first + max(len(deltas), 1) - 1)
