"""The parts of the tokens screen: their names in a line, and the pane that shows one of them."""

from __future__ import annotations

from typing import Literal

from textual import events
from textual.message import Message

from ctxscope.tui.history_cells import Chart
from ctxscope.tui.widgets.lines import LineView
from ctxscope.tui.widgets.stops import StopsPane

Tab = Literal["ledger", "history", "compactions", "sidecars"]
TABS: tuple[Tab, ...] = ("ledger", "history", "compactions", "sidecars")


class TabLine(LineView):
    """The names of the parts; a click goes to one."""

    class Picked(Message):
        """A name was clicked."""

        def __init__(self, tab: Tab) -> None:
            super().__init__()
            self.tab = tab

    def show(self, chosen: Tab) -> None:
        """Mark the part that is shown, by brackets too."""
        names = [(f" [{i} {tab}]" if tab == chosen else f"  {i} {tab} ", tab) for i, tab in enumerate(TABS, 1)]
        self.say(*((name, "head" if tab == chosen else "dim") for name, tab in names))

    def on_click(self, event: events.Click) -> None:
        """Name the part under the pointer."""
        end = 0
        for (name, _), tab in zip(self.spans, TABS, strict=True):
            end += len(name)
            if event.x < end:
                self.post_message(self.Picked(tab))
                return


class TokensPane(StopsPane):
    """One part, as lines: to show another one costs no new layout of the screen."""

    drawn: Chart | None = None
    """The chart that the lines are; ``None`` while they are none."""

    class Pointed(Message):
        """A column of the chart was clicked."""

        def __init__(self, index: int) -> None:
            super().__init__()
            self.index = index

    def on_click(self, event: events.Click) -> None:
        """In a chart, name the call under the pointer; the rest is every pane's."""
        offset = event.get_content_offset(self)
        found = self.drawn.call_under(offset.x) if self.drawn is not None and offset is not None else None
        if found is not None:
            self.post_message(self.Pointed(found))
