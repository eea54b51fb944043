"""Which segments of two bodies are the same ones: whole segments more, fewer, or in another order."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from ctxscope.model import Segment

_PROOF = 2
"""Segments that must agree after an insertion before it is called one: a single short text repeats by chance."""


@dataclass(frozen=True, slots=True)
class Shift:
    """How the segment lists part at a place where no two segments correspond."""

    cls: Literal["missing", "extra", "order"]
    """``missing``: the first list lacks segments of the second; ``extra``: it has more; ``order``: it has the same."""
    count: int
    """Segments inserted, left out, or that changed places."""


def shift_at(first: Sequence[Segment], second: Sequence[Segment], i: int, j: int) -> Shift | None:
    """How ``first[i:]`` and ``second[j:]`` part, when it is by whole segments; ``None`` when a segment differs in place."""
    if i < len(first) and j < len(second) and first[i].digest == second[j].digest:
        return None
    a, b = [s.digest for s in first[i:]], [s.digest for s in second[j:]]
    if not a and not b:
        return None
    if not b:
        return Shift("extra", len(a))
    if not a:
        return Shift("missing", len(b))
    moved = _permuted(a, b)
    if moved:
        return Shift("order", moved)
    more, fewer = _resumes(a, b), _resumes(b, a)
    if more is not None and (fewer is None or more <= fewer):
        found = Shift("extra", more)
    elif fewer is not None:
        found = Shift("missing", fewer)
    else:
        return None
    goes_on_in_place = a[1 : 1 + _PROOF] == b[1 : 1 + _PROOF]
    return None if goes_on_in_place and found.count != abs(len(a) - len(b)) else found


def _permuted(a: list[bytes], b: list[bytes]) -> int:
    """How many items at the start of both lists are the same ones in another order, the lists going on alike behind them.

    0 when there is no such number.
    """
    surplus: Counter[bytes] = Counter()
    uneven = 0
    for n, (one, two) in enumerate(zip(a, b, strict=False), 1):
        for item, change in ((one, 1), (two, -1)):
            uneven -= surplus[item] != 0
            surplus[item] += change
            uneven += surplus[item] != 0
        if not uneven and a[n : n + _PROOF] == b[n : n + _PROOF]:
            return n
    return 0


def _resumes(longer: list[bytes], shorter: list[bytes]) -> int | None:
    """How many items of ``longer`` to leave out so that it goes on like ``shorter``; ``None`` when it never does."""
    at = 0
    while True:
        try:
            at = longer.index(shorter[0], at)
        except ValueError:
            return None
        proof = min(_PROOF, len(shorter), len(longer) - at)
        ends_together = len(longer) - at == len(shorter)
        if longer[at : at + proof] == shorter[:proof] and (proof == _PROOF or ends_together):
            return at
        at += 1


def anchors(first: Sequence[Segment], second: Sequence[Segment]) -> list[tuple[int, int]]:
    """Index pairs of segments that are the same in both lists, rising in both: unique digests, longest run of them.

    Costs n log n; text that occurs more than once is left to its neighbours.
    """
    once_a, once_b = _unique(first), _unique(second)
    pairs = [(i, once_b[d]) for d, i in once_a.items() if d in once_b]
    pairs.sort()
    tails: list[int] = []
    ends: list[int] = []
    back: list[int] = []
    for n, (_, j) in enumerate(pairs):
        k = bisect_left(tails, j)
        back.append(ends[k - 1] if k else -1)
        if k == len(tails):
            tails.append(j)
            ends.append(n)
        else:
            tails[k], ends[k] = j, n
    run: list[tuple[int, int]] = []
    n = ends[-1] if ends else -1
    while n >= 0:
        run.append(pairs[n])
        n = back[n]
    return run[::-1]


def _unique(segments: Sequence[Segment]) -> dict[bytes, int]:
    counts = Counter(s.digest for s in segments)
    return {s.digest: i for i, s in enumerate(segments) if counts[s.digest] == 1}
