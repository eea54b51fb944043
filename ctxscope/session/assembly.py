"""Logs and traffic held together: joins, has everything judged, and publishes the next snapshot.

The classes of this room have no ``repr`` of their own: each reaches all others, and spelling that out would never end.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from ctxscope.agents import Before
from ctxscope.analysis.costs import costs_of, uses_of
from ctxscope.analysis.findings import findings_of
from ctxscope.analysis.kept_counts import Kept
from ctxscope.analysis.providers import Providers
from ctxscope.analysis.providers.rules import Rules
from ctxscope.analysis.tokens import Counter
from ctxscope.analysis.totals import totals_of
from ctxscope.model import (
    Body,
    CacheVerdict,
    Call,
    CallView,
    Compacted,
    Config,
    Marker,
    NextRequest,
    Point,
    ReplyVerdict,
    Snapshot,
)
from ctxscope.session import views
from ctxscope.session.caching import Caching
from ctxscope.session.calls import Arranged, Slot, arrange, followers_of, kept_slots
from ctxscope.session.compactions import Resent, compactions_of, refusals, told_of
from ctxscope.session.counts import Counts, uncounted
from ctxscope.session.fold import SessionLog
from ctxscope.session.joined import Joined
from ctxscope.session.judge import NOT_SERVED, Judge, Judged
from ctxscope.session.kept_ledgers import KeptLedgers
from ctxscope.session.next_request import last_of, next_request
from ctxscope.session.prints import PointPrints
from ctxscope.session.published import Published
from ctxscope.session.replies import Replies
from ctxscope.session.sidecars import Sidecars
from ctxscope.session.snapshot import call_of, endpoint_of, placed_markers, session_info
from ctxscope.session.traffic import Traffic
from ctxscope.session.unserved import Told, Unserved
from ctxscope.session.windows import window_at

NO_CONFIG = Config()
_UNSENT, _UNHEARD = (None, CacheVerdict()), ReplyVerdict("not_recorded")
"""Parent and cache of a call that was not recorded, and its reply: one object for all of a long log."""
MOST_NOTICES = 100
"""Of what one log is said to hold."""


@dataclass(eq=False, repr=False)
class Assembly:
    """The state behind an inspection. Everything published is a function of the logs' entries and the exchanges."""

    sessions: list[SessionLog]
    notices: list[str] = field(default_factory=list)
    traffic: Traffic = field(default_factory=Traffic)
    snapshot: Snapshot = field(default_factory=lambda: Snapshot(0))
    dirty: bool = True
    """Something changed that no reader reports (a session was dropped)."""
    counter: Counter = field(default_factory=Counter)
    kept: Kept | None = None
    """Where ledgers outlast this launch."""
    providers: Providers = field(default_factory=Providers)
    """Whose caches are judged by which rules."""
    window: int | None = None
    """Tokens of the window of every model asked, as the user says."""
    slots: tuple[Slot, ...] = ()
    sidecars: Sidecars = field(init=False)
    _judge: Judge = field(init=False)
    _replies: Replies = field(init=False)
    _prints: dict[SessionLog, PointPrints] = field(init=False)
    _caching: Caching = field(init=False)
    _counts: Counts = field(init=False)
    _resent: Resent = field(init=False)
    _configs: dict[SessionLog, Config] = field(default_factory=dict)
    _joined: dict[int, Joined] = field(default_factory=dict)
    """By session."""
    _published: list[Published] = field(default_factory=list)
    """Calls in order."""
    _uncounted: list[int] = field(default_factory=list)
    """Numbers of the calls whose tokens are not counted yet, in order."""
    _judged: Sequence[Judged] = ()
    _unserved: Unserved = field(init=False)
    _told: tuple[list[str], list[str]] = field(default_factory=lambda: ([], []))
    """Notices of the newest snapshot before and behind those of the calls that were rebuilt to be counted."""
    _dead: Sequence[tuple[str, Point, str | None]] = ()
    """Session, input and error line of inputs that no call followed."""
    _compacted: list[Compacted] = field(default_factory=list)
    """What the agents tell of compactions, in the order of the markers."""
    _followers: dict[int, Slot] = field(default_factory=dict)
    """For each served call the next served one of its session and lineage."""

    def __post_init__(self) -> None:
        self.forget_traffic()
        self.sidecars = Sidecars(self.counter)
        kept = KeptLedgers(self.counter, self.providers, self.kept)
        self._counts = Counts(self.counter, self.providers, kept, self._is_as_served, self.sidecars)
        self._unserved = Unserved(self.providers, self._log_side, self._rebuilt_from)

    def forget_traffic(self) -> None:
        """Start over with the recordings; the logs stay."""
        self.traffic = Traffic()
        self._judge = Judge(self.traffic)
        self._replies = Replies(self.traffic)
        self._prints = {}
        self._caching = Caching(self.traffic, self.providers)
        self._resent = Resent(self.traffic, self.counter)
        self.dirty = True

    def publish(self, recordings: Sequence[str], notices: Sequence[str], *, partial: bool, changed: bool) -> bool:
        """Judge what changed and replace the snapshot; False when nothing did."""
        if not changed and not self.dirty:
            return False
        self.dirty = False
        self._read_configs()
        arranged = arrange(self.sessions, self.traffic, self._prints)
        self.slots = kept_slots(self.slots, arranged.slots)
        self._followers = followers_of(self.slots)
        placed = [(s, placed_markers(s, self.slots, arranged.copied)) for s in self.sessions]
        markers = [m for _, own in placed for m in own]
        self._compacted = [c for s, own in placed for c in told_of(s, own)]
        judged = self._judged = self._judge_all()
        calls = tuple(self._calls(judged, markers))
        self.snapshot = self._snapshot(arranged, judged, calls, markers, recordings, notices, partial=partial)
        return True

    def count(self, enough: Callable[[], bool] = lambda: False) -> bool:
        """Replace the snapshot by one with more calls counted, the newest first; True once all are.

        At least one is counted, then as many as ``enough`` lets be.
        """
        before, calls = self.snapshot, list(self.snapshot.calls)
        counted = len(self._uncounted)
        self._counts.recall(self.slots[n - 1] for n in self._uncounted)
        while self._uncounted:
            n = self._uncounted.pop()
            calls[n - 1] = self._counted(calls[n - 1], self.slots[n - 1])
            if enough():
                break
        notices = self._all_notices()
        if counted or notices != before.notices:
            self.snapshot = replace(before, calls=tuple(calls), notices=notices, revision=before.revision + 1)
        if counted and not self._uncounted:
            self.snapshot = self._summed(self.snapshot)
            if self._counts.recalled == len(self.slots):  # else it grows: all that it says is worth keeping at the end
                self.keep_counts()
        return not self._uncounted

    def keep_counts(self) -> None:
        """Keep what was counted for the next launch: texts, and once all calls are, those."""
        self.counter.keep()
        if not self._uncounted:
            self._counts.keep(self.slots)

    def _summed(self, snapshot: Snapshot) -> Snapshot:
        """A snapshot with what follows from its calls: those that nobody recorded are judged when they are counted."""
        calls = self._calibrated(snapshot.calls)
        compactions, rates = compactions_of(self._compacted, calls, self.slots, self._rules_of, self._resent)
        return replace(
            snapshot,
            calls=calls,
            findings=tuple(findings_of(calls, self._dead, compactions, refusals(self.slots))),
            compactions=compactions,
            break_rates=rates,
            sidecars=tuple(self.sidecars.substitutions(calls, self.slots)),
            totals=totals_of(calls),
            costs=tuple(costs_of(calls)),
            uses=tuple(uses_of(calls)),
        )

    def _calibrated(self, calls: Sequence[Call]) -> tuple[Call, ...]:
        """Calls with their counts scaled by what all of a model report."""
        out = list(calls)
        for place, tokens in self._counts.calibrate(calls, self.slots):
            out[place] = replace(out[place], tokens=tokens)
            self._published[place] = replace(self._published[place], call=out[place])
        return tuple(out)

    def view(self, n: int) -> CallView:
        """Call ``n`` with its bytes."""
        if not 1 <= n <= len(self.slots):
            raise KeyError(n)
        slot, call = self.slots[n - 1], self.snapshot.calls[n - 1]
        side = self._log_side(slot)
        return views.view(call, slot, side, self.slots, self.traffic, self.counter, self._followers.get(n))

    def next_request(self, session: SessionLog) -> NextRequest:
        """What the agent of a session would send for its next input if it were started anew."""
        joined = self._joined.get(id(session), _NONE_JOINED)
        last = last_of(session, self.slots, self._given, self._implied)
        before = joined.before(len(self.slots) + 1, self.traffic)
        return next_request(session, last, before, self._config(session), self._rules_of)

    def _rules_of(self, slot: Slot) -> Rules:
        return self._unserved.rules_of(slot) if slot.heard is None else self._caching.rules_of(slot.heard)

    def _given(self, slot: Slot) -> Body | None:
        """What the model was given by a call, as served, else as its log implies."""
        if slot.heard is not None:
            return self.traffic.effective(slot.heard.key) if slot.heard.api else None
        return self._implied(slot)

    def _implied(self, slot: Slot) -> Body | None:
        """What the model was given by a call as its log implies it."""
        side = self._log_side(slot)
        return side.implied if side else None

    def _judge_all(self) -> list[Judged]:
        last_main = max((s.n for s in self.slots if s.heard and s.kind == "main"), default=0)
        judged: list[Judged] = []
        self._joined = {}
        for slot in self.slots:
            if slot.heard is None:
                judged.append(NOT_SERVED)
                continue
            config = self._config(slot.session)
            judged.append(self._judge.judge(slot, slot.heard, self._before(slot), config, newest=slot.n == last_main))
            if slot.point is not None:
                self._joined.setdefault(id(slot.session), Joined()).add(slot, slot.point, slot.heard)
        return judged

    def _before(self, slot: Slot) -> Before:
        """The joined calls of a call's session before it."""
        return self._joined.get(id(slot.session), _NONE_JOINED).before(slot.n, self.traffic)

    def _calls(self, judged: Sequence[Judged], markers: Sequence[Marker]) -> Iterator[Call]:
        kinds: dict[int, list[str]] = {}
        for marker in markers:
            if marker.call is not None:
                kinds.setdefault(marker.call, []).append(marker.kind)
        caches = self._caching.judge(self.slots, kinds)
        self._unserved.arrange(self.slots, kinds)
        self._uncounted.clear()
        self._counts.forget_recalled()
        for slot, verdict in zip(self.slots, judged, strict=True):
            if slot.heard is not None:
                told: Told | None = self._unserved.doubted(slot, caches.get(slot.n, _UNSENT))
            else:
                told = self._unserved.known(slot)
            parent, cache = told or _UNSENT
            reply = _UNHEARD if slot.heard is None else self._replies.judge(slot, self._followers.get(slot.n))
            counted, marks = self._counts.counted(slot, partial(self._rebuilt_from, slot)), tuple(kinds.get(slot.n, ()))
            if counted is None or told is None:
                self._uncounted.append(slot.n)
            parts = (
                slot,
                verdict,
                reply,
                cache,
                counted or uncounted(slot),
                parent,
                marks,
                endpoint_of(slot, self.providers),
                window_at(slot, self._config(slot.session), self.window),
            )
            known = self._published[slot.n - 1 : slot.n]
            if not known or not known[0].holds(*parts):
                known = [Published(slot, verdict, parts[-2], call_of(*parts))]
                self._published[slot.n - 1 : slot.n] = known
            yield known[0].call
        del self._published[len(self.slots) :]

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
        told = [n for s in self.sessions for n in (*s.notices, *_some(s.agent.notices(s.log)))]
        told += (n for j in judged for n in j.notices)
        self._told = ([*self.notices, *notices, *told], [*self._missing_sides(calls, recordings)])
        infos = []
        for session in self.sessions:
            own = [j for j, slot in zip(judged, self.slots, strict=True) if slot.session is session]
            used = {c.exchange.recording for c in calls if c.exchange and c.session == session.ref.id}
            names = [r for i, r in enumerate(recordings) if i in used]
            infos.append(session_info(session, names, calls, own))
        self._dead = [(s.ref.id, p, s.agent.error_line(s.log, p)) for s, p in arranged.dead]
        shown = Snapshot(
            revision=self.snapshot.revision + 1,
            sessions=tuple(infos),
            recordings=tuple(recordings),
            calls=calls,
            markers=tuple(markers),
            notices=self._all_notices(),
            partial=partial or any(s.partial for s in self.sessions),
        )
        return self._summed(shown)

    def _missing_sides(self, calls: Sequence[Call], recordings: Sequence[str]) -> Iterator[str]:
        if not recordings:
            yield "no recording found: the served side is unknown, calls show what the log implies"
        elif not self.sessions:
            yield "no agent's log found: calls show what was served, nothing is rebuilt"
        elif not any(c.exchange and c.entry for c in calls):
            yield "the recording joins no session found here"

    def _config(self, session: SessionLog | None) -> Config:
        """The session's config as of the last publish."""
        return self._configs[session] if session is not None else NO_CONFIG

    def _read_configs(self) -> None:
        """Take every session's config; the same object while it says the same, so that verdicts stay known."""
        for session in self.sessions:
            now = session.agent.config(session.log)
            if self._configs.get(session) != now:
                self._configs[session] = now

    def _log_side(self, slot: Slot, kin: Body | None = None) -> views.LogSide | None:
        if slot.session is None or slot.point is None:
            return None
        config = self._config(slot.session)
        return views.log_side(self._judge, slot, self._before(slot), config, kin)

    def _counted(self, call: Call, slot: Slot) -> Call:
        sides = partial(self._ledger_sides, slot)
        tokens = self._counts.count(slot, self._rebuilt_from(slot), sides)
        counted = replace(call, tokens=tokens)
        if slot.heard is None:
            parent, cache = self._unserved.judge(slot)
            counted = replace(counted, parent=parent, cache=cache)
        known = self._published[slot.n - 1]
        self._published[slot.n - 1] = Published(known.slot, known.verdict, known.told, counted)
        return counted

    def _is_as_served(self, slot: Slot) -> bool:
        return self._judged[slot.n - 1].is_as_served

    def _rebuilt_from(self, slot: Slot) -> Hashable:
        """Stands for all that a call's rebuilt side was made from."""
        if slot.session is None or slot.point is None:
            return None
        if slot.heard is not None:
            return self._judged[slot.n - 1]
        return self._config(slot.session), slot.session.agent.basis(slot.session.log, slot.point)

    def _all_notices(self) -> tuple[str, ...]:
        """All notices in one order, whenever those of the calls that were rebuilt to be counted came."""
        first, last = self._told
        return tuple(dict.fromkeys([*first, *self._rebuild_notices(), *last]))

    def _rebuild_notices(self) -> Iterator[str]:
        """Of calls without a served side; those of the others come with their verdict."""
        return (n for slot in self.slots if slot.heard is None for n in self._unserved.notices(slot))

    def _ledger_sides(self, slot: Slot) -> views.Sides:
        if slot.heard and self._is_as_served(slot) and (unread := self.traffic.unread(slot.heard)):
            return views.Sides(unread, unread)
        served = self.traffic.effective(slot.heard.key) if slot.heard and slot.heard.api else None
        side = self._log_side(slot) if slot.heard is not None else self._unserved.side(slot)
        return views.Sides(served, side.implied if side else None)


_NONE_JOINED = Joined()


def _some(notices: Sequence[str]) -> Iterator[str]:
    """Notices of one log, and how many more there are: binary data in it would be one a line."""
    yield from notices[:MOST_NOTICES]
    if len(notices) > MOST_NOTICES:
        yield f"{len(notices) - MOST_NOTICES:,} more notices of this kind and others"
