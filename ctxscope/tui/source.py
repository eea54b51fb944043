"""What the app needs from outside: an inspected session, and a list of sessions to pick from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

if TYPE_CHECKING:
    from ctxscope.model import CallView, Logged, NextRequest, Place, SidecarView, Snapshot

ReportFormat = Literal["md", "json"]


class Source(Protocol):
    """One opened log, recording or both."""

    @property
    def title(self) -> str:
        """What is open, in a few words; text of a log, hence hostile."""

    @property
    def snapshot(self) -> Snapshot:
        """All that is known now."""

    def view(self, n: int) -> CallView:
        """The bytes of call ``n``; slow, hence called off the UI thread and never twice at once."""

    def next_requests(self) -> Sequence[NextRequest]:
        """For each session, what its agent would send next if it were started anew; slow, likewise."""

    def sidecars(self, n: int) -> Sequence[SidecarView]:
        """The sidecars in the context of call ``n``, in its order; slow, likewise."""

    def messages(self, session: str | None, places: Sequence[Place]) -> Sequence[Logged]:
        """The messages at these places of a session's log, in this order; slow, likewise."""

    def follow(self, on_snapshot: Callable[[Snapshot], None]) -> Callable[[], None]:
        """Start live tailing in a thread of its own, which calls ``on_snapshot``; returns what stops it."""

    def close(self) -> None:
        """Give the files back, once nothing follows them any more."""

    def report(self, n: int | None, fmt: ReportFormat) -> str:
        """Divergence report of one call, or of all; redacted; slow."""

    def command(self, n: int | None) -> str:
        """The command line that shows the same as the app does for call ``n``."""


@dataclass(frozen=True, slots=True)
class PickerRow:
    """One session to pick; every text may come from a log."""

    agent: str
    title: str
    """What the session calls itself, else its id."""
    directory: str
    """Where it ran; empty when nobody knows."""
    path: str
    updated: float | None = None
    """Seconds since the epoch."""
    calls: int | None = None
    size: int | None = None
    """Bytes of its log."""
    live: bool = False
    """Written to just now."""
    key: str = ""
    """For whoever opens it: session id, or whatever tells it from others in one file."""


ListSessions = Callable[[], Sequence[PickerRow]]
OpenSession = Callable[[PickerRow], Source]


@dataclass(frozen=True, slots=True)
class Opening:
    """A session to open while the app already runs."""

    words: str
    """What is being done, for the screen meanwhile."""
    open: Callable[[], Source | None]
    """Slow; ``None``: let the user pick one."""
