"""Widgets of a line or two: painted text, and the keys that apply now."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from rich.cells import cell_len
from textual import events
from textual.strip import Strip
from textual.widget import Widget

from ctxscope.tui.commands import COMMANDS, Command
from ctxscope.tui.paint import COMPONENT_CLASSES, Spans
from ctxscope.tui.widgets.row_view import Painted, strip


class LineView(Painted, Widget):
    """Painted text that runs on for as many lines as the widget has, and is cut there."""

    COMPONENT_CLASSES: ClassVar[set[str]] = set(COMPONENT_CLASSES)
    spans: Spans = ()

    def say(self, *spans: tuple[str, str]) -> None:
        """Show printable text; whoever calls has sent log text through the gate."""
        if tuple(spans) != tuple(self.spans):
            self.spans = spans
            self.refresh()

    def render_line(self, y: int) -> Strip:
        """What falls into this line."""
        width = self.size.width
        text = strip(self.spans, self.palette(), self.rich_style, (y + 1) * width)
        return text.crop(y * width, (y + 1) * width)


class KeyLine(LineView):
    """The keys of the most used commands, dim where they do not apply; a click does what the key does."""

    def __init__(self, applies: Callable[[Command], bool]) -> None:
        super().__init__(id="keys")
        self._applies = applies
        self._places: Sequence[tuple[int, Command]] = ()

    def refresh_keys(self) -> None:
        """Ask again which commands apply."""
        spans: list[tuple[str, str]] = []
        places, at = [], 0
        for command in COMMANDS:
            if not command.short or self.size.width < command.room:
                continue
            applies = self._applies(command)
            pieces = [
                (f" {command.line_keys} ", "key" if applies else "dim"),
                (command.short, "text" if applies else "dim"),
            ]
            spans += pieces
            at += sum(cell_len(text) for text, _ in pieces)
            places.append((at, command))
        self._places = places
        self.say(*spans)

    def on_resize(self) -> None:
        """More or fewer keys have room."""
        self.refresh_keys()

    async def on_click(self, event: events.Click) -> None:
        """Run the command under the pointer."""
        for end, command in self._places:
            if event.x < end:
                await self.screen.run_action(command.action)
                return
