"""Two bodies side by side: which rows stand beside which, and which bytes of a changed row are the change.

Invariant: the left spans of all pairs concatenate to the left body, the right spans to the right one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Literal, NamedTuple

from ctxscope.tui.rows import Rows, character_border

Span = tuple[int, int]
PairKind = Literal["=", "≠", "-", "+"]
SMALL_MIDDLE = 600
"""Rows; below it a full alignment is cheap enough to be part of the first look."""
_EXACT_MIDDLE = 2_000
"""Rows; above it ``difflib``'s popularity heuristic keeps repetitive bodies from costing quadratic time."""


class Pair(NamedTuple):
    """One row of each side, or of one."""

    kind: PairKind
    left: Span | None
    right: Span | None
    depth: int = 0
    left_emphasis: Span | None = None
    """Bytes of the left body that the right row does not have, where the rows are alike around them."""
    right_emphasis: Span | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Alignment:
    """All pairs of a comparison."""

    pairs: Sequence[Pair]
    hunks: Sequence[int]
    """Index of the first pair of each run of pairs that are not equal."""
    final: bool
    """False while the rows between the first and the last difference are only paired in order."""


def alone(rows: Rows) -> Alignment:
    """One body with nothing to compare it to."""
    depths = rows.depths or [0] * len(rows)
    spans = zip(rows.starts, rows.starts[1:], strict=False)
    return Alignment([Pair("=", span, None, depth) for span, depth in zip(spans, depths, strict=True)], (), final=True)


def align(left: bytes, right: bytes, rows: tuple[Rows, Rows], *, thorough: bool) -> Alignment:
    """Pairs of two bodies.

    Not ``thorough``: a large middle is paired in order, so that the first difference can be shown at once; then ``final``
    is False and the caller comes back in a worker.
    """
    texts = (_slices(left, rows[0]), _slices(right, rows[1]))
    head = _equal_run(texts[0], texts[1])
    tail = _equal_run(texts[0][head:][::-1], texts[1][head:][::-1])
    middle = (texts[0][head : len(texts[0]) - tail], texts[1][head : len(texts[1]) - tail])
    final = thorough or max(map(len, middle)) <= SMALL_MIDDLE
    blocks = [("equal", 0, head, 0, head)]
    blocks += [(t, a + head, b + head, c + head, d + head) for t, a, b, c, d in _middle_blocks(middle, final=final)]
    blocks.append(("equal", len(texts[0]) - tail, len(texts[0]), len(texts[1]) - tail, len(texts[1])))
    pairs = [pair for block in blocks for pair in _pairs(left, right, rows, block)]
    starts = [i for i, p in enumerate(pairs) if p.kind != "=" and (i == 0 or pairs[i - 1].kind == "=")]
    return Alignment(pairs, starts, final)


def _middle_blocks(middle: tuple[list[bytes], list[bytes]], *, final: bool) -> list[tuple[str, int, int, int, int]]:
    if not final:
        return [("replace", 0, len(middle[0]), 0, len(middle[1]))]
    repetitive = max(map(len, middle)) > _EXACT_MIDDLE
    return list(SequenceMatcher(None, *middle, autojunk=repetitive).get_opcodes())


def _pairs(left: bytes, right: bytes, rows: tuple[Rows, Rows], block: tuple[str, int, int, int, int]) -> Iterator[Pair]:
    """The pairs of one block: in order as far as both sides go, then what one side has left over."""
    tag, a, a_end, b, b_end = block
    a_depths, b_depths = rows[0].depths, rows[1].depths
    while a < a_end and b < b_end:
        one, other = (rows[0].starts[a], rows[0].starts[a + 1]), (rows[1].starts[b], rows[1].starts[b + 1])
        depth = a_depths[a] if a_depths else 0
        if tag == "equal" or left[slice(*one)] == right[slice(*other)]:
            yield Pair("=", one, other, depth)
        else:
            yield Pair("≠", one, other, depth, *emphasis(left, right, one, other))
        a, b = a + 1, b + 1
    for i in range(a, a_end):
        span = (rows[0].starts[i], rows[0].starts[i + 1])
        yield Pair("-", span, None, a_depths[i] if a_depths else 0, span, None)
    for i in range(b, b_end):
        span = (rows[1].starts[i], rows[1].starts[i + 1])
        yield Pair("+", None, span, b_depths[i] if b_depths else 0, None, span)


def emphasis(left: bytes, right: bytes, one: Span, other: Span) -> tuple[Span, Span]:
    """What is left of two rows when their common beginning and end are taken off, whole characters only."""
    a, b = left[slice(*one)], right[slice(*other)]
    head = character_border(a, common_prefix(a, b), 0)
    rest = min(len(a), len(b)) - head
    tail = min(common_prefix(a[::-1], b[::-1]), rest)
    while tail and head + tail < len(a) and _continues(a, len(a) - tail):
        tail -= 1
    return (one[0] + head, one[1] - tail), (other[0] + head, other[1] - tail)


def common_prefix(a: bytes, b: bytes) -> int:
    """Length of the longest common prefix, by halving: slices compare at memory speed."""
    low, high = 0, min(len(a), len(b))
    while low < high:
        half = (low + high + 1) // 2
        if a[low:half] == b[low:half]:
            low = half
        else:
            high = half - 1
    return low


def _continues(data: bytes, at: int) -> bool:
    return at < len(data) and 0x80 <= data[at] < 0xC0  # noqa: PLR2004 - UTF-8 continuation bytes


def _slices(data: bytes, rows: Rows) -> list[bytes]:
    return [data[a:b] for a, b in zip(rows.starts, rows.starts[1:], strict=False)]


def _equal_run(a: Sequence[bytes], b: Sequence[bytes]) -> int:
    return next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
