"""Every served byte by the provenance of the rebuilt byte that equals it."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Literal

from ctxscope.analysis.alignment import anchors
from ctxscope.analysis.prefixes import common_prefix, common_suffix
from ctxscope.model import Body, Coverage, Piece, Provenance, Segment

Run = tuple[int, int, int]
"""Equal bytes: ``(served offset, rebuilt offset, length)``."""


def coverage(served: Body, rebuilt: Body, pieces: Sequence[Piece]) -> Coverage:
    """Served bytes by provenance; the first five numbers sum to ``len(served.data)``.

    ``pieces`` concatenate to ``rebuilt.data``. Bytes without an equal in the rebuilt body are ``unknown``.
    """
    counts: dict[Provenance, int] = dict.fromkeys(("logged", "derived", "learned", "echoed", "unknown"), 0)
    external = 0
    if served.data is rebuilt.data:  # calls share thousands of logged pieces: only the others are looked at one by one
        for piece in [p for p in pieces if p.provenance != "logged" or p.external]:
            counts[piece.provenance] += len(piece.data)
            external += len(piece.data) if piece.external else 0
        counts["logged"] = len(served.data) - sum(n for kind, n in counts.items() if kind != "logged")
        return Coverage(**counts, external=external)
    for piece, length in _covered(served, rebuilt, pieces):
        counts[piece.provenance] += length
        external += length if piece.external else 0
    counts["unknown"] += len(served.data) - sum(counts.values())
    return Coverage(**counts, external=external)


def _covered(served: Body, rebuilt: Body, pieces: Sequence[Piece]) -> Iterator[tuple[Piece, int]]:
    """Pieces and how many of their bytes were served; a length below 0 takes back what lies outside a run."""
    ends = list(accumulate(len(p.data) for p in pieces))
    for _, other, length in equal_runs(served, rebuilt):
        first, last = bisect_right(ends, other), bisect_left(ends, other + length)
        yield from ((piece, len(piece.data)) for piece in pieces[first : last + 1])
        if first < len(pieces):  # what of the outer two lies outside the run
            yield pieces[first], ends[first] - len(pieces[first].data) - other
        if last < len(pieces):
            yield pieces[last], other + length - ends[last]


def segment_provenance(
    served: Body, rebuilt: Body, pieces: Sequence[Piece]
) -> dict[str, Provenance | Literal["mixed"]]:
    """Served segment path to the one provenance all its bytes have, or ``mixed``; ``unknown`` where none is rebuilt."""
    spans = list(_spans(served, rebuilt, pieces))
    starts = [s[0] for s in spans]
    found: dict[str, Provenance | Literal["mixed"]] = {}
    for segment in served.segments:
        kinds: set[Provenance] = set()
        at = segment.start
        n = max(bisect_right(starts, at) - 1, 0)
        while n < len(spans) and spans[n][0] < segment.end:
            start, end, provenance = spans[n]
            if end > at:
                if start > at:
                    kinds.add("unknown")
                kinds.add(provenance)
                at = end
            n += 1
        if at < segment.end or not kinds:
            kinds.add("unknown")
        found[segment.path] = kinds.pop() if len(kinds) == 1 else "mixed"
    return found


def equal_runs(served: Body, rebuilt: Body) -> list[Run]:
    """Where the bodies hold equal bytes, in rising order on both sides.

    First the common front and back, then segments that are the same between them, then front and back of what lies
    between two such segments.
    """
    a, b = served.data, rebuilt.data
    front = common_prefix(a, b)
    if front == len(a) == len(b):
        return [(0, 0, front)] if front else []
    back = common_suffix(a, b, len(a), len(b), min(len(a), len(b)) - front)
    front -= max(front - _cut_by(x.segments, front)[0] for x in (served, rebuilt))
    back -= max(_cut_by(x.segments, end - back)[1] - (end - back) for x, end in ((served, len(a)), (rebuilt, len(b))))
    hole = (front, len(a) - back, front, len(b) - back)
    runs: list[Run] = [(0, 0, front)] if front else []
    runs += _middle(served, rebuilt, hole)
    if back:
        runs.append((len(a) - back, len(b) - back, back))
    return runs


def _cut_by(segments: Sequence[Segment], at: int) -> tuple[int, int]:
    """Start and end of the segment that a border at ``at`` would cut in two; ``at`` itself when it cuts none.

    A chance agreement of a few bytes must not keep a segment from being recognised as a whole.
    """
    n = bisect_right(segments, at, key=lambda s: s.start) - 1
    if n < 0 or not segments[n].start < at < segments[n].end:
        return at, at
    return segments[n].start, segments[n].end


def _middle(served: Body, rebuilt: Body, hole: tuple[int, int, int, int]) -> Iterator[Run]:
    """Equal runs inside ``served[a0:a1]`` and ``rebuilt[b0:b1]``, which differ at both ends."""
    a0, a1, b0, b1 = hole
    first = [s for s in served.segments if s.start >= a0 and s.end <= a1]
    second = [s for s in rebuilt.segments if s.start >= b0 and s.end <= b1]
    here = (a0, b0)
    for i, j in anchors(first, second):
        yield from _hole(served, rebuilt, (here[0], first[i].start, here[1], second[j].start))
        yield from _ends(served.data, rebuilt.data, (first[i].start, first[i].end, second[j].start, second[j].end))
        here = (first[i].end, second[j].end)
    yield from _hole(served, rebuilt, (here[0], a1, here[1], b1))


def _hole(served: Body, rebuilt: Body, hole: tuple[int, int, int, int]) -> Iterator[Run]:
    """Equal runs between two anchors: segments at the same path are compared with each other."""
    a0, a1, b0, b1 = hole
    theirs = {s.path: s for s in _inside(rebuilt.segments, b0, b1)}
    for segment in _inside(served.segments, a0, a1):
        other = theirs.get(segment.path)
        if other is None or segment.start < a0 or other.start < b0:
            continue
        yield from _ends(served.data, rebuilt.data, (a0, segment.start, b0, other.start))
        a0, b0 = segment.start, other.start
    yield from _ends(served.data, rebuilt.data, (a0, a1, b0, b1))


def _inside(segments: Sequence[Segment], start: int, end: int) -> Sequence[Segment]:
    low = bisect_right(segments, start - 1, key=lambda s: s.start)
    high = bisect_right(segments, end - 1, key=lambda s: s.start)
    return segments[low:high]


def _ends(a: bytes, b: bytes, hole: tuple[int, int, int, int]) -> Iterator[Run]:
    a0, a1, b0, b1 = hole
    room = min(a1 - a0, b1 - b0)
    front = common_prefix(a, b, a0, b0, room)
    if front:
        yield a0, b0, front
    back = common_suffix(a, b, a1, b1, room - front)
    if back:
        yield a1 - back, b1 - back, back


def _spans(served: Body, rebuilt: Body, pieces: Sequence[Piece]) -> Iterator[tuple[int, int, Provenance]]:
    """Equal runs cut at piece borders: ``(served start, served end, provenance)``, rising."""
    ends = list(accumulate(len(p.data) for p in pieces))
    for start, other, length in equal_runs(served, rebuilt):
        done = 0
        n = bisect_right(ends, other)
        while done < length and n < len(pieces):
            take = min(length - done, ends[n] - other - done)
            if take > 0:
                yield start + done, start + done + take, pieces[n].provenance
                done += take
            n += 1
