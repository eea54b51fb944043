"""What a new process adds to a log that it goes on with, as one of format 4 was seen to do (dsh.md §5)."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

from ctxscope.agents import Before, Log
from ctxscope.agents.dsh import delivery
from ctxscope.agents.dsh.lines import SESSION
from ctxscope.agents.dsh.points import header_of
from ctxscope.agents.dsh.story import Story, story
from ctxscope.agents.dsh.texts import spelled
from ctxscope.model import NEXT_INPUT, Body, Entry, Place, Record, Resume

_UNKNOWN = (
    "a system prompt, tools, a model or packages that were set since",
    "a new snapshot of the runtime context (directory, policies), which would follow the input if it changed",
)
_ALONG = "ids and times in the part of the log that is sent along"


def resume(log: Log, before: Before) -> Resume | None:
    """The records up to the next turn's request; see ``Agent.resume``.

    ``None`` for a subagent's log, for formats whose going on was not seen (v0, v3), where a turn did not end, and for a
    log that the harness refuses.
    """
    told = story(log)
    header = told.header.data if told.header else {}
    subagent = header.get("origin") == "subagent"
    if not told.carries or subagent or told.void is not None or not told.heads or _is_open(log, told):
        return None
    served = before[-1][1] if before else None
    changes: tuple[str, ...] = ()
    choice: dict[str, Any] = {"session": delivery.usual_keys(told, told.run + 1)}
    shown = delivery.stated(served) if served is not None else None
    if shown is not None and shown.session != choice["session"]:
        changes = ("the session's header, sent with the log's new part, has the members it was read with from disk",)
    return Resume(tuple(_records(told)), choice, {}, changes, tuple(_doubts(served)))


def _is_open(log: Log, told: Story) -> bool:
    """Whether a turn or a compaction did not end."""
    flow = next((e.kind for e in reversed(log.entries) if e.kind in ("turn/start", "turn/end")), None)
    return flow != "turn/end" or told.compaction is not None


def _doubts(served: Body | None) -> Iterator[str]:
    yield from _UNKNOWN
    if served is None or delivery.segment(served) is not None:
        yield _ALONG


def _records(told: Story) -> Iterator[Record]:
    """One numbered event after the other, at the time of the log's last."""
    last = told.numbered[told.numbers[-1]]
    for count, (kind, data, more) in enumerate(_events(told), 1):
        number = told.at + count
        record = {"type": kind, "seq": number, "time": last.data.get("time", 0), "data": data, **more}
        line = last.place.number + count
        yield Record(SESSION, str(line), Place(last.place.log, f"line {line}"), spelled(record))


def _events(told: Story) -> Iterator[tuple[str, dict[str, Any], dict[str, Any]]]:
    """Type, data and further members of each."""
    turn, inbox = told.turn + 1, "agent/inbox/spliced"
    said = [{"type": "text", "text": NEXT_INPUT}]
    message = {"content": said, "source": {"kind": "user"}, "role": "user", "id": _id(told)}
    yield "session/end-seed", {}, {}
    yield inbox, {"target": "next-turn", "start": 0, "inserted": [message]}, {}
    yield "turn/start", {"turn": turn}, {}
    yield inbox, {"target": "next-turn", "start": 0, "removedCount": 1, "inserted": []}, {}
    yield "step/start", {"turn": turn, "step": 1}, {}
    yield "user/message", message, {"surfaceOp": "append"}
    yield "request/header", {"header": header_of(_head(told)), "reason": "resume"}, {}


def _head(told: Story) -> Entry:
    return told.heads[-1][1]


def _id(told: Story) -> str:
    """In the form that messages have; made of where it stands, so that it is always the same."""
    session = told.header.data.get("id") if told.header else None
    return str(uuid.uuid5(uuid.NAMESPACE_OID, f"{session} {told.at}"))
