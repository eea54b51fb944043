"""What lost prefixes cost, and how far a session is from the best its own calls allow.

In input tokens, by the multiples of the provider's rules; in money only where the user's rules give a price. What is new
in an append-only session is what each call adds to the one before: that bound is the session's own, no fixed ratio.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TypeVar

from ctxscope.analysis.providers.rules import Rules
from ctxscope.analysis.remedies import remedy
from ctxscope.model import CacheCost, CacheUse, CacheVerdict, Call, Usage

_LOST = ("break", "miss")
_SEAMS = frozenset({"compaction", "resume", "micro", "prune", "shake", "strip", "defrag"})
_MILLION = 1_000_000
_Number = TypeVar("_Number", int, float)


def priced(verdict: CacheVerdict, rules: Rules, usage: Usage | None = None, *, longer: bool = False) -> CacheVerdict:
    """A verdict with the price of what it lost: tokens x (write - read).

    ``longer``: the call has it kept for the longer life. A call that wrote nothing paid plain input.
    """
    if verdict.verdict not in _LOST or verdict.lost_tokens is None:
        return verdict
    write = rules.price_write_long if longer else rules.price_write
    if usage is not None and usage.cache_write == 0:
        write = 1.0
    if write is None or rules.price_read is None:
        return verdict
    extra = verdict.lost_tokens * (write - rules.price_read)
    money = extra * rules.money / _MILLION if rules.money is not None else None
    return replace(verdict, extra=extra, money=money, currency=rules.currency if money is not None else "")


def unbilled(verdict: CacheVerdict) -> CacheVerdict:
    """The verdict on a call that its provider refused: whatever became of its prefix cost nothing."""
    if verdict.verdict not in _LOST:
        return verdict
    why = f"{verdict.why}; the provider refused this call, so that nothing was billed"
    return replace(verdict, lost_tokens=0, lost_estimated=False, extra=None, money=None, currency="", why=why)


def timed(
    verdict: CacheVerdict, rules: Rules, usage: Usage | None, prompt_seconds: float | None, first_byte: float | None
) -> CacheVerdict:
    """A verdict with the seconds that a local engine needed to process again what was lost.

    ``prompt_seconds``: what the engine says it spent on the new part of the prompt; ``first_byte``: seconds from the request
    to the first byte of its reply.
    """
    lost, new = verdict.lost_tokens, usage.input if usage else None
    if not rules.local or verdict.verdict not in _LOST or lost is None or not new:
        return verdict
    share = min(1.0, lost / new)
    if prompt_seconds is not None:
        return replace(verdict, seconds=prompt_seconds * share, seconds_from="timings")
    if first_byte is None or first_byte <= 0:
        return verdict
    return replace(verdict, seconds=first_byte * share, seconds_from="first_byte")


def costs_of(calls: Sequence[Call]) -> list[CacheCost]:
    """Losses by session and cause, the dearest first, those of unknown size last."""
    groups: dict[tuple[str | None, str, str | None], list[Call]] = {}
    for call in calls:
        if call.cache.verdict in _LOST:
            groups.setdefault((call.session, call.cache.verdict, call.cache.cause), []).append(call)
    found = [_cost(group) for group in groups.values()]
    return sorted(found, key=lambda c: (c.lost_tokens is None, -(c.lost_tokens or 0), c.calls))


def _cost(group: Sequence[Call]) -> CacheCost:
    first, verdicts = group[0], [call.cache for call in group]
    return CacheCost(
        session=first.session,
        verdict=first.cache.verdict,
        cause=first.cache.cause,
        calls=tuple(call.n for call in group),
        lost_tokens=_whole([v.lost_tokens for v in verdicts]),
        estimated=any(v.lost_estimated for v in verdicts),
        extra=_whole([v.extra for v in verdicts]),
        money=_whole([v.money for v in verdicts]) if len({v.currency for v in verdicts}) == 1 else None,
        currency=first.cache.currency,
        remedy=remedy(first.cache.cause),
    )


def _whole(parts: Sequence[_Number | None]) -> _Number | None:
    """Their sum; ``None`` when one is not known: a sum that leaves one out would pass as the whole."""
    told = [part for part in parts if part is not None]
    return sum(told[1:], start=told[0]) if told and len(told) == len(parts) else None


def uses_of(calls: Sequence[Call]) -> Iterator[CacheUse]:
    """How each session used its cache; nothing for one whose provider reports no reads."""
    groups: dict[str | None, list[Call]] = {}
    for call in calls:
        usage = call.usage
        if usage is not None and usage.reported is not None and usage.cache_read is not None:
            groups.setdefault(call.session, []).append(call)
    by_number = {call.n: call for call in calls}
    for session in sorted(groups, key=lambda s: s is None):
        yield _use(session, groups[session], by_number)


def _use(session: str | None, calls: Sequence[Call], by_number: dict[int, Call]) -> CacheUse:
    sent = read = bound = seams = 0
    unbroken, behind = [0, 0], [0, 0]
    for call in calls:
        total, own = _sent(call), call.usage.cache_read if call.usage else None
        sent, read = sent + total, read + (own or 0)
        parent = by_number.get(call.parent or 0)
        bound += max(own or 0, min(total, _sent(parent))) if parent and _goes_on(call) else own or 0
        seam = bool(_SEAMS.intersection(call.markers)) or (parent is not None and _was_cut(parent))
        seams += seam
        counted = behind if seam else unbroken if parent is not None and call.cache.verdict not in _LOST else None
        if counted is not None:
            counted[0] += own or 0
            counted[1] += total
    return CacheUse(
        session,
        len(calls),
        sent,
        read,
        sent - read,
        bound,
        sent - bound,
        (unbroken[0], unbroken[1]),
        (behind[0], behind[1]),
        seams,
    )


def _goes_on(call: Call) -> bool:
    """Whether a call should have read its parent's prompt: not where it left a branch, or is another task."""
    return call.cache.verdict in _LOST or call.cache.expected_read is not None


def _sent(call: Call) -> int:
    return (call.usage.reported if call.usage else None) or 0


def _was_cut(call: Call) -> bool:
    return call.stop is not None and call.stop.state == "truncated"
