"""How the session screen fills: snapshots and loaded calls in, panes and lines painted. It has no keys."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable

from textual import on, work
from textual.app import ComposeResult
from textual.containers import Container
from textual.screen import Screen
from textual.widgets import Input
from textual.worker import get_current_worker

from ctxscope.model import Call, CtxscopeError, Snapshot
from ctxscope.tui import words
from ctxscope.tui.commands import Command
from ctxscope.tui.comparison import ComparisonKind
from ctxscope.tui.loading import Loaded, Loader, refine
from ctxscope.tui.messages import CallLoaded, CallUnreadable, SessionChanged
from ctxscope.tui.paint import fit, width_of
from ctxscope.tui.sheet import Layout
from ctxscope.tui.source import Source
from ctxscope.tui.visible import visible
from ctxscope.tui.widgets.bytes import BytesPane
from ctxscope.tui.widgets.calls import CallsPane
from ctxscope.tui.widgets.context import EMPTY, ContextPane
from ctxscope.tui.widgets.lines import KeyLine, LineView
from ctxscope.tui.widgets.token_bar import TokenBar

_TITLE_WIDTH = 40
"""Cells the name of what is open gets before counts do."""
Say = Callable[[str], None]


class SessionFlow(Screen[None]):
    """One opened session. It owns the selection; panes paint it."""

    CSS_PATH = "session.tcss"
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (120, "-wide")]  # noqa: RUF012 - Textual's own declaration
    VERTICAL_BREAKPOINTS = [(0, "-short"), (36, "-tall")]  # noqa: RUF012 - likewise

    def __init__(self, source: Source, say: Say) -> None:
        super().__init__()
        self.source = source
        self.snapshot = source.snapshot
        self.shown: Loaded | None = None
        self.say = say
        self._loader = Loader(source)
        self._turn_to_load = threading.Lock()
        """One view at a time: a superseded worker waits here and then finds that it was cancelled."""
        self.wanted: ComparisonKind = "rebuilt"
        self._requested: Call | None = None
        self._stop_following: Callable[[], None] | None = None
        self.calls_pane, self.context_pane, self.bytes_pane = CallsPane(), ContextPane(), BytesPane()
        self.tokens, self.keys = TokenBar(), KeyLine(self.applies)
        self.head, self.why, self.command = LineView(id="head"), LineView(id="why"), LineView(id="command")
        self.search = Input(placeholder="search in the bytes", id="search", select_on_focus=True)

    # --- what is shown ------------------------------------------------------------------------------------------------

    def compose(self) -> ComposeResult:
        """Title, panes, search prompt, token bar, why, command line, keys."""
        yield self.head
        with Container(id="panes"):
            with Container(id="side"):
                yield self.calls_pane
                yield self.context_pane
            yield self.bytes_pane
        yield self.search
        yield self.tokens
        yield self.why
        yield self.command
        yield self.keys

    def on_mount(self) -> None:
        """Show what is known and start to follow."""
        self.calls_pane.following = True
        self.calls_pane.focus()
        # the first layout has happened by then, so bytes are laid out to the pane's real width
        self.call_after_refresh(self._open)

    def on_unmount(self) -> None:
        """Let the tail go."""
        if self._stop_following is not None:
            self._stop_following()

    def _open(self) -> None:
        self._take(self.snapshot)
        self.calls_pane.move_to(self.calls_pane.row_count() - 1)
        self.select(self.wanted)
        self._stop_following = self.source.follow(lambda snapshot: self._arrived(snapshot))  # noqa: PLW0108 - a thread calls it

    def _arrived(self, snapshot: Snapshot) -> None:
        """A newer snapshot, on the reader's thread: hand it over and return at once."""
        self.post_message(SessionChanged(snapshot))

    @on(SessionChanged)
    def _changed(self, message: SessionChanged) -> None:
        self._take(message.snapshot)
        self.select(self.wanted, only_if_new=True)

    def _take(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self.calls_pane.show(snapshot)
        self.say_head()

    def select(self, kind: ComparisonKind, *, only_if_new: bool = False) -> None:
        """Show the call under the cursor: what the snapshot knows at once, its bytes when a worker has them."""
        call = self.calls_pane.call
        self.wanted = kind
        if call is None or (only_if_new and call is self._requested):
            self.say_call()
            return
        same = self.shown is not None and self.shown.n == call.n and only_if_new
        self._requested = call
        if self.shown is not None and self.shown.n != call.n:
            self.bytes_pane.wait(call.n)
        self.say_call()
        self._load(call, kind, jump=not same)

    @work(thread=True, exclusive=True, group="view")
    def _load(self, call: Call, kind: ComparisonKind, *, jump: bool) -> None:
        worker = get_current_worker()
        with self._turn_to_load:
            if worker.is_cancelled:
                return
            layout = self.layout_now()
            try:
                loaded = self._loader.load(call, kind, layout, jump=jump)
            except (CtxscopeError, OSError) as error:
                self.post_message(CallUnreadable(call.n, str(error)))
                return
        self.post_message(CallLoaded(loaded))
        if not worker.is_cancelled:
            for better in refine(loaded):
                self.post_message(CallLoaded(better))

    @on(CallLoaded)
    def _loaded(self, message: CallLoaded) -> None:
        loaded, call = message.loaded, self.calls_pane.call
        if call is None or loaded.n != call.n:
            return
        first, self.shown = self.shown is None, loaded
        self.context_pane.show(loaded.context, loaded.n)
        self.bytes_pane.show(loaded.sheet, jump=loaded.jump)
        layout = self.layout_now()
        if loaded.sheet.layout != layout:
            self.bytes_pane.relay(layout)
        self.context_pane.point_at(self.bytes_pane.segment)
        self.say_call()
        if first:
            # what is loaded by now lives as long as the app: the collector need not walk it again
            gc.freeze()

    @on(CallUnreadable)
    def _unreadable(self, message: CallUnreadable) -> None:
        call = self.calls_pane.call
        if call is None or call.n != message.n:
            return
        self.shown = None
        self.bytes_pane.clear(f"call {message.n} cannot be read")
        self.context_pane.show(EMPTY, message.n)
        self.say_call()
        self.why.say((" why ", "dim"), (visible(message.reason), "diverge"))

    # --- words --------------------------------------------------------------------------------------------------------

    def say_head(self) -> None:
        """The title line: what is open, whether it grows, what was found."""
        left = [(" ctxscope ", "head"), (f" {visible(self.source.title)}", "text")]
        state = ("○ writing… ", "stale") if self.snapshot.partial else ("● live ", "live")
        right = [state, *((f" {text} ", style) for text, style in words.summary(self.snapshot))]
        while len(right) > 2 and self.size.width - width_of(right) < _TITLE_WIDTH:  # noqa: PLR2004 - state and calls stay
            right.pop()
        room = max(self.size.width - width_of(right), 0)
        title = fit(left[1][0], max(room - width_of(left[:1]), 0))
        self.head.say(left[0], (title, "text"), *right)

    def say_call(self) -> None:
        """The lines below the panes, for the call under the cursor and the comparison on screen."""
        call = self.calls_pane.call
        shown = self.shown if call is not None and self.shown is not None and self.shown.n == call.n else None
        self.calls_pane.say_position()
        command = self.source.command(call.n if call else None)
        self.command.say((" $ ", "dim"), (visible(command), "dim"))
        if call is None:
            notice = self.snapshot.notices[0] if self.snapshot.notices else "no calls yet"
            self.why.say((" why ", "dim"), (visible(notice), "text"))
        else:
            kind = shown.kind if shown else self.wanted
            self.why.say((" why ", "dim"), (words.why(call, kind, self.snapshot.findings), "text"))
        self.tokens.show(call, shown.context if shown else EMPTY, self._window(call))
        self.keys.refresh_keys()

    def _window(self, call: Call | None) -> int | None:
        sessions = self.snapshot.sessions
        own = next((s for s in sessions if call is not None and s.id == call.session), None)
        return own.config.window if own else None

    def layout_now(self) -> Layout:
        """How bytes are to be laid out now."""
        return self.bytes_pane.layout_now(terminal_width=self.app.size.width)

    def applies(self, command: Command) -> bool:
        """Whether a command would do something now."""
        raise NotImplementedError
