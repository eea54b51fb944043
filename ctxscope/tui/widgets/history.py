"""The chart of a conversation's tokens, with a cursor that walks from call to call."""

from __future__ import annotations

from collections.abc import Sequence

from textual import events

from ctxscope.model import Call
from ctxscope.tui import history_cells
from ctxscope.tui.history_cells import Chart, History
from ctxscope.tui.paint import Spans
from ctxscope.tui.widgets.row_view import RowView

_NONE = History((), frozenset())


class HistoryPane(RowView):
    """A chart as large as the pane."""

    cursor = -1

    def __init__(self) -> None:
        super().__init__(id="history")
        self._history, self._at = _NONE, 0
        self._drawn: Chart | None = None
        self._lines: Sequence[Spans] = ()

    @property
    def call(self) -> Call | None:
        """The call under the cursor."""
        return self._history.calls[self._at] if self._history.calls else None

    @property
    def drawn(self) -> Chart | None:
        """The chart as it is on screen."""
        return self._drawn

    def show(self, history: History, n: int) -> None:
        """Take over a history, the cursor on call ``n``."""
        self._history, self._at = history, history.at(n)
        self._draw()

    def go(self, index: int) -> None:
        """Put the cursor on a call by its index, as far as there are calls."""
        index = max(0, min(index, len(self._history.calls) - 1))
        if index != self._at and self._history.calls:
            self._at = index
            self._mark()
            self.post_message(self.Moved(self))

    def step(self, count: int) -> None:
        """Go so many calls to the right or, below 0, to the left."""
        self.go(self._at + count)

    def leap(self, direction: int) -> None:
        """Go to the next or previous call behind an event."""
        calls, events = self._history.calls, self._history.events
        there = range(self._at + 1, len(calls)) if direction > 0 else range(self._at - 1, -1, -1)
        found = next((i for i in there if calls[i].n in events), None)
        if found is not None:
            self.go(found)

    def stretch(self) -> int:
        """Calls in a tenth of the chart."""
        return max(len(self._history.calls) // 10, 1)

    def edge(self, direction: int) -> None:
        """Go to the first or last call."""
        self.go(0 if direction < 0 else len(self._history.calls) - 1)

    def _draw(self) -> None:
        self._drawn = history_cells.chart(self._history, self.columns, self.size.height)
        self._mark()

    def _mark(self) -> None:
        if self._drawn is not None:
            self._lines = history_cells.lines_of(self._drawn, self._at)
        self.rows_changed()

    def rows_changed(self) -> None:
        """Take over the lines; no line has the cursor."""
        super().rows_changed()
        self.cursor = -1

    def on_resize(self) -> None:
        """Draw it in the new size, and have that told."""
        self._draw()
        self.post_message(self.Moved(self))

    def on_click(self, event: events.Click) -> None:
        """A click goes to a call; a second one is enter."""
        offset = event.get_content_offset(self)
        found = self._drawn.call_under(offset.x) if self._drawn is not None and offset is not None else None
        if found is None:
            return
        self.go(found)
        if event.chain > 1:
            self.post_message(self.Activated(self))

    def row_count(self) -> int:
        """Lines there are."""
        return len(self._lines)

    def row_spans(self, row: int, width: int, *, selected: bool) -> Spans:  # noqa: ARG002 - a line has no pointer
        """A line of the chart."""
        return self._lines[row]
