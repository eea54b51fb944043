"""Two bodies side by side: which rows stand beside which, and which bytes of a changed row are the change.

Invariant: the left spans of all pairs concatenate to the left body, the right spans to the right one. Pairs are made when
looked at: what is kept are blocks of rows, so that a body of 50,000 rows costs no more than the places where it differs.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from itertools import groupby, pairwise
from typing import Literal, NamedTuple, overload

from ctxscope.tui.comparison import Span
from ctxscope.tui.rows import Rows, character_border

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


class Block(NamedTuple):
    """Pairs of one kind, in order: rows of each side, equally many, or of one side alone."""

    kind: PairKind
    first: int
    """Index of its first pair."""
    left: int
    """First row of the left side; where it would stand for a block that has none."""
    left_end: int
    right: int
    right_end: int

    @property
    def end(self) -> int:
        """Index behind its last pair."""
        return self.first + max(self.left_end - self.left, self.right_end - self.right)


@dataclass(frozen=True, slots=True, eq=False)
class Alignment:
    """All pairs of a comparison."""

    bodies: tuple[bytes, bytes]
    """Left and right; the right one is empty when there is nothing to compare with."""
    rows: tuple[Rows, Rows]
    blocks: Sequence[Block]
    hunks: Sequence[int]
    """Index of the first pair of each run of pairs that are not equal."""
    hunk_ends: Sequence[int]
    """Index behind the last pair of each."""
    final: bool
    """False while the rows between the first and the last difference are only paired in order."""
    heights: dict[object, Sequence[int]] = field(default_factory=dict)
    """Lines the pairs take, by how they are wrapped: kept here for whoever lays them out again."""

    @property
    def pairs(self) -> Pairs:
        """The pairs, each made when asked for."""
        return Pairs(self)

    def block_of(self, pair: int) -> Block:
        """The block that holds a pair. ``IndexError`` when there are no pairs."""
        return self.blocks[bisect_right(self.blocks, pair, key=lambda b: b.first) - 1]

    def pair_of(self, offset: int, *, right: bool) -> int:
        """The pair that holds the byte at ``offset`` of one side, or the last one that is not behind it; 0 when there is none."""
        starts = self.rows[right].starts
        row = bisect_right(starts, offset, 0, len(starts) - 1) - 1
        if row < 0:
            return 0

        def first_row(block: Block) -> int:
            return block.right if right else block.left

        # the last block that begins there has rows of this side: one without begins where the next one does
        block = self.blocks[bisect_right(self.blocks, row, key=first_row) - 1]
        return block.first + row - first_row(block)

    def start_of(self, pair: int, *, right: bool) -> int:
        """Offset where a pair's row begins on one side; where it would begin, on the side that has none."""
        block = self.block_of(pair)
        first, end = (block.right, block.right_end) if right else (block.left, block.left_end)
        return self.rows[right].starts[min(first + pair - block.first, end)]


class Pairs(Sequence[Pair]):
    """The pairs of an alignment as a sequence that holds none."""

    def __init__(self, alignment: Alignment) -> None:
        self._of = alignment

    def __len__(self) -> int:
        return self._of.blocks[-1].end if self._of.blocks else 0

    @overload
    def __getitem__(self, index: int) -> Pair: ...
    @overload
    def __getitem__(self, index: slice) -> list[Pair]: ...
    def __getitem__(self, index: int | slice) -> Pair | list[Pair]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        if not 0 <= index < len(self):
            raise IndexError(index)
        block = self._of.block_of(index)
        return _pair(self._of, block, index - block.first)


def _pair(alignment: Alignment, block: Block, i: int) -> Pair:
    (left, right), (one, other) = alignment.bodies, alignment.rows
    if block.kind == "+":
        span = _span(other, block.right + i)
        return Pair("+", None, span, _depth(other, block.right + i), None, span)
    span, depth = _span(one, block.left + i), _depth(one, block.left + i)
    if block.kind == "-":
        return Pair("-", span, None, depth, span, None)
    if block.right_end == block.right:  # nothing to compare with
        return Pair("=", span, None, depth)
    beside = _span(other, block.right + i)
    if block.kind == "=":
        return Pair("=", span, beside, depth)
    return Pair("≠", span, beside, depth, *emphasis(left, right, span, beside))


def _span(rows: Rows, i: int) -> Span:
    return rows.starts[i], rows.starts[i + 1]


def _depth(rows: Rows, i: int) -> int:
    return rows.depths[i] if rows.depths else 0


def alone(data: bytes, rows: Rows) -> Alignment:
    """One body with nothing to compare it to."""
    blocks = [Block("=", 0, 0, len(rows), 0, 0)] if len(rows) else []
    return Alignment((data, b""), (rows, Rows([0])), blocks, (), (), final=True)


def align(left: bytes, right: bytes, rows: tuple[Rows, Rows], *, thorough: bool) -> Alignment:
    """Pairs of two bodies.

    Not ``thorough``: a large middle is paired in order, so that the first difference can be shown at once; then ``final``
    is False and the caller comes back in a worker.
    """
    head, tail = _shared_rows(left, right, rows)
    ends = (len(rows[0]) - tail, len(rows[1]) - tail)
    middle = (_slices(left, rows[0], head, ends[0]), _slices(right, rows[1], head, ends[1]))
    final = thorough or max(map(len, middle)) <= SMALL_MIDDLE
    opcodes = [("equal", 0, head, 0, head)]
    opcodes += [(t, a + head, b + head, c + head, d + head) for t, a, b, c, d in _opcodes(middle, final=final)]
    opcodes.append(("equal", ends[0], len(rows[0]), ends[1], len(rows[1])))
    blocks = list(_numbered(runs for code in opcodes for runs in _runs(left, right, rows, code)))
    changed = [(b.first, b.end) for b in blocks if b.kind != "="]
    hunks = [first for i, (first, _) in enumerate(changed) if i == 0 or changed[i - 1][1] != first]
    hunk_ends = [end for i, (_, end) in enumerate(changed) if i + 1 == len(changed) or changed[i + 1][0] != end]
    return Alignment((left, right), rows, blocks, hunks, hunk_ends, final)


def _shared_rows(left: bytes, right: bytes, rows: tuple[Rows, Rows]) -> tuple[int, int]:
    """How many rows at the beginning, and of the rest at the end, are the same on both sides."""
    one, other = rows[0].starts, rows[1].starts
    same = common_prefix(left, right)
    head = common_prefix(one[: bisect_right(one, same)], other[: bisect_right(other, same)]) - 1
    room = min(len(left) - one[head], len(right) - other[head])
    same = common_suffix(left, right, room)
    from_end = [
        [len(data) - start for start in reversed(starts[bisect_left(starts, len(data) - same) :])]
        for data, starts in ((left, one), (right, other))
    ]
    return head, common_prefix(*from_end) - 1


def _opcodes(middle: tuple[list[bytes], list[bytes]], *, final: bool) -> list[tuple[str, int, int, int, int]]:
    if not final:
        return [("replace", 0, len(middle[0]), 0, len(middle[1]))]
    repetitive = max(map(len, middle)) > _EXACT_MIDDLE
    return list(SequenceMatcher(None, *middle, autojunk=repetitive).get_opcodes())


Run = tuple[PairKind, int, int, int, int]


def _runs(left: bytes, right: bytes, rows: tuple[Rows, Rows], code: tuple[str, int, int, int, int]) -> Iterator[Run]:
    """One opcode as runs of one kind: in order as far as both sides go, then what one side has left over."""
    tag, a, a_end, b, b_end = code
    both = min(a_end - a, b_end - b)
    if tag == "equal":
        yield "=", a, a_end, b, b_end
        return
    pairs = zip(_slices(left, rows[0], a, a + both), _slices(right, rows[1], b, b + both), strict=True)
    for equal, run in groupby(x == y for x, y in pairs):
        length = sum(1 for _ in run)
        yield "=" if equal else "≠", a, a + length, b, b + length
        a, b = a + length, b + length
    yield "-", a, a_end, b, b
    yield "+", a_end, a_end, b, b_end


def _numbered(runs: Iterator[Run]) -> Iterator[Block]:
    first = 0
    for kind, *rows in runs:
        block = Block(kind, first, *rows)
        if block.end > first:
            yield block
            first = block.end


def emphasis(left: bytes, right: bytes, one: Span, other: Span) -> tuple[Span, Span]:
    """What is left of two rows when their common beginning and end are taken off, whole characters only."""
    a, b = left[slice(*one)], right[slice(*other)]
    head = character_border(a, common_prefix(a, b), 0)
    tail = common_suffix(a, b, min(len(a), len(b)) - head)
    while tail and head + tail < len(a) and _continues(a, len(a) - tail):
        tail -= 1
    return (one[0] + head, one[1] - tail), (other[0] + head, other[1] - tail)


def common_prefix(a: Sequence[object], b: Sequence[object]) -> int:
    """Length of the longest common prefix, by halving: slices compare at memory speed."""
    low, high = 0, min(len(a), len(b))
    while low < high:
        half = (low + high + 1) // 2
        if a[low:half] == b[low:half]:
            low = half
        else:
            high = half - 1
    return low


def common_suffix(a: bytes, b: bytes, most: int) -> int:
    """Length of the longest common suffix, at most ``most``."""
    low, high = 0, most
    while low < high:
        half = (low + high + 1) // 2
        if a[len(a) - half : len(a) - low] == b[len(b) - half : len(b) - low]:
            low = half
        else:
            high = half - 1
    return low


def _continues(data: bytes, at: int) -> bool:
    return at < len(data) and 0x80 <= data[at] < 0xC0  # noqa: PLR2004 - UTF-8 continuation bytes


def _slices(data: bytes, rows: Rows, first: int, end: int) -> list[bytes]:
    return [data[a:b] for a, b in pairwise(rows.starts[first : end + 1])]
