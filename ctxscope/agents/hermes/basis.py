"""What a call's rebuilt request depends on beside its own rows; the rest of the log may change without touching it."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Hashable, Mapping, Sequence

from ctxscope.agents import Log
from ctxscope.agents.hermes.log import newest
from ctxscope.agents.hermes.points import reading_of
from ctxscope.agents.hermes.prompts import system_entry, tools_of
from ctxscope.agents.hermes.runs import origins_of, rows_among, runs_of, turn_of
from ctxscope.model import Point

_SESSION = ("model", "billing_provider", "billing_base_url")
"""Of the session row only this reaches a request; its counters change with every message."""


def basis_of(log: Log, point: Point) -> Hashable:
    """Equal as long as nothing beside the context changed that ``learn`` or ``rebuild`` look at for this point."""
    session = newest(log, f"session:{log.ref.id}")
    config = newest(log, "config:file")
    runs, turn = runs_of(log), turn_of(point) or 0
    return (
        system_entry(log, point),
        tools_of(log, point),
        tuple(session.data.get(key) for key in _SESSION) if session is not None else None,
        config,
        reading_of(log).old,
        tuple((row, fresh) for row, fresh in runs.fresh.items() if row <= turn),
        runs.model.get(turn),
        runs.provider.get(turn),
        _carried(log, point),
    )


def _carried(log: Log, point: Point) -> int:
    """Stands for where the rows up to the context's last one were first said."""
    origins = origins_of(log)
    known: tuple[Mapping[int, int], Sequence[int], Sequence[int]] | None = log.memo.get("hermes.carried")
    if known is None or known[0] is not origins:
        rows = sorted(origins)
        sums = [0]
        for row in rows:
            sums.append(hash((sums[-1], row, origins[row])))
        log.memo["hermes.carried"] = known = (origins, rows, sums)
    last = max((entry.data["id"] for entry in rows_among(point.context[-1:])), default=0)
    return known[2][bisect_right(known[1], last)]
