"""What a new process makes of a session: it reads the current rows back, system prompt and all, and adds to them (kimi.md §4)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ctxscope.agents import Before, Log
from ctxscope.agents.kimi.chapter import Chapter, begins
from ctxscope.agents.kimi.disk import CONTEXT
from ctxscope.agents.kimi.rows import calls_of
from ctxscope.agents.kimi.story import story_of
from ctxscope.model import NEXT_INPUT, Place, Record, Resume
from ctxscope.wire.json_text import py

_TOLD_STEPS = "<system>CHECKPOINT "
"""How the rows begin by which a model is told of its checkpoints, where it may go back to one."""


def resume(log: Log, before: Before) -> Resume | None:  # noqa: ARG001 - the face's signature
    """A turn's checkpoint, the input, and its first step's checkpoint; see ``Agent.resume``.

    ``None`` for one file of a session alone, without an answer, where the model is told of its checkpoints, and behind a
    tool call without a result.
    """
    chapters = story_of(log).order()
    if log.ref.paths[0].name != CONTEXT or not chapters or not any(s.answer for c in chapters for s in c.steps):
        return None
    chapter = chapters[-1]
    if _is_open(chapter) or any(begins(m, _TOLD_STEPS) for m in chapter.messages):
        return None
    last = chapter.rows[-1]
    rows: list[Mapping[str, Any]] = [
        {"role": "_checkpoint", "id": chapter.checkpoints},
        {"role": "user", "content": NEXT_INPUT},
        {"role": "_checkpoint", "id": chapter.checkpoints + 1},
    ]
    records = tuple(
        Record(
            last.source, str(number), Place(last.place.log, f"line {number}"), py(row).encode("utf-8", "surrogatepass")
        )
        for number, row in enumerate(rows, last.place.number + 1)
    )
    return Resume(records, unknown=("tools are those that the settings and the servers name when the process starts",))


def _is_open(chapter: Chapter) -> bool:
    """Whether a tool call of the last answer has no result."""
    open_calls: set[str] = set()
    for message in chapter.messages:
        if message.kind == "assistant":
            open_calls = {str(call.get("id")) for call in calls_of(message.data)}
        elif message.kind == "tool":
            open_calls.discard(str(message.data.get("tool_call_id")))
    return bool(open_calls)
