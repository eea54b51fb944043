"""How many screen lines a row of bytes takes at a width, and where it is cut: between characters, in cells."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, chain, pairwise, repeat
from operator import add

from ctxscope.tui.align import Alignment, Block
from ctxscope.tui.comparison import Comparison, Side, Span
from ctxscope.tui.rows import Form, Rows
from ctxscope.tui.visible import is_mark, widths

_MOST_CELLS_PER_BYTE = 4
r"""``\xff``: no byte is shown wider."""
_NARROWEST = 8
_CONTROL = re.compile(rb"[\x00-\x1f\x7f]")
_KEPT_WIDTHS = 4
"""Ways of wrapping one comparison that are remembered: a pane's width while it is zoomed, and back."""


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
    context: int | None = 3
    """Equal rows kept on either side of a difference; ``None``: as many as fill a page."""
    page: int = 0
    """Lines on screen."""
    hex_bytes: int = 16
    alone: tuple[int, int] | None = None
    """``width`` and ``hex_bytes`` where there is one side only, which has the whole pane; ``None``: the same."""

    def of(self, comparison: Comparison) -> Layout:
        """The layout for what is there: one side needs no second column."""
        if comparison.right is not None or self.alone is None:
            return self
        return replace(self, beside=False, width=self.alone[0], hex_bytes=self.alone[1])


def indent(depth: int, layout: Layout) -> int:
    """Cells a row of this depth is moved in; never more than a third of the width."""
    return min(2 * depth, layout.width // 3)


def chunks(side: Side | None, span: Span | None, depth: int, layout: Layout) -> list[Span]:
    """A row cut to the width it has, in cells, between characters."""
    if side is None or span is None:
        return []
    start, end = span
    width = _room(depth, layout)
    if width is None or (layout.form != "hex" and (end - start) * _MOST_CELLS_PER_BYTE <= width):
        return [span]
    row = side.data[start:end]
    if layout.form == "hex" or _plain(row, layout):
        return [(at, min(at + width, end)) for at in range(start, end, width)]
    ends = list(accumulate((len(piece) for piece in _measured(row, width, layout)), initial=start))
    return list(pairwise(ends))


def tops(comparison: Comparison, alignment: Alignment, layout: Layout) -> Sequence[int]:
    """The first line of each pair and, last, the number of all lines, when nothing is folded; kept with the alignment."""
    key = (layout.width, layout.beside, layout.form, layout.wrap, layout.pictures, layout.hex_bytes)
    known = alignment.heights.get(key)
    if known is None:
        if len(alignment.heights) >= _KEPT_WIDTHS:
            alignment.heights.clear()
        each = (_block_heights(comparison, alignment.rows, block, layout) for block in alignment.blocks)
        known = alignment.heights[key] = list(accumulate(chain.from_iterable(each), initial=0))
    return known


def _block_heights(comparison: Comparison, rows: tuple[Rows, Rows], block: Block, layout: Layout) -> Iterable[int]:
    """Lines of the pairs of one block."""
    one, other = (block.left, block.left_end), (block.right, block.right_end)
    if block.kind == "+":
        assert comparison.right is not None  # only then has it rows
        return _row_heights(comparison.right, rows[1], other, _depths(rows[1], other), layout)
    left = _row_heights(comparison.left, rows[0], one, _depths(rows[0], one), layout)
    if comparison.right is None or block.kind in "=-":
        return left
    right = _row_heights(comparison.right, rows[1], other, _depths(rows[0], one), layout)
    return map(max if layout.beside else add, left, right)


def _depths(rows: Rows, part: Span) -> Sequence[int] | None:
    return rows.depths[slice(*part)] if rows.depths else None


def _row_heights(side: Side, rows: Rows, part: Span, depths: Sequence[int] | None, layout: Layout) -> Sequence[int]:
    spans = pairwise(rows.starts[part[0] : part[1] + 1])
    widest = _room(0, layout)
    if widest is None:
        return [1] * (part[1] - part[0])
    rooms = [_room(depth, layout) or widest for depth in range(max(depths) + 1)] if depths else []
    room_of: Iterable[int] = map(rooms.__getitem__, depths) if depths else repeat(widest)
    if layout.form == "hex" or (side.ascii and (layout.pictures or side.printable)):
        return [-((a - b) // room) for (a, b), room in zip(spans, room_of, strict=False)]
    data = side.data
    if side.narrow and (layout.pictures or side.printable):
        return [
            1 if b - a <= room else -(-len(data[a:b].decode()) // room)
            for (a, b), room in zip(spans, room_of, strict=False)
        ]
    return [_height(data[a:b], room, layout) for (a, b), room in zip(spans, room_of, strict=False)]


def _height(row: bytes, room: int, layout: Layout) -> int:
    """Lines of a row whose characters may be of any width."""
    if len(row) * _MOST_CELLS_PER_BYTE <= room:
        return 1
    return -(-len(row) // room) if _plain(row, layout) else sum(1 for _ in _measured(row, room, layout))


def _room(depth: int, layout: Layout) -> int | None:
    """Cells (in hex: bytes) a row of this depth is wrapped to; ``None``: not at all."""
    if layout.form == "hex":
        return layout.hex_bytes
    return max(layout.width - indent(depth, layout), _NARROWEST) if layout.wrap else None


def _plain(row: bytes, layout: Layout) -> bool:
    """Whether every byte is one cell; a control is one as a picture."""
    return row.isascii() and (layout.pictures or _CONTROL.search(row) is None)


def _measured(row: bytes, width: int, layout: Layout) -> Iterator[bytes]:
    """A row in pieces of at most ``width`` cells, a single wider character excepted; a mark stays with its letter."""
    text = row.decode("utf-8", "surrogateescape")
    ends = list(accumulate(widths(text, pictures=layout.pictures)))
    at = used = 0
    while at < len(text):
        upto = cut = max(bisect_right(ends, used + width, at), at + 1)
        while cut > at + 1 and cut < len(text) and is_mark(text[cut]):
            cut -= 1
        upto = cut if cut > at + 1 else upto
        yield text[at:upto].encode("utf-8", "surrogateescape")
        at, used = upto, ends[upto - 1]
