"""Which exchange belongs to which place in a log.

Ids first, then answers that only one place and one exchange have, then where the recorder saw the log stand, then
requests that only one of each has. What they leave is a monotone alignment of request points and exchanges, gaps allowed
on both sides, scored by the answer (reply against stored answer), the share of equal messages and the order of arrival.
Equal content is evidence, never the key: a join by content would lose exactly the calls that diverge (DESIGN, "The
join").
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Container, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Literal, Protocol

from ctxscope.analysis.prompts import shared
from ctxscope.model import Block, Place, Point
from ctxscope.session.traffic import Heard, Key

JoinedBy = Literal["id", "place", "answer", "order"]

ACCEPT = 1.2
"""Least score of a pair: a nearly equal answer, or well over half of the messages equal."""
ANSWER_WEIGHT, CONTEXT_WEIGHT, LENGTH_WEIGHT, TIME_WEIGHT = 2.0, 2.0, 0.5, 0.1
OTHER_IDS = 1.0
"""What speaks against a pair whose answers both have ids, and none in common."""
NEAR_SECONDS = 30.0
NO_ANSWER_ALIKE = 0.2
"""Below this likeness two answers are two answers: evidence against the pair."""
PAIRS = 160_000
"""Pairs of points and exchanges between two sure pairs that are compared in full."""


@dataclass(frozen=True, slots=True)
class Pair:
    """One exchange at one point; a point may have several (attempts), an exchange only one."""

    key: Key
    point: Point
    by: JoinedBy
    attempt: bool = False
    """An earlier or repeated attempt at the request that ``point`` records."""


class Prints(Protocol):
    """Requests as hashes: one of the system text, then one for each message."""

    def logged(self, point: Point, exchange: Heard) -> tuple[bytes, ...]:
        """Of a point's context, as the API of an exchange would carry it; empty when the agent cannot tell."""

    def served(self, exchange: Heard) -> tuple[bytes, ...]:
        """Of an exchange's effective request; empty when it is not known."""


Finder = Callable[[Sequence[Point], Sequence[Heard], Prints], list[Pair]]
"""Pairs among some points and exchanges that lie between the same two sure pairs."""


@dataclass(eq=False, repr=False)
class Joining:
    """One session's points and the exchanges found for them so far."""

    points: Sequence[Point]
    """In log order."""
    prints: Prints
    pairs: list[Pair] = field(default_factory=list)

    def find(self, finder: Finder, exchanges: Sequence[Heard], taken: Container[Key], *, waiting: bool) -> list[Pair]:
        """More pairs: of points with an answer or ``waiting`` for one, and of ``exchanges``, all by arrival, not taken."""
        known = {p.point.key for p in self.pairs}
        rest_points = [p for p in self.points if (p.answer is None) is waiting and p.key not in known]
        rest = [e for e in exchanges if e.key not in taken] if rest_points else []
        if not rest:
            return []
        rank = {p.key: i for i, p in enumerate(self.points)}
        position = {e.key: i for i, e in enumerate(exchanges)}
        anchors = _increasing([(rank[p.point.key], position[p.key]) for p in self.pairs])
        found: list[Pair] = []
        for some_points, some_exchanges in _windows(rest_points, rest, rank, position, anchors):
            found += finder(some_points, some_exchanges, self.prints)
        self.pairs += found
        return found

    def at_places(
        self, exchanges: Sequence[Heard], taken: Container[Key], logs: Mapping[str, int], *, waiting: bool
    ) -> list[Pair]:
        """More pairs: of an answer and the only exchange that arrived while the log stood right before it.

        ``logs``: by path, the number that places of this session have for it. An exchange that shares nothing with the
        place where it arrived is another task (a title, a probe) and no sign of anything.
        """
        known = {p.point.key for p in self.pairs}
        ends = sorted(
            (p.place.number, i) for i, p in enumerate(self.points) if p.answer is not None and not p.place.log
        )
        last = next((p for p in reversed(self.points) if p.answer is None), None)
        claims: dict[str, list[Heard]] = {}
        at: dict[str, Point] = {}
        for exchange in exchanges:
            stood = _stood(exchange, logs)
            if stood is None:
                continue
            behind = bisect_left(ends, (stood + 1, -1))
            point = self.points[ends[behind][1]] if behind < len(ends) else last
            if point is not None:
                claims.setdefault(point.key, []).append(exchange)
                at[point.key] = point
        found = [
            Pair(alone[0].key, at[key], "place")
            for key, alone in claims.items()
            if len(alone) == 1 and key not in known and alone[0].key not in taken
            if (at[key].answer is None) is waiting and self._akin(at[key], alone[0])
        ]
        self.pairs += found
        return found

    def _akin(self, point: Point, exchange: Heard) -> bool:
        """Whether nothing speaks against the pair: another answer than the stored one, or nothing in common at all."""
        if not may_be(point, exchange):
            return False
        if exchange.answered and point.blocks and _text(point.blocks):
            return likeness_of_answers(point.blocks, exchange) > NO_ANSWER_ALIKE
        return share(self.prints.served(exchange)[1:], self.prints.logged(point, exchange)[1:]) > 0


def _stood(exchange: Heard, logs: Mapping[str, int]) -> int | None:
    """The last entry (``line 41``) a session's own log had when an exchange arrived, as a number; ``None`` if not noted."""
    for path, entry in exchange.exchange.places:
        if logs.get(path) == 0 and (number := Place(0, entry).number):
            return number
    return None


def by_id(points: Sequence[Point], exchanges: Sequence[Heard], prints: Prints) -> list[Pair]:  # noqa: ARG001 - a Finder
    """Each point with the exchange that shares most of its ids.

    Only an id that one answer and one reply have tells them: servers that count from 1 in each process, or give every
    reply the same id, leave the rest to the alignment.
    """
    owners: dict[str, list[Key]] = {}
    for exchange in exchanges:
        for name in exchange.ids:
            owners.setdefault(name, []).append(exchange.key)
    uses = Counter(name for point in points for name in point.ids)
    pairs, taken = [], set()
    for point in points:
        names = [n for n in point.ids if uses[n] == 1 and len(owners.get(n, ())) == 1]
        found = Counter(owners[n][0] for n in names if owners[n][0] not in taken)
        if found:
            best = max(found, key=lambda key: (found[key], key))
            taken.add(best)
            pairs.append(Pair(best, point, "id"))
    return pairs


def by_answer(points: Sequence[Point], exchanges: Sequence[Heard], prints: Prints) -> list[Pair]:  # noqa: ARG001 - a Finder
    """Points and exchanges whose answer nobody else in the window gave, as far as they follow one another.

    They cut the window into small ones; what is left needs every pair compared.
    """
    stored = _once((_text(p.blocks), i) for i, p in enumerate(points) if p.blocks)
    delivered = _once((_text(e.reply.blocks), i) for i, e in enumerate(exchanges) if e.answered and e.reply)
    stored.pop("", None)
    return [Pair(e.key, p, "answer") for p, e in _following(points, exchanges, stored, delivered)]


def by_context(points: Sequence[Point], exchanges: Sequence[Heard], prints: Prints) -> list[Pair]:
    """The same where a request's system text and messages are, as a whole, those of one point."""
    if not points:
        return []
    served = _once((prints.served(e), i) for i, e in enumerate(exchanges))
    logged: dict[Hashable, int] = {}
    for api in {e.api.name: e for e in exchanges if e.api}.values():
        logged |= _once((prints.logged(p, api), i) for i, p in enumerate(points) if may_be(p, api))
    return [Pair(e.key, p, "order") for p, e in _following(points, exchanges, logged, served)]


def _following(
    points: Sequence[Point], exchanges: Sequence[Heard], first: Mapping[Hashable, int], second: Mapping[Hashable, int]
) -> Iterator[tuple[Point, Heard]]:
    """Points and exchanges that have the same name, as far as they follow one another."""
    told = [(first[name], second[name]) for name in first.keys() & second.keys()]
    for i, j in _increasing([(i, j) for i, j in told if may_be(points[i], exchanges[j])]):
        yield points[i], exchanges[j]


def _once(named: Iterable[tuple[Hashable, int]]) -> dict[Hashable, int]:
    """The numbers of names that occur once."""
    found: dict[Hashable, int] = {}
    again: set[Hashable] = set()
    for name, number in named:
        if name in found:
            again.add(name)
        found[name] = number
    return {name: number for name, number in found.items() if name not in again}


def _increasing(pairs: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """The longest run of pairs that rises on both sides: anchors that cross it cannot bound a window."""
    ordered = sorted(pairs)
    ends: list[int] = []
    """By length less one, the least second number that a run of that length ends with."""
    last: list[int] = []
    before: list[int | None] = []
    for i, (_, second) in enumerate(ordered):
        length = bisect_left(ends, second)
        before.append(last[length - 1] if length else None)
        ends[length : length + 1] = [second]
        last[length : length + 1] = [i]
    chain: list[tuple[int, int]] = []
    at = last[-1] if last else None
    while at is not None:
        chain.append(ordered[at])
        at = before[at]
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
            windows.append((some_points, some))
    return windows


def align(points: Sequence[Point], exchanges: Sequence[Heard], prints: Prints) -> list[Pair]:
    """The monotone pairing with the highest sum of scores; of equals the one that pairs the later exchange.

    Later, because an attempt that was repeated left no answer: the last one is what the log records.
    """
    rows, columns = len(points), len(exchanges)
    # In a window of thousands only pairs near its diagonal are compared.
    reach = max(abs(rows - columns), PAIRS // max(rows, columns))

    def fits(i: int, j: int) -> float:
        point, exchange = points[i], exchanges[j]
        if abs(i - j * rows // columns) > reach or not may_be(point, exchange):
            return 0.0
        return score(point, exchange, prints.served(exchange)[1:], prints.logged(point, exchange)[1:])

    scores = [[fits(i, j) for j in range(columns)] for i in range(rows)]
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


def may_be(point: Point, exchange: Heard) -> bool:
    """Whether an exchange can be a point's at all: by the API the log says it spoke."""
    return point.api is None or exchange.api is None or point.api == exchange.api.name


def score(point: Point, exchange: Heard, served: tuple[bytes, ...], logged: tuple[bytes, ...]) -> float:
    """How well an exchange fits a point, from below 0 to about 4.6."""
    context = CONTEXT_WEIGHT * share(served, logged)
    length = LENGTH_WEIGHT if served and len(served) == len(logged) else 0.0
    near = TIME_WEIGHT if _near(point, exchange) else 0.0
    if point.blocks is None or not exchange.answered:
        return context + length + near
    alike = likeness_of_answers(point.blocks, exchange)
    if point.ids and exchange.reply and exchange.reply.ids and not point.ids & exchange.reply.ids:
        near -= OTHER_IDS  # agents may rename ids, so this alone decides nothing
    answer = ANSWER_WEIGHT * alike if alike >= NO_ANSWER_ALIKE or not _text(point.blocks) else -ANSWER_WEIGHT / 2
    return answer + context + length + near


def share(served: tuple[bytes, ...], logged: tuple[bytes, ...]) -> float:
    """Share of the longer side that lies in the common beginning and end of both, from 0 to 1."""
    longest, shortest = max(len(served), len(logged)), min(len(served), len(logged))
    if not shortest:
        return 0.0
    front = shared(served, logged)
    back = min(shortest - front, shared(served[::-1], logged[::-1]))
    return (front + back) / longest


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


def attempts(pairs: Iterable[Pair], exchanges: Sequence[Heard]) -> list[Pair]:
    """Attempts at the request of a joined exchange: the very bytes or, where no answer came, the very prompt.

    A client may spell what is no part of the prompt anew in each (Codex 0.171: ``client_metadata``).
    """
    taken = {p.key: p for p in pairs}
    by_sha = {e.sha256: taken[e.key] for e in exchanges if e.key in taken}
    failed = [e for e in exchanges if e.key not in taken and e.sha256 not in by_sha and _failed(e)]
    by_prompt: dict[Hashable, Pair] = {}
    if failed:
        by_prompt = {prompt: taken[e.key] for e in exchanges if e.key in taken and (prompt := _prompt(e))}
    found = [(e, by_sha[e.sha256]) for e in exchanges if e.key not in taken and e.sha256 in by_sha]
    found += [(e, by_prompt[prompt]) for e in failed if (prompt := _prompt(e)) in by_prompt]
    return [Pair(e.key, pair.point, "order", attempt=True) for e, pair in found]


def _failed(exchange: Heard) -> bool:
    """Whether an exchange brought no answer, or one that broke off."""
    return not exchange.answered or (exchange.reply is not None and not exchange.reply.complete)


def _prompt(exchange: Heard) -> Hashable:
    """What an exchange asked, whatever else it says; ``None`` where it asks nothing."""
    segments = tuple(s.digest for s in exchange.segments if s.kind not in ("param", "opaque"))
    return (exchange.model, segments) if segments else None
