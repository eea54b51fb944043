"""The session picker: what there is to open, filtered as the user types."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding
from textual.content import Content
from textual.message import Message
from textual.widgets import Input

from ctxscope.tui import errors, picker_rows
from ctxscope.tui.paint import Spans, fit, plural
from ctxscope.tui.picker_rows import HEADINGS, Cells, Columns, matching
from ctxscope.tui.source import ListSessions, PickerRow
from ctxscope.tui.visible import visible
from ctxscope.tui.widgets.lines import LineView
from ctxscope.tui.widgets.painted import ColouredScreen
from ctxscope.tui.widgets.row_view import RowView

KEYS = (
    ("type", "to filter"),
    ("↑ ↓", "choose"),
    ("enter", "open"),
    ("ctrl+r", "look again"),
    ("esc", "back"),
)


class SessionsPane(RowView, can_focus=False):
    """The sessions that match. Keys go to the filter, which passes on what moves the cursor."""

    headings = 1

    def __init__(self) -> None:
        super().__init__(id="sessions")
        self.border_title = Content("Open session")
        self.rows: Sequence[PickerRow] = ()
        self._cells: Sequence[Cells] = ()
        self._columns: tuple[int, Columns] | None = None
        """Widths, and the width of the pane they are for."""

    def show(self, rows: Sequence[PickerRow], of: int) -> None:
        """Take over the rows to show, out of ``of``; the cursor stays on its session."""
        kept = self.rows[self.cursor].path if self.rows else None
        now, home = time.time(), str(Path("~").expanduser())
        self.rows, self._columns = rows, None
        self._cells = [picker_rows.cells(row, now, home) for row in rows]
        found = plural(of, "session") if len(rows) == of else f"{len(rows)} of {plural(of, 'session')}"
        live = " · ● written to just now" if any(row.live for row in rows) else ""
        self.border_subtitle = Content(f"{found}{live}")
        self.cursor = next((i for i, row in enumerate(rows) if row.path == kept), 0)
        self.rows_changed()
        self.show_cursor()

    def row_count(self) -> int:
        """Sessions that match."""
        return len(self.rows)

    def row_spans(self, row: int, width: int, *, selected: bool) -> Spans:
        """A session."""
        live = self.rows[row].live
        return picker_rows.paint(self._cells[row], self._wide(width), live=live, selected=selected)

    def heading_spans(self, line: int, width: int) -> Spans:  # noqa: ARG002 - there is one heading line
        """Column names."""
        return picker_rows.paint(HEADINGS, self._wide(width), live=False, selected=False, style="dim")

    def _wide(self, width: int) -> Columns:
        if self._columns is None or self._columns[0] != width:
            self._columns = (width, picker_rows.columns(self._cells, width))
        return self._columns[1]


class PickerScreen(ColouredScreen[PickerRow | None]):
    """Its result is the session to open."""

    AUTO_FOCUS = "#filter"
    BINDINGS: ClassVar = [
        Binding("down,ctrl+n", "move(1)", "down", show=False, priority=True),
        Binding("up,ctrl+p", "move(-1)", "up", show=False, priority=True),
        Binding("pagedown", "page(1)", "page down", show=False, priority=True),
        Binding("pageup", "page(-1)", "page up", show=False, priority=True),
        Binding("ctrl+home", "edge(-1)", "first", show=False, priority=True),
        Binding("ctrl+end", "edge(1)", "last", show=False, priority=True),
        Binding("ctrl+r", "rescan", "rescan", show=False, priority=True),
        Binding("escape", "back", "back", show=False, priority=True),
    ]

    class Scanned(Message):
        """The list is here."""

        def __init__(self, rows: Sequence[PickerRow]) -> None:
            super().__init__()
            self.rows = rows

    class NotScanned(Message):
        """There is no list, and why."""

        def __init__(self, reason: str) -> None:
            super().__init__()
            self.reason = reason

    def __init__(self, list_sessions: ListSessions) -> None:
        super().__init__()
        self._list = list_sessions
        self._all: Sequence[PickerRow] = ()
        self._state = "looking for sessions …"
        """What to say while there is no row."""
        self.pane, self.about, self.keys = SessionsPane(), LineView(id="about"), LineView(id="keys")
        self.filter = Input(placeholder="type to filter", id="filter")

    def compose(self) -> ComposeResult:
        """Filter prompt, list, what stands under the cursor in full, keys."""
        yield self.filter
        yield self.pane
        yield self.about
        yield self.keys

    def on_mount(self) -> None:
        """Look."""
        self.keys.say(*(piece for key, does in KEYS for piece in ((f" {key} ", "key"), (f"{does} ", "text"))))
        self.action_rescan()

    @work(thread=True, exclusive=True, group="scan")
    def _scan(self) -> None:
        try:
            self.post_message(self.Scanned(tuple(self._list())))
        except Exception as error:  # noqa: BLE001 - whatever lies on this disk, the app lives on
            self.post_message(self.NotScanned(errors.in_words(error)))

    @on(Scanned)
    def _scanned(self, message: Scanned) -> None:
        self._all, self._state = message.rows, "no session found · ctxscope demo opens samples, ctxscope PATH a log"
        self._show()

    @on(NotScanned)
    def _not_scanned(self, message: NotScanned) -> None:
        self._all, self._state = (), visible(message.reason)
        self._show()

    @on(Input.Changed)
    def _show(self) -> None:
        self.pane.show(matching(self._all, self.filter.value), len(self._all))
        self._tell()

    @on(RowView.Moved)
    def _tell(self) -> None:
        """The session under the cursor with nothing cut off, or why there is none."""
        if not self.pane.rows:
            self.about.say((f" {'nothing matches' if self._all else self._state}", "text"))
            return
        row, width = self.pane.rows[self.pane.cursor], self.size.width
        self.about.say((fit(f" {visible(row.title)}", width), "text"), (f" {visible(row.path)}", "dim"))

    def on_resize(self) -> None:
        """The lines below the list are fitted to the width."""
        self._tell()

    @on(Input.Submitted)
    @on(RowView.Activated)
    def _chosen(self) -> None:
        if self.pane.rows:
            self.dismiss(self.pane.rows[self.pane.cursor])

    def action_move(self, rows: int) -> None:
        """Move the cursor."""
        self.pane.move_to(self.pane.cursor + rows)

    def action_page(self, direction: int) -> None:
        """Move the cursor by what is on screen."""
        self.action_move(direction * max(self.pane.page - 1, 1))

    def action_edge(self, direction: int) -> None:
        """Move the cursor to the first or last session."""
        self.pane.move_to(0 if direction < 0 else self.pane.row_count() - 1)

    def action_rescan(self) -> None:
        """Look again."""
        self._scan()

    def action_back(self) -> None:
        """Clear the filter, then leave."""
        if self.filter.value:
            self.filter.value = ""
        else:
            self.dismiss(None)
