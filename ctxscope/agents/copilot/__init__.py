"""GitHub Copilot CLI: one ``events.jsonl`` a session (1.0.102 with a provider of the user's own; copilot.md).

The log holds messages and values, not spellings: what it implies is compared as values (scope ``semantic``). The face
every agent has; what it does stands in the files beside it.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from pathlib import Path

from ctxscope.agents import Before, Log, shared_memo
from ctxscope.agents.copilot import body as bodies
from ctxscope.agents.copilot import disk, events, learning, points, reading
from ctxscope.agents.copilot import resume as resuming
from ctxscope.agents.copilot.story import call_of
from ctxscope.agents.reading.sidecars import no_text
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
    Sidecar,
    SourceSpec,
)

name = "copilot"
title = "GitHub Copilot CLI"
learnable = learning.LEARNABLE


def discover(home: Path) -> Iterable[SessionRef]:
    """Sessions under ``<home>/.copilot/session-state``."""
    return disk.discover(home)


def claims(path: Path, head: bytes) -> float:
    """How surely a file is a Copilot CLI session, by its first line."""
    return disk.claims(path, head)


def refs(path: Path, home: Path) -> Iterable[SessionRef]:
    """The one session in a file; raises ``CtxscopeError`` when its first line does not start one."""
    return tuple(disk.refs(path, home))


def sources(ref: SessionRef) -> tuple[SourceSpec, ...]:
    """The events file."""
    return disk.sources(ref)


def entries(record: Record) -> Iterable[Entry]:
    """One entry a line; an event of a kind that is not known is ``unknown``. Never raises."""
    return events.entries(record)


def config(log: Log) -> Config:
    """Version and window, as the events say."""
    return reading.config(log)


def requests(log: Log) -> Sequence[Point]:
    """One point for each ``assistant.turn_start``, and for an answer that came without one."""
    return points.requests(log)


def endpoint(log: Log, point: Point) -> Endpoint:
    """API and provider as the usage record says, the model as the answer does."""
    return points.endpoint(log, point)


def basis(log: Log, point: Point) -> Hashable:  # noqa: ARG001 - the face's signature
    """Nothing: a request depends on the events before it, and on the usage record its point was made with."""
    return ()


def classify(body: Body) -> CallKind | None:
    """A compaction by the words it asks with; else not told."""
    return reading.classify(body)


def learn(log: Log, point: Point, body: Body, before: Before) -> Learned:
    """Parameters, forms of the run, and what its live answers carry beyond the log; what was shown first holds."""
    return learning.learn(log, point, body, before)


def rebuild(log: Log, point: Point, config: Config, learned: Learned) -> Rebuilt | None:  # noqa: ARG001 - the face's signature
    """The whole body as values; ``None`` for other APIs, and after what rewrote the context as the log does not tell."""
    return bodies.rebuild(log, point, learned)


def explain(log: Log, point: Point, difference: Difference, learned: Learned) -> str | None:
    """Why served and rebuilt part there, where the Copilot CLI is known for it."""
    return reading.explain(log, point, difference, learned)


def error_line(log: Log, point: Point) -> str | None:
    """What the log says went wrong while the call was under way."""
    return points.error_line(log, point)


def markers(log: Log) -> Sequence[Marker]:
    """Resumes, model changes, steering, compactions and what else rewrote the context."""
    return reading.markers(log)


def resume(log: Log, before: Before) -> Resume | None:
    """The input behind a resume: messages of the runs before as the log has them."""
    return resuming.resume(log, before)


def naive(log: Log, point: Point) -> int | None:
    """ceil(characters / 4) of the context's events as logged, every field."""
    call = call_of(log, point.key)
    return math.ceil(call.trail.characters[call.entries] / 4) if call is not None else None


def sidecars(log: Log, point: Point) -> Sequence[Sidecar]:
    """What is sent of each user's message instead of what they wrote (``transformedContent``), an empty text too."""
    call, made = call_of(log, point.key), shared_memo(log, "copilot.sidecars")
    found: list[Sidecar] = []
    for item in call.trail.items[: call.length] if call is not None else ():
        told = events.payload(item.entry) if item.role == "user" else {}
        stored = told.get("transformedContent")
        if stored is not None:
            new = Sidecar(item.entry.place, "user", told.get("content"), stored, no_text(stored))
            found.append(made.setdefault(item.entry, new))
    return found


def notices(log: Log) -> Sequence[str]:
    """What could not be read, what is not known of this log, and what is not rebuilt."""
    return reading.notices(log)
