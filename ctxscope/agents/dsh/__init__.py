"""DeepSeek Harness: numbered events in a compressed log, which v4 sends along with each request (v0, v3, v4; dsh.md).

The harness itself claims that what the model sees follows from the log; nothing of that is learned here. The face every
agent has; what it does stands in the files beside it.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from pathlib import Path

from ctxscope.agents import Before, Log
from ctxscope.agents.dsh import body as bodies
from ctxscope.agents.dsh import disk, learning, lines, points, reading
from ctxscope.agents.dsh import estimate as estimating
from ctxscope.agents.dsh import markers as events
from ctxscope.agents.dsh import resume as resuming
from ctxscope.agents.dsh.story import story
from ctxscope.model import (
    Body,
    CallKind,
    Compacted,
    Config,
    Difference,
    Endpoint,
    Entry,
    Estimate,
    Learned,
    Marker,
    Named,
    Point,
    Rebuilt,
    Record,
    Resume,
    SessionRef,
    SourceSpec,
)

name = "dsh"
title = "DeepSeek Harness"
learnable = learning.LEARNABLE


def discover(home: Path) -> Iterable[SessionRef]:
    """Sessions under ``<home>/.dsh/sessions``; of several generations of a log the newest."""
    return disk.discover(home)


def claims(path: Path, head: bytes) -> float:
    """How surely a file is a log of the harness, by its first line."""
    return disk.claims(path, head)


def refs(path: Path, home: Path) -> Iterable[SessionRef]:
    """The one session in a file; raises ``CtxscopeError`` when its first line is not the harness's header."""
    return tuple(disk.refs(path, home))


def sources(ref: SessionRef) -> tuple[SourceSpec, ...]:
    """The log alone."""
    return disk.sources(ref)


def family(ref: SessionRef) -> Iterable[SessionRef]:
    """Forks, subagents' sessions and what a session goes on from, in its working directory's folder."""
    return disk.family(ref)


def entries(record: Record) -> Iterable[Entry]:
    """One entry a line; what is not understood is ``unknown``. Never raises."""
    return lines.entries(record)


def config(log: Log) -> Config:
    """The window as the log names it."""
    return reading.config(log)


def requests(log: Log) -> Sequence[Point]:
    """A point per attempt at a request: of a step, a compaction, a title; those that wait come last."""
    return points.requests(log)


def endpoint(log: Log, point: Point) -> Endpoint:
    """As the request's header says."""
    return points.endpoint(log, point)


def basis(log: Log, point: Point) -> Hashable:  # noqa: ARG001 - the face's signature
    """Nothing: what a request was made of never changes once something came of it."""
    return ()


def named(headers: Mapping[str, str], body: Body) -> Named:
    """The session by its header, and the place in the log that a v4 body states."""
    return reading.named(headers, body)


def classify(body: Body) -> CallKind | None:
    """``compaction`` and ``side`` (a title) by their fixed texts, ``main`` where there are tools, else ``None``."""
    return learning.classify(body)


def learn(log: Log, point: Point, body: Body, before: Before) -> Learned:
    """The packages loaded, a compaction's instruction, and places no acceptance states."""
    return learning.learn(log, point, body, before)


def rebuild(log: Log, point: Point, config: Config, learned: Learned) -> Rebuilt | None:
    """The whole body the log implies; ``None`` behind a record that voids the log, and for other providers."""
    return bodies.rebuild(log, point, config, learned)


def explain(log: Log, point: Point, difference: Difference, learned: Learned) -> str | None:  # noqa: ARG001 - the face
    """Why served and rebuilt part there, where the harness is known for it."""
    return reading.explain(difference, learned)


def error_line(log: Log, point: Point) -> str | None:  # noqa: ARG001 - the face's signature
    """What a retry or a compaction that was given up says went wrong."""
    return points.error_line(point)


def markers(log: Log) -> Sequence[Marker]:
    """Prunes, compactions, processes that went on with a session, model and tool changes, steering."""
    return events.markers(log)


def compactions(log: Log) -> Sequence[Compacted]:
    """What each prune and compaction found and left, by the harness's estimator reproduced."""
    return events.compactions(log)


def resume(log: Log, before: Before) -> Resume | None:
    """What a process that goes on with a log of format 4 writes before it asks."""
    return resuming.resume(log, before)


def estimates(log: Log, point: Point) -> tuple[Estimate, ...]:
    """The harness's own estimate of what the model saw and of the tools (dsh.md §6)."""
    request = points.request_of(point)
    if request.kind != "main":
        return ()
    told = story(log)
    return (estimating.estimate(told.surface_of(request), told.head_of(request)),)


def naive(log: Log, point: Point) -> int | None:
    """ceil(characters / 4) of the context's messages as logged, every field."""
    request = points.request_of(point)
    if request.kind != "main":
        return None
    return estimating.of_characters(story(log).surface_of(request))


def notices(log: Log) -> Sequence[str]:
    """Records not known, what voids the log, and compactions that were given up."""
    return reading.notices(log)
