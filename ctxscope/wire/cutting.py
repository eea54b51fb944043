"""A body into segments, by the layout of its API; what it shares with its parent is not cut again.

Reuse never changes the answer. A scanner reads from left to right: where it stands behind the same path in the body and
in its parent, and the bytes that follow are the same, it would find there what it found in the parent, moved. That holds
from the beginning, behind a piece changed in place (a clock in the system prompt), and in the common end.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Literal

from ctxscope.model import BlockKind, Body, Segment
from ctxscope.wire.forms import MARKS, Form, form, object_text, plain, text_block
from ctxscope.wire.layout import PARAM_RANK, Layout, Slot
from ctxscope.wire.overlap import common_suffix, lcp
from ctxscope.wire.spans import blank_end, items, members, more_items, more_members, value_end


def segments(layout: Layout, data: bytes, parent: Body | None) -> tuple[Segment, ...]:
    """The segments of a body; one opaque segment for what is not a JSON object. Never raises."""
    if not data:
        return ()
    try:
        return _segments(layout, data, parent)
    except (ValueError, RecursionError):
        return (Segment("", 0, len(data), "opaque", digest=_digest(data), prompt_bytes=len(data)),)


def prompt(layout: Layout, data: bytes, segment: Segment) -> bytes:
    """The prompt form of a segment of ``data``, the bytes its digest was made of."""
    text = data[segment.start : segment.end].decode("latin-1")
    if segment.kind == "opaque":
        return text.encode("latin-1")
    cut = _Cut(layout, text, 0, keep=True)
    path = segment.path.split("/")
    slot = layout.slots.get(path[1])
    if slot is None or segment.kind == "param":
        return plain(text).encode("latin-1")
    cut.piece(slot, path, text)
    # the head of a message goes with its first block: nearly always its role alone, else it must be looked up
    for head in ("", f'{{"role":"{segment.role}"}}', "{}"):
        found = (head + cut.forms[0]).encode("latin-1")
        if len(found) == segment.prompt_bytes and _digest(found) == segment.digest:
            return found
    whole = _Cut(layout, data.decode("latin-1"), 0, keep=True)
    whole.body()
    return next(f.encode("latin-1") for s, f in zip(whole.out, whole.forms, strict=True) if s.start == segment.start)


class _Joined(Exception):  # noqa: N818 - no error: the way out of nested walks
    """The segments that come next are the parent's ``first`` to ``stop``."""

    def __init__(self, first: int, stop: int) -> None:
        self.first = first
        self.stop = stop


class _Parent:
    """The segments of a parent that a body has too."""

    def __init__(self, layout: Layout, data: bytes, parent: Body) -> None:
        self.layout = layout
        self.data = data
        self.other = parent.data
        self.segments = parent.segments
        self.prefix = lcp(data, self.other)
        self.shift = len(data) - len(self.other)
        """From a place in the common end of the parent to the place in the body."""
        self.end = len(data) - common_suffix(data, self.other, min(len(data), len(self.other)) - self.prefix)
        """Where the common end begins in the body."""

    def whole(self, first: int, limit: int) -> int:
        """Number of segments up to the last whole group (a message, a tool, a parameter) that ends before ``limit``."""
        count = bisect_left(self.segments, limit, lo=first, key=_start)
        if count == first:
            return first
        # a later segment begins before the limit, so every group before its own has ended there
        group = _group(self.layout, self.segments[count - 1].path)
        while count > first and _group(self.layout, self.segments[count - 1].path) == group:
            count -= 1
        return count

    def behind(self, last: Segment, number: int) -> tuple[int, int] | None:
        """First and stop of what follows ``last``, segment ``number`` of the body, as it follows its twin."""
        if last.end >= self.end:
            index = bisect_left(self.segments, last.end - self.shift, key=_end)
            if self._twin(last, index) and self.segments[index].end + self.shift == last.end:
                return index + 1, len(self.segments)
        if not self._twin(last, number):
            return None
        place = self.segments[number].end
        stop = self.whole(number + 1, place + lcp(self.data, self.other, last.end, place))
        return (number + 1, stop) if stop > number + 1 else None

    def _twin(self, last: Segment, index: int) -> bool:
        if index >= len(self.segments):
            return False
        twin = self.segments[index]
        return twin.path == last.path and twin.kind == last.kind


def _segments(layout: Layout, data: bytes, parent: Body | None) -> tuple[Segment, ...]:
    if parent is None or parent.api != layout.name or not parent.segments or parent.segments[0].kind == "opaque":
        cut = _Cut(layout, data.decode("latin-1"), 0)
        cut.body()
        return tuple(cut.out)
    shared = _Parent(layout, data, parent)
    if shared.prefix == len(data) == len(parent.data):
        return parent.segments
    known = parent.segments[: shared.whole(0, shared.prefix)]
    base = known[-1].end if known else 0
    cut = _Cut(layout, data[base:].decode("latin-1"), base, counts=_counts(known), parent=shared, number=len(known))
    stop = -1
    while stop < len(parent.segments):
        last = cut.out[-1] if cut.out else known[-1] if known else None
        try:
            cut.body() if last is None else cut.resume(last)
            break
        except _Joined as found:
            stop = found.stop  # the exception itself is let go: it holds this frame, and with it the whole text
            cut.take(parent.segments, found.first, stop)
    return known + tuple(cut.out)


def _group(layout: Layout, path: str) -> list[str]:
    parts = path.split("/", 3)
    slot = layout.slots.get(parts[1])
    return parts[: 3 if slot is not None and slot.array else 2]


def _counts(found: Sequence[Segment]) -> Counter[int]:
    """By rank, the index that comes next; found run by run from the end."""
    counts: Counter[int] = Counter()
    at = len(found) - 1
    while at >= 0:
        rank, index = found[at].order
        counts[rank] = max(counts[rank], index + 1)
        run = min(at, index)
        at -= 1 + (run if found[at - run].order == (rank, index - run) else 0)
    return counts


def _moved(found: tuple[Segment, ...], shift: int, more: Counter[int], fewer: Counter[int]) -> tuple[Segment, ...]:
    if not shift and not more and not fewer:
        return found
    return tuple(
        replace(
            s,
            start=s.start + shift,
            end=s.end + shift,
            order=(s.order[0], s.order[1] + more[s.order[0]] - fewer[s.order[0]]),
        )
        for s in found
    )


def _start(segment: Segment) -> int:
    return segment.start


def _end(segment: Segment) -> int:
    return segment.end


def _digest(prompt_form: bytes) -> bytes:
    return hashlib.blake2b(prompt_form, digest_size=16).digest()


class _Cut:
    """One pass over a body, or the rest of one."""

    def __init__(
        self,
        layout: Layout,
        text: str,
        base: int,
        *,
        counts: Counter[int] | None = None,
        parent: _Parent | None = None,
        number: int = 0,
        keep: bool = False,
    ) -> None:
        self.layout = layout
        self.text = text
        self.base = base
        """Where ``text`` begins in the body."""
        self.counts = Counter[int]() if counts is None else counts
        self.parent = parent
        self.number = number
        """Of segments before ``text``."""
        self.keep = keep
        self.out: list[Segment] = []
        self.forms: list[str] = []
        """Of ``out``, when they are to be kept."""
        self.leading = True
        """Only system and developer items so far in this array."""

    def body(self) -> None:
        """The whole body; ``ValueError`` when it is not one JSON object."""
        start = blank_end(self.text, 0)
        if self.text[start : start + 1] != "{":
            raise ValueError("not a JSON object")
        self.finish(members(self.text, start, self.member))

    def resume(self, last: Segment) -> None:
        """What follows ``last``, a segment already known that ends a group."""
        path = last.path.split("/")
        slot = self.layout.slots.get(path[1])
        at, depth = last.end - self.base, len(path) - 1
        if slot is not None and depth > 1:
            if depth == (4 if slot.array else 3):
                at = more_items(self.text, at, int(path[-1]), lambda _i, start: value_end(self.text, start))
            if depth > (2 if slot.array else 1):
                at = more_members(self.text, at, lambda _k, start: value_end(self.text, start))
            if slot.array:
                self.leading = last.kind == "system"
                at = more_items(self.text, at, int(path[2]), partial(self.item, f"/{path[1]}", slot))
        self.finish(more_members(self.text, at, self.member))

    def take(self, found: tuple[Segment, ...], first: int, stop: int) -> None:
        """The parent's segments ``first`` to ``stop`` come next."""
        before = _counts(found[:first])
        shift = self.out[-1].end - found[first - 1].end
        moved = _moved(found[first:stop], shift, self.counts - before, before - self.counts)
        self.out += moved
        self.counts |= _counts(moved)

    def finish(self, end: int) -> None:
        """Refuse what follows the body."""
        if blank_end(self.text, end) != len(self.text):
            raise ValueError("more than one JSON value")

    def member(self, key: str, at: int) -> int:
        """One top-level member, whose value starts at ``at``."""
        path = "/" + key.replace("~", "~0").replace("/", "~1")
        slot = self.layout.slots.get(key)
        opening = self.text[at : at + 1]
        if slot is not None and slot.array and opening == "[":
            before = len(self.out)
            self.leading = True
            end = items(self.text, at, partial(self.item, path, slot))
            if len(self.out) > before:
                return end
        elif slot is not None and not slot.array and opening == "{":
            end = self.nested(path, slot, at)
            return self.group_ends(end)
        elif slot is not None and slot.bare is not None and opening == '"':
            return self.group_ends(self.bare_string(path, slot, at))
        else:
            end = value_end(self.text, at)
        self.add(path, at, Form(end, plain(self.text[at:end])), "param", PARAM_RANK)
        return self.group_ends(end)

    def bare_string(self, path: str, slot: Slot, at: int) -> int:
        """A string where the layout has an array."""
        end = value_end(self.text, at)
        assert slot.bare is not None  # the caller looked
        value = Form(end, slot.bare(plain(self.text[at:end])))
        self.add(path, at, value, slot.kind, slot.rank, role="user" if slot.kind == "message" else "", block="text")
        return end

    def item(self, path: str, slot: Slot, index: int, at: int) -> int:
        """One item of a top-level array."""
        here = f"{path}/{index}"
        if slot.inner and self.text[at : at + 1] == "{":
            return self.group_ends(self.nested(here, slot, at))
        value = form(self.text, at, slot.shape)
        role = self.layout.role(value.fields)
        self.leading = self.leading and role in ("system", "developer")
        if slot.leading_rank is not None and self.leading:
            self.add(here, at, value, "system", slot.leading_rank, role=role, block="text")
        elif slot.kind == "message":
            self.add(here, at, value, slot.kind, slot.rank, role=role, block=self.layout.block(value.fields))
        else:
            self.add(here, at, value, slot.kind, slot.rank, block="text" if slot.kind == "system" else "other")
        return self.group_ends(value.end)

    def nested(self, path: str, slot: Slot, start: int) -> int:
        """An object with an inner array: a segment for each of its items, the other members with the first."""
        head: dict[str, str] = {}
        found: list[tuple[str, int, Form]] = []
        marked = False

        def inner(key: str, index: int, at: int) -> int:
            found.append((f"{path}/{key}/{index}", at, form(self.text, at, slot.shape)))
            return found[-1][2].end

        def visit(key: str, at: int) -> int:
            nonlocal marked
            opening = self.text[at : at + 1]
            if key in slot.inner and opening == "[":
                return items(self.text, at, partial(inner, key))
            end = value_end(self.text, at)
            value = plain(self.text[at:end])
            if key in slot.inner and opening == '"' and slot.block_type:
                fields = {"type": f'"{slot.block_type}"', "text": value}
                found.append((f"{path}/{key}", at, Form(end, object_text(fields), fields)))
            elif key in MARKS:
                marked = marked or value != "null"
            else:
                head[key] = value
            return end

        end = members(self.text, start, visit)
        role = self.layout.role(head) if slot.kind == "message" else ""
        if not found:
            self.add(path, start, Form(end, object_text(head), marked=marked), slot.kind, slot.rank, role=role)
        for number, (here, at, value) in enumerate(found):
            block = self.layout.block(value.fields) if slot.kind != "tool" else "other"
            whole = replace(value, text=object_text(head) + value.text, marked=marked or value.marked)
            self.add(here, at, value if number else whole, slot.kind, slot.rank, role=role, block=block)
        return end

    def piece(self, slot: Slot, path: list[str], text: str) -> None:
        """The one segment that ``text`` is, at ``path``, without the head of its message."""
        depth = len(path) - 1
        if depth == 1 and slot.bare is not None and text[:1] == '"':
            self.bare_string("/".join(path), slot, 0)
        elif depth == 1 and not slot.array:
            self.nested("/".join(path), slot, 0)
        elif depth == 2:  # noqa: PLR2004 - /key/index
            self.item(f"/{path[1]}", slot, int(path[2]), 0)
        elif text[:1] == '"' and slot.block_type and path[-1] in slot.inner:
            self.forms.append(text_block(plain(text), slot.block_type))
        else:
            self.forms.append(form(text, 0, slot.shape).text)

    def add(
        self,
        path: str,
        start: int,
        value: Form,
        kind: Literal["tool", "system", "message", "param"],
        rank: int,
        *,
        role: str = "",
        block: BlockKind = "other",
    ) -> None:
        """One more segment."""
        spelled = value.text.encode("latin-1")
        order = (rank, self.counts[rank])
        self.counts[rank] += 1
        digest = _digest(spelled)
        span = self.base + start, self.base + value.end
        self.out.append(Segment(path, *span, kind, role, block, order, value.marked, digest, len(spelled)))
        if self.keep:
            self.forms.append(value.text)

    def group_ends(self, end: int) -> int:
        """``end``, unless what follows is the parent's."""
        if self.parent is not None:
            shared = self.parent.behind(self.out[-1], self.number + len(self.out) - 1)
            if shared is not None:
                raise _Joined(*shared)
        return end
