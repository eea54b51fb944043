"""What is to be said about a ``.ctxrec``: where it came from, and what of it cannot be had."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import get_args

from ctxscope.capture.ctxrec_index import Contents
from ctxscope.capture.events import How, Meta
from ctxscope.capture.raw_index import listed
from ctxscope.capture.record import Damage
from ctxscope.model import quoted

_HOWS = get_args(How)


@dataclass(slots=True)
class Troubles:
    """By number of the exchange, what is wrong with it; an exchange that is fine again is in none."""

    ended: dict[int, str] = field(default_factory=dict)
    """How, where that was not the reply's own end."""
    gaps: dict[int, str] = field(default_factory=dict)
    """What is to be said of a reply that lacks bytes."""
    requests: dict[int, str] = field(default_factory=dict)
    """Why a request is given as it was sent, still encoded."""
    replies: dict[int, str] = field(default_factory=dict)
    """Why a reply is not decoded whole."""
    damaged: dict[int, str] = field(default_factory=dict)
    """Why a request's bytes are not given, found when they were asked for."""
    spoilt: dict[int, str] = field(default_factory=dict)
    """Why a reply's bytes are not all given, likewise."""

    def note(self, kind: dict[int, str], n: int, words: str) -> None:
        """Note what is wrong; no words: nothing is."""
        if words:
            kind[n] = words
        else:
            kind.pop(n, None)


def told(name: str, contents: Contents, troubles: Troubles, damage: Iterable[Damage], rest: int) -> Iterator[str]:
    """A sentence for each kind of thing, beginning with the recording's name."""
    for meta in contents.metas:
        yield from (f"{name}: {words}" for words in _about(meta))
    places = [f"{gap.end - gap.at} bytes at {gap.at}" for gap in damage]
    if places:
        yield f"{name}: found damage, {listed(places)}; expected records, and what they held is left out"
    if rest:
        yield f"{name}: ends in {rest} bytes that are no whole record; expected one, and what it holds is left out"
    if contents.unknown:
        yield f"{name}: found {contents.unknown} records that this version of ctxscope does not know; left out"
    yield from (f"{name}: {words}" for words in _missing(contents, troubles))
    yield from (f"{name}: {words}" for words in _in_part(troubles))
    reasons: dict[str, int] = {}
    for _, events, why in contents.losses:
        reasons[why] = reasons.get(why, 0) + events
    for why, events in reasons.items():
        yield f"{name}: {events} events could not be recorded" + (f": {quoted(why)}" if why else "")


def _about(meta: Meta) -> Iterator[str]:
    if meta.override:
        changes = f"; the agent then: {'; '.join(meta.changes)}" if meta.changes else ""
        yield f"recorded through a proxy: {', '.join(meta.override)}{changes}"
    elif meta.changes:
        yield f"recorded through a proxy, under which the agent: {'; '.join(meta.changes)}"
    if meta.side:
        yield f"the {meta.side}bound side" + (f" of pair {meta.pair}" if meta.pair else "")
    for note in meta.notes:
        yield f"imported from {meta.source}: {note}" if meta.source else note


def _missing(contents: Contents, troubles: Troubles) -> Iterator[str]:
    if contents.orphans:
        yield f"request {listed(contents.orphans)} builds on one that is damaged or missing; left out"
    lost = [n for n in contents.unasked if n not in contents.found]
    if lost:
        yield f"found a reply to {listed(lost)} and no such request; left out"
    if contents.others:
        yield f"found a second, other request of number {listed(contents.others)}; left out"
    for why, numbers in _by_reason(troubles.damaged):
        yield f"request {listed(numbers)} is damaged and left empty: {why}"
    for why, numbers in _by_reason(troubles.spoilt):
        yield f"the reply to {listed(numbers)} is damaged and given up to there: {why}"


def _in_part(troubles: Troubles) -> Iterator[str]:
    if troubles.gaps:
        yield f"the reply to {listed(troubles.gaps)} was not recorded whole; given up to where bytes are missing"
    for why, numbers in _by_reason(troubles.requests):
        yield f"request {listed(numbers)} is given as it was sent, encoded: {why}"
    for why, numbers in _by_reason(troubles.replies):
        yield f"the reply to {listed(numbers)} is not decoded whole: {why}"
    for how, numbers in _by_reason(troubles.ended):
        told = how if how in _HOWS else quoted(how)
        yield f"exchange {listed(numbers)} did not end with its reply: {told}"


def _by_reason(numbers: dict[int, str]) -> list[tuple[str, list[int]]]:
    found: dict[str, list[int]] = {}
    for n, why in sorted(numbers.items()):
        found.setdefault(why, []).append(n)
    return sorted(found.items())
