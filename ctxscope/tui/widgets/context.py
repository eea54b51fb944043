"""Pane 2: what the selected call's context is made of."""

from __future__ import annotations

from textual.content import Content

from ctxscope.model import Segment
from ctxscope.tui import context_rows
from ctxscope.tui.context_rows import Context, ContextRow, Heading, Item
from ctxscope.tui.paint import Spans
from ctxscope.tui.widgets.row_view import RowView

EMPTY = Context((), estimated=True, closed=frozenset(), against="")


class ContextPane(RowView):
    """One row a segment, in cache order, in groups that open and close."""

    def __init__(self) -> None:
        super().__init__(id="context")
        self.border_title = Content("2 Context")
        self.context = EMPTY
        self._toggled: frozenset[str] = frozenset()
        self._rows: list[ContextRow] = []

    def show(self, context: Context, n: int | None) -> None:
        """Take over the context of call ``n``; the cursor stays on its row number."""
        self.context = context
        self._rows = context.shown(self._toggled)
        self.border_title = Content("2 Context" if n is None else f"2 Context · call {n}")
        self.border_subtitle = Content(
            f"origin · = ~ ≠ + against {context.against} · hash · @ since" if context.against else ""
        )
        self.rows_changed()
        self.show_cursor()

    @property
    def segment(self) -> Segment | None:
        """The segment the cursor stands on."""
        row = self._rows[self.cursor] if self._rows else None
        return row.segment if isinstance(row, Item) else None

    def toggle(self) -> bool:
        """Open or close the group the cursor stands on; False when it stands on no heading."""
        row = self._rows[self.cursor] if self._rows else None
        if not isinstance(row, Heading):
            return False
        self._toggled ^= {row.group}
        self._rows = self.context.shown(self._toggled)
        self.rows_changed()
        return True

    def point_at(self, segment: Segment | None) -> None:
        """Put the cursor on a segment without saying so: the bytes pane led here."""
        if segment is None:
            return
        for i, row in enumerate(self._rows):
            if isinstance(row, Item) and row.segment.path == segment.path:
                self.cursor = i
                self.show_cursor()
                self.refresh()
                return

    def row_count(self) -> int:
        """Rows of open groups."""
        return len(self._rows)

    def row_spans(self, row: int, width: int, *, selected: bool) -> Spans:
        """A heading, a segment or a rule."""
        found = self._rows[row]
        closed = isinstance(found, Heading) and found.group in self.context.closed ^ self._toggled
        return context_rows.paint(found, width, selected=selected, closed=closed, estimated=self.context.estimated)
