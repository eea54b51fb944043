"""What rewrote a session's history: summaries, cleared outputs, undone messages, other models (opencode.md §5)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from ctxscope.agents import Log
from ctxscope.agents.opencode.history import Asked, Said, cleared_at, history_of
from ctxscope.agents.opencode.points import asked_at, begun_at, requests
from ctxscope.model import Marker, Place, Point

_WORDS = {
    "compaction": "replaced {} messages by a summary",
    "prune": "cleared the outputs of {} tool calls",
    "rewind": "went back before {} messages",
}


def markers(log: Log) -> Sequence[Marker]:
    """Each in front of the first call that reads what it left."""
    own = [p for p in requests(log) if p.kind != "compaction"]
    between = [m for one, other in pairwise([None, *own]) if other is not None for m in _between(one, other)]
    return [*_seam(log, own), *between]


def _seam(log: Log, own: Sequence[Point]) -> Iterator[Marker]:
    """Where a fork goes on from the messages that were copied into it."""
    history, begun = history_of(log), begun_at(log)
    copied = [name for created, name in history.order if created < begun]
    last = history.messages[copied[-1]].entry if copied else None
    if last is not None:
        where = f"goes on from {len(copied)} messages copied from another session"
        yield Marker("resume", own[0].key if own else None, logged=True, where=where, place=last.place)


def _between(before: Point | None, point: Point) -> Iterator[Marker]:
    if before is None:
        return
    one, other = asked_at(before), asked_at(point)
    if other.cause:
        place, dropped = _dropped(one, other)
        tokens = before.stored_usage
        yield Marker(
            other.cause,
            point.key,
            logged=True,
            where=_WORDS[other.cause].format(len(dropped)),
            place=place,
            before_tokens=tokens.reported if tokens and other.cause == "compaction" else None,
            dropped=dropped,
        )
    if one.answer.model != other.answer.model:
        where = f"{'/'.join(one.answer.model)} to {'/'.join(other.answer.model)}"
        yield Marker("model_switch", point.key, logged=True, where=where, place=point.place)


def _dropped(one: Asked, other: Asked) -> tuple[Place | None, tuple[Place, ...]]:
    """Where it happened, and what the later call no longer reads."""
    if other.cause == "prune":
        parts = [p for s in _read(other) for p in s.parts if p.kind == "tool" and cleared_at(p)]
        gone = [p.place for p in parts if one.thread.moment < cleared_at(p) <= other.thread.moment]
        return (gone[0] if gone else None), tuple(gone)
    kept = {s.id for s in _read(other)}
    dropped = tuple(s.entry.place for s in (*_read(one), one.answer) if s.id not in kept)
    summary = next((s.entry.place for s in _read(other) if s.is_summary), None)
    return (summary if other.cause == "compaction" else dropped[0] if dropped else None), dropped


def _read(asked: Asked) -> Sequence[Said]:
    return asked.thread.said[: asked.length]
