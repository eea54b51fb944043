"""One request on its way: opened by a record, attempted perhaps several times, closed by what came of it (dsh.md §7)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from ctxscope.model import Entry

AskKind = Literal["main", "compaction", "side"]


@dataclass(frozen=True, slots=True, eq=False)
class Delivery:
    """An acceptance of the log sent along: the server has everything up to ``through``."""

    entry: Entry
    through: int


@dataclass(frozen=True, slots=True)
class Stage:
    """How much of a log had been read: what comes later has no part in what a request was made of."""

    surfaces: int
    heads: int
    accepted: int


@dataclass(frozen=True, slots=True, eq=False)
class Request:
    """One attempt at a request, as the log tells it."""

    kind: AskKind
    begun: Entry
    """The record that opened it: ``step/start``, ``compaction/start``, ``session/title-llm-request``."""
    low: int
    """Least number the log can have stood at when it was made."""
    until: int | None
    """Number of the first record that shows it was out; ``None`` while none does."""
    last: int
    """Number of the last record before that one."""
    stated: tuple[Delivery, ...]
    """Acceptances that may be its own."""
    run: int
    """Which process made it, from 0."""
    void: Entry | None
    """The record from which on nobody can say what the model sees."""
    stage: Stage
    region: tuple[int, ...] | None = None
    """Of a compaction: the numbers of the events it condensed; ``None`` where the log does not say."""

    @property
    def through(self) -> int:
        """Where the log stood when it was made: as the newest acceptance states, else as late as can be."""
        return max((d.through for d in self.stated), default=self.last)

    def may_be(self, through: int) -> bool:
        """Whether the log may have stood there; a place stated for it leaves no other."""
        if self.stated:
            return any(d.through == through for d in self.stated)
        return self.low <= through <= self.last

    def names(self) -> frozenset[str]:
        """Ids by which a request that carries the log tells its place."""
        places = {d.through for d in self.stated} or {self.last}
        return frozenset(f"seq:{place}" for place in places)


@dataclass(eq=False, slots=True)
class Ask:
    """What is known of a request so far."""

    kind: AskKind
    begun: Entry
    low: int
    run: int
    name: str = ""
    """Id of the compaction."""
    until: int | None = None
    last: int = -1
    stated: list[Delivery] = field(default_factory=list)
    failed: Entry | None = None
    """What the log keeps of the attempt that failed last."""
    part: Entry | None = None
    """v0: the newest event of an answer that is coming in."""

    def out(self, number: int, last: int) -> None:
        """A record shows that the request was sent before it; ``last`` is the number of the one before."""
        if self.until is None:
            self.until, self.last = number, last

    def again(self, number: int) -> None:
        """Another attempt begins with a record."""
        self.low, self.until, self.stated, self.failed, self.part = number, None, [], None, None

    def made(self, last: int, void: Entry | None, stage: Stage, region: tuple[int, ...] | None = None) -> Request:
        """The attempt as it stands; ``last`` is the newest number."""
        end = last if self.until is None else self.last
        stated = tuple(d for d in self.stated if d.through <= end)
        return Request(self.kind, self.begun, self.low, self.until, end, stated, self.run, void, stage, region)
