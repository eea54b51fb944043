"""A pane of lines whose cursor stands on some of them alone: what leads somewhere."""

from __future__ import annotations

from collections.abc import Sequence

from ctxscope.tui.call_rows import beyond
from ctxscope.tui.paint import Spans
from ctxscope.tui.widgets.row_view import RowView


class StopsPane(RowView):
    """Lines, some of them stops. The first cell of each is the pointer's."""

    cursor = -1

    def __init__(self, *, id: str) -> None:  # noqa: A002 - Textual's own name
        super().__init__(id=id)
        self._lines: Sequence[Spans] = ()
        self._stops: Sequence[int] = ()
        """Lines the cursor may stand on, increasing."""
        self._may_stand: frozenset[int] = frozenset()

    @property
    def stop(self) -> int | None:
        """Which of the stops the cursor stands on."""
        return self._stops.index(self.cursor) if self.cursor in self._may_stand else None

    def take(self, lines: Sequence[Spans], stops: Sequence[int], at: int | None = 0) -> None:
        """Show other lines; the cursor goes to stop number ``at``, to the first where there is none such."""
        self._lines, self._stops, self._may_stand = lines, stops, frozenset(stops)
        self.rows_changed()
        chosen = at if at is not None and at < len(stops) else 0
        self.cursor = stops[chosen] if stops else -1
        # the pane may not have its size yet, and none scrolls further than it has rows
        self.call_after_refresh(self.show_cursor)
        self.post_message(self.Moved(self))

    def move_to(self, row: int, *, centre: bool = False) -> None:
        """Put the cursor on a stop; on no other line, where a click selects nothing."""
        if row in self._may_stand:
            super().move_to(row, centre=centre)

    def step(self, count: int) -> None:
        """Go so many stops down or, below 0, up; where there is none further on, scroll."""
        direction = 1 if count > 0 else -1
        row = beyond(self._stops, self.cursor, direction)
        if row is None:
            self.scroll_relative(y=count, animate=False)
            return
        at = self._stops.index(row) + count - direction
        self.move_to(self._stops[max(0, min(at, len(self._stops) - 1))])

    def edge(self, direction: int) -> None:
        """Go to the first or last stop; of lines without one, to the top or bottom."""
        if self._stops:
            self.move_to(self._stops[0 if direction < 0 else -1])
        else:
            self.scroll_to(y=0 if direction < 0 else len(self._lines), animate=False, immediate=True)

    def show_cursor(self, *, centre: bool = False) -> None:  # noqa: ARG002 - what stands above a stop tells what it is
        """Scroll so that the cursor's line is on screen and, if there is room, what stands between it and the stop above."""
        if self.cursor < 0:
            return
        above = beyond(self._stops, self.cursor, -1)
        top = min(self.scroll_offset.y, 0 if above is None else above + 1)
        self.scroll_to(y=max(top, self.cursor - self.page + 1), animate=False, immediate=True)

    def row_count(self) -> int:
        """Lines there are."""
        return len(self._lines)

    def row_spans(self, row: int, width: int, *, selected: bool) -> Spans:  # noqa: ARG002 - the lines are as wide
        """A line; a stop's has room for the pointer."""
        shown = self._lines[row]
        return [(">" if selected else " ", "text"), *shown] if row in self._may_stand else shown
