"""What reaches the session screen from threads. A newer message replaces one that still waits."""

from __future__ import annotations

from textual.message import Message

from ctxscope.model import Snapshot
from ctxscope.tui.loading import Loaded


class SessionChanged(Message):
    """The reader has a newer snapshot."""

    def __init__(self, snapshot: Snapshot) -> None:
        super().__init__()
        self.snapshot = snapshot

    def can_replace(self, message: Message) -> bool:
        """Only the newest snapshot is worth painting."""
        return isinstance(message, SessionChanged)


class CallLoaded(Message):
    """A worker has what the panes show of a call."""

    def __init__(self, loaded: Loaded) -> None:
        super().__init__()
        self.loaded = loaded


class CallUnreadable(Message):
    """A call's bytes could not be had."""

    def __init__(self, n: int, reason: str) -> None:
        super().__init__()
        self.n, self.reason = n, reason
