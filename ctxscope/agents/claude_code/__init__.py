"""Claude Code: a JSONL transcript a session, lines chained by uuid; newer versions keep a record of each request.

The face every agent has; what it does stands in the files beside it (claude_code.md).
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path

from ctxscope.agents import Before, Log
from ctxscope.agents.claude_code import body as bodies
from ctxscope.agents.claude_code import compactions as shortened
from ctxscope.agents.claude_code import disk, kin, learning, lines, points, reading, settings
from ctxscope.agents.claude_code import markers as events
from ctxscope.agents.claude_code import notices as troubles
from ctxscope.agents.claude_code import resume as resuming
from ctxscope.agents.claude_code.tree import tree
from ctxscope.agents.reading import drift
from ctxscope.model import (
    Body,
    CallKind,
    Compacted,
    Config,
    Difference,
    Endpoint,
    Entry,
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

name = "claude_code"
title = "Claude Code"
learnable = learning.LEARNABLE
rereads = True


def discover(home: Path) -> Iterable[SessionRef]:
    """Sessions under ``<home>/.claude/projects``; transcripts of subagents belong to the session that started them."""
    return disk.discover(home)


def claims(path: Path, head: bytes) -> float:
    """How surely a file is a Claude Code transcript, by its first lines."""
    return disk.claims(path, head)


def refs(path: Path, home: Path) -> Iterable[SessionRef]:
    """The one session in a file; raises ``CtxscopeError`` when no line of it is a transcript's."""
    return tuple(disk.refs(path, home))


def sources(ref: SessionRef) -> tuple[SourceSpec, ...]:
    """The transcript, the home's settings, and the transcripts of the session's subagents as they appear."""
    return disk.sources(ref)


def family(ref: SessionRef) -> Iterable[SessionRef]:
    """Sessions of the same folder that were forked from this one or that it was forked from."""
    return kin.family(ref)


def entries(record: Record) -> Iterable[Entry]:
    """One entry a line; what is not understood is ``unknown``. Never raises."""
    return lines.entries(record)


def index(log: Log) -> None:
    """The chain of new lines, and what of them is not known."""
    tree(log)
    drift.notices(log, troubles.DIALECT)


def config(log: Log) -> Config:
    """The version that wrote the log, and what the home's settings say of compaction and hooks."""
    return settings.config(log)


def requests(log: Log) -> Sequence[Point]:
    """One point per answer, and one for a line still waiting, by time."""
    return points.requests(log)


def endpoint(log: Log, point: Point) -> Endpoint:  # noqa: ARG001 - the face's signature
    """Anthropic's API and the model that answered; the log does not tell the provider."""
    return _endpoint(learning.model_of(point))


@lru_cache
def _endpoint(model: str) -> Endpoint:
    """One object for all calls to a model."""
    return Endpoint("anthropic-messages", None, model or None)


def basis(log: Log, point: Point) -> Hashable:
    """Whether the request's record is there, and how often lines were rewritten."""
    return reading.basis(log, point)


def named(headers: Mapping[str, str], body: Body) -> Named:
    """The session in the request's header (2.1.112 and later), else in its metadata."""
    return reading.named(headers, body)


def classify(body: Body) -> CallKind | None:
    """``compaction`` and ``side`` by their fixed texts, else ``None``."""
    return reading.classify(body)


def learn(log: Log, point: Point, body: Body, before: Before) -> Learned:
    """What the log does not hold; where an earlier call of the thread showed it, the earlier one holds."""
    return learning.learn(log, point, body, before)


def rebuild(log: Log, point: Point, config: Config, learned: Learned) -> Rebuilt | None:  # noqa: ARG001 - the face's
    """The body its record stands for, or the one the chain implies."""
    return bodies.rebuild(log, point, learned)


def explain(log: Log, point: Point, difference: Difference, learned: Learned) -> str | None:
    """Why served and rebuilt part there, where Claude Code is known for it."""
    return reading.explain(log, point, difference, learned)


def error_line(log: Log, point: Point) -> str | None:  # noqa: ARG001 - the face's signature
    """The error line behind the input."""
    return points.error_line(point)


def markers(log: Log) -> Sequence[Marker]:
    """Compactions with the hooks around them, restored context, moves in the chain, model changes, the seam of a fork."""
    return events.markers(log)


def compactions(log: Log) -> Sequence[Compacted]:
    """Who asked for each compaction, and how long it took."""
    return shortened.compactions(log)


def resume(log: Log, before: Before) -> Resume | None:
    """The next input's line, and with request records the record of its request."""
    return resuming.resume(log, before)


def naive(log: Log, point: Point) -> int | None:
    """ceil(characters / 4) of the context's lines as logged, every field."""
    trail, length = points.context_of(log, point)
    return math.ceil(reading.characters(log, trail, length) / 4)


def notices(log: Log) -> Sequence[str]:
    """What of the log is not known or not there, and compactions whose configured hooks left no record."""
    return troubles.notices(log)
