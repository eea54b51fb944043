"""What the agent keeps in memory of a message: the dictionary that its own estimators count (hermes.md §4.1, §6)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, cast

from ctxscope.agents import Log
from ctxscope.agents.hermes.points import reading_of
from ctxscope.agents.hermes.rows import content_of, listed, tool_calls_of
from ctxscope.model import Entry


@dataclass(frozen=True, slots=True)
class Rewritten:
    """A row that a compaction wrote again."""

    batch: bool
    """By a batch compaction, not a micro pass."""
    first: int | None
    """Of a summary, the id under which it was first written; else ``None``."""
    micro: bool
    """A summary that a micro pass made."""


def rewritten_rows(log: Log) -> Mapping[int, Rewritten]:
    """Rows written again by the compactions, by id."""
    reading = reading_of(log)
    known = log.memo.get("hermes.rewritten")
    if known is not None and known[0] is reading:
        return cast("Mapping[int, Rewritten]", known[1])
    found: dict[int, Rewritten] = {}
    first: dict[tuple[str, float], int] = {}
    for generation in reading.generations:
        carried = generation.rows[: generation.carried]
        fresh = [r for r in carried if r.summary and (r.role, r.ts) not in first]
        for row in carried:
            said = first.setdefault((row.role, row.ts), row.id) if row.summary else None
            found[row.id] = Rewritten(any(not r.micro for r in fresh), said, row.micro)
    log.memo["hermes.rewritten"] = (reading, found)
    return found


def notes_of(entry: Entry, rewritten: Rewritten | None, boundary: int) -> dict[str, Any]:
    """The bookkeeping that the agent keeps in a message beside its columns.

    Found by exact arithmetic: with these, and no others, the estimate meets every number of recorded telemetry. A list
    written again carries row ids, and after a batch compaction no mark that it is stored; a summary carries flags, of
    which a process that loads it restores only a micro pass's own.
    """
    notes: dict[str, Any] = {"_db_persisted": True}
    if rewritten is None:
        return notes
    live = entry.data["id"] >= boundary
    if live and rewritten.batch:
        notes = {}
    if live:
        notes["_row_id"] = entry.data["id"]
    if rewritten.first is not None and rewritten.first >= boundary:
        notes |= {"_compressed_summary": True, "_compressed_summary_has_user_turn": True}
    if rewritten.first is not None and rewritten.micro:
        notes["_micro_compact_marker"] = True
    return notes


def memory_of(entry: Entry, *, loaded: bool) -> dict[str, Any]:
    """A row's columns as the dictionary the agent keeps in memory (hermes.md §4.1)."""
    row = entry.data
    out: dict[str, Any] = {"role": row["role"]}
    fields = _loaded_fields(row) if loaded else _live_fields(row)
    out.update((k, v) for k, v in fields if v is not None or (k, loaded) == ("reasoning", False))
    return out


def _live_fields(row: Mapping[str, Any]) -> Iterable[tuple[str, Any]]:
    if row["role"] == "tool":
        return (
            ("name", row.get("tool_name")),
            ("tool_name", row.get("tool_name")),
            ("content", content_of(row)),
            ("tool_call_id", row.get("tool_call_id")),
            ("timestamp", row.get("timestamp")),
        )
    if row["role"] == "user":
        return (
            ("content", content_of(row)),
            ("timestamp", row.get("timestamp")),
            ("api_content", row.get("api_content")),
        )
    if row.get("finish_reason") is None:  # a summary the agent wrote: no reply's fields
        return (("content", content_of(row)), ("timestamp", row.get("timestamp")))
    return (
        ("content", content_of(row)),
        ("reasoning", row.get("reasoning")),
        ("finish_reason", row.get("finish_reason")),
        ("timestamp", row.get("timestamp")),
        ("reasoning_content", row.get("reasoning_content")),
        *((k, listed(row.get(k))) for k in ("reasoning_details", "codex_reasoning_items", "codex_message_items")),
        ("tool_calls", tool_calls_of(row) or None),
        ("api_content", row.get("api_content")),
    )


def _loaded_fields(row: Mapping[str, Any]) -> Iterable[tuple[str, Any]]:
    return (
        ("content", content_of(row)),
        ("api_content", row.get("api_content")),
        ("timestamp", row.get("timestamp")),
        ("tool_call_id", row.get("tool_call_id")),
        ("tool_name", row.get("tool_name")),
        ("effect_disposition", row.get("effect_disposition")),
        ("tool_calls", tool_calls_of(row) or None),
        ("message_id", row.get("platform_message_id")),
        ("observed", True if row.get("observed") else None),
        ("finish_reason", row.get("finish_reason")),
        ("reasoning", row.get("reasoning")),
        ("reasoning_content", row.get("reasoning_content")),
        *((k, listed(row.get(k))) for k in ("reasoning_details", "codex_reasoning_items", "codex_message_items")),
    )
