"""The base of the three panes: rows painted one line at a time, a cursor, scrolling, clicks."""

from __future__ import annotations

from rich.style import Style
from textual import events
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from ctxscope.tui.paint import Spans
from ctxscope.tui.widgets.painted import Painted, Palette, strip

_KEPT_STRIPS = 2_000
"""Rows kept painted: many screens, since a row is painted anew when its screen comes back."""


class RowView(Painted, ScrollView, can_focus=True, inherit_bindings=False):
    """A pane of rows with a cursor. Subclasses say how many rows there are and how one is painted."""

    class Moved(Message):
        """The cursor stands on another row."""

        def __init__(self, pane: RowView) -> None:
            super().__init__()
            self.pane = pane

        @property
        def control(self) -> RowView:
            """The pane whose cursor moved."""
            return self.pane

        def can_replace(self, message: Message) -> bool:
            """Only where the cursor stands now matters."""
            return isinstance(message, RowView.Moved) and message.pane is self.pane

    class Activated(Message):
        """Enter, or a second click, on the cursor's row."""

        def __init__(self, pane: RowView) -> None:
            super().__init__()
            self.pane = pane

        @property
        def control(self) -> RowView:
            """The pane it happened in."""
            return self.pane

    cursor = 0
    headings = 0
    """Lines at the top that stay while the rest scrolls."""

    def __init__(self, *, id: str) -> None:  # noqa: A002 - Textual's own name
        super().__init__(id=id)
        self._strips: dict[tuple[int, bool, bool], Strip] = {}
        """Rows painted before, by row, whether it is the cursor's, whether the pane has the focus."""
        self._base: tuple[Palette, int, Style] | None = None
        """What they were painted with: the screen's palette, the pane's width, its own style."""

    def row_count(self) -> int:
        """Rows there are."""
        raise NotImplementedError

    def row_spans(self, row: int, width: int, *, selected: bool) -> Spans:
        """One row, painted."""
        raise NotImplementedError

    def heading_spans(self, line: int, width: int) -> Spans:
        """One of the lines that stay at the top."""
        raise NotImplementedError

    def rows_changed(self) -> None:
        """Take over a new number of rows; the cursor stays on a row that exists."""
        self.cursor = max(0, min(self.cursor, self.row_count() - 1))
        self.virtual_size = Size(0, self.row_count() + self.headings)
        self.repaint()

    def repaint(self) -> None:
        """Paint every row anew: what they say changed, or how they look."""
        self._strips.clear()
        self.refresh()

    def move_to(self, row: int, *, centre: bool = False) -> None:
        """Put the cursor on a row and scroll as little as shows it, or so that it stands in the middle."""
        row = max(0, min(row, self.row_count() - 1))
        changed, self.cursor = row != self.cursor, row
        self.show_cursor(centre=centre)
        self.refresh()
        if changed:
            self.post_message(self.Moved(self))

    def show_cursor(self, *, centre: bool = False) -> None:
        """Scroll so that the cursor's row is on screen."""
        page, top = self.page, self.scroll_offset.y
        if centre and not top <= self.cursor < top + page:
            top = self.cursor - page // 2
        else:
            top = max(min(top, self.cursor), self.cursor - page + 1)
        self.scroll_to(y=max(top, 0), animate=False, immediate=True)

    @property
    def columns(self) -> int:
        """Cells for rows: beside them stands the scroll bar, or room for it, so that rows keep their width."""
        return max(self.size.width - self.styles.scrollbar_size_vertical, 1)

    @property
    def page(self) -> int:
        """Rows on screen."""
        return max(self.size.height - self.headings, 1)

    def render_line(self, y: int) -> Strip:
        """One line of the pane, as the line API asks for it."""
        width, palette, base = self.columns, self.palette(), self._base_style()
        if y < self.headings:
            return strip(self.heading_spans(y, width), palette, base, width)
        row = y - self.headings + self.scroll_offset.y
        if row >= self.row_count():
            return Strip.blank(width, base)
        key = (row, row == self.cursor, self.has_focus)
        painted = self._strips.get(key)
        if painted is None:
            if len(self._strips) >= _KEPT_STRIPS:
                self._strips.clear()
            _, selected, focused = key
            style = base + palette["cursor"] if selected and focused else base
            painted = self._strips[key] = strip(self.row_spans(row, width, selected=selected), palette, style, width)
        return painted

    def notify_style_update(self) -> None:
        """Forget colours when the stylesheet or the theme changes."""
        super().notify_style_update()
        self._base = None

    def _base_style(self) -> Style:
        """The pane's own colours; what was painted with others, or for another width, is forgotten."""
        painted_for = (self.palette(), self.columns)
        if self._base is None or self._base[0] is not painted_for[0] or self._base[1] != painted_for[1]:
            self._base = (*painted_for, self.rich_style)
            self._strips.clear()
        return self._base[2]

    def on_click(self, event: events.Click) -> None:
        """A click selects a row; a second one is enter."""
        offset = event.get_content_offset(self)
        if offset is None or offset.y < self.headings:
            return
        row = offset.y - self.headings + self.scroll_offset.y
        if row >= self.row_count():
            return
        self.move_to(row)
        if event.chain > 1:
            self.post_message(self.Activated(self))

    def watch_show_vertical_scrollbar(self, shown: bool) -> None:
        """Have a bar that comes back stand where the pane is: a hidden one is told of no scrolling."""
        if shown:
            self.vertical_scrollbar.position = self.scroll_y

    def on_resize(self) -> None:
        """Keep the cursor on screen when the pane shrinks."""
        self.repaint()
        if self.row_count():
            self.show_cursor()
