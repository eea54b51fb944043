"""Events of a rollout that rewrite, leave or go on with a history (codex.md §5)."""

from __future__ import annotations

from collections.abc import Sequence

from ctxscope.agents import Log
from ctxscope.agents.codex.calls import Event
from ctxscope.agents.codex.disk import parent_of
from ctxscope.agents.codex.fold import folded
from ctxscope.agents.codex.points import call_of, lineage_of, requests
from ctxscope.model import Marker, Point


def markers(log: Log) -> Sequence[Marker]:
    """Markers in the order of the log."""
    fold, points = folded(log), requests(log)
    found: list[Marker] = []
    parent = parent_of(fold.header)
    if parent is not None:
        own = next((p.key for p in points if not p.data.get("copied")), None)
        how = "a subagent of" if lineage_of(fold.header)[0] == "subagent" else "forked from"
        found.append(Marker("resume", own, logged=True, where=f"{how} session {parent}", place=fold.header_place))
    return (*found, *(_marker(event, points) for event in fold.events))


def _marker(event: Event, points: Sequence[Point]) -> Marker:
    after = points[event.call] if event.call < len(points) else None
    return Marker(
        event.kind,
        after.key if after is not None and call_of(after) is not None else None,
        logged=True,
        where=event.where,
        place=event.place,
        before_tokens=event.before,
        after_tokens=event.after,
        dropped=event.dropped,
    )
