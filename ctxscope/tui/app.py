"""The application: themes, palette, the one place that notifies, and which screen is open."""

from __future__ import annotations

import time
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import ClassVar

from textual import events, on, work
from textual.app import App, SystemCommand
from textual.message import Message
from textual.screen import Screen

from ctxscope import resources
from ctxscope.tui import errors, memory, themes
from ctxscope.tui.screens.opening import OpeningScreen
from ctxscope.tui.source import ListSessions, Opening, OpenSession, PickerRow, Source
from ctxscope.tui.visible import visible

DEFAULT_THEME = "okabe-dark"
IDLE_SECONDS = 3.0
"""Without a key for so long, nobody notices that memory is tidied up."""

NOTICE_SECONDS = 4.0


class CtxscopeApp(App[None]):
    """ctxscope in a terminal."""

    TITLE = "ctxscope"
    # all at once: each sheet that a screen brings along has the others parsed again
    CSS_PATH = ["app.tcss", "screens/session.tcss", "screens/picker.tcss", "screens/modal.tcss"]  # noqa: RUF012 - Textual's own declaration
    ENABLE_COMMAND_PALETTE: ClassVar[bool] = True

    class Opened(Message):
        """A session is open, or (``None``) one is to be picked."""

        def __init__(self, source: Source | None) -> None:
            super().__init__()
            self.source = source

    class NotOpened(Message):
        """There is nothing to show at what was to be opened."""

        def __init__(self, error: Exception) -> None:
            super().__init__()
            self.error = error

    def __init__(
        self,
        source: Source | None,
        list_sessions: ListSessions | None = None,
        open_session: OpenSession | None = None,
        theme_folders: Iterable[Path] = (),
        opening: Opening | None = None,
    ) -> None:
        super().__init__()
        self._source, self._list, self._open, self._opening = source, list_sessions, open_session, opening
        self.failure: Exception | None = None
        """Why the app left without having shown a session."""
        self._shown = False
        """Whether a session is open, behind whatever is in front of it."""
        self._touched, self._leisure = time.monotonic(), memory.Leisure()
        self._themes = themes.load(theme_folders)
        for theme in self._themes.themes:
            self.register_theme(theme)
        if DEFAULT_THEME in self.available_themes:
            # unwatched: nothing is parsed yet, and the watcher would have all of it parsed a second time
            self.set_reactive(App.theme, DEFAULT_THEME)
            self.stylesheet.set_variables(self.get_css_variables())

    def get_theme_variable_defaults(self) -> dict[str, str]:
        """The colours with a meaning, for themes that leave them out."""
        return dict(themes.DEFAULTS)

    def on_mount(self) -> None:
        """Show a session, what is being opened, or the picker; tell which themes are none."""
        self._leisure.begin()
        self.set_interval(IDLE_SECONDS, self._tidy)
        if self._source is not None:
            self._show(self._source)
        elif self._opening is not None:
            self.push_screen(OpeningScreen(visible(self._opening.words)))
            # the screen first: reading takes as long as it takes
            self.call_after_refresh(self._open_first, self._opening)
        else:
            self.action_sessions()
        # a notice belongs to the screen that is open when it is given
        self.call_after_refresh(self._say_problems)

    def on_unmount(self) -> None:
        """Leave the process as it was."""
        self._leisure.end()

    async def on_event(self, event: events.Event) -> None:
        """Note when the user did something."""
        if isinstance(event, events.InputEvent):
            self._touched = time.monotonic()
        await super().on_event(event)

    def _tidy(self) -> None:
        if time.monotonic() - self._touched >= IDLE_SECONDS:
            self._leisure.tidy()

    def _fatal_error(self) -> None:
        """A crash as Textual tells it, but without local variables: they hold whole sessions, texts of a log among them."""
        from rich.segment import Segments  # noqa: PLC0415 - for a crash only
        from rich.traceback import Traceback  # noqa: PLC0415 - likewise

        told = self.console.render(Traceback(show_locals=False, width=None), self.console.options)
        self._exit_renderables.append(Segments(told))
        self._close_messages_no_wait()

    def _say_problems(self) -> None:
        for problem in self._themes.problems:
            self.say(problem)

    def say(self, words: str) -> None:
        """Tell the user something in passing: the only place that does, since a notice may quote a log."""
        self.notify(visible(words), markup=False, timeout=NOTICE_SECONDS)

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        """The palette: the command table, and the themes."""
        from ctxscope.tui.screens.session import SessionScreen  # noqa: PLC0415 - loaded when a session is shown

        if isinstance(screen, SessionScreen):
            for command in screen.offered():
                run = partial(screen.run_action, command.action)
                yield SystemCommand(command.name, f"{command.description} ({command.help_keys})", run)
        else:
            yield SystemCommand("quit", "quit", self.action_quit)
        yield SystemCommand("theme", "choose a theme", self.action_change_theme)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Picking needs someone who lists sessions and opens them."""
        if action == "sessions":
            return True if self._list is not None and self._open is not None else None
        return super().check_action(action, parameters)

    def action_sessions(self) -> None:
        """Pick a session."""
        from ctxscope.tui.screens.picker import PickerScreen  # noqa: PLC0415 - loaded when sessions are listed

        if self._list is not None:
            self.push_screen(PickerScreen(self._list), self._picked)

    def _picked(self, row: PickerRow | None) -> None:
        if row is not None:
            self._open_picked(row)
        elif not self._shown:
            self.exit()

    @work(thread=True, exclusive=True, group="open")
    def _open_first(self, opening: Opening) -> None:
        try:
            opened = opening.open()
        except Exception as error:  # noqa: BLE001 - told once the terminal is the shell's again
            self.post_message(self.NotOpened(error))
        else:
            self.post_message(self.Opened(opened))

    @work(thread=True, exclusive=True, group="open")
    def _open_picked(self, row: PickerRow) -> None:
        assert self._open is not None  # check_action lets nobody pick without it
        try:
            opened = self._open(row)
        except Exception as error:  # noqa: BLE001 - whatever lies there, the app lives on
            self.post_message(self.NotOpened(error))
        else:
            self.post_message(self.Opened(opened))

    @on(Opened)
    async def _opened(self, message: Opened) -> None:
        while len(self.screen_stack) > 1:
            await self.screen.dismiss()
        if message.source is None:
            self.action_sessions()
        else:
            self._show(message.source)

    def _show(self, source: Source) -> None:
        from ctxscope.tui.screens.session import SessionScreen  # noqa: PLC0415 - loaded when a session is shown

        self._shown = True
        self.push_screen(SessionScreen(source, self.say, self._leisure.settle))

    @on(NotOpened)
    def _not_opened(self, message: NotOpened) -> None:
        if isinstance(self.screen, OpeningScreen):
            self.failure = message.error
            self.exit()
            return
        self.say(errors.in_words(message.error))
        if not self._shown:
            self.action_sessions()


def run(
    opening: Opening | None, list_sessions: ListSessions | None = None, open_session: OpenSession | None = None
) -> int:
    """Run the app on a session still to be opened, or on the picker; returns the exit code. A crash is not 0.

    Raises what the opening raised, once the terminal is the shell's again.
    """
    from platformdirs import user_config_path  # noqa: PLC0415 - tests bring their own themes

    folders = (resources.themes(), user_config_path("ctxscope") / "themes")
    app = CtxscopeApp(None, list_sessions, open_session, folders, opening)
    app.run()
    if app.failure is not None:
        raise app.failure
    return app.return_code or 0
