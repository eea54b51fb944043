"""What became of the parent's cached prefix: cold, warm, broken or missed, why, and what it cost (DESIGN §2, Caching)."""

from __future__ import annotations

from dataclasses import replace

from ctxscope.analysis import respelling
from ctxscope.analysis.break_causes import LEVELS, Cause, causes, other_head, same_settings
from ctxscope.analysis.costs import priced
from ctxscope.analysis.evidence import MINIMUM, Around, Case, asks_longer, confidence, contradicted, heeded, lost
from ctxscope.analysis.miss_causes import UNEXPLAINED, elsewhere, miss_causes
from ctxscope.analysis.parents import TELLING
from ctxscope.analysis.prompts import Prompt, prompt_of
from ctxscope.analysis.providers.rules import Rules
from ctxscope.analysis.rewrites import message_of
from ctxscope.analysis.server_causes import server_causes
from ctxscope.model import Body, CacheState, CacheVerdict, Confidence, Usage

_REWRITING = frozenset(
    {"compaction", "micro", "defrag", "prune", "shake", "strip", "restore", "resume", "model_switch"}
)
"""Markers after which a conversation goes on although nothing of it may be left as it was."""
_TAIL = 2
"""Segments at the end of the parent's prompt that prove the same when they stand together in the call's."""
NOTHING = Around()
"""Nothing is known but the prompts."""


def judge_cache(
    call: Body | Prompt | None,
    parent: Body | Prompt | None,
    rules: Rules,
    around: Around = NOTHING,
    *,
    usage: Usage | None = None,
    parent_usage: Usage | None = None,
    provider_says: str | None = None,
    doubts: tuple[str, ...] = (),
) -> CacheVerdict:
    """Judge a call's effective request against its parent's, by the ``rules`` of the provider that was asked.

    ``call`` None: the effective request is not known. ``parent`` None: no earlier call shares a prefix. ``doubts``: what
    was reported that cannot be. The verdict's ``path`` is the first segment of the parent's prompt that this call does not
    continue, or the parameter that changed.
    """
    read = usage.cache_read if usage else None
    mine, theirs = _prompt(call), _prompt(parent)
    if mine is None or not mine.readable or (theirs is not None and not theirs.readable):
        why = "the request, or its parent, cannot be read"
        return CacheVerdict("unknown", reported_read=read, provider_says=provider_says, why=why, facts=doubts)
    if theirs is None:
        verdict = _first(read, rules)
    else:
        depth = respelling.depth_of(mine, theirs, rules)
        verdict = _judged(Case(mine, theirs, depth, usage, parent_usage, rules, around))
        if around.branched:
            verdict = replace(verdict, why=f"a branch left on purpose: {verdict.why}")
    verdict = replace(verdict, reported_read=read, facts=(*verdict.facts, *doubts))
    longer = rules.price_write_long is not None and asks_longer(mine)
    return heeded(priced(verdict, rules, usage, longer=longer), provider_says)


def _prompt(side: Body | Prompt | None) -> Prompt | None:
    return prompt_of(side) if isinstance(side, Body) else side


def _judged(case: Case) -> CacheVerdict:
    boundary, around = case.boundary, case.around
    if not boundary:
        return _unkept(case)
    if case.depth == len(case.theirs.segments) and same_settings(case):
        return _rewritten(case) or _spelled(case) or _intact(case)
    if not around.branched and (around.foreign or not (around.continues or _same_task(case))):
        return _apart(case, branched=False, told=around.foreign)
    found = [c for c in causes(case) if _start(case, c) < boundary]
    if around.branched:  # messages were left on purpose, what stands before them was not
        head = [c for c in found if c.at[0] < LEVELS["messages"]]
        if found and not head:
            return _apart(case, branched=True, told=True)
        found = head
    if found and not _extended(case, found):
        if case.whole and all(c.doubtful for c in found):
            changed = tuple(f"{c.why}, and all that was kept was read" for c in found)
            return replace(_intact(case), facts=(*_facts(case), *changed))
        return _doubted(case, _gone_back(case, found) or _broken(case, found))
    return (_spelled(case) or _intact(case)) if case.depth >= boundary or found else _shortened(case)


def _same_task(case: Case) -> bool:
    """Whether two calls belong to one conversation, or merely share tools and system.

    They do when they share enough messages (the first, the last two, half of them, or a long one), when the log says
    that the history was rewritten in between, or when the parent has nothing but a head. Where next to no prefix is
    shared, another model or a head of its own makes another task, whatever the messages: no cache could serve both.
    """
    mine, theirs = case.mine.of_kind("message"), case.theirs.of_kind("message")
    if _REWRITING.intersection(case.around.markers) or not theirs or case.depth == len(case.mine.segments):
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


def _first(read: int | None, rules: Rules) -> CacheVerdict:
    if read and read > rules.tolerance:
        why = f"no earlier call seen here shares a prefix, yet {read} tokens were read: another session wrote them"
        return CacheVerdict("warm", confidence="confirmed", why=why)
    told: Confidence = "confirmed" if read == 0 else "consistent"
    why = "no earlier call shares a prefix" + (f"; {read} tokens are a matter of counting" if read else "")
    return CacheVerdict("cold", "first_call_cold", (), told, why=why)


def _unkept(case: Case) -> CacheVerdict:
    """Nothing of the parent was kept: there was nothing to read, and nothing to break."""
    cause, why = "breakpoint_missing", "the parent marked nothing to be kept"
    if not case.unmarked:
        reported = case.parent_usage.reported if case.parent_usage else None
        least = MINIMUM if case.rules.minimum is None else case.rules.minimum
        cause = "below_minimum" if reported and reported < least else ""
        why = "the provider had kept nothing of the parent"
        if reported == 0:  # a count of nothing for a prompt that was sent measures nothing
            why = "the provider reports no tokens at all for the parent"
            return CacheVerdict("unknown", confidence="not_measurable", why=why, facts=_facts(case))
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
        cause = None if case.depth else "first_call_cold"
        return CacheVerdict("cold", cause, (), "confirmed" if read == 0 else "consistent", lost_tokens=0, why=why)
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
    more = max(case.rules.tolerance, case.rules.step)
    if case.read and expected is not None and case.exact is not None and case.read > expected[1] + more:
        why, told = (
            f"{why} and was read, and more than it: another session wrote the rest, or counts differ",
            "ambiguous",
        )
    elif case.read and expected is None:  # how much of it could have been is not known of this provider
        why = f"{why}, and {case.read:,} tokens were read"
    elif case.read:
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
    found = miss_causes(case)
    names = tuple(dict.fromkeys(cause.name for cause in found))
    blamed = found[0] if found else None
    gap = (
        ""
        if case.around.gap is None or (blamed and blamed.name == "ttl_expired")
        else f", {case.around.gap:.0f} s after it began"
    )
    told = f": {'; or '.join(cause.why for cause in found)}" if found else ""
    return CacheVerdict(
        verdict="miss",
        cause=blamed.name if blamed else None,
        candidates=names,
        # that a parent's read and write are read again in full is inferred, not documented
        confidence="ambiguous" if len(names) > 1 else "consistent",
        expected_read=expected,
        lost_tokens=expected[0] - read,
        lost_estimated=expected[0] != expected[1],
        why=f"{why}{gap}, yet only {read} of at least {expected[0]} tokens were read{told}",
        facts=_facts(case),
    )


def _rewritten(case: Case) -> CacheVerdict | None:
    """The body only grew, and the provider renders what it had otherwise."""
    found = [c for c in server_causes(case) if _start(case, c) < case.boundary]
    if not found:
        return None
    if case.whole:
        return replace(_intact(case), facts=(*_facts(case), *(f"{c.why}, and nothing was lost" for c in found)))
    return _broken(case, found)


def _spelled(case: Case) -> CacheVerdict | None:
    """The same values in another spelling, where the provider shows it to the model, or nobody knows whether it does."""
    shown = _shown(case)
    if shown is None or shown.place >= case.boundary or case.whole:
        return None
    segment = case.theirs.segments[shown.place]
    why = f"a segment already sent is spelled otherwise now ({shown.words})"
    sure = shown.sure == "prompt"
    told = case.read is not None and (case.short or not (case.rules.promised or case.rules.mode == "unknown"))
    if sure or told:  # what was read ends before it, or is short; of a cache that promises nothing no more can be told
        place = LEVELS[segment.kind], shown.place
        verdict = _broken(case, [Cause(shown.name, why, place, place=shown.place, sure=sure, known=sure)])
        return verdict if sure else _or_missed(case, verdict)
    why += f", and {_UNSEEN}"
    return CacheVerdict("unknown", shown.name, (shown.name,), "ambiguous", segment.path, why=why, facts=_facts(case))


def _or_missed(case: Case, verdict: CacheVerdict) -> CacheVerdict:
    """A break by a spelling that may be no break, beside all that explains the same loss of an intact prefix."""
    others = [c for c in miss_causes(case) if c.name != UNEXPLAINED and c.name not in verdict.candidates]
    names = (*verdict.candidates, *dict.fromkeys(c.name for c in others))
    return replace(verdict, candidates=names, why="; or ".join((verdict.why, *(c.why for c in others))))


_UNSEEN = "whether this provider's model sees that is not known"


def _shown(case: Case) -> respelling.Respelled | None:
    """The first segment that the provider may see in another spelling; ``None`` too where what was read goes on behind."""
    shown = respelling.first_shown(case.mine, case.theirs, case.depth, case.rules)
    if shown is None:
        return None
    before = case.tokens(case.theirs.size(0, shown.place + 1))
    behind = case.read and before is not None and case.read > before + max(case.rules.tolerance, case.rules.step)
    return None if behind else shown


def _gone_back(case: Case, found: list[Cause]) -> CacheVerdict | None:
    """The call goes back in its parent's conversation and says something else there, and no log tells whether on purpose.

    It keeps whole messages of its parent, leaves a turn or more from the user's words on, repeats nothing of them and no
    reply to them, and ends in words of the user's alone: a rewind, which loses nothing, or a history cut and summed up,
    which does. Who goes back takes words of the user's back; where a reply is the first to go, its question stays unanswered.
    """
    new, old = case.mine.segments[case.depth :], case.theirs.segments[case.depth :]
    if (
        case.around.continues
        or _REWRITING.intersection(case.around.markers)
        or case.depth <= case.theirs.head
        or any(c.at[0] < LEVELS["messages"] or c.path for c in found)
        or message_of(case.theirs.segments[case.depth - 1]) == message_of(old[0])
        or (old[0].role, old[0].block) != ("user", "text")
        or not any(s.role == "assistant" for s in old)
        or not all(s.role == "user" and s.block == "text" for s in new)
        or not {s.digest for s in new}.isdisjoint(s.digest for s in old)
    ):
        return None
    told = _broken(case, found)
    why = (
        f"{told.why}; or this call goes back to an earlier message on purpose (a rewind, a branch), which loses nothing"
    )
    return replace(told, confidence="ambiguous", lost_tokens=None, lost_estimated=False, why=why)


def _doubted(case: Case, verdict: CacheVerdict) -> CacheVerdict:
    """A break before whose place a segment is spelled otherwise, which may have ended the prefix as well."""
    shown = _shown(case)
    if shown is None or shown.name in verdict.candidates:
        return verdict
    why = f"{verdict.why}; a segment before it is spelled otherwise ({shown.words}), and {_UNSEEN}"
    return replace(verdict, confidence="ambiguous", candidates=(*verdict.candidates, shown.name), why=why)


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
    if not blamed.known:
        told = "ambiguous"
    why = blamed.why + (f"; also: {', '.join(also)}" if also else "")
    if case.depth < len(case.theirs.segments) and case.around.given_intact():
        name = "redecided" if first[0] == LEVELS["messages"] else "router_or_gateway_rewrite"
        blamed, names = replace(blamed, name=name), (name,)
        why = f"{why}; what the gateway was given goes on unchanged, so the change is its own"
    if contradicted(case, left):
        why += "; yet all that was kept was read"
    return CacheVerdict(
        verdict="break",
        cause=blamed.name,
        candidates=names,
        confidence=told,
        path=blamed.path or case.theirs.segments[at].path,
        prefix_offset=offset,
        expected_read=None if left is None else case.readable(at) if not blamed.path else (0, left),
        lost_tokens=cost,
        lost_estimated=estimated and cost is not None,
        why=why,
        facts=_facts(case),
    )


def _start(case: Case, cause: Cause) -> int:
    """Segments of the parent's prompt before what a cause takes away."""
    if cause.place is not None:
        return cause.place
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
    return (*respelling.facts(case.mine, case.theirs, case.depth, case.rules), *elsewhere(case))
