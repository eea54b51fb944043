"""The request an agent would send next if it were started anew, beside the last one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.worker import get_current_worker

from ctxscope.model import NextRequest
from ctxscope.tui import errors, next_rows
from ctxscope.tui.comparison import Comparison, foretold
from ctxscope.tui.loading import sheets
from ctxscope.tui.paint import Spans
from ctxscope.tui.rows import FORMS
from ctxscope.tui.screens.modal import MOVES, Box
from ctxscope.tui.sheet import Sheet
from ctxscope.tui.source import Source
from ctxscope.tui.visible import visible
from ctxscope.tui.widgets.bytes import BytesPane, Wish
from ctxscope.tui.widgets.row_view import RowView


class ToldPane(RowView):
    """Lines about the request, as high as they are as long as they leave room for its bytes."""

    cursor = -1

    def __init__(self) -> None:
        super().__init__(id="foretold")
        self._request: NextRequest | None = None
        self._lines: Sequence[Spans] = ()

    def show(self, request: NextRequest | None) -> None:
        """Take over what is to be told, if there is anything yet."""
        self._request = request
        self._lines = next_rows.lines_of(request, self.columns) if request is not None else ()
        self.styles.height = len(self._lines) if request is not None else None
        self.rows_changed()

    def on_resize(self) -> None:
        """Break the lines anew."""
        if self._request is not None and self._lines != next_rows.lines_of(self._request, self.columns):
            self.show(self._request)

    def move_to(self, row: int, *, centre: bool = False) -> None:
        """Nothing: there is nothing to select."""

    def rows_changed(self) -> None:
        """Take over the lines; there is no cursor."""
        super().rows_changed()
        self.cursor = -1

    def row_count(self) -> int:
        """Lines there are."""
        return len(self._lines)

    def row_spans(self, row: int, width: int, *, selected: bool) -> Spans:  # noqa: ARG002 - no pointer
        """A line as it is."""
        return self._lines[row]


class NextRequestScreen(Box[None]):
    """A modal box over the session screen."""

    AUTO_FOCUS = "#bytes"
    BINDINGS: ClassVar = [
        Binding("escape,q,r", "dismiss", "close", show=False),
        Binding("tab", "next_session", "next session", show=False),
        *MOVES,
        Binding("d", "hunk(1)", "next difference", show=False),
        Binding("D", "hunk(-1)", "previous difference", show=False),
        Binding("enter", "open_fold", "open a fold", show=False),
        Binding("x", "form", "raw, pretty, hex", show=False),
        Binding("u", "beside", "side by side or one column", show=False),
        Binding("left_square_bracket", "told(-1)", "text above, up", show=False),
        Binding("right_square_bracket", "told(1)", "text above, down", show=False),
    ]

    class Foretold(Message):
        """A worker has the requests of all sessions."""

        def __init__(self, requests: Sequence[NextRequest]) -> None:
            super().__init__()
            self.requests = requests

    class LaidOut(Message):
        """A worker has laid out the bytes of one."""

        def __init__(self, sheet: Sheet, *, first: bool) -> None:
            super().__init__()
            self.sheet, self.first = sheet, first

    class Failed(Message):
        """It could not be worked out."""

        def __init__(self, reason: str) -> None:
            super().__init__()
            self.reason = reason

    def __init__(self) -> None:
        super().__init__()
        self._source: Source | None = None
        self._session: str | None = None
        self._requests: Sequence[NextRequest] = ()
        self._at = 0
        self._comparison: Comparison | None = None
        self.told, self.bytes_pane = ToldPane(), BytesPane("Bytes")
        self.pane = self.bytes_pane

    def compose(self) -> ComposeResult:
        """What is told, and the bytes."""
        with Vertical(id="next"):
            yield self.told
            yield self.bytes_pane

    def show(self, source: Source, session: str | None) -> None:
        """Tell of all sessions, of this one first."""
        self._source, self._session = source, session
        self.handed_over()

    def fill(self) -> None:
        """Have it worked out."""
        self.query_one("#next").border_title = Content("If it were started anew now")
        self.bytes_pane.wait("working out the next request …")
        if self._source is not None:
            self._work_out(self._source)

    def empty(self) -> None:
        """Let go of the requests and of how they were shown."""
        self._source, self._requests, self._comparison = None, (), None
        self.query_one("#next").border_subtitle = Content("")
        self.told.show(None)
        self.bytes_pane.clear("")
        self.bytes_pane.wish = Wish()

    @work(thread=True, exclusive=True, group="next")
    def _work_out(self, source: Source) -> None:
        worker = get_current_worker()
        try:
            requests = source.next_requests()
        except Exception as error:  # noqa: BLE001 - whatever a log makes a reader raise, the app lives on
            self.post_message(self.Failed(errors.in_words(error)))
        else:
            if not worker.is_cancelled:
                self.post_message(self.Foretold(requests))

    @on(Failed)
    def _failed(self, message: Failed) -> None:
        self.bytes_pane.clear(message.reason)

    @on(Foretold)
    def _foretold(self, message: Foretold) -> None:
        self._requests = message.requests
        wanted = [i for i, r in enumerate(self._requests) if r.session == self._session]
        known = [i for i, r in enumerate(self._requests) if r.body is not None]
        self._at = next(iter([*wanted, *known]), 0)
        self._show()

    def _show(self) -> None:
        """The session's request, and what is told of it."""
        box = self.query_one("#next")
        more = f" · tab next of {len(self._requests)} sessions" if len(self._requests) > 1 else ""
        box.border_subtitle = Content(f"j k move · d difference · x form{more} · esc close")
        if not self._requests:
            self.bytes_pane.clear("no session is open: a log tells what comes next")
            return
        request = self._requests[self._at]
        box.border_title = Content(visible(f"{request.title} · {request.session} · if it were started anew now"))
        self.told.show(request)
        self._comparison = foretold(request)
        if self._comparison is None:
            self.bytes_pane.clear("no bytes to show")
        else:
            self.call_after_refresh(self._lay_out, first=True)

    def _lay_out(self, *, first: bool = False) -> None:
        if self._comparison is not None:
            self._compare(self._comparison, first=first)

    @work(thread=True, exclusive=True, group="next")
    def _compare(self, comparison: Comparison, *, first: bool) -> None:
        worker = get_current_worker()
        for sheet in sheets(comparison, self.bytes_pane.layout_now()):
            if worker.is_cancelled:
                return
            self.post_message(self.LaidOut(sheet, first=first))

    @on(LaidOut)
    def _laid_out(self, message: LaidOut) -> None:
        if message.sheet.comparison is self._comparison:
            self.bytes_pane.show(message.sheet, jump=message.first)
            # it has its rows, and its size beside what is told above, only after the next frame
            self.bytes_pane.call_after_refresh(self.bytes_pane.show_cursor, centre=True)

    @on(BytesPane.Resized)
    def _resized(self) -> None:
        self._lay_out()

    @on(RowView.Moved)
    def _moved(self) -> None:
        self.bytes_pane.say_position()

    def action_next_session(self) -> None:
        """The next session's request."""
        if len(self._requests) > 1:
            self._at = (self._at + 1) % len(self._requests)
            self._show()

    def action_hunk(self, direction: int) -> None:
        """Go to the next or previous difference."""
        self.bytes_pane.next_hunk(direction)

    def action_open_fold(self) -> None:
        """Open the fold under the cursor."""
        self.bytes_pane.open_fold()

    def action_told(self, rows: int) -> None:
        """Scroll what is told."""
        self.told.scroll_relative(y=rows, animate=False)

    def action_form(self) -> None:
        """Raw, pretty, hex, and again."""
        wish = self.bytes_pane.wish
        form = FORMS[(FORMS.index(wish.form) + 1) % len(FORMS)]
        self.bytes_pane.wish = Wish(form, beside=wish.beside)
        self._lay_out()

    def action_beside(self) -> None:
        """Side by side, or one column."""
        wish = self.bytes_pane.wish
        self.bytes_pane.wish = Wish(wish.form, beside=not self.bytes_pane.layout_now().beside)
        self._lay_out()
