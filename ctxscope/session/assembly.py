"""Logs and traffic held together: joins, has everything judged, and publishes the next snapshot."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from ctxscope.analysis.tokens import Counter
from ctxscope.model import CacheVerdict, Call, CallView, Config, Marker, Point, Snapshot
from ctxscope.session import views
from ctxscope.session.caching import Caching
from ctxscope.session.calls import Arranged, Slot, arrange
from ctxscope.session.counts import Counts
from ctxscope.session.fold import SessionLog
from ctxscope.session.judge import Earlier, Judge, Judged, echo_of, judge_reply
from ctxscope.session.snapshot import call_of, findings_of, placed_markers, session_info, totals_of
from ctxscope.session.traffic import Heard, Key, Traffic


@dataclass(eq=False)
class Assembly:
    """The state behind an inspection. Everything published is a function of the logs' entries and the exchanges."""

    sessions: list[SessionLog]
    notices: list[str] = field(default_factory=list)
    traffic: Traffic = field(default_factory=Traffic)
    snapshot: Snapshot = field(default_factory=lambda: Snapshot(0))
    dirty: bool = True
    """Something changed that no reader reports (a session was dropped)."""
    counter: Counter = field(default_factory=Counter)
    slots: tuple[Slot, ...] = ()
    _judge: Judge = field(init=False)
    _caching: Caching = field(init=False)
    _counts: Counts = field(init=False)
    _configs: dict[int, list[Config]] = field(default_factory=dict)
    """Every config a session had, the newest last; all kept, since verdicts are remembered by their identity."""
    _before: dict[int, Earlier] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.forget_traffic()
        self._counts = Counts(self.counter)

    def forget_traffic(self) -> None:
        """Start over with the recordings; the logs stay."""
        self.traffic = Traffic()
        self._judge = Judge(self.traffic)
        self._caching = Caching(self.traffic)
        self.dirty = True

    def publish(self, recordings: Sequence[str], notices: Sequence[str], *, partial: bool, changed: bool) -> bool:
        """Judge what changed and replace the snapshot; False when nothing did."""
        if not changed and not self.dirty:
            return False
        self.dirty = False
        arranged = arrange(self.sessions, self.traffic)
        self.slots = arranged.slots
        markers = [m for s in self.sessions for m in placed_markers(s, self.slots)]
        judged = self._judge_all()
        calls = tuple(self._calls(judged, markers))
        self.snapshot = self._snapshot(arranged, judged, calls, markers, recordings, notices, partial=partial)
        return True

    def count(self) -> None:
        """Replace the snapshot by one whose calls have their tokens counted."""
        calls = tuple(self._counted(call, slot) for call, slot in zip(self.snapshot.calls, self.slots, strict=True))
        self.snapshot = replace(self.snapshot, calls=calls, revision=self.snapshot.revision + 1)

    def view(self, n: int) -> CallView:
        """Call ``n`` with its bytes."""
        if not 1 <= n <= len(self.slots):
            raise KeyError(n)
        slot, call = self.slots[n - 1], self.snapshot.calls[n - 1]
        side = self._log_side(slot)
        return views.view(call, slot, side, self._slots_by_n(), self.traffic, self.counter, self._follower(slot))

    def _judge_all(self) -> list[Judged]:
        joined: dict[int, list[tuple[Point, Key]]] = {}
        last_main = max((s.n for s in self.slots if s.heard and s.kind == "main"), default=0)
        judged, self._before = [], {}
        for slot in self.slots:
            own = joined.setdefault(id(slot.session), [])
            before = Earlier(own, len(own), self.traffic)
            self._before[slot.n] = before
            config = self._config(slot.session) if slot.session else Config()
            judged.append(self._judge.judge(slot, before, config, newest=slot.n == last_main))
            if slot.point is not None and slot.heard is not None:
                own.append((slot.point, slot.heard.key))
        return judged

    def _calls(self, judged: Sequence[Judged], markers: Sequence[Marker]) -> Iterator[Call]:
        kinds: dict[int, list[str]] = {}
        for marker in markers:
            if marker.call is not None:
                kinds.setdefault(marker.call, []).append(marker.kind)
        followers = self._followers()
        caches = self._caching.judge(self.slots, kinds)
        for slot, verdict in zip(self.slots, judged, strict=True):
            parent, cache = caches.get(slot.n, (None, CacheVerdict()))
            follower = followers.get(slot.n)
            echoed = echo_of(self.traffic, slot.heard, follower) if slot.heard and follower else None
            tokens = self._counts.known(slot)
            yield call_of(slot, verdict, judge_reply(slot, echoed), cache, tokens, parent, kinds.get(slot.n, ()))

    def _snapshot(
        self,
        arranged: Arranged,
        judged: Sequence[Judged],
        calls: tuple[Call, ...],
        markers: Sequence[Marker],
        recordings: Sequence[str],
        notices: Sequence[str],
        *,
        partial: bool,
    ) -> Snapshot:
        told = [n for s in self.sessions for n in (*s.notices, *s.agent.notices(s.log))]
        told += [n for j in judged for n in j.notices]
        infos = []
        for session in self.sessions:
            own = [j for j, slot in zip(judged, self.slots, strict=True) if slot.session is session]
            used = {c.exchange.recording for c in calls if c.exchange and c.session == session.ref.id}
            names = [r for i, r in enumerate(recordings) if i in used]
            infos.append(session_info(session, names, calls, (h for j in own for h in j.hypotheses)))
        return Snapshot(
            revision=self.snapshot.revision + 1,
            sessions=tuple(infos),
            recordings=tuple(recordings),
            calls=calls,
            markers=tuple(markers),
            findings=tuple(findings_of(calls, arranged.dead)),
            notices=tuple(dict.fromkeys([*self.notices, *notices, *told, *self._missing_sides(calls, recordings)])),
            totals=totals_of(calls),
            partial=partial or any(s.partial for s in self.sessions),
        )

    def _missing_sides(self, calls: Sequence[Call], recordings: Sequence[str]) -> Iterator[str]:
        if not recordings:
            yield "no recording found: the served side is unknown, calls show what the log implies"
        elif not self.sessions:
            yield "no agent's log found: calls show what was served, nothing is rebuilt"
        elif not any(c.exchange and c.entry for c in calls):
            yield "the recording joins no session found here"

    def _config(self, session: SessionLog) -> Config:
        """The session's config; the same object while it says the same, so that verdicts stay known."""
        now = session.agent.config(session.log)
        known = self._configs.setdefault(id(session), [])
        if not known or known[-1] != now:
            known.append(now)
        return known[-1]

    def _followers(self) -> dict[int, Heard]:
        """For each served call the next served one of its session and lineage."""
        following: dict[int, Heard] = {}
        last: dict[tuple[int, str], Slot] = {}
        for slot in self.slots:
            if slot.heard is None or slot.point is None:
                continue
            key = (id(slot.session), slot.lineage)
            if key in last:
                following[last[key].n] = slot.heard
            last[key] = slot
        return following

    def _follower(self, slot: Slot) -> Slot | None:
        heard = self._followers().get(slot.n)
        return next((s for s in self.slots if s.heard is heard), None) if heard else None

    def _slots_by_n(self) -> dict[int, Slot]:
        return {s.n: s for s in self.slots}

    def _log_side(self, slot: Slot) -> views.LogSide | None:
        if slot.session is None or slot.point is None:
            return None
        config = self._config(slot.session)
        return views.log_side(self._judge, slot, self._before[slot.n], config)

    def _counted(self, call: Call, slot: Slot) -> Call:
        return replace(call, tokens=self._counts.count(slot, lambda: self._ledger_sides(slot)))

    def _ledger_sides(self, slot: Slot) -> views.Sides:
        side = self._log_side(slot)
        served = self.traffic.effective(slot.heard.key) if slot.heard and slot.heard.api else None
        return views.Sides(served, side.body if side else None)
