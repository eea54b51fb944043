"""pydantic-ai: the message history an application stores (2.51.0 and 2.68.0; pydantic_ai.md).

The library writes no log. A history holds what was said and what came back, not the parameters it was sent with, and
nothing of a run that failed. The face every agent has; what it does stands in the files beside it.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from pathlib import Path

from ctxscope.agents import Before, Log
from ctxscope.agents.pydantic_ai import body as bodies
from ctxscope.agents.pydantic_ai import disk, history, learning, points, reading
from ctxscope.agents.pydantic_ai import resume as resuming
from ctxscope.model import (
    Body,
    CallKind,
    Config,
    Difference,
    Endpoint,
    Entry,
    Learned,
    Marker,
    Point,
    Rebuilt,
    Record,
    Resume,
    SessionRef,
    SourceSpec,
)

name = "pydantic_ai"
title = "pydantic-ai"
learnable = learning.LEARNABLE


def discover(home: Path) -> Iterable[SessionRef]:
    """Conversations whose histories lie in ``home`` itself: there is no place of the library's own to look in."""
    return disk.discover(home)


def claims(path: Path, head: bytes) -> float:
    """How surely a file is a message history, by its first message."""
    return disk.claims(path, head)


def refs(path: Path, home: Path) -> Iterable[SessionRef]:
    """The one conversation in a file; raises ``CtxscopeError`` when it is no message history."""
    return tuple(disk.refs(path, home))


def sources(ref: SessionRef) -> tuple[SourceSpec, ...]:
    """The files of the conversation, the fullest first."""
    return disk.sources(ref)


def entries(record: Record) -> Iterable[Entry]:
    """One entry a message, and one for a file's end. Never raises."""
    return history.entries(record)


def config(log: Log) -> Config:  # noqa: ARG001 - the face's signature
    """Nothing: a history says neither version nor limits."""
    return Config()


def requests(log: Log) -> Sequence[Point]:
    """One point before each response, and one for a last request still waiting."""
    return points.requests(log)


def endpoint(log: Log, point: Point) -> Endpoint:  # noqa: ARG001 - the face's signature
    """As the answer says."""
    return points.endpoint(point)


def basis(log: Log, point: Point) -> Hashable:  # noqa: ARG001 - the face's signature
    """Nothing: a request depends on the messages before it alone."""
    return ()


def classify(body: Body) -> CallKind | None:  # noqa: ARG001 - the face's signature
    """Not told: all requests are the application's own."""
    return None


def learn(log: Log, point: Point, body: Body, before: Before) -> Learned:
    """Parameters as the first request to the model had them, and the forms that bodies have shown by now."""
    return learning.learn(log, point, body, before)


def rebuild(log: Log, point: Point, config: Config, learned: Learned) -> Rebuilt | None:  # noqa: ARG001 - the face's signature
    """The whole body; ``None`` for other APIs than Chat Completions and Anthropic, and for parts of unknown form."""
    return bodies.rebuild(log, point, learned)


def explain(log: Log, point: Point, difference: Difference, learned: Learned) -> str | None:
    """Why served and rebuilt part there, where pydantic-ai is known for it."""
    return reading.explain(log, point, difference, learned)


def markers(log: Log) -> Sequence[Marker]:
    """Changes of the model."""
    return reading.markers(log)


def resume(log: Log, before: Before) -> Resume | None:
    """A further prompt behind the stored history, as a run is sent it that goes on with that."""
    return resuming.resume(log, before)


def naive(log: Log, point: Point) -> int | None:
    """ceil(characters / 4) of the context's messages as stored, every field."""
    told = points.transcript_of(log, point)
    return math.ceil(told.characters[point.data["length"]] / 4) if told is not None else None


def notices(log: Log) -> Sequence[str]:
    """Answers that were cut, what is not rebuilt, and what is not known of the history."""
    return reading.notices(log)
