"""What is said of a session's files: lines that cannot be read or are not known, answers that no event tells of."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from ctxscope.agents import Log
from ctxscope.agents.kimi.disk import CONTEXT, WIRE
from ctxscope.agents.kimi.points import requests
from ctxscope.agents.kimi.rows import DIALECT
from ctxscope.agents.reading import drift
from ctxscope.model import Place, Point


def notices(log: Log) -> Sequence[str]:
    """Lines that could not be read, answers without an event, and rows and events that are not known, counted."""
    return (*_unreadable(log), *_untold(log), *drift.notices(log, DIALECT))


def _unreadable(log: Log) -> Iterator[str]:
    bad = [entry for entry in log.entries if entry.kind == "unknown" and not entry.data]
    if bad:
        yield f"{_count(len(bad), 'line')} could not be read; the first is {_where(log, bad[0].place)}"


def _untold(log: Log) -> Iterator[str]:
    """Answers whose events are missing, by file of events: torn, cut or lost, since an event is written before its row."""
    if log.ref.paths[0].name != CONTEXT:  # a file of rows alone: nobody would look for events
        return
    missing: dict[str, list[Point]] = {}
    for point in requests(log):
        if point.data["untold"]:
            missing.setdefault(point.lineage.partition(":")[2], []).append(point)
    for agent, points in missing.items():
        file = f"subagents/{agent}/{WIRE}" if agent else WIRE
        yield (
            f"{_count(len(points), 'answer')} without an event in {file}, the first at {_where(log, points[0].place)}: "
            f"ids and usage of such an answer are not known"
        )


def _where(log: Log, place: Place) -> str:
    """A place with its file, by its path in the session's folder."""
    folder = log.ref.paths[0].parent
    path = log.ref.paths[place.log] if place.log < len(log.ref.paths) else Path()
    name = path.relative_to(folder).as_posix() if path.is_relative_to(folder) else path.name
    return f"{name} {place}"


def _count(many: int, noun: str) -> str:
    return f"{many:,} {noun}{'' if many == 1 else 's'}"
