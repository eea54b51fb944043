"""Events that shortened the history, as agents tell them, with the calls they lie between."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from ctxscope.analysis.compactions import Around, judged, rates_of, resent
from ctxscope.analysis.providers.rules import Rules
from ctxscope.analysis.token_sums import Unread
from ctxscope.analysis.tokens import Counter
from ctxscope.model import Body, BreakRate, Call, Compacted, Compaction, Marker
from ctxscope.session.calls import Slot
from ctxscope.session.fold import SessionLog
from ctxscope.session.traffic import Heard, Traffic

SHORTENS = frozenset({"compaction", "micro", "defrag", "prune", "shake", "strip"})
"""Kinds of the markers that leave less of the history than they found."""
_PROMPT = frozenset({"tool", "system", "message"})
"""Kinds of the segments that a model is given."""


def told_of(session: SessionLog, placed: Sequence[Marker]) -> Iterator[Compacted]:
    """What a session's agent tells of those of its markers that shortened the history; ``placed`` has their calls."""
    own = {(c.marker.kind, c.marker.place, c.marker.point): c for c in session.agent.compactions(session.log)}
    for marker in placed:
        if marker.kind in SHORTENS:
            told = own.get((marker.kind, marker.place, marker.point))
            yield replace(told, marker=marker) if told is not None else Compacted(marker)


@dataclass(eq=False, repr=False)
class Resent:
    """What a call was billed for anew though it stood in the prompt of another: measured once by two recorded calls."""

    traffic: Traffic
    counter: Counter
    _known: dict[Hashable, int] = field(default_factory=dict)

    def tokens(self, first: Slot, second: Slot, call: Call) -> int | None:
        """Tokens of the ``second``, whose ``call`` this is; ``None`` where its images or documents hide how its tokens lie."""
        counts, usage = call.tokens, call.usage
        if first.heard is None or second.heard is None or usage is None or usage.input is None:
            return None
        if counts.parts is None or not counts.visible or counts.reported is None:
            return None
        if counts.parts.images != 0 or counts.parts.documents != 0:
            return None
        anew, scale = usage.input + (usage.cache_write or 0), counts.reported / counts.visible
        name = (first.heard.key, second.heard.key, anew, scale)
        if name not in self._known:
            sides = [self._side(slot.heard) for slot in (first, second) if slot.heard is not None]
            if None in sides:
                return None
            theirs, mine = (side for side in sides if side is not None)
            last_first = sorted((s for s in mine.segments if s.kind in _PROMPT), key=lambda s: s.order, reverse=True)
            sizes = ((s.digest, self.counter.count_segment(mine, s) * scale) for s in last_first)
            earlier = {s.digest for s in theirs.segments if s.kind in _PROMPT}
            self._known[name] = round(resent(sizes, earlier, anew))
        return self._known[name]

    def _side(self, heard: Heard) -> Body | Unread | None:
        return self.traffic.unread(heard) or self.traffic.effective(heard.key)


def compactions_of(
    told: Sequence[Compacted],
    calls: Sequence[Call],
    slots: Sequence[Slot],
    rules_of: Callable[[Slot], Rules],
    again: Resent,
) -> tuple[tuple[Compaction, ...], tuple[BreakRate, ...]]:
    """Each event judged, and how often such events broke the cache; costs nothing where there is none."""
    if not told:
        return (), ()
    around = Around(
        calls,
        lambda n: rules_of(slots[n - 1]),
        lambda n: _took(slots[n - 1]),
        lambda first, second: again.tokens(slots[first.n - 1], slots[second.n - 1], second),
    )
    found = judged(told, around)
    return tuple(found), tuple(rates_of(found, around))


def refusals(slots: Sequence[Slot]) -> dict[int, str]:
    """By number of each call that ended in an error, what the provider, or the agent, said of it."""
    return {slot.n: error for slot in slots if (error := _error(slot))}


def _error(slot: Slot) -> str | None:
    if slot.heard is not None:
        return slot.heard.reply.error if slot.heard.reply is not None else None
    if slot.session is None or slot.point is None or slot.point.stop is None or slot.point.stop.state != "error":
        return None
    return slot.session.agent.error_line(slot.session.log, slot.point)


def _took(slot: Slot) -> float | None:
    exchange = slot.heard.exchange if slot.heard is not None else None
    return exchange.end - exchange.time if exchange is not None and exchange.end is not None else None
