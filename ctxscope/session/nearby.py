"""Sessions and recordings near what is followed that begin to belong to it: a rotation, a fork, a recorder started late."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from ctxscope import capture
from ctxscope.model import CtxscopeError, SessionRef
from ctxscope.session.calls import Slot, arrange
from ctxscope.session.finding import Found
from ctxscope.session.fold import SessionLog
from ctxscope.session.lookout import Look, Lookout, Name, look_at, name_of
from ctxscope.session.prints import PointPrints
from ctxscope.session.traffic import Traffic
from ctxscope.sources import watched

BEFORE_SECONDS = 60.0
"""How long before its request a session may have been written to last."""
MOST_WAITING = 16
"""Sessions that are read although nothing joins them; a list tells of an older one again once it is written to."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What a person named to be opened."""

    path: Path
    log: str | None = None
    recording: str | None = None
    session: str | None = None

    @property
    def one_log(self) -> Path | None:
        """The log file that was named; ``None`` where logs are looked for in a folder."""
        for name in (self.log, self.path):
            if name is not None:
                file = Path(name).expanduser()
                return (
                    file if file.is_file() and file.name != "index.jsonl" and not capture.is_recording(file) else None
                )
        return None

    @property
    def exactly(self) -> bool:
        """Whether the session or its file was named: nothing stands in for one that cannot be read."""
        return self.session is not None or self.one_log is not None


@dataclass(eq=False)
class Aside:
    """A recording near a named log in which no exchange belonged to it when it was last read; kept in mind by its index."""

    recording: capture.Recording
    traffic: Traffic = field(default_factory=Traffic)
    look: Look = ()

    def joins(self, sessions: Sequence[SessionLog]) -> bool:
        """Whether one of the exchanges recorded since does belong to it."""
        before, self.look = self.look, look_at(self.recording.watched)
        if before and before == self.look:
            return False
        generation = self.recording.generation
        news = self.recording.poll()
        if self.recording.generation != generation:
            self.traffic = Traffic()
        for exchange in news:
            self.traffic.take(exchange)
        return bool(news and joined(sessions, self.traffic, {}))


class Nearby:
    """What lies near, and which of it is looked at."""

    def __init__(self, asked: Asked, found: Found) -> None:
        self.lookout = Lookout(found, shows_newest=not found.recordings and asked.session is None)
        self.waiting: list[SessionLog] = []
        """Sessions that were read and that no recording joins."""
        self._asked = asked
        self._or_newest = not found.joined_only
        """Whether the newest session stands in where none is joined."""
        self._joined_only = asked.session is None and not found.named_log
        """Whether a session shows only where a recording joins it."""
        self._one_log = asked.one_log
        self._asides: list[Aside] = []
        self._prints: dict[SessionLog, PointPrints] = {}
        self._tried: dict[Name, float | None] = {}
        """When a session was last written to as it was tried for calls that no session has."""

    def put_aside(self, recording: capture.Recording) -> None:
        """Keep an eye on a recording that does not belong to the named log (yet)."""
        self._asides.append(Aside(recording))
        self.lookout.put_aside(recording.path)

    def recorded(self, sessions: Sequence[SessionLog]) -> bool:
        """Whether there is a recording now that was not there, or did not belong here, or what was a copy is none."""
        return (
            self.lookout.parted() or self.lookout.recordings() or any(aside.joins(sessions) for aside in self._asides)
        )

    def read(
        self, sessions: Sequence[SessionLog], read: Callable[[SessionLog], bool], *, recorded: bool
    ) -> tuple[bool, bool]:
        """Look for sessions and read those that wait: whether any told something, and whether an open one has a new title."""
        told = renamed = False
        for ref in self.lookout.sessions():
            known = next((s for s in (*sessions, *self.waiting) if name_of(s.ref) == name_of(ref)), None)
            if known is not None:
                renamed |= known.ref.title != ref.title
                known.ref = replace(ref, paths=known.ref.paths)  # with the files found since
            elif self._may_belong(ref, (*sessions, *self.waiting), recorded=recorded):
                self.waiting.append(SessionLog.open(ref))
        for session in tuple(self.waiting):
            try:
                told |= read(session)
            except CtxscopeError as error:
                self.waiting.remove(session)
                self.lookout.failed(session.ref, error)
        return told, renamed

    def claimants(self, slots: Iterable[Slot], sessions: Sequence[SessionLog]) -> bool:
        """Let those sessions wait that may own calls no session has, since they were written to after them.

        True when there are any. An agent may take up an old session again, which nothing lists as new.
        """
        if not self._joined_only:
            return False
        strays = [s.heard.exchange.time for s in slots if s.heard and s.point is None and s.kind == "main"]
        known = {name_of(s.ref) for s in (*sessions, *self.waiting)}
        found = [
            ref
            for ref in (self.lookout.written_since(min(strays) - BEFORE_SECONDS) if strays else ())
            if name_of(ref) not in known and self._tried.get(name_of(ref)) != ref.updated
        ]
        for ref in found[-MOST_WAITING:]:
            self._tried[name_of(ref)] = ref.updated
            self.waiting.append(SessionLog.open(ref))
        return bool(found)

    def choose(self, sessions: Sequence[SessionLog], traffic: Traffic, *, recorded: bool) -> list[SessionLog]:
        """Of the open sessions and those that wait the ones to show; the others wait."""
        pool = list(sessions)
        for session in self.waiting:
            pool.insert(place_among(pool, session), session)
        if recorded and self._joined_only:
            if any(p.traffic is not traffic for p in self._prints.values()):
                self._prints = {}
            kept = joined(pool, traffic, self._prints) or (newest(pool) if self._or_newest else [])
        else:
            kept = pool
        self.waiting = [s for s in pool if s not in kept][-MOST_WAITING:]
        return kept

    def files(self) -> Iterable[Path]:
        """Whose changes should lead to a look."""
        yield from self.lookout.places
        for session in self.waiting:
            yield from watched(session.agent.sources(session.ref))
        yield from (aside.recording.watched for aside in self._asides)

    def _may_belong(self, ref: SessionRef, known: Sequence[SessionLog], *, recorded: bool) -> bool:
        """Whether a session that appeared is one to look at.

        One that continues another always is. Without a recording nothing else tells that it belongs here, and who
        named a session or a log wants no other; but all sessions in a named file may be in its recording.
        """
        if ref.parent is not None and any(s.ref.id == ref.parent for s in known):
            return True
        if not recorded or self._asked.session is not None:
            return False
        return self._one_log is None or ref.paths[0].resolve() == self._one_log.resolve()


def joined(sessions: Sequence[SessionLog], traffic: Traffic, prints: dict[SessionLog, PointPrints]) -> list[SessionLog]:
    """Those that have a call in the traffic; ``prints`` as ``arrange`` keeps them."""
    slots = arrange(sessions, traffic, prints).slots
    found = {slot.session for slot in slots if slot.heard is not None and slot.point is not None}
    return [session for session in sessions if session in found]


def newest(sessions: Sequence[SessionLog]) -> list[SessionLog]:
    """The one last written to, as its list says."""
    return [max(sessions, key=lambda s: s.ref.updated or 0.0)] if sessions else []


def place_among(sessions: Sequence[SessionLog], new: SessionLog) -> int:
    """Where a fresh look would list a new session: among those of its agent and home, by file, the last of its file."""
    group = [
        (i, s.ref.paths[0])
        for i, s in enumerate(sessions)
        if (s.ref.agent, s.ref.home) == (new.ref.agent, new.ref.home)
    ]
    behind = [i for i, path in group if path <= new.ref.paths[0]]
    return behind[-1] + 1 if behind else group[0][0] if group else len(sessions)
