"""Rows into generations: stretches of the log between which the agent rewrote its whole history (hermes.md §7.3).

Every compaction re-inserts the surviving rows under new ids. A generation's leading rows are then *carried*: they were
not said again. Order is by id, never by time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from ctxscope.agents import Log
from ctxscope.agents.hermes.log import MESSAGE_SOURCES, is_old, newest
from ctxscope.agents.hermes.rows import ARCHIVED, Row, row_of

_STEP = 2e-6
"""0.19 writes a compacted list with times one microsecond apart."""


@dataclass(frozen=True, slots=True, eq=False)
class Generation:
    """Rows of one generation in order."""

    rows: tuple[Row, ...]
    carried: int
    """How many leading rows were brought over from before."""
    last: bool
    """The rows the agent has now."""


def rows_of(log: Log) -> list[Row]:
    """All message rows ever seen, by id, those of the continued session first."""
    found: list[Row] = []
    for entry in log.entries:
        if entry.source not in MESSAGE_SOURCES:
            continue
        if entry.kind != "gone":
            row = row_of(entry, gone=False)
        else:
            earlier = [e for e in log.history[entry.key] if e.kind != "gone"]
            row = row_of(earlier[-1], gone=True) if earlier else None
        if row is not None:
            found.append(row)
    found.sort(key=lambda r: (not r.parent, r.id))
    return found


def generations_of(log: Log, rows: Sequence[Row]) -> list[Generation]:
    """The generations of a session, oldest first; those of the session it continues come before its own."""
    parents = [r for r in rows if r.parent]
    own = [r for r in rows if not r.parent]
    old = is_old(log)
    out = _split(parents, old, _Before()) if parents else []
    return out + _split(own, old, _inherited(log, parents))


@dataclass(frozen=True, slots=True)
class _Before:
    """What the rows before a generation say of which rows it may carry."""

    until: float = float("-inf")
    """Newest time among them."""
    said: frozenset[tuple[str, float]] = frozenset()
    """(role, time) of each."""

    def holds(self, row: Row) -> bool:
        return row.ts <= self.until or (row.role, row.ts) in self.said


def _inherited(log: Log, parents: Sequence[Row]) -> _Before:
    """What a continued session hands its child: everything after a rotation, the copied rows after a branch."""
    if log.ref.parent is None:
        return _Before()
    session = newest(log, f"session:{log.ref.id}")
    config = session.data.get("model_config") if session is not None else None
    notes = config if isinstance(config, dict) else {}
    if "_delegate_from" in notes or "_reset_from" in notes:
        return _Before()
    said = frozenset((r.role, r.ts) for r in parents)
    if "_branched_from" in notes:
        return _Before(said=said)
    if parents:
        return _Before(max(r.ts for r in parents), said)
    started = session.data.get("started_at") if session is not None else None
    return _Before(float(started)) if isinstance(started, int | float) else _Before()


def _split(rows: Sequence[Row], old: bool, before: _Before) -> list[Generation]:
    if not rows:
        return []
    stepped = _stepped(rows) if old else frozenset()
    live = _first_live(rows)
    starts = [0]
    for i in range(1, len(rows)):
        start = _start(rows, i, starts[-1], live, stepped)
        if start is None or start <= starts[-1]:
            continue
        seen = before if len(starts) == 1 else _seen(rows, starts)
        run = rows[starts[-1] : start]
        if start != live and _carried(run, seen, stepped) == len(run):
            continue
        starts.append(start)
    out: list[Generation] = []
    for k, (start, end) in enumerate(pairwise([*starts, len(rows)])):
        chunk = tuple(rows[start:end])
        seen = before if k == 0 else _seen(rows, starts[: k + 1])
        out.append(Generation(chunk, _carried(chunk, seen, stepped), last=end == len(rows)))
    return out


def _start(rows: Sequence[Row], i: int, since: int, live: int, stepped: frozenset[int]) -> int | None:
    """Where a generation starts if row ``i`` is the first to show it; ``None`` when it shows nothing."""
    if i == live:
        return i
    if i > live:  # rows that are active together were never rewritten between
        return None
    if rows[i - 1].gone and not rows[i].gone and all(r.gone for r in rows[since:i]):
        return i
    if rows[i].id in stepped:
        return i if rows[i - 1].id not in stepped else None
    if rows[i].ts >= rows[i - 1].ts:
        return None
    j = i
    while j - 1 > since and rows[j - 1].summary and rows[j - 1].flags == rows[i].flags and rows[j - 1].ts > rows[i].ts:
        j -= 1
    return j


def _first_live(rows: Sequence[Row]) -> int:
    """Index of the first active row after the last archived one: exactly there the newest generation starts."""
    archived = max((i for i, r in enumerate(rows) if r.flags == ARCHIVED and not r.gone), default=-1)
    return next((i for i in range(archived + 1, len(rows)) if rows[i].active), len(rows)) if archived >= 0 else 0


def _stepped(rows: Sequence[Row]) -> frozenset[int]:
    """Ids of rows in a run of times one microsecond apart."""
    pairs = [(a.id, b.id) for a, b in pairwise(rows) if 0 < b.ts - a.ts < _STEP]
    return frozenset(i for pair in pairs for i in pair)


def _seen(rows: Sequence[Row], starts: Sequence[int]) -> _Before:
    """The generation before the one starting last."""
    chunk = rows[starts[-2] if len(starts) > 1 else 0 : starts[-1]]
    return _Before(max((r.ts for r in chunk), default=float("-inf")))


def _carried(rows: Sequence[Row], before: _Before, stepped: frozenset[int]) -> int:
    """How many leading rows were carried over."""
    n = 0
    while n < len(rows) and (before.holds(rows[n]) or rows[n].summary or rows[n].id in stepped):
        n += 1
    while n < len(rows) and n and rows[n].synthetic and any(before.holds(r) for r in rows[n + 1 :]):
        n += 1
        while n < len(rows) and (before.holds(rows[n]) or rows[n].summary):
            n += 1
    return n
