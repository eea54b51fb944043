"""Why a provider renders otherwise what a client only added to (prompt_caching §8, §9: C18, C27)."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ctxscope.analysis.break_causes import LEVELS, Cause
from ctxscope.analysis.evidence import Case
from ctxscope.analysis.prompts import Prompt
from ctxscope.model import Segment

_COMPACTED, _PASSING = re.compile(rb'"type"\s*:\s*"compaction"'), b'"clear_at"'
_HEAD_BYTES = 200
"""Of a block, in which its type stands."""


def server_causes(case: Case) -> Iterator[Cause]:
    """What the provider takes out of a prompt that goes on as it was sent."""
    if case.around.edits:
        why = f"the provider says that it took out of this request: {', '.join(case.around.edits)}"
        places = range(case.theirs.head, len(case.theirs.segments))
        place = next((i for i in places if case.theirs.segments[i].block == "tool_result"), case.theirs.head)
        yield Cause("server_context_edit", why, (LEVELS["message"], place), place=place)
    yield from _dropped(case)
    stripped = _stripped(case)
    if stripped is not None:
        why = "this model is not shown reasoning of earlier turns, and a further input begins a new one"
        known = case.rules.rows.get("reasoning")
        sure = known is not None and known.known == "documented"
        yield Cause("reasoning_stripped_server", why, (LEVELS["message"], stripped), place=stripped, sure=sure)


def _dropped(case: Case) -> Iterator[Cause]:
    """What the provider no longer shows once something new follows: all before a summary of its own, a passing note."""
    theirs, mine = case.theirs, case.mine
    fresh = range(len(theirs.segments), len(mine.segments))
    if mine.api != "anthropic-messages":
        return
    if any(_COMPACTED.search(mine.sent(i)[:_HEAD_BYTES]) for i in fresh):
        why = "a compaction block follows, and the provider leaves out all messages before it"
        yield Cause("compaction", why, (LEVELS["message"], 0), place=theirs.head)
    if not any(_is_input(mine.segments[i]) for i in fresh):
        return
    passing = (i for i in range(theirs.head, len(theirs.segments)) if theirs.segments[i].role == "system")
    place = next((i for i in passing if _PASSING in _message(theirs, i)), None)
    if place is not None:
        why = "a note that is shown until the next input is not shown any more"
        yield Cause("server_context_edit", why, (LEVELS["message"], place), place=place)


def _message(prompt: Prompt, place: int) -> bytes:
    """A message of one block with what stands around it, as sent."""
    data = prompt.load().data
    end = prompt.segments[place + 1].start if place + 1 < len(prompt.segments) else len(data)
    start = prompt.segments[place - 1].end if place else 0
    return data[start:end]


def _stripped(case: Case) -> int | None:
    """Place of the first reasoning that the model was shown in the parent's turn, and is not in a turn begun since."""
    if case.rules.reasoning != "last_turn":
        return None
    theirs, mine = case.theirs.segments, case.mine.segments
    if not any(map(_is_input, mine[len(theirs) :])):
        return None
    began = next((i for i in range(len(theirs) - 1, -1, -1) if _is_input(theirs[i])), -1)
    return next((i for i in range(began + 1, len(theirs)) if theirs[i].block == "thinking"), None)


def _is_input(segment: Segment) -> bool:
    """Whether a segment is what a user says, not a tool's result."""
    return segment.kind == "message" and segment.role == "user" and segment.block != "tool_result"
