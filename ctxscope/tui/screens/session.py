"""The session screen's keys: what each command of the table does."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, TypeVar, cast

from textual import events, on
from textual.actions import parse
from textual.widgets import Input

from ctxscope.model import Snapshot
from ctxscope.tui.commands import BINDINGS, COMMANDS, Command
from ctxscope.tui.comparison import ComparisonKind
from ctxscope.tui.paint import plural
from ctxscope.tui.rows import FORMS
from ctxscope.tui.screens.breaks import BreaksScreen
from ctxscope.tui.screens.export import ExportScreen
from ctxscope.tui.screens.findings import FindingsScreen, finding_lines
from ctxscope.tui.screens.help import HelpScreen, help_lines
from ctxscope.tui.screens.modal import Box
from ctxscope.tui.screens.next_request import NextRequestScreen
from ctxscope.tui.screens.session_flow import SessionFlow
from ctxscope.tui.screens.tokens import TokensScreen
from ctxscope.tui.sheet import NO_FOLDS
from ctxscope.tui.visible import visible
from ctxscope.tui.widgets.bytes import MOST_HITS, BytesPane
from ctxscope.tui.widgets.calls import CallsPane
from ctxscope.tui.widgets.row_view import RowView
from ctxscope.tui.widgets.token_bar import TokenBar

BoxKind = TypeVar("BoxKind", bound=Box[Any])
PaneName = Literal["calls", "context", "bytes"]
_PANES: tuple[PaneName, ...] = ("calls", "context", "bytes")
_SHOWS: dict[str, ComparisonKind] = {"D": "rebuilt", "B": "previous", "C": "previous", "T": "stored"}
"""What a jump to a flag shows: the comparison that explains it."""
_CONTEXT_SIZES = (0, 1, 3, 10, 30, 100)
_SIDEWAYS_STEP = 8
_WHY_NOT = {
    "jump(1, 'D')": "no divergence",
    "jump(1, 'B')": "no cache break",
    "jump(1, 'C')": "no compaction",
    "jump(1, 'T')": "no reply that was cut",
    "hit(1)": "nothing is searched for: / begins",
    "compare": "there is nothing else to compare this call with",
    "sessions": "there are no other sessions to choose from",
    "next_request": "no agent's log is open, which would tell what comes next",
    "findings": "no findings, no notices",
    "tokens": "there are no calls",
    "export": "there is no call to report on",
    "step(1)": "there are no calls",
}
"""What to answer a key that could do nothing now; a key that goes backwards answers as its other half."""

parsed = lru_cache(parse)
"""An action string as namespace, name and parameters."""


class SessionScreen(SessionFlow):
    """One opened session, with its keys."""

    BINDINGS = list(BINDINGS)  # noqa: RUF012 - Textual's own declaration

    # --- what applies -------------------------------------------------------------------------------------------------

    def applies(self, command: Command) -> bool:
        """Whether a command would do something now."""
        namespace, name, parameters = parsed(command.action)
        return bool(namespace) or self.check_action(name, parameters) is True

    def offered(self) -> Iterator[Command]:
        """What the palette offers now."""
        return (
            command for command in COMMANDS if not command.action.startswith("app.command") and self.applies(command)
        )

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """``None`` greys a key out: there is nothing it could do now."""
        can: dict[str, Callable[[], object]] = {
            "jump": lambda: self._can_jump(str(parameters[1])),
            "hit": lambda: bool(self.bytes_pane.needle),
            "compare": lambda: self.shown is not None and len(self.shown.offered) > 1,
            "sessions": lambda: self.app.check_action("sessions", ()),
            "next_request": lambda: bool(self.snapshot.sessions),
            "findings": lambda: bool(self.snapshot.findings or self.snapshot.notices),
            "export": lambda: bool(self.snapshot.calls),
            "step": lambda: bool(self.snapshot.calls),
            "tokens": lambda: bool(self.snapshot.calls),
        }
        return True if action not in can or can[action]() else None

    def on_key(self, event: events.Key) -> None:
        """A key that nothing took: when it is one of ours, say why it does nothing."""
        command = next((c for c in COMMANDS if event.key in c.keys.split(",")), None)
        if command is not None and not self.applies(command):
            self.say(_WHY_NOT.get(command.action.replace("(-1", "(1"), f"{command.name}: not now"))

    def _can_jump(self, flag: str) -> bool:
        return bool(self.calls_pane.model.flagged[flag]) or (flag == "D" and self.bytes_pane.has_hunks)

    # --- moving -------------------------------------------------------------------------------------------------------

    @property
    def pane(self) -> RowView:
        """The pane keys go to."""
        return self.focused if isinstance(self.focused, RowView) else self.calls_pane

    def action_move(self, rows: int) -> None:
        """Move the cursor."""
        self.pane.move_to(self.pane.cursor + rows)

    def action_page(self, direction: int) -> None:
        """Move the cursor by what is on screen."""
        self.pane.move_to(self.pane.cursor + direction * max(self.pane.page - 1, 1))

    def action_edge(self, direction: int) -> None:
        """Move the cursor to the first or last row."""
        self.pane.move_to(0 if direction < 0 else self.pane.row_count() - 1)

    def action_sideways(self, direction: int) -> None:
        """Move the text of unwrapped rows."""
        self.bytes_pane.shift = max(self.bytes_pane.shift + direction * _SIDEWAYS_STEP, 0)
        self.bytes_pane.repaint()

    def action_step(self, direction: int) -> None:
        """Go to the next or previous call, whatever pane has the focus."""
        self.calls_pane.step(direction)

    def action_jump(self, direction: int, flag: str) -> None:
        """Go to the next place with a flag, from the other end when there is none further on."""
        within = self.shown is not None and self.shown.kind == _SHOWS[flag]
        if flag == "D" and within and self.focused is self.bytes_pane and self.bytes_pane.next_hunk(direction):
            return
        pane = self.calls_pane
        if not pane.jump(direction, flag) and pane.model.flagged[flag]:
            pane.move_to(pane.model.flagged[flag][0 if direction > 0 else -1], centre=True)
        self.select(_SHOWS[flag])

    @on(RowView.Moved)
    def _moved(self, message: RowView.Moved) -> None:
        if isinstance(message.pane, CallsPane):
            self.select(self.wanted, only_if_new=True)
        elif isinstance(message.pane, BytesPane):
            self.bytes_pane.say_position()
            self.context_pane.point_at(self.bytes_pane.segment)

    @on(RowView.Activated)
    def _activated(self) -> None:
        self.action_open_row()

    def action_open_row(self) -> None:
        """Enter: a call leads to its bytes, a segment to where it stands, a fold or group opens."""
        if self.pane is self.bytes_pane:
            self.bytes_pane.open_fold()
        elif self.pane is self.calls_pane:
            self.action_pane("bytes")
        elif not self.context_pane.toggle() and self.context_pane.segment is not None:
            self._show_segment(self.context_pane.segment.path)

    @on(TokenBar.Picked)
    def _picked(self, message: TokenBar.Picked) -> None:
        self._show_segment(message.path)

    def _show_segment(self, path: str) -> None:
        """Jump to a segment's bytes, in whichever side of what is shown holds this call's body."""
        sheet = self.bytes_pane.sheet
        if sheet is None:
            return
        right = sheet.comparison.kind == "previous"
        side = sheet.comparison.right if right else sheet.comparison.left
        segment = next((s for s in side.segments if s.path == path), None) if side else None
        if segment is None:
            self.say("what is shown does not hold this segment: v shows the request")
            return
        self.action_pane("bytes")
        self.bytes_pane.go_to(segment.start, right=right)

    # --- panes --------------------------------------------------------------------------------------------------------

    def action_pane(self, name: str) -> None:
        """Focus a pane; where context and bytes share one place, bring it to the front."""
        pane = self.query_one(f"#{name}", RowView)
        if name != "calls":
            self.set_class(name == "context", "-context")
        for each in _PANES:
            self.set_class(self.has_class("-zoom") and each == name, f"-zoom-{each}")
        pane.focus()

    def action_next_pane(self, direction: int) -> None:
        """Focus the next or previous pane."""
        at = _PANES.index(cast("PaneName", self.pane.id))
        self.action_pane(_PANES[(at + direction) % len(_PANES)])

    def action_zoom(self, alone: bool) -> None:
        """Show the focused pane alone, or all."""
        self.set_class(alone, "-zoom")
        self.action_pane(str(self.pane.id))

    def on_resize(self, event: events.Resize) -> None:  # noqa: ARG002 - the size is read where it is used
        """Fit the title line."""
        self.say_head()

    @on(BytesPane.Resized)
    def _resized(self) -> None:
        self._lay_out()

    # --- how bytes are shown ------------------------------------------------------------------------------------------

    def action_compare(self) -> None:
        """Show the next comparison this call has."""
        self._front_bytes()
        if self.shown is not None:
            offered = self.shown.offered
            self.select(offered[(offered.index(self.shown.kind) + 1) % len(offered)])

    def action_form(self) -> None:
        """Raw, pretty, hex, and again."""
        at = FORMS.index(self.bytes_pane.wish.form)
        self._wish(form=FORMS[(at + 1) % len(FORMS)])

    def action_beside(self) -> None:
        """Side by side, or one column."""
        self._wish(beside=not self.layout_now().beside)

    def action_wrap(self) -> None:
        """Wrap long rows, or not."""
        self.bytes_pane.shift = 0
        self._wish(wrap=not self.bytes_pane.wish.wrap)

    def action_pictures(self) -> None:
        """Control characters as pictures, or as escapes."""
        self._wish(pictures=not self.bytes_pane.wish.pictures)

    def action_context(self, direction: int) -> None:
        """Fewer or more equal rows around a difference."""
        sheet = self.bytes_pane.sheet
        now = self.bytes_pane.wish.context if sheet is None else sheet.context
        fewer, more = ([c for c in _CONTEXT_SIZES if now is not None and (c - now) * d > 0] for d in (-1, 1))
        wider = min(more, default=now) if direction > 0 else max(fewer, default=now)
        self._wish(context=wider)

    def _front_bytes(self) -> None:
        """Where context and bytes share one place: bytes are about to change, so they are what is shown."""
        if self.has_class("-narrow") and self.has_class("-context"):
            self.action_pane("bytes")

    def _wish(self, **changes: Any) -> None:
        self._front_bytes()
        self.bytes_pane.wish = replace(self.bytes_pane.wish, **changes)
        self._lay_out()

    def _lay_out(self) -> None:
        """Lay the same bytes out anew when width or wishes ask for it; folds stay open unless they begin elsewhere now."""
        layout, sheet = self.layout_now(), self.bytes_pane.sheet
        if sheet is not None and sheet.asked != layout:
            kept = (sheet.asked.form, sheet.asked.context) == (layout.form, layout.context)
            self.bytes_pane.wait("laying out …")
            self.ask(jump=False, folds=self.bytes_pane.folds if kept else NO_FOLDS)

    # --- searching ----------------------------------------------------------------------------------------------------

    def action_search(self) -> None:
        """Ask what to search for."""
        self.add_class("-search")
        self.search.focus()

    @on(Input.Submitted, "#search")
    def _search(self, message: Input.Submitted) -> None:
        self.remove_class("-search")
        self.action_pane("bytes")
        found = self.bytes_pane.search(message.value.encode("utf-8", "surrogatepass"))
        self.bytes_pane.next_hit(1)
        self.say(f"at least {plural(found, 'hit')}" if found == MOST_HITS else plural(found, "hit"))
        self.keys.refresh_keys()

    def action_hit(self, direction: int) -> None:
        """Go to the next or previous hit."""
        if not self.bytes_pane.next_hit(direction):
            self.say("no hit")

    def action_clear(self) -> None:
        """Leave the search prompt, end the search, show all panes."""
        if self.has_class("-search"):
            self.remove_class("-search")
            self.action_pane("bytes")
            return
        self.bytes_pane.search(b"")
        self.action_zoom(alone=False)
        self.keys.refresh_keys()

    # --- the session --------------------------------------------------------------------------------------------------

    def action_follow(self) -> None:
        """Go to the newest call and keep to it; there already, stay from now on."""
        pane = self.calls_pane
        pane.following = not (pane.following and pane.at_end)
        if pane.following:
            pane.move_to(pane.row_count() - 1)
        pane.say_position()

    async def action_sessions(self) -> None:
        """Pick another session."""
        await self.app.run_action("sessions")

    def _box(self, kind: type[BoxKind]) -> BoxKind:
        """The box of a kind, made when it is first asked for."""
        if not self.app.is_screen_installed(kind.__name__):
            self.app.install_screen(kind(), kind.__name__)
        return self.app.get_screen(kind.__name__, kind)

    def action_breaks(self) -> None:
        """What was lost of the cache, by cost."""
        box = self._box(BreaksScreen)
        box.show(self.snapshot)
        self.app.push_screen(box, self._to_break)

    def _to_break(self, n: int | None) -> None:
        """Go to a call and show where its prompt parts from the one before."""
        row = self.calls_pane.row_of(n) if n is not None else None
        if row is not None:
            self.calls_pane.move_to(row, centre=True)
            self.select("previous")
            self.action_pane("bytes")

    def action_tokens(self) -> None:
        """The token ledger of the call under the cursor, the history around it, what shortened that."""
        call = self.calls_pane.call
        if call is not None:
            box = self._box(TokensScreen)
            box.show(self.source, self.snapshot, call.n)
            self.app.push_screen(box, self._to_call)

    def _to_call(self, n: int | None) -> None:
        """Go to a call."""
        row = self.calls_pane.row_of(n) if n is not None else None
        if row is not None:
            self.calls_pane.move_to(row, centre=True)

    def _take(self, snapshot: Snapshot) -> None:
        """Show a snapshot, and hand it to the screen of tokens when that is open: counts come while one looks."""
        super()._take(snapshot)
        for screen in self.app.screen_stack:
            if isinstance(screen, TokensScreen):
                screen.take(snapshot)

    def action_next_request(self) -> None:
        """What the agent would send next if it were started anew."""
        call = self.calls_pane.call
        box = self._box(NextRequestScreen)
        box.show(self.source, call.session if call else None)
        self.app.push_screen(box)

    def action_findings(self) -> None:
        """Findings and notices."""
        box = self._box(FindingsScreen)
        box.show(finding_lines(self.snapshot))
        self.app.push_screen(box)

    def action_help(self) -> None:
        """Every key."""
        box = self._box(HelpScreen)
        box.show(help_lines())
        self.app.push_screen(box)

    def action_export(self) -> None:
        """Ask where a divergence report is to go."""
        call = self.calls_pane.call
        self.app.push_screen(ExportScreen(self.source, call.n if call else None, Path.cwd()), self._exported)

    def _exported(self, written: tuple[Path, ...] | None) -> None:
        if written:
            self.say("written: " + ", ".join(str(path) for path in written))

    def action_copy(self) -> None:
        """Copy the command line that shows the same as the screen."""
        call = self.calls_pane.call
        command = visible(self.source.command(call.n if call else None))
        self.app.copy_to_clipboard(command)
        self.say(f"copied {len(command.encode())} bytes: {command}")
