"""The session picker: what is on this machine, filtered as the user types."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding
from textual.content import Content
from textual.message import Message
from textual.screen import Screen
from textual.widgets import Input

from ctxscope.tui.paint import UNKNOWN, Spans, fit, size
from ctxscope.tui.source import ListSessions, PickerRow
from ctxscope.tui.visible import visible
from ctxscope.tui.widgets.row_view import RowView

_MINUTE, _HOUR, _DAY = 60, 3_600, 86_400


def ago(then: float | None, now: float) -> str:
    """How long since, in one unit."""
    if then is None:
        return UNKNOWN
    past = max(now - then, 0)
    for unit, seconds in (("d", _DAY), ("h", _HOUR), ("min", _MINUTE)):
        if past >= seconds:
            return f"{past // seconds:.0f} {unit} ago"
    return f"{past:.0f} s ago"


def paint(row: PickerRow, width: int, now: float, *, selected: bool) -> Spans:
    """One session."""
    served = UNKNOWN if row.served is None else "yes" if row.served else "no"
    calls = UNKNOWN if row.calls is None else f"{row.calls:,}"
    wide = width >= 110  # noqa: PLR2004 - below, the path has no room
    project = fit(visible(row.project), 18 if wide else 16)
    spans = [
        (">" if selected else " ", "text"),
        ("● " if row.live else "  ", "live"),
        (fit(visible(row.agent), 13), "text"),
        (f"{project} {fit(ago(row.updated, now), 11)} {calls:>7} {size(row.size):>8}  {served:<6} ", "text"),
    ]
    used = sum(len(text) for text, _ in spans)
    return [*spans, (fit(visible(row.path), max(width - used, 0)), "dim")]


def matching(rows: Sequence[PickerRow], words: str) -> list[PickerRow]:
    """The rows that hold every word, in any column, whatever the case."""
    wanted = words.lower().split()
    return [r for r in rows if all(w in f"{r.agent} {r.project} {r.path} {r.key}".lower() for w in wanted)]


class SessionsPane(RowView):
    """The sessions that match."""

    headings = 1

    def __init__(self) -> None:
        super().__init__(id="sessions")
        self.border_title = Content("Open session")
        self.rows: Sequence[PickerRow] = ()
        self._now = 0.0

    def show(self, rows: Sequence[PickerRow]) -> None:
        """Take over the rows to show."""
        self.rows, self._now = rows, time.time()
        self.border_subtitle = Content(f"{len(rows)} sessions · / filter · enter open · r rescan · esc back")
        self.rows_changed()

    def row_count(self) -> int:
        """Sessions that match."""
        return len(self.rows)

    def row_spans(self, row: int, width: int, *, selected: bool) -> Spans:
        """A session."""
        return paint(self.rows[row], width, self._now, selected=selected)

    def heading_spans(self, line: int, width: int) -> Spans:  # noqa: ARG002 - there is one heading line
        """Column names, fitted as the rows are."""
        project = 18 if width >= 110 else 16  # noqa: PLR2004 - as in the rows
        return [
            (
                f"   {'agent':<13}{'project':<{project}} {'updated':<11} {'calls':>7} {'size':>8}  {'served':<7}path",
                "dim",
            )
        ]


class PickerScreen(Screen[PickerRow | None]):
    """Its result is the session to open."""

    CSS_PATH = "picker.tcss"
    BINDINGS: ClassVar = [
        Binding("j,down", "move(1)", "down", show=False),
        Binding("k,up", "move(-1)", "up", show=False),
        Binding("space,pagedown", "move(10)", "page down", show=False),
        Binding("pageup", "move(-10)", "page up", show=False),
        Binding("slash", "filter", "filter", show=False),
        Binding("enter", "open", "open", show=False),
        Binding("r", "rescan", "rescan", show=False),
        Binding("escape", "back", "back", show=False),
        Binding("q", "back", "back", show=False),
    ]

    class Scanned(Message):
        """The list is here."""

        def __init__(self, rows: Sequence[PickerRow]) -> None:
            super().__init__()
            self.rows = rows

    def __init__(self, list_sessions: ListSessions) -> None:
        super().__init__()
        self._list = list_sessions
        self._all: Sequence[PickerRow] = ()
        self._pane = SessionsPane()
        self._filter = Input(placeholder="filter", id="filter")

    def compose(self) -> ComposeResult:
        """Filter prompt and list."""
        yield self._filter
        yield self._pane

    def on_mount(self) -> None:
        """Look."""
        self._pane.focus()
        self.action_rescan()

    @work(thread=True, exclusive=True, group="scan")
    def _scan(self) -> None:
        self.post_message(self.Scanned(tuple(self._list())))

    @on(Scanned)
    def _scanned(self, message: Scanned) -> None:
        self._all = message.rows
        self._show()

    @on(Input.Changed)
    def _show(self) -> None:
        self._pane.show(matching(self._all, self._filter.value))

    @on(Input.Submitted)
    def _submitted(self) -> None:
        self._pane.focus()

    @on(RowView.Activated)
    def _activated(self) -> None:
        self.action_open()

    def action_move(self, rows: int) -> None:
        """Move the cursor."""
        self._pane.move_to(self._pane.cursor + rows)

    def action_filter(self) -> None:
        """Type a filter."""
        self._filter.focus()

    def action_rescan(self) -> None:
        """Look again."""
        self._scan()

    def action_open(self) -> None:
        """Open the session under the cursor."""
        if self._pane.rows:
            self.dismiss(self._pane.rows[self._pane.cursor])

    def action_back(self) -> None:
        """Leave the prompt, then the list."""
        if self._filter.has_focus:
            self._pane.focus()
        else:
            self.dismiss(None)
