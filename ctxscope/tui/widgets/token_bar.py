"""The token bar: how full the context window is, and of what."""

from __future__ import annotations

from textual import events
from textual.message import Message
from textual.strip import Strip

from ctxscope.model import Call
from ctxscope.tui import bar_cells, words
from ctxscope.tui.bar_cells import BarCells
from ctxscope.tui.context_rows import Context
from ctxscope.tui.widgets.context import EMPTY
from ctxscope.tui.widgets.lines import LineView
from ctxscope.tui.widgets.painted import strip


class TokenBar(LineView):
    """First line the bar, second line the numbers and how each is known, third line, where it has one, the parts by name.

    A click on the bar goes to the segment.
    """

    class Picked(Message):
        """A cell of the bar was clicked."""

        def __init__(self, path: str) -> None:
            super().__init__()
            self.path = path

    def __init__(self) -> None:
        super().__init__(id="tokens")
        self._call: Call | None = None
        self._shown = EMPTY
        self._window: int | None = None
        self._bar: tuple[int, int, BarCells] | None = None
        """Width it was built for, where it begins, and the bar."""

    def show(self, call: Call | None, context: Context, window: int | None) -> None:
        """Take over a call; its context may follow later."""
        self._call, self._shown, self._window, self._bar = call, context, window, None
        self.refresh()

    def render_line(self, y: int) -> Strip:
        """The bar, the numbers or the parts."""
        width, call = self.size.width, self._call
        spans: list[tuple[str, str]] = []
        if call is not None and y == 0:
            spans = self._bar_spans(call, width)
        elif call is not None and y == 1:
            spans = [(" tok", "dim")]
            for value, name in words.ledger(call, width - 4):
                spans += [(f"{words.LEDGER_GAP}{value} ", "text"), (name, "dim")]
        elif call is not None and y == 2:  # noqa: PLR2004 - the third line
            parts = words.by_part(call)
            spans = [(" by part", "dim")] if parts else []
            for letter, told, style in parts:
                spans += [(f"{words.LEDGER_GAP}{letter}{' ' if letter else ''}", style), (told, "text")]
        return strip(spans, self.palette(), self.rich_style, width)

    def on_click(self, event: events.Click) -> None:
        """Name the segment under the pointer."""
        if self._bar is None or event.y > 0:
            return
        _, begin, bar = self._bar
        at = event.x - begin
        if 0 <= at < len(bar.paths) and bar.paths[at]:
            self.post_message(self.Picked(bar.paths[at]))

    def _bar_spans(self, call: Call, width: int) -> list[tuple[str, str]]:
        reported, tokens = words.reported(call), call.tokens
        known = reported is not None
        used = reported if known else tokens.visible if tokens.visible is not None else tokens.rebuilt
        before, after = bar_cells.words(used, self._window, estimated=not known)
        if self._bar is None or self._bar[0] != width:
            room = max(width - len(before) - len(after), 4)
            self._bar = (width, len(before), bar_cells.build(self._shown, used, self._window, room))
        return [(before, "text"), *self._bar[2].spans, (after, "text")]
