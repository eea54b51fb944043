"""What the fold of a rollout finds: calls, the settings they were made with, events between them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ctxscope.agents.codex.history import History
from ctxscope.model import CallKind, Entry, Place

LEFT_OUT = "none"
"""Reasoning summary for which a request names none."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What the next request is made with, and where that stands."""

    model: str | None = None
    model_place: Place | None = None
    effort: str | None = None
    effort_place: Place | None = None
    summary: str | None = None
    summary_place: Place | None = None
    turn_id: str | None = None
    turn_place: Place | None = None
    root_turn_id: str | None = None


@dataclass(slots=True, eq=False, repr=False)
class Call:
    """One model call the log implies; it grows while its answer is written."""

    key: str
    place: Place
    number: int
    """The line the answer, or what is asked, stands in."""
    history: History
    length: int
    """How many items of the history the request carried."""
    missing: tuple[int, ...]
    """Calls among them whose output is missing."""
    settings: Settings
    turn: int
    time: float | None
    kind: CallKind = "main"
    answers: list[Entry] = field(default_factory=list)
    items: list[Mapping[str, Any]] = field(default_factory=list)
    response_id: str | None = None
    response_place: Place | None = None
    usage: Mapping[str, Any] | None = None
    stop: tuple[str, str] | None = None
    """Why it ended, where the log says: a reason, a state."""
    error: str | None = None
    dead: bool = False
    """Nothing answered, and the turn is over."""
    run: int = 0
    """How often a new process had gone on with the session."""
    copied: bool = False
    """Taken over from the session this one was forked from."""
    branched_from: str | None = None
    fingerprint: str = ""
    """Stands for all items up to its answer: a copy in a fork has the same."""
    end: int = 0
    """Where the history stands behind its answer: one that broke off stands there too, before that of the next attempt."""
    changes: int = 0


@dataclass(frozen=True, slots=True)
class Event:
    """Something that rewrote or restored history, before the call with index ``call``."""

    kind: str
    call: int
    where: str
    place: Place
    before: int | None = None
    after: int | None = None
    dropped: tuple[Place, ...] = ()
