"""Why an intact prefix was not read as expected, by the names of the taxonomy (prompt_caching §12, C18 to C31).

Decided from the rules of the provider, the places of the marks, the clock and the settings beside the prompt. Where
several fit, all are given.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ctxscope.analysis.evidence import Case, asks_longer
from ctxscope.analysis.prompts import Prompt
from ctxscope.analysis.providers import UNKNOWN
from ctxscope.analysis.providers.rules import Rules
from ctxscope.analysis.respelling import respelled, respelled_at

_KEYS = ("x-api-key", "api-key", "x-goog-api-key")
"""Headers of keys that last; of what a recorder cut from them the hash remains."""
_USERS = ("user", "safety_identifier", "metadata", "user_id")
"""Members of a body that name the user it is sent for (prompt_caching §6)."""
UNEXPLAINED = "unexplained_miss"


@dataclass(frozen=True, slots=True)
class MissCause:
    """One thing that by itself explains a miss."""

    name: str
    why: str


def miss_causes(case: Case) -> list[MissCause]:
    """All that explains why less was read than an intact prefix gives; ``unexplained_miss`` when nothing does.

    Of a provider whose rules are not known, only what holds of every one: another host has what it was sent itself.
    """
    settings = case.mine.settings.params, case.theirs.settings.params
    apart = list(kept_apart(case.rules, settings, case.around.headers, case.around.upstreams))
    isolated = [MissCause("isolation_changed", why) for why, sure in apart if sure]
    if isolated or case.rules.provider == UNKNOWN or not case.rules.rows:
        return isolated
    found = [*_marks(case), *_ready(case), *_expired(case), *_routing(case), *_boundary(case), *_engine(case)]
    found += [MissCause("isolation_changed", why) for why, _ in apart]
    return found or [MissCause(UNEXPLAINED, "evicted, or sent to another machine: nothing seen here explains it")]


def kept_apart(
    rules: Rules,
    params: tuple[Mapping[str, bytes], Mapping[str, bytes]],
    headers: tuple[Mapping[str, str], Mapping[str, str]],
    hosts: tuple[str | None, str | None],
) -> Iterator[tuple[str, bool]]:
    """Why what one of two calls had kept is not read by the other (C29), and whether that is sure; pairs as in ``Around``.

    A key belongs to one organization or workspace, and these may have others. One that was not recorded tells nothing,
    nor does a token, which is renewed.
    """
    for name in rules.isolates:
        if any(side[0].get(name) != side[1].get(name) for side in (params, headers)):
            yield f"the provider keeps apart what differs in {name}", True
    now, before = hosts
    if now != before and None not in hosts:
        yield f"its parent was sent to {before}, this call to {now}", True
    for name in _KEYS:
        one, other = (side.get(name) for side in headers)
        if one != other and None not in (one, other):
            yield "its parent was sent with another key, perhaps of another organization or workspace", False


def _marks(case: Case) -> Iterator[MissCause]:
    """C21, C22: no mark from which the provider looks back far enough to find what it kept."""
    if case.rules.boundary == "message":
        yield from _message_ends(case)
    if not case.marked or case.mine.marked_whole:
        return
    mine, kept = case.mine.marks, case.theirs.marks
    if not mine:
        yield MissCause("breakpoint_missing", "this call marks nothing, so that nothing is looked for")
        return
    lookback, last = case.rules.lookback, kept[-1] if kept else None
    if lookback is None or last is None or last >= case.depth:
        return
    distances = [mark - last for mark in mine if mark >= last]
    if not distances:
        why = "all marks of this call stand before the one up to which its parent was kept"
        yield MissCause("breakpoint_missing", why)
    elif min(distances) >= lookback:
        why = f"the nearest mark stands {min(distances)} blocks behind what was kept; it looks back {lookback}"
        yield MissCause("lookback_exceeded", f"{why}, itself counted")


def _message_ends(case: Case) -> Iterator[MissCause]:
    """What is looked up where ends of messages are kept by themselves (OpenAI from 5.6 on, prompt_caching §3.2)."""
    now, before = (_only_marks(side) for side in (case.mine, case.theirs))
    if now and not case.mine.marks:
        yield MissCause("breakpoint_missing", "only marks are kept by this call's wish, and it sets none")
    elif now and not before:
        yield MissCause(
            "boundary_not_preserved", "only marks are kept from this call on; its parent was kept by its end"
        )
    lookback = case.rules.lookback
    ends = sum(1 for s in case.mine.segments[len(case.theirs.segments) :] if s.role in ("user", "tool"))
    if lookback is not None and ends > lookback:
        why = f"{ends} ends of messages were added since its parent; {lookback} are looked at"
        yield MissCause("lookback_exceeded", why)


def _only_marks(prompt: Prompt) -> bool:
    return b'"explicit"' in bytes(prompt.settings.params.get("prompt_cache_options", b""))


def _ready(case: Case) -> Iterator[MissCause]:
    if not case.around.ready:
        event = "began" if case.rules.ready == "first_byte" else "ended"
        yield MissCause("concurrency_not_ready", f"this call was sent before the reply to its parent {event}")


def _expired(case: Case) -> Iterator[MissCause]:
    """C25; the clock runs from the start of the request that last wrote or read."""
    rules = case.rules
    ttl = rules.ttl
    if rules.ttl_long is not None and asks_longer(case.theirs):
        ttl = rules.ttl_long
    if ttl is None or case.around.gap is None or case.around.gap <= ttl:
        return
    kept = f"{ttl:.0f} s" if rules.ttl_sure else f"about {ttl:.0f} s"
    said = rules.said("ttl")
    why = f"{case.around.gap:.0f} s after its parent, which is kept for {kept}" + (f" ({said})" if said else "")
    yield MissCause("ttl_expired", why)


def _routing(case: Case) -> Iterator[MissCause]:
    yield from _settings(case, case.rules.routes, "routing_changed", "looks elsewhere when it differs in")
    now, before = case.around.served_by
    if now is not None and before is not None and now != before:
        yield MissCause("routing_changed", f"the router had {before} serve the parent, and {now} this call")
    if _in_other_order(case):
        yield MissCause(
            "routing_changed", "the body's members stand in another order, and its beginning decides the route"
        )
    spelled = _spelled_for_routes(case)
    if spelled:
        yield MissCause(
            "routing_changed", f"the body is spelled otherwise ({spelled}), and its beginning decides the route"
        )
    if case.rules.shows("user_ids") != "benign":
        for name in _user_ids(case):
            why = f"{name} names another user, and whether this provider goes by that is not known"
            yield MissCause("routing_changed", why)


def elsewhere(case: Case) -> Iterator[str]:
    """Differences that no model sees and by which a provider may look for the prefix in another place, or does not."""
    for name in dict.fromkeys((*case.rules.routes, *case.rules.isolates)):
        if _differs(case, name):
            yield f"routing: {name}"
    if _in_other_order(case):
        yield "routing: top_level_order"
    spelled = _spelled_for_routes(case)
    if spelled:
        yield f"routing: {spelled}"
    yield from (f"user_ids: {name}" for name in _user_ids(case))


def _in_other_order(case: Case) -> bool:
    return case.rules.shows("top_level_order") == "routing" and _keys(case.mine) != _keys(case.theirs)


def _spelled_for_routes(case: Case) -> str:
    """Classes of the spelling that decides a route, where a hash of the raw body's beginning does (Vertex)."""
    if "routing" not in (case.rules.shows("whitespace"), case.rules.shows("escape")):
        return ""
    places = respelled(case.mine, case.theirs, case.depth)
    found = (respelled_at(case.mine, case.theirs, place, case.rules) for place in places)
    return next((item.words for item in found if item is not None and item.sure == "routing"), "")


def _user_ids(case: Case) -> Iterator[str]:
    """Members of the body that name a user and differ, but for those of which the rules say what they decide."""
    known = (*case.rules.routes, *case.rules.isolates)
    yield from (name for name in _USERS if name not in known and _differs(case, name))


def _keys(prompt: Prompt) -> tuple[str, ...]:
    """Top-level members in the order of the body."""
    return tuple(dict.fromkeys(s.path.split("/")[1] for s in prompt.listed if s.path))


def _settings(case: Case, names: tuple[str, ...], cause: str, what: str) -> Iterator[MissCause]:
    yield from (MissCause(cause, f"the provider {what} {name}") for name in names if _differs(case, name))


def _differs(case: Case, name: str) -> bool:
    """Whether a parameter or header differs."""
    now = case.mine.settings.params.get(name), case.around.headers[0].get(name)
    return now != (case.theirs.settings.params.get(name), case.around.headers[1].get(name))


def _boundary(case: Case) -> Iterator[MissCause]:
    """C28: the parent's last message goes on, so that what was kept ends inside it."""
    ends_inside = case.depth == len(case.theirs.segments) - 1 and case.depth < len(case.mine.segments)
    if case.rules.boundary in ("message", "unit") and ends_inside:
        yield MissCause(
            "boundary_not_preserved", "the parent's last message goes on here, and nothing is kept inside one"
        )


def _engine(case: Case) -> Iterator[MissCause]:
    if case.rules.mode == "slots" and case.around.evicted_by is not None:
        yield MissCause("engine_limit", f"evicted by call {case.around.evicted_by}, if they share a slot")
