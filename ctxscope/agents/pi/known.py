"""What pi's log is known to hold (pi.md §3, §5; recorded with 0.73.1 and 1.6.0)."""

from __future__ import annotations

from ctxscope.agents.reading.drift import Dialect
from ctxscope.model import Entry


def log_version(entry: Entry) -> str | None:
    """The version of the log's own form, which its header states; pi does not log which release wrote it."""
    version = entry.data.get("version") if entry.kind == "session" else None
    return str(version) if isinstance(version, int) and not isinstance(version, bool) else None


DIALECT = Dialect(
    title="pi with log version",
    versions=("1", "2", "3"),
    version=log_version,
    kinds={
        "session": ("version", "cwd", "parentSession"),
        "message": ("message",),
        "model_change": ("provider", "modelId"),
        "thinking_level_change": ("thinkingLevel",),
        "usage": ("kind", "provider", "model", "usage", "note"),
        "label": ("targetId", "label"),
        "session_info": ("name",),
        "custom": ("customType", "data"),
        "custom_message": ("customType", "content", "display", "details"),
        "branch_summary": ("fromId", "summary", "details", "usage", "fromHook"),
        "compaction": (
            *("summary", "firstKeptEntryId", "tokensBefore", "details", "fromHook", "usage", "systemMessage"),
            "firstKeptEntryIndex",
        ),
        "context_edit": ("targetId", "replacement"),
    },
    common=("type", "id", "parentId", "timestamp"),
)
