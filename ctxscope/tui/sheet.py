"""A comparison laid out as screen lines: wrapped to a width, equal runs folded. Lines refer to bytes, they hold none.

What is kept for each row is how many lines it takes; a line itself is made when it is looked at.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, overload

from ctxscope.tui.align import Alignment, Pair
from ctxscope.tui.comparison import Comparison, Span
from ctxscope.tui.wrapping import Layout, chunks, tops

CONTEXTS = (3, 10, 30, 100)
"""Equal rows kept around a difference; without a wish the fewest that fill a page."""


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


class Stretch(NamedTuple):
    """Pairs that are shown, or folded into one line."""

    first: int
    """Its first pair."""
    end: int
    """The pair behind its last."""
    fold: bool
    line: int
    """Its first line."""


@dataclass(frozen=True, slots=True)
class Folds:
    """Folds the user opened, by the pair each begins with."""

    opened: frozenset[int] = frozenset()
    context: int | None = None
    """The equal rows around differences when they were opened: with others the folds would begin elsewhere."""


NO_FOLDS = Folds()


@dataclass(frozen=True, slots=True, eq=False)
class Sheet:
    """All lines of one comparison at one width."""

    comparison: Comparison
    alignment: Alignment
    asked: Layout
    layout: Layout
    """What was asked for, as it suits this comparison."""
    folds: Folds
    context: int
    """Equal rows kept around a difference."""
    lines: Lines

    def line_of(self, offset: int, *, right: bool) -> int:
        """The line that shows the byte at ``offset`` of one side, or the fold that hides it."""
        pair = self.alignment.pair_of(offset, right=right)
        first = self.lines.first_of(pair)
        if not self.lines or self.lines[first].folded:
            return first
        for k, line in enumerate(self.lines.of_pair(pair)):
            span = line.right if right else line.left
            if span and span[0] <= offset < span[1]:
                return first + k
        return first

    def hunk_at(self, line: int) -> int:
        """Number of hunks that begin at or before this line."""
        return bisect_right(self.alignment.hunks, self.lines[line].pair) if self.lines else 0

    def reach(self, at: int, *, right: bool) -> Span:
        """Bytes of one side that a line shows; where it shows none, the empty span where they would stand."""
        line = self.lines[at]
        span = line.right if right else line.left
        if span is not None:
            return span
        if not line.folded:
            for before in reversed(self.lines.of_pair(line.pair)[: at - self.lines.first_of(line.pair)]):
                earlier = before.right if right else before.left
                if earlier is not None:
                    return earlier[1], earlier[1]
        start = self.alignment.start_of(line.pair, right=right)
        return start, start


class Lines(Sequence[Line]):
    """The lines of a sheet, each made when looked at; those of the last few pairs are kept."""

    _KEPT = 200

    def __init__(
        self, comparison: Comparison, alignment: Alignment, layout: Layout, stretches: Sequence[tuple[int, int, bool]]
    ) -> None:
        self._comparison, self._pairs, self._layout = comparison, alignment.pairs, layout
        self._tops = tops(comparison, alignment, layout)
        self._stretches: list[Stretch] = []
        self._made: dict[int, list[Line]] = {}
        self._count = 0
        for first, end, fold in stretches:
            self._stretches.append(Stretch(first, end, fold, self._count))
            self._count += 1 if fold else self._tops[end] - self._tops[first]

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, index: int) -> Line: ...
    @overload
    def __getitem__(self, index: slice) -> list[Line]: ...
    def __getitem__(self, index: int | slice) -> Line | list[Line]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        if not 0 <= index < len(self):
            raise IndexError(index)
        stretch = self._stretches[bisect_right(self._stretches, index, key=lambda s: s.line) - 1]
        if stretch.fold:
            return Line(stretch.first, None, None, stretch.end - stretch.first)
        # counted as if nothing were folded
        index += self._tops[stretch.first] - stretch.line
        pair = bisect_right(self._tops, index, stretch.first, stretch.end) - 1
        return self.of_pair(pair)[index - self._tops[pair]]

    def first_of(self, pair: int) -> int:
        """The first line of a pair, or the fold that hides it; 0 when there are no lines."""
        if not self._stretches:
            return 0
        stretch = self._stretches[bisect_right(self._stretches, pair, key=lambda s: s.first) - 1]
        return stretch.line if stretch.fold else stretch.line + self._tops[pair] - self._tops[stretch.first]

    def of_pair(self, pair: int) -> list[Line]:
        """All lines of a pair, folded or not."""
        made = self._made.get(pair)
        if made is None:
            if len(self._made) >= self._KEPT:
                self._made.clear()
            made = self._made[pair] = list(_pair_lines(self._comparison, self._pairs[pair], pair, self._layout))
        return made


def lay_out(comparison: Comparison, alignment: Alignment, layout: Layout, folds: Folds = NO_FOLDS) -> Sheet:
    """The lines of a comparison, with these folds open."""
    asked, layout = layout, layout.of(comparison)
    wished = folds.context if folds.opened else layout.context
    for context in CONTEXTS if wished is None else (wished,):
        stretches = [(a, b, fold and a not in folds.opened) for a, b, fold in _stretches(alignment, context) if a < b]
        lines = Lines(comparison, alignment, layout, stretches)
        if len(lines) >= layout.page or not any(fold for _, _, fold in stretches):
            break
    return Sheet(comparison, alignment, asked, layout, folds, context, lines)


def _stretches(alignment: Alignment, context: int) -> Iterator[tuple[int, int, bool]]:
    """Runs of pairs ``(first, end, fold)`` that cover all pairs: equal ones far from a difference fold.

    Without a difference nothing does: then there is nothing else to look at.
    """
    shown_to, count = 0, len(alignment.pairs)
    for hunk, hunk_end in zip(alignment.hunks, alignment.hunk_ends, strict=True):
        start = max(hunk - context, shown_to)
        if start - shown_to > 1:
            yield shown_to, start, True
        else:
            start = shown_to
        shown_to = min(hunk_end + context, count)
        yield start, shown_to, False
    yield shown_to, count, bool(alignment.hunks) and count - shown_to > 1


def _pair_lines(comparison: Comparison, pair: Pair, index: int, layout: Layout) -> Iterator[Line]:
    left = chunks(comparison.left, pair.left, pair.depth, layout)
    right = chunks(comparison.right, pair.right, pair.depth, layout) if comparison.right else []
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
