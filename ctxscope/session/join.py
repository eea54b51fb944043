"""Which exchange belongs to which place in a log.

Ids first. What they leave is a monotone alignment of request points and exchanges, gaps allowed on both sides, scored
by the answer (reply against stored answer), the share of equal messages and the order of arrival. Equal content is
evidence, never the key: a join by content would lose exactly the calls that diverge (DESIGN, "The join").
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from ctxscope.model import Block, Point
from ctxscope.session.traffic import Heard, Key

JoinedBy = Literal["id", "answer", "order"]

ACCEPT = 1.2
"""Least score of a pair: a nearly equal answer, or well over half of the messages equal."""
ANSWER_WEIGHT, CONTEXT_WEIGHT, LENGTH_WEIGHT, TIME_WEIGHT = 2.0, 2.0, 0.5, 0.1
NEAR_SECONDS = 30.0
NO_ANSWER_ALIKE = 0.2
"""Below this likeness two answers are two answers: evidence against the pair."""
WINDOW = 400
"""Most points or exchanges between two sure pairs that are aligned in full; beyond, the newest count."""


@dataclass(frozen=True, slots=True)
class Pair:
    """One exchange at one point; a point may have several (attempts), an exchange only one."""

    key: Key
    point: Point
    by: JoinedBy
    attempt: bool = False
    """An earlier or repeated attempt at the request that ``point`` records."""


Prints = Callable[[Point, Heard], Sequence[bytes]]
"""The message hashes of a point's context, as the API of an exchange would carry them."""


def join(
    points: Sequence[Point], exchanges: Sequence[Heard], served: Mapping[Key, Sequence[bytes]], prints: Prints
) -> list[Pair]:
    """Pairs of one session's points and the exchanges it may claim, in order of arrival.

    ``exchanges`` are the model calls not claimed by another session, by arrival; ``served`` has their message hashes
    (asked for only where ids do not decide).
    """
    pairs = _by_id(points, exchanges)
    taken_points = {p.point.key for p in pairs}
    taken = {p.key for p in pairs}
    rest_points = [p for p in points if p.key not in taken_points]
    rest = [e for e in exchanges if e.key not in taken]
    if rest_points and rest:
        position = {e.key: i for i, e in enumerate(exchanges)}
        rank = {p.key: i for i, p in enumerate(points)}
        anchors = _increasing([(rank[p.point.key], position[p.key]) for p in pairs])
        for some_points, some_exchanges in _windows(rest_points, rest, rank, position, anchors):
            pairs += _align(some_points, some_exchanges, served, prints)
    pairs += _attempts(pairs, exchanges)
    arrival = {e.key: i for i, e in enumerate(exchanges)}
    return sorted(pairs, key=lambda p: arrival[p.key])


def _by_id(points: Sequence[Point], exchanges: Sequence[Heard]) -> list[Pair]:
    """Each point with the exchange whose reply shares most of its ids; of equals the latest."""
    owners: dict[str, list[Heard]] = {}
    for exchange in exchanges:
        for name in exchange.reply.ids if exchange.reply else ():
            owners.setdefault(name, []).append(exchange)
    pairs, taken = [], set()
    for point in points:
        shared = Counter(e.key for name in point.ids for e in owners.get(name, ()) if e.key not in taken)
        if shared:
            best = max(shared, key=lambda key: (shared[key], key))
            taken.add(best)
            pairs.append(Pair(best, point, "id"))
    return pairs


def _increasing(pairs: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """The longest run of pairs that rises on both sides: anchors that cross it cannot bound a window."""
    best: list[tuple[int, tuple[int, int] | None]] = []
    ordered = sorted(pairs)
    for i, pair in enumerate(ordered):
        length, before = 1, None
        for j in range(max(0, i - 64), i):
            if ordered[j][1] < pair[1] and best[j][0] + 1 > length:
                length, before = best[j][0] + 1, ordered[j]
        best.append((length, before))
    chain: list[tuple[int, int]] = []
    where = {pair: i for i, pair in enumerate(ordered)}
    current = max(ordered, key=lambda p: best[where[p]][0], default=None)
    while current is not None:
        chain.append(current)
        current = best[where[current]][1]
    return chain[::-1]


def _windows(
    points: Sequence[Point],
    exchanges: Sequence[Heard],
    rank: Mapping[str, int],
    position: Mapping[Key, int],
    anchors: Sequence[tuple[int, int]],
) -> list[tuple[list[Point], list[Heard]]]:
    """What lies between two neighbouring anchors on both sides."""
    bounds = [(-1, -1), *anchors, (len(rank), len(position))]
    windows = []
    for (p0, e0), (p1, e1) in pairwise(bounds):
        some_points = [p for p in points if p0 < rank[p.key] < p1]
        some = [e for e in exchanges if e0 < position[e.key] < e1]
        if some_points and some:
            windows.append((some_points[-WINDOW:], some[-WINDOW:]))
    return windows


def _align(
    points: Sequence[Point], exchanges: Sequence[Heard], served: Mapping[Key, Sequence[bytes]], prints: Prints
) -> list[Pair]:
    """The monotone pairing with the highest sum of scores; of equals the one that pairs the later exchange.

    Later, because an attempt that was repeated left no answer: the last one is what the log records.
    """
    scores = [[score(p, e, served[e.key], prints(p, e)) for e in exchanges] for p in points]
    rows, columns = len(points), len(exchanges)
    best = [[0.0] * (columns + 1) for _ in range(rows + 1)]
    for i in range(1, rows + 1):
        for j in range(1, columns + 1):
            gap = max(best[i - 1][j], best[i][j - 1])
            value = scores[i - 1][j - 1]
            best[i][j] = max(gap, best[i - 1][j - 1] + value) if value >= ACCEPT else gap
    pairs: list[Pair] = []
    i, j = rows, columns
    while i and j:
        value = scores[i - 1][j - 1]
        if value >= ACCEPT and best[i][j] == best[i - 1][j - 1] + value:
            by: JoinedBy = (
                "answer" if likeness_of_answers(points[i - 1].blocks, exchanges[j - 1]) > NO_ANSWER_ALIKE else "order"
            )
            pairs.append(Pair(exchanges[j - 1].key, points[i - 1], by))
            i, j = i - 1, j - 1
        elif best[i][j] == best[i][j - 1]:
            j -= 1
        else:
            i -= 1
    return pairs


def score(point: Point, exchange: Heard, served: Sequence[bytes], logged: Sequence[bytes]) -> float:
    """How well an exchange fits a point, from below 0 to about 4.6."""
    context = CONTEXT_WEIGHT * share(served, logged)
    length = LENGTH_WEIGHT if served and len(served) == len(logged) else 0.0
    near = TIME_WEIGHT if _near(point, exchange) else 0.0
    if point.blocks is None or not exchange.answered:
        return context + length + near
    alike = likeness_of_answers(point.blocks, exchange)
    answer = ANSWER_WEIGHT * alike if alike >= NO_ANSWER_ALIKE or not _text(point.blocks) else -ANSWER_WEIGHT / 2
    return answer + context + length + near


def share(served: Sequence[bytes], logged: Sequence[bytes]) -> float:
    """Share of messages both sides have, from 0 to 1."""
    if not served and not logged:
        return 0.0
    common = sum((Counter(served) & Counter(logged)).values())
    return common / max(len(served), len(logged))


def likeness_of_answers(stored: Sequence[Block] | None, exchange: Heard) -> float:
    """Share of the longer answer that lies in the common beginning and end of stored and delivered text, 0 to 1."""
    if stored is None or exchange.reply is None:
        return 0.0
    mine, theirs = _text(stored), _text(exchange.reply.blocks)
    longest = max(len(mine), len(theirs))
    if not longest:
        return 0.0
    if mine == theirs:
        return 1.0
    shortest = min(len(mine), len(theirs))
    head = next((i for i in range(shortest) if mine[i] != theirs[i]), shortest)
    tail = next((i for i in range(shortest - head) if mine[-1 - i] != theirs[-1 - i]), shortest - head)
    return (head + tail) / longest


def _text(blocks: Sequence[Block]) -> str:
    return "\n".join(f"{b.name}{b.text}" for b in blocks if b.kind in ("text", "tool_call")).strip()


def _near(point: Point, exchange: Heard) -> bool:
    if point.time is None:
        return False
    end = exchange.exchange.end or exchange.exchange.time
    return abs(point.time - end) <= NEAR_SECONDS


def _attempts(pairs: Sequence[Pair], exchanges: Sequence[Heard]) -> list[Pair]:
    """Exchanges with the very bytes of a joined one: attempts at the same request (an error, a refused answer)."""
    taken = {p.key: p for p in pairs}
    by_sha = {e.sha256: taken[e.key] for e in exchanges if e.key in taken}
    return [
        Pair(e.key, by_sha[e.sha256].point, "order", attempt=True)
        for e in exchanges
        if e.key not in taken and e.sha256 in by_sha
    ]
