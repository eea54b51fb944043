"""Calls in order: exchanges by arrival, the points nobody served between them, with kind, turn and lineage."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ctxscope.model import CallKind, Point
from ctxscope.session.fold import SessionLog
from ctxscope.session.join import JoinedBy, Pair, join
from ctxscope.session.prints import PointPrints
from ctxscope.session.traffic import Heard, Key, Traffic


@dataclass(frozen=True, slots=True, eq=False)
class Slot:
    """A call before it is judged."""

    n: int
    session: SessionLog | None
    heard: Heard | None
    point: Point | None
    by: JoinedBy | None
    kind: CallKind
    lineage: str
    turn: int | None


@dataclass(frozen=True, slots=True, eq=False)
class Arranged:
    """All calls, and the points that are none: inputs that no call followed."""

    slots: tuple[Slot, ...]
    dead: tuple[tuple[SessionLog, Point], ...]


def arrange(sessions: Sequence[SessionLog], traffic: Traffic) -> Arranged:
    """Join every session with the traffic and number the calls by arrival, from 1.

    A session that continues another (fork, rotation) carries copies of its entries: the older one claims first, and a
    copied point counts once.
    """
    kinds = {h.key: _kind(h, sessions, traffic) for h in traffic}
    free = [h for h in traffic if kinds[h.key] in (None, "main")]
    pairs: dict[Key, tuple[SessionLog, Pair]] = {}
    claimed: set[str] = set()
    owners: list[tuple[SessionLog, list[Point], list[Pair]]] = []
    for session in _elders_first(sessions):
        own = [p for p in session.agent.requests(session.log) if not (p.ids and p.ids <= claimed)]
        owners.append((session, own, []))
        claimed |= {name for p in own for name in p.ids}
    # Points that wait for an answer come last: the end of a rotated parent would else take its child's first call.
    for waiting in (False, True):
        for session, own, found in owners:
            points = [p for p in own if (p.answer is None) is waiting]
            candidates = [h for h in free if h.key not in pairs]
            new = join(points, candidates, _Served(traffic), PointPrints(session, traffic))
            pairs |= {p.key: (session, p) for p in new}
            found.extend(new)
    rows = [_served_row(h, pairs, kinds) for h in traffic]
    dead: list[tuple[SessionLog, Point]] = []
    for session, own, found in owners:
        rows += _unserved_rows(session, own, found, traffic)
        joined = {p.point.key for p in found}
        dead += [(session, p) for p in own if p.answer is None and p.key not in joined and p.data.get("dead")]
    return Arranged(_number(rows), tuple(dead))


@dataclass(frozen=True, slots=True)
class _Row:
    order: tuple[float, int, float, int]
    session: SessionLog | None
    heard: Heard | None
    point: Point | None
    by: JoinedBy | None
    kind: CallKind


class _Served(dict[Key, Sequence[bytes]]):
    """Message hashes by exchange, computed where the join asks."""

    def __init__(self, traffic: Traffic) -> None:
        super().__init__()
        self._traffic = traffic

    def __missing__(self, key: Key) -> Sequence[bytes]:
        return self._traffic.prints(key)


def _elders_first(sessions: Sequence[SessionLog]) -> list[SessionLog]:
    """Parents before the sessions that continue them."""
    ids = {s.ref.id: s for s in sessions}

    def depth(session: SessionLog) -> int:
        steps, current = 0, session
        while current.ref.parent in ids and steps < len(ids):
            current, steps = ids[current.ref.parent], steps + 1
        return steps

    return sorted(sessions, key=depth)


def _kind(heard: Heard, sessions: Sequence[SessionLog], traffic: Traffic) -> CallKind | None:
    if heard.api is None:
        return "probe"
    body = traffic.body(heard.key)
    for agent in {s.agent.name: s.agent for s in sessions}.values():
        kind = agent.classify(body)
        if kind is not None:
            return kind
    return None


def _served_row(heard: Heard, pairs: dict[Key, tuple[SessionLog, Pair]], kinds: dict[Key, CallKind | None]) -> _Row:
    time = heard.exchange.time
    if heard.key in pairs:
        session, pair = pairs[heard.key]
        return _Row((time, 1, 0.0, heard.exchange.n), session, heard, pair.point, pair.by, pair.point.kind)
    return _Row(
        (time, 1, 0.0, heard.exchange.n), _only_session(heard, pairs), heard, None, None, kinds[heard.key] or "main"
    )


def _only_session(heard: Heard, pairs: dict[Key, tuple[SessionLog, Pair]]) -> SessionLog | None:
    """The session of a side call: certain only when its recording holds one session."""
    owners = {id(s): s for key, (s, _) in pairs.items() if key[0] == heard.exchange.recording}
    return next(iter(owners.values())) if len(owners) == 1 else None


def _unserved_rows(session: SessionLog, points: Sequence[Point], pairs: Iterable[Pair], traffic: Traffic) -> list[_Row]:
    """Answers that no exchange delivered, each right behind the point before it."""
    arrival = {p.point.key: traffic.heard[p.key].exchange.time for p in pairs if not p.attempt}
    rows: list[_Row] = []
    last: float | None = None
    upcoming = iter([arrival[p.key] for p in points if p.key in arrival])
    following = next(upcoming, None)
    for i, point in enumerate(points):
        if point.key in arrival:
            last, following = arrival[point.key], next(upcoming, None)
        elif point.answer is not None:
            own = point.time if point.time is not None else 0.0
            where = (last, 2) if last is not None else (following, 0) if following is not None else (own, 2)
            rows.append(_Row((where[0] or 0.0, where[1], own, i), session, None, point, None, point.kind))
    return rows


def _number(rows: Sequence[_Row]) -> tuple[Slot, ...]:
    slots: list[Slot] = []
    attempts: set[str] = set()
    aside = {"side": 0, "compaction": 0}
    turns: dict[int, int] = {}
    for n, row in enumerate(sorted(rows, key=lambda r: r.order), 1):
        kind, lineage = row.kind, row.point.lineage if row.point else "main"
        turn = row.point.turn or None if row.point else turns.get(id(row.session))
        if row.point is not None and row.heard is not None:
            name = f"{id(row.session)}:{row.point.key}"
            kind = "retry" if name in attempts else kind
            attempts.add(name)
        elif kind in aside:
            aside[kind] += 1
            lineage = f"{kind}:{aside[kind]}"
        elif kind == "probe":
            lineage = "probe"
        if turn is not None:
            turns[id(row.session)] = turn
        slots.append(Slot(n, row.session, row.heard, row.point, row.by, kind, lineage, turn))
    return tuple(slots)
