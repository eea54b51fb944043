"""pi: a JSONL tree a session, with system prompt and tools in it since 1.x (0.73 and 1.x; pi.md).

The face every agent has; what it does stands in the files beside it.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from pathlib import Path

from ctxscope.agents import Before, Log
from ctxscope.agents.pi import body as bodies
from ctxscope.agents.pi import compactions as shortened
from ctxscope.agents.pi import disk, learning, lines, points, reading, settings
from ctxscope.agents.pi import markers as events
from ctxscope.agents.pi import resume as resuming
from ctxscope.agents.pi.estimate import COMPACTION, REQUEST
from ctxscope.agents.reading.charges import estimated
from ctxscope.agents.reading.families import kin
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
    Point,
    Rebuilt,
    Record,
    Resume,
    SessionRef,
    SourceSpec,
    Window,
)

name = "pi"
title = "pi"
always = {
    "anthropic-messages": ("model", "messages", "stream"),
    "openai-chat": ("model", "messages", "stream"),
    "openai-responses": ("model", "input", "stream"),
    "gemini": ("contents",),
}
learnable = learning.LEARNABLE
_HELD = frozenset({"reported"})
"""What the figures pi logs before a compaction hold (``Estimate.verified``): it is asked right behind an answer."""


def discover(home: Path) -> Iterable[SessionRef]:
    """Sessions under ``<home>/.pi/agent/sessions``."""
    return disk.discover(home)


def claims(path: Path, head: bytes) -> float:
    """How surely a file is a pi session, by its first line."""
    return disk.claims(path, head)


def refs(path: Path, home: Path) -> Iterable[SessionRef]:
    """The one session in a file; raises ``CtxscopeError`` when its first line is not pi's header."""
    return tuple(disk.refs(path, home))


def sources(ref: SessionRef) -> tuple[SourceSpec, ...]:
    """The session file; settings.json and models.json of the agent folder where they exist."""
    return disk.sources(ref)


def entries(record: Record) -> Iterable[Entry]:
    """One entry a line; what is not understood is ``unknown``. Never raises."""
    return lines.entries(record)


def config(log: Log) -> Config:
    """Window, compaction threshold and every model's limits, as the agent folder says."""
    return settings.config(log)


def window(log: Log, point: Point, config: Config) -> Window:
    """Window and threshold of the model a call goes to."""
    return settings.window(log, point, config)


def due(log: Log, config: Config, window: int) -> int | None:
    """A window less the reserve of the settings."""
    return settings.due(log, config, window)


def requests(log: Log) -> Sequence[Point]:
    """One point per answer that a request asked for, and one for a message still waiting, in file order."""
    return points.requests(log)


def endpoint(log: Log, point: Point) -> Endpoint:
    """As the answer says; for one not logged yet the model set, with the API it last spoke or its settings name."""
    return reading.endpoint(log, point)


def basis(log: Log, point: Point) -> Hashable:  # noqa: ARG001 - the face's signature
    """Nothing: beside its own path a pi request depends on the config alone."""
    return ()


def family(ref: SessionRef) -> Iterable[SessionRef]:
    """The sessions that a fork came from, and those forked from this one."""
    return kin(ref, disk.beside(ref))


def classify(body: Body) -> CallKind | None:
    """``compaction`` for a summary request by its fixed text, ``main`` for one with tools, else ``None``."""
    return reading.classify(body)


def learn(log: Log, point: Point, body: Body, before: Before) -> Learned:
    """Values and forms the log does not hold; where an earlier call showed one, the earlier one holds."""
    return learning.learn(log, point, body, before)


def rebuild(log: Log, point: Point, config: Config, learned: Learned) -> Rebuilt | None:
    """The whole body the log implies; ``None`` for an API that is not rebuilt."""
    return bodies.rebuild(log, point, config, learned)


def explain(log: Log, point: Point, difference: Difference, learned: Learned) -> str | None:
    """Why served and rebuilt part there, where pi is known for it."""
    return reading.explain(log, point, difference, learned)


def error_line(log: Log, point: Point) -> str | None:
    """The message of the answer that failed, or of the abort that came before the request."""
    return points.error_line(log, point)


def markers(log: Log) -> Sequence[Marker]:
    """Compactions, context edits, moves in the tree, model and tool changes, the fork a file began with."""
    return events.markers(log)


def compactions(log: Log) -> Sequence[Compacted]:
    """What each compaction found, kept and cost."""
    return shortened.compactions(log)


def resume(log: Log, before: Before) -> Resume | None:
    """A further user line behind the file's last entry, from which a new process goes on."""
    return resuming.resume(log, before)


def estimates(log: Log, point: Point) -> tuple[Estimate, ...]:
    """By the compaction estimator, then by the one that caps a request in 1.x (pi.md §6)."""
    node = points.node_of(log, point)
    if node is None:
        return ()
    return tuple(
        estimated(title, node.trail.charged(node.length, per), held)
        for title, per, held in (("pi compaction", COMPACTION, _HELD), ("pi request cap", REQUEST, frozenset[str]()))
    )


def naive(log: Log, point: Point) -> int | None:
    """ceil(characters / 4) of the context's lines as logged, every field."""
    node = points.node_of(log, point)
    return math.ceil(node.trail.characters[node.trail.counts[node.length]] / COMPACTION) if node else None


def notices(log: Log) -> Sequence[str]:
    """Lines that could not be read, entries without their parent, and calls that failed."""
    return reading.notices(log)
