"""The public handle: open a path, follow it, ask for a call's bytes."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from ctxscope import capture
from ctxscope.model import CallView, CtxscopeError, SessionRef, Snapshot
from ctxscope.session.assembly import Assembly
from ctxscope.session.finding import Found, find
from ctxscope.session.fold import SessionLog
from ctxscope.sources import watched
from ctxscope.sources.watch import Watcher

SWEEP_SECONDS = 1.0
"""How often files are looked at although nobody reported a change (network file systems, lost events)."""
PUBLISH_SECONDS = 0.1
"""Least time between two snapshots of a stream of changes (DESIGN, "How a byte travels")."""


@dataclass(eq=False)
class Inspection:
    """Sessions and recordings opened together, judged as they grow."""

    path: Path
    assembly: Assembly
    _recordings: list[capture.Recording]
    _lock: threading.RLock = field(default_factory=threading.RLock)

    @classmethod
    def open(
        cls, path: Path, *, log: str | None = None, recording: str | None = None, session: str | None = None
    ) -> Inspection:
        """Find, read and join what lies at ``path``. Raises ``CtxscopeError`` when nothing readable is there.

        Without ``session`` every session joined to the recordings is kept and, without a recording, the newest.
        """
        found = find(path, log=log, recording=recording)
        refs = _chosen(found, session, path)
        recordings = [capture.open_recording(folder, i) for i, folder in enumerate(found.recordings)]
        opened = cls(path, Assembly([SessionLog.open(ref) for ref in refs], list(found.notices)), recordings)
        opened.poll()
        opened._settle(found, session)
        return opened

    @property
    def snapshot(self) -> Snapshot:
        """The newest snapshot."""
        return self.assembly.snapshot

    @property
    def title(self) -> str:
        """What a window would be called."""
        first = self.snapshot.sessions[0] if self.snapshot.sessions else None
        return (
            f"{Path(first.directory).name if first.directory else first.id} · {first.agent}"
            if first
            else self.path.name
        )

    def poll(self) -> bool:
        """Read what is new and judge it; True when the snapshot changed."""
        with self._lock:
            changed = max((session.poll() for session in self.assembly.sessions), default=False)
            for recording in self._recordings:
                for exchange in recording.poll():
                    self.assembly.traffic.take(exchange)
                    changed = True
            notices = tuple(n for r in self._recordings for n in r.notices)
            partial = any(r.partial for r in self._recordings)
            return self.assembly.publish(
                tuple(str(r.path) for r in self._recordings), notices, partial=partial, changed=changed
            )

    def count(self) -> None:
        """Count the tokens of every call; dear at first, kept by content afterwards."""
        with self._lock:
            self.assembly.count()

    def view(self, n: int) -> CallView:
        """Everything about call ``n``, bytes included. ``KeyError`` when there is no such call."""
        with self._lock:
            return self.assembly.view(n)

    def follow(self, on_snapshot: Callable[[Snapshot], None]) -> Callable[[], None]:
        """Tail all files in a thread of its own; ``on_snapshot`` is called there. Returns what stops it."""
        files = [p for s in self.assembly.sessions for p in watched(s.agent.sources(s.ref))]
        watcher = Watcher([*files, *(r.path / "index.jsonl" for r in self._recordings)])
        stopped = threading.Event()
        thread = threading.Thread(
            target=self._tail, args=(watcher, stopped, on_snapshot), name="ctxscope-follow", daemon=True
        )
        thread.start()

        def stop() -> None:
            stopped.set()
            watcher.wake()
            thread.join()
            watcher.close()

        return stop

    def _tail(self, watcher: Watcher, stopped: threading.Event, on_snapshot: Callable[[Snapshot], None]) -> None:
        self.count()
        on_snapshot(self.snapshot)
        while not stopped.is_set():
            watcher.wait(SWEEP_SECONDS)
            if not stopped.is_set() and self.poll():
                on_snapshot(self.snapshot)
                self.count()
                on_snapshot(self.snapshot)
                stopped.wait(PUBLISH_SECONDS)

    def close(self) -> None:
        """Give the files back."""
        for session in self.assembly.sessions:
            session.close()

    def _settle(self, found: Found, session: str | None) -> None:
        """Drop what only lay near: sessions no recording joins, recordings that a named log does not join."""
        if self._recordings and session is None and not found.named_log:
            joined = {c.session for c in self.snapshot.calls if c.exchange and c.entry}
            keep = [s for s in self.assembly.sessions if s.ref.id in joined] or _newest(self.assembly.sessions)
        else:
            keep = self.assembly.sessions
        if found.named_log:
            used = {c.exchange.recording for c in self.snapshot.calls if c.exchange and c.entry}
            if used != set(range(len(self._recordings))):
                self._reopen([r.path for i, r in enumerate(self._recordings) if i in used])
                return
        if len(keep) != len(self.assembly.sessions):
            self.assembly.sessions = list(keep)
            self.assembly.dirty = True
            self.poll()

    def _reopen(self, folders: list[Path]) -> None:
        self._recordings = [capture.open_recording(folder, i) for i, folder in enumerate(folders)]
        self.assembly.forget_traffic()
        self.poll()


def _chosen(found: Found, session: str | None, path: Path) -> list[SessionRef]:
    if session is not None:
        chosen = [ref for ref in found.sessions if ref.id == session] or [
            ref for ref in found.sessions if ref.id.startswith(session)
        ]
        if not chosen:
            known = ", ".join(ref.id for ref in found.sessions[:8]) or "none"
            raise CtxscopeError(f"{path}: no session {session}; found {known}")
        return chosen
    if not found.recordings and len(found.sessions) > 1:
        return [max(found.sessions, key=lambda ref: ref.updated or 0.0)]
    return found.sessions


def _newest(sessions: list[SessionLog]) -> list[SessionLog]:
    return [max(sessions, key=lambda s: s.ref.updated or 0.0)] if sessions else []
