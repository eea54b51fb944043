"""An inspection in the form the app wants: with reports, and with the command line that shows the same."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from ctxscope import report
from ctxscope.cli import target
from ctxscope.model import CallView, Logged, NextRequest, Place, SidecarView, Snapshot
from ctxscope.session.inspection import Inspection


@dataclass(frozen=True, slots=True, eq=False)
class InspectionSource:
    """What the app opens (``ctxscope.tui.source.Source``)."""

    inspection: Inspection
    words: tuple[str, ...]
    """What named it on the command line: path and options."""

    @classmethod
    def open(
        cls,
        what: target.Target,
        *,
        log: str | None = None,
        recording: str | None = None,
        provider: str | None = None,
        window: int | None = None,
        tokenizer: str | None = None,
    ) -> InspectionSource:
        """Open a target. Raises ``CtxscopeError`` when there is nothing readable."""
        inspection = Inspection.open(
            what.path,
            log=log,
            recording=recording,
            session=what.session,
            provider=provider,
            window=window,
            tokenizer=tokenizer,
        )
        given = (
            *(("--session", what.session), ("--log", log), ("--recording", recording)),
            *(("--provider", provider), ("--window", window), ("--tokenizer", tokenizer)),
        )
        options = [str(word) for name, value in given if value is not None for word in (name, value)]
        return cls(inspection, (str(what.path), *options))

    @property
    def title(self) -> str:
        """What is open, in a few words."""
        return self.inspection.title

    @property
    def snapshot(self) -> Snapshot:
        """All that is known now."""
        return self.inspection.snapshot

    def view(self, n: int) -> CallView:
        """The bytes of call ``n``."""
        return self.inspection.view(n)

    def next_requests(self) -> Sequence[NextRequest]:
        """What each session's agent would send next if it were started anew."""
        return self.inspection.next_requests()

    def sidecars(self, n: int) -> Sequence[SidecarView]:
        """The sidecars in the context of call ``n``."""
        return self.inspection.sidecars(n)

    def messages(self, session: str | None, places: Sequence[Place]) -> Sequence[Logged]:
        """The messages at these places of a session's log."""
        return self.inspection.messages(session, places)

    def follow(self, on_snapshot: Callable[[Snapshot], None]) -> Callable[[], None]:
        """Tail the files; returns what stops it."""
        return self.inspection.follow(on_snapshot)

    def close(self) -> None:
        """Give the files back."""
        self.inspection.close()

    def report(self, n: int | None, fmt: Literal["md", "json"]) -> str:
        """A redacted report of one call, or of all."""
        options = report.Options(call=n, home=str(target.own_home()), title=self.title, command=self.command(n))
        return report.load(fmt).render(self.snapshot, self.view, options)

    def command(self, n: int | None) -> str:
        """The command line that reports the same."""
        return shlex.join(["ctxscope", "report", *self.words, *([] if n is None else ["--call", str(n)])])
