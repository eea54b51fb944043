"""The application: themes, palette, the one place that notifies, and which screen is open."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import ClassVar

from platformdirs import user_config_path
from textual import on, work
from textual.app import App, SystemCommand
from textual.message import Message
from textual.screen import Screen

from ctxscope import resources
from ctxscope.model import CtxscopeError
from ctxscope.tui import themes
from ctxscope.tui.commands import COMMANDS
from ctxscope.tui.screens.picker import PickerScreen
from ctxscope.tui.screens.session import SessionScreen
from ctxscope.tui.source import ListSessions, OpenSession, PickerRow, Source
from ctxscope.tui.visible import visible

DEFAULT_THEME = "okabe-dark"


class CtxscopeApp(App[None]):
    """ctxscope in a terminal."""

    TITLE = "ctxscope"
    CSS_PATH = "app.tcss"
    ENABLE_COMMAND_PALETTE: ClassVar[bool] = True

    class Opened(Message):
        """A session that was picked is open."""

        def __init__(self, source: Source) -> None:
            super().__init__()
            self.source = source

    class NotOpened(Message):
        """A session that was picked cannot be opened."""

        def __init__(self, reason: str) -> None:
            super().__init__()
            self.reason = reason

    def __init__(
        self,
        source: Source | None,
        list_sessions: ListSessions | None = None,
        open_session: OpenSession | None = None,
        theme_folders: Iterable[Path] = (),
    ) -> None:
        super().__init__()
        self._source, self._list, self._open = source, list_sessions, open_session
        self._themes = themes.load(theme_folders)

    def get_theme_variable_defaults(self) -> dict[str, str]:
        """The colours with a meaning, for themes that leave them out."""
        return dict(themes.DEFAULTS)

    def on_mount(self) -> None:
        """Take over themes, tell what is wrong with others, show a session or the picker."""
        for theme in self._themes.themes:
            self.register_theme(theme)
        if DEFAULT_THEME in self.available_themes:
            self.theme = DEFAULT_THEME
        if self._source is not None:
            self.push_screen(SessionScreen(self._source, self.say))
        else:
            self.action_sessions()
        # a notice belongs to the screen that is open when it is given
        self.call_after_refresh(self._say_problems)

    def _say_problems(self) -> None:
        for problem in self._themes.problems:
            self.say(problem)

    def say(self, words: str) -> None:
        """Tell the user something in passing: the only place that does, since a notice may quote a log."""
        self.notify(visible(words), markup=False)

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        """The palette: the command table, and the themes."""
        if isinstance(screen, SessionScreen):
            for command in COMMANDS:
                if screen.applies(command) and command.action != "app.command_palette":
                    run = partial(screen.run_action, command.action)
                    yield SystemCommand(command.name, f"{command.description} ({command.help_keys})", run)
        yield SystemCommand("theme", "choose a theme", self.action_change_theme)
        if not isinstance(screen, SessionScreen):
            yield SystemCommand("quit", "quit", self.action_quit)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Picking needs someone who lists sessions and opens them."""
        if action == "sessions":
            return True if self._list is not None and self._open is not None else None
        return super().check_action(action, parameters)

    def action_sessions(self) -> None:
        """Pick a session."""
        if self._list is not None:
            self.push_screen(PickerScreen(self._list), self._picked)

    def _picked(self, row: PickerRow | None) -> None:
        if row is not None:
            self._open_picked(row)
        elif not any(isinstance(screen, SessionScreen) for screen in self.screen_stack):
            self.exit()

    @work(thread=True, exclusive=True, group="open")
    def _open_picked(self, row: PickerRow) -> None:
        assert self._open is not None  # check_action lets nobody pick without it
        try:
            source = self._open(row)
        except (CtxscopeError, OSError) as error:
            self.post_message(self.NotOpened(str(error)))
        else:
            self.post_message(self.Opened(source))

    @on(Opened)
    async def _opened(self, message: Opened) -> None:
        for screen in [s for s in self.screen_stack if isinstance(s, SessionScreen)]:
            await screen.dismiss()
        self.push_screen(SessionScreen(message.source, self.say))

    @on(NotOpened)
    def _not_opened(self, message: NotOpened) -> None:
        self.say(message.reason)
        if not any(isinstance(screen, SessionScreen) for screen in self.screen_stack):
            self.action_sessions()


def run(
    source: Source | None, list_sessions: ListSessions | None = None, open_session: OpenSession | None = None
) -> int:
    """Run the app on an opened session, or on the picker; returns the exit code. A crash is not 0."""
    folders = (resources.themes(), user_config_path("ctxscope") / "themes")
    app = CtxscopeApp(source, list_sessions, open_session, folders)
    app.run()
    return app.return_code or 0
