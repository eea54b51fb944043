"""Qwen Code: a JSONL tree of contents, a fork of the Gemini CLI with a log of its own (0.15.10, 0.21.2 to 0.24.4; qwen.md).

The face every agent has; what it does stands in the files beside it.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from pathlib import Path

from ctxscope.agents import Before, Log
from ctxscope.agents.qwen import body as bodies
from ctxscope.agents.qwen import disk, learning, lines, points, reading, settings
from ctxscope.agents.qwen import markers as events
from ctxscope.agents.qwen import resume as resuming
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

name = "qwen"
title = "Qwen Code"
learnable = learning.LEARNABLE


def discover(home: Path) -> Iterable[SessionRef]:
    """Sessions under ``<home>/.qwen/projects``."""
    return disk.discover(home)


def claims(path: Path, head: bytes) -> float:
    """How surely a file is a chat of Qwen Code, by its first lines."""
    return disk.claims(path, head)


def refs(path: Path, home: Path) -> Iterable[SessionRef]:
    """The one session in a file; raises ``CtxscopeError`` when its first line is none of Qwen Code's."""
    return tuple(disk.refs(path, home))


def sources(ref: SessionRef) -> tuple[SourceSpec, ...]:
    """The chat file, and the user's settings where they exist."""
    return disk.sources(ref)


def entries(record: Record) -> Iterable[Entry]:
    """One entry a line; what is not understood is ``unknown``. Never raises."""
    return lines.entries(record)


def config(log: Log) -> Config:
    """Version, window and compression threshold."""
    return settings.config(log)


def requests(log: Log) -> Sequence[Point]:
    """One point per answer and per compression, and one for a message that failed or still waits, in file order."""
    return points.requests(log)


def endpoint(log: Log, point: Point) -> Endpoint:  # noqa: ARG001 - the face's signature
    """The model the answer names; of a call without an answer the model before it."""
    model = point.data.get("model")
    return Endpoint("openai-chat", None, model if isinstance(model, str) else None)


def basis(log: Log, point: Point) -> Hashable:  # noqa: ARG001 - the face's signature
    """Nothing: a request depends on the lines before it alone."""
    return ()


def family(ref: SessionRef) -> Iterable[SessionRef]:
    """Sessions it was branched from, and those branched from it or from these."""
    return disk.family(ref)


def classify(body: Body) -> CallKind | None:
    """``main`` for a request with tools, ``side`` for one that wants a title, else ``None``."""
    return reading.classify(body)


def learn(log: Log, point: Point, body: Body, before: Before) -> Learned:
    """System prompt, environment, tools and parameters; where an earlier call showed one, the earlier one holds."""
    return learning.learn(log, point, body, before)


def rebuild(log: Log, point: Point, config: Config, learned: Learned) -> Rebuilt | None:  # noqa: ARG001 - the face's signature
    """The whole body the log implies; ``None`` for a request in another form than Chat Completions."""
    return bodies.rebuild(log, point, learned)


def explain(log: Log, point: Point, difference: Difference, learned: Learned) -> str | None:
    """Why served and rebuilt part there, where Qwen Code is known for it."""
    return reading.explain(log, point, difference, learned)


def error_line(log: Log, point: Point) -> str | None:
    """The last error that the telemetry has of a call."""
    return points.error_line(log, point)


def markers(log: Log) -> Sequence[Marker]:
    """Compressions, rewinds, model switches, and that a file began as a copy."""
    return events.markers(log)


def resume(log: Log, before: Before) -> Resume | None:
    """A further user line behind the newest one, with all before it read back."""
    return resuming.resume(log, before)


def naive(log: Log, point: Point) -> int | None:
    """ceil(characters / 4) of the context's lines as logged, every field."""
    call = points.call_of(log, point)
    return math.ceil(call.history.characters[call.length] / 4) if call is not None else None


def notices(log: Log) -> Sequence[str]:
    """Lines that could not be read or have no parent, what the log has that is not known."""
    return reading.notices(log)
