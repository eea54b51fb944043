"""The token bar as cells: what fills the context window, where its breakpoints are, where it broke."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ctxscope.tui.context_rows import Context, Item, Mark
from ctxscope.tui.paint import Spans, short

_FEWEST = 24
"""Cells in which system, tools and messages can be told apart."""
PARTS: tuple[tuple[str, str, str], ...] = (
    ("S", "system", "system"),
    ("T", "tools", "tools"),
    ("M", "messages", "text"),
    ("C", "tools", "tool calls"),
    ("R", "results", "tool results"),
    ("H", "thinking", "thinking"),
    ("I", "new", "images"),
)
"""Letter, style and name of each part; a small letter is new since the previous call."""
_LETTER = {name: (letter, style) for letter, style, name in PARTS}
_BLOCKS = {"tool_call": "tool calls", "tool_result": "tool results", "thinking": "thinking", "image": "images"}


@dataclass(frozen=True, slots=True)
class BarCells:
    """The bar, cell by cell."""

    spans: Spans
    paths: Sequence[str]
    """Path of the segment each cell stands for; ``""`` for free space."""


def build(context: Context, used: int | None, window: int | None, width: int) -> BarCells:
    """The bar in ``width`` cells, a letter for each part: filled in proportion to the window, or wholly when either number is unknown.

    A prompt too small to be told apart in proportion gets some cells nevertheless, with ``⋯`` behind them.
    """
    items = [i for i in context.items if _in_prompt(i)]
    in_tokens = any(i.tokens is not None for i in items)  # of some media it is not known
    total = sum(_weight(i, in_tokens=in_tokens) for i in items)
    share = used / window if used and window else 1.0
    filled = min(round(width * share), width)
    enlarged = bool(items) and filled < min(_FEWEST, width // 3)
    filled = min(_FEWEST, width // 3) if enlarged else filled
    cells: list[tuple[str, str]] = []
    paths: list[str] = []
    done, first = 0.0, ""
    for row in context.rows:
        if isinstance(row, Item) and _in_prompt(row):
            done += _weight(row, in_tokens=in_tokens)
            end = round(filled * done / total) if total else 0
            letter, style = _LETTER[_part_of(row)]
            cell = (letter.lower(), "new") if row.new else (letter, style)
            count = end - len(cells)
            cells.extend([cell] * count)
            paths.extend([row.segment.path] * count)
        elif isinstance(row, Mark) and row.line == "╳" and not cells:
            first = row.line  # nothing of the prompt is left of it
        elif isinstance(row, Mark) and cells and (row.line == "╳" or (row.line == "┊" and cells[-2:-1] == cells[-1:])):
            # a breakpoint leaves at least one letter of what it stands behind
            cells[-1] = (row.line, "break")
    if first and cells:
        cells[0] = (first, "break")
    free = "░" * (width - len(cells))
    return BarCells([*cells, (f"⋯{free[1:]}" if enlarged else free, "dim")], [*paths, *[""] * len(free)])


def _part_of(item: Item) -> str:
    """What a segment is, by the name of its part."""
    return item.group if item.group in ("system", "tools") else _BLOCKS.get(item.segment.block, "text")


def words(used: int | None, window: int | None, *, estimated: bool) -> tuple[str, str]:
    """What stands before and after the bar."""
    before = f" ctx {'≈' if estimated and used is not None else ''}{short(used)}/{short(window)} │"
    return before, f"│ {_percent(used, window)} "


def _percent(used: int | None, window: int | None) -> str:
    if used is None or not window:
        return "–"
    return "<1%" if 0 < used < window / 100 else f"{100 * used / window:.0f}%"


def _in_prompt(item: Item) -> bool:
    return item.segment.kind != "param"


def _weight(item: Item, *, in_tokens: bool) -> float:
    return (item.tokens or 0) if in_tokens else item.segment.end - item.segment.start
