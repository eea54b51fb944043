"""What the agents' own estimators charge, by kind: rounded without loss, and summed up once along a history."""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import TypeVar

from ctxscope.model import CHARGED, Estimate

Charge = Mapping[str, int]
"""Tokens, or before they are rounded units of text, by the names of ``CHARGED``; what is absent is 0."""
T = TypeVar("T")


def rounded(units: Charge, per: float, whole: Callable[[float], int] = math.ceil) -> dict[str, int]:
    """Tokens of units that are divided and rounded together.

    Each kind, in the order of ``CHARGED``, is charged what the rounded sum rises by when its units are added. So the kinds
    come to exactly the whole, none is negative, and as the envelope comes last its length changes no other kind.
    """
    tokens: dict[str, int] = {}
    reached = total = 0
    for name in CHARGED:
        if units.get(name):
            total += units[name]
            tokens[name], reached = whole(total / per) - reached, whole(total / per)
    return tokens


def added(charges: Iterable[Charge]) -> dict[str, int]:
    """The sum of some charges."""
    total: dict[str, int] = {}
    for charge in charges:
        for name, count in charge.items():
            total[name] = total.get(name, 0) + count
    return total


def estimated(estimator: str, charged: Charge, held: frozenset[str]) -> Estimate:
    """An estimate out of its charges; ``held`` are the kinds that figures of the agent's own hold to the token."""
    every = {name: charged.get(name, 0) for name in CHARGED}
    return Estimate(estimator, sum(every.values()), every, all(name in held for name, n in every.items() if n))


@dataclass(eq=False, slots=True, repr=False)
class Charges:
    """Running totals over the items of a history that grows: each item is charged once."""

    length: int = 0
    _totals: dict[str, array[int]] = field(default_factory=dict)
    """By kind, the totals before each item and after the last."""

    def upto(self, items: Sequence[T], length: int, charge: Callable[[T], Charge], since: int = 0) -> dict[str, int]:
        """What the items from ``since`` up to ``length`` come to; ``items`` are the same each time, or more."""
        for item in islice(items, self.length, max(length, self.length)):
            self._append(charge(item))
        return {name: totals[length] - totals[since] for name, totals in self._totals.items()}

    def cut(self, length: int) -> Charges:
        """Totals of another history that begins with the first items of this one."""
        kept = min(length, self.length)
        return Charges(kept, {name: totals[: kept + 1] for name, totals in self._totals.items()})

    def _append(self, charge: Charge) -> None:
        for name in charge:
            if name not in self._totals:
                self._totals[name] = array("q", bytes(8 * (self.length + 1)))
        for name, totals in self._totals.items():
            totals.append(totals[-1] + charge.get(name, 0))
        self.length += 1
