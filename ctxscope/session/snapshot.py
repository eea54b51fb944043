"""The frozen value out: slots and verdicts into a ``Snapshot``."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from dataclasses import replace

from ctxscope.analysis.providers import UNKNOWN, Providers, Seen
from ctxscope.analysis.providers.rules import Rules
from ctxscope.model import (
    CacheVerdict,
    Call,
    Endpoint,
    EntryRef,
    ExchangeRef,
    Learnable,
    Marker,
    ReplyVerdict,
    SessionInfo,
    TokenLedger,
    Usage,
    Window,
)
from ctxscope.session.calls import Slot
from ctxscope.session.fold import SessionLog
from ctxscope.session.judge import Judged
from ctxscope.session.traffic import provider_of, seen_of

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
    told: Endpoint,
    window: Window,
) -> Call:
    """One judged call; ``told``: where it goes (see ``endpoint_of``)."""
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
        exchange=ExchangeRef(*heard.key, heard.exchange.fidelity, heard.exchange.ended) if heard else None,
        entry=EntryRef(point.place.log, point.place.at) if point else None,
        joined_by=slot.by,
        api=heard.api.name if heard and heard.api else told.api if heard is None else None,
        provider=told.provider,
        model=(heard.model if heard else None) or told.model,
        time=heard.exchange.time if heard else point.time if point else None,
        request_bytes=heard.exchange.request_bytes if heard else None,
        request_sha256=heard.sha256 if heard else None,
        rebuilt=judged.rebuilt,
        reply=reply,
        cache=cache,
        tokens=tokens,
        usage=usage,
        stop=answer.stop if answer else point.stop if point else None,
        requested_max=cap,
        at_cap=usage.output >= cap if usage and usage.output is not None and cap is not None else None,
        what=_what(slot),
        point=point.key if point else None,
        markers=tuple(markers),
        status=heard.exchange.status if heard else None,
        remarks=judged.remarks,
        window=window,
    )


def usage_of(slot: Slot) -> Usage | None:
    """What the provider reported: in the reply recorded, else as the log stored it."""
    if slot.heard is not None and slot.heard.reply is not None and slot.heard.reply.usage is not None:
        return slot.heard.reply.usage
    # another attempt than the one whose answer is stored was not told what that one cost
    return slot.point.stored_usage if slot.point and slot.kind != "retry" else None


def says_of(slot: Slot) -> str | None:
    """The provider's own word on its cache: in the reply recorded, else as the log stored it."""
    said = slot.heard.reply.diagnostics if slot.heard is not None and slot.heard.reply is not None else None
    return said or (slot.point.provider_says if slot.point and slot.kind != "retry" else None)


def endpoint_of(slot: Slot, providers: Providers) -> Endpoint:
    """API, provider and model: the provider by where the call went, else as the log calls it, else the host's name.

    Nothing but the provider for a call without a place in a log.
    """
    told = Endpoint()
    if slot.session is not None and slot.point is not None:
        told = slot.session.agent.endpoint(slot.session.log, slot.point)
    heard = slot.heard
    if heard is None:
        known = providers.identify(Seen(model=told.model, api=told.api, name=told.provider))
        return replace(told, provider=known) if known not in (UNKNOWN, told.provider) else told
    known = provider_of(heard, providers)
    return replace(told, provider=known if known != UNKNOWN else told.provider or seen_of(heard).host or None)


def rules_of(slot: Slot, providers: Providers) -> Rules:
    """What is known of the provider that was asked, by where the call went, else as the log names it."""
    heard = slot.heard
    if heard is not None:
        return providers.rules(provider_of(heard, providers), heard.model, heard.api.name if heard.api else None)
    told = endpoint_of(slot, providers)
    name = told.provider if told.provider in providers.names else UNKNOWN
    return providers.rules(name, told.model, told.api)


def _what(slot: Slot) -> str:
    blocks = slot.heard.reply.blocks if slot.heard and slot.heard.reply else ()
    if not blocks and slot.heard is None and slot.point is not None and slot.point.what is not None:
        return slot.point.what[:WHAT_CHARACTERS]
    blocks = blocks or (slot.point.blocks if slot.point and slot.point.blocks else ())
    calls = ", ".join(f"{b.name} {b.text}" for b in blocks if b.kind == "tool_call")
    text = " ".join("".join(b.text for b in blocks if b.kind == "text").split())
    if slot.heard and slot.heard.reply and slot.heard.reply.error:
        text = slot.heard.reply.error
    if slot.kind == "probe" and slot.heard:
        text = slot.heard.exchange.path
    return (calls or text)[:WHAT_CHARACTERS]


def session_info(
    session: SessionLog, recordings: Sequence[str], calls: Sequence[Call], judged: Iterable[Judged]
) -> SessionInfo:
    """A session as the report names it; its scope is the widest that all its judged calls share."""
    hypotheses: dict[str, None] = {}
    borrowed: set[Learnable] = set()
    for verdict in judged:
        hypotheses |= dict.fromkeys(verdict.hypotheses)
        borrowed |= verdict.borrowed
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
        hypotheses=tuple(hypotheses),
        config=config,
        title=session.ref.title,
        borrowed=tuple(item for item in session.agent.learnable if item in borrowed),
    )


def placed_markers(session: SessionLog, slots: Sequence[Slot], copied: Container[tuple[str, str]]) -> list[Marker]:
    """A session's markers with the number of the first call after each; not those before a call it only copied."""
    at: dict[str, int] = {}
    for slot in slots:
        if slot.session is session and slot.point is not None:
            at.setdefault(slot.point.key, slot.n)
    return [
        replace(m, call=at.get(m.point) if m.point else None, session=session.ref.id)
        for m in session.agent.markers(session.log)
        if m.point is None or (session.ref.id, m.point) not in copied
    ]
