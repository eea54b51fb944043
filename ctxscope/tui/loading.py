"""From a selected call to everything its panes paint: computed off the UI thread, handed over as one frozen value."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, replace

from ctxscope.model import Call, CallView
from ctxscope.tui import context_rows
from ctxscope.tui.align import align, alone
from ctxscope.tui.comparison import ComparisonKind, available, best, compare
from ctxscope.tui.context_rows import Context
from ctxscope.tui.rows import split
from ctxscope.tui.sheet import Layout, Sheet, lay_out
from ctxscope.tui.source import Source

KEPT_VIEWS = 3
"""The selected call and its neighbours: their bytes are in memory, no others are."""


@dataclass(frozen=True, slots=True, eq=False)
class Loaded:
    """One call, ready to be painted."""

    n: int
    offered: tuple[ComparisonKind, ...]
    kind: ComparisonKind
    context: Context
    sheet: Sheet
    jump: bool
    """Go to where the sides part; False when the same comparison only became better known."""


class Loader:
    """Views of the last few calls. Used by one thread at a time."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._views: OrderedDict[int, tuple[Call, CallView, Context]] = OrderedDict()

    def load(self, call: Call, wanted: ComparisonKind, layout: Layout, *, jump: bool) -> Loaded:
        """A first look, quick even when the two sides have little in common. Raises what the source raises."""
        kept = self._views.get(call.n)
        if kept is None or kept[0] is not call:
            view = self._source.view(call.n)
            kept = self._views[call.n] = (call, view, context_rows.build(view))
        self._views.move_to_end(call.n)
        while len(self._views) > KEPT_VIEWS:
            self._views.popitem(last=False)
        _, view, context = kept
        kind = best(view, wanted)
        comparison = compare(view, kind)
        left, right = comparison.left, comparison.right
        rows = split(left.data, layout.form)
        if right is None:
            alignment = alone(rows)
        else:
            alignment = align(left.data, right.data, (rows, split(right.data, layout.form)), thorough=False)
        sheet = lay_out(comparison, alignment, layout)
        return Loaded(call.n, available(view), kind, context, sheet, jump)


def refine(loaded: Loaded) -> Iterator[Loaded]:
    """The same with the rows between first and last difference fully aligned; nothing when they already are."""
    sheet = loaded.sheet
    comparison, right = sheet.comparison, sheet.comparison.right
    if sheet.alignment.final or right is None:
        return
    form = sheet.layout.form
    rows = (split(comparison.left.data, form), split(right.data, form))
    alignment = align(comparison.left.data, right.data, rows, thorough=True)
    yield replace(loaded, sheet=lay_out(comparison, alignment, sheet.layout), jump=False)
