"""Has each call judged: rebuilt against served, stored against delivered and echoed. Verdicts are the analysis' own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, overload

from ctxscope.analysis.coverage import coverage
from ctxscope.analysis.divergence import first_difference
from ctxscope.analysis.replies import compare_echo, compare_reply
from ctxscope.model import Block, Body, Config, Learned, Point, Rebuilt, RebuiltVerdict, ReplyVerdict
from ctxscope.session.calls import Slot
from ctxscope.session.fold import SessionLog
from ctxscope.session.traffic import Heard, Key, Traffic
from ctxscope.wire.body import make_body


@dataclass(frozen=True, slots=True, eq=False)
class Earlier(Sequence[tuple[Point, Body]]):
    """The first ``upto`` joined calls of a session, bodies loaded only where an agent looks."""

    pairs: Sequence[tuple[Point, Key]]
    upto: int
    traffic: Traffic

    def __len__(self) -> int:
        return self.upto

    @property
    def last(self) -> Key | None:
        """The exchange right before."""
        return self.pairs[self.upto - 1][1] if self.upto else None

    @overload
    def __getitem__(self, index: int) -> tuple[Point, Body]: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[tuple[Point, Body]]: ...
    def __getitem__(self, index: int | slice) -> tuple[Point, Body] | Sequence[tuple[Point, Body]]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(self.upto))]
        if not -self.upto <= index < self.upto:
            raise IndexError(index)
        point, key = self.pairs[index % self.upto]
        return point, self.traffic.body(key)

    def __iter__(self) -> Iterator[tuple[Point, Body]]:
        return (self[i] for i in range(len(self)))


@dataclass(frozen=True, slots=True, eq=False)
class Judged:
    """The log's side of one call."""

    rebuilt: RebuiltVerdict
    hypotheses: tuple[str, ...] = ()
    notices: tuple[str, ...] = ()


@dataclass(eq=False)
class Judge:
    """Judges slots, remembering every verdict until what it was made from changes."""

    traffic: Traffic
    _memo: dict[tuple[Any, ...], Judged] = field(default_factory=dict)

    def judge(self, slot: Slot, before: Earlier, config: Config, *, newest: bool) -> Judged:
        """One call against its place in the log. ``before``: the session's joined calls so far."""
        if slot.heard is None:
            return Judged(RebuiltVerdict("not_served"))
        if slot.point is None or slot.session is None:
            waiting = newest and slot.kind == "main" and slot.session is not None
            return Judged(RebuiltVerdict("pending" if waiting else "not_logged"))
        key = _fingerprint(slot, before, config)
        if key not in self._memo:
            self._memo[key] = self._compare(slot.session, slot.point, slot.heard, before, config)
        return self._memo[key]

    def rebuild(
        self, session: SessionLog, point: Point, heard: Heard, before: Earlier, config: Config
    ) -> tuple[Learned, Rebuilt | None]:
        """What the log implies for an exchange, and what had to be learned for it."""
        learned = session.agent.learn(session.log, point, self.traffic.body(heard.key), before)
        return learned, session.agent.rebuild(session.log, point, config, learned)

    def _compare(self, session: SessionLog, point: Point, heard: Heard, before: Earlier, config: Config) -> Judged:
        learned, rebuilt = self.rebuild(session, point, heard, before, config)
        if rebuilt is None:
            return Judged(RebuiltVerdict("not_supported"), learned.hypotheses)
        served = self.traffic.body(heard.key)
        other = as_body(rebuilt, served, heard)
        difference = first_difference(served, other)
        if difference is not None:
            told = session.agent.explain(session.log, point, difference)
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


def _fingerprint(slot: Slot, before: Earlier, config: Config) -> tuple[Any, ...]:
    assert slot.session is not None
    assert slot.point is not None
    assert slot.heard is not None
    return (
        slot.heard.key,
        slot.heard.sha256,
        id(slot.session),
        slot.point.key,
        slot.session.log.rewrites,
        slot.session.beside,
        id(slot.point.answer),
        hash(tuple(map(id, slot.point.context))),
        len(before),
        before.last,
        id(config),
    )


def judge_reply(slot: Slot, echoed: tuple[Block, ...] | None) -> ReplyVerdict:
    """The reply delivered against the one stored, and the stored one against the next request's echo of it."""
    delivered = slot.heard.reply.blocks if slot.heard is not None and slot.heard.answered and slot.heard.reply else None
    if slot.heard is None:
        return ReplyVerdict("not_recorded")
    if slot.point is None:
        return ReplyVerdict("not_recorded" if delivered is None else "not_logged")
    stored = slot.point.blocks
    verdict = compare_reply(delivered, stored)
    return replace(verdict, echo=compare_echo(stored, echoed))


def echo_of(traffic: Traffic, this: Heard, following: Heard) -> tuple[Block, ...] | None:
    """The assistant's blocks that the next request of a lineage puts right behind this request's messages."""
    if this.api is None or following.api is not this.api:
        return None
    body = traffic.effective(following.key)
    count = len(traffic.prints(this.key))
    if (
        body is None
        or traffic.prints(following.key)[: max(count - 1, 0)] != traffic.prints(this.key)[: max(count - 1, 0)]
    ):
        return None
    blocks: list[Block] = []
    for message in this.api.messages(body)[count:]:
        if message.role not in ("assistant", "model"):
            break
        blocks += message.blocks
    return tuple(blocks) or None
