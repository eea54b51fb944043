"""What became of the parent's cached prefix: cold, warm, broken or missed, why, and what it cost (DESIGN §2, Caching)."""

from __future__ import annotations

from dataclasses import replace
from itertools import compress
from operator import is_not

from ctxscope.analysis.break_causes import LEVELS, Cause, causes, other_head, same_settings
from ctxscope.analysis.evidence import MINIMUM, Case, confidence, heeded, lost
from ctxscope.analysis.parents import TELLING
from ctxscope.analysis.prefixes import common_prefix
from ctxscope.analysis.prompts import Prompt, prompt_of, shared
from ctxscope.analysis.rewrites import message_of
from ctxscope.model import Body, CacheState, CacheVerdict, Confidence, Usage

_REWRITING = frozenset(
    {"compaction", "micro", "defrag", "prune", "shake", "strip", "restore", "resume", "model_switch"}
)
"""Markers after which a conversation goes on although nothing of it may be left as it was."""
_TAIL = 2
"""Segments at the end of the parent's prompt that prove the same when they stand together in the call's."""
_FEW = 64
"""Segments that are compared one by one without looking first how far the bodies agree."""


def judge_cache(
    call: Body | Prompt | None,
    parent: Body | Prompt | None,
    *,
    usage: Usage | None = None,
    parent_usage: Usage | None = None,
    branched: bool = False,
    foreign: bool = False,
    markers: tuple[str, ...] = (),
    gap_seconds: float | None = None,
    provider_says: str | None = None,
    betas: tuple[str | None, str | None] = (None, None),
    doubts: tuple[str, ...] = (),
) -> CacheVerdict:
    """Judge a call's effective request against its parent's.

    ``call`` None: the effective request is not known. ``parent`` None: no earlier call shares a prefix. ``branched``:
    the log shows that this call left the parent's branch on purpose. ``foreign``: the log shows that the parent belongs to
    another conversation. ``markers``: kinds of the markers right before it.
    ``gap_seconds`` runs from the start of the parent's request to the start of this one. ``betas``: the
    ``anthropic-beta`` header of both. ``doubts``: what was reported that cannot be. The verdict's ``path`` is the first
    segment of the parent's prompt that this call does not continue, or the parameter that changed.
    """
    read = usage.cache_read if usage else None
    mine, theirs = _prompt(call), _prompt(parent)
    if mine is None or not mine.readable or (theirs is not None and not theirs.readable):
        why = "the request, or its parent, cannot be read"
        return CacheVerdict("unknown", reported_read=read, provider_says=provider_says, why=why, facts=doubts)
    if theirs is None:
        verdict = _first(read)
    else:
        depth = shared(mine.digests, theirs.digests)
        case = Case(mine, theirs, depth, usage, parent_usage, markers, betas, gap_seconds)
        verdict = _judged(case, branched=branched, foreign=foreign)
        if branched:
            verdict = replace(verdict, why=f"a branch left on purpose: {verdict.why}")
    return heeded(replace(verdict, reported_read=read, facts=(*verdict.facts, *doubts)), provider_says)


def _prompt(side: Body | Prompt | None) -> Prompt | None:
    return prompt_of(side) if isinstance(side, Body) else side


def _judged(case: Case, *, branched: bool, foreign: bool) -> CacheVerdict:
    boundary = case.boundary
    if not boundary:
        return _unkept(case)
    if case.depth == len(case.theirs.segments) and same_settings(case):
        return _intact(case)
    if not branched and (foreign or not _same_task(case)):
        return _apart(case, branched=False, told=foreign)
    found = [c for c in causes(case) if _start(case, c) < boundary]
    if found and not _extended(case, found):
        if branched:
            return _apart(case, branched=True, told=True)
        if case.whole and all(c.doubtful for c in found):
            changed = tuple(f"{c.why}, and all that was kept was read" for c in found)
            return replace(_intact(case), facts=(*_facts(case), *changed))
        return _broken(case, found)
    return _intact(case) if case.depth >= boundary or found else _shortened(case)


def _same_task(case: Case) -> bool:
    """Whether two calls belong to one conversation, or merely share tools and system.

    They do when they share enough messages (the first, the last two, half of them, or a long one), when the log says
    that the history was rewritten in between, or when the parent has nothing but a head. Where next to no prefix is
    shared, another model or a head of its own makes another task, whatever the messages: no cache could serve both.
    """
    mine, theirs = case.mine.of_kind("message"), case.theirs.of_kind("message")
    if _REWRITING.intersection(case.markers) or not theirs or case.depth == len(case.mine.segments):
        return True
    if case.theirs.size(0, case.depth) < TELLING and (
        case.mine.settings.model != case.theirs.settings.model or other_head(case)
    ):
        return False
    if mine and mine[0].digest == theirs[0].digest:
        return True
    here = {s.digest: n for n, s in enumerate(mine)}
    tail = [s.digest for s in theirs[-_TAIL:]]
    at = here.get(tail[-1], -1) + 1
    if at >= len(tail) == _TAIL and [s.digest for s in mine[at - _TAIL : at]] == tail:
        return True
    common = [s for s in theirs if s.digest in here]
    return 2 * len(common) >= len(theirs) or sum(s.prompt_bytes for s in common) >= TELLING


# --- nothing was lost ------------------------------------------------------------------------------------------------


def _first(read: int | None) -> CacheVerdict:
    if read:
        why = f"no earlier call seen here shares a prefix, yet {read} tokens were read: another session wrote them"
        return CacheVerdict("warm", confidence="confirmed", why=why)
    told: Confidence = "confirmed" if read == 0 else "consistent"
    return CacheVerdict("cold", "first_call_cold", (), told, why="no earlier call shares a prefix")


def _unkept(case: Case) -> CacheVerdict:
    """Nothing of the parent was kept: there was nothing to read, and nothing to break."""
    cause, why = "breakpoint_missing", "the parent marked nothing to be kept"
    if not case.unmarked:
        reported = case.parent_usage.reported if case.parent_usage else None
        cause = "below_minimum" if reported is not None and reported < MINIMUM else ""
        why = "the provider had kept nothing of the parent"
    if case.read:
        why = f"{why}, yet {case.read} tokens were read: another call wrote them"
        return CacheVerdict("warm", confidence="confirmed", lost_tokens=0, why=why)
    told: Confidence = "confirmed" if case.read == 0 else "consistent"
    return CacheVerdict("cold", cause or None, (), told, lost_tokens=0, why=why, facts=_facts(case))


def _apart(case: Case, *, branched: bool, told: bool) -> CacheVerdict:
    """A branch left on purpose or another task: what it shares may be read, what it leaves is no loss.

    ``told``: the log says so; from the bytes alone it may as well be the same conversation, its history replaced.
    """
    what = "another task that shares only the head" if case.depth else "another task, which shares nothing"
    what = "what this call does not continue is no loss" if branched else what
    read = case.read
    sure: Confidence = "confirmed" if told else "consistent"
    if read:
        why = what if case.depth else f"{what}; yet {read} tokens were read: another call wrote them"
        return CacheVerdict("warm", confidence=sure, lost_tokens=0, why=why, facts=_facts(case))
    if read == 0 or case.depth == 0:
        why = f"{what}; nothing was read" if read == 0 else what
        return CacheVerdict("cold", confidence="confirmed" if read == 0 else "consistent", lost_tokens=0, why=why)
    return CacheVerdict("warm", confidence="consistent", lost_tokens=0, why=what, facts=_facts(case))


def _shortened(case: Case) -> CacheVerdict:
    """The call sends the beginning of its parent's prompt and no more.

    What it leaves out is not lost to it, as with a branch left; the log says nothing of it. It can read no further than
    it sends, and of marked prompts only up to an entry in there: the one its parent read is known.
    """
    left = len(case.theirs.segments) - case.depth
    why = f"this call sends only the beginning of its parent's prompt, {left} segment{'s'[: left > 1]} less"
    expected, read = case.expected, case.read
    if expected is not None and case.marked:
        entry = case.parent_usage.cache_read or 0 if case.parent_usage else 0
        expected = (entry if entry <= expected[1] else 0, expected[1])
    if read is not None and expected is not None and read < expected[0]:
        return _missed(case, expected, read, why)
    return _read(case, expected, why)


def _intact(case: Case) -> CacheVerdict:
    """What was kept of the parent is the beginning of this prompt; what was read tells the rest."""
    why = "the parent's prompt is the beginning of this one"
    if case.depth < len(case.theirs.segments):
        why = "what could be kept of the parent's prompt is the beginning of this one"
    expected, read = case.expected, case.read
    if expected is None or read is None or read >= expected[0]:
        return _read(case, expected, why)
    if case.short:
        return _missed(case, expected, read, why)
    why = f"{why} and was read but for {expected[0] - read} tokens, less than a cache can lose: a matter of counting"
    return CacheVerdict(
        "warm", confidence="consistent", expected_read=expected, lost_tokens=0, why=why, facts=_facts(case)
    )


def _read(case: Case, expected: tuple[int, int] | None, why: str) -> CacheVerdict:
    """Nothing speaks against what is intact having been read."""
    state: CacheState = "warm"
    told: Confidence = "consistent"
    if case.read:
        why, told = f"{why} and was read", "confirmed"
    elif case.read == 0:
        state, told = "unknown", "ambiguous"
        why = f"{why}; whether something of it should have been read cannot be told"
    return CacheVerdict(
        state,
        confidence=told,
        expected_read=expected,
        lost_tokens=None if state == "unknown" else 0,
        why=why,
        facts=_facts(case),
    )


# --- something was lost ----------------------------------------------------------------------------------------------


def _missed(case: Case, expected: tuple[int, int], read: int, why: str) -> CacheVerdict:
    gap = "" if case.gap is None else f", {case.gap:.0f} s after it began"
    return CacheVerdict(
        verdict="miss",
        confidence="consistent",  # that a parent's read and write are read again in full is inferred, not documented
        expected_read=expected,
        lost_tokens=expected[0] - read,
        lost_estimated=expected[0] != expected[1],
        why=f"{why}{gap}, yet only {read} of at least {expected[0]} tokens were read",
        facts=_facts(case),
    )


def _broken(case: Case, found: list[Cause]) -> CacheVerdict:
    """The change that comes first in cache order is to blame; changes behind it are named in the words only."""
    first = min(c.at for c in found)
    fitting = [c for c in found if c.at == first]
    blamed, names = fitting[0], tuple(dict.fromkeys(c.name for c in fitting))
    at = _start(case, blamed)
    offset = case.theirs.size(0, at) + (0 if blamed.path else case.inside(at))
    left = case.tokens(offset)
    cost, estimated = lost(case, at)
    also = list(dict.fromkeys(c.name for c in found if c.name not in names))
    told = confidence(case, left, sure=blamed.sure) if len(names) == 1 else "ambiguous"
    why = blamed.why + (f"; also: {', '.join(also)}" if also else "")
    if case.exact is not None and case.read is not None and case.read >= case.exact:
        why += "; yet all that was kept was read"
    return CacheVerdict(
        verdict="break",
        cause=blamed.name,
        candidates=names,
        confidence=told,
        path=blamed.path or case.theirs.segments[at].path,
        prefix_offset=offset,
        expected_read=None if left is None else (0, left),
        lost_tokens=cost,
        lost_estimated=estimated and cost is not None,
        why=why,
        facts=_facts(case),
    )


def _start(case: Case, cause: Cause) -> int:
    """Segments of the parent's prompt before what a cause takes away."""
    if not cause.path:
        return case.depth
    level = cause.at[0]
    return min(case.depth, sum(LEVELS[s.kind] < level for s in case.theirs.segments))


def _extended(case: Case, found: list[Cause]) -> bool:
    """Whether the only change is that the parent's last message goes on: its bytes are still a prefix."""
    at, mine, theirs = case.depth, case.mine, case.theirs
    if case.marked or len(found) > 1 or found[0].path or at != len(theirs.segments) - 1 or at >= len(mine.segments):
        return False
    new, old = mine.segments[at], theirs.segments[at]
    same_place = (new.kind, new.role, new.block) == (old.kind, old.role, old.block)
    text = theirs.sent(at).removesuffix(b'"')
    return same_place and text[:1] == b'"' and mine.sent(at).startswith(text) and message_of(new) == message_of(old)


# --- facts -----------------------------------------------------------------------------------------------------------


def _facts(case: Case) -> tuple[str, ...]:
    """Differences that break nothing: a breakpoint moved, the same value spelled otherwise (C09)."""
    found = []
    mine, theirs = ({(s.kind, s.order) for s in map(p.segments.__getitem__, p.marks)} for p in (case.mine, case.theirs))
    if mine != theirs:
        found.append("a breakpoint moved")
    if _respelled(case):
        found.append("json_serialisation_drift")
    return tuple(found)


def _respelled(case: Case) -> bool:
    """Whether a shared segment is spelled otherwise than before, for another reason than a cache mark.

    The cutter hands a digest on from body to body as long as the bytes it was made of stay the same ones; only where
    two digests are equal and not one object can the spelling be another.
    """
    places = compress(range(case.depth), map(is_not, case.mine.digests, case.theirs.digests))
    pairs = [(case.mine.segments[i], case.theirs.segments[i]) for i in places]
    apart = [(new, old) for new, old in pairs if new.path == old.path and not (new.breakpoint or old.breakpoint)]
    if not apart:
        return False
    call, parent = case.mine.load().data, case.theirs.load().data
    if len(apart) > _FEW:
        same = common_prefix(call, parent)
        apart = [(new, old) for new, old in apart if new.end > same]
    return any(call[new.start : new.end] != parent[old.start : old.end] for new, old in apart)
