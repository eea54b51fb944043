"""The frozen value out: slots and verdicts into a ``Snapshot``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import groupby

from ctxscope.model import (
    CacheVerdict,
    Call,
    EntryRef,
    ExchangeRef,
    Finding,
    Marker,
    Point,
    ReplyVerdict,
    SessionInfo,
    TokenLedger,
    Totals,
    Usage,
)
from ctxscope.session.calls import Slot
from ctxscope.session.fold import SessionLog
from ctxscope.session.judge import Judged

WHAT_CHARACTERS = 160
"""As much of an answer as a row can show."""


def call_of(
    slot: Slot,
    judged: Judged,
    reply: ReplyVerdict,
    cache: CacheVerdict,
    tokens: TokenLedger,
    parent: int | None,
    markers: Sequence[str],
) -> Call:
    """One judged call."""
    heard, point = slot.heard, slot.point
    answer = heard.reply if heard else None
    usage = usage_of(slot)
    cap = heard.requested_max if heard else None
    return Call(
        n=slot.n,
        session=slot.session.ref.id if slot.session else None,
        turn=slot.turn,
        lineage=slot.lineage,
        parent=parent,
        kind=slot.kind,
        exchange=ExchangeRef(*heard.key) if heard else None,
        entry=EntryRef(point.place.log, point.place.at) if point else None,
        joined_by=slot.by,
        api=heard.api.name if heard and heard.api else point.data.get("wire_api") if point else None,
        provider=provider_of(slot),
        model=(heard.model if heard else None) or (point.data.get("model") if point else None),
        time=heard.exchange.time if heard else point.time if point else None,
        request_bytes=heard.exchange.request_bytes if heard else None,
        request_sha256=heard.sha256 if heard else None,
        rebuilt=judged.rebuilt,
        reply=reply,
        cache=cache,
        tokens=tokens,
        usage=usage,
        stop=answer.stop if answer else point.data.get("stop") if point else None,
        requested_max=cap,
        at_cap=usage.output >= cap if usage and usage.output is not None and cap is not None else None,
        what=_what(slot),
        point=point.key if point else None,
        markers=tuple(markers),
        status=heard.exchange.status if heard else None,
    )


def usage_of(slot: Slot) -> Usage | None:
    """What the provider reported: in the reply recorded, else as the log stored it."""
    if slot.heard is not None and slot.heard.reply is not None and slot.heard.reply.usage is not None:
        return slot.heard.reply.usage
    return slot.point.stored_usage if slot.point else None


def provider_of(slot: Slot) -> str | None:
    """The provider the log names, else the upstream host; a loopback address is nobody's name."""
    if slot.point is not None and slot.point.data.get("provider"):
        return str(slot.point.data["provider"])
    host = slot.heard.exchange.headers.get("host", "") if slot.heard else ""
    name = host.rsplit(":", 1)[0].strip("[]")
    return None if name in ("", "localhost", "::1") or name.startswith("127.") else name


def _what(slot: Slot) -> str:
    blocks = slot.heard.reply.blocks if slot.heard and slot.heard.reply else ()
    blocks = blocks or (slot.point.blocks if slot.point and slot.point.blocks else ())
    calls = ", ".join(f"{b.name} {b.text}" for b in blocks if b.kind == "tool_call")
    text = " ".join("".join(b.text for b in blocks if b.kind == "text").split())
    if slot.heard and slot.heard.reply and slot.heard.reply.error:
        text = slot.heard.reply.error
    if slot.kind == "probe" and slot.heard:
        text = slot.heard.exchange.path
    return (calls or text)[:WHAT_CHARACTERS]


def session_info(
    session: SessionLog, recordings: Sequence[str], calls: Sequence[Call], hypotheses: Iterable[str]
) -> SessionInfo:
    """A session as the report names it; its scope is the widest that all its judged calls share."""
    scopes = {c.rebuilt.scope for c in calls if c.session == session.ref.id and c.rebuilt.scope}
    order = ("semantic", "messages", "body")
    config = session.agent.config(session.log)
    return SessionInfo(
        id=session.ref.id,
        agent=session.agent.name,
        agent_version=config.agent_version,
        directory=session.ref.directory,
        log=tuple(str(p) for p in session.ref.paths),
        recordings=tuple(recordings),
        scope=next((s for s in order if s in scopes), "none"),
        hypotheses=tuple(dict.fromkeys(hypotheses)),
        config=config,
        title=session.ref.title,
    )


def placed_markers(session: SessionLog, slots: Sequence[Slot]) -> list[Marker]:
    """A session's markers with the number of the first call after each."""
    at: dict[str, int] = {}
    for slot in slots:
        if slot.session is session and slot.point is not None:
            at.setdefault(slot.point.key, slot.n)
    return [
        replace(m, call=at.get(m.point) if m.point else None, session=session.ref.id)
        for m in session.agent.markers(session.log)
    ]


def findings_of(calls: Sequence[Call], dead: Sequence[tuple[SessionLog, Point]]) -> list[Finding]:
    """What a person should look at, by code; the families of checks come with ``check``."""
    found = [f for call in calls for f in _call_findings(call)]
    found += [
        Finding("CTX104", "warning", (), None, f"{p.place}: an input that no call followed", f"session {s.ref.id}")
        for s, p in dead
    ]
    return found


def _call_findings(call: Call) -> Iterable[Finding]:
    here = (call.n,)
    difference = call.rebuilt.first_difference
    if call.rebuilt.state == "differs" and difference is not None:
        yield Finding(
            "CTX101", "error", here, difference.path, f"served and rebuilt part: {difference.cause}", difference.served
        )
    if call.cache.verdict == "break":
        yield Finding("CTX201", "warning", here, call.cache.path, f"cache break: {call.cache.cause}", call.cache.why)
    if call.reply.state in ("differs", "empty", "prefix", "missing"):
        lost = call.reply.first_difference
        message = f"the reply stored is not the reply delivered ({call.reply.state})"
        yield Finding(
            "CTX102",
            "error" if call.reply.state != "missing" else "warning",
            here,
            lost.path if lost else None,
            message,
            lost.cause if lost else "",
        )
    if call.reply.echo == "differs":
        yield Finding(
            "CTX103", "info", here, None, "the next request does not repeat the stored reply as it stands", ""
        )
    if call.stop is not None and call.stop.state == "truncated":
        yield Finding(
            "CTX301",
            "warning",
            here,
            None,
            f"the reply was cut ({call.stop.reason})",
            "at the cap" if call.at_cap else "",
        )


def totals_of(calls: Sequence[Call]) -> Totals:
    """Sums; shares are ``None`` where nothing could be measured."""
    both = [c for c in calls if c.rebuilt.coverage is not None and c.request_bytes]
    known = sum(c.rebuilt.coverage.logged + c.rebuilt.coverage.derived for c in both if c.rebuilt.coverage)
    served = sum(c.request_bytes or 0 for c in both)
    lost = [c.cache.lost_tokens for c in calls if c.cache.lost_tokens is not None]
    return Totals(
        calls=len(calls),
        joined=sum(1 for c in calls if c.exchange and c.entry),
        equal=sum(1 for c in calls if c.rebuilt.state == "equal"),
        breaks=sum(1 for c in calls if c.cache.verdict == "break"),
        misses=sum(1 for c in calls if c.cache.verdict == "miss"),
        lost_tokens=sum(lost) if lost else None,
        coverage=known / served if served else None,
        reuse=_reuse(calls),
    )


def _reuse(calls: Sequence[Call]) -> float | None:
    """Prompt tokens sent ÷ prompt tokens that were new in their call, as reported."""
    told = [c.usage for c in calls if c.usage and c.usage.reported is not None and c.usage.cache_read is not None]
    sent = sum(u.reported or 0 for u in told)
    new = sum((u.reported or 0) - (u.cache_read or 0) for u in told)
    return sent / new if new > 0 else None


def by_session(slots: Sequence[Slot]) -> dict[int, list[Slot]]:
    """Slots by the identity of their session, in order."""
    keyed = sorted((s for s in slots if s.session is not None), key=lambda s: (id(s.session), s.n))
    return {key: list(group) for key, group in groupby(keyed, key=lambda s: id(s.session))}
