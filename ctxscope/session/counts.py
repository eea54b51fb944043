"""Token ledgers of calls: counted when asked for, then kept as long as both sides stay what they were."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ctxscope.analysis.tokens import Counter, ledger
from ctxscope.model import TokenLedger
from ctxscope.session.calls import Slot
from ctxscope.session.snapshot import usage_of
from ctxscope.session.views import Sides


@dataclass(eq=False, repr=False)
class Counts:
    """Ledgers by call."""

    counter: Counter
    _ledgers: dict[Any, tuple[tuple[Any, ...], TokenLedger, bool]] = field(default_factory=dict)
    """By call, what its newest ledger was made from, the ledger, and whether it is the full one."""

    def known(self, slot: Slot, rebuilt_from: Hashable) -> TokenLedger:
        """What is known of a call's tokens without counting anything; ``rebuilt_from`` tells one rebuilt side from another."""
        name, made_from = _name(slot), (slot.heard, slot.point, slot.kind, rebuilt_from)
        found = self._ledgers.get(name)
        if found is None or found[0] != made_from:
            usage = usage_of(slot)
            found = (made_from, TokenLedger(reported=usage.reported if usage else None), False)
            self._ledgers[name] = found
        return found[1]

    def is_full(self, slot: Slot) -> bool:
        """Whether what ``known`` gave last is all there is to know."""
        return self._ledgers[_name(slot)][2]

    def count(self, slot: Slot, rebuilt_from: Hashable, sides: Callable[[], Sides]) -> TokenLedger:
        """The full ledger of a call; ``sides`` is asked only for one not counted yet, since it rebuilds."""
        name, made_from = _name(slot), (slot.heard, slot.point, slot.kind, rebuilt_from)
        found = self._ledgers.get(name)
        if found is None or found[0] != made_from or not found[2]:
            found = (made_from, self._count(slot, sides()), True)
            self._ledgers[name] = found
        return found[1]

    def _count(self, slot: Slot, sides: Sides) -> TokenLedger:
        naive = agent = None
        sidecars: Sequence[str] = ()
        if slot.session is not None and slot.point is not None:
            module, log = slot.session.agent, slot.session.log
            naive, agent = module.naive(log, slot.point), module.estimate(log, slot.point)
            sidecars = module.sidecars(log, slot.point)
        return ledger(
            self.counter, sides.served, sides.rebuilt, usage=usage_of(slot), naive=naive, agent=agent, sidecars=sidecars
        )


def _name(slot: Slot) -> Any:
    return slot.heard.key if slot.heard else (id(slot.session), slot.point.key if slot.point else slot.n)
