"""A comparison laid out as screen lines: wrapped to a width, equal runs folded. Lines refer to bytes, they hold none."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ctxscope.tui.align import Alignment, Pair, Span
from ctxscope.tui.comparison import Comparison, Side
from ctxscope.tui.rows import Form
from ctxscope.tui.visible import cells, visible

_MOST_CELLS_PER_BYTE = 4
r"""``\xff``: no byte is shown wider."""


@dataclass(frozen=True, slots=True)
class Layout:
    """How a comparison is to be laid out."""

    width: int
    """Cells for the text of one side."""
    beside: bool
    """Both sides in one line; else a changed row is the left line above the right one."""
    form: Form = "raw"
    wrap: bool = True
    pictures: bool = True
    context: int = 3
    """Equal rows kept on either side of a difference."""
    hex_bytes: int = 16


class Line(NamedTuple):
    """One line of the bytes pane."""

    pair: int
    """Index of the pair; of the first folded one for a fold."""
    left: Span | None
    right: Span | None
    folded: int = 0
    """How many equal pairs this line stands for."""
    start: bool = True
    """First line of its row, which carries the mark."""


@dataclass(frozen=True, slots=True, eq=False)
class Sheet:
    """All lines of one comparison at one width."""

    comparison: Comparison
    alignment: Alignment
    layout: Layout
    lines: Sequence[Line]

    def line_of_pair(self, pair: int) -> int:
        """The first line of a pair, or the fold that hides it."""
        i = bisect_left(self.lines, pair, key=lambda line: line.pair)
        if i < len(self.lines) and self.lines[i].pair == pair:
            return i
        return max(i - 1, 0)

    def line_of(self, offset: int, *, right: bool) -> int:
        """The line that shows the byte at ``offset`` of one side, or the fold that hides it."""
        i = first = self.line_of_pair(self.pair_of(offset, right=right))
        pair = self.lines[first].pair if self.lines else 0
        while i < len(self.lines) and self.lines[i].pair == pair:
            span = self.lines[i].right if right else self.lines[i].left
            if span and span[0] <= offset < span[1]:
                return i
            i += 1
        return first

    def pair_of(self, offset: int, *, right: bool) -> int:
        """The pair that holds the byte at ``offset`` of one side; the last one before it where that side has none."""
        pairs = self.alignment.pairs
        low, high = 0, len(pairs)
        while low < high:
            middle = (low + high) // 2
            at = middle
            while at >= low and _side(pairs[at], right=right) is None:
                at -= 1
            span = _side(pairs[at], right=right) if at >= low else None
            if span is not None and span[0] > offset:
                high = at
            else:
                low = middle + 1
        at = low - 1
        while at > 0 and _side(pairs[at], right=right) is None:
            at -= 1
        return max(at, 0)

    def hunk_at(self, line: int) -> int:
        """Number of hunks that begin at or before this line."""
        return bisect_right(self.alignment.hunks, self.lines[line].pair) if self.lines else 0


def lay_out(
    comparison: Comparison, alignment: Alignment, layout: Layout, opened: frozenset[int] = frozenset()
) -> Sheet:
    """The lines of a comparison; ``opened`` names the folds to open by the pair they begin with."""
    lines: list[Line] = []
    for first, end, fold in _stretches(alignment, layout.context, folding=comparison.right is not None):
        if fold and first not in opened:
            lines.append(Line(first, None, None, end - first))
            continue
        for i in range(first, end):
            lines.extend(_pair_lines(comparison, alignment.pairs[i], i, layout))
    return Sheet(comparison, alignment, layout, lines)


def _stretches(alignment: Alignment, context: int, *, folding: bool) -> Iterator[tuple[int, int, bool]]:
    """Runs of pairs ``(first, end, fold)`` that cover all pairs: equal ones far from a difference fold."""
    if not folding:
        yield 0, len(alignment.pairs), False
        return
    shown_to, pairs = 0, alignment.pairs
    for hunk in alignment.hunks:
        end = hunk
        while end < len(pairs) and pairs[end].kind != "=":
            end += 1
        start = max(hunk - context, shown_to)
        if start - shown_to > 1:
            yield shown_to, start, True
        else:
            start = shown_to
        shown_to = min(end + context, len(pairs))
        yield start, shown_to, False
    rest = len(pairs) - shown_to
    head = min(context, rest) if not alignment.hunks else 0
    if head:
        yield 0, head, False
    if rest - head > 0:
        yield shown_to + head, len(pairs), rest - head > 1


def _pair_lines(comparison: Comparison, pair: Pair, index: int, layout: Layout) -> Iterator[Line]:
    left = _chunks(comparison.left, pair.left, pair.depth, layout)
    right = _chunks(comparison.right, pair.right, pair.depth, layout) if comparison.right else []
    if layout.beside and comparison.right:
        for k in range(max(len(left), len(right))):
            yield Line(index, left[k] if k < len(left) else None, right[k] if k < len(right) else None, start=k == 0)
    elif pair.kind == "=":
        # one column shows an equal row once; the right span rides along for its provenance
        shift = pair.right[0] - pair.left[0] if pair.left and pair.right else None
        for k, (a, b) in enumerate(left):
            yield Line(index, (a, b), None if shift is None else (a + shift, b + shift), start=k == 0)
    else:
        for k, span in enumerate(left):
            yield Line(index, span, None, start=k == 0)
        for k, span in enumerate(right):
            yield Line(index, None, span, start=k == 0)


def _chunks(side: Side | None, span: Span | None, depth: int, layout: Layout) -> list[Span]:
    """A row cut to the width it has, in cells, between characters."""
    if side is None or span is None:
        return []
    start, end = span
    if layout.form == "hex":
        return [(at, min(at + layout.hex_bytes, end)) for at in range(start, end, layout.hex_bytes)]
    width = max(layout.width - indent(depth, layout), 8)
    if not layout.wrap or (end - start) * _MOST_CELLS_PER_BYTE <= width:
        return [span]
    row = side.data[start:end]
    if row.isascii() and (layout.pictures or visible(row).isascii()):
        # every ASCII byte is one cell: a control is one picture
        return [(at, min(at + width, end)) for at in range(start, end, width)]
    return _measured_chunks(row, start, width, pictures=layout.pictures)


def _measured_chunks(row: bytes, start: int, width: int, *, pictures: bool) -> list[Span]:
    chunks, at, used, begun = [], 0, 0, 0
    for character in row.decode("utf-8", "surrogateescape"):
        size = len(character.encode("utf-8", "surrogateescape"))
        wide = _MOST_CELLS_PER_BYTE if "\udc80" <= character <= "\udcff" else cells(character, pictures=pictures)
        if used + wide > width and at > begun:
            chunks.append((start + begun, start + at))
            begun, used = at, 0
        at, used = at + size, used + wide
    chunks.append((start + begun, start + at))
    return chunks


def indent(depth: int, layout: Layout) -> int:
    """Cells a row of this depth is moved in; never more than a third of the width."""
    return min(2 * depth, layout.width // 3)


def _side(pair: Pair, *, right: bool) -> Span | None:
    return pair.right if right else pair.left
