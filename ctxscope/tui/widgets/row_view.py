"""The base of the three panes: rows painted one line at a time, a cursor, scrolling, clicks."""

from __future__ import annotations

from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from ctxscope.tui.paint import COMPONENT_CLASSES, Spans


def strip(spans: Spans, styles: dict[str, Style], base: Style, width: int) -> Strip:
    """Painted spans as exactly ``width`` cells; text goes to segments as it is, no markup parser in between."""
    segments = [Segment(text, base + styles[name]) for text, name in spans if text]
    return Strip(segments).adjust_cell_length(width, base)


class Painted:
    """What paints spans with component classes.

    Mixed into widgets, which declare the classes themselves: Textual looks for them in widgets only.
    """

    _palette: dict[str, Style] | None = None

    def palette(self) -> dict[str, Style]:
        """Style by style name, looked up once per theme."""
        if self._palette is None:
            lookup = self.get_component_rich_style  # type: ignore[attr-defined]  # the widget this is mixed into has it
            # the partial style leaves the background alone, the full one has translucent colours mixed with it
            self._palette = {
                name.removeprefix("paint--"): lookup(name, partial=True) + Style(color=lookup(name).color)
                for name in COMPONENT_CLASSES
            }
        return self._palette

    def notify_style_update(self) -> None:
        """Forget the styles when the stylesheet or the theme changes."""
        self._palette = None
        super().notify_style_update()  # type: ignore[misc]  # the widget this is mixed into has it


class RowView(Painted, ScrollView, can_focus=True, inherit_bindings=False):
    """A pane of rows with a cursor. Subclasses say how many rows there are and how one is painted."""

    COMPONENT_CLASSES: ClassVar[set[str]] = set(COMPONENT_CLASSES)

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
    def page(self) -> int:
        """Rows on screen."""
        return max(self.size.height - self.headings, 1)

    def render_line(self, y: int) -> Strip:
        """One line of the pane, as the line API asks for it."""
        width, styles, base = self.size.width, self.palette(), self.rich_style
        if y < self.headings:
            return strip(self.heading_spans(y, width), styles, base, width)
        row = y - self.headings + self.scroll_offset.y
        if row >= self.row_count():
            return Strip.blank(width, base)
        selected = row == self.cursor
        if selected and self.has_focus:
            base += styles["cursor"]
        return strip(self.row_spans(row, width, selected=selected), styles, base, width)

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

    def on_resize(self) -> None:
        """Keep the cursor on screen when the pane shrinks."""
        if self.row_count():
            self.show_cursor()
