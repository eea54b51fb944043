"""What a new process makes of the stored rows: it loads them all, and serves them in their loaded form (hermes.md §4.1)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ctxscope.agents import Before, Log
from ctxscope.agents.hermes.canonical import sent_content
from ctxscope.agents.hermes.generations import rows_of
from ctxscope.agents.hermes.log import notes_of
from ctxscope.agents.hermes.rows import Row
from ctxscope.model import NEXT_INPUT, Body, Place, Record, Resume

_IMAGE = re.compile(rb'"type":\s*"(?:image|image_url|input_image)"')
_MEMORY = re.compile(rb"<\s*memory-context\s*>", re.IGNORECASE)
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
    changes = tuple(_changes(rows, served)) if served is not None else ()
    return Resume((record,), {"loaded_before": row["id"], "split": None}, {}, changes, tuple(_doubts(served)))


def _changes(rows: Sequence[Row], served: Body) -> Iterator[str]:
    """What of the last request loaded rows do without (hermes.md §4.1, §9.1)."""
    messages = [served.data[s.start : s.end] for s in served.segments if s.kind == "message"]
    images = sum(len(_IMAGE.findall(message)) for message in messages)
    if images:
        yield f"{_many(images, 'image')} {'is' if images == 1 else 'are'} left out"
    cut = (row for row in rows if row.active and row.role == "user" and _is_cut(row.entry.data))
    if any(_MEMORY.search(message) for message in messages) and next(cut, None) is not None:
        yield "recalled memory is cut from what was typed"
    named = sum(map(_is_named, messages)) if served.api == "openai-chat" else 0
    if named:
        yield f"{_many(named, 'tool result')} {'loses its' if named == 1 else 'lose their'} name"
    if _is_split(served):
        yield "the system prompt is sent in one block: where it was split is not stored"


def _is_cut(data: Mapping[str, Any]) -> bool:
    return bool(sent_content(data, loaded=True) != sent_content(data, loaded=False))


def _is_named(message: bytes) -> bool:
    """Whether it is a tool result with the name of its tool, as only live rows have it."""
    try:
        told = json.loads(message)
    except ValueError:
        return False
    return isinstance(told, dict) and told.get("role") == "tool" and "name" in told


def _many(count: int, what: str) -> str:
    return f"one {what}" if count == 1 else f"{count} {what}s"


def _doubts(served: Body | None) -> Iterator[str]:
    if served is None:
        yield "what this log does not hold (the request's parameters, tools) no recorded request shows"
    elif _is_split(served):
        yield "a new process may find the split of the system prompt again; it did not in what was measured"


def _is_split(served: Body) -> bool:
    return served.api == "anthropic-messages" and sum(s.kind == "system" for s in served.segments) > 1
