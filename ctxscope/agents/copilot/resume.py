"""What a new run makes of a session: it reads the messages from the log, and sends what stands there alone (copilot.md §4, §5)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ctxscope.agents import Before, Log
from ctxscope.agents.copilot.events import payload
from ctxscope.agents.copilot.learning import known_of
from ctxscope.agents.copilot.spelling import raw
from ctxscope.agents.copilot.story import story
from ctxscope.agents.copilot.trail import Item, Trail
from ctxscope.model import NEXT_INPUT, Place, Record, Resume
from ctxscope.wire.blocks import string

_DOUBTS = (
    "the time is written before the input: here it is that of the last one",
    "the system prompt is sent anew where it changed (folder, instructions, version): here it is the last one",
)
_NAME = "next"
"""How the ids of the events begin that the run would write."""


def resume(log: Log, before: Before) -> Resume | None:
    """The event of the resume, the input, and the beginning of its first call; see ``Agent.resume``.

    ``None`` where the log does not tell what was sent last, either.
    """
    told = story(log)
    trail = told.trails.get("main")
    if trail is None or trail.call is None or trail.rewritten is not None:
        return None
    last = log.entries[-1]
    events: list[tuple[str, dict[str, Any]]] = [
        ("session.resume", {"selectedModel": trail.model[0], "context": {"cwd": told.directory}}),
        ("user.message", {"content": NEXT_INPUT, "transformedContent": _around(trail)}),
        ("assistant.turn_start", {"turnId": "0"}),
    ]
    if trail.effort[0]:
        events[0][1]["reasoningEffort"] = trail.effort[0]
    number = max(e.place.number for e in log.entries)
    records = tuple(
        Record(
            last.source,
            str(number + at),
            Place(last.place.log, f"line {number + at}"),
            raw({"type": kind, "data": data, "id": f"{_NAME} {at}", "timestamp": last.data.get("timestamp")}),
        )
        for at, (kind, data) in enumerate(events, 1)
    )
    own = [item for item in trail.items if item.process == told.process]
    return Resume(records, {}, {}, tuple(_changes(log, before, own)), _DOUBTS)


def _around(trail: Trail) -> str:
    """The input in the words that stood around the last one (the time among them)."""
    said: Mapping[str, Any] = payload(trail.said[-1]) if trail.said else {}
    content, sent = string(said.get("content")), string(said.get("transformedContent"))
    start, found, end = sent.partition(content) if content else ("", "", "")
    return f"{start}{NEXT_INPUT}{end}" if found else NEXT_INPUT


def _changes(log: Log, before: Before, own: Sequence[Item]) -> Iterator[str]:
    """What the run that ends sent of its own messages, and the next one does not."""
    tools = sum(item.role == "tool" for item in own)
    if tools:
        yield f"{_many(tools, 'tool result')} {'is' if tools == 1 else 'are'} sent with where {_IT[tools == 1]} came from"
    known = known_of(log, before)
    taken = [t for item in own if known is not None and (t := known.of(item)) is not None]
    details = sum(t.details is not None for t in taken)
    thoughts = sum(bool(payload(item.entry).get("reasoningText")) for item in own if item.role == "assistant")
    if details or thoughts:
        lost = max(details, thoughts)
        yield f"{_many(lost, 'answer')} {'loses' if lost == 1 else 'lose'} the reasoning that went back with {_THEM[lost == 1]}"
    spelt = sum(len(t.arguments) for t in taken)
    if spelt:
        yield f"the arguments of {_many(spelt, 'tool call')} are spelt anew from the log"
    if any(item.is_passing for item in own):
        yield "an answer cut at its limit is left out: it is not logged"


_IT = {True: "it", False: "they"}
_THEM = {True: "it", False: "them"}


def _many(count: int, what: str) -> str:
    return f"one {what}" if count == 1 else f"{count} {what}s"
