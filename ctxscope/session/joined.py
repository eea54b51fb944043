"""The joined calls of one session, for its agent to look back on."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field

from ctxscope.agents import Before
from ctxscope.model import Point
from ctxscope.session.calls import Slot
from ctxscope.session.traffic import Heard, Key, Traffic


@dataclass(eq=False, slots=True, repr=False)
class Joined:
    """The joined calls of one session."""

    points: list[tuple[Point, str]] = field(default_factory=list)
    """Each call's point and the hash of its body."""
    keys: list[Key] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)
    chains: list[int] = field(default_factory=lambda: [0])
    """See ``Before.chain``; with the first so many calls."""

    def add(self, slot: Slot, point: Point, heard: Heard) -> None:
        """The next call."""
        self.points.append((point, heard.sha256))
        self.keys.append(heard.key)
        self.numbers.append(slot.n)
        self.chains.append(hash((self.chains[-1], point.key, heard.key, heard.sha256, heard.exchange.response_bytes)))

    def before(self, n: int, traffic: Traffic) -> Before:
        """Those before call ``n``."""
        upto = bisect_left(self.numbers, n)
        return Before(
            self.points,
            upto,
            lambda i: traffic.body(self.keys[i]),
            self.chains[upto],
            lambda i: traffic.heard[self.keys[i]].reply,
        )
