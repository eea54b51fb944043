"""Breaks and misses by cost: how the cache was used, what was lost to which cause, and what to do about it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Input

from ctxscope.model import Call, Snapshot
from ctxscope.tui import break_rows, words
from ctxscope.tui.break_rows import BreakRow
from ctxscope.tui.call_rows import beyond
from ctxscope.tui.paint import Spans
from ctxscope.tui.widgets.lines import LineView
from ctxscope.tui.widgets.painted import PaintedScreen
from ctxscope.tui.widgets.row_view import RowView


class BreaksPane(RowView):
    """The rows of one snapshot. The cursor stands on calls alone."""

    cursor = -1

    def __init__(self, snapshot: Snapshot) -> None:
        super().__init__(id="losses")
        self._snapshot = snapshot
        self._wanted = ("", 0)
        """Words to filter by and the width: what the rows were made for."""
        self._rows: Sequence[BreakRow] = ()
        self._places: Sequence[int] = ()
        """Rows that are calls, increasing."""

    @property
    def call(self) -> Call | None:
        """The call the cursor stands on."""
        return self._rows[self.cursor].call if self._places else None

    def show(self, words: str) -> None:
        """Show the calls that hold these words; the cursor stays on its call, or goes to the first."""
        kept = self.call
        self._wanted = (words, self.columns)
        self._rows = break_rows.rows_of(self._snapshot, *self._wanted)
        self._places = [i for i, row in enumerate(self._rows) if row.call is not None]
        self.rows_changed()
        first = self._places[0] if self._places else -1
        self.cursor = next((i for i in self._places if self._rows[i].call is kept), first)
        # the pane may not have its size yet, and none scrolls further than it has rows
        self.call_after_refresh(self.show_cursor)
        self.post_message(self.Moved(self))

    def move_to(self, row: int, *, centre: bool = False) -> None:
        """Put the cursor on a call; on no other row, where a click selects nothing."""
        if row in self._places:
            super().move_to(row, centre=centre)

    def step(self, count: int) -> None:
        """Go so many calls down or, below 0, up; where there is none further on, scroll."""
        direction = 1 if count > 0 else -1
        row = beyond(self._places, self.cursor, direction)
        if row is None:
            self.scroll_relative(y=count, animate=False)
            return
        at = self._places.index(row) + count - direction
        self.move_to(self._places[max(0, min(at, len(self._places) - 1))])

    def edge(self, direction: int) -> None:
        """Go to the first or last call."""
        if self._places:
            self.move_to(self._places[0 if direction < 0 else -1])

    def show_cursor(self, *, centre: bool = False) -> None:  # noqa: ARG002 - what stands above a call tells what it is
        """Scroll so that the cursor's row is on screen and, if there is room, what stands between it and the call above."""
        if self.cursor < 0:
            return
        above = beyond(self._places, self.cursor, -1)
        top = min(self.scroll_offset.y, 0 if above is None else above + 1)
        self.scroll_to(y=max(top, self.cursor - self.page + 1), animate=False, immediate=True)

    def row_count(self) -> int:
        """Lines there are."""
        return len(self._rows)

    def row_spans(self, row: int, width: int, *, selected: bool) -> Spans:  # noqa: ARG002 - the rows are as wide
        """A line; a call's has room for the pointer."""
        shown = self._rows[row]
        return [(">" if selected else " ", "text"), *shown.spans] if shown.call else shown.spans

    def on_resize(self) -> None:
        """Make the rows for the new width."""
        if self._wanted[1] != self.columns:
            self.show(self._wanted[0])
        else:
            super().on_resize()


class BreaksScreen(PaintedScreen[int | None], ModalScreen[int | None]):
    """A modal box; its result is the number of the call to go to."""

    AUTO_FOCUS = "#losses"
    BINDINGS: ClassVar = [
        Binding("escape", "back", "back", show=False),
        Binding("q,p", "dismiss", "close", show=False),
        Binding("enter", "choose", "go to the call", show=False),
        Binding("slash", "filter", "filter", show=False),
        Binding("j,down", "step(1)", "down", show=False),
        Binding("k,up", "step(-1)", "up", show=False),
        Binding("space,pagedown,ctrl+d", "page(1)", "page down", show=False),
        Binding("pageup,ctrl+u", "page(-1)", "page up", show=False),
        Binding("g,home", "edge(-1)", "first", show=False),
        Binding("G,end", "edge(1)", "last", show=False),
    ]

    def __init__(self, snapshot: Snapshot) -> None:
        super().__init__()
        self.pane, self.about = BreaksPane(snapshot), LineView(id="place", hang=5)
        self.filter = Input(placeholder="words a call must hold: a cause, a turn, a place", id="only")

    def compose(self) -> ComposeResult:
        """The list, what stands under the cursor in full, the filter prompt."""
        with Vertical(id="breaks") as box:
            box.border_title = Content("Cache breaks by cost")
            box.border_subtitle = Content("j k move · enter go to the call · / filter · esc close")
            yield self.pane
            yield self.about
            yield self.filter

    @on(RowView.Moved)
    def _moved(self) -> None:
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

    def action_page(self, direction: int) -> None:
        """Move the cursor by about what is on screen."""
        self.pane.step(direction * max(self.pane.page - 1, 1))

    def action_edge(self, direction: int) -> None:
        """Move the cursor to the first or last call."""
        self.pane.edge(direction)

    def action_filter(self) -> None:
        """Ask for words."""
        self.add_class("-filter")
        self.filter.focus()

    @on(Input.Changed, "#only")
    def _filter(self) -> None:
        self.pane.show(self.filter.value)

    @on(Input.Submitted, "#only")
    def _filtered(self) -> None:
        self.pane.focus()

    def action_back(self) -> None:
        """End the filter, then close."""
        if not self.has_class("-filter"):
            self.dismiss(None)
            return
        self.remove_class("-filter")
        self.filter.value = ""
        self.pane.focus()
