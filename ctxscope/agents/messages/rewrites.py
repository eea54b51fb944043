"""What a logged request changed of the history that the one before it had, told from the two alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ctxscope.agents.messages.state import State
from ctxscope.agents.messages.trail import Message, Trail
from ctxscope.model import Entry, Marker

Stand = tuple[Trail, int]
"""A trail and how many of its messages stood."""


@dataclass(frozen=True, slots=True)
class _Part:
    """The stretch in which two histories differ."""

    start: int
    old: list[Message]
    new: list[Message]
    is_end: bool = False
    """Nothing of the old history stands behind it."""
    begun: bool = False
    """Something was said before it."""


def found(before: Stand, now: Stand, top: Mapping[str, bytes], state: State, entry: Entry) -> Iterator[Marker]:
    """Markers of one step; their point is set by who knows it."""
    if before[1]:
        for key, kind in (("model", "model_switch"), ("tools", "tools_changed")):
            one, two = top.get(key), state.top.get(key)
            if one is not None and two is not None and one != two:
                where = f"the logged requests' {key} is another one from here on"
                yield Marker(kind, None, logged=True, where=where, place=entry.place)
    part = _part(before, now)
    if part is not None and part.old:
        kind, where = _told(part)
        dropped = tuple(dict.fromkeys(m.place for m in part.old)) if kind != "strip" else ()
        yield Marker(kind, None, logged=True, where=where, place=entry.place, dropped=dropped)


def _part(before: Stand, now: Stand) -> _Part | None:
    """What of the earlier history is no longer the beginning of the new one."""
    old, new = before[0].messages[: before[1]], now[0].messages[: now[1]]
    start = 0
    if before[0] is now[0]:
        start = min(before[1], now[1])
    while start < min(len(old), len(new)) and old[start].text == new[start].text:
        start += 1
    if start == len(old):
        return None
    ends = {_key(m): i for i, m in reversed([*enumerate(new)]) if i >= start}
    for back in range(len(old) - start):
        at = ends.get(_key(old[len(old) - 1 - back]))
        if at is None:
            continue
        # The old history's end is found again: what lies before it, on both sides, is what was rewritten.
        end_old, end_new = len(old) - 1 - back, at
        while end_old > start and end_new > start and _key(old[end_old - 1]) == _key(new[end_new - 1]):
            end_old, end_new = end_old - 1, end_new - 1
        return _Part(start, old[start:end_old], new[start:end_new])
    begun = any(m.about.sort != "system" for m in old[:start])
    return _Part(start, old[start:], new[start:], is_end=True, begun=begun)


def _key(message: Message) -> bytes:
    """What a message is known again by: its text."""
    return message.text


def _told(part: _Part) -> tuple[str, str]:
    many = len(part.old)
    what = "a message" if many == 1 else f"{many} messages"
    at = f"from message {part.start + 1} on" if many > 1 else f"message {part.start + 1}"
    if not part.new and part.is_end:
        return "rewind", f"went back to message {part.start} of the request before"
    if not part.new:
        return ("prune", f"left {what} of the request before out, {at}")
    one_by_one = len(part.new) == many or (part.is_end and len(part.new) > many)
    if one_by_one and all(a.about.role == b.about.role for a, b in zip(part.old, part.new, strict=False)):
        return "strip", f"changed {what} of the request before, {at}"
    if part.is_end and part.begun and part.new[0].about.sort == "input":
        return "rewind", f"went back to message {part.start} of the request before"
    if len(part.new) < many:
        return "compaction", f"replaced {what} of the request before by {len(part.new)}, {at}"
    return "restore", f"replaced {what} of the request before by {len(part.new)}, {at}"
