"""Message rows read as the agent reads them: columns decoded, synthetic texts recognised by where they stand."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from ctxscope.agents import Log
from ctxscope.agents.reading.spoken import texts
from ctxscope.model import Entry

SCREENSHOT = "[screenshot]"
"""What the database holds in place of an image; the process that was given the image goes on holding it."""

SUMMARY_PREFIXES = ("[CONTEXT COMPACTION — REFERENCE ONLY]", "[CONTEXT SUMMARY]:")
PRIOR_CONTEXT = "[PRIOR CONTEXT — for reference only; not a new message]"
PRIOR_CONTEXT_END = "[END OF PRIOR CONTEXT — COMPACTION SUMMARY BELOW]"
LENGTH_NUDGE = "[System: Your previous response was truncated"
TASK_LIST = "[Your active task list"
"""How a compaction puts the task list back."""
CONTINUATION = "Continue from the compressed conversation context above."
SYNTHETIC_USERS = (
    LENGTH_NUDGE,
    CONTINUATION,
    TASK_LIST,
    "You've reached the maximum number of tool-calling iterations allowed.",
)
"""User rows the agent wrote itself (hermes.md §5): they start no turn."""
HEADING = "## Historical Task Snapshot"
"""Heading of a summary; behind a blank line where the agent's code put it there (hermes.md §5)."""
LISTED = "\x00json:"
"""Prefix of a content column that holds a list or an object (hermes.md §3.2)."""
REWOUND = (0, 0)
ARCHIVED = (0, 1)


def is_summary(content: Any) -> bool:
    """Whether a text is a compaction summary: its prefix at the start, or right after the PRIOR CONTEXT delimiter."""
    if not isinstance(content, str):
        return False
    text = content.lstrip()
    if text.startswith(SUMMARY_PREFIXES):
        return True
    if not text.startswith(PRIOR_CONTEXT):
        return False
    return text.rpartition(PRIOR_CONTEXT_END)[2].lstrip().startswith(SUMMARY_PREFIXES)


def listed(value: Any) -> Any:
    """A JSON column as a value; text that is not JSON stays text."""
    if not isinstance(value, str | bytes):
        return value
    try:
        return orjson.loads(value)
    except orjson.JSONDecodeError:
        try:
            return json.loads(value)  # lone surrogates, which orjson refuses
        except (ValueError, RecursionError):
            return value


def content_of(data: Mapping[str, Any]) -> Any:
    """The content column as the agent loads it: text, or the list or object it flags."""
    value = data.get("content")
    if isinstance(value, str) and value.startswith(LISTED):
        return listed(value[len(LISTED) :])
    return value


def spoken(log: Log, entry: Entry) -> tuple[str, Iterator[str]]:  # noqa: ARG001 - the face's signature
    """A row's role, and what its content and its tool calls say."""
    role, row = entry.data.get("role"), entry.data
    return role if isinstance(role, str) else entry.kind, texts([content_of(row), {"tool_calls": tool_calls_of(row)}])


@dataclass(frozen=True, slots=True, eq=False)
class Row:
    """A message row with what alignment asks of it."""

    entry: Entry
    """The version that holds its data (the last one before it was deleted)."""
    id: int
    ts: float
    role: str
    flags: tuple[int, int]
    """(active, compacted)."""
    gone: bool
    """Deleted from the table since it was seen."""
    parent: bool
    """Belongs to the session this one continues."""
    summary: bool
    synthetic: bool
    """A summary, or a user row the agent wrote itself."""
    unsaid: bool
    """An assistant row no reply made: it has neither tool calls nor a finish reason, as markers have none."""
    tool_ids: frozenset[str]
    """Tool-call ids made (assistant) or answered (tool)."""

    @property
    def micro(self) -> bool:
        """Whether a micro pass wrote it, by its shape: an assistant's summary under a heading set by the agent's code."""
        content = self.entry.data.get("content")
        return self.summary and self.role == "assistant" and f"\n\n{HEADING}" in str(content)

    @property
    def put_back(self) -> bool:
        """Whether a compaction wrote it beside its summary: the task list, or the words that no one's input is left."""
        content = self.entry.data.get("content")
        return self.role == "user" and isinstance(content, str) and content.startswith((TASK_LIST, CONTINUATION))

    @property
    def active(self) -> bool:
        """Whether the agent still has it in its history."""
        return bool(self.flags[0]) and not self.gone

    @property
    def taken_back(self) -> bool:
        """Whether an undo or a retry removed it: inactive without having been compacted, or deleted."""
        return self.gone or self.flags == REWOUND

    @property
    def starts_turn(self) -> bool:
        """Whether a person (or a gateway) said it."""
        return self.role == "user" and not self.synthetic


def tool_calls_of(data: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The tool calls of an assistant row; what is not an object is left out."""
    calls = listed(data.get("tool_calls"))
    return [c for c in calls if isinstance(c, dict)] if isinstance(calls, list) else []


def _flag(value: Any) -> int:
    """A flag as the agent's queries see it: whatever is not a whole number is not 1."""
    return value if isinstance(value, int) else int(value == 1)


def row_of(entry: Entry, *, gone: bool) -> Row | None:
    """An entry as a row; ``None`` for a role that is none of the conversation's."""
    data = entry.data
    role = data.get("role")
    number = data.get("id")
    if role not in {"user", "assistant", "tool"} or not isinstance(number, int):
        return None
    content = data.get("content")
    summary = is_summary(content)
    nudge = role == "user" and isinstance(content, str) and content.startswith(SYNTHETIC_USERS)
    ids = {str(data["tool_call_id"])} if role == "tool" and data.get("tool_call_id") else set()
    if role == "assistant" and data.get("tool_calls"):
        ids = {str(i) for c in tool_calls_of(data) for i in (c.get("id"), c.get("call_id")) if i}
    return Row(
        entry=entry,
        id=number,
        ts=entry.time or 0.0,
        role=str(role),
        flags=(_flag(data.get("active", 1)), _flag(data.get("compacted"))),
        gone=gone,
        parent=entry.source == "parent_messages",
        summary=summary,
        synthetic=summary or nudge,
        unsaid=role == "assistant" and not data.get("finish_reason") and not data.get("tool_calls"),
        tool_ids=frozenset(ids),
    )


def any_row(log: Log, name: str, holds: Callable[[Entry], bool]) -> bool:
    """Whether a test holds of any version of any row; mostly of none, and then no context need be walked through.

    ``name`` stands for the test; each version is looked at once.
    """
    upto, found = log.memo.get(("hermes.any_row", name), (0, False))
    if upto < len(log.versions):
        found = found or any(map(holds, log.versions[upto:]))
        log.memo["hermes.any_row", name] = len(log.versions), found
    return bool(found)
