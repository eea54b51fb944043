"""A body into segments, by the layout of its API; what it shares with its parent is not cut again.

Reuse never changes the answer. A scanner reads from left to right, so inside the common prefix it would find what it
found in the parent; and once it stands inside the common suffix at the same path, the same distance from the end, it
would go on to find the parent's remaining segments, moved.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

from ctxscope.model import ApiName, BlockKind, Body, Segment
from ctxscope.wire.forms import MARKS, Form, Shape, form, object_text, plain, text_block
from ctxscope.wire.overlap import common_suffix, lcp
from ctxscope.wire.spans import blank_end, items, members, more_items, more_members, value_end

PARAM_RANK = 9
Fields = Mapping[str, str]
"""An object's members by key, their values in prompt form (strings quoted)."""


@dataclass(frozen=True, slots=True)
class Slot:
    """How the value of one top-level key is cut."""

    kind: Literal["tool", "system", "message"]
    rank: int
    """Place of its segments in cache order."""
    shape: Shape
    """Of what becomes a segment."""
    array: bool = True
    """The value is an array of items; else an object with one inner array."""
    inner: frozenset[str] = frozenset()
    """Keys of an item's own array, whose items are the segments; empty: each item is a segment."""
    block_type: str = ""
    """Type of the block that a bare string in an inner array's place stands for."""
    bare: Callable[[str], str] | None = None
    """Prompt form of a bare string in the array's place; ``None``: there can be none."""
    leading_rank: int | None = None
    """Rank of system and developer items before any other, which make the system prompt; ``None``: they do not."""


@dataclass(frozen=True, slots=True)
class Layout:
    """What an API's bodies consist of."""

    name: ApiName
    slots: Mapping[str, Slot]
    """By top-level key; any other value is a parameter."""
    role: Callable[[Fields], str]
    block: Callable[[Fields], BlockKind]
    """Role of a message and kind of a block, from their members."""


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


def text_of(fields: Fields, key: str) -> str:
    """A short string member without its quotes, ``""`` where there is none."""
    value = fields.get(key, "")
    return value[1:-1] if value[:1] == '"' else ""


class _Joined(Exception):  # noqa: N818 - no error: the way out of nested walks
    """From here on the body is its parent's, moved."""

    def __init__(self, index: int) -> None:
        self.index = index


@dataclass(frozen=True, slots=True)
class _Tail:
    """The end a body has in common with its parent."""

    segments: Sequence[Segment]
    start: int
    """Where the common suffix begins in the body."""
    shift: int
    """From a place in the parent to the place in the body."""

    def after(self, last: Segment) -> int | None:
        """Number of the parent's segments up to the twin of ``last``; ``None``: it has none in the common end."""
        if last.end < self.start:
            return None
        index = bisect_left(self.segments, last.end - self.shift, key=_end)
        if index == len(self.segments):
            return None
        twin = self.segments[index]
        same = twin.end + self.shift == last.end and twin.path == last.path and twin.kind == last.kind
        return index + 1 if same else None


def _segments(layout: Layout, data: bytes, parent: Body | None) -> tuple[Segment, ...]:
    if parent is None or parent.api != layout.name or not parent.segments or parent.segments[0].kind == "opaque":
        cut = _Cut(layout, data.decode("latin-1"), 0)
        cut.body()
        return tuple(cut.out)
    prefix = lcp(data, parent.data)
    if prefix == len(data) == len(parent.data):
        return parent.segments
    known = _reusable(layout, parent.segments, prefix)
    at = known[-1].end if known else 0
    suffix = common_suffix(data, parent.data, min(len(data), len(parent.data)) - prefix)
    tail = _Tail(parent.segments, len(data) - suffix, len(data) - len(parent.data))
    cut = _Cut(layout, data[at:].decode("latin-1"), at, counts=_counts(known), tail=tail)
    try:
        if known:
            cut.resume(known[-1])
        else:
            cut.body()
    except _Joined as joined:
        before = _counts(parent.segments[: joined.index])
        cut.out += _moved(parent.segments[joined.index :], tail.shift, cut.counts - before, before - cut.counts)
    return known + tuple(cut.out)


def _reusable(layout: Layout, found: tuple[Segment, ...], prefix: int) -> tuple[Segment, ...]:
    """The parent's segments in whole groups (a message, a tool, a parameter) that end inside the common prefix."""
    count = bisect_left(found, prefix, key=_start)
    if not count:
        return ()
    # a later segment begins inside the prefix, so every group before its own has ended there
    group = _group(layout, found[count - 1].path)
    while count and _group(layout, found[count - 1].path) == group:
        count -= 1
    return found[:count]


def _group(layout: Layout, path: str) -> list[str]:
    parts = path.split("/", 3)
    slot = layout.slots.get(parts[1])
    return parts[: 3 if slot is not None and slot.array else 2]


def _counts(found: Sequence[Segment]) -> Counter[int]:
    """Number of segments by rank, run by run from the end."""
    counts: Counter[int] = Counter()
    at = len(found) - 1
    while at >= 0:
        rank, index = found[at].order
        first = at - index
        run = index if first >= 0 and found[first].order == (rank, 0) else 0
        counts[rank] = max(counts[rank], index + 1)
        at -= run + 1
    return counts


def _moved(found: Sequence[Segment], shift: int, more: Counter[int], fewer: Counter[int]) -> Sequence[Segment]:
    if not shift and not more and not fewer:
        return found
    return [
        replace(
            s,
            start=s.start + shift,
            end=s.end + shift,
            order=(s.order[0], s.order[1] + more[s.order[0]] - fewer[s.order[0]]),
        )
        for s in found
    ]


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
        tail: _Tail | None = None,
        keep: bool = False,
    ) -> None:
        self.layout = layout
        self.text = text
        self.base = base
        """Where ``text`` begins in the body."""
        self.counts = Counter[int]() if counts is None else counts
        self.tail = tail
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
        """What follows ``last``, a segment already known, whose end is where the text begins."""
        path = last.path.split("/")
        slot = self.layout.slots.get(path[1])
        at, depth = 0, len(path) - 1
        if slot is not None and depth > 1:
            if depth == (4 if slot.array else 3):
                at = more_items(self.text, at, int(path[-1]), lambda _i, start: value_end(self.text, start))
            if depth > (2 if slot.array else 1):
                at = more_members(self.text, at, lambda _k, start: value_end(self.text, start))
            if slot.array:
                self.leading = last.kind == "system"
                at = more_items(self.text, at, int(path[2]), partial(self.item, f"/{path[1]}", slot))
        self.finish(more_members(self.text, at, self.member))

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
        self.add(path, at, value, slot.kind, slot.rank, "user" if slot.kind == "message" else "", "text")
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
            self.add(here, at, value, "system", slot.leading_rank, role, "text")
        elif slot.kind == "message":
            self.add(here, at, value, slot.kind, slot.rank, role, self.layout.block(value.fields))
        else:
            self.add(here, at, value, slot.kind, slot.rank, "", "text" if slot.kind == "system" else "other")
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
            self.add(path, start, Form(end, object_text(head), marked=marked), slot.kind, slot.rank, role)
        for number, (here, at, value) in enumerate(found):
            block = self.layout.block(value.fields) if slot.kind != "tool" else "other"
            whole = replace(value, text=object_text(head) + value.text, marked=marked or value.marked)
            self.add(here, at, value if number else whole, slot.kind, slot.rank, role, block)
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
        if self.tail is not None and (index := self.tail.after(self.out[-1])) is not None:
            raise _Joined(index)
        return end
