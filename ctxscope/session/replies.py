"""Has each reply judged: delivered against stored, and stored against what the next request echoes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile
from typing import Any

from ctxscope.analysis.prompts import shared
from ctxscope.analysis.replies import compare_echo, compare_reply
from ctxscope.model import Block, Body, Message, ReplyVerdict
from ctxscope.session.calls import Slot
from ctxscope.session.traffic import Heard, Traffic


@dataclass(eq=False, repr=False)
class Replies:
    """Verdicts by call, each kept until what it was made from changes."""

    traffic: Traffic
    _memo: dict[Any, tuple[tuple[Any, ...], ReplyVerdict]] = field(default_factory=dict)

    def judge(self, slot: Slot, follower: Slot | None) -> ReplyVerdict:
        """One call's reply. ``follower``: the next served call of its session and lineage."""
        if slot.heard is None:
            return ReplyVerdict("not_recorded")
        following = follower.heard if follower else None
        waits = slot.session is not None and slot.session.partial
        made_from = (slot.heard, slot.point, slot.kind, following, waits)
        known = self._memo.get(slot.heard.key)
        if known is None or known[0] != made_from:
            known = (made_from, self._judge(slot, slot.heard, following, waits=waits))
            self._memo[slot.heard.key] = known
        return known[1]

    def _judge(self, slot: Slot, heard: Heard, following: Heard | None, *, waits: bool) -> ReplyVerdict:
        delivered = _delivered(heard)
        received = slot.session.agent.received if slot.session else None
        if delivered and received:
            delivered = tuple(map(received, delivered))
        if slot.point is None or slot.kind == "retry":  # what the log keeps is the answer of another attempt
            recorded = delivered is not None or heard.exchange.response_bytes  # a probe's, perhaps, of no known form
            return ReplyVerdict("not_logged" if recorded else "not_recorded")
        stored = slot.point.blocks
        if delivered == () and heard.reply is not None and not heard.reply.complete:
            delivered = None  # the recording broke off before the model said anything
        if stored is None and following is None and delivered is not None and (waits or _goes_on(delivered)):
            # The turn is under way: its line is half written, or its tools run and the log is written when they are done.
            return ReplyVerdict("not_logged")
        if delivered == () and stored != ():  # an attempt failed: the log keeps the answer of a later one at its place
            return ReplyVerdict("not_logged")
        echoed = echo_of(self.traffic, heard, following) if following else None
        if echoed and received:
            echoed = tuple(map(received, echoed))
        complete = heard.reply is None or heard.reply.complete
        return replace(compare_reply(delivered, stored, complete=complete), echo=compare_echo(stored, echoed))


def _delivered(heard: Heard) -> tuple[Block, ...] | None:
    """The blocks that came back, none for an error; ``None`` when no reply was recorded."""
    if heard.reply is None or not (heard.answered or heard.reply.error is not None):
        return None
    return heard.reply.blocks if heard.answered else ()


def _goes_on(delivered: Sequence[Block]) -> bool:
    return any(block.kind == "tool_call" for block in delivered)


def echo_of(traffic: Traffic, this: Heard, following: Heard) -> tuple[Block, ...] | None:
    """The assistant's blocks that the next request of a lineage puts right behind this request's messages."""
    if this.api is None or following.api is not this.api:
        return None
    own, body = traffic.effective(this.key), traffic.effective(following.key)
    if own is None or body is None:
        return None
    answers: Sequence[Message] = ()
    last = _last_message(own)
    if last is not None and _begins_alike(own, body, last):
        answers = this.api.messages(body, "/".join(own.segments[last].path.split("/")[:3]))
    else:
        # envelopes may be left out of what was sent before: then only the messages' visible content tells
        count = len(traffic.prints(this.key))
        if traffic.prints(following.key)[: max(count - 1, 0)] == traffic.prints(this.key)[: max(count - 1, 0)]:
            answers = this.api.messages(body)[count:]
    blocks = [b for m in takewhile(lambda m: m.role in ("assistant", "model"), answers) for b in m.blocks]
    return tuple(blocks) or None


def _last_message(body: Body) -> int | None:
    """Index of the first segment of a body's last message; ``None`` without one."""
    at = next((i for i in range(len(body.segments) - 1, -1, -1) if body.segments[i].kind == "message"), None)
    if at is None or "/" not in body.segments[at].path[1:]:
        return None
    item = "/".join(body.segments[at].path.split("/")[:3])
    while at and f"{body.segments[at - 1].path}/".startswith(f"{item}/"):
        at -= 1
    return at


def _begins_alike(own: Body, following: Body, last: int) -> bool:
    """Whether a body holds the same messages before, and some message at, the place of ``own``'s last one."""
    same = shared(own.segments[:last], following.segments)
    if same < last:
        mine, theirs = (
            [(s.path, s.digest) for s in segments if s.kind == "message"]
            for segments in (own.segments[same:last], following.segments[same:])
        )
        if mine != theirs[: len(mine)]:
            return False
    return any(s.path == own.segments[last].path for s in following.segments[last:])
