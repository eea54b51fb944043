"""What a new process makes of the stored rows: it loads them all, and serves them in their loaded form (hermes.md §4.1)."""

from __future__ import annotations

from collections.abc import Iterator

from ctxscope.agents import Before, Log
from ctxscope.agents.hermes.generations import rows_of
from ctxscope.agents.hermes.log import notes_of
from ctxscope.model import NEXT_INPUT, Body, Place, Record, Resume

_STARTED = 1.0
"""Seconds after the last row at which the next one is taken to be written: only their order counts."""


def resume(log: Log, before: Before) -> Resume | None:
    """A further user row, and every row before it loaded; see ``Agent.resume``."""
    rows = [row for row in rows_of(log) if not row.gone]
    if not rows or "_delegate_from" in notes_of(log):
        return None
    last = max(rows, key=lambda row: row.id)
    row = {
        **dict.fromkeys(last.entry.data),
        "id": last.id + 1,
        "session_id": last.entry.data.get("session_id"),
        "role": "user",
        "content": NEXT_INPUT,
        "timestamp": last.ts + _STARTED,
        "active": 1,
        "compacted": 0,
    }
    source = last.entry.source
    record = Record(source, str(row["id"]), Place(last.entry.place.log, f"row {row['id']}"), row)
    served = before[-1][1] if before else None
    changes = tuple(_changes(served)) if served is not None else ()
    return Resume((record,), {"loaded_before": row["id"], "split": None}, {}, changes, tuple(_doubts(served)))


def _changes(served: Body) -> Iterator[str]:
    """What loaded rows look like that were served live until now (hermes.md §4.1, §9.1)."""
    yield "every stored row is loaded again: images are left out, recalled memory is cut from what was typed"
    if served.api == "openai-chat":
        yield "tool results lose their name, and tool calls are spelt as they are stored"
    if _is_split(served):
        yield "the system prompt is sent in one block: where it was split is not stored"


def _doubts(served: Body | None) -> Iterator[str]:
    if served is None:
        yield "what this log does not hold (the request's parameters, tools) no recorded request shows"
    elif _is_split(served):
        yield "a new process may find the split of the system prompt again; it did not in what was measured"


def _is_split(served: Body) -> bool:
    return served.api == "anthropic-messages" and sum(s.kind == "system" for s in served.segments) > 1
