"""Calls that nobody recorded: their rebuilt requests while they are at hand, and what became of their cached prefix.

A rebuilt request is dear, so a call is judged when it is counted, and its verdict kept as long as both requests stay what
they were made from.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ctxscope.analysis.evidence import Around
from ctxscope.analysis.log_breaks import judge_logged
from ctxscope.analysis.prompts import prompt_of
from ctxscope.analysis.providers import Providers
from ctxscope.analysis.providers.rules import Rules
from ctxscope.model import Body, CacheVerdict
from ctxscope.session.calls import Slot
from ctxscope.session.snapshot import rules_of, says_of, usage_of
from ctxscope.session.views import LogSide

_AT_HAND = 3
"""Rebuilt requests kept: a call's, its parent's, and the one counted before."""
_JUDGED = ("main", "subagent")
"""Kinds that go on from one another."""
Told = tuple[int | None, CacheVerdict]
"""Number of the parent, and the verdict."""


@dataclass(eq=False, repr=False)
class Unserved:
    """Verdicts by call."""

    providers: Providers
    rebuild: Callable[[Slot, Body | None], LogSide | None]
    """A call's rebuilt request; given another of the conversation, so that what both have is cut once."""
    rebuilt_from: Callable[[Slot], Hashable]
    """Stands for all that a call's rebuilt request was made from."""
    _sides: OrderedDict[Any, tuple[Hashable, LogSide | None]] = field(default_factory=OrderedDict)
    _verdicts: dict[Any, tuple[tuple[Any, ...], CacheVerdict]] = field(default_factory=dict)
    """By call, what its newest verdict was made from, and the verdict."""
    _notices: dict[Any, tuple[str, ...]] = field(default_factory=dict)
    """By call, what could not be known when its request was rebuilt."""
    _parents: dict[int, Slot] = field(default_factory=dict)
    """By number of an unserved call, the one it goes on from."""
    _behind: dict[int, Slot] = field(default_factory=dict)
    """By number of a served call, the one it goes on from where that one was not recorded."""
    _markers: Mapping[int, Sequence[str]] = field(default_factory=dict)
    """By number of a call, the kinds of the log's markers right before it."""

    def arrange(self, slots: Sequence[Slot], markers: Mapping[int, Sequence[str]]) -> None:
        """Take over the calls, and the kinds of markers right before each, as they stand now."""
        self._parents, self._behind, self._markers = {}, {}, markers
        last: dict[tuple[int, str], Slot] = {}
        points: dict[tuple[int, str], Slot] = {}
        for slot in slots:
            if slot.session is None or slot.point is None or slot.kind not in _JUDGED:
                continue
            of, origin = id(slot.session), slot.point.branched_from
            parent = points.get((of, origin)) if origin is not None else None
            parent = parent or last.get((of, slot.lineage))
            if slot.heard is None and parent is not None:
                self._parents[slot.n] = parent
            elif parent is not None and parent.heard is None and parent.point is not None and parent.point.answer:
                self._behind[slot.n] = parent
            last[of, slot.lineage] = points[of, slot.point.key] = slot

    def known(self, slot: Slot) -> Told | None:
        """The verdict on a call that was judged and is what it was; ``None``: it is to be judged."""
        if slot.kind not in _JUDGED or slot.session is None or slot.point is None:
            return None, CacheVerdict()
        found = self._verdicts.get(_name(slot))
        return self._told(slot, found[1]) if found is not None and found[0] == self._made_from(slot) else None

    def doubted(self, slot: Slot, told: Told) -> Told:
        """The verdict on a served call, which was held against the recorded calls alone.

        Where it goes on from one that was not recorded, what broke, or who wrote what was read, may be that one.
        """
        behind, cache = self._behind.get(slot.n), told[1]
        if behind is None or (told[0] is not None and cache.verdict not in ("break", "miss")):
            return told
        why = f"call {behind.n}, which this one goes on from, was not recorded"
        return behind.n, CacheVerdict(confidence="ambiguous", reported_read=cache.reported_read, why=why)

    def judge(self, slot: Slot) -> Told:
        """The verdict on a call; rebuilds it and its parent unless they are at hand."""
        known = self.known(slot)
        if known is not None:
            return known
        verdict = self._judge(slot, self._parents.get(slot.n))
        self._verdicts[_name(slot)] = self._made_from(slot), verdict
        return self._told(slot, verdict)

    def side(self, slot: Slot) -> LogSide | None:
        """A call's rebuilt request; ``None`` when its agent cannot say."""
        name, made_from = _name(slot), (slot.point, self.rebuilt_from(slot))
        known = self._sides.pop(name, None)
        if known is None or known[0] != made_from:
            near = next((side for _, side in reversed(self._sides.values()) if side is not None), None)
            known = made_from, self.rebuild(slot, near.body if near is not None else None)
            self._notices[name] = known[1].notices if known[1] is not None else ()
        self._sides[name] = known
        while len(self._sides) > _AT_HAND:
            self._sides.popitem(last=False)
        return known[1]

    def rules_of(self, slot: Slot) -> Rules:
        """How the provider that the log names keeps prompts; where it names none that is known, nothing is."""
        return rules_of(slot, self.providers)

    def notices(self, slot: Slot) -> tuple[str, ...]:
        """What could not be known of a call when it was rebuilt."""
        return self._notices.get(_name(slot), ())

    def _judge(self, slot: Slot, parent: Slot | None) -> CacheVerdict:
        side = self.side(slot)
        # a recorded one too as its log implies it: with what its bytes showed the two would differ in that alone
        before = self.side(replace(parent, heard=None)) if parent is not None else None
        if side is None or (parent is not None and before is None):
            return CacheVerdict(why="its request was not recorded, and is not rebuilt")
        if before is not None and before.body.api != side.body.api:
            return CacheVerdict(why="the log does not tell that both requests went by one API")
        around = Around(
            tuple(self._markers.get(slot.n, ())),
            gap=_gap(slot, parent),
            branched=slot.point is not None and slot.point.branched_from is not None,
        )
        theirs = prompt_of(before.body) if before is not None else None
        return judge_logged(
            prompt_of(side.body, theirs),
            theirs,
            self.rules_of(slot),
            around,
            side.scope,
            usage_of(slot),
            usage_of(parent) if parent is not None else None,
            says_of(slot),
        )

    def _told(self, slot: Slot, verdict: CacheVerdict) -> Told:
        parent = self._parents.get(slot.n)
        return parent.n if parent is not None else None, verdict

    def _made_from(self, slot: Slot) -> tuple[Any, ...]:
        parent = self._parents.get(slot.n)
        above = (parent.point, self.rebuilt_from(parent), usage_of(parent)) if parent is not None else ()
        marks = tuple(self._markers.get(slot.n, ()))
        return (slot.point, self.rebuilt_from(slot), usage_of(slot), marks, *above)


def _gap(slot: Slot, parent: Slot | None) -> float | None:
    """Seconds between what the log says was written last before each request; ``None`` where it does not say."""
    now, before = _asked(slot), _asked(parent) if parent is not None else None
    return now - before if now is not None and before is not None and now >= before else None


def _asked(slot: Slot) -> float | None:
    context = slot.point.context if slot.point is not None else ()
    return context[-1].time if len(context) else None


def _name(slot: Slot) -> Any:
    """What names a call by its place in a log, whatever its number is."""
    return id(slot.session), slot.point.key if slot.point is not None else ""
