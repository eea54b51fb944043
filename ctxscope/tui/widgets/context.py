"""Pane 2: what the selected call's context is made of."""

from __future__ import annotations

from textual.content import Content

from ctxscope.model import Segment
from ctxscope.tui import context_rows
from ctxscope.tui.context_rows import Context, ContextRow, Heading, Item, Mark, group_of
from ctxscope.tui.paint import Spans, number
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
        scaled = f" · ≈ of {number(context.sum_of)} reported" if context.sum_of is not None else ""
        self.border_title = Content("2 Context" if n is None else f"2 Context · call {n}{scaled}")
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
        """Put the cursor on a segment, or on the closed group of the prompt it is in: the bytes pane led here."""
        at = self._row_of(segment) if segment is not None else None
        if at is not None:
            self.cursor = at
            self.show_cursor()
            self.refresh()

    def point_at_break(self) -> bool:
        """Put the cursor where the cache broke, on the mark itself in a closed group; False when it did not break."""
        at = next((i for i, row in enumerate(self._rows) if isinstance(row, Mark) and row.line == "╳"), None)
        if at is None:
            return False
        behind = self._rows[at + 1] if at + 1 < len(self._rows) else None
        self.cursor = at + 1 if isinstance(behind, Item) else at
        self.show_cursor()
        self.refresh()
        return True

    def show_cursor(self, *, centre: bool = False) -> None:
        """Scroll so that the cursor's row is on screen, and the marks and headings right above it."""
        super().show_cursor(centre=centre)
        top = self.cursor
        while top > max(self.cursor - self.page + 1, 0) and isinstance(self._rows[top - 1], (Mark, Heading)):
            top -= 1
        if top < self.scroll_offset.y:
            self.scroll_to(y=top, animate=False, immediate=True)

    def _row_of(self, segment: Segment) -> int | None:
        heading = None
        for i, row in enumerate(self._rows):
            if isinstance(row, Item) and row.segment.path == segment.path:
                return i
            if isinstance(row, Heading) and row.group == group_of(segment) and segment.kind != "param":
                heading = i
        return heading

    def row_count(self) -> int:
        """Rows of open groups."""
        return len(self._rows)

    def row_spans(self, row: int, width: int, *, selected: bool) -> Spans:
        """A heading, a segment or a rule."""
        found = self._rows[row]
        closed = isinstance(found, Heading) and found.group in self.context.closed ^ self._toggled
        return context_rows.paint(found, width, selected=selected, closed=closed, estimated=self.context.estimated)
