"""What a compaction did, in words for a person."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ctxscope.model import Call, Compaction, Place, TailCut

_MOST_PLACES = 6


@dataclass(frozen=True, slots=True)
class Followed:
    """The calls after an event, the first one counted."""

    calls: int
    ended: bool = False
    """Another compaction came after them; else they are all so far."""


def words_of(found: Compaction, before: Call | None, broken: Call | None, followed: Followed) -> tuple[str, ...]:
    """A sentence each; what is not known is left out.

    ``before``: the last call before it; ``broken``: the first after it, where that lost its cache for another cause.
    """
    parts = (_phantom(found, before), _kept(found), _tail(found), _versions(found), _told(found), _tokens(found))
    return tuple(s for part in (*parts, _cost(found), _other(broken), _paid(found, followed)) for s in part)


def _phantom(found: Compaction, before: Call | None) -> Iterator[str]:
    if found.phantom and before is not None:
        yield f"It fired on phantom bytes: {phantom_words(found, before)}."


def phantom_words(found: Compaction, before: Call) -> str:
    """The three figures of a compaction that was due by the agent's count alone, a clause."""
    figure = found.told.marker.before_tokens
    figure = before.tokens.agent if figure is None else figure
    really = "reported" if before.tokens.reported is not None else "visible"
    counts = f"estimated {_n(figure)}, {really} {_n(before.filled)}"
    if before.tokens.reported is not None and before.tokens.visible is not None:
        counts += f", visible {_about(before.tokens.visible, before)}"
    return f"{counts}, threshold {_n(before.window.threshold)}"


def lost_words(found: Compaction) -> str:
    """The messages it put out of sight, and which of them an envelope in its tail budget cost; empty where there are none."""
    lost = found.told.marker.dropped
    if not lost:
        return ""
    words = f"{_many(len(lost), 'message')} lost to it: {places(lost)}"
    if found.lost:
        words += f"; {len(found.lost):,} of them by the envelope in its tail budget: {places(found.lost)}"
    return words


def _kept(found: Compaction) -> Iterator[str]:
    told = found.told
    if not told.messages or told.head is None or told.cut is None:
        return
    head, tail = told.head, len(told.messages) - told.cut
    middle = len(told.messages) - head - tail
    yield (
        f"Of {_many(len(told.messages), 'message')} it kept {_n(head)} at the start and {_n(tail)} at the end, "
        f"and put a summary in place of {_n(middle)}."
    )


def _tail(found: Compaction) -> Iterator[str]:
    told, ruled, clean = found.told, _own(found, envelope=True), _own(found, envelope=False)
    if ruled is None or clean is None or told.cut is None:
        return
    rule = f"The rule of {ruled.version} ({_n(told.budget)} tokens for the tail)"
    if ruled.at != told.cut:
        yield f"{rule} would cut before message {ruled.at + 1}; it was cut before message {told.cut + 1}."
    elif found.lost:
        yield (
            f"{rule} cuts there because of the envelope: without opaque reasoning bytes it would have kept "
            f"{_many(len(found.lost), 'message')} more ({places(found.lost)})."
        )
    else:
        yield f"{rule} cuts there, with the envelope and without."


def _versions(found: Compaction) -> Iterator[str]:
    own = _own(found, envelope=True)
    for rule in found.told.rules:
        if own is not None and not rule.own and rule.envelope and rule.at != own.at:
            kept = own.at - rule.at
            yield f"{rule.version} would keep {_many(abs(kept), 'message')} {'more' if kept > 0 else 'fewer'}."


def _own(found: Compaction, *, envelope: bool) -> TailCut | None:
    return next((r for r in found.told.rules if r.own and r.envelope == envelope), None)


def _told(found: Compaction) -> Iterator[str]:
    told, marker = found.told, found.told.marker
    pairs = (
        ("before", marker.before_tokens, told.reckoned_before),
        ("after", marker.after_tokens, told.reckoned_after),
    )
    for when, theirs, ours in pairs:
        if theirs is None and ours is not None:
            yield f"Tokens {when}, by the agent's estimator reproduced: {_n(ours)}."
        elif theirs is not None:
            differs = "" if ours is None else f"; its estimator reproduced gives {_n(ours)} ({ours - theirs:+,})"
            yield f"Tokens {when}, by the agent: {_n(theirs)}{'; its estimator gives the same' if ours == theirs else differs}."


def _tokens(found: Compaction) -> Iterator[str]:
    if found.tokens_before is None or found.tokens_after is None:
        return
    mark = "≈" if found.counted else ""
    yield f"The calls around it were given {mark}{_n(found.tokens_before)} and {mark}{_n(found.tokens_after)} tokens."


def _cost(found: Compaction) -> Iterator[str]:
    usage, parts = found.usage, []
    if usage is not None and usage.reported is not None:
        read = f" ({_n(usage.cache_read)} of them read)" if usage.cache_read else ""
        parts.append(f"its own request took {_n(usage.reported)} tokens{read} and gave {_n(usage.output)}")
    if found.seconds is not None:
        by = "as the agent says" if found.seconds_by == "agent" else "from request to reply"
        parts.append(f"it held the user {found.seconds:,.1f} s, {by}")
    if found.rebilled is not None and found.told.marker.call is not None:
        parts.append(f"{found.billed_again} tokens were billed again after it")
    if parts:
        words = "; ".join(parts)
        yield f"{words[0].upper()}{words[1:]}."


def _other(broken: Call | None) -> Iterator[str]:
    if broken is None:
        return
    cache = broken.cache
    causes = cache.candidates if len(cache.candidates) > 1 else (cache.cause, *cache.candidates)[:1]
    named = " or ".join(cause for cause in causes if cause is not None)
    if named:
        yield f"The {cache.verdict} at call {broken.n} has another cause: {named}."


def _paid(found: Compaction, followed: Followed) -> Iterator[str]:
    if found.saving is not None and found.saving <= 0:
        yield "It does not pay for itself: the prompt after it is no smaller."
    elif found.break_even is not None:
        most = "at most " if found.rebilled_at_most else ""
        takes, came = f"{most}{_many(found.break_even, 'call')}", _many(followed.calls, "call")
        if followed.calls >= found.break_even:
            until = "until the next compaction" if followed.ended else "so far"
            yield f"It has paid for itself after {takes} ({came} {until})."
        elif followed.ended:
            yield f"It had not paid for itself when the next compaction came, {came} later: that takes {takes}."
        else:
            yield f"It would pay for itself after {takes} ({came} so far)."


def places(some: Sequence[Place]) -> str:
    """Where messages stand, the first few by name."""
    shown = ", ".join(place.at for place in some[:_MOST_PLACES])
    return shown + (f" and {len(some) - _MOST_PLACES} more" if len(some) > _MOST_PLACES else "")


def _about(count: int, call: Call) -> str:
    return f"≈{_n(count)}" if call.tokens.estimated else _n(count)


def _many(count: int, noun: str) -> str:
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def _n(count: int | None) -> str:
    return "–" if count is None else f"{count:,}"
