"""Token ledgers of calls: counted when asked for, then kept as long as both sides stay what they were."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ctxscope.analysis.tokens import Counter, ledger
from ctxscope.model import TokenLedger
from ctxscope.session.calls import Slot
from ctxscope.session.snapshot import usage_of
from ctxscope.session.views import Sides


@dataclass(eq=False)
class Counts:
    """Ledgers by call."""

    counter: Counter
    _ledgers: dict[Any, TokenLedger] = field(default_factory=dict)

    def known(self, slot: Slot) -> TokenLedger:
        """What is known of a call's tokens without counting anything."""
        found = self._ledgers.get(_key(slot))
        if found is not None:
            return found
        usage = usage_of(slot)
        return TokenLedger(reported=usage.reported if usage else None)

    def count(self, slot: Slot, sides: Callable[[], Sides]) -> TokenLedger:
        """The full ledger of a call; ``sides`` is asked only for one not counted yet, since it rebuilds."""
        key = _key(slot)
        if key not in self._ledgers:
            self._ledgers[key] = self._count(slot, sides())
        return self._ledgers[key]

    def _count(self, slot: Slot, sides: Sides) -> TokenLedger:
        naive = agent = None
        sidecar = 0
        if slot.session is not None and slot.point is not None:
            module, log = slot.session.agent, slot.session.log
            naive, agent = module.naive(log, slot.point), module.estimate(log, slot.point)
            sidecar = sum(self.counter.count(text) for text in module.sidecars(log, slot.point))
        return ledger(
            self.counter, sides.served, sides.rebuilt, usage=usage_of(slot), naive=naive, agent=agent, sidecar=sidecar
        )


def _key(slot: Slot) -> Any:
    heard = slot.heard
    changes = (slot.session.log.rewrites, slot.session.beside) if slot.session else ()
    point = (slot.point.key, len(slot.point.context)) if slot.point else None
    return (heard.key, heard.exchange.response_bytes) if heard else None, point, changes, id(slot.session)
