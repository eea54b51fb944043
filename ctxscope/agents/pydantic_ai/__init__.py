"""pydantic-ai: the message history an application stores (2.51.0 and 2.68.0; pydantic_ai.md).

The library writes no log. A history holds what was said and what came back, not the parameters it was sent with, and
nothing of a run that failed. The face every agent has; what it does stands in the files beside it.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from pathlib import Path

from ctxscope.agents import Before, Log
from ctxscope.agents.pydantic_ai import body as bodies
from ctxscope.agents.pydantic_ai import disk, history, learning, points, reading
from ctxscope.model import (
    Body,
    CallKind,
    Config,
    CtxscopeError,
    Difference,
    Endpoint,
    Entry,
    Learned,
    Marker,
    Named,
    Point,
    Rebuilt,
    Record,
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


def container(ref: SessionRef) -> SourceSpec:
    """Never asked for: a file is one conversation, and its reference has an id."""
    raise CtxscopeError(f"{ref.paths[0]}: a history file holds one conversation, found a request for a list of them")


def members(ref: SessionRef, records: Iterable[Record]) -> Iterable[SessionRef]:  # noqa: ARG001 - the face's signature
    """The conversation itself: a file holds no other."""
    return (ref,)


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


def family(ref: SessionRef) -> Iterable[SessionRef]:  # noqa: ARG001 - the face's signature
    """None: the files of one conversation are one session."""
    return ()


def named(headers: Mapping[str, str], body: Body) -> Named:  # noqa: ARG001 - the face's signature
    """Nothing: a request names no conversation."""
    return Named()


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


def error_line(log: Log, point: Point) -> str | None:  # noqa: ARG001 - the face's signature
    """Nothing: a run that failed leaves nothing in the history."""
    return None


def markers(log: Log) -> Sequence[Marker]:
    """Changes of the model."""
    return reading.markers(log)


def estimate(log: Log, point: Point) -> int | None:  # noqa: ARG001 - the face's signature
    """None: the library estimates nothing."""
    return None


def naive(log: Log, point: Point) -> int | None:
    """ceil(characters / 4) of the context's messages as stored, every field."""
    told = points.transcript_of(log, point)
    return math.ceil(told.characters[point.data["length"]] / 4) if told is not None else None


def sidecars(log: Log, point: Point) -> Sequence[str]:  # noqa: ARG001 - the face's signature
    """None: nothing is stored beside a message and sent instead of it."""
    return ()


def notices(log: Log) -> Sequence[str]:
    """Answers that were cut, what is not rebuilt, and what is not known of the history."""
    return reading.notices(log)
