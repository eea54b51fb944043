"""A session of very many judged calls, for the boxes that open over it: ledgers, compactions, breaks, findings."""

from __future__ import annotations

from dataclasses import replace

from ctxscope.model import CacheCost, CacheUse, CacheVerdict, CallView, Compaction, Finding
from tests.tui_session import FakeSource, Story, call
from tests.tui_tokens import LEDGER, PHANTOM

JUDGED = 2_000
_COMPACTED, _BROKEN, _FOUND = 100, 25, 40
"""Calls from one compaction, break or finding to the next."""
_CAUSES = ("system_changed", "tool_schema_changed", "model_changed")


class JudgedSource(FakeSource):
    """``JUDGED`` calls in turns of two, each counted."""

    def __init__(self) -> None:
        super().__init__(Story())
        numbers = range(1, JUDGED + 1)
        calls = [
            call(
                n,
                what=f"answer number {n}",
                tokens=replace(LEDGER, reported=1_000 + 900 * (n % _COMPACTED)),
                cache=_broken(n) if n % _BROKEN == 0 else call(n).cache,
            )
            for n in numbers
        ]
        at = {cause: tuple(n for n in numbers if calls[n - 1].cache.cause == cause) for cause in _CAUSES}
        costs = tuple(
            CacheCost("s1", "break", cause, ns, 4_321 * len(ns), False, 5_000.0 * len(ns), None, "", "keep it still")
            for cause, ns in at.items()
        )
        self.snapshot = replace(
            self.snapshot,
            calls=tuple(calls),
            markers=(),
            compactions=tuple(_compaction(n) for n in numbers if n % _COMPACTED == 0),
            costs=costs,
            uses=(CacheUse("s1", JUDGED, 900_000, 600_000, 300_000, 800_000, 100_000, (54, 60), (1, 4), 2),),
            findings=tuple(_finding(n) for n in numbers if n % _FOUND == 0),
        )

    def view(self, n: int) -> CallView:
        return self.story.view(n % 12 + 1, call(n))


def _broken(n: int) -> CacheVerdict:
    cause = _CAUSES[n // _BROKEN % len(_CAUSES)]
    why = f"a clock in the system prompt of call {n}, which every request spells anew"
    return CacheVerdict("break", cause, (cause,), "confirmed", "/system", lost_tokens=4_321, why=why)


def _compaction(n: int) -> Compaction:
    return replace(PHANTOM, told=replace(PHANTOM.told, marker=replace(PHANTOM.told.marker, call=n)), before=n - 1)


def _finding(n: int) -> Finding:
    told = f"a number is spelled in two ways, which call {n} serves and the log of it does not hold"
    return Finding("CTX101", "warning", (n,), "/max_tokens", told, "4096 and 4096.0")
