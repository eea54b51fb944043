"""The rows of the bytes pane: offset, provenance letter, and the bytes themselves, the change emphasised inside the line."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import pairwise

from rich.cells import cell_len

from ctxscope.tui.align import Pair
from ctxscope.tui.comparison import Side, Span
from ctxscope.tui.context_rows import PROVENANCE_LETTER
from ctxscope.tui.paint import Spans, fit, number, width_of
from ctxscope.tui.sheet import Line, Sheet
from ctxscope.tui.visible import visible
from ctxscope.tui.wrapping import Layout, indent

BESIDE_GUTTER = 10
"""Pointer or rule, mark, offset, spaces, for each of two sides in one line."""
UNIFIED_GUTTER = 13
"""Pointer, mark, the side's letter, provenance letter, offset and spaces, where both sides share one column."""
_HEX_SIZES = (16, 8, 4)
_CELLS_PER_HEX_BYTE = 4
"""Two digits, a space, the character."""
_PRINTABLE = range(0x20, 0x7F)
Painted = list[tuple[str, str]]


def text_width(width: int, *, beside: bool) -> int:
    """Cells for the text of one side in a pane of ``width`` cells."""
    return max((width // 2 if beside else width) - (BESIDE_GUTTER if beside else UNIFIED_GUTTER), 8)


def hex_bytes(width: int) -> int:
    """Bytes a hex row holds in ``width`` cells."""
    return next((n for n in _HEX_SIZES if n * _CELLS_PER_HEX_BYTE + 1 <= width), _HEX_SIZES[-1])


def paint(sheet: Sheet, at: int, width: int, needle: bytes, *, selected: bool, shift: int = 0) -> Spans:
    """One line; ``shift`` moves the text, not the gutter, to the left."""
    line = sheet.lines[at]
    pointer = ">" if selected else " "
    if line.folded:
        words = f"{pointer}   ··· {number(line.folded)} equal rows, enter opens ···"
        return [(fit(words, width), "dim")]
    pair, painter = sheet.alignment.pairs[line.pair], _Painter(sheet, needle, shift)
    if sheet.layout.beside and sheet.comparison.right is not None:
        return painter.beside(line, pair, pointer, width)
    return painter.unified(line, pair, pointer)


class _Painter:
    """What painting a line takes, gathered."""

    def __init__(self, sheet: Sheet, needle: bytes, shift: int) -> None:
        self.left, self.right = sheet.comparison.left, sheet.comparison.right
        self.layout, self.needle, self.shift = sheet.layout, needle, shift

    def beside(self, line: Line, pair: Pair, pointer: str, width: int) -> Spans:
        """Left and right half of one line."""
        assert self.right is not None  # the caller asks for it only with two sides
        half = width // 2
        left = self._half(line, pair, half - 1, right=False)
        right = self._half(line, pair, width - half - 1, right=True)
        return [(pointer, "text"), *left, ("│", "dim"), *right]

    def unified(self, line: Line, pair: Pair, pointer: str) -> Spans:
        """A line of the left side, of the right one, or of both when they are equal."""
        side, span, emphasis = self.left, line.left, pair.left_emphasis
        mark, letter = (" ", " ") if pair.kind == "=" else ("-", side.letter)
        if self.right is not None and line.right is not None and pair.kind != "=":
            side, span, emphasis = self.right, line.right, pair.right_emphasis
            mark, letter = "+", side.letter
        assert span is not None  # a unified line always stands for bytes
        style = "text" if pair.kind == "=" else side.role
        origin = _origin(self.right, line.right) if line.right and self.right else _origin(side, span)
        gutter = f"{mark}{letter} {origin} {span[0]:06x}"
        return [
            (pointer, "text"),
            (fit(gutter, UNIFIED_GUTTER - 1), style if mark != " " else "dim"),
            *self._text(side, span, emphasis, style, pair.depth),
        ]

    def _half(self, line: Line, pair: Pair, width: int, *, right: bool) -> Painted:
        side, span, emphasis = self.left, line.left, pair.left_emphasis
        if right and self.right is not None:
            side, span, emphasis = self.right, line.right, pair.right_emphasis
        if span is None:
            both = pair.left and pair.right
            return [(" " * width if both else f" {'╱' * (width - 1)}", "dim")]
        changed = pair.kind != "="
        style = side.role if changed else "text"
        mark = "≠" if pair.kind == "≠" else "+"
        letter = mark if changed and _touches(emphasis, span) else _origin(side, span)
        painted: Painted = [
            (f"{letter} {span[0]:06x} ", style if changed else "dim"),
            *self._text(side, span, emphasis, style, pair.depth),
        ]
        return _exactly(painted, width)

    def _text(self, side: Side, span: Span, emphasis: Span | None, style: str, depth: int) -> Painted:
        pieces = list(_cut(side.data, span, emphasis, self.needle, style))
        if self.layout.form == "hex":
            return _hex(side.data, pieces, self.layout)
        painted = [(visible(side.data[a:b], pictures=self.layout.pictures), name) for a, b, name in pieces]
        if self.layout.form == "pretty":
            painted.insert(0, (" " * indent(depth, self.layout), style))
        return _without(painted, self.shift) if self.shift else painted


def find_all(data: bytes, needle: bytes, most: int) -> Sequence[int]:
    """Where ``needle`` stands, at most ``most`` times, not overlapping."""
    found: list[int] = []
    at = data.find(needle) if needle else -1
    while at >= 0 and len(found) < most:
        found.append(at)
        at = data.find(needle, at + len(needle))
    return found


def _cut(data: bytes, span: Span, emphasis: Span | None, needle: bytes, style: str) -> Iterator[tuple[int, int, str]]:
    """A span cut where the emphasis or a search hit begins or ends; a hit that straddles rows is marked in both."""
    start, end = span
    marked = _within(emphasis, span)
    hits: list[Span] = []
    if needle:
        origin = max(start - len(needle) + 1, 0)
        near = data[origin : end + len(needle) - 1]
        hits = [(origin + h, origin + h + len(needle)) for h in find_all(near, needle, end - start)]
    edges = sorted({start, end, *marked, *(min(max(e, start), end) for hit in hits for e in hit)})
    firsts = [a for a, _ in hits]
    for a, b in pairwise(edges):
        i = bisect_left(firsts, a + 1) - 1
        if i >= 0 and a < hits[i][1]:
            yield a, b, "hit"
        elif marked and marked[0] <= a < marked[1]:
            yield a, b, f"{style}-emph"
        else:
            yield a, b, style


def _touches(emphasis: Span | None, span: Span) -> bool:
    """Whether the change lies in a line, or at its edge when this side only lacks something there."""
    if emphasis is None:
        return False
    return (
        emphasis[0] < span[1] and emphasis[1] > span[0]
        if emphasis[0] < emphasis[1]
        else span[0] <= emphasis[0] <= span[1]
    )


def _within(emphasis: Span | None, span: Span) -> tuple[()] | Span:
    if emphasis is None or emphasis[0] >= span[1] or emphasis[1] <= span[0]:
        return ()
    return max(emphasis[0], span[0]), min(emphasis[1], span[1])


def _hex(data: bytes, pieces: Sequence[tuple[int, int, str]], layout: Layout) -> Painted:
    digits: Painted = [(data[a:b].hex(" ") + " ", style) for a, b, style in pieces]
    digits.append((" " * (3 * layout.hex_bytes - width_of(digits) + 1), "text"))
    ascii_of = (("".join(chr(c) if c in _PRINTABLE else "." for c in data[a:b]), style) for a, b, style in pieces)
    return [*digits, *ascii_of]


def _origin(side: Side, span: Span) -> str:
    """Letter for where a line's bytes come from; blank when the side does not say."""
    first, last = side.origin(span[0]), side.origin(span[1] - 1)
    if first is None or last is None:
        return " "
    return PROVENANCE_LETTER[first.provenance if first.provenance == last.provenance else "mixed"]


def _exactly(spans: Painted, width: int) -> Painted:
    """Spans cut or padded to ``width`` cells."""
    kept: Painted = []
    for text, style in spans:
        room = width - width_of(kept)
        if cell_len(text) > room:
            kept.append((fit(text, room), style))
            return kept
        kept.append((text, style))
    kept.append((" " * (width - width_of(kept)), "text"))
    return kept


def _without(spans: Painted, shift: int) -> Painted:
    """Spans without their first ``shift`` cells."""
    kept: Painted = []
    for text, style in spans:
        if shift >= (cells := cell_len(text)):
            shift -= cells
            continue
        at = shift if text.isascii() else next(i for i in range(len(text) + 1) if cell_len(text[:i]) >= shift)
        kept.append((text[at:], style))
        shift = 0
    return kept
