"""Events of a chat that rewrite or leave its history (qwen.md §5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ctxscope.agents import Log
from ctxscope.agents.qwen.replay import replay
from ctxscope.model import Marker, Place, quoted


def markers(log: Log) -> Sequence[Marker]:
    """Markers in file order; that a file began as a copy of another stands first."""
    told = replay(log)
    calls = [*told.calls, *([told.waiting] if told.waiting is not None else [])]
    keys = [c.answer.key if c.answer else f"after:{c.last.key}" for c in calls]

    def key(before: int) -> str | None:
        return keys[before] if before < len(keys) else None

    found = [
        Marker(
            event.kind,
            key(event.before),
            logged=True,
            where=event.where,
            place=event.place,
            before_tokens=event.tokens[0],
            after_tokens=event.tokens[1],
            dropped=event.dropped,
        )
        for event in told.happened
    ]
    return [*_branched(log, keys, [c.answer.data if c.answer else c.last.data for c in calls]), *found]


def _branched(log: Log, keys: Sequence[str], answers: Sequence[Mapping[str, Any]]) -> list[Marker]:
    """A session branched off another: its first lines are copies."""
    copied = [entry for entry in log.entries if isinstance(entry.data.get("forkedFrom"), Mapping)]
    if not copied:
        return []
    origin = copied[0].data["forkedFrom"].get("sessionId")
    first = next((k for k, a in zip(keys, answers, strict=True) if not isinstance(a.get("forkedFrom"), Mapping)), None)
    place: Place = copied[-1].place
    where = f"branched off session {quoted(str(origin))}; the lines up to here are copies"
    return [Marker("resume", first, logged=True, where=where, place=place)]
