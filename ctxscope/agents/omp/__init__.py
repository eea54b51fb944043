"""omp (oh-my-pi 18): a fork of pi whose log is rewritten in place, with images and shaken text outside it (omp.md).

The face every agent has; what it does stands in the files beside it.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from pathlib import Path

from ctxscope.agents import Before, Log
from ctxscope.agents.omp import body as bodies
from ctxscope.agents.omp import compactions as shortened
from ctxscope.agents.omp import disk, learning, lines, points, reading, settings, sync
from ctxscope.agents.omp import estimate as estimating
from ctxscope.agents.omp import markers as events
from ctxscope.agents.omp.store import store
from ctxscope.model import (
    Block,
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
    SessionRef,
    SourceSpec,
    Window,
)

name = "omp"
title = "oh-my-pi"
always = {
    "anthropic-messages": ("model", "messages", "stream"),
    "openai-chat": ("model", "messages", "stream"),
    "openai-responses": ("model", "input", "stream"),
    "gemini": ("contents",),
}
learnable = learning.LEARNABLE


def discover(home: Path) -> Iterable[SessionRef]:
    """Sessions under ``<home>/.omp/agent/sessions``."""
    return disk.discover(home)


def claims(path: Path, head: bytes) -> float:
    """How surely a file is an omp session, by its title slot and header."""
    return disk.claims(path, head)


def refs(path: Path, home: Path) -> Iterable[SessionRef]:
    """The one session in a file; raises ``CtxscopeError`` when it does not begin as omp's do."""
    return tuple(disk.refs(path, home))


def sources(ref: SessionRef) -> tuple[SourceSpec, ...]:
    """The session file, the artifacts of shaken text in its folder, the blobs it names; settings and model table."""
    return disk.sources(ref)


def family(ref: SessionRef) -> Iterable[SessionRef]:
    """Forks in the same folder, and subagents' logs in the folder of artifacts."""
    return tuple(disk.family(ref))


def entries(record: Record) -> Iterable[Entry]:
    """One entry a line or side file; what is not understood is ``unknown``. Never raises."""
    return lines.entries(record)


def config(log: Log) -> Config:
    """Window, threshold and tail, as config.yml and models.yml say where they are there."""
    return settings.config(log)


def window(log: Log, point: Point, config: Config) -> Window:  # noqa: ARG001 - the face's signature
    """Window and threshold of the model a call goes to."""
    return settings.window(log, point)


def due(log: Log, config: Config, window: int) -> int | None:  # noqa: ARG001 - the face's signature
    """The threshold of the settings, or of omp's own rule where they say nothing; ``None`` where they turn compaction off."""
    return settings.due(log, window)


def requests(log: Log) -> Sequence[Point]:
    """One point per answer that a request asked for, per logged side call, and one for a message still waiting."""
    return points.requests(log)


def endpoint(log: Log, point: Point) -> Endpoint:  # noqa: ARG001 - the face's signature
    """As the answer says; for one not logged yet the model set, with the API it last spoke."""
    return reading.endpoint(point)


def basis(log: Log, point: Point) -> Hashable:  # noqa: ARG001 - the face's signature
    """The side files seen: an image or a shaken text may be restored since."""
    return store(log).version


def named(headers: Mapping[str, str], body: Body) -> Named:
    """The session a request names in header, cache key or metadata."""
    return reading.named(headers, body)


def classify(body: Body) -> CallKind | None:
    """``compaction`` for a summary request by its fixed text, else ``None``."""
    return reading.classify(body)


def learn(log: Log, point: Point, body: Body, before: Before) -> Learned:
    """Values and forms the log does not hold; where an earlier call showed one, the earlier one holds."""
    return learning.learn(log, point, body, before)


def rebuild(log: Log, point: Point, config: Config, learned: Learned) -> Rebuilt | None:  # noqa: ARG001
    """The whole body the log implies; ``None`` for an API that is not rebuilt, and for a side call."""
    return bodies.rebuild(log, point, learned)


def remarks(log: Log, point: Point, before: Before, learned: Learned) -> Sequence[str]:
    """What a call did to the append-only context, as the log implies it (omp.md §4.9)."""
    return sync.remarks(log, point, before, learned)


def explain(log: Log, point: Point, difference: Difference, learned: Learned) -> str | None:
    """Why served and rebuilt part there, where omp is known for it."""
    return reading.explain(log, point, difference, learned)


def received(block: Block) -> Block:
    """A block of a reply or a request as omp names it in its log: tool names without Claude Code's prefix."""
    return points.received(block)


def error_line(log: Log, point: Point) -> str | None:
    """The message of the answer that failed, or of the abort that came before the request."""
    return points.error_line(log, point)


def markers(log: Log) -> Sequence[Marker]:
    """Compactions by method, rewrites in place, steering, resets, moves in the tree, model changes, forks, resumes."""
    return events.markers(log)


def compactions(log: Log) -> Sequence[Compacted]:
    """What each compaction found, kept and left."""
    return shortened.compactions(log)


def estimates(log: Log, point: Point) -> tuple[Estimate, ...]:
    """Omp's estimate of the context, head included, and what its compaction floor makes of it."""
    return estimating.estimates(log, point)


def naive(log: Log, point: Point) -> int | None:
    """ceil(characters / 4) of the context's lines as logged, every field."""
    return estimating.naive(log, point)


def notices(log: Log) -> Sequence[str]:
    """Lines that could not be read, failed calls, missing blobs, records and fields not known."""
    return reading.notices(log)
