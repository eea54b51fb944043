"""A box of painted lines over the session screen: what help and findings share."""

from __future__ import annotations

from collections.abc import Sequence

from textual.app import ComposeResult
from textual.binding import Binding
from textual.content import Content
from textual.geometry import Size
from textual.screen import ModalScreen

from ctxscope.tui.paint import Spans
from ctxscope.tui.widgets.painted import PaintedScreen
from ctxscope.tui.widgets.row_view import RowView


class LinesPane(RowView):
    """Lines that are there already; they scroll and have no cursor."""

    cursor = -1

    def __init__(self, title: str, lines: Sequence[Spans]) -> None:
        super().__init__(id="lines")
        self.border_title = Content(title)
        self.border_subtitle = Content("j k scroll · esc close")
        self._lines = lines

    def on_mount(self) -> None:
        """Take over the lines."""
        self.virtual_size = Size(0, len(self._lines))

    def move_to(self, row: int, *, centre: bool = False) -> None:
        """Nothing: a click selects no line."""

    def row_count(self) -> int:
        """Lines there are."""
        return len(self._lines)

    def row_spans(self, row: int, width: int, *, selected: bool) -> Spans:  # noqa: ARG002 - cut by the pane; no pointer
        """A line as it is."""
        return self._lines[row]


class LinesScreen(PaintedScreen[None], ModalScreen[None]):
    """A modal box that shows lines and closes."""

    BINDINGS = [  # noqa: RUF012 - Textual's own declaration
        Binding("escape,q,question_mark,i", "dismiss", "close", show=False),
        Binding("j,down", "scroll(1)", "down", show=False),
        Binding("k,up", "scroll(-1)", "up", show=False),
        Binding("space,pagedown", "scroll(10)", "page down", show=False),
        Binding("pageup", "scroll(-10)", "page up", show=False),
    ]

    def __init__(self, title: str, lines: Sequence[Spans]) -> None:
        super().__init__()
        self._pane = LinesPane(title, lines)

    def compose(self) -> ComposeResult:
        """The box."""
        yield self._pane

    def action_scroll(self, rows: int) -> None:
        """Move through the lines."""
        self._pane.scroll_relative(y=rows, animate=False)
