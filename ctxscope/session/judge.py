"""Has each call's rebuilt request judged against the served one. Verdicts are the analysis' own."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from ctxscope.agents import Before
from ctxscope.analysis.coverage import coverage
from ctxscope.analysis.divergence import first_difference
from ctxscope.model import Body, Config, Learned, Point, Rebuilt, RebuiltVerdict
from ctxscope.session.calls import Slot
from ctxscope.session.fold import SessionLog
from ctxscope.session.traffic import Heard, Key, Traffic
from ctxscope.wire.body import make_body


@dataclass(frozen=True, slots=True, eq=False)
class Judged:
    """The log's side of one call."""

    rebuilt: RebuiltVerdict
    hypotheses: tuple[str, ...] = ()
    notices: tuple[str, ...] = ()


NOT_SERVED = Judged(RebuiltVerdict("not_served"))
NOT_LOGGED = Judged(RebuiltVerdict("not_logged"))
PENDING = Judged(RebuiltVerdict("pending"))


@dataclass(eq=False)
class Judge:
    """Judges slots, remembering every verdict until what it was made from changes."""

    traffic: Traffic
    _memo: dict[Key, tuple[tuple[Any, ...], Judged]] = field(default_factory=dict)
    """By exchange, the newest verdict and what it was made from."""

    def judge(self, slot: Slot, before: Before, config: Config, *, newest: bool) -> Judged:
        """One call against its place in the log. ``before``: the session's joined calls so far."""
        if slot.heard is None:
            return NOT_SERVED
        if slot.point is None or slot.session is None:
            waiting = newest and slot.kind == "main" and slot.session is not None
            return PENDING if waiting else NOT_LOGGED
        made_from = (
            slot.heard,
            slot.session,
            slot.point,
            slot.session.agent.basis(slot.session.log, slot.point),
            before.chain,
            config,
        )
        known = self._memo.get(slot.heard.key)
        if known is None or known[0] != made_from:
            known = (made_from, self._compare(slot.session, slot.point, slot.heard, before, config))
            self._memo[slot.heard.key] = known
        return known[1]

    def rebuild(
        self, session: SessionLog, point: Point, heard: Heard, before: Before, config: Config
    ) -> tuple[Learned, Rebuilt | None]:
        """What the log implies for an exchange, and what had to be learned for it."""
        learned = session.agent.learn(session.log, point, self.traffic.body(heard.key), before)
        return learned, session.agent.rebuild(session.log, point, config, learned)

    def _compare(self, session: SessionLog, point: Point, heard: Heard, before: Before, config: Config) -> Judged:
        learned, rebuilt = self.rebuild(session, point, heard, before, config)
        if rebuilt is None:
            return Judged(RebuiltVerdict("not_supported"), learned.hypotheses)
        served = self.traffic.body(heard.key)
        other = as_body(rebuilt, served, heard)
        difference = first_difference(served, other)
        if difference is not None:
            told = session.agent.explain(session.log, point, difference, learned)
            difference = replace(difference, cause=told) if told else difference
        verdict = RebuiltVerdict(
            state="equal" if difference is None else "differs",
            scope=rebuilt.scope,
            first_difference=difference,
            coverage=coverage(served, other, rebuilt.pieces),
        )
        return Judged(verdict, learned.hypotheses, rebuilt.notices)


def as_body(rebuilt: Rebuilt, served: Body | None, heard: Heard | None) -> Body:
    """The rebuilt request as a body; equal bytes share the served one's segments."""
    data = rebuilt.data
    if served is not None and data == served.data:
        return served
    return make_body(data, heard.api if heard else None, served)
