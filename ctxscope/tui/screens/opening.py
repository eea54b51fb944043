"""What is on screen while a session is found and read."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding
from textual.screen import Screen
from textual.widgets import Static


class OpeningScreen(Screen[None]):
    """One line that says what is being read. It imports little, so that it is there at once."""

    BINDINGS: ClassVar = [Binding("q,escape", "app.quit", "quit", show=False)]

    def __init__(self, words: str) -> None:
        super().__init__()
        self._words = words

    def compose(self) -> ComposeResult:
        """The line."""
        yield Static(f" ctxscope  {self._words}", markup=False)
