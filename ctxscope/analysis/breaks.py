"""What became of the parent's cached prefix: cold, warm, broken or missed, why, and what it cost (DESIGN §2, Caching)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ctxscope.analysis.break_causes import LEVELS, Cause, Prompts, causes, message_of
from ctxscope.analysis.parents import prompt, shared
from ctxscope.analysis.prefixes import common_prefix
from ctxscope.model import Body, CacheState, CacheVerdict, Confidence, Segment, Usage

_REWRITING = frozenset(
    {"compaction", "micro", "defrag", "prune", "shake", "strip", "restore", "resume", "model_switch"}
)
"""Markers after which a conversation goes on although nothing of it may be left as it was."""
_TELLING = 200
"""Prompt bytes from which one shared message proves that two calls belong to one task; less repeats by chance."""
_TAIL = 2
"""Segments at the end of the parent's prompt that prove the same when they stand together in the call's."""
_STEP, _SLACK = 128, 2048
"""Automatic caches report multiples of 128 tokens and may lag one interval of 2048 behind (prompt_caching §3.2, §3.4)."""


@dataclass(frozen=True, slots=True)
class _Case:
    pair: Prompts
    depth: int
    """Segments both prompts begin with."""
    boundary: int
    """Segments of the parent's prompt up to the last place where its provider could have kept it."""
    marked: bool
    """The parent's boundary is one its client set; then what it read and wrote says exactly what was kept."""
    usage: Usage | None
    parent_usage: Usage | None
    gap: float | None
    says: str | None

    @property
    def read(self) -> int | None:
        return self.usage.cache_read if self.usage else None

    def tokens(self, size: int) -> int | None:
        """Prompt bytes as tokens, by what the parent's prompt really cost; ``None`` when that was not reported."""
        total = _size(self.pair.theirs)
        reported = self.parent_usage.reported if self.parent_usage else None
        return round(size * reported / total) if reported and total else None


def judge_cache(
    call: Body | None,
    parent: Body | None,
    *,
    usage: Usage | None = None,
    parent_usage: Usage | None = None,
    branched: bool = False,
    markers: tuple[str, ...] = (),
    gap_seconds: float | None = None,
    provider_says: str | None = None,
) -> CacheVerdict:
    """Judge a call's effective request against its parent's.

    ``call`` None: the effective request is not known. ``parent`` None: no earlier call shares a prefix. ``branched``:
    the log shows that this call left the parent's branch on purpose. ``markers``: kinds of the markers right before it.
    ``gap_seconds`` runs from the start of the parent's request to the start of this one. The verdict's ``path`` is the
    first segment of the parent's prompt that this call does not continue, or the parameter that changed.
    """
    read = usage.cache_read if usage else None
    if call is None or _opaque(call) or (parent is not None and _opaque(parent)):
        why = "the request, or its parent, cannot be read"
        return CacheVerdict("unknown", reported_read=read, provider_says=provider_says, why=why)
    if parent is None:
        return _first(read, provider_says)
    mine, theirs = prompt(call), prompt(parent)
    depth = shared([s.digest for s in mine], [s.digest for s in theirs])
    boundary, marked = _boundary(parent, theirs)
    pair = Prompts(call, parent, mine, theirs, markers)
    case = _Case(pair, depth, boundary, marked, usage, parent_usage, gap_seconds, provider_says)
    if branched or not _same_task(pair, depth):
        return _apart(case, branched=branched)
    found = [c for c in causes(pair) if _start(case, c) < boundary]
    if found and not _extended(case, found):
        return _broken(case, found)
    return _intact(case)


def _opaque(body: Body) -> bool:
    return body.api is None or any(s.kind == "opaque" for s in body.segments)


def _size(segments: Sequence[Segment]) -> int:
    return sum(s.prompt_bytes for s in segments)


def _boundary(parent: Body, theirs: Sequence[Segment]) -> tuple[int, bool]:
    """Segments of the parent's prompt its provider could have kept, and whether its client set that boundary.

    Anthropic: up to the last breakpoint (or the end, with a mark for the whole request). Everyone else caches up to a
    message's end by itself; so does a host that speaks Anthropic's API and is sent no marks, if it caches at all.
    """
    if parent.api == "anthropic-messages":
        last = max((n for n, s in enumerate(theirs, 1) if s.breakpoint), default=0)
        if any(s.path == "/cache_control" for s in parent.segments):
            last = len(theirs)
        if last:
            return last, True
    return len(theirs), False


def _same_task(pair: Prompts, depth: int) -> bool:
    """Whether two calls belong to one conversation, or merely share tools and system.

    They do when they share enough messages (the first, the last two, half of them, or a long one), when the log says
    that the history was rewritten in between, or when the parent has nothing but a head.
    """
    mine, theirs = pair.kind("message")
    if _REWRITING.intersection(pair.markers) or not theirs or depth == len(pair.mine):
        return True
    if mine and mine[0].digest == theirs[0].digest:
        return True
    here = {s.digest: n for n, s in enumerate(mine)}
    tail = [s.digest for s in theirs[-_TAIL:]]
    at = here.get(tail[-1], -1) + 1
    if at >= len(tail) == _TAIL and [s.digest for s in mine[at - _TAIL : at]] == tail:
        return True
    common = [s for s in theirs if s.digest in here]
    return 2 * len(common) >= len(theirs) or sum(s.prompt_bytes for s in common) >= _TELLING


# --- verdicts --------------------------------------------------------------------------------------------------------


def _first(read: int | None, says: str | None) -> CacheVerdict:
    if read:
        why = f"no earlier call seen here shares a prefix, yet {read} tokens were read: another session wrote them"
        return CacheVerdict("warm", confidence="confirmed", reported_read=read, provider_says=says, why=why)
    confidence: Confidence = "confirmed" if read == 0 else "consistent"
    why = "no earlier call shares a prefix"
    return CacheVerdict("cold", "first_call_cold", (), confidence, reported_read=read, provider_says=says, why=why)


def _apart(case: _Case, *, branched: bool) -> CacheVerdict:
    """A branch left on purpose or another task: what it shares may be read, what it leaves is no loss."""
    what = "a branch left on purpose" if branched else "another task that shares only the head"
    read = case.read
    if read == 0 or case.depth == 0:
        why = f"{what}; nothing of the earlier call was read"
        return CacheVerdict(
            "cold",
            reported_read=read,
            lost_tokens=0,
            provider_says=case.says,
            why=why,
            confidence="confirmed" if read == 0 else "consistent",
        )
    confidence: Confidence = "confirmed" if read else "consistent"
    return CacheVerdict(
        "warm",
        reported_read=read,
        lost_tokens=0,
        provider_says=case.says,
        why=what,
        confidence=confidence,
        facts=_facts(case),
    )


def _broken(case: _Case, found: list[Cause]) -> CacheVerdict:
    """The change that comes first in cache order is to blame; changes behind it are named in the words only."""
    first = min(c.at for c in found)
    fitting = [c for c in found if c.at == first]
    blamed, names = fitting[0], tuple(dict.fromkeys(c.name for c in fitting))
    at = _start(case, blamed)
    kept = _size(case.pair.theirs[:at])
    left = case.tokens(kept)
    also = list(dict.fromkeys(c.name for c in found if c is not blamed))
    return CacheVerdict(
        verdict="break",
        cause=blamed.name,
        candidates=names,
        confidence=_confidence(case, names, kept),
        path=blamed.path or case.pair.theirs[at].path,
        prefix_offset=kept + (0 if blamed.path else _inside(case, at)),
        expected_read=None if left is None else (0, left),
        reported_read=case.read,
        lost_tokens=case.tokens(_size(case.pair.theirs[at : case.boundary])),
        provider_says=case.says,
        why=blamed.why + (f"; also: {', '.join(also)}" if also else ""),
        facts=_facts(case),
    )


def _start(case: _Case, cause: Cause) -> int:
    """Segments of the parent's prompt before what a cause takes away."""
    if not cause.path:
        return case.depth
    level = cause.at[0]
    return min(case.depth, sum(LEVELS[s.kind] < level for s in case.pair.theirs))


def _confidence(case: _Case, names: tuple[str, ...], kept: int) -> Confidence:
    """``confirmed`` when less was read than the parent had kept, or no more than what is left of its prefix."""
    if len(names) > 1:
        return "ambiguous"
    read, exact, left = case.read, _exact(case), case.tokens(kept)
    if read is None:
        return "consistent"
    if exact is not None:
        return "confirmed" if read < exact else "ambiguous"
    before = case.parent_usage.cache_read if case.parent_usage else None
    if before is not None and read < before:
        return "confirmed"
    return "confirmed" if left is not None and read <= left + _STEP else "consistent"


def _inside(case: _Case, at: int) -> int:
    """Equal bytes at the start of the first segment that differs, as sent."""
    if at >= min(len(case.pair.mine), len(case.pair.theirs)):
        return 0
    new, old = case.pair.mine[at], case.pair.theirs[at]
    room = min(new.end - new.start, old.end - old.start, new.prompt_bytes, old.prompt_bytes)
    return common_prefix(case.pair.call.data, case.pair.parent.data, new.start, old.start, room)


def _extended(case: _Case, found: list[Cause]) -> bool:
    """Whether the only change is that the parent's last message goes on: its bytes are still a prefix."""
    at = case.depth
    if case.marked or len(found) > 1 or found[0].path or at != len(case.pair.theirs) - 1 or at >= len(case.pair.mine):
        return False
    new, old = case.pair.mine[at], case.pair.theirs[at]
    same_place = (new.kind, new.role, new.block) == (old.kind, old.role, old.block)
    body = case.pair.parent.data[old.start : old.end].removesuffix(b'"')
    text = case.pair.call.data[new.start : new.start + len(body)]
    return same_place and body[:1] == b'"' and text == body and message_of(new) == message_of(old)


def _exact(case: _Case) -> int | None:
    """Tokens the provider kept of the parent, when it said so: what it read plus what it wrote."""
    usage = case.parent_usage
    if not case.marked or usage is None or usage.cache_read is None or usage.cache_write is None:
        return None
    return usage.cache_read + usage.cache_write


def _intact(case: _Case) -> CacheVerdict:
    """The parent's prompt is the beginning of this one; what was read tells the rest."""
    read, exact = case.read, _exact(case)
    expected = (exact, exact) if exact is not None else _range(case)
    if read is not None and expected is not None and read < expected[0]:
        return _missed(case, expected, read)
    state: CacheState = "warm"
    confidence: Confidence = "confirmed" if read else "consistent"
    why = "the parent's prompt is the beginning of this one"
    if exact == 0 and not read:
        state, why = "cold", f"{why}, and its provider had kept nothing of it"
        confidence = "consistent" if read is None else "confirmed"
    elif read == 0:
        state, confidence = "unknown", "ambiguous"
        why = f"{why}; whether something of it should have been read cannot be told"
    elif read:
        why = f"{why} and was read"
    return CacheVerdict(
        verdict=state,
        confidence=confidence,
        expected_read=expected,
        reported_read=read,
        lost_tokens=None if state == "unknown" else 0,
        provider_says=case.says,
        why=why,
        facts=_facts(case),
    )


def _range(case: _Case) -> tuple[int, int] | None:
    """What an automatic cache should have read: the parent's prompt, less its rounding and one interval."""
    usage = case.parent_usage
    if case.marked or usage is None or usage.reported is None:
        return None
    return max(0, (usage.reported - _SLACK) // _STEP * _STEP), usage.reported


def _missed(case: _Case, expected: tuple[int, int], read: int) -> CacheVerdict:
    gap = "" if case.gap is None else f", {case.gap:.0f} s after it began"
    return CacheVerdict(
        verdict="miss",
        confidence="consistent",  # that a parent's read and write are read again in full is inferred, not documented
        expected_read=expected,
        reported_read=read,
        lost_tokens=expected[0] - read,
        provider_says=case.says,
        why=f"the parent's prompt is intact{gap}, yet only {read} of at least {expected[0]} tokens were read",
        facts=_facts(case),
    )


# --- facts -----------------------------------------------------------------------------------------------------------


def _facts(case: _Case) -> tuple[str, ...]:
    """Differences that break nothing: a breakpoint moved, the same value spelled otherwise (C09)."""
    pair, found = case.pair, []
    mine, theirs = ({(s.kind, s.order) for s in side if s.breakpoint} for side in (pair.mine, pair.theirs))
    if mine != theirs:
        found.append("a breakpoint moved")
    if _respelled(pair, case.depth):
        found.append("json_serialisation_drift")
    return tuple(found)


def _respelled(pair: Prompts, depth: int) -> bool:
    """Whether a shared segment is spelled otherwise than before, for another reason than a cache mark."""
    call, parent = pair.call.data, pair.parent.data
    same = common_prefix(call, parent)
    return any(
        new.end > same
        and not (new.breakpoint or old.breakpoint)
        and new.path == old.path
        and call[new.start : new.end] != parent[old.start : old.end]
        for new, old in zip(pair.mine[:depth], pair.theirs, strict=False)
    )
