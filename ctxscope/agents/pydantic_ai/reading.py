"""Markers, causes and notices that a stored history gives (pydantic_ai.md §5)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ctxscope.agents import Log
from ctxscope.agents.pydantic_ai.body import unknown_parts
from ctxscope.agents.pydantic_ai.history import DIALECT
from ctxscope.agents.pydantic_ai.points import conversation, disagreements, requests, transcript_of
from ctxscope.agents.pydantic_ai.transcript import Transcript
from ctxscope.agents.reading import drift
from ctxscope.model import Difference, Learned, Marker, Point, quoted
from ctxscope.wire.blocks import listed, mapped

_BULK, _PROMPT = ("/messages", "/system"), ("/messages/0", "/system")


def markers(log: Log) -> Sequence[Marker]:
    """Changes of the model between one answer and the next; other events leave no trace in a history."""
    found, last = [], None
    for point in requests(log):
        model = point.data["model"]
        if point.answer is not None and model is not None:
            if last is not None and model != last:
                words = f"the model was changed: {quoted(last)} to {quoted(model)}"
                found.append(Marker("model_switch", point.key, logged=True, where=words, place=point.place))
            last = model
    return found


def explain(log: Log, point: Point, difference: Difference, learned: Learned) -> str | None:
    """Causes pydantic-ai is known for; ``None`` where it is not."""
    if difference.path.startswith(_PROMPT) and _dynamic(transcript_of(log, point)):
        return "a system prompt is dynamic: the history holds what it said last, and no file of that time is there"
    top = "/" + difference.path.partition("/")[2].partition("/")[0]
    if top in learned.values and learned.choice.get("told"):
        return (
            f"{top[1:]} is not in the history, and the call answered at {learned.choice['told']} was sent another value"
        )
    if difference.path.startswith(_BULK) and difference.cls in {"missing", "extra"}:
        return "a history processor, or an edit of the history, may have changed what is sent: neither is stored"
    return None


def _dynamic(told: Transcript | None) -> bool:
    parts = (mapped(p) for e in told.entries for p in listed(e.data.get("parts"))) if told is not None else ()
    return any(part.get("dynamic_ref") is not None for part in parts)


def notices(log: Log) -> tuple[str, ...]:
    """Answers that were cut, parts that are not rebuilt, files that break off, and what is not known of the history."""
    return (*_cut(requests(log)), *_unread(log), *drift.notices(log, DIALECT))


def _cut(points: Sequence[Point]) -> Iterator[str]:
    for point in points:
        if point.stop is not None and point.stop.state == "truncated" and point.answer is not None:
            state = point.answer.data.get("state")
            told = f"; that its state is {quoted(state)} does not say otherwise" if isinstance(state, str) else ""
            yield f"{point.place}: the answer was cut ({quoted(str(point.stop.reason))}){told}"


def _unread(log: Log) -> Iterator[str]:
    told = conversation(log)
    for entry in told.torn:
        yield f"{entry.source} {entry.place}: breaks off after {entry.data['messages']} messages"
    for one, other in disagreements(log):
        paths = log.ref.paths
        names = [paths[e.place.log].name if e.place.log < len(paths) else e.source for e in (one, other)]
        yield f"{names[0]}, {one.place}: another message than {names[1]} holds there; of an answer in both, the older file tells what was sent"
    for transcript in told.transcripts.values():
        for entry, what in unknown_parts(transcript):
            yield f"{entry.place}: {what} is not rebuilt, nor are the requests that hold it"
