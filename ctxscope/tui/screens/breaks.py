"""Breaks and misses by cost: how the cache was used, what was lost to which cause, and what to do about it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Input

from ctxscope.model import Call, Snapshot
from ctxscope.tui import break_rows, words
from ctxscope.tui.break_rows import BreakRow
from ctxscope.tui.screens.modal import MOVES, Box
from ctxscope.tui.widgets.lines import LineView
from ctxscope.tui.widgets.row_view import RowView
from ctxscope.tui.widgets.stops import StopsPane


class BreaksPane(StopsPane):
    """The rows of one snapshot. The cursor stands on calls alone."""

    def __init__(self) -> None:
        super().__init__(id="losses")
        self._snapshot: Snapshot | None = None
        self._wanted = ("", 0)
        """Words to filter by and the width: what the rows were made for."""
        self._rows: Sequence[BreakRow] = ()

    @property
    def call(self) -> Call | None:
        """The call the cursor stands on."""
        return self._rows[self.cursor].call if self.cursor >= 0 else None

    def show(self, snapshot: Snapshot | None) -> None:
        """Show the losses of a snapshot, from the first one on; ``None``: nothing."""
        self._snapshot, self._rows, self.cursor = snapshot, (), -1
        self.filter("")

    def filter(self, words: str) -> None:
        """Show the calls that hold these words; the cursor stays on its call, or goes to the first."""
        kept = self.call
        self._wanted = (words, self.columns)
        self._rows = break_rows.rows_of(self._snapshot, *self._wanted) if self._snapshot is not None else ()
        stops = [i for i, row in enumerate(self._rows) if row.call is not None]
        at = next((at for at, i in enumerate(stops) if self._rows[i].call is kept), 0)
        self.take([row.spans for row in self._rows], stops, at)

    def on_resize(self) -> None:
        """Make the rows for the new width."""
        if self._wanted[1] != self.columns:
            self.filter(self._wanted[0])
        else:
            super().on_resize()


class BreaksScreen(Box[int | None]):
    """A modal box; its result is the number of the call to go to."""

    AUTO_FOCUS = "#losses"
    BINDINGS: ClassVar = [
        Binding("escape", "back", "back", show=False),
        Binding("q,p", "dismiss", "close", show=False),
        Binding("enter", "choose", "go to the call", show=False),
        Binding("slash", "filter", "filter", show=False),
        *MOVES,
    ]

    def __init__(self) -> None:
        super().__init__()
        self.pane: BreaksPane = BreaksPane()
        self.about = LineView(id="place", hang=5)
        self._snapshot: Snapshot | None = None
        self.filter = Input(placeholder="words a call must hold: a cause, a turn, a place", id="only")

    def compose(self) -> ComposeResult:
        """The list, what stands under the cursor in full, the filter prompt."""
        with Vertical(id="breaks") as box:
            box.border_title = Content("Cache breaks by cost")
            box.border_subtitle = Content("j k move · enter go to the call · / filter · esc close")
            yield self.pane
            yield self.about
            yield self.filter

    def show(self, snapshot: Snapshot) -> None:
        """Show what a snapshot tells, unfiltered."""
        self._snapshot = snapshot
        self.handed_over()

    def fill(self) -> None:
        """Show the losses."""
        self.pane.show(self._snapshot)
        self._say()

    def empty(self) -> None:
        """Let go of the losses, and of the filter."""
        self._snapshot = None
        self._end_filter()
        self.pane.show(None)

    @on(RowView.Moved)
    def _say(self) -> None:
        call = self.pane.call
        told = [(f" {call.n:>3} ", "dim"), (words.why(call, "previous"), "text")] if call else []
        self.about.say(*told)

    @on(RowView.Activated)
    def action_choose(self) -> None:
        """Close, and go to the call under the cursor."""
        if self.pane.call is not None:
            self.dismiss(self.pane.call.n)

    def action_step(self, count: int) -> None:
        """Move the cursor from call to call."""
        self.pane.step(count)

    def action_edge(self, direction: int) -> None:
        """Move the cursor to the first or last call."""
        self.pane.edge(direction)

    def action_filter(self) -> None:
        """Ask for words."""
        self.add_class("-filter")
        self.filter.focus()

    @on(Input.Changed, "#only")
    def _filter(self) -> None:
        self.pane.filter(self.filter.value)

    @on(Input.Submitted, "#only")
    def _filtered(self) -> None:
        self.pane.focus()

    def action_back(self) -> None:
        """End the filter, then close."""
        if self.has_class("-filter"):
            self._end_filter()
        else:
            self.dismiss(None)

    def _end_filter(self) -> None:
        if self.has_class("-filter"):
            self.remove_class("-filter")
            self.filter.value = ""
            self.pane.focus()
