"""Where a chat stands: its calls, the segments that compressions begin, what each line leaves behind."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from ctxscope.agents.qwen.history import History
from ctxscope.agents.qwen.versions import RULES, Rules
from ctxscope.model import Entry, Place


@dataclass(frozen=True, slots=True, eq=False)
class Segment:
    """The part of a session that one compression, or its start, began."""

    number: int = 0
    entry: Entry | None = None
    """The compression."""
    lost: tuple[int, int] = (0, 0)
    """Contents logged before the compression that were added behind it: a new process does not have them."""
    early: tuple[int, int] = (0, 0)
    """Contents that the compression's line has although they came later: it is written while the history goes on growing,
    and a new process has them twice."""


@dataclass(eq=False, slots=True, repr=False)
class Call:
    """One call: what it was made of and how it was answered."""

    history: History
    length: int
    last: Entry
    """The newest entry of its context."""
    turn: int
    segment: Segment
    first: bool
    """Whether it is the first one of its turn."""
    answer: Entry | None = None
    model: str | None = None
    kind: Literal["main", "escalated", "compaction"] = "main"
    """``escalated``: the same request with a higher cap, or one that goes on from it."""
    told: Mapping[str, Any] = field(default_factory=dict)
    """What the telemetry says of the reply."""
    dead: bool = False
    """It failed, and the user went on."""
    errors: list[str] = field(default_factory=list)
    """What the telemetry says went wrong before the answer."""
    rules: Rules = RULES[0]
    """How the version that made it writes its requests."""
    tries: int = 0
    """Replies that the telemetry has of its prompt since the last answer."""
    follows: str | None = None
    """Where a new process reads back something else, the line that its turn goes on from."""
    fresh: bool = False
    """It is the one that a compression was made for: what waited then is sent with it."""


@dataclass(frozen=True, slots=True, eq=False)
class Node:
    """Where the session stands behind a line."""

    history: History
    length: int
    turn: int = 0
    segment: Segment = Segment()
    waiting: int = 0
    """Contents at the end that no answer followed."""
    results: bool = False
    """Whether the last of these is results of tools."""
    call: Call | None = None
    """The last call, while nothing but its answer followed."""
    asked: bool = False
    """Whether the turn had a call."""
    sent: bool = False
    """Whether a line says that what waits was sent."""
    changed: bool = False
    """Whether a new process reads back something else."""
    follows: str | None = None
    """Where that is so, the line that the turn goes on from."""
    model: str | None = None
    fresh: bool = False
    """Whether what waits was waiting as a compression was made, which it now goes out behind."""


@dataclass(frozen=True, slots=True)
class Event:
    """Something that rewrote or left the history."""

    kind: str
    """As ``Marker.kind``."""
    place: Place
    where: str
    before: int
    """How many calls came before it."""
    dropped: tuple[Place, ...] = ()
    tokens: tuple[int | None, int | None] = (None, None)
