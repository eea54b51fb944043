"""Why a prompt stopped being a continuation of its parent, by the names of the taxonomy (prompt_caching §12).

Decided from the bytes of the two requests and the log's markers alone; ``history_rewritten`` when unsure.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import orjson

from ctxscope.analysis.parents import shared
from ctxscope.analysis.prompt_params import changed_params
from ctxscope.analysis.spelling import without_breakpoints
from ctxscope.analysis.visible_text import THINKING, visible_text
from ctxscope.analysis.volatile import only_volatile
from ctxscope.model import Body, Segment

_COMPACTING = frozenset({"compaction", "micro", "defrag"})
_GONE = 0.5
"""Share of the parent's prompt that must be gone before an unmarked rewrite is called a compaction (C14)."""


LEVELS = {"all": 0, "tool": 1, "system": 2, "message": 3, "messages": 3}
"""Rank of the levels of a prompt in cache order; a change of the whole request comes before all of them."""


@dataclass(frozen=True, slots=True)
class Cause:
    """One change that by itself would end the shared prefix."""

    name: str
    why: str
    at: tuple[int, int]
    """Where it takes hold in cache order: rank of the level (see ``LEVELS``) and place within it."""
    path: str = ""
    """Where it stands, when that is no segment of the prompt (``/model``)."""


@dataclass(frozen=True, slots=True)
class Prompts:
    """Two requests with their prompts in cache order."""

    call: Body
    parent: Body
    mine: tuple[Segment, ...]
    theirs: tuple[Segment, ...]
    markers: tuple[str, ...] = ()

    def kind(self, kind: str) -> tuple[list[Segment], list[Segment]]:
        """The segments of one kind on both sides."""
        return [s for s in self.mine if s.kind == kind], [s for s in self.theirs if s.kind == kind]


def causes(pair: Prompts) -> list[Cause]:
    """All changes between two prompts that end the prefix, in the order in which they are blamed; empty when none."""
    found = [*_model(pair), *_tools(pair), *_params(pair), *_system(pair)]
    messages = _messages(pair)
    return [*found, messages] if messages else found


def _model(pair: Prompts) -> list[Cause]:
    if pair.call.model == pair.parent.model:
        return []
    return [
        Cause("model_changed", f"the model changed from {pair.parent.model} to {pair.call.model}", (0, 0), "/model")
    ]


def _params(pair: Prompts) -> list[Cause]:
    return [
        Cause(f"param_changed:{name}", f"the parameter {name} changed", (LEVELS[level], 0), f"/{name}")
        for name, level in changed_params(pair.call, pair.parent)
    ]


# --- head ------------------------------------------------------------------------------------------------------------


def _tools(pair: Prompts) -> list[Cause]:
    mine, theirs = pair.kind("tool")
    at = shared([s.digest for s in mine], [s.digest for s in theirs])
    if at == len(mine) == len(theirs):
        return []
    now, before = _named(pair.call, mine), _named(pair.parent, theirs)
    places, old_places = {n: i for i, n in enumerate(now)}, {n: i for i, n in enumerate(before)}
    both = [n for n in now if n in before]
    changed = [n for n in both if now[n][0] != before[n][0]]
    schema = [n for n in changed if now[n][1] != before[n][1]]
    told = (
        ("tool_added", "tool added", [n for n in now if n not in before], places),
        ("tool_removed", "tool removed", [n for n in before if n not in now], old_places),
        ("tool_schema_changed", "definition changed of tool", schema, places),
        ("tool_key_order", "keys in another order in tool", [n for n in changed if n not in schema], places),
    )
    found = [
        Cause(name, f"{why}: {', '.join(who)}", (LEVELS["tool"], max(at, where[who[0]])))
        for name, why, who, where in told
        if who
    ]
    if both != [n for n in before if n in now] or not found:
        found.append(Cause("tool_reordered", "the same tools stand in another order", (LEVELS["tool"], at)))
    return found


def _named(body: Body, tools: Sequence[Segment]) -> dict[str, tuple[bytes, str]]:
    """Tools by name: digest, and definition with sorted keys. A tool without a name goes by its place."""
    found: dict[str, tuple[bytes, str]] = {}
    for n, segment in enumerate(tools):
        value = _value(body, segment)
        inner = value.get("function") if isinstance(value, dict) else None
        tool: Any = inner if isinstance(inner, dict) else value
        name = (tool.get("name") or tool.get("type")) if isinstance(tool, dict) else None
        key = str(name) if name else f"#{n}"
        if key in found:
            key = f"{key}#{n}"
        found[key] = (segment.digest, json.dumps(value, sort_keys=True))
    return found


def _value(body: Body, segment: Segment) -> Any:
    try:
        return without_breakpoints(orjson.loads(body.data[segment.start : segment.end]))
    except orjson.JSONDecodeError:
        return None


def _system(pair: Prompts) -> list[Cause]:
    mine, theirs = pair.kind("system")
    at = shared([s.digest for s in mine], [s.digest for s in theirs])
    if at == len(mine) == len(theirs):
        return []
    place = (LEVELS["system"], at)
    now, before = _words(pair.call, mine), _words(pair.parent, theirs)
    if only_volatile(before, now):
        return [Cause("volatile_content", "a date, time or id in the system text changed", place)]
    return [Cause("system_changed", "the system text changed", place)]


def _words(body: Body, segments: Sequence[Segment]) -> str:
    return "\n".join(text for s in segments for _, text in visible_text(body, s).texts)


# --- messages --------------------------------------------------------------------------------------------------------

Group = list[Segment]


def message_of(segment: Segment) -> str:
    """Path of the message a segment belongs to."""
    return "/".join(segment.path.split("/")[:3])


def _grouped(segments: Sequence[Segment]) -> list[Group]:
    return [list(group) for _, group in groupby(segments, key=message_of)]


def _print(group: Group) -> bytes:
    return b"".join(s.digest for s in group)


def _messages(pair: Prompts) -> Cause | None:
    mine, theirs = pair.kind("message")
    block = shared([s.digest for s in mine], [s.digest for s in theirs])
    if block == len(theirs) or block == len(mine):
        return None
    now, before = _grouped(mine), _grouped(theirs)
    first = shared([_print(g) for g in now], [_print(g) for g in before])
    name, why = _rewrite(pair, now[first:], before[first:], (mine[block], theirs[block]))
    return Cause(name, why, (LEVELS["message"], block))


def _rewrite(pair: Prompts, now: list[Group], before: list[Group], pieces: tuple[Segment, Segment]) -> tuple[str, str]:
    """Name and words for the first message that is not the parent's; ``now`` and ``before`` begin with it."""
    marked = _COMPACTING.intersection(pair.markers)
    if marked:
        return "compaction", f"the log has a {min(marked)} right before this call"
    if any(_is_compaction(pair.call, s) for group in now for s in group):
        return "compaction", "a compaction item stands in place of earlier messages"
    return (
        _block_change(pair, now[0], before[0], *pieces)
        or _stripped(pair, now, before)
        or _moved(now, before)
        or _summarised(pair, now, before)
        or ("history_rewritten", "a message already sent reads differently now")
    )


def _is_compaction(body: Body, segment: Segment) -> bool:
    if b"compaction" not in body.data[segment.start : min(segment.end, segment.start + 400)]:
        return False
    value = _value(body, segment)
    return isinstance(value, dict) and str(value.get("type", "")).startswith("compaction")


def _block_change(pair: Prompts, now: Group, before: Group, new: Segment, old: Segment) -> tuple[str, str] | None:
    """A change inside one message that says what was done to it. A segment may be a block or a whole message."""
    mine, theirs = _without_reasoning(pair.call, new), _without_reasoning(pair.parent, old)
    if _stripped(pair, [now], [before]) or (mine is not None and mine == theirs):
        return _REASONING if _thinks(pair.parent, before) > _thinks(pair.call, now) else None
    was, is_now = visible_text(pair.parent, old), visible_text(pair.call, new)
    if was.images and not is_now.images:
        return "image_stripped", "an image sent before is left out now"
    if was.images != is_now.images and was.texts == is_now.texts:
        return "media_changed", "an image is not the one sent before"
    if old.block == new.block == "tool_result" and old.role == new.role and _same_call(pair, new, old):
        sizes = [sum(len(text) for _, text in found.texts) for found in (is_now, was)]
        if sizes[0] < sizes[1]:
            return "tool_result_pruned", "a tool result is shorter than when it was sent before"
    return None


_REASONING = ("reasoning_stripped_client", "reasoning sent before is left out now")


def _stripped(pair: Prompts, now: list[Group], before: list[Group]) -> tuple[str, str] | None:
    """Nothing but whole pieces of reasoning left out of what goes on unchanged.

    Compared as values: the digest of a block tells whether it is the first of its message, and that may have changed.
    """
    left = [s for group in before for s in group if s.block != "thinking"]
    rest = [s for group in now for s in group if s.block != "thinking"]
    if len(left) == sum(map(len, before)) or len(rest) < len(left):
        return None
    same = all(
        old.role == new.role and (old.digest == new.digest or _content(pair.parent, old) == _content(pair.call, new))
        for old, new in zip(left, rest, strict=False)
    )
    return _REASONING if same else None


def _content(body: Body, segment: Segment) -> str:
    value = _value(body, segment)
    return json.dumps({"type": "text", "text": value} if isinstance(value, str) else value)


def _without_reasoning(body: Body, segment: Segment) -> Any:
    """A whole message without its reasoning; ``None`` for a block of one."""
    value = _value(body, segment)
    return (
        {k: v for k, v in value.items() if k not in THINKING} if isinstance(value, dict) and "role" in value else None
    )


def _thinks(body: Body, group: Group) -> int:
    """Characters of reasoning, readable or opaque, in a message."""
    texts = [pair for s in group for pair in visible_text(body, s).texts]
    return sum(len(text) for part, text in texts if part in ("thinking", "envelope"))


def _same_call(pair: Prompts, new: Segment, old: Segment) -> bool:
    """Whether two results answer one tool call; results that do not name it stand at the same place of the history."""
    ids = []
    for body, segment in ((pair.call, new), (pair.parent, old)):
        value = _value(body, segment)
        keys = ("tool_use_id", "tool_call_id", "call_id")
        ids.append(next((value[k] for k in keys if k in value), None) if isinstance(value, dict) else None)
    return bool(ids[0] == ids[1])


def _moved(now: list[Group], before: list[Group]) -> tuple[str, str] | None:
    """Messages put between, or left out before, ones that go on unchanged."""
    mine, theirs = [_print(g) for g in now], [_print(g) for g in before]
    if theirs[0] in mine:
        k = mine.index(theirs[0])
        if mine[k : k + len(theirs)] == theirs:
            return "message_inserted", f"{_messages_word(k)} inserted before ones already sent"
    if mine[0] in theirs:
        k = theirs.index(mine[0])
        rest = theirs[k:]
        if mine[: len(rest)] == rest:
            return "message_removed", f"{_messages_word(k)} left out before ones already sent"
    return None


def _messages_word(count: int) -> str:
    return "a message was" if count == 1 else f"{count} messages were"


def _summarised(pair: Prompts, now: list[Group], before: list[Group]) -> tuple[str, str] | None:
    """At least half of the parent's prompt gone and a new text in its place (C14)."""
    kept = {_print(g) for g in now}
    gone = sum(s.prompt_bytes for g in before if _print(g) not in kept for s in g)
    total = sum(s.prompt_bytes for s in pair.theirs)
    size = sum(s.prompt_bytes for s in pair.mine)
    known = {_print(g) for g in before}
    if total and gone >= _GONE * total and size < total and _print(now[0]) not in known:
        return "compaction", "at least half of what was sent before is gone, with a new text in its place"
    return None
