"""Segments that say the same in another spelling: which kind of difference it is, and what their provider makes of it."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import compress
from operator import attrgetter, is_not

from ctxscope.analysis.likeness import classes, kinds_apart
from ctxscope.analysis.prefixes import common_prefix
from ctxscope.analysis.prompts import Prompt, shared
from ctxscope.analysis.providers.rules import Rules, Visibility
from ctxscope.analysis.visible_text import visible_text
from ctxscope.analysis.volatile import only_billing
from ctxscope.model import Segment

DRIFT = "json_serialisation_drift"
"""C09: the bodies differ as bytes and not as values."""
ECHO = "assistant_echo_mismatch"
"""C19: an answer is sent back with other ids, or with its arguments written anew."""
_NAMES = (
    ("tool", ("schema_key_order", "tool_key_order"), "tool_key_order"),
    ("tool", ("number_spelling", "null_member"), "tool_schema_changed"),
    ("assistant", ("tool_call_id", "arguments_key_order", "arguments_text", "number_spelling", "null_member"), ECHO),
    ("", ("tool_call_id", "number_spelling", "null_member"), "history_rewritten"),
)
"""Causes by kind or role of a segment, and by what differs in it; the rest is ``DRIFT``."""
_FEW = 64
"""Segments that are compared one by one without looking first how far the bodies agree."""
_BILLING = b"x-anthropic-billing-header"
_AROUND = re.compile(rb'[\s\[\],]+|"role"\s*:\s*"\w*"|"content"\s*:')
"""What stands around a message's blocks in any order and form; its role is compared by itself."""
_ITEM = 2
"""Steps in the path of an item of a list of the body (``/messages/3``)."""
_START = attrgetter("start")
_ORDER: tuple[Visibility, ...] = ("benign", "routing", "unknown", "prompt")
"""From the least to the most that a difference can do."""


@dataclass(frozen=True, slots=True)
class Respelled:
    """A segment that says what it said before and is spelled otherwise."""

    place: int
    sure: Visibility
    """What the provider makes of it, as far as known."""
    kinds: tuple[str, ...]
    """Names of ``DIFFERENCES``, those that decide."""
    name: str
    """The cause it is, by the taxonomy."""

    @property
    def words(self) -> str:
        """What differs, by the classes of the report."""
        return ", ".join(classes(self.kinds))


def depth_of(mine: Prompt, theirs: Prompt, rules: Rules) -> int:
    """Segments both prompts begin with as their provider sees them, or may see them: what is not known is no end."""
    depth = shared(mine.digests, theirs.digests)
    while depth < min(len(mine.digests), len(theirs.digests)) and (
        _is_billed(mine, theirs, depth, rules) or _is_unseen(mine, theirs, depth, rules)
    ):
        depth += 1
        depth += shared(mine.digests[depth:], theirs.digests[depth:])
    return depth


def respelled(mine: Prompt, theirs: Prompt, depth: int) -> list[int]:
    """Places of shared segments that are spelled otherwise than before, for another reason than a cache mark.

    The cutter hands a digest on from body to body as long as the bytes it was made of stay the same ones; only where
    two digests are equal and not one object, or differ, can the spelling be another.
    """
    places = compress(range(depth), map(is_not, mine.digests, theirs.digests))
    apart = [
        i for i in places if mine.digests[i] != theirs.digests[i] or _same_place(mine.segments[i], theirs.segments[i])
    ]
    if not apart:
        return []
    call, parent = mine.load().data, theirs.load().data
    if len(apart) > _FEW:
        same = common_prefix(call, parent)
        apart = [i for i in apart if mine.segments[i].end > same]
    return [i for i in apart if mine.sent(i) != theirs.sent(i)]


def _same_place(new: Segment, old: Segment) -> bool:
    return new.path == old.path and not (new.breakpoint or old.breakpoint)


def first_shown(mine: Prompt, theirs: Prompt, depth: int, rules: Rules) -> Respelled | None:
    """The first shared segment whose new spelling the provider may see.

    ``None`` when nothing was spelled otherwise, or nothing that matters.
    """
    found = (respelled_at(mine, theirs, place, rules) for place in respelled(mine, theirs, depth))
    return next((item for item in found if item is not None and item.sure in ("unknown", "prompt")), None)


def respelled_at(mine: Prompt, theirs: Prompt, place: int, rules: Rules) -> Respelled | None:
    """How a segment of both prompts is spelled otherwise; ``None`` where it says something else."""
    new, old = mine.segments[place], theirs.segments[place]
    if mine.digests[place] == theirs.digests[place]:
        kinds = kinds_apart(mine.sent(place), theirs.sent(place), new) or frozenset({"escape"})
    elif (new.kind, new.role, new.block) == (old.kind, old.role, old.block):
        found = kinds_apart(mine.sent(place), theirs.sent(place), new)
        if found is None or _beside(mine, place) != _beside(theirs, place):
            return None
        kinds = found
    else:
        return None
    worst: Visibility = max((rules.shows(kind) for kind in kinds), key=_ORDER.index)
    seen = {kind for kind in kinds if rules.shows(kind) == worst}
    name = next(
        (name for who, of, name in _NAMES if who in ("", new.kind, new.role) and not seen.isdisjoint(of)), DRIFT
    )
    return Respelled(place, worst, tuple(sorted(seen)), name)


def _beside(prompt: Prompt, place: int) -> tuple[bytes, bytes]:
    """What stands beside a block in its message's own members; nothing beside a segment that is all of its item."""
    segment, listed = prompt.segments[place], prompt.listed
    if segment.path.count("/") <= _ITEM:
        return b"", b""
    at = bisect_left(listed, segment.start, key=_START)
    data = prompt.load().data
    start = listed[at - 1].end if at else 0
    end = listed[at + 1].start if at + 1 < len(listed) else len(data)
    before, after = data[start : segment.start].rpartition(b"{")[2], data[segment.end : end].partition(b"}")[0]
    return _AROUND.sub(b"", before), _AROUND.sub(b"", after)


def _is_billed(mine: Prompt, theirs: Prompt, place: int, rules: Rules) -> bool:
    """Whether a segment differs in a client's billing line only, which this provider takes out."""
    new, old = mine.segments[place], theirs.segments[place]
    if rules.shows("billing_header") != "benign" or new.kind != "system" or old.kind != "system":
        return False
    if _BILLING not in mine.sent(place) or _BILLING not in theirs.sent(place):
        return False
    now, before = (
        "\n".join(text for _, text in visible_text(side.load(), s).texts) for side, s in ((mine, new), (theirs, old))
    )
    return only_billing(before, now)


def _is_unseen(mine: Prompt, theirs: Prompt, place: int, rules: Rules) -> bool:
    """Whether a segment says the same in a way that this provider's model is not known to tell apart."""
    found = respelled_at(mine, theirs, place, rules)
    return found is not None and found.sure != "prompt"


def facts(mine: Prompt, theirs: Prompt, depth: int, rules: Rules) -> Iterator[str]:
    """Differences that break nothing: a breakpoint moved, the same value spelled otherwise (C09).

    By class where it is more than white space, escapes or the order of the API's own members.
    """
    moved, before = ({(s.kind, s.order) for s in map(p.segments.__getitem__, p.marks)} for p in (mine, theirs))
    if moved != before:
        yield "a breakpoint moved"
    places = respelled(mine, theirs, depth)
    if places:
        yield DRIFT
    told = (respelled_at(mine, theirs, i, rules) for i in places if mine.digests[i] != theirs.digests[i])
    yield from dict.fromkeys(name for item in told if item is not None for name in classes(item.kinds))
