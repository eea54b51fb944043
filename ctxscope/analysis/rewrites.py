"""What became of messages already sent: inserted, removed, pruned, stripped, compacted (prompt_caching §12, C11–C17).

``history_rewritten`` when unsure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, groupby, takewhile
from typing import Any

from ctxscope.analysis.prompts import Prompt, shared
from ctxscope.analysis.providers.rules import Rules
from ctxscope.analysis.respelling import respelled_at
from ctxscope.analysis.visible_text import THINKING, VisibleText, parsed, spelled, visible_text
from ctxscope.analysis.volatile import named, only_volatile
from ctxscope.model import Body, Segment

_COMPACTING = frozenset({"compaction", "micro", "defrag"})
_GONE = 0.5
"""Share of the parent's messages that must be gone, less what stands in their place, before an unmarked rewrite is
called a compaction (C14)."""

Group = list[Segment]
"""The segments of one message."""
Told = tuple[str, str]
"""A cause by name and in words."""


@dataclass(frozen=True, slots=True)
class Rewrite:
    """The first message of the parent that this call does not continue."""

    name: str
    why: str
    at: int
    """Segments of messages both have before it."""
    path: str
    """Of its first segment that differs, as the parent had it."""
    sure: bool
    """False for ``history_rewritten`` unless the message alone was changed, in its place."""


@dataclass(frozen=True, slots=True)
class _Two:
    """Both sides from the first message on that differs."""

    call: Body
    parent: Body
    now: list[Group]
    before: list[Group]
    sizes: tuple[int, int]
    """Prompt bytes of all messages of the call and of the parent."""


def rewrite_of(mine: Prompt, theirs: Prompt, depth: int, markers: Sequence[str], rules: Rules) -> Rewrite | None:
    """How the messages of a call part from its parent's; ``None`` when one side's are the beginning of the other's.

    ``depth``: segments both prompts begin with as the provider sees them.
    """
    new, old = mine.of_kind("message"), theirs.of_kind("message")
    passed = sum(s.kind == "message" for s in mine.segments[:depth])
    at = max(passed, shared([s.digest for s in new], [s.digest for s in old]))
    if at in (len(new), len(old)):
        return None
    now, before = _grouped(new), _grouped(old)
    first = max(min(_whole(now, at), _whole(before, at)), shared([_print(g) for g in now], [_print(g) for g in before]))
    sizes = (sum(s.prompt_bytes for s in new), sum(s.prompt_bytes for s in old))
    two = _Two(mine.load(), theirs.load(), now[first:], before[first:], sizes)
    same_place = mine.segments[depth : depth + 1] == (new[at],) and theirs.segments[depth : depth + 1] == (old[at],)
    told = respelled_at(mine, theirs, depth, rules) if same_place else None
    if told is not None and not _COMPACTING.intersection(markers):
        why = f"a message already sent is spelled otherwise now ({told.words})"
        return Rewrite(told.name, why, at, old[at].path, sure=True)
    name, why = _told(two, markers, new[at], old[at])
    sure = name != "history_rewritten" or _in_place(two)
    return Rewrite(name, why, at, old[at].path, sure)


def _whole(groups: Sequence[Group], segments: int) -> int:
    """How many messages so many leading segments hold whole."""
    ends = accumulate(map(len, groups))
    return sum(1 for _ in takewhile(lambda end: end <= segments, ends))


def message_of(segment: Segment) -> str:
    """Path of the message a segment belongs to."""
    return "/".join(segment.path.split("/")[:3])


def _grouped(segments: Sequence[Segment]) -> list[Group]:
    return [list(group) for _, group in groupby(segments, key=message_of)]


def _print(group: Group) -> bytes:
    return b"".join(s.digest for s in group)


def _told(two: _Two, markers: Sequence[str], new: Segment, old: Segment) -> Told:
    marked = _COMPACTING.intersection(markers)
    if marked:
        return "compaction", f"the log has a {min(marked)} right before this call"
    if any(_is_compaction(two.call, s) for group in two.now for s in group):
        return "compaction", "a compaction item stands in place of earlier messages"
    return (
        _block_change(two, new, old)
        or _stripped(two, two.now, two.before)
        or _moved(two)
        or _summarised(two)
        or ("history_rewritten", "a message already sent reads differently now")
    )


def _in_place(two: _Two) -> bool:
    """Whether one message was changed and all behind it go on as they were (C11)."""
    rest = [_print(g) for g in two.before[1:]]
    return two.now[0][0].role == two.before[0][0].role and [_print(g) for g in two.now[1 : 1 + len(rest)]] == rest


def _is_compaction(body: Body, segment: Segment) -> bool:
    if b"compaction" not in body.data[segment.start : min(segment.end, segment.start + 400)]:
        return False
    value = parsed(body, segment)
    return isinstance(value, dict) and str(value.get("type", "")).startswith("compaction")


# --- within one message ----------------------------------------------------------------------------------------------


def _block_change(two: _Two, new: Segment, old: Segment) -> Told | None:
    """A change inside one message that says what was done to it. A segment may be a block or a whole message."""
    now, before = two.now[0], two.before[0]
    mine, theirs = _without_reasoning(two.call, new), _without_reasoning(two.parent, old)
    if _stripped(two, [now], [before]) or (mine is not None and mine == theirs):
        return _REASONING if _thinks(two.parent, before) > _thinks(two.call, now) else None
    was, is_now = visible_text(two.parent, old), visible_text(two.call, new)
    if was.images and not is_now.images:
        return "image_stripped", "an image sent before is left out now"
    if was.images != is_now.images and was.texts == is_now.texts:
        return "media_changed", "an image is not the one sent before"
    if (old.block, old.role) != (new.block, new.role):
        return None
    if _ticked(was, is_now):
        what = named(*("\n".join(text for _, text in side.texts) for side in (was, is_now)))
        return "volatile_content", f"{what} in a message already sent changed"
    if old.block == "tool_result" and _same_call(two, new, old):
        sizes = [sum(len(text) for _, text in found.texts) for found in (is_now, was)]
        if sizes[0] < sizes[1]:
            return "tool_result_pruned", "a tool result is shorter than when it was sent before"
    return None


_REASONING = ("reasoning_stripped_client", "reasoning sent before is left out now")


def _ticked(was: VisibleText, is_now: VisibleText) -> bool:
    """The same but for what changes from run to run."""
    if was.images != is_now.images or [p for p, _ in was.texts] != [p for p, _ in is_now.texts]:
        return False
    pairs = [(a, b, part) for (part, a), (_, b) in zip(was.texts, is_now.texts, strict=True) if a != b]
    return bool(pairs) and all(part != "envelope" and only_volatile(a, b) for a, b, part in pairs)


def _stripped(two: _Two, now: Sequence[Group], before: Sequence[Group]) -> Told | None:
    """Nothing but whole pieces of reasoning left out of what goes on unchanged.

    Compared as values: the digest of a block tells whether it is the first of its message, and that may have changed.
    """
    left = [s for group in before for s in group if s.block != "thinking"]
    rest = [s for group in now for s in group if s.block != "thinking"]
    thoughts = sum(map(len, before)) - len(left)
    if not thoughts or len(rest) < len(left) or _thoughts_among(now, len(left)) >= thoughts:
        return None  # nothing was left out: at most one reads otherwise
    same = all(
        old.role == new.role and (old.digest == new.digest or _content(two.parent, old) == _content(two.call, new))
        for old, new in zip(left, rest, strict=False)
    )
    return _REASONING if same else None


def _thoughts_among(groups: Sequence[Group], others: int) -> int:
    """Pieces of reasoning before so many other pieces have passed."""
    found = 0
    for segment in (s for group in groups for s in group):
        if segment.block == "thinking":
            found += 1
        elif others:
            others -= 1
        else:
            break
    return found


def _content(body: Body, segment: Segment) -> str:
    value = parsed(body, segment)
    block = {"type": "text", "text": value} if isinstance(value, str) else value
    return spelled(block, body.data[segment.start : segment.end])


def _without_reasoning(body: Body, segment: Segment) -> Any:
    """A whole message without its reasoning; ``None`` for a block of one."""
    value = parsed(body, segment)
    return (
        {k: v for k, v in value.items() if k not in THINKING} if isinstance(value, dict) and "role" in value else None
    )


def _thinks(body: Body, group: Group) -> int:
    """Characters of reasoning, readable or opaque, in a message."""
    texts = [pair for s in group for pair in visible_text(body, s).texts]
    return sum(len(text) for part, text in texts if part in ("thinking", "envelope"))


def _same_call(two: _Two, new: Segment, old: Segment) -> bool:
    """Whether two results answer one tool call; results that do not name it stand at the same place of the history."""
    ids = []
    for body, segment in ((two.call, new), (two.parent, old)):
        value = parsed(body, segment)
        keys = ("tool_use_id", "tool_call_id", "call_id")
        ids.append(next((value[k] for k in keys if k in value), None) if isinstance(value, dict) else None)
    return bool(ids[0] == ids[1])


# --- whole messages --------------------------------------------------------------------------------------------------


def _moved(two: _Two) -> Told | None:
    """Messages put between, or left out before, ones that go on unchanged."""
    mine, theirs = [_print(g) for g in two.now], [_print(g) for g in two.before]
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


def _summarised(two: _Two) -> Told | None:
    """Several messages gone, at least half of what was sent, and fewer and shorter ones in their place (C14)."""
    kept = {_print(g) for g in two.now}
    known = {_print(g) for g in two.before}
    gone = [g for g in two.before if _print(g) not in kept]
    # what follows the last message that goes on is new in this call, or cannot be told from it
    until = max((n for n, g in enumerate(two.now, 1) if _print(g) in known), default=len(two.now))
    instead = [g for g in two.now[:until] if _print(g) not in known]
    drop = sum(s.prompt_bytes for g in gone for s in g) - sum(s.prompt_bytes for g in instead for s in g)
    if len(gone) <= len(instead) or drop < _GONE * two.sizes[1]:
        return None
    told = [g for g in two.now if _print(g) not in known and g[0].role == "user" and g[0].block != "tool_result"]
    if _print(two.now[0]) in known and len(told) <= 1:  # one text alone may be the next input
        return None
    return "compaction", "at least half of what was sent before is gone, with a new text in its place"
