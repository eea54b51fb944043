"""Token ledgers of calls: counted when asked for, then kept as long as both sides stay what they were."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from ctxscope.analysis.calibration import calibrated, factors, name_of
from ctxscope.analysis.gaps import gap_words
from ctxscope.analysis.providers import Providers
from ctxscope.analysis.sidecars import in_sum
from ctxscope.analysis.tokens import Counter, ledger
from ctxscope.model import Body, Call, Estimate, TokenLedger
from ctxscope.session.calls import Slot
from ctxscope.session.kept_ledgers import KeptLedgers
from ctxscope.session.sidecars import Sidecars
from ctxscope.session.snapshot import rules_of, usage_of
from ctxscope.session.views import Sides
from ctxscope.wire.blocks import mapped, param, parsed

_OTHER_CONTEXT = frozenset({"compaction", "side", "probe"})
"""Calls that are asked something else than the conversation, which an agent's estimator is about."""


@dataclass(eq=False, repr=False)
class Counts:
    """Ledgers by call."""

    counter: Counter
    providers: Providers
    """What each adds to a request."""
    kept: KeptLedgers
    is_as_served: Callable[[Slot], bool]
    """Whether the log of a call implies the very bytes that were served."""
    sidecars: Sidecars
    _names: dict[int, bytes | None] = field(default_factory=dict)
    """By number of a call, what its ledger is kept by; filled when the first of those not counted yet is."""
    _ledgers: dict[Any, tuple[tuple[Any, ...], TokenLedger]] = field(default_factory=dict)
    """By call that was counted, what its newest ledger was made from, and the ledger."""

    def counted(self, slot: Slot, rebuilt_from: Callable[[], Hashable]) -> TokenLedger | None:
        """The ledger of a call that was counted and is what it was; ``rebuilt_from`` tells one rebuilt side from another."""
        found = self._ledgers.get(_name(slot))
        return found[1] if found is not None and found[0] == _made_from(slot, rebuilt_from()) else None

    def recall(self, slots: Iterable[Slot]) -> None:
        """Look up what earlier launches counted of some calls, unless that was done."""
        if not self._names:
            self._names = {s.n: self.kept.name(s, as_served=self.is_as_served(s)) for s in slots}
            self.kept.recall(self._names.values())

    @property
    def recalled(self) -> int:
        """How many calls were looked up."""
        return len(self._names)

    def forget_recalled(self) -> None:
        """Look up again: calls have other numbers, or their logs say more."""
        self._names = {}

    def count(self, slot: Slot, rebuilt_from: Hashable, sides: Callable[[], Sides]) -> TokenLedger:
        """The full ledger of a call; ``sides`` is asked only for one not counted yet, since it rebuilds."""
        found = self.counted(slot, lambda: rebuilt_from) or self.kept.take(self._names.get(slot.n))
        if found is None:
            found = self._count(slot, sides())
        self._ledgers[_name(slot)] = (_made_from(slot, rebuilt_from), found)
        return found

    def keep(self, slots: Sequence[Slot]) -> None:
        """Keep the ledgers of calls for the next launch, those that were counted."""
        if len(self._names) != len(slots):
            self._names = {s.n: self.kept.name(s, as_served=self.is_as_served(s)) for s in slots}
        named = ((self._names[slot.n], self._ledgers.get(_name(slot))) for slot in slots)
        self.kept.keep({name: known[1] for name, known in named if name is not None and known is not None})

    def calibrate(self, calls: Sequence[Call], slots: Sequence[Slot]) -> Iterator[tuple[int, TokenLedger]]:
        """Places in a list of calls, and the ledgers there that all calls together change."""
        by_model = factors(calls)
        for place, (call, slot) in enumerate(zip(calls, slots, strict=True)):
            tokens = calibrated(call.tokens, by_model.get(name_of(call)))
            if tokens is not call.tokens:
                self._ledgers[_name(slot)] = (self._ledgers[_name(slot)][0], tokens)
                yield place, tokens

    def _count(self, slot: Slot, sides: Sides) -> TokenLedger:
        naive: int | None = None
        estimates: tuple[Estimate, ...] = ()
        if slot.session is not None and slot.point is not None:
            module, log = slot.session.agent, slot.session.log
            naive = module.naive(log, slot.point)
            if slot.kind not in _OTHER_CONTEXT:
                estimates = module.estimates(log, slot.point)
        agent = estimates[0].tokens if estimates else None
        sent = [sidecar.stored for sidecar in self.sidecars.at(slot) if sidecar.ignored is None]
        found = ledger(
            self.counter,
            sides.served,
            sides.rebuilt,
            rules=rules_of(slot, self.providers),
            param=partial(_param, slot, sides),
            usage=usage_of(slot),
            naive=naive,
            agent=agent,
            sidecars=sent,
        )
        in_all = in_sum(each for _, each in self.sidecars.beside(slot))
        found = replace(found, estimates=estimates, sidecars=in_all)
        return replace(found, gap=gap_words(found))


def uncounted(slot: Slot) -> TokenLedger:
    """What is known of a call's tokens without counting anything."""
    usage = usage_of(slot)
    return TokenLedger(reported=usage.reported if usage else None)


def _param(slot: Slot, sides: Sides, name: str) -> Mapping[str, object]:
    """A parameter of the request that is an object, as served or else as rebuilt; empty for anything else."""
    if slot.heard is not None:
        return parsed(slot.heard.settings.params.get(name, b""))
    return mapped(param(sides.rebuilt, name)) if isinstance(sides.rebuilt, Body) else {}


def _made_from(slot: Slot, rebuilt_from: Hashable) -> tuple[Any, ...]:
    return (slot.heard, slot.point, slot.kind, rebuilt_from)


def _name(slot: Slot) -> Any:
    return slot.heard.key if slot.heard else (id(slot.session), slot.point.key if slot.point else slot.n)
