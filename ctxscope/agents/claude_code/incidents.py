"""What lines tell of compactions and hooks, taken while a line is at hand (claude_code.md §5)."""

from __future__ import annotations

import sys
from typing import Any, NamedTuple

from ctxscope.agents.claude_code.texts import mapped, string
from ctxscope.model import Entry


class Hook(NamedTuple):
    """The record of a hook that ran."""

    number: int
    """Of its line."""
    thread: str
    name: str
    """What it says which hook it was."""


def is_progress(entry: Entry) -> bool:
    """Whether a line tells of a hook's progress (until about 2.1.3x)."""
    return entry.kind == "progress" and mapped(entry.data.get("data")).get("type") == "hook_progress"


def hook_name(entry: Entry, sub: str) -> str:
    """What a hook's record of a subtype says which hook ran."""
    if entry.kind == "system":
        return "Stop" if sub == "stop_hook_summary" else "SessionStart"
    told_by = mapped(entry.data.get("attachment" if entry.kind == "attachment" else "data"))
    return sys.intern(string(told_by.get("hookName")) or string(told_by.get("hookEvent")) or "hook")


def compaction_of(entry: Entry) -> tuple[str, tuple[str, ...], str, str, tuple[int | None, int | None]]:
    """What a compaction's line says of it.

    Anchor: uuid of the line behind which the preserved ones are read; uuids of those, which stand before it in the
    file; uuid of the last line before it; trigger, ``auto`` where the client began it itself in the middle of a turn;
    tokens before and after it. What it does not say is empty or ``None``.
    """
    metadata = mapped(entry.data.get("compactMetadata"))
    messages = mapped(metadata.get("preservedMessages"))
    kept = messages.get("allUuids") or messages.get("uuids")
    names = tuple(u for u in kept if isinstance(u, str)) if isinstance(kept, list) else ()
    tokens = tokens_of(metadata.get("preTokens")), tokens_of(metadata.get("postTokens"))
    left = string(entry.data.get("logicalParentUuid"))
    return string(messages.get("anchorUuid")), names, left, string(metadata.get("trigger")), tokens


def compacted_ids(entry: Entry) -> set[str]:
    """Ids of the tool calls whose results a micro-compaction cleared."""
    ids = mapped(entry.data.get("microcompactMetadata")).get("compactedToolIds")
    return {i for i in ids if isinstance(i, str)} if isinstance(ids, list) else set()


def tokens_of(value: Any) -> int | None:
    """A count of tokens that an event states; ``None`` where it states none."""
    return value if type(value) is int and value > 0 else None
