"""What became of the cached prefix of calls that nobody recorded: judged by the rebuilt requests and the usage a log keeps.

A log holds no cache marks and often no head, so that an unchanged rebuilt prompt is no proof of an unchanged served one.
What the provider reported decides where it can: a read of all that the parent read and wrote is exact arithmetic.
"""

from __future__ import annotations

from dataclasses import replace

from ctxscope.analysis.breaks import judge_cache
from ctxscope.analysis.evidence import Around, heeded
from ctxscope.analysis.miss_causes import UNEXPLAINED
from ctxscope.analysis.prompts import Prompt
from ctxscope.analysis.providers.rules import Rules
from ctxscope.model import Body, CacheVerdict, Scope, Usage

_UNSEEN = (
    "the log does not hold what else the request carried (marks, parameters, perhaps its head), which may have changed"
)


def judge_logged(
    call: Body | Prompt,
    parent: Body | Prompt | None,
    rules: Rules,
    around: Around,
    scope: Scope,
    usage: Usage | None,
    parent_usage: Usage | None,
    provider_says: str | None = None,
) -> CacheVerdict:
    """As ``judge_cache``, with rebuilt requests; ``scope``: how much of one the log implies."""
    return heeded(_judged(call, parent, rules, around, scope, usage, parent_usage), provider_says)


def _judged(
    call: Body | Prompt,
    parent: Body | Prompt | None,
    rules: Rules,
    around: Around,
    scope: Scope,
    usage: Usage | None,
    parent_usage: Usage | None,
) -> CacheVerdict:
    told = judge_cache(
        call,
        parent,
        _without_marks(rules, usage, parent_usage),
        replace(around, continues=True),
        usage=usage,
        parent_usage=parent_usage,
    )
    read = usage.cache_read if usage is not None else None
    if parent is None and read:
        why = f"{read} tokens were read, and the log shows no earlier call that this one goes on from"
        return replace(told, verdict="unknown", cause=None, candidates=(), confidence="ambiguous", why=why)
    if told.verdict == "break":
        return _broken(told, read, scope)
    if told.verdict == "miss":
        return _missed(told)
    if told.verdict == "warm" and told.confidence == "confirmed" and not _exact(told):
        return replace(told, confidence="consistent")
    if told.verdict == "warm" and read is None:
        return replace(
            told, verdict="unknown", confidence="not_measurable", lost_tokens=None, why=f"{told.why}; {_UNSEEN}"
        )
    if (
        told.verdict == "cold"
        and told.confidence == "confirmed"
        and told.cause not in ("first_call_cold", "below_minimum")
    ):
        return replace(told, verdict="unknown", confidence="ambiguous", lost_tokens=None)
    return told


def _exact(told: CacheVerdict) -> bool:
    """Whether what should have been read was known to the token: only then does a read prove what no byte here does."""
    return told.expected_read is not None and told.expected_read[0] == told.expected_read[1]


def _without_marks(rules: Rules, usage: Usage | None, parent_usage: Usage | None) -> Rules:
    """Rules under which marks that are not in the log do not count: where reads and writes are reported, these tell."""
    reported = usage is not None and usage.cache_read is not None
    told = [
        u for u in (usage, parent_usage) if u is not None and u.cache_read is not None and u.cache_write is not None
    ]
    # a client logs 0 as well where its provider reports no writes
    if len(told) == len((usage, parent_usage)) and (rules.writes or any(u.cache_write for u in told)):
        return replace(rules, mode="implicit", writes=True)
    if rules.mode == "explicit" or not reported:
        return replace(rules, mode="unknown" if reported else "implicit")
    return rules


def _broken(told: CacheVerdict, read: int | None, scope: Scope) -> CacheVerdict:
    """The log shows a changed history; the bytes that went out are not known to be those."""
    if read is None:
        why = f"{told.why}; no read was reported, and the bytes sent are not known"
        return replace(told, confidence="ambiguous", lost_tokens=None, expected_read=None, why=why)
    if told.lost_estimated and scope != "body":  # a share of a prompt whose head is not there
        told = replace(
            told, lost_tokens=None, lost_estimated=False, expected_read=None, extra=None, money=None, currency=""
        )
    sure = told.confidence == "confirmed"
    told = replace(told, confidence="consistent" if sure else told.confidence)
    if told.expected_read is not None and read > told.expected_read[1]:
        # a head that is not in the log was read too; where it is, the read speaks against the break
        told = replace(told, expected_read=None, confidence="ambiguous" if scope == "body" else told.confidence)
    return told


def _missed(told: CacheVerdict) -> CacheVerdict:
    """Less was read than was kept, and what the log holds did not change."""
    names = tuple(name for name in told.candidates if name != UNEXPLAINED)
    why = f"what the log holds of the parent's prompt is the beginning of this one: {told.why}; {_UNSEEN}"
    return replace(told, cause=names[0] if names else None, candidates=names, confidence="ambiguous", why=why)
