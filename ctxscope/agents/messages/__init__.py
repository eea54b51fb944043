"""A team's own agent: messages, whole requests or OpenTelemetry GenAI spans, as JSON or JSON lines (wire_formats §1).

The face every agent has; what it does stands in the files beside it. A conversation implies a call for each answer in it;
a logged request is a call itself. The client's spelling and what the log does not hold are learned from served bodies.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from pathlib import Path

from ctxscope.agents import Before, Log
from ctxscope.agents.messages import body as bodies
from ctxscope.agents.messages import disk, fold, learning, lines, reading
from ctxscope.agents.messages.learnable import LEARNABLE
from ctxscope.agents.messages.trail import Trail
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
    SessionRef,
    SourceSpec,
)

name = "messages"
title = "OpenAI or Anthropic messages"
learnable = LEARNABLE


def discover(home: Path) -> Iterable[SessionRef]:
    """Sessions in files directly in a folder; none in the user's own home."""
    return disk.discover(home)


def claims(path: Path, head: bytes) -> float:
    """At most 0.55, and nothing for other agents' files."""
    return disk.claims(path, head)


def refs(path: Path, home: Path) -> Iterable[SessionRef]:
    """The sessions in a file; raises ``CtxscopeError``, saying what was found and expected, when there is none."""
    return tuple(disk.refs(path, home))


def sources(ref: SessionRef) -> tuple[SourceSpec, ...]:
    """The one file, by lines or as a whole."""
    return disk.sources(ref)


def entries(record: Record) -> Iterable[Entry]:
    """Messages, requests and spans; what is none is ``unknown``. Never raises."""
    return lines.entries(record)


def config(log: Log) -> Config:  # noqa: ARG001 - the face's signature
    """Nothing: where a team keeps its limits is not known."""
    return Config()


def requests(log: Log) -> Sequence[Point]:
    """One point per answer, or per logged request, in log order; the last may wait for its answer."""
    return fold.points(log)


def endpoint(log: Log, point: Point) -> Endpoint:  # noqa: ARG001 - the face's signature
    """Model and provider where the log states them, the API by the form of the messages."""
    return reading.endpoint(point)


def basis(log: Log, point: Point) -> Hashable:  # noqa: ARG001 - the face's signature
    """Nothing beside the point."""
    return ()


def classify(body: Body) -> CallKind | None:  # noqa: ARG001 - the face's signature
    """Never known: a team's own prompts are its own."""
    return None


def learn(log: Log, point: Point, body: Body, before: Before) -> Learned:
    """The client's forms and what the log does not hold, each as the first call of the session, or of its kind, shows it."""
    return learning.learn(log, point, body, before)


def rebuild(log: Log, point: Point, config: Config, learned: Learned) -> Rebuilt | None:
    """The whole body the log implies; by value where the log is in another form than the API's."""
    return bodies.rebuild(log, point, config, learned)


def explain(log: Log, point: Point, difference: Difference, learned: Learned) -> str | None:  # noqa: ARG001 - the face's
    """The call that taught a value that differs."""
    return reading.explain(difference, learned)


def error_line(log: Log, point: Point) -> str | None:  # noqa: ARG001 - the face's signature
    """The error logged with a request."""
    found = point.data["error"]
    return str(found) if found else None


def markers(log: Log) -> Sequence[Marker]:
    """Where a logged request does not go on from the one before it: told from the two alone."""
    return tuple(fold.fold(log).markers)


def naive(log: Log, point: Point) -> int | None:  # noqa: ARG001 - the face's signature
    """ceil(characters / 4) of the messages as logged, every field."""
    trail: Trail = point.data["trail"]
    length: int = point.data["length"]
    return math.ceil(trail.characters[length] / 4)


def notices(log: Log) -> Sequence[str]:
    """What could not be read, and fields that no API has."""
    return reading.notices(log)
