"""Rows into generations: stretches of the log between which the agent rewrote its whole history (hermes.md §7.3).

Every compaction re-inserts the surviving rows under new ids. A generation's leading rows are then *carried*: they were
not said again. Order is by id, never by time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from ctxscope.agents import Log, shared_memo
from ctxscope.agents.hermes.log import MESSAGE_SOURCES, is_old, newest, notes_of
from ctxscope.agents.hermes.rows import ARCHIVED, Row, row_of
from ctxscope.model import Entry

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
    made = shared_memo(log, "hermes.rows")
    found: list[Row] = []
    for entry in log.entries:
        if entry.source in MESSAGE_SOURCES:
            if entry not in made:
                made[entry] = _row(log, entry)
            if made[entry] is not None:
                found.append(made[entry])
    found.sort(key=lambda r: (not r.parent, r.id))
    return found


def _row(log: Log, entry: Entry) -> Row | None:
    """An entry as a row; one that left is the last version seen of it."""
    if entry.kind != "gone":
        return row_of(entry, gone=False)
    earlier = [e for e in log.history(entry.key) if e.kind != "gone"]
    return row_of(earlier[-1], gone=True) if earlier else None


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
    session, notes = newest(log, f"session:{log.ref.id}"), notes_of(log)
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
    look = _Look(rows, _stepped(rows) if old else frozenset(), _first_live(rows), {(r.role, r.ts): r.id for r in rows})
    starts = [0]
    seen = [before]
    for i in range(1, len(rows)):
        start = look.start(i, starts[-1])
        if start is None or start <= starts[-1]:
            continue
        run = rows[starts[-1] : start]
        if start != look.live and look.carried(run, seen[-1]) == len(run):
            continue
        seen.append(_Before(max(r.ts for r in run)))
        starts.append(start)
    out: list[Generation] = []
    for (start, end), known in zip(pairwise([*starts, len(rows)]), seen, strict=True):
        chunk = tuple(rows[start:end])
        out.append(Generation(chunk, look.carried(chunk, known), last=end == len(rows)))
    return out


@dataclass(frozen=True, slots=True, eq=False)
class _Look:
    """What tells where generations start and what they carry. Never a text alone: a marker's text may be anything."""

    rows: Sequence[Row]
    stepped: frozenset[int]
    """Ids of rows in a run of times one microsecond apart (0.19)."""
    live: int
    """Index where the newest generation starts."""
    last: Mapping[tuple[str, float], int]
    """Id of the last row of a role and time: a row that was said and carried on recurs."""

    def start(self, i: int, since: int) -> int | None:
        """Where a generation starts if row ``i`` is the first to show it; ``None`` when it shows nothing."""
        rows = self.rows
        if i == self.live:
            return i
        if rows[i - 1].gone and not rows[i].gone and all(r.gone for r in rows[since:i]):
            return i
        if i > self.live:  # rows that are active together were never rewritten between
            return None
        if rows[i].id in self.stepped:
            return i if rows[i - 1].id not in self.stepped else None
        if rows[i].ts >= rows[i - 1].ts:
            return None
        j = i
        while j - 1 > since and self._leads(rows[j - 1], rows[i]):
            j -= 1
        return j

    def _leads(self, row: Row, back: Row) -> bool:
        """Whether a row before the step back in time was written by the compaction that carried ``back`` over."""
        once = row.role == "user" and self.last[row.role, row.ts] == row.id
        written = row.summary or row.unsaid or row.put_back or once
        return written and row.flags == back.flags and row.ts > back.ts

    def carried(self, rows: Sequence[Row], before: _Before) -> int:
        """How many leading rows were brought over: up to the last one known before, and the markers after it."""
        n = max((i + 1 for i, r in enumerate(rows) if before.holds(r)), default=0)
        while n < len(rows) and (rows[n].summary or rows[n].id in self.stepped or (n and rows[n].unsaid)):
            n += 1
        return n


def _first_live(rows: Sequence[Row]) -> int:
    """Index of the first active row after the last archived one: exactly there the newest generation starts."""
    archived = max((i for i, r in enumerate(rows) if r.flags == ARCHIVED and not r.gone), default=-1)
    return next((i for i in range(archived + 1, len(rows)) if rows[i].active), len(rows)) if archived >= 0 else 0


def _stepped(rows: Sequence[Row]) -> frozenset[int]:
    """Ids of rows in a run of times one microsecond apart."""
    pairs = [(a.id, b.id) for a, b in pairwise(rows) if 0 < b.ts - a.ts < _STEP]
    return frozenset(i for pair in pairs for i in pair)
