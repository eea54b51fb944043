"""Segments that say the same in another spelling: which kind of difference it is, and what their provider makes of it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import compress
from operator import is_not
from typing import Any

from ctxscope.analysis.prefixes import common_prefix
from ctxscope.analysis.prompts import Prompt, shared
from ctxscope.analysis.providers.rules import Rules, Visibility
from ctxscope.analysis.visible_text import visible_text
from ctxscope.analysis.volatile import only_billing
from ctxscope.model import Segment

DRIFT = "json_serialisation_drift"
"""C09: the bodies differ as bytes and not as values."""
_FEW = 64
"""Segments that are compared one by one without looking first how far the bodies agree."""
_BILLING = b"x-anthropic-billing-header"
_BLANKS = re.compile(r'("(?:[^"\\]++|\\.)*+")|[ \t\n\r]+', re.DOTALL)
_ORDER: tuple[Visibility, ...] = ("benign", "routing", "unknown", "prompt")
"""From the least to the most that a difference can do."""


def depth_of(mine: Prompt, theirs: Prompt, rules: Rules) -> int:
    """Segments both prompts begin with as their provider sees them."""
    depth = shared(mine.digests, theirs.digests)
    while depth < min(len(mine.digests), len(theirs.digests)) and (
        _is_billed(mine, theirs, depth, rules) or _is_reparsed(mine, theirs, depth, rules)
    ):
        depth += 1
        depth += shared(mine.digests[depth:], theirs.digests[depth:])
    return depth


def respelled(mine: Prompt, theirs: Prompt, depth: int) -> list[int]:
    """Places of shared segments that are spelled otherwise than before, for another reason than a cache mark.

    The cutter hands a digest on from body to body as long as the bytes it was made of stay the same ones; only where
    two digests are equal and not one object can the spelling be another.
    """
    places = compress(range(depth), map(is_not, mine.digests, theirs.digests))
    apart = [i for i in places if _same_place(mine.segments[i], theirs.segments[i])]
    if not apart:
        return []
    call, parent = mine.load().data, theirs.load().data
    if len(apart) > _FEW:
        same = common_prefix(call, parent)
        apart = [i for i in apart if mine.segments[i].end > same]
    return [i for i in apart if mine.sent(i) != theirs.sent(i)]


def _same_place(new: Segment, old: Segment) -> bool:
    return new.path == old.path and not (new.breakpoint or old.breakpoint)


def first_shown(mine: Prompt, theirs: Prompt, depth: int, rules: Rules) -> tuple[int, Visibility, str] | None:
    """The first shared segment whose new spelling the provider may see: its place, how sure that is, what differs.

    ``None`` when nothing was spelled otherwise, or nothing that matters.
    """
    for place in respelled(mine, theirs, depth):
        kinds = sorted(kinds_of(mine.sent(place), theirs.sent(place), mine.segments[place]))
        worst: Visibility = max((rules.shows(kind) for kind in kinds), key=_ORDER.index)
        if worst in ("unknown", "prompt"):
            return place, worst, ", ".join(kind.replace("_", " ") for kind in kinds)
    return None


def kinds_of(new: bytes, old: bytes, segment: Segment) -> frozenset[str]:
    """Which differences two spellings of one prompt form show (names of ``DIFFERENCES``)."""
    try:
        now, before = (json.loads(raw, object_pairs_hook=_pairs, parse_float=str, parse_int=str) for raw in (new, old))
    except (ValueError, RecursionError):
        return frozenset({"escape"})
    if now == before:
        return frozenset({"whitespace"} if _minified(new) == _minified(old) else {"escape"})
    if _sorted(now) == _sorted(before):
        return frozenset({"tool_key_order" if segment.kind == "tool" else "message_key_order"})
    return frozenset({"form"})


class _Members(list[tuple[str, Any]]):
    """An object's members in their order."""


def _pairs(pairs: list[tuple[str, Any]]) -> _Members:
    return _Members(pairs)


def _sorted(value: Any) -> Any:
    if isinstance(value, _Members):
        return ("object", sorted(((k, _sorted(v)) for k, v in value), key=lambda pair: pair[0]))
    return [_sorted(v) for v in value] if isinstance(value, list) else value


def _minified(raw: bytes) -> str:
    return _BLANKS.sub(r"\1", raw.decode("latin-1"))


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


def _is_reparsed(mine: Prompt, theirs: Prompt, place: int, rules: Rules) -> bool:
    """Whether a message differs only in the spelling of the arguments of its tool calls, which this provider parses."""
    new, old = mine.segments[place], theirs.segments[place]
    if rules.shows("arguments_text") != "benign" or (new.role, old.role) != ("assistant", "assistant"):
        return False
    now, before = (_with_arguments(side.sent(place)) for side in (mine, theirs))
    return now is not None and now == before


def _with_arguments(raw: bytes) -> Any:
    """A message with the arguments of its tool calls as values, key order kept; ``None`` where it calls no tool."""
    try:
        message = json.loads(raw)
        for call in message["tool_calls"]:
            arguments = json.loads(call["function"]["arguments"], object_pairs_hook=_pairs)
            call["function"]["arguments"] = arguments
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    return message


def facts(mine: Prompt, theirs: Prompt, depth: int) -> Iterator[str]:
    """Differences that break nothing: a breakpoint moved, the same value spelled otherwise (C09)."""
    moved, before = ({(s.kind, s.order) for s in map(p.segments.__getitem__, p.marks)} for p in (mine, theirs))
    if moved != before:
        yield "a breakpoint moved"
    if respelled(mine, theirs, depth):
        yield DRIFT
