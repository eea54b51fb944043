"""From a selected call to everything its panes paint: computed off the UI thread, kept by content, handed over frozen."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from ctxscope.model import Call, CallView
from ctxscope.tui import context_rows
from ctxscope.tui.align import Alignment, align, alone
from ctxscope.tui.comparison import Comparison, ComparisonKind, Side, available, best, compare
from ctxscope.tui.context_rows import Context
from ctxscope.tui.rows import Form, Rows, split
from ctxscope.tui.sheet import NO_FOLDS, Folds, Sheet, lay_out
from ctxscope.tui.source import Source
from ctxscope.tui.wrapping import Layout

KEPT_VIEWS = 3
"""The selected call and its neighbours: their bytes are in memory, no others are."""
KEPT_ROWS = 8
"""Bodies whose rows are kept: the two of a comparison stand in the next call's again."""


@dataclass(frozen=True, slots=True, eq=False)
class Loaded:
    """One call, ready to be painted."""

    n: int
    offered: tuple[ComparisonKind, ...]
    kind: ComparisonKind
    context: Context
    sheet: Sheet
    jump: bool
    """Go to where the sides part; False when the same comparison is only laid out anew or became better known."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is to be shown of a call."""

    kind: ComparisonKind
    layout: Layout
    jump: bool = True
    folds: Folds = NO_FOLDS


@dataclass(frozen=True, slots=True, eq=False)
class Kept:
    """One call's view and what was made of it."""

    call: Call
    view: CallView
    context: Context
    aligned: dict[tuple[ComparisonKind, Form], tuple[Comparison, Alignment]] = field(default_factory=dict)


class Loader:
    """Views of the last few calls. Used by one thread at a time."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._kept: OrderedDict[int, Kept] = OrderedDict()
        self._rows: OrderedDict[tuple[str, bool], Rows] = OrderedDict()

    def load(self, call: Call, wanted: Wanted) -> Iterator[Loaded | None]:
        """A first look, quick even when the two sides have little in common, then a thorough one if that says more.

        ``None`` comes between dear steps, for whoever lost interest. Raises what the source raises.
        """
        kept = self._view(call)
        yield None
        kind, form = best(kept.view, wanted.kind), wanted.layout.form
        if (kind, form) not in kept.aligned:
            kept.aligned[kind, form] = self._aligned(compare(kept.view, kind), form)
            yield None
        comparison, alignment = kept.aligned[kind, form]
        sheet = lay_out(comparison, alignment, wanted.layout, wanted.folds)
        loaded = Loaded(call.n, available(kept.view), kind, kept.context, sheet, wanted.jump)
        yield loaded
        if not alignment.final:
            alignment = align(*alignment.bodies, alignment.rows, thorough=True)
            kept.aligned[kind, form] = (comparison, alignment)
            yield replace(loaded, sheet=lay_out(comparison, alignment, wanted.layout), jump=False)

    def _view(self, call: Call) -> Kept:
        kept = self._kept.get(call.n)
        if kept is None or not same_but_for_counts(kept.call, call):
            view = self._source.view(call.n)
            kept = self._kept[call.n] = Kept(call, view, context_rows.build(view))
        self._kept.move_to_end(call.n)
        while len(self._kept) > KEPT_VIEWS:
            self._kept.popitem(last=False)
        return kept

    def _aligned(self, comparison: Comparison, form: Form) -> tuple[Comparison, Alignment]:
        left, right = comparison.left, comparison.right
        rows = self._rows_of(left, form)
        if right is None:
            return comparison, alone(left.data, rows)
        other = rows if right.data == left.data else self._rows_of(right, form)
        return comparison, align(left.data, right.data, (rows, other), thorough=False)

    def _rows_of(self, side: Side, form: Form) -> Rows:
        key = (side.sha256, form == "pretty")  # hex is laid out over raw rows
        rows = self._rows.get(key) if side.sha256 else None
        if rows is None:
            rows = self._rows[key] = split(side.data, form)
        self._rows.move_to_end(key)
        while len(self._rows) > KEPT_ROWS:
            self._rows.popitem(last=False)
        return rows


def sheets(comparison: Comparison, layout: Layout) -> Iterator[Sheet]:
    """A comparison that belongs to no call, laid out: a first look, then a thorough one if that says more."""
    left, right = comparison.left, comparison.right
    rows = split(left.data, layout.form)
    if right is None:
        yield lay_out(comparison, alone(left.data, rows), layout)
        return
    alignment = align(left.data, right.data, (rows, split(right.data, layout.form)), thorough=False)
    yield lay_out(comparison, alignment, layout)
    if not alignment.final:
        yield lay_out(comparison, align(*alignment.bodies, alignment.rows, thorough=True), layout)


def same_but_for_counts(one: Call, other: Call) -> bool:
    """Whether two states of a call have the same bytes behind them: tokens are counted later than the rest is known."""
    return one is other or all(
        getattr(one, name) == getattr(other, name) for name in Call.__dataclass_fields__ if name != "tokens"
    )
