"""The sidecars of calls: asked of the agent for a point, each judged once for a model, whichever calls carry it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from ctxscope.analysis.sidecars import judged
from ctxscope.analysis.tokens import Counter
from ctxscope.model import ApiName, Call, Place, Point, Sidecar, Substitution
from ctxscope.session.calls import Slot

_Rules = tuple[str | None, ApiName | None]
"""Model and API: they decide what a text and an image come to."""


@dataclass(eq=False, repr=False)
class Sidecars:
    """What agents tell of calls, and what is made of it."""

    counter: Counter
    _told: dict[tuple[int, str], tuple[Point, tuple[Sidecar, ...]]] = field(default_factory=dict)
    """By session and key of a point, the newest of that key and what its context holds."""
    _judged: dict[tuple[Sidecar, str | None, ApiName | None], Substitution] = field(default_factory=dict)

    def at(self, slot: Slot) -> tuple[Sidecar, ...]:
        """Those in the context of a call."""
        session, point = slot.session, slot.point
        if session is None or point is None:
            return ()
        name = (id(session), point.key)
        known = self._told.get(name)
        if known is None or known[0] is not point:
            known = self._told[name] = (point, tuple(session.agent.sidecars(session.log, point)))
        return known[1]

    def beside(self, slot: Slot) -> Iterator[tuple[Sidecar, Substitution]]:
        """The same, each with what it is beside its clean content."""
        found = self.at(slot)
        rules = _rules(slot) if found else (None, None)
        return ((sidecar, self._judge(sidecar, rules)) for sidecar in found)

    def substitutions(self, calls: Sequence[Call], slots: Sequence[Slot]) -> Iterator[Substitution]:
        """Those of the calls that are counted, each at the first call that carries it.

        Of a call that goes on from the one before it only what is new is looked at, once its agent has told its context.
        """
        seen: set[tuple[str | None, Place]] = set()
        before: dict[str | None, tuple[Sidecar, ...]] = {}
        for call, slot in zip(calls, slots, strict=True):
            if call.tokens.sidecars is None:
                continue
            found, known = self.at(slot), before.get(call.session, ())
            goes_on = found[len(known) - 1 : len(known)] == known[-1:]
            for sidecar in found[len(known) if goes_on else 0 :]:
                if (call.session, sidecar.place) not in seen:
                    seen.add((call.session, sidecar.place))
                    yield replace(self._judge(sidecar, _rules(slot)), session=call.session, call=call.n)
            before[call.session] = found

    def _judge(self, sidecar: Sidecar, rules: _Rules) -> Substitution:
        key = (sidecar, *rules)
        if key not in self._judged:
            self._judged[key] = judged(sidecar, self.counter, *rules)
        return self._judged[key]


def _rules(slot: Slot) -> _Rules:
    """Of what was served, else of where the log says that the call went."""
    if slot.heard is not None:
        return slot.heard.model, slot.heard.api.name if slot.heard.api is not None else None
    assert slot.session is not None
    assert slot.point is not None
    told = slot.session.agent.endpoint(slot.session.log, slot.point)
    return told.model, told.api
