"""Tokens: the ledger of a call, the history of its conversation, what shortened it, and the call's sidecars."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from functools import partial
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical
from textual.content import Content
from textual.geometry import Size

from ctxscope.model import Call, Compaction, Logged, Place, SidecarView, Snapshot
from ctxscope.tui import compaction_rows, history_cells, ledger_rows, sidecar_rows
from ctxscope.tui.history_cells import LEGEND, Chart, History
from ctxscope.tui.paint import UNKNOWN, Spans, number, plural
from ctxscope.tui.reading import Answered, Reading
from ctxscope.tui.screens.modal import MOVES, Box
from ctxscope.tui.source import Source
from ctxscope.tui.visible import visible
from ctxscope.tui.widgets.lines import LineView
from ctxscope.tui.widgets.row_view import RowView
from ctxscope.tui.widgets.tokens import TABS, Tab, TabLine, TokensPane
from ctxscope.tui.words import reported

_KEYS: dict[Tab, str] = {
    "ledger": "j k scroll · ← → call · tab next · enter go to it · esc close",
    "history": "← → call · c compaction · tab next · enter go to it · esc close",
    "compactions": "j k move · enter what it dropped · tab next · esc close",
    "sidecars": "j k move · ← → call · tab next · enter go to it · esc close",
}
_NOTHING, _NO_HISTORY = Snapshot(0), History((), frozenset(), 0)
_OPENED_KEYS = "j k move · enter go to the call · esc all compactions"


class TokensScreen(Box[int | None]):
    """A modal box; its result is the number of the call to go to."""

    AUTO_FOCUS = "#ledger"
    BINDINGS: ClassVar = [
        Binding("escape", "back", "back", show=False),
        Binding("q,a", "dismiss", "close", show=False),
        Binding("tab", "turn(1)", "next part", show=False),
        Binding("shift+tab", "turn(-1)", "previous part", show=False),
        Binding("1", "tab('ledger')", "ledger", show=False),
        Binding("2", "tab('history')", "history", show=False),
        Binding("3", "tab('compactions')", "compactions", show=False),
        Binding("4", "tab('sidecars')", "sidecars", show=False),
        Binding("enter", "choose", "go there", show=False),
        *MOVES,
        Binding("l,right,J", "call(1)", "next call", show=False),
        Binding("h,left,K", "call(-1)", "previous call", show=False),
        Binding("c", "leap(1)", "next compaction", show=False),
        Binding("C", "leap(-1)", "previous compaction", show=False),
    ]

    def __init__(self) -> None:
        super().__init__()
        self._source: Source | None = None
        self._snapshot, self._n = _NOTHING, 0
        self._tab: Tab = "ledger"
        self._history = _NO_HISTORY
        self._history_of: tuple[Snapshot, str | None, str] | None = None
        """Snapshot, session and lineage it was made of."""
        self._chart: tuple[History, Size, Chart] | None = None
        """The last chart, of which history and for what size."""
        self._opened: Compaction | None = None
        self._said: Reading[Mapping[Place, Logged]] = Reading(self, "messages")
        """The messages of the opened compaction."""
        self._beside: Reading[Sequence[SidecarView]] = Reading(self, "sidecars")
        """The sidecars of a call, by its number."""
        self._listed: tuple[tuple[object, int], tuple[Sequence[Spans], Sequence[int]]] | None = None
        """Compactions and width, and the lines made of them."""
        self.tabs, self.told = TabLine(id="parts"), TokensPane(id="ledger")
        self.pane = self.told
        self.about = LineView(id="place", hang=1)

    def compose(self) -> ComposeResult:
        """The names of the parts, one of them, what stands under the cursor in full."""
        with Vertical(id="ledgers"):
            yield self.tabs
            yield self.told
            yield self.about

    def show(self, source: Source, snapshot: Snapshot, n: int) -> None:
        """Show a call, its ledger first."""
        self._source, self._snapshot, self._n = source, snapshot, n
        self.handed_over()

    def fill(self) -> None:
        """Show the ledger."""
        self.action_tab("ledger")

    def empty(self) -> None:
        """Let go of what the session holds."""
        self._source, self._snapshot, self._n = None, _NOTHING, 0
        self._history, self._history_of, self._chart, self._listed = _NO_HISTORY, None, None, None
        self._opened = None
        self._said.forget()
        self._beside.forget()
        self.told.drawn = None
        self.told.take((), ())

    def take(self, snapshot: Snapshot) -> None:
        """A newer snapshot: counts arrive while the screen is open."""
        self._snapshot = snapshot
        if self._opened is not None:
            same = [found for found in snapshot.compactions if _is_same(found, self._opened)]
            self._opened = same[0] if same else self._opened
        self._show()

    def on_resize(self) -> None:
        """Break the lines anew."""
        if self.told.row_count():
            self.call_after_refresh(self._show)

    # --- what is shown ------------------------------------------------------------------------------------------------

    @property
    def call(self) -> Call | None:
        """The call the screen stands on."""
        calls = self._snapshot.calls
        at = bisect_left(calls, self._n, key=lambda call: call.n)
        return calls[at] if at < len(calls) and calls[at].n == self._n else None

    def _show(self) -> None:
        """The chosen part of the newest snapshot; the cursor stays."""
        call, at, width = self.call, self.told.stop, self.told.columns
        self.tabs.show(self._tab)
        self._remember(call)
        self.told.drawn = None
        if self._tab == "history":
            self.told.drawn = self._draw(Size(width, self.told.size.height - 1))
            self._point()
            return
        if self._tab == "ledger":
            turn = ledger_rows.turn_of(call, self._snapshot.calls) if call is not None else ()
            self.told.take(ledger_rows.lines_of(call, turn, width) if call is not None else (), ())
        elif self._tab == "sidecars":
            self._show_sidecars(call, at)
        elif self._opened is not None:
            self.told.take(*compaction_rows.dropped_by(self._opened, self._messages, width), at)
        else:
            self.told.take(*self._list(width), at)
        self._say()

    def _remember(self, call: Call | None) -> None:
        """The history the call stands in: one look through all calls for each snapshot."""
        if call is None:
            return
        made_of, before = (self._snapshot, call.session, call.lineage), self._history_of
        if before is None or before[0] is not self._snapshot or before[1:] != made_of[1:]:
            self._history, self._history_of = history_cells.history_of(self._snapshot, call), made_of

    def _draw(self, size: Size) -> Chart:
        """The chart of the history, drawn once."""
        if self._chart is None or self._chart[0] is not self._history or self._chart[1] != size:
            self._chart = (self._history, size, history_cells.chart(self._history, *size))
        return self._chart[2]

    def _point(self) -> None:
        """The chart, its cursor on the call."""
        if self.told.drawn is not None:
            lines = history_cells.lines_of(self.told.drawn, self._history.at(self._n))
            legend = [span for mark, style, name in LEGEND for span in ((f" {mark} ", style), (name, "dim"))]
            self.told.take([*lines, legend], ())
        self._say()

    def _show_sidecars(self, call: Call | None, at: int | None) -> None:
        """Those of the call; asked for once for each snapshot, meanwhile what was known of it."""
        if call is not None and self._source is not None:
            self._beside.ask(self._source, self._snapshot.revision, call.n, partial(self._source.sidecars, call.n))
        known = self._beside.known_of(self._source, self._n)
        if call is None or known is None or known.found is None:
            self.told.take([[(" …" if known is None else f" {UNKNOWN}", "dim")]], ())
        else:
            self.told.take(*sidecar_rows.lines_of(known.found, call.tokens.sidecars, self.told.columns), at)

    def _list(self, width: int) -> tuple[Sequence[Spans], Sequence[int]]:
        """All compactions; their sentences are broken into lines once."""
        made_for = (self._snapshot.compactions, width)
        if self._listed is None or self._listed[0][0] is not made_for[0] or self._listed[0][1] != made_for[1]:
            self._listed = (made_for, compaction_rows.list_of(self._snapshot, width))
        return self._listed[1]

    def _say(self) -> None:
        """Frame and the lines below."""
        box, call = self.query_one("#ledgers"), self.call
        box.border_title = Content(f"Tokens · {self._title(call)}")
        opened = self._tab == "compactions" and self._opened is not None
        box.border_subtitle = Content(_OPENED_KEYS if opened else _KEYS[self._tab])
        if self._tab == "history":
            self.about.say((_values(call) if call is not None else "", "text"))
        elif opened or self._tab == "sidecars":
            self._say_entry()
        elif self._tab == "compactions":
            self.about.say()
        elif call is not None:
            self.about.say((f" {call.n:>3} ", "dim"), (visible(call.what), "text"))

    def _title(self, call: Call | None) -> str:
        if self._tab == "compactions" and self._opened is not None:
            return f"what the {compaction_rows.title_of(self._opened)} dropped"
        if call is None:
            return "no call"
        turn = f" · turn {call.turn}" if call.turn is not None else ""
        return visible(f"call {call.n}{turn} · {call.lineage}") + (self._shared() if self._tab == "history" else "")

    def _shared(self) -> str:
        """How many calls share a column, and how many wait to be counted."""
        calls, drawn = self._history.calls, self.told.drawn
        columns = len(drawn.events) if drawn is not None else 0
        waiting = self._history.waiting
        told = f" · a column: the highest of {-(-len(calls) // columns)} calls" if 0 < columns < len(calls) else ""
        return told + (f" · {number(waiting)} of {plural(len(calls), 'call')} not counted" if waiting else "")

    def _say_entry(self) -> None:
        at, beside, messages = self.told.stop, self._beside.known_of(self._source, self._n), self._said.known
        failure = (beside and beside.failure) if self._tab == "sidecars" else (messages and messages.failure)
        if failure:
            self.about.say((f" {visible(failure)}", "diverge"))
            return
        if self._tab == "sidecars":
            found = (beside and beside.found) or ()
            self.about.say(
                *(sidecar_rows.about(found[at], 2 * self.told.columns) if at is not None and at < len(found) else ())
            )
            return
        places = compaction_rows.places_of(self._opened) if self._opened else ()
        said = self._messages.get(places[at]) if at is not None and at < len(places) else None
        self.about.say(*([(f" {visible(said.place.at)} ", "dim"), (visible(said.text), "text")] if said else ()))

    @on(RowView.Moved)
    def _moved(self) -> None:
        self._say()

    def _go(self, index: int) -> None:
        """Stand on another call of the history, by its index."""
        calls = self._history.calls
        if calls:
            self._n = calls[max(0, min(index, len(calls) - 1))].n
            if self._tab == "history":
                self._point()
            else:
                self._show()

    def _step(self, calls: int) -> None:
        self._go(self._history.at(self._n) + calls)

    # --- keys ---------------------------------------------------------------------------------------------------------

    @on(TabLine.Picked)
    def _picked(self, message: TabLine.Picked) -> None:
        self.action_tab(message.tab)

    @on(TokensPane.Pointed)
    def _pointed(self, message: TokensPane.Pointed) -> None:
        self._go(message.index)

    def action_tab(self, tab: Tab) -> None:
        """Show a part, from its top."""
        self._tab, self._opened = tab, None
        self.told.scroll_to(y=0, animate=False, immediate=True)
        self._show()

    def action_turn(self, direction: int) -> None:
        """Show the next or previous part."""
        self.action_tab(TABS[(TABS.index(self._tab) + direction) % len(TABS)])

    def action_call(self, direction: int) -> None:
        """Go to the next or previous call of the conversation."""
        if self._tab != "compactions":
            self._step(direction)

    def action_leap(self, direction: int) -> None:
        """Go to the next or previous compaction."""
        if self._tab == "history":
            found = self._history.event_from(self._history.at(self._n), direction)
            if found is not None:
                self._go(found)
        elif self._tab == "compactions":
            self.told.step(direction)

    def action_step(self, count: int) -> None:
        """Move the cursor, or scroll; in the chart from call to call."""
        if self._tab == "history":
            self._step(count)
        else:
            self.told.step(count)

    def action_page(self, direction: int) -> None:
        """Move by about what is on screen; in the chart by a tenth of it."""
        if self._tab == "history":
            self._step(direction * max(len(self._history.calls) // 10, 1))
        else:
            super().action_page(direction)

    def action_edge(self, direction: int) -> None:
        """Go to the first or last."""
        if self._tab == "history":
            self._go(0 if direction < 0 else len(self._history.calls) - 1)
        else:
            self.told.edge(direction)

    @on(RowView.Activated)
    def action_choose(self) -> None:
        """Open what a compaction dropped; from anywhere else close, and go to the call."""
        if self._tab != "compactions":
            self.dismiss(self._n)
        elif self._opened is not None:
            marker = self._opened.told.marker
            self.dismiss(marker.call if marker.call is not None else self._opened.before)
        elif self.told.stop is not None:
            self._open(self._snapshot.compactions[self.told.stop])

    def _open(self, found: Compaction) -> None:
        self._opened = found
        self._said.forget()
        self.told.take(*compaction_rows.dropped_by(found, {}, self.told.columns))
        self._say()
        if self._source is not None:
            self._said.ask(self._source, self._snapshot.revision, found, partial(_said_by, self._source, found))

    @property
    def _messages(self) -> Mapping[Place, Logged]:
        """By place those of the opened compaction that are known."""
        known = self._said.known
        return known.found if known is not None and known.found is not None else {}

    @on(Answered)
    def _answered(self, message: Answered) -> None:
        if message.reading.take(message.answer) and self._tab in ("compactions", "sidecars"):
            self._show()

    def action_back(self) -> None:
        """From what a compaction dropped to all of them, then close."""
        if self._tab != "compactions" or self._opened is None:
            self.dismiss(None)
            return
        back = [i for i, found in enumerate(self._snapshot.compactions) if found is self._opened]
        self._opened = None
        self.told.take(*self._list(self.told.columns), next(iter(back), 0))
        self._say()


def _said_by(source: Source, found: Compaction) -> Mapping[Place, Logged]:
    """The messages a compaction is about, by place; slow."""
    messages = source.messages(found.told.marker.session, compaction_rows.places_of(found))
    return {said.place: said for said in messages}


def _is_same(one: Compaction, other: Compaction) -> bool:
    """Whether two snapshots tell of one event."""
    mine, theirs = one.told.marker, other.told.marker
    return (mine.session, mine.kind, mine.place, mine.point) == (
        theirs.session,
        theirs.kind,
        theirs.place,
        theirs.point,
    )


def _values(call: Call) -> str:
    """The counts of one call in a line."""
    tokens = call.tokens
    about = "≈" if tokens.estimated else ""

    def told(value: int | None, mark: str) -> str:
        return UNKNOWN if value is None else f"{mark}{number(value)}"

    whose = f" ({visible(tokens.estimates[0].estimator)})" if tokens.estimates else ""
    seen = ("visible", tokens.visible) if tokens.visible is not None else ("rebuilt", tokens.rebuilt)
    full = "" if call.occupancy is None else f" · {100 * call.occupancy:.0f}% full"
    limits = f"window {number(call.window.size)} · threshold {number(call.window.threshold)}"
    limits += " (above the window)" if call.window.is_out_of_reach else ""
    counts = (
        f"reported {number(reported(call))} · {seen[0]} {told(seen[1], about)} · agent {told(tokens.agent, '≈')}{whose}"
    )
    return f" call {call.n} · {counts} · {limits}{full}"
