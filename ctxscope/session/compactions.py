"""Events that shortened the history, as agents tell them, with the calls they lie between."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from ctxscope.analysis.compactions import Around, judged, rates_of
from ctxscope.analysis.providers.rules import Rules
from ctxscope.model import BreakRate, Call, Compacted, Compaction, Marker
from ctxscope.session.calls import Slot
from ctxscope.session.fold import SessionLog

SHORTENS = frozenset({"compaction", "micro", "defrag", "prune", "shake", "strip"})
"""Kinds of the markers that leave less of the history than they found."""


def told_of(session: SessionLog, placed: Sequence[Marker]) -> Iterator[Compacted]:
    """What a session's agent tells of those of its markers that shortened the history; ``placed`` has their calls."""
    own = {(c.marker.kind, c.marker.place, c.marker.point): c for c in session.agent.compactions(session.log)}
    for marker in placed:
        if marker.kind in SHORTENS:
            told = own.get((marker.kind, marker.place, marker.point))
            yield replace(told, marker=marker) if told is not None else Compacted(marker)


def compactions_of(
    told: Sequence[Compacted], calls: Sequence[Call], slots: Sequence[Slot], rules_of: Callable[[Slot], Rules]
) -> tuple[tuple[Compaction, ...], tuple[BreakRate, ...]]:
    """Each event judged, and how often such events broke the cache; costs nothing where there is none."""
    if not told:
        return (), ()
    around = Around(calls, lambda n: rules_of(slots[n - 1]), lambda n: _took(slots[n - 1]))
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
