"""What a compaction did to its session: what it dropped, what it cost, and after how many calls it has paid for itself."""

from __future__ import annotations

import math
from bisect import bisect_left, insort
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace

from ctxscope.analysis.compaction_words import Followed, words_of
from ctxscope.analysis.providers.rules import Rules
from ctxscope.model import BreakRate, Call, Compacted, Compaction, TokenLedger, Usage

_TALKS = frozenset({"main", "subagent"})
_LOST = ("break", "miss")
_REWRITES = frozenset(
    [
        *("compaction", "history_rewritten", "history_truncated", "message_removed", "message_inserted"),
        *("tool_result_pruned", "image_stripped", "reasoning_stripped_client"),
    ]
)
"""Causes of a break (prompt_caching §12) that an event which shortens the history can be."""
_FREE = frozenset({"prune", "shake", "strip"})
"""Kinds of events for which no model is asked."""
_CHARACTERS = 4
"""Of a text, to a token of the agents' estimators that tell what came since (pi.md, hermes.md §6)."""
_OTHER_TOKENIZER = 2
"""A token counted with another model's tokenizer is taken for so many of its own, to be on the safe side."""


@dataclass(eq=False, repr=False)
class Around:
    """The calls of a snapshot as compactions lie among them."""

    calls: Sequence[Call]
    rules_of: Callable[[int], Rules]
    """By number of a call, how its provider keeps prompts, and at which price."""
    took: Callable[[int], float | None]
    """By number of a call, seconds from its request to the end of its reply."""
    again: Callable[[Call, Call], int | None] = lambda _, __: None
    """Of two calls, how many tokens the second was billed for anew of what stood in the first's prompt; an estimate."""
    _talks: dict[tuple[str | None, str], list[int]] = field(default_factory=dict)
    _summaries: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        for call in self.calls:
            if call.kind in _TALKS:
                self._talks.setdefault((call.session, call.lineage), []).append(call.n)
            elif call.kind == "compaction":
                self._summaries.append(call.n)

    def at(self, n: int | None) -> Call | None:
        """A call by its number."""
        return self.calls[n - 1] if n is not None and 0 < n <= len(self.calls) else None

    def before(self, session: str | None, after: Call | None) -> Call | None:
        """The call of the same lineage before one, or before the end; of a session that was rotated, the parent's last."""
        own = self._talks.get((session, after.lineage if after is not None else "main"), [])
        at = bisect_left(own, after.n) if after is not None else len(own)
        return self.at(own[at - 1]) if at else self.at(after.parent if after is not None else None)

    def calls_between(self, session: str | None, lineage: str, first: int, last: int) -> int:
        """How many calls of a lineage have numbers above ``first`` up to ``last``."""
        own = self._talks.get((session, lineage), [])
        return bisect_left(own, last + 1) - bisect_left(own, first + 1)

    def summaries(self, before: Call, after: Call | None, session: str | None) -> tuple[int, ...]:
        """Calls between two that made a summary, of a session or of none."""
        first = bisect_left(self._summaries, before.n)
        found = self._summaries[first : bisect_left(self._summaries, after.n) if after is not None else None]
        return tuple(n for n in found if self.calls[n - 1].session in (None, session, before.session))


def judged(told: Sequence[Compacted], around: Around) -> list[Compaction]:
    """Each event judged, in order. Of several before one call the last has the requests and the break of them all."""
    last = {(c.marker.session, c.marker.call): i for i, c in enumerate(told)}
    stops = _stops(told, around)
    return [_judged(c, around, stops, alone=last[c.marker.session, c.marker.call] == i) for i, c in enumerate(told)]


Stops = Mapping[tuple[str | None, str], Sequence[int]]
"""By session and lineage, numbers of the calls behind which a compaction came, rising."""


def _stops(told: Sequence[Compacted], around: Around) -> Stops:
    found: dict[tuple[str | None, str], list[int]] = {}
    for marker in (c.marker for c in told if c.marker.kind == "compaction"):
        before = around.before(marker.session, around.at(marker.call))
        if before is not None:
            insort(found.setdefault((before.session, before.lineage), []), before.n)
    return found


def _followed(after: Call, around: Around, stops: Stops) -> Followed:
    """The calls that an event was followed by, the first one after it counted, up to the next compaction."""
    own = stops.get((after.session, after.lineage), ())
    at = bisect_left(own, after.n)
    end = own[at] if at < len(own) else len(around.calls)
    return Followed(around.calls_between(after.session, after.lineage, after.n - 1, end), ended=at < len(own))


def _judged(told: Compacted, around: Around, stops: Stops, *, alone: bool) -> Compaction:
    marker = told.marker
    after = around.at(marker.call)
    before = around.before(marker.session, after)
    requests = around.summaries(before, after, marker.session) if alone and before is not None else ()
    usage = _sum(u for n in requests if (u := around.calls[n - 1].usage) is not None) or told.usage
    seconds, took = told.seconds, [around.took(n) for n in requests]
    known = [s for s in took if s is not None]
    found = Compaction(
        told,
        before=before.n if before is not None else None,
        tokens_before=before.filled if before is not None else None,
        tokens_after=after.filled if after is not None else None,
        counted=any(c is not None and c.tokens.reported is None for c in (before, after)),
        requests=requests,
        usage=usage,
        seconds=seconds if seconds is not None else sum(known) if known and len(known) == len(took) else None,
        seconds_by="agent" if seconds is not None else "exchange" if known and len(known) == len(took) else "",
    )
    if after is not None:
        found = _priced(_rebilled(found, after, around) if alone else found, after, around)
    found = replace(found, phantom=before is not None and _is_phantom(told, before))
    blameless = after is not None and after.cache.verdict in _LOST and not _is_rewritten(after)
    followed = _followed(after, around, stops) if after is not None else Followed(0)
    return replace(found, words=words_of(found, before, after if blameless else None, followed))


def _is_rewritten(call: Call) -> bool:
    """Whether the cache broke at a call since its history was rewritten, or may have."""
    cache = call.cache
    return cache.verdict == "break" and not _REWRITES.isdisjoint((cache.cause, *cache.candidates))


def _broke(after: Call) -> bool | None:
    """Whether an event broke the cache at the first call after it.

    ``None``: that call was not judged, or something else broke it; what the event alone would have done is not known.
    """
    cache = after.cache
    if cache.verdict == "break":
        return True if _is_rewritten(after) else None
    if cache.verdict == "unknown" or (cache.verdict == "cold" and cache.lost_tokens is None):
        return None
    return False


def _priced(found: Compaction, after: Call, around: Around) -> Compaction:
    """With what it cost and saves, in input tokens.

    ``cost`` = its requests (input + written x write + read x read; a reply's price is no part of the rules) + billed
    again x (write - read). ``saving`` = (prompt before - prompt after) x read: what each later call would have read of
    the larger prompt had nothing been compacted. It has paid for itself after ``cost / saving`` calls, rounded up, the
    first one after it counted.
    """
    rules = around.rules_of(after.n)
    write, read = rules.price_write, rules.price_read
    if read is None or found.tokens_before is None or found.tokens_after is None:
        return found
    saving = (found.tokens_before - found.tokens_after) * read
    free = found.told.marker.kind in _FREE and not found.requests
    request = _price(found.usage, write, read) if found.usage is not None else 0.0 if free else None
    again = _again(found, after)
    if request is None or again is None:
        return replace(found, saving=saving)
    cost = request + again
    turns = math.ceil(cost / saving) if saving > 0 else None
    return replace(found, saving=saving, cost=cost, break_even=turns)


def _rebilled(found: Compaction, after: Call, around: Around) -> Compaction:
    """With whether it broke the cache at the first call after it, and the tokens billed again there for that.

    That is what this call was billed for anew of what stood in the prompt before: a summary, the last reply and a new
    input were never billed. Where the prompts do not tell them apart, it is at most what the call lost of its parent's
    prompt, and at most what it was billed for anew.
    """
    usage, cache, broke = after.usage, after.cache, _broke(after)
    found = replace(found, broke=broke)
    if broke is None or cache.verdict == "miss" or usage is None or usage.input is None:
        return found
    if not broke:
        return replace(found, rebilled=0)
    anew, before = usage.input + (usage.cache_write or 0), around.at(found.before)
    again = around.again(before, after) if before is not None else None
    if again is not None:
        return replace(found, rebilled=min(again, anew), rebilled_estimated=True)
    if cache.lost_tokens is None:
        return found
    most, estimated = min(cache.lost_tokens, anew), cache.lost_estimated and cache.lost_tokens < anew
    return replace(found, rebilled=most, rebilled_estimated=estimated, rebilled_at_most=most > 0)


def _again(found: Compaction, after: Call) -> float | None:
    """What was billed again costs more than reading it would have, in input tokens; the cache's judge knows the prices."""
    if not found.rebilled:
        return None if found.rebilled is None else 0.0
    cache = after.cache
    return cache.extra * found.rebilled / cache.lost_tokens if cache.extra is not None and cache.lost_tokens else None


def resent(segments: Iterable[tuple[bytes, float]], earlier: Container[bytes], anew: float) -> float:
    """Tokens of a prompt's last ``anew`` that stood in an earlier prompt.

    ``segments``: digest and tokens of each, the last one first; ``earlier``: digests of the other prompt's.
    """
    total = 0.0
    for digest, tokens in segments:
        if anew <= 0:
            break
        if digest in earlier:
            total += min(tokens, anew)
        anew -= tokens
    return total


def _price(usage: Usage, write: float | None, read: float) -> float | None:
    if usage.reported is None or (usage.cache_write and write is None):
        return None
    return (usage.input or 0) + (usage.cache_write or 0) * (write or 0.0) + (usage.cache_read or 0) * read


def _sum(usages: Iterable[Usage]) -> Usage | None:
    total: Usage | None = None
    for usage in usages:
        if total is None:
            total = usage
            continue
        both = {f.name: (getattr(total, f.name), getattr(usage, f.name)) for f in fields(Usage)}
        total = Usage(**{k: None if a is None and b is None else (a or 0) + (b or 0) for k, (a, b) in both.items()})
    return total


def _is_phantom(told: Compacted, before: Call) -> bool:
    """Whether a compaction was due by the agent's count alone.

    The last prompt, its reply and what came since lie below the threshold by every measure there is, and the agent's own
    figure does not: as it told it, else as its estimator gives it where figures of its own verify that. No call was
    billed for what came since: it is taken for as many tokens as it has characters, the most that text comes to. Where
    one of these is not known, nothing is said.
    """
    limit, figure = before.window.threshold, told.marker.before_tokens
    if told.marker.kind != "compaction" or told.automatic is False or limit is None:
        return False
    figure = figure if figure is not None else _own_estimate(before.tokens)
    filled, reply = _most_given(before.tokens), _longest_reply(before)
    if figure is None or figure < limit or filled is None or reply is None or told.unseen is None:
        return False
    return filled + reply + told.unseen * _CHARACTERS < limit


def _own_estimate(counts: TokenLedger) -> int | None:
    """The agent's estimate of a prompt, unless it is only what a formula gives that no figure was met with."""
    return counts.agent if not counts.estimates or counts.estimates[0].verified else None


def _most_given(counts: TokenLedger) -> int | None:
    """Tokens of a prompt at most; ``None`` where it was neither billed nor seen whole.

    What was counted with another model's tokenizer, and no bill of the model's other calls to measure it by, is taken
    for twice as many. A request that only the log implies may lack what the log does not hold.
    """
    if counts.reported is not None:
        return counts.reported
    parts = counts.parts
    unseen = (0, 0) if parts is None else (parts.images, parts.documents)
    if counts.visible is None or None in unseen:
        return None
    by_text = counts.visible * (_OTHER_TOKENIZER if counts.estimated and counts.calibrated is None else 1)
    return max(by_text, counts.calibrated or 0) + sum(count or 0 for count in unseen)


def _longest_reply(call: Call) -> int | None:
    """Tokens of a reply: as reported, else as many as were asked for at most."""
    output = call.usage.output if call.usage is not None else None
    return output if output is not None else call.requested_max


def rates_of(compactions: Sequence[Compaction], around: Around) -> list[BreakRate]:
    """By session, kind and setting, how often such an event broke the cache, and in how many calls."""
    groups: dict[tuple[str | None, str, str], list[tuple[Compaction, int]]] = {}
    since: dict[tuple[str | None, str], int] = {}
    for found in compactions:
        marker, before = found.told.marker, around.at(found.before)
        calls = 0
        if before is not None:  # of the parent session, where this one was rotated
            where = (before.session, before.lineage)
            calls = around.calls_between(*where, since.get(where, 0), before.n)
            since[where] = max(before.n, since.get(where, 0))
        groups.setdefault((marker.session, marker.kind, found.told.setting), []).append((found, calls))
    return [_rate(*key, group) for key, group in groups.items()]


def _rate(session: str | None, kind: str, setting: str, group: Sequence[tuple[Compaction, int]]) -> BreakRate:
    """One group; a break is put down to the last of several events before its call."""
    broke = [f for f, _ in group if f.broke]
    unknown = sum(f.broke is None for f, _ in group)
    lost = [f.rebilled for f in broke if f.rebilled is not None]
    return BreakRate(
        *(session, kind, setting, len(group), len(broke)),
        calls=sum(calls for _, calls in group),
        rebilled=sum(lost) if len(lost) == len(broke) and unknown < len(group) else None,
        estimated=any(f.rebilled_estimated for f in broke),
        at_most=any(f.rebilled_at_most for f in broke),
        unknown=unknown,
    )
