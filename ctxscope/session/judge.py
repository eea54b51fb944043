"""Has each call's rebuilt request judged against the served one. Verdicts are the analysis' own."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from ctxscope.agents import Agent, Before
from ctxscope.analysis.by_value import respelt
from ctxscope.analysis.continued import continued_difference
from ctxscope.analysis.coverage import coverage
from ctxscope.analysis.divergence import excerpt, first_difference
from ctxscope.model import (
    Block,
    Body,
    Config,
    Difference,
    Learnable,
    Learned,
    Point,
    Rebuilt,
    RebuiltVerdict,
    quoted,
)
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
    remake: Callable[[], Body] | None = None
    """The rebuilt body again, where it is not the served one: kept bodies would cost more than making it anew."""
    borrowed: frozenset[Learnable] = frozenset()
    """What was learned or echoed, as the agent lists it."""
    remarks: tuple[str, ...] = ()
    stored: tuple[Block, ...] | None = None
    """The answer as the log keeps it, which a request that continues this one goes on from."""

    @property
    def is_as_served(self) -> bool:
        """Whether the log implies the very bytes that were served."""
        return self.rebuilt.state in ("equal", "differs") and self.remake is None


_ALONE = "only what its own body carries is compared"
NOT_SERVED = Judged(RebuiltVerdict("not_served"))
NOT_LOGGED = Judged(RebuiltVerdict("not_logged"))
PENDING = Judged(RebuiltVerdict("pending"))


@dataclass(eq=False, repr=False)
class Judge:
    """Judges slots, remembering every verdict until what it was made from changes."""

    traffic: Traffic
    _memo: dict[Key, tuple[tuple[Any, ...], Judged]] = field(default_factory=dict)
    """By exchange, the newest verdict and what it was made from."""
    _learnable: dict[str, dict[str, Learnable | None]] = field(default_factory=dict)
    """By agent and JSON path, what the agent lists for it."""

    def judge(self, slot: Slot, heard: Heard, before: Before, config: Config, *, newest: bool) -> Judged:
        """One served call against its place in the log. ``before``: the session's joined calls so far."""
        if slot.point is None or slot.session is None:
            waiting = newest and slot.kind == "main" and slot.session is not None
            return PENDING if waiting else NOT_LOGGED
        made_from = (
            heard,
            slot.session,
            slot.point,
            slot.session.agent.basis(slot.session.log, slot.point),
            before.chain,
            config,
            self._continued(heard),
        )
        known = self._memo.get(heard.key)
        if known is None or known[0] != made_from:
            known = (made_from, self._compare(slot.session, slot.point, heard, before, config))
            self._memo[heard.key] = known
        return known[1]

    def rebuild(
        self, session: SessionLog, point: Point, heard: Heard, before: Before, config: Config
    ) -> tuple[Learned, Rebuilt | None]:
        """What the log implies for an exchange, and what had to be learned for it."""
        body = self.traffic.body(heard.key)
        learned = session.agent.learn(session.log, point, body, before)
        if learned.keys and body.api is not None:  # what no request lacks is implied although this one has it not
            lacking = [k for k in session.agent.always.get(body.api, ()) if k not in learned.keys]
            learned = replace(learned, keys=(*learned.keys, *lacking)) if lacking else learned
        return learned, session.agent.rebuild(session.log, point, config, learned)

    def _compare(self, session: SessionLog, point: Point, heard: Heard, before: Before, config: Config) -> Judged:
        learned, rebuilt = self.rebuild(session, point, heard, before, config)
        if rebuilt is None or heard.exchange.fidelity == "normalised":
            return Judged(RebuiltVerdict("not_supported"), learned.hypotheses)
        served = self.traffic.body(heard.key)
        other, exact = as_body(rebuilt, served, heard), heard.exchange.fidelity == "bytes"
        difference = self._difference(heard, served, other)
        if difference is not None:
            told = session.agent.explain(session.log, point, difference, learned)
            difference = replace(difference, cause=told) if told else difference
        verdict = RebuiltVerdict(
            state="equal" if difference is None else "differs",
            scope=rebuilt.scope if exact else "semantic",
            first_difference=difference,
            coverage=coverage(served, other, rebuilt.pieces) if exact else None,
        )
        notices = rebuilt.notices
        if heard.is_continuation and self.traffic.effective(heard.key) is None:
            notices = (*notices, f"call {heard.exchange.n} continues a request that is not in its recording: {_ALONE}")

        def remake() -> Body:
            made = self.rebuild(session, point, heard, before, config)[1]
            assert made is not None
            return as_body(made, self.traffic.body(heard.key), heard)

        again = None if difference is None else remake
        names = {piece.path for piece in rebuilt.pieces if piece.provenance in ("learned", "echoed")}
        borrowed = frozenset(item for name in names if (item := self._listed(session.agent, name)))
        unlisted = sorted(name for name in names if self._listed(session.agent, name) is None)
        if unlisted and verdict.state == "equal":
            verdict = replace(verdict, state="differs", first_difference=_unlisted(served, unlisted[0]))
        hypotheses = (*learned.hypotheses, *_other_model(session, point, served, borrowed))
        remarks = tuple(session.agent.remarks(session.log, point, before, learned))
        return Judged(verdict, hypotheses, notices, again, borrowed, remarks, point.blocks)

    def _listed(self, agent: Agent, path: str) -> Learnable | None:
        known = self._learnable.setdefault(agent.name, {})
        if path not in known:
            covering = [item for item in agent.learnable if item.covers(path)]
            known[path] = max(covering, key=lambda item: item.path.count("/"), default=None)
        return known[path]

    def _continued(self, heard: Heard) -> Judged | None:
        """The verdict on the call that an exchange continues."""
        if not heard.is_continuation or self.traffic.effective(heard.key) is None or heard.continues is None:
            return None
        known = self._memo.get(heard.continues)
        return known[1] if known else None

    def _difference(self, heard: Heard, served: Body, other: Body) -> Difference | None:
        """Of the bodies, or, where a body goes on from another request, of what they expand to."""
        effective, implied = self.traffic.effective(heard.key), self.implied(heard, other)
        if not heard.is_continuation or effective is None or implied is None:
            return first_difference(served, other)
        return continued_difference(served, other, effective, implied)

    def implied(self, heard: Heard, other: Body) -> Body | None:
        """What the log implies the model was given, ``other`` being what it implies was sent."""
        if not heard.is_continuation:
            return other
        before = self._continued(heard)
        if before is None or before.stored is None or heard.continues is None or heard.api is None:
            return None
        earlier = self.traffic.heard[heard.continues]
        base = self.traffic.effective(earlier.key) if before.remake is None else self.implied(earlier, before.remake())
        answer = earlier.exchange.response()
        return heard.api.expand(other, base, earlier.reply, answer, before.stored) if base else None


def _other_model(session: SessionLog, point: Point, served: Body, borrowed: Collection[Learnable]) -> Iterator[str]:
    """That a request names another model than its log, where the agent lists the name as one that may be borrowed."""
    logged = session.agent.endpoint(session.log, point).model
    if logged and served.model and logged != served.model and any(item.path == "/model" for item in borrowed):
        yield f"requests name the model {quoted(served.model)}, the log {quoted(logged)}: taken for two names of one"


def _unlisted(served: Body, path: str) -> Difference:
    """What is served where the agent lists nothing that may be borrowed, and the log implies nothing."""
    at = next((s.start for s in served.segments if s.path == path or s.path.startswith(f"{path}/")), 0)
    cause = f"{path} is not in the log, and nothing that its agent is known to send"
    return Difference(at, at, None, path, "extra", cause, excerpt(served.data, at), "")


def as_body(rebuilt: Rebuilt, served: Body | None, heard: Heard | None) -> Body:
    """The rebuilt request as a body; equal bytes share the served one's segments.

    Beside a body of which only the value was recorded it is spelt as that one is.
    """
    data = rebuilt.data
    if served is not None and heard is not None and heard.exchange.fidelity != "bytes":
        data = respelt(data, served.data)
    if served is not None and data == served.data:
        return served
    return make_body(data, heard.api if heard else None, served)
