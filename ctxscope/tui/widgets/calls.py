"""Pane 1: the calls."""

from __future__ import annotations

from bisect import bisect_left

from textual.content import Content

from ctxscope.model import Call, Snapshot
from ctxscope.tui import call_rows
from ctxscope.tui.call_rows import CallRows
from ctxscope.tui.paint import Spans
from ctxscope.tui.widgets.row_view import RowView


class CallsPane(RowView):
    """One row a call, a rule a marker.

    While following, the cursor keeps to the last row if it stands there; moved away from it, it stays, and what came since
    is counted until the end is seen again.
    """

    headings = 1

    def __init__(self) -> None:
        super().__init__(id="calls")
        self.border_title = Content("1 Calls")
        self.model = CallRows()
        self.following = False
        self._seen = 0
        """Calls there were when the cursor last stood on the last row."""

    @property
    def call(self) -> Call | None:
        """The call the cursor stands on."""
        return self.model.call_at(self.cursor)

    def show(self, snapshot: Snapshot) -> None:
        """Take over a snapshot. The cursor stays on its call, wherever markers moved it."""
        kept, was_last = self.call, self.at_end
        self.model.update(snapshot)
        self.rows_changed()
        if self.following and was_last:
            self.move_to(self.row_count() - 1)
        elif kept is not None:
            # the user may have scrolled away from the cursor: a snapshot does not scroll back
            row = self.row_of(kept.n)
            self.cursor = self.cursor if row is None else row
        self.say_position()

    @property
    def at_end(self) -> bool:
        """Whether the cursor stands on the last row."""
        return self.cursor >= self.row_count() - 1

    def row_of(self, n: int) -> int | None:
        """The row of call ``n``; calls are numbered in order."""
        calls = self.model.calls
        i = bisect_left(calls, n, key=lambda call: call.n)
        return self.model.row_of_call[i] if i < len(calls) and calls[i].n == n else None

    def jump(self, direction: int, flag: str) -> bool:
        """Go to the next call with a flag; whether there is one."""
        return self._take(self.model.find(self.cursor, direction, flag))

    def step(self, direction: int) -> bool:
        """Go to the next or previous call, past rules."""
        return self._take(self.model.step(self.cursor, direction))

    def say_position(self) -> None:
        """Position, follow state and what came since, in the lower border."""
        call, calls = self.call, self.model.calls
        if self.at_end:
            self._seen = len(calls)
        new = len(calls) - self._seen
        parts = [f"{call.n if call else 0}/{len(calls)}"]
        if new > 0:
            parts.append(f"↓ {new:,} new below")
        parts.append("F follow" if not (self.following and self.at_end) else "following")
        self.border_subtitle = Content(" · ".join(parts))

    def row_count(self) -> int:
        """Calls and rules."""
        return len(self.model.rows)

    def row_spans(self, row: int, width: int, *, selected: bool) -> Spans:
        """A call or a rule."""
        rows = self.model.rows
        return call_rows.paint(rows[row], rows[row - 1] if row else None, width, selected=selected)

    def heading_spans(self, line: int, width: int) -> Spans:  # noqa: ARG002 - there is one heading line
        """Column names."""
        return call_rows.header(width)

    def _take(self, row: int | None) -> bool:
        if row is not None:
            self.move_to(row, centre=True)
        return row is not None
