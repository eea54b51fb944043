"""Widgets of a line or two: painted text, and the keys that apply now."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from rich.cells import cell_len, chop_cells
from textual import events
from textual.strip import Strip
from textual.widget import Widget

from ctxscope.tui.commands import COMMANDS, Command
from ctxscope.tui.paint import Spans, fit
from ctxscope.tui.widgets.painted import Painted, strip

_WORD = re.compile(r" *[^ ]+ *| +")


def wrapped(spans: Spans, width: int, height: int, hang: int = 0) -> Sequence[Spans]:
    """Spans in at most ``height`` lines of ``width`` cells, broken at spaces where it can be; what is cut off ends in ``…``.

    Lines after the first are indented by ``hang`` cells.
    """
    lines: list[list[tuple[str, str]]] = [[]]
    indented = [(" " * hang, "text")]
    width, room = max(width - hang, 1), width
    for word, style in ((word, style) for text, style in spans for word in _WORD.findall(text)):
        rest = word
        if _too_long(rest, room) and room < width and len(lines) < height:
            lines.append([*indented])
            rest, room = rest.lstrip(" "), width
        while _too_long(rest, room) and len(lines) < height:
            head = chop_cells(rest, room)[0]
            lines[-1].append((head, style))
            lines.append([*indented])
            rest, room = rest[len(head) :], width
        if _too_long(rest, room):
            before, of = lines[-1].pop() if lines[-1] else ("", style)
            lines[-1].append((fit(before + rest, cell_len(before) + room), of))
            return lines
        lines[-1].append((rest, style))
        room -= cell_len(rest)
    return lines


def _too_long(word: str, room: int) -> bool:
    """Whether a word has no room; the spaces behind it need none."""
    return cell_len(word.rstrip(" ")) > room


class LineView(Painted, Widget):
    """Painted text that runs on, between words where it can, for as many lines as the widget has, and is cut there."""

    spans: Spans = ()

    def __init__(self, *, id: str, hang: int = 0) -> None:  # noqa: A002 - Textual's own name
        super().__init__(id=id)
        self._hang = hang
        """Cells the lines after the first are indented by."""

    def say(self, *spans: tuple[str, str]) -> None:
        """Show printable text; whoever calls has sent log text through the gate."""
        if tuple(spans) != tuple(self.spans):
            self.spans = spans
            self.refresh()

    def render_line(self, y: int) -> Strip:
        """What falls into this line."""
        width = self.size.width
        lines = wrapped(self.spans, width, self.size.height, self._hang)
        return strip(lines[y] if y < len(lines) else (), self.palette(), self.rich_style, width)


class KeyLine(LineView):
    """The keys of the most used commands that would do something now; a click does what the key does."""

    def __init__(self, applies: Callable[[Command], bool]) -> None:
        super().__init__(id="keys")
        self._applies = applies
        self._places: Sequence[tuple[int, Command]] = ()

    def refresh_keys(self) -> None:
        """Ask again which commands apply; of more than have room the most used stay."""
        room, shown = self.size.width, set()
        for command in sorted((c for c in COMMANDS if c.short and self._applies(c)), key=lambda c: c.rank):
            room -= _cells(command)
            if room < 0:
                break
            shown.add(command.name)
        spans: list[tuple[str, str]] = []
        places, at = [], 0
        for command in COMMANDS:
            if command.name in shown:
                spans += [(f" {command.line_keys} ", "key"), (command.short, "text")]
                at += _cells(command)
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


def _cells(command: Command) -> int:
    """Cells a command takes in the key line."""
    return cell_len(f" {command.line_keys} {command.short}")
