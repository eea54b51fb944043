"""One call with its bytes on every side: built when looked at, never kept in a snapshot."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ctxscope import wire
from ctxscope.agents import Before
from ctxscope.analysis.calibration import WHOLE, shares
from ctxscope.analysis.coverage import segment_provenance
from ctxscope.analysis.sidecars import content_of
from ctxscope.analysis.token_sums import Unread
from ctxscope.analysis.tokens import Counter
from ctxscope.model import (
    Body,
    Call,
    CallView,
    Config,
    Learned,
    Piece,
    Scope,
    Sidecar,
    SidecarView,
    Substitution,
)
from ctxscope.session.calls import Slot
from ctxscope.session.judge import Judge, as_body
from ctxscope.session.logged import MOST_CHARACTERS
from ctxscope.session.replies import echo_of
from ctxscope.session.traffic import Traffic
from ctxscope.wire.body import make_body

_BEFORE = 24
"""Characters of a text shown before the place where it parts from another."""


@dataclass(frozen=True, slots=True, eq=False)
class LogSide:
    """The request a log implies."""

    body: Body
    implied: Body | None
    """With all that it goes on from; ``None`` when that is not known."""
    pieces: tuple[Piece, ...]
    notices: tuple[str, ...] = ()
    """What the agent's module could not know of it."""
    scope: Scope = "body"


@dataclass(frozen=True, slots=True, eq=False)
class Sides:
    """Both requests of a call, where they exist."""

    served: Body | Unread | None
    rebuilt: Body | Unread | None


def log_side(judge: Judge, slot: Slot, before: Before, config: Config, kin: Body | None = None) -> LogSide | None:
    """The rebuilt request at a slot, against its exchange where it has one; ``None`` when the agent cannot say.

    ``kin``: another request of the conversation, whose segments are shared.
    """
    assert slot.session is not None
    assert slot.point is not None
    if slot.heard is not None:
        _, rebuilt = judge.rebuild(slot.session, slot.point, slot.heard, before, config)
        served = judge.traffic.body(slot.heard.key)
        if rebuilt is None:
            return None
        body = as_body(rebuilt, served, slot.heard)
        pieces = rebuilt.pieces if slot.heard.exchange.fidelity == "bytes" else ()  # respelt, they do not make it up
        return LogSide(body, judge.implied(slot.heard, body), pieces, rebuilt.notices, rebuilt.scope)
    rebuilt = slot.session.agent.rebuild(slot.session.log, slot.point, config, Learned())
    if rebuilt is None:
        return None
    name = slot.session.agent.endpoint(slot.session.log, slot.point).api
    kin = kin if kin is not None and kin.api == name else None
    body = make_body(rebuilt.data, wire.by_name(name) if name else None, kin)
    return LogSide(body, body, rebuilt.pieces, rebuilt.notices, rebuilt.scope)


def view(
    call: Call,
    slot: Slot,
    side: LogSide | None,
    slots: Sequence[Slot],
    traffic: Traffic,
    counter: Counter,
    follower: Slot | None,
) -> CallView:
    """Everything about one call."""
    heard = slot.heard
    served = traffic.body(heard.key) if heard else None
    effective = traffic.effective(heard.key) if heard and heard.api else None
    parent = slots[call.parent - 1] if call.parent else None
    previous = traffic.effective(parent.heard.key) if parent and parent.heard else None
    shown = effective or (side.body if side else None)
    difference = call.rebuilt.first_difference
    # What differs in a request that this one goes on from is not in its own bytes: then the whole ones stand side by side.
    whole = difference is not None and difference.effective
    counted = counter.segment_tokens(shown) if shown else {}
    echoed = echo_of(traffic, heard, follower.heard) if heard and follower and follower.heard else None
    return CallView(
        call=call,
        served=effective if whole else served,
        rebuilt=None if side is None else side.implied if whole else side.body,
        pieces=side.pieces if side and not whole else (),
        previous=previous,
        previous_n=call.parent if previous else None,
        effective=effective,
        delivered=heard.exchange.response() if heard and heard.exchange.response_bytes is not None else None,
        delivered_blocks=heard.reply.blocks if heard and heard.reply else None,
        stored_blocks=slot.point.blocks if slot.point else None,
        echoed_blocks=echoed,
        echoed_n=follower.n if echoed and follower else None,
        unchanged_since=_unchanged_since(slot, shown, slots),
        segment_tokens=counted,
        segment_media=counter.segment_images(shown) if shown else {},
        segment_envelopes=counter.segment_envelopes(shown) if shown else {},
        calibrated_tokens=_calibrated(call, effective, counted, counter),
        provenance=segment_provenance(served, side.body, side.pieces) if served and side and side.pieces else {},
    )


def beside(found: Iterable[tuple[Sidecar, Substitution]]) -> tuple[SidecarView, ...]:
    """Sidecars with as much of their texts as a list and the lines below it can show."""
    return tuple(
        SidecarView(each, _piece(content_of(told.clean).text, each), _piece(content_of(told.stored).text, each))
        for told, each in found
    )


def _piece(text: str, each: Substitution) -> str:
    start = max((each.differs_at or 0) - _BEFORE, 0)
    return ("…" if start else "") + text[start : start + MOST_CHARACTERS]


def _calibrated(call: Call, given: Body | None, counted: Mapping[str, int], counter: Counter) -> dict[str, int]:
    """Tokens by segment that add up to what was reported; nothing where not all that was sent is known."""
    if given is None or call.exchange is None or call.exchange.fidelity not in WHOLE:
        return {}
    return shares(counted, counter.segment_images(given), call.tokens.reported)


def _unchanged_since(slot: Slot, shown: Body | None, slots: Sequence[Slot]) -> dict[str, int]:
    """For each segment the first earlier served call that already held it unchanged."""
    if shown is None:
        return {}
    wanted = {s.digest for s in shown.segments if s.kind != "param"}
    first: dict[bytes, int] = {}
    for earlier in slots[: slot.n - 1]:
        for segment in earlier.heard.segments if earlier.heard else ():
            if segment.digest in wanted:
                first[segment.digest] = earlier.n
                wanted.discard(segment.digest)
    return {s.path: first[s.digest] for s in shown.segments if s.kind != "param" and s.digest in first}
