"""The public handle: open a path, follow it, ask for a call's bytes."""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from ctxscope import capture, resources
from ctxscope.agents.reading.families import kin
from ctxscope.analysis.own_tokenizer import read as read_tokenizer
from ctxscope.analysis.providers import Providers
from ctxscope.analysis.tokens import Counter
from ctxscope.model import CallView, CtxscopeError, Logged, NextRequest, Place, SessionRef, SidecarView, Snapshot
from ctxscope.session import views
from ctxscope.session.assembly import Assembly
from ctxscope.session.calls import recognise
from ctxscope.session.finding import Found, find
from ctxscope.session.fold import SessionLog
from ctxscope.session.logged import logged_at
from ctxscope.session.lookout import Name, name_of
from ctxscope.session.nearby import Asked, Nearby, newest, place_among
from ctxscope.sources import watched
from ctxscope.sources.cache import Cache
from ctxscope.sources.watch import Watcher

SWEEP_SECONDS = 1.0
"""How often files are looked at although nobody reported a change (network file systems, lost events)."""
COUNT_SECONDS = 0.05
"""How long counting keeps others from what is opened."""
COUNTS_SECONDS = 0.25
"""How long calls are counted before the counts are shown and new bytes are looked for."""
COUNTS_FILE, LEDGERS_FILE = "counts.sqlite", "ledgers.sqlite"
_LEDGERS = 60_000
"""Of all sessions; in a file apart, since each growth of a log gives all of its calls others."""
"""What was counted, in the cache folder."""
PUBLISH_SECONDS = 0.1
"""Least time between two snapshots of a stream of changes (DESIGN, "How a byte travels")."""


@contextmanager
def _uncollected() -> Iterator[None]:
    """Without Python's search for reference cycles.

    What is read lasts, and going through all of it again and again takes a third of the time (measured on 100 MB).
    """
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


@dataclass(eq=False, repr=False)
class Inspection:
    """Sessions and recordings opened together, judged as they grow."""

    path: Path
    assembly: Assembly
    _asked: Asked
    _nearby: Nearby
    _recordings: list[capture.Recording]
    _caches: tuple[Cache, Cache]
    """Counts and ledgers of earlier launches."""
    _lock: threading.RLock = field(default_factory=threading.RLock)
    _followed: bool = False
    """Polls from now on follow what was opened: they keep what they see rewritten, and look for what comes beside it. A
    single look leaves nothing behind."""
    _void: bool = False
    """What was taken of the recordings does not hold any more."""
    _told: tuple[str, ...] = ()
    """What the readers had to say at the last poll."""

    @classmethod
    def open(
        cls,
        path: Path,
        *,
        log: str | None = None,
        recording: str | None = None,
        session: str | None = None,
        provider: str | None = None,
        window: int | None = None,
        tokenizer: str | None = None,
    ) -> Inspection:
        """Find, read and join what lies at ``path``. Raises ``CtxscopeError`` when nothing readable is there.

        Without ``session`` every session joined to the recordings is kept and, without a recording, the newest.
        ``provider``: whose cache rules hold, whatever the upstream: a known provider, or a rules file (``.toml``).
        ``window``: tokens of the context window, before what the agent says.
        ``tokenizer``: a ``tokenizer.json`` that models are counted with whose vocabulary does not come with ctxscope.
        """
        asked = Asked(path, log, recording, session)
        found = find(path, log=log, recording=recording)
        counts, ledgers = Cache(COUNTS_FILE), Cache(LEDGERS_FILE, limit=_LEDGERS)
        counter = Counter(read_tokenizer(Path(tokenizer)) if tokenizer is not None else None, counts)
        providers = Providers(resources.own_rules(), provider)
        assembly = Assembly([], counter=counter, kept=ledgers, providers=providers, window=window)
        opened = cls(path, assembly, asked, Nearby(asked, found), [], (counts, ledgers))
        with _uncollected():
            opened._gather(found, opened._readable(found, {}))
        opened._followed = True
        return opened

    def _gather(self, found: Found, sessions: list[SessionLog]) -> None:
        """Read the recordings that were found and keep what belongs together."""
        self._recordings = [capture.open_recording(folder, i) for i, folder in enumerate(found.recordings)]
        self.assembly.forget_traffic()
        self.assembly.sessions = sessions
        self.poll()
        self._settle(found)

    def _gather_again(self) -> bool:
        """As a fresh look would, now that a recording came or began anew; True when there was something to look at."""
        try:
            found = find(self.path, log=self._asked.log, recording=self._asked.recording)
        except CtxscopeError:
            return False
        held = {name_of(s.ref): s for s in (*self.assembly.sessions, *self._nearby.waiting)}
        self._nearby, self._followed, self._void = Nearby(self._asked, found), False, False
        try:
            sessions = self._readable(found, held)
            sessions += [s for s in held.values() if s.ref.parent in {o.ref.id for o in sessions} and s not in sessions]
            self._gather(found, sessions)
        finally:
            self._followed = True
        return True

    def _readable(self, found: Found, held: dict[Name, SessionLog]) -> list[SessionLog]:
        """Sessions to open, as far as they can be read; one among others that cannot is a notice."""
        out: list[SessionLog] = []
        failed: CtxscopeError | None = None
        for ref in _chosen(found, self._asked):
            session = held.get(name_of(ref)) or SessionLog.open(ref)
            try:
                session.poll()
            except CtxscopeError as error:
                if self._asked.exactly:
                    raise
                failed = failed or error
                self._nearby.lookout.failed(ref, error)
            else:
                out.append(session)
                if not found.recordings and self._asked.session is None:
                    break
        if failed and not out and not found.recordings:
            raise failed
        return self._with_family(out, found, held) if self._asked.exactly or not found.recordings else out

    def _with_family(self, sessions: list[SessionLog], found: Found, held: dict[Name, SessionLog]) -> list[SessionLog]:
        """Some sessions and those they continue, or that continue them, by file: a session may span several."""
        known = {name_of(s.ref) for s in sessions}
        for ref in [r for s in sessions for r in (*kin(s.ref, found.sessions), *s.agent.family(s.ref))]:
            if name_of(ref) in known:
                continue
            known.add(name_of(ref))
            try:
                relative = held.get(name_of(ref)) or SessionLog.open(ref)
                relative.poll()
            except CtxscopeError as error:
                self._nearby.lookout.failed(ref, error)
            else:
                sessions.insert(place_among(sessions, relative), relative)
        return sessions

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
            if self._followed and (self._void or self._nearby.recorded(self.assembly.sessions)):
                return self._gather_again()
            changed = max([self._read(session) for session in self.assembly.sessions], default=False)
            heard = self._hear()
            if heard is None:
                self._void = True
                return self._gather_again()
            changed = self._publish(changed=changed or heard)
            if self._followed and self._nearby.claimants(self.assembly.slots, self.assembly.sessions):
                changed = self._publish(changed=True)
            return changed

    def _publish(self, *, changed: bool) -> bool:
        if self._followed:
            self._admit(changed=changed)
        said = [notice for r in self._recordings for notice in (*r.notices, *self._inbound_notice(r))]
        said += self._nearby.lookout.unread.values()
        before, self._told = self._told, (*said, *(n for s in self.assembly.sessions for n in s.notices))
        partial = any(r.partial for r in self._recordings) or any(s.partial for s in self.assembly.sessions)
        # half a line brings nothing to judge, but it is news that someone is writing it
        changed = changed or partial != self.snapshot.partial or before != self._told
        return self.assembly.publish(
            tuple(str(r.path) for r in self._recordings), said, partial=partial, changed=changed
        )

    def _hear(self) -> bool | None:
        """Take what the recordings have to tell; ``None`` when one of them began anew: nothing taken of it holds."""
        before = [r.generation for r in self._recordings]
        heard = [(r, exchange) for r in self._recordings for exchange in r.poll()]
        found = [exchange for r, exchange in heard if not self._is_inbound(r)]
        if [r.generation for r in self._recordings] != before:
            return None
        for recording, exchange in heard:
            if self._is_inbound(recording):
                self.assembly.traffic.inbound.take(exchange)
        for exchange in found:
            recognise(self.assembly.traffic.take(exchange), self.assembly.sessions, self.assembly.traffic)
        self._nearby.lookout.named({place for exchange in found for place in exchange.places})
        return bool(heard)

    def _is_inbound(self, recording: capture.Recording) -> bool:
        """Whether it holds what a curator was given, and what that one sent on is here too: the same calls, once more."""
        side, pair = recording.meta.side, recording.meta.pair
        return side == "in" and any((r.meta.side, r.meta.pair) == ("out", pair) for r in self._recordings)

    def _inbound_notice(self, recording: capture.Recording) -> Iterator[str]:
        if self._is_inbound(recording):
            yield f"{recording.path}: the inbound side of pair {recording.meta.pair}; calls show what was sent on"

    def _admit(self, *, changed: bool) -> None:
        """Take in sessions that appeared, and let those wait that belong to none of the recordings."""
        sessions, recorded = self.assembly.sessions, bool(self._recordings)
        told, renamed = self._nearby.read(sessions, self._read, recorded=recorded)
        if self._nearby.waiting and (changed or told):
            self.assembly.sessions = self._nearby.choose(sessions, self.assembly.traffic, recorded=recorded)
        self.assembly.dirty |= renamed or self.assembly.sessions != sessions

    def _read(self, session: SessionLog) -> bool:
        changed = session.poll()
        if self._followed:
            session.keep()
        return changed

    def count(self) -> None:
        """Count the tokens of every call; dear at first, kept by content afterwards."""
        with _uncollected():
            while not self.count_some():
                pass

    def count_some(self) -> bool:
        """Count the tokens of a few calls, the newest first, so that others need not wait long; True once all are."""
        with self._lock:
            end = time.monotonic() + COUNT_SECONDS
            return self.assembly.count(lambda: time.monotonic() >= end)

    def view(self, n: int) -> CallView:
        """Everything about call ``n``, bytes included. ``KeyError`` when there is no such call."""
        with self._lock:
            return self.assembly.view(n)

    def next_requests(self) -> tuple[NextRequest, ...]:
        """For each session, the request its agent would send for its next input if it were started anew."""
        with self._lock:
            return tuple(self.assembly.next_request(session) for session in self.assembly.sessions)

    def sidecars(self, n: int) -> tuple[SidecarView, ...]:
        """The sidecars in the context of call ``n``. ``KeyError`` when there is no such call."""
        with self._lock:
            if not 1 <= n <= len(self.assembly.slots):
                raise KeyError(n)
            return views.beside(self.assembly.sidecars.beside(self.assembly.slots[n - 1]))

    def messages(self, session: str | None, places: Sequence[Place]) -> tuple[Logged, ...]:
        """The messages at these places of a session's log; one that it does not hold any more says nothing."""
        with self._lock:
            found = next((s for s in self.assembly.sessions if s.ref.id == session), None)
            return logged_at(found, places) if found is not None else tuple(map(Logged, places))

    def follow(self, on_snapshot: Callable[[Snapshot], None]) -> Callable[[], None]:
        """Tail all files in a thread of its own; ``on_snapshot`` is called there. Returns what stops it."""
        watcher = Watcher(self._files())
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
        shown, counted = 0, False
        while not stopped.is_set():
            try:
                news = self.snapshot.revision != shown
                if news:
                    on_snapshot(self.snapshot)
                    shown = self.snapshot.revision
                start = time.monotonic()
                while not counted and not stopped.is_set() and time.monotonic() < start + COUNTS_SECONDS:
                    counted = self.count_some()
                if news:
                    stopped.wait(max(0.0, start + PUBLISH_SECONDS - time.monotonic()))
                if self.snapshot.revision == shown or not counted:
                    watcher.wait(SWEEP_SECONDS if counted else 0)
                if not stopped.is_set() and self.poll():
                    counted = False
                    watcher.add(self._files())
            except Exception as error:  # noqa: BLE001 - whatever a file makes a reader raise, the next change is read
                counted = True
                on_snapshot(self._stumbled(error))
                shown = self.snapshot.revision

    def _files(self) -> set[Path]:
        with self._lock:
            logs = {p for s in self.assembly.sessions for p in watched(s.agent.sources(s.ref))}
            return {*logs, *(r.watched for r in self._recordings), *self._nearby.files()}

    def _stumbled(self, error: Exception) -> Snapshot:
        """What was known, with a notice of what kept the newest state from being read."""
        told = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        notice = f"what came since could not be worked out ({told}); it is tried again at the next change"
        with self._lock:
            known = self.assembly.snapshot
            notices = (*(n for n in known.notices if n != notice), notice)
            self.assembly.snapshot = replace(known, revision=known.revision + 1, notices=notices)
            return self.assembly.snapshot

    def close(self) -> None:
        """Give the files back."""
        with self._lock:
            self.assembly.keep_counts()
            for cache in self._caches:
                cache.close()
        for session in self.assembly.sessions:
            session.close()

    def _settle(self, found: Found) -> None:
        """Drop what only lay near: sessions no recording joins, recordings that a named log does not join."""
        sessions = self.assembly.sessions
        if self._recordings and self._asked.session is None and not found.named_log:
            belonging = {c.session for c in self.snapshot.calls if c.exchange and c.entry}
            sessions = [s for s in sessions if s.ref.id in belonging] or ([] if found.joined_only else newest(sessions))
        if found.named_log:
            used = {c.exchange.recording for c in self.snapshot.calls if c.exchange and c.entry}
            if used != set(range(len(self._recordings))):
                self._reopen(used)
                return
        if len(sessions) != len(self.assembly.sessions):
            self.assembly.sessions = sessions
            self.assembly.dirty = True
            self.poll()

    def _reopen(self, used: set[int]) -> None:
        """Go on with some of the recordings alone."""
        kept = [r.path for i, r in enumerate(self._recordings) if i in used]
        for i, recording in enumerate(self._recordings):
            if i not in used:
                self._nearby.put_aside(recording)
        self._recordings = [capture.open_recording(folder, i) for i, folder in enumerate(kept)]
        self.assembly.forget_traffic()
        self.poll()


def _chosen(found: Found, asked: Asked) -> list[SessionRef]:
    """The session asked for, else all; those that only one can be taken of, newest first."""
    session = asked.session
    if session is not None:
        chosen = [ref for ref in found.sessions if ref.id == session] or [
            ref for ref in found.sessions if ref.id.startswith(session)
        ]
        if not chosen:
            known = ", ".join(ref.id for ref in found.sessions[:8]) or "none"
            raise CtxscopeError(
                "; ".join([f"{asked.path}: no session {session}; found {known}", *found.unread.values()])
            )
        return chosen
    if not found.recordings:
        return sorted(found.sessions, key=lambda ref: ref.updated or 0.0, reverse=True)
    return found.sessions
