"""Sums over judged calls."""

from __future__ import annotations

from collections.abc import Sequence

from ctxscope.model import Call, Totals


def totals_of(calls: Sequence[Call]) -> Totals:
    """Sums; shares are ``None`` where nothing could be measured."""
    both = [c for c in calls if c.rebuilt.coverage is not None and c.request_bytes]
    known = sum(c.rebuilt.coverage.logged + c.rebuilt.coverage.derived for c in both if c.rebuilt.coverage)
    served = sum(c.request_bytes or 0 for c in both)
    costs = [c.cache.lost_tokens for c in calls if c.cache.verdict in ("break", "miss")]
    told = [lost for lost in costs if lost is not None]  # a sum that leaves one out would pass as the whole
    return Totals(
        calls=len(calls),
        joined=sum(1 for c in calls if c.exchange and c.entry),
        equal=sum(1 for c in calls if c.rebuilt.state == "equal"),
        breaks=sum(1 for c in calls if c.cache.verdict == "break"),
        misses=sum(1 for c in calls if c.cache.verdict == "miss"),
        lost_tokens=sum(told) if len(told) == len(costs) else None,
        coverage=known / served if served else None,
        reuse=_reuse(calls),
    )


def _reuse(calls: Sequence[Call]) -> float | None:
    """Prompt tokens sent ÷ prompt tokens that were new in their call, as reported."""
    told = [c.usage for c in calls if c.usage and c.usage.reported is not None and c.usage.cache_read is not None]
    sent = sum(u.reported or 0 for u in told)
    new = sum((u.reported or 0) - (u.cache_read or 0) for u in told)
    return sent / new if new > 0 else None
