"""The token bar as cells: what fills the context window, where its breakpoints are, where it broke."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ctxscope.tui.context_rows import Context, Item, Mark
from ctxscope.tui.paint import Spans, short

_LETTER = {"system": ("S", "system"), "tools": ("T", "tools"), "messages": ("M", "messages")}


@dataclass(frozen=True, slots=True)
class BarCells:
    """The bar, cell by cell."""

    spans: Spans
    paths: Sequence[str]
    """Path of the segment each cell stands for; ``""`` for free space."""


def build(context: Context, used: int | None, window: int | None, width: int) -> BarCells:
    """The bar in ``width`` cells: filled in proportion to the window, or wholly when either number is unknown."""
    items = [i for i in context.items if _in_prompt(i)]
    in_tokens = all(i.tokens is not None for i in items)
    total = sum(_weight(i, in_tokens=in_tokens) for i in items)
    filled = width if not (used and window) else max(min(round(width * used / window), width), 1 if items else 0)
    cells: list[tuple[str, str]] = []
    paths: list[str] = []
    done = 0.0
    for row in context.rows:
        if isinstance(row, Item) and _in_prompt(row):
            done += _weight(row, in_tokens=in_tokens)
            end = round(filled * done / total) if total else 0
            cell = ("u", "new") if row.new else _LETTER.get(row.group, ("M", "messages"))
            count = end - len(cells)
            cells.extend([cell] * count)
            paths.extend([row.segment.path] * count)
        elif isinstance(row, Mark) and row.line in "┊╳" and cells:
            cells[-1] = (row.line, "break")
    free = width - len(cells)
    return BarCells([*cells, ("░" * free, "dim")], [*paths, *[""] * free])


def words(used: int | None, window: int | None, *, estimated: bool) -> tuple[str, str]:
    """What stands before and after the bar."""
    before = f" ctx {'≈' if estimated and used is not None else ''}{short(used)}/{short(window)} │"
    share = f"{100 * used / window:.0f}%" if used is not None and window else "–"
    return before, f"│ {share} "


def _in_prompt(item: Item) -> bool:
    return item.segment.kind != "param"


def _weight(item: Item, *, in_tokens: bool) -> float:
    return (item.tokens or 0) if in_tokens else item.segment.end - item.segment.start
