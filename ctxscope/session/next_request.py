"""The request an agent would send next if it were started anew, and what its prompt cache would lose by that."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from ctxscope import wire
from ctxscope.agents import Before, Log
from ctxscope.analysis.breaks import judge_cache
from ctxscope.analysis.evidence import Around
from ctxscope.analysis.log_breaks import judge_logged
from ctxscope.analysis.parting import parting
from ctxscope.analysis.providers.rules import Rules
from ctxscope.model import Body, CacheVerdict, Config, Learned, NextRequest, Point, Rebuilt, Resume
from ctxscope.session.calls import Slot
from ctxscope.session.fold import SessionLog
from ctxscope.session.snapshot import usage_of
from ctxscope.wire.body import make_body


@dataclass(frozen=True, slots=True, eq=False)
class Last:
    """The last call of a session's conversation."""

    slot: Slot
    given: Body
    """What the model was given, as served; as rebuilt where it was not recorded."""
    logged: Body | None = None
    """What its log implies that the model was given; ``None`` when that is not known."""


def next_request(
    session: SessionLog,
    last: Last | None,
    before: Before,
    config: Config,
    rules_of: Callable[[Slot], Rules],
) -> NextRequest:
    """What a fresh process would send. ``before``: all joined calls of the session; ``last`` its last one."""
    agent = session.agent
    known = NextRequest(session.ref.id, agent.name, agent.title)
    resume = agent.resume(session.log, before)
    if resume is None:
        return replace(known, why=f"what {agent.title} sends after a restart is not known")
    log, point = _gone_on(session, resume)
    if point is None:
        return replace(known, why="the log does not show where a further input would go on")
    known = replace(known, changes=resume.changes, unknown=resume.unknown)
    learned = _learned(session, log, point, resume, last, before)
    rebuilt = agent.rebuild(log, point, config, learned)
    if rebuilt is None:
        return replace(known, why=f"what {agent.title} sends over this API is not rebuilt")
    body = _body(session, log, point, rebuilt, last)
    known = replace(
        known,
        body=body,
        pieces=rebuilt.pieces,
        scope=rebuilt.scope,
        unknown=(*resume.unknown, *rebuilt.notices),
        hypotheses=learned.hypotheses,
    )
    return known if last is None else _beside(known, body, last, rules_of)


def _beside(known: NextRequest, body: Body, last: Last, rules_of: Callable[[Slot], Rules]) -> NextRequest:
    """The next request beside the last one."""
    known = replace(known, previous=last.given, previous_n=last.slot.n)
    served, rules = last.slot.heard is not None, rules_of(last.slot)
    cache = _verdict(body, last, rules) if served else _verdict_of_log(known, body, last, rules)
    if served and cache.verdict in ("break", "unknown") and _changed_on_its_way(body, last, cache.path):
        why = f"{cache.why}; but call {last.slot.n} was served otherwise here than its log has it, as this one may be"
        cache = replace(cache, confidence="ambiguous", why=why)
    parts = parting(last.given, body, cache.path) if cache.path is not None else None
    return replace(known, previous_served=served, cache=cache, ttl=rules.ttl, difference=parts)


def _changed_on_its_way(body: Body, last: Last, path: str | None) -> bool:
    """Whether the log has the same at a place for both requests, and the last one was served with something else there."""
    served, logged, told = (_at(side, path) for side in (last.given, last.logged, body))
    return logged is not None and logged == told != served


def _at(body: Body | None, path: str | None) -> bytes | None:
    """The bytes of a segment."""
    found = next((s for s in body.segments if s.path == path), None) if body is not None else None
    return body.data[found.start : found.end] if body is not None and found is not None else None


def _gone_on(session: SessionLog, resume: Resume) -> tuple[Log, Point | None]:
    """The log as it would be when the next request is sent, and the place of that request in it."""
    log = Log(session.ref)
    for entry in session.log.versions:
        log.add(entry)
    added = set()
    for record in resume.records:
        for entry in session.agent.entries(record):
            new = replace(entry, seq=len(log.versions))
            log.add(new)
            added.add(new.key)
    session.agent.index(log)
    waiting = (p for p in reversed(session.agent.requests(log)) if p.answer is None)
    return log, next((p for p in waiting if any(e.key in added for e in p.context)), None)


def _learned(session: SessionLog, log: Log, point: Point, resume: Resume, last: Last | None, before: Before) -> Learned:
    """What the calls so far taught; what the last one showed for itself alone is taken to stay."""
    learned = Learned()
    if last is not None and last.slot.heard is not None:
        learned = session.agent.learn(log, point, last.given, _as_of(session, log, before))
    return replace(learned, choice={**learned.choice, **resume.choice}, values={**learned.values, **resume.values})


def _as_of(session: SessionLog, log: Log, before: Before) -> Before:
    """The joined calls at their points in the log as it would be: an agent may know its points by identity."""
    points = {p.key: p for p in session.agent.requests(log)}
    calls = [(points.get(p.key, p), digest) for p, digest in before.told]
    return replace(before, calls=calls)


def _body(session: SessionLog, log: Log, point: Point, rebuilt: Rebuilt, last: Last | None) -> Body:
    if last is not None and last.given.api is not None:
        body = make_body(rebuilt.data, wire.by_name(last.given.api), last.given)
        # Where the model stands in the request's path the body does not name it, and a rebuilt one has no path.
        known = body.model or last.given.model is None
        return body if known else replace(body, model=session.agent.endpoint(log, point).model)
    name = session.agent.endpoint(log, point).api
    return make_body(rebuilt.data, wire.by_name(name) if name else None, None)


def _verdict(body: Body, last: Last, rules: Rules) -> CacheVerdict:
    around = Around(markers=("resume",), continues=True)
    return judge_cache(body, last.given, rules, around, parent_usage=usage_of(last.slot))


def _verdict_of_log(known: NextRequest, body: Body, last: Last, rules: Rules) -> CacheVerdict:
    """The same where the last request was not recorded."""
    return judge_logged(body, last.given, rules, Around(markers=("resume",)), known.scope, None, usage_of(last.slot))


def last_of(
    session: SessionLog,
    slots: Sequence[Slot],
    given: Callable[[Slot], Body | None],
    logged: Callable[[Slot], Body | None],
) -> Last | None:
    """The last call of a session's conversation whose request is known: a recorded one, where there is any."""
    own = [s for s in reversed(slots) if s.session is session and s.kind == "main"]
    for slot in [s for s in own if s.heard is not None] or own[:1]:
        body = given(slot)
        if body is not None:
            return Last(slot, body, logged(slot))
    return None
