"""Gemini CLI: a JSONL chat that adds, changes and replaces messages (0.61; gemini.md).

The face every agent has; what it does stands in the files beside it.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from pathlib import Path

from ctxscope.agents import Before, Log
from ctxscope.agents.gemini import body as bodies
from ctxscope.agents.gemini import disk, learning, lines, points, reading, settings
from ctxscope.agents.gemini import markers as events
from ctxscope.agents.gemini import resume as resuming
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

name = "gemini"
title = "Gemini CLI"
learnable = learning.LEARNABLE


def discover(home: Path) -> Iterable[SessionRef]:
    """Sessions under ``<home>/.gemini/tmp``."""
    return disk.discover(home)


def claims(path: Path, head: bytes) -> float:
    """How surely a file is a chat of the Gemini CLI, by its first line."""
    return disk.claims(path, head)


def refs(path: Path, home: Path) -> Iterable[SessionRef]:
    """The one session in a file; raises ``CtxscopeError`` when its first line is not the header."""
    return tuple(disk.refs(path, home))


def sources(ref: SessionRef) -> tuple[SourceSpec, ...]:
    """The chat file, those of its subagents, and the user's settings where they exist."""
    return disk.sources(ref)


def entries(record: Record) -> Iterable[Entry]:
    """One entry a line; what is not understood is ``unknown``. Never raises."""
    return lines.entries(record)


def config(log: Log) -> Config:
    """Window and compression threshold."""
    return settings.config(log)


def requests(log: Log) -> Sequence[Point]:
    """One point per answer, and one for each message that never got one or still waits."""
    return points.requests(log)


def endpoint(log: Log, point: Point) -> Endpoint:  # noqa: ARG001 - the face's signature
    """Google's API and the model the answer names; of a call without an answer the model before it."""
    model = point.data.get("model")
    return Endpoint("gemini", "google", model if isinstance(model, str) else None)


def basis(log: Log, point: Point) -> Hashable:  # noqa: ARG001 - the face's signature
    """Nothing: a request depends on the lines before it alone."""
    return ()


def classify(body: Body) -> CallKind | None:
    """``compaction`` for the requests of a compression, ``main`` for one with tools, ``side`` for what wants JSON."""
    return reading.classify(body)


def learn(log: Log, point: Point, body: Body, before: Before) -> Learned:
    """System prompt, tools, parameters and signatures; where an earlier call showed one, the earlier one holds."""
    return learning.learn(log, point, body, before)


def rebuild(log: Log, point: Point, config: Config, learned: Learned) -> Rebuilt | None:  # noqa: ARG001 - the face's signature
    """The whole body the log implies; ``None`` for a request in another form than the Gemini API's own."""
    return bodies.rebuild(log, point, learned)


def explain(log: Log, point: Point, difference: Difference, learned: Learned) -> str | None:
    """Why served and rebuilt part there, where the Gemini CLI is known for it."""
    return reading.explain(log, point, difference, learned)


def markers(log: Log) -> Sequence[Marker]:
    """Compressions, resumes, messages taken back, model switches."""
    return events.markers(log)


def resume(log: Log, before: Before) -> Resume | None:
    """The history that a new process loads from the file and writes there anew, and the input behind it."""
    return resuming.resume(log, before)


def naive(log: Log, point: Point) -> int | None:
    """ceil(characters / 4) of the context's messages as logged, every field."""
    call = points.call_of(log, point)
    return math.ceil(call.history.layouts[call.length].characters / 4) if call is not None else None


def notices(log: Log) -> Sequence[str]:
    """Lines that could not be read, results sent twice after a resume, what the log has that is not known."""
    return reading.notices(log)
