"""Calls in order: exchanges by arrival, the points nobody served between them, with kind, turn and lineage."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from ctxscope.model import CallKind, Point
from ctxscope.session.fold import SessionLog
from ctxscope.session.join import JoinedBy, Joining, Pair, align, attempts, by_answer, by_context, by_id
from ctxscope.session.prints import PointPrints
from ctxscope.session.traffic import Heard, Key, Traffic


@dataclass(frozen=True, slots=True, eq=False, repr=False)
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
    copied: frozenset[tuple[str, str]] = frozenset()
    """Session and key of points that a session took over from the one it continues."""


ASIDE: tuple[CallKind, ...] = ("compaction", "side")
"""Calls beside the conversation: told by their fixed texts, they join only points of their kind."""
SURE, LIKELY = (by_id, by_answer, by_context), (align,)
"""Ways to find pairs; all sessions look for sure ones before any claims what is only likely."""


def arrange(sessions: Sequence[SessionLog], traffic: Traffic, prints: dict[SessionLog, PointPrints]) -> Arranged:
    """Join every session with the traffic and number the calls by arrival, from 1.

    A session that continues another (fork, rotation) carries copies of its entries: the older one claims first, and a
    copied point counts once. ``prints`` keeps what was rebuilt to compare contexts, from one call to the next.
    """
    kinds = {h.key: _kind(h, sessions, traffic) for h in traffic}
    named = _named(sessions, traffic)
    pairs: dict[Key, tuple[SessionLog, Pair]] = {}
    owners: list[tuple[SessionLog, str, Joining]] = []
    copied: set[tuple[str, str]] = set()
    for session, own, copies in _own_points(sessions, _askers(named, traffic)):
        copied.update((session.ref.id, key) for key in copies)
        known = prints.setdefault(session, PointPrints(session, traffic))
        owners += [(session, lineage, Joining(points, known)) for lineage, points in _lineages(own).items()]
    # Points that wait for an answer come last: the end of a rotated parent would else take its child's first call.
    frees: dict[tuple[SessionLog, str], list[Heard]] = {}
    for finders, waiting in ((SURE, False), (SURE, True), (LIKELY, False), (LIKELY, True)):
        for session, lineage, joining in owners:
            asked = lineage if lineage in ASIDE else "main"
            free = frees.get((session, asked))
            if free is None:
                here = (h for h in traffic if named.get(h.key, session) is session)
                free = frees[session, asked] = [h for h in here if (kinds[h.key] or "main") == asked]
            if not free:
                continue
            for finder in finders:
                found = joining.find(finder, free, pairs, waiting=waiting)
                if finder is by_answer:
                    found += joining.at_places(
                        free, pairs.keys() | {p.key for p in found}, _logs(session), waiting=waiting
                    )
                pairs |= {p.key: (session, p) for p in found}
    home = {p.point: session for session, p in pairs.values()}
    repeats = [h for h in traffic if kinds[h.key] != "probe"]
    pairs |= {p.key: (home[p.point], p) for p in attempts([p for _, p in pairs.values()], repeats)}
    rows = [_served_row(h, pairs, kinds, named) for h in traffic]
    dead: list[tuple[SessionLog, Point]] = []
    for session, _, joining in owners:
        rows += _unserved_rows(session, joining.points, joining.pairs, traffic)
        joined = {p.point.key for p in joining.pairs}
        dead += [
            (session, p) for p in joining.points if p.answer is None and p.key not in joined and p.data.get("dead")
        ]
    return Arranged(_number(rows), tuple(dead), frozenset(copied))


def _lineages(points: Sequence[Point]) -> dict[str, list[Point]]:
    """Points by what runs beside what: the conversation with its branches, each subagent, calls aside of each kind."""
    found: dict[str, list[Point]] = {}
    for point in points:
        beside = point.lineage if point.kind == "subagent" else point.kind if point.kind in ASIDE else "main"
        found.setdefault(beside, []).append(point)
    return found


def recognise(heard: Heard, sessions: Sequence[SessionLog], traffic: Traffic) -> None:
    """Ask the sessions' agents what they make of a request, while its body is at hand."""
    _kind(heard, sessions, traffic)
    _names(heard, sessions, traffic)


def _named(sessions: Sequence[SessionLog], traffic: Traffic) -> dict[Key, SessionLog]:
    """By exchange, the session its request names, where that one is here."""
    found = ((heard.key, _names(heard, sessions, traffic)) for heard in traffic)
    return {key: session for key, session in found if session is not None}


def _names(heard: Heard, sessions: Sequence[SessionLog], traffic: Traffic) -> SessionLog | None:
    """The first of the sessions that a request names."""
    for session in sessions:
        agent = session.agent
        if agent.name not in heard.named and heard.api is not None:
            heard.named[agent.name] = agent.named(heard.exchange.headers, traffic.body(heard.key))
    return next(
        (s for s in sessions if s.agent.name in heard.named and heard.named[s.agent.name].session == s.ref.id), None
    )


def _logs(session: SessionLog) -> dict[str, int]:
    """By path, also that of what links lead to, the number that the session's places have for a log."""
    paths = session.ref.paths
    return {name: i for i, path in reversed([*enumerate(paths)]) for name in (os.path.realpath(path), str(path))}


def _askers(named: dict[Key, SessionLog], traffic: Traffic) -> dict[str, SessionLog]:
    """By id of a reply that a session which continues another has, that session, where the request names it."""
    theirs = {s: _answers(s) for s in {*named.values()} if s.ref.parent}
    asked = ((heard, named[heard.key]) for heard in traffic if named.get(heard.key) in theirs)
    return {name: s for heard, s in asked if heard.reply for name in heard.reply.ids if name in theirs[s]}


def _answers(session: SessionLog) -> frozenset[str]:
    return frozenset().union(*(p.ids for p in session.agent.requests(session.log)))


def _own_points(
    sessions: Sequence[SessionLog], askers: dict[str, SessionLog]
) -> Iterator[tuple[SessionLog, Sequence[Point], Sequence[str]]]:
    """Each session with its points, and apart the keys of those whose answers the sessions it continues have.

    A session may take over what one that continues it did since (Claude Code 2.0 does): the one that asked has it.
    """
    ids: dict[str, frozenset[str]] = {}
    continued = {session.ref.parent for session in sessions}
    for session in _elders_first(sessions):
        before = ids.get(session.ref.parent or "", frozenset())
        points: list[Point] = []
        copies: list[str] = []
        for point in session.agent.requests(session.log):
            asker = next((askers[name] for name in point.ids if name in askers), session)
            if (before and point.ids and point.ids <= before) or asker.ref.parent == session.ref.id:
                copies.append(point.key)
            else:
                points.append(point)
        if session.ref.id in continued:
            ids[session.ref.id] = before.union(*(p.ids for p in points))
        yield session, points, copies


@dataclass(frozen=True, slots=True)
class _Row:
    order: tuple[float, int, float, int]
    session: SessionLog | None
    heard: Heard | None
    point: Point | None
    by: JoinedBy | None
    kind: CallKind


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
    for agent in {s.agent.name: s.agent for s in sessions}.values():
        if agent.name not in heard.kinds:
            heard.kinds[agent.name] = agent.classify(traffic.body(heard.key))
        if heard.kinds[agent.name] is not None:
            return heard.kinds[agent.name]
    return None


def _served_row(
    heard: Heard,
    pairs: dict[Key, tuple[SessionLog, Pair]],
    kinds: dict[Key, CallKind | None],
    named: dict[Key, SessionLog],
) -> _Row:
    time = heard.arrived
    if heard.key in pairs:
        session, pair = pairs[heard.key]
        kind: CallKind = "retry" if pair.attempt else pair.point.kind
        return _Row((time, 1, 0.0, heard.exchange.n), session, heard, pair.point, pair.by, kind)
    whose = named.get(heard.key) or _only_session(heard, pairs)
    return _Row((time, 1, 0.0, heard.exchange.n), whose, heard, None, None, kinds[heard.key] or "main")


def _only_session(heard: Heard, pairs: dict[Key, tuple[SessionLog, Pair]]) -> SessionLog | None:
    """The session of a side call: certain only when its recording holds one session."""
    owners = {id(s): s for key, (s, _) in pairs.items() if key[0] == heard.exchange.recording}
    return next(iter(owners.values())) if len(owners) == 1 else None


def _unserved_rows(session: SessionLog, points: Sequence[Point], pairs: Iterable[Pair], traffic: Traffic) -> list[_Row]:
    """Answers that no exchange delivered, each right behind the point before it."""
    arrival = {p.point.key: traffic.heard[p.key].arrived for p in pairs if not p.attempt}
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


def kept_slots(before: Sequence[Slot], now: Sequence[Slot]) -> tuple[Slot, ...]:
    """``now``, with the very objects of ``before`` where nothing about a call changed: verdicts are kept by them."""
    same = (a if _same(a, b) else b for a, b in zip(before, now, strict=False))
    return (*same, *now[len(before) :])


def _same(one: Slot, other: Slot) -> bool:
    return (
        one.heard is other.heard
        and one.point is other.point
        and one.session is other.session
        and (one.n, one.by, one.kind, one.lineage, one.turn)
        == (other.n, other.by, other.kind, other.lineage, other.turn)
    )


def followers_of(slots: Iterable[Slot]) -> dict[int, Slot]:
    """For each served and joined call, by number, the next one of its session and lineage."""
    following: dict[int, Slot] = {}
    last: dict[tuple[int, str], Slot] = {}
    for slot in slots:
        if slot.heard is not None and slot.point is not None:
            name = (id(slot.session), slot.lineage)
            if name in last:
                following[last[name].n] = slot
            last[name] = slot
    return following


def _number(rows: Sequence[_Row]) -> tuple[Slot, ...]:
    slots: list[Slot] = []
    aside = {"side": 0, "compaction": 0}
    turns: dict[int, int] = {}
    for n, row in enumerate(sorted(rows, key=lambda r: r.order), 1):
        kind, lineage = row.kind, row.point.lineage if row.point else "main"
        turn = row.point.turn or None if row.point else turns.get(id(row.session))
        if row.point is None and kind in aside:
            aside[kind] += 1
            lineage = f"{kind}:{aside[kind]}"
        elif row.point is None and kind == "probe":
            lineage = "probe"
        if turn is not None:
            turns[id(row.session)] = turn
        slots.append(Slot(n, row.session, row.heard, row.point, row.by, kind, lineage, turn))
    return tuple(slots)
