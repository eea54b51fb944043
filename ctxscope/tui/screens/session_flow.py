"""How the session screen fills: snapshots and loaded calls in, panes and lines painted. It has no keys."""

from __future__ import annotations

import threading
from collections.abc import Callable

from textual import on, work
from textual.app import ComposeResult
from textual.containers import Container
from textual.widgets import Input
from textual.worker import get_current_worker

from ctxscope.model import Call, Snapshot
from ctxscope.tui import errors, words
from ctxscope.tui.commands import Command
from ctxscope.tui.comparison import ComparisonKind
from ctxscope.tui.loading import Loaded, Loader, Wanted, same_but_for_counts
from ctxscope.tui.messages import CallLoaded, CallUnreadable, SessionChanged
from ctxscope.tui.paint import fit, width_of
from ctxscope.tui.sheet import NO_FOLDS, Folds
from ctxscope.tui.source import Source
from ctxscope.tui.visible import visible
from ctxscope.tui.widgets.bytes import BytesPane
from ctxscope.tui.widgets.calls import CallsPane
from ctxscope.tui.widgets.context import EMPTY, ContextPane
from ctxscope.tui.widgets.lines import KeyLine, LineView
from ctxscope.tui.widgets.painted import ColouredScreen
from ctxscope.tui.widgets.row_view import RowView
from ctxscope.tui.widgets.token_bar import TokenBar
from ctxscope.tui.wrapping import Layout

_TITLE_WIDTH = 40
"""Cells the name of what is open gets before counts do."""
Say = Callable[[str], None]


class SessionFlow(ColouredScreen[None]):
    """One opened session. It owns the selection; panes paint it."""

    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (120, "-wide"), (160, "-broad")]  # noqa: RUF012 - Textual's own declaration
    VERTICAL_BREAKPOINTS = [(0, "-short"), (36, "-tall")]  # noqa: RUF012 - likewise

    def __init__(self, source: Source, say: Say, settle: Callable[[], None] = lambda: None) -> None:
        super().__init__()
        self._settle = settle
        """To be told once the first call is on screen: what is loaded by then stays."""
        self.source = source
        self.snapshot = source.snapshot
        self.shown: Loaded | None = None
        self.say = say
        self._loader = Loader(source)
        self._turn_to_load = threading.Lock()
        """One view at a time: a superseded worker waits here and then finds that it was cancelled."""
        self.wanted: ComparisonKind = "rebuilt"
        self._requested: Call | None = None
        self._asked: tuple[bool, Folds] | None = None
        """What a worker is to be asked for after the next frame: whether to jump, and the folds to open."""
        self._stop_following: Callable[[], None] | None = None
        self.calls_pane, self.context_pane, self.bytes_pane = CallsPane(), ContextPane(), BytesPane()
        self._unread: tuple[int, str] | None = None
        """A call that could not be read, and why."""
        self.tokens, self.keys = TokenBar(), KeyLine(self.applies)
        self.head, self.why, self.command = LineView(id="head"), LineView(id="why", hang=5), LineView(id="command")
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
        """Let tail and files go; nobody waits for a tail that is in the middle of counting."""
        threading.Thread(target=self._close, name="ctxscope-close", daemon=True).start()

    def _close(self) -> None:
        if self._stop_following is not None:
            self._stop_following()
        self.source.close()

    def _open(self) -> None:
        self._take(self.source.snapshot)
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
        """Show a snapshot; what it has to say that the one before had not is told in passing, too."""
        news = [] if snapshot is self.snapshot else [n for n in snapshot.notices if n not in self.snapshot.notices]
        self.snapshot = snapshot
        for notice in news:
            self.say(notice)
        self.calls_pane.show(snapshot)
        self.say_head()

    def select(self, kind: ComparisonKind, *, only_if_new: bool = False) -> None:
        """Show the call under the cursor: what the snapshot knows at once, its bytes when a worker has them."""
        call = self.calls_pane.call
        self.wanted = kind
        known = self._requested
        if call is None or (only_if_new and known is not None and same_but_for_counts(known, call)):
            self.say_call()
            return
        same = only_if_new and known is not None and known.n == call.n
        self._requested = call
        if self.shown is not None and self.shown.n != call.n:
            self.bytes_pane.wait(f"reading call {call.n} …")
        self.say_call()
        self.ask(jump=not same)

    def ask(self, *, jump: bool, folds: Folds = NO_FOLDS) -> None:
        """Have a worker lay out what is wanted, once the frame is painted that says so."""
        if self._asked is None:
            self.call_after_refresh(self._begin)
        self._asked = (jump or (self._asked is not None and self._asked[0]), folds)

    def _begin(self) -> None:
        asked, self._asked, call = self._asked, None, self.calls_pane.call
        if asked is not None and call is not None:
            self._load(call, Wanted(self.wanted, self.layout_now(), *asked))

    @work(thread=True, exclusive=True, group="view")
    def _load(self, call: Call, wanted: Wanted) -> None:
        worker = get_current_worker()
        with self._turn_to_load:
            try:
                for loaded in self._loader.load(call, wanted):
                    if worker.is_cancelled:
                        return
                    if loaded is not None:
                        self.post_message(CallLoaded(loaded))
            except Exception as error:  # noqa: BLE001 - whatever a log makes a reader raise, the app lives on
                self.post_message(CallUnreadable(call.n, errors.in_words(error)))

    @on(CallLoaded)
    def _loaded(self, message: CallLoaded) -> None:
        loaded, call, before = message.loaded, self.calls_pane.call, self.shown
        if call is None or loaded.n != call.n:
            return
        self.shown, self._unread = loaded, None
        if before is None or before.context is not loaded.context:
            self.context_pane.show(loaded.context, loaded.n)
        other = before is None or (before.n, before.kind) != (loaded.n, loaded.kind)
        # its cursor leads the context pane's, but to a break: what is lost may begin where no byte differs
        with self.bytes_pane.prevent(RowView.Moved):
            self.bytes_pane.show(loaded.sheet, jump=loaded.jump or other)
        if loaded.sheet.asked != self.layout_now():
            self.ask(jump=False, folds=self.bytes_pane.folds)
        if loaded.kind != "previous" or ((loaded.jump or other) and not self.context_pane.point_at_break()):
            self.context_pane.point_at(self.bytes_pane.segment)
        self.say_call()
        if before is None:
            self._settle()

    @on(CallUnreadable)
    def _unreadable(self, message: CallUnreadable) -> None:
        call = self.calls_pane.call
        if call is None or call.n != message.n:
            return
        self.shown = None
        self.bytes_pane.clear(f"call {message.n} cannot be read")
        self.context_pane.show(EMPTY, message.n)
        self._unread = (message.n, message.reason)
        self.say_call()

    # --- words --------------------------------------------------------------------------------------------------------

    def say_head(self) -> None:
        """The title line: what is open, whether it grows, what was found."""
        left = [(" ctxscope ", "head"), (f" {visible(self.source.title)}", "text")]
        state = ("○ writing… ", "stale") if self.snapshot.partial else ("● live ", "live")
        diverged = len(self.calls_pane.model.flagged["D"])
        right = [state, *((f" {text} ", style) for text, style in words.summary(self.snapshot, diverged))]
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
        elif self._unread is not None and self._unread[0] == call.n:
            self.why.say((" why ", "dim"), (visible(self._unread[1]), "diverge"))
        else:
            kind = shown.kind if shown else self.wanted
            self.why.say((" why ", "dim"), (words.why(call, kind, self.snapshot.findings), "text"))
        self.tokens.show(call, shown.context if shown else EMPTY, call.window.size if call else None)
        self.keys.refresh_keys()

    def layout_now(self) -> Layout:
        """How bytes are to be laid out now."""
        return self.bytes_pane.layout_now()

    def applies(self, command: Command) -> bool:
        """Whether a command would do something now."""
        raise NotImplementedError
