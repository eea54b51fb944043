"""Where in a JSON text a byte stands: the open containers around it, its pointer, the token it belongs to."""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from ctxscope.model import Segment

_TOKEN = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+("?)|[{}\[\]:,]|[^\s{}\[\]:,"]+', re.DOTALL)
"""A string (its closing quote a group, empty when it is torn), a structural character, or an atom.

Possessive: no backtracking on megabytes of text.
"""
_LEVELS = 64
"""Levels a pointer goes down; what lies deeper is told by the container there."""
_ITEM = 2
"""Depth of an item of a top-level array, as parts of its pointer and as containers open before it."""
SPACE = b" \t\n\r"
_NO_ATOM = b'{}[]:,"' + SPACE

Role = Literal["key", "value", "mark"]


@dataclass(slots=True)
class Open:
    """A container open at a byte."""

    start: int
    is_object: bool
    key: str = ""
    """Key of the member being read (objects)."""
    index: int = 0
    """Number of the item being read (arrays)."""
    wants: Literal["key", "colon", "value", "end"] = "value"
    """What may come next; ``end``: a comma or the closing bracket."""


@dataclass(frozen=True, slots=True)
class JsonPlace:
    """The surroundings of a byte. Everything before ``token`` is the same in two texts that agree up to the byte."""

    stack: tuple[Open, ...]
    """Open containers, outermost first."""
    token: int
    """Start of the token the byte lies in; the byte itself when it lies in none."""
    role: Role
    """What the grammar wants at ``token``: a member's key, a value, or a mark between values."""
    path: str
    """JSON pointer: of the value when ``role`` says so, else of the innermost container; of the one 64 levels down at
    most."""


@dataclass(slots=True)
class _Walk:
    stack: list[Open] = field(default_factory=list)
    torn: bool = False

    def value_done(self) -> None:
        if self.stack:
            self.stack[-1].wants = "end"

    def take(self, token: bytes, at: int) -> None:
        first = token[:1]
        if first in (b"{", b"["):
            is_object = first == b"{"
            self.stack.append(Open(at, is_object, wants="key" if is_object else "value"))
        elif first in (b"}", b"]"):
            if not self.stack:
                self.torn = True
                return
            self.stack.pop()
            self.value_done()
        elif first == b",":
            if self.stack:
                top = self.stack[-1]
                top.wants = "key" if top.is_object else "value"
                top.index += 1
        elif first == b":":
            if self.stack:
                self.stack[-1].wants = "value"
        elif self.stack and self.stack[-1].wants == "key":
            self.stack[-1].key, self.stack[-1].wants = _text(token), "colon"
        else:
            self.value_done()


def continues_atom(data: bytes, offset: int) -> bool:
    """Whether the byte there can be the next one of a number or literal."""
    return offset < len(data) and data[offset] not in _NO_ATOM


def place_of(data: bytes, segments: Sequence[Segment], offset: int, *, in_atom: bool = False) -> JsonPlace:
    """The place of ``data[offset]``. Segments that end before it are stepped over, and so are whole items of an array.

    ``in_atom``: in the text compared with, a number or literal that ends here goes on; the byte then belongs to it.
    """
    walk = _Walk()
    skip = {s.start: s.end for s in segments if s.end < offset}
    leaps = _leaps(segments, offset)
    at, token = 0, offset
    while at < offset:
        if leaps and _at_items(walk) and (leap := leaps.pop(escape_pointer(walk.stack[0].key), None)):
            at = _landed(walk, leap)
            continue
        if at in skip and not (walk.stack and walk.stack[-1].wants == "key"):
            at = skip[at]
            walk.value_done()
            continue
        if data[at] in SPACE:
            at += 1
            continue
        match = _TOKEN.match(data, at)
        if match is None:
            break
        end = match.end()
        unended = match[1] == b"" or (in_atom and data[at] not in _NO_ATOM)
        if end > offset or (end == offset and unended):
            token = at
            break
        walk.take(match[0], at)
        at = end
    return _place(walk, token)


def _leaps(segments: Sequence[Segment], offset: int) -> dict[str, Segment]:
    """By top-level array, the last segment of an item that lies two whole items before the byte, or its end before it.

    So far back, because where the containers around it start is not known: those of the items around the gap behind it
    must all have ended before the byte.
    """
    found: dict[str, Segment] = {}
    at = bisect_left(segments, offset, key=_end) - 1
    while at >= 0:
        key, item = _item_of(segments[at])
        last = at
        while at >= 0 and item is not None and _item_of(segments[at]) in ((key, item), (key, item - 1)):
            at -= 1
        if at >= 0 and item is not None and _item_of(segments[at])[0] == key:
            found[key] = segments[at]
        # segments of one rank are numbered: the array's first is so many before
        at = min(at, last - segments[last].order[1] - 1)
    return found


def _item_of(segment: Segment) -> tuple[str, int | None]:
    """Top-level key, and the number of the item a segment lies in where that is an array."""
    parts = segment.path.split("/", _ITEM + 1)
    return parts[1] if len(parts) > 1 else "", int(parts[_ITEM]) if len(parts) > _ITEM and parts[
        _ITEM
    ].isdigit() else None


def _end(segment: Segment) -> int:
    return segment.end


def _at_items(walk: _Walk) -> bool:
    """Whether the walk stands before the first item of a top-level array."""
    if len(walk.stack) != _ITEM or not walk.stack[0].is_object:
        return False
    top = walk.stack[1]
    return not top.is_object and not top.index and top.wants == "value"


def _landed(walk: _Walk, segment: Segment) -> int:
    """Put the walk behind a segment: ``/array/item`` or ``/array/item/key`` or ``/array/item/key/index``."""
    item, *inside = segment.path.split("/")[_ITEM:]
    walk.stack[1].index = int(item)
    for name in inside[:1]:
        walk.stack.append(Open(segment.start, True, name))
    for index in inside[1:]:
        walk.stack.append(Open(segment.start, False, index=int(index)))
    walk.value_done()
    return segment.end


def _place(walk: _Walk, token: int) -> JsonPlace:
    stack = tuple(walk.stack)
    role: Role = "value"
    if stack:
        wants = stack[-1].wants
        role = "key" if wants == "key" else "value" if wants == "value" else "mark"
    parts = [_part(o) for o in (stack if role == "value" else stack[:-1])]
    return JsonPlace(stack, token, role, "".join(f"/{p}" for p in parts[:_LEVELS]))


def _part(container: Open) -> str:
    return escape_pointer(container.key) if container.is_object else str(container.index)


def escape_pointer(key: str) -> str:
    """A key as it stands in a JSON pointer (RFC 6901)."""
    return key.replace("~", "~0").replace("/", "~1")


def _text(token: bytes) -> str:
    try:
        return str(json.loads(token.decode("utf-8", "backslashreplace"), strict=False))
    except ValueError:
        return token.decode("utf-8", "backslashreplace").strip('"')


def token_at(data: bytes, at: int) -> bytes:
    """The token that starts at ``at``; empty for white space and at the end."""
    match = _TOKEN.match(data, at)
    return match[0] if match else b""


def _whole(digits: str) -> int | float:
    """An integer; one of more digits than Python cares to convert is infinite."""
    try:
        return int(digits)
    except ValueError:
        return float(digits)


_DECODER = json.JSONDecoder(strict=False, parse_int=_whole)
_KEYS = json.JSONDecoder(strict=False, parse_int=_whole, object_pairs_hook=lambda pairs: tuple(k for k, _ in pairs))


def keys_at(data: bytes, at: int) -> tuple[str, ...]:
    """The keys of the object that starts at ``at``, as often as they stand there; none where it cannot be parsed."""
    found, _ = _read(_KEYS, data, at)
    return found if isinstance(found, tuple) else ()


def value_at(data: bytes, at: int) -> tuple[Any, bool]:
    """The value that starts at ``at`` and whether it could be parsed (torn, too deep or no value: ``(None, False)``)."""
    return _read(_DECODER, data, at)


def _read(decoder: json.JSONDecoder, data: bytes, at: int) -> tuple[Any, bool]:
    try:
        value, _ = decoder.raw_decode(data[at:].decode("utf-8", "surrogateescape"))
    except (ValueError, RecursionError):
        return None, False
    return value, True
