"""The first byte where a served and a rebuilt request part: where it stands, what kind of difference it is, and why."""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass
from typing import Any

from ctxscope.analysis.alignment import Shift, shift_at
from ctxscope.analysis.coverage import coverage, segment_provenance
from ctxscope.analysis.json_place import (
    SPACE,
    JsonPlace,
    continues_atom,
    escape_pointer,
    keys_at,
    place_of,
    token_at,
    value_at,
)
from ctxscope.analysis.prefixes import common_prefix
from ctxscope.analysis.spelling import (
    BREAKPOINT_KEYS,
    ID_KEYS,
    same,
    single_text,
    text_cause,
    text_class,
)
from ctxscope.model import Body, Difference, Segment

__all__ = ["coverage", "excerpt", "first_difference", "prefix_offset", "segment_provenance"]

_BEFORE, _WIDTH = 24, 80
"""An excerpt shows this many bytes before the difference and at most this many characters in all."""
_CONTINUATION = (0x80, 0xBF)
"""UTF-8 bytes that do not begin a character."""
_NO_PROMPT = ("param", "opaque")
_TELLING = ("type", "role", "name")
"""Members that tell of what kind an object is, or which one."""
_LONGEST_NAME = 64
"""Longer texts are no names, whatever the key says."""


@dataclass(frozen=True, slots=True)
class _Kind:
    cls: str
    cause: str
    path: str


def first_difference(served: Body, rebuilt: Body) -> Difference | None:
    """The first differing byte of two bodies; ``None`` when they are equal.

    ``raw_offset`` is that byte; the path goes down to the JSON leaf, or names the first segment that one side lacks.
    """
    a, b = served.data, rebuilt.data
    offset = common_prefix(a, b)
    if offset == len(a) == len(b):
        return None
    kind = _kind(served, rebuilt, offset)
    lacking = next((s for s in rebuilt.segments if s.path == kind.path), None) if kind.cls == "missing" else None
    return Difference(
        raw_offset=offset,
        other_offset=offset,
        prefix_offset=_before(served, lacking) if lacking else prefix_offset(served, offset, kind.path),
        path=kind.path,
        cls=kind.cls,
        cause=kind.cause,
        served=excerpt(a, offset),
        rebuilt=excerpt(b, offset),
    )


def prefix_offset(body: Body, offset: int, path: str = "") -> int | None:
    """Bytes of prompt form before ``body.data[offset]`` in cache order; ``None`` outside the prompt.

    Inside a segment the raw distance from its start stands for the distance in prompt form. A byte between segments
    counts as the start of the segment at or below ``path``, where there is one.
    """
    n = bisect_right(body.segments, offset, key=lambda s: s.start) - 1
    segment = body.segments[n] if n >= 0 and offset < body.segments[n].end else None
    inside = offset - segment.start if segment else 0
    if segment is None and path:
        segment = next((s for s in body.segments if _below(s.path, path)), None)
    before = _before(body, segment) if segment else None
    return None if before is None or segment is None else before + min(inside, segment.prompt_bytes)


def _before(body: Body, segment: Segment) -> int | None:
    """Prompt bytes of ``body`` that the provider renders before a segment (of any body); ``None`` outside the prompt."""
    if segment.kind in _NO_PROMPT:
        return None
    return sum(s.prompt_bytes for s in body.segments if s.order < segment.order and s.kind not in _NO_PROMPT)


def _below(path: str, parent: str) -> bool:
    return path == parent or path.startswith(parent + "/")


def excerpt(data: bytes, offset: int) -> str:
    """A little of ``data`` around a byte, as text; bytes that are no UTF-8 are escaped."""
    start = max(offset - _BEFORE, 0)
    while start > 0 and offset - start < _BEFORE + 4 and _CONTINUATION[0] <= data[start] <= _CONTINUATION[1]:
        start -= 1
    return data[start : start + _WIDTH].decode("utf-8", "backslashreplace")[:_WIDTH]


# --- what kind -------------------------------------------------------------------------------------------------------


def _kind(served: Body, rebuilt: Body, offset: int) -> _Kind:
    in_atom = continues_atom(served.data, offset) or continues_atom(rebuilt.data, offset)
    if _opaque(served) or _opaque(rebuilt):
        return _no_json(served, rebuilt, offset, in_atom=in_atom)
    place = place_of(served.data, served.segments, offset, in_atom=in_atom)
    leaf = _leaf(served.data, rebuilt.data, offset, place)
    shifted = _shifted(served, rebuilt, offset, leaf.path)
    return shifted or leaf


def _opaque(body: Body) -> bool:
    return any(s.kind == "opaque" for s in body.segments)


def _no_json(served: Body, rebuilt: Body, offset: int, *, in_atom: bool) -> _Kind:
    """A side has no segments to point at: the place is told in words."""
    here = where(place_of(served.data, (), offset, in_atom=in_atom).path)
    both = _opaque(served) and _opaque(rebuilt)
    whose = "neither body can" if both else f"the {'served' if _opaque(served) else 'rebuilt'} body cannot"
    ends = "the served one ends" if offset == len(served.data) else "the two part"
    return _Kind("opaque", f"{whose} be read as a JSON object; {ends} in {here}", "")


def _leaf(a: bytes, b: bytes, offset: int, place: JsonPlace) -> _Kind:
    """Class by the two tokens at the difference; everything before them is the same on both sides."""
    here, at = where(place.path), place.token
    if place.token == offset and (a[offset : offset + 1] in _SPACES or b[offset : offset + 1] in _SPACES):
        return _Kind("whitespace", f"white space between JSON tokens differs at {here}", place.path)
    if place.role == "key":
        return _member(a, b, place, at)
    if place.role == "mark":
        return _mark(a, b, offset, place)
    return _value(a, b, at, place)


_SPACES = frozenset(bytes([c]) for c in SPACE)


def _mark(a: bytes, b: bytes, at: int, place: JsonPlace) -> _Kind:
    """One side goes on where the other ends."""
    here = where(place.path)
    if not place.stack:
        return _Kind("content", "one body goes on after the end of the other", "")
    if place.stack[-1].is_object:
        return _member(a, b, place, at)
    longer = a[at : at + 1] == b","
    path = f"{place.path}/{place.stack[-1].index + 1}"
    if longer:
        return _Kind("extra", f"the served request has more items in {here} than the log implies", path)
    return _Kind("missing", f"the served request has fewer items in {here} than the log implies", path)


def _member(a: bytes, b: bytes, place: JsonPlace, at: int) -> _Kind:
    """Two objects part at a member's key, or one ends where the other goes on."""
    top, here = place.stack[-1], where(place.path)
    one, one_read = value_at(a, top.start)
    two, two_read = value_at(b, top.start)
    mine, theirs = _next_key(a, at), _next_key(b, at)
    if not (one_read and two_read and isinstance(one, dict) and isinstance(two, dict)):
        return _Kind("content", f"the members of {here} differ", place.path)
    if mine is not None and mine == theirs:
        return _Kind("escape", f"the same key is spelled with other escapes in {here}", place.path)
    before = keys_at(a, top.start)[: top.index + (place.role == "mark")]
    for key, cls, side in ((mine, "extra", "served"), (theirs, "missing", "rebuilt")):
        if key in before:
            path = f"{place.path}/{escape_pointer(str(key))}"
            return _Kind(cls, f"{where(path)} stands twice in the {side} request", path)
    if unlike := _unlike(one, two):
        return _Kind("content", f"{here} is another one: {unlike[0]} served, {unlike[1]} rebuilt", place.path)
    if mine is not None and mine not in two:
        return _one_sided(place, mine, one[mine], served=True, other=theirs if theirs not in one else None)
    if theirs is not None and theirs not in one:
        return _one_sided(place, theirs, two[theirs], served=False, other=None)
    more = "" if same(one, two) else ", and not only their order differs"
    return _Kind("key_order", f"the keys of {here} stand in another order{more}", place.path)


def _unlike(one: dict[str, Any], two: dict[str, Any]) -> tuple[str, str] | None:
    """By what two objects are told to be of another kind, or two others of one kind: type, role, name."""
    for key in _TELLING:
        a, b = one.get(key), two.get(key)
        if isinstance(a, str) and isinstance(b, str) and a != b and max(len(a), len(b)) <= _LONGEST_NAME:
            return a, b
    return None


def _next_key(data: bytes, at: int) -> str | None:
    """The key that starts at ``at``, or after the comma there; ``None`` at the end of the object."""
    if data[at : at + 1] == b",":
        at += 1
        while data[at : at + 1] in _SPACES:
            at += 1
    token = token_at(data, at)
    if token[:1] != b'"':
        return None
    key, read = value_at(token, 0)
    return key if read else None


def _one_sided(place: JsonPlace, key: str, value: Any, *, served: bool, other: str | None) -> _Kind:
    path = f"{place.path}/{escape_pointer(key)}"
    has, lacks = ("served request", "rebuilt one") if served else ("rebuilt request", "served one")
    if key in BREAKPOINT_KEYS:
        return _Kind("breakpoint", f"the {has} carries a cache mark at {where(place.path)}, the {lacks} does not", path)
    if value is None:
        return _Kind("null_vs_missing", f"the {has} spells {where(path)} as null, the {lacks} leaves it out", path)
    if other is not None:
        return _Kind("content", f"the keys of {where(place.path)} differ: {key} against {other}", path)
    verb = "holds more than the log implies" if served else "lacks what the log implies"
    return _Kind("extra" if served else "missing", f"the served request {verb}: {where(path)}", path)


def _value(a: bytes, b: bytes, at: int, place: JsonPlace) -> _Kind:
    """Two values part, at their first byte or inside."""
    path, here = place.path, where(place.path)
    one, one_read = value_at(a, at)
    two, two_read = value_at(b, at)
    if not (one_read and two_read):
        if b"]" in (a[at : at + 1], b[at : at + 1]):
            return _empty_list(a, at, place)
        return _Kind("content", f"{here} differs", path)
    if same(one, two):
        return _Kind(*_respelled(one, here), path)
    if isinstance(one, str) and isinstance(two, str):
        return _texts(one, two, path)
    return _Kind(*_other_shape(one, two, here), path)


def _empty_list(a: bytes, at: int, place: JsonPlace) -> _Kind:
    parent = where(place.path.rpartition("/")[0])
    if a[at : at + 1] == b"]":
        return _Kind("missing", f"{parent} is empty in the served request and is not in the rebuilt one", place.path)
    return _Kind("extra", f"{parent} is empty in the rebuilt request and is not in the served one", place.path)


def _respelled(value: Any, here: str) -> tuple[str, str]:
    if isinstance(value, str):
        return "escape", f"{here} is the same text spelled with other escapes"
    return "number_spelling", f"{here} is the same number spelled otherwise"


def _other_shape(one: Any, two: Any, here: str) -> tuple[str, str]:
    texts = (one if isinstance(one, str) else single_text(one)), (two if isinstance(two, str) else single_text(two))
    if texts[0] is not None and texts[0] == texts[1]:
        (block,) = one if isinstance(one, list) else two
        if BREAKPOINT_KEYS & block.keys():
            return "breakpoint", f"{here} is written as a block list on one side, for a cache mark"
        return "form", f"{here} is a string on one side and a single text block on the other"
    if (one is None and two == "") or (one == "" and two is None):
        return "null_vs_missing", f"{here} is null on one side and an empty text on the other"
    return "content", f"{here} differs: {_shape(one)} served, {_shape(two)} rebuilt"


def _shape(value: Any) -> str:
    if value is None:
        return "null"
    names = {bool: "a truth value", str: "a text", dict: "an object", list: "a list"}
    return names.get(type(value), "a number")


def _texts(one: str, two: str, path: str) -> _Kind:
    here, key = where(path), path.rpartition("/")[2]
    if key in ID_KEYS:
        return _Kind("id_regenerated", f"{here} is another id than the log holds", path)
    if key in _TELLING[:2] and max(len(one), len(two)) <= _LONGEST_NAME:
        return _Kind("content", f"{here}: {one} served, {two} rebuilt", path)
    cls = text_class(one, two)
    words = text_cause(cls)
    if words:
        return _Kind(cls, f"in {here} {words}", path)
    if one.startswith(two):
        return _Kind(cls, f"{here} goes on in the served request after the text the log implies", path)
    if two.startswith(one):
        return _Kind(cls, f"{here} ends in the served request before the text the log implies does", path)
    return _Kind(cls, f"{here} has text in the served request that the log does not imply", path)


# --- whole segments --------------------------------------------------------------------------------------------------


def _shifted(served: Body, rebuilt: Body, offset: int, path: str) -> _Kind | None:
    """Whole segments more, fewer or in another order at the difference, within one list (tools, system, messages)."""
    field = path.split("/", 2)[1] if path else ""
    mine, theirs = _of_field(served, field), _of_field(rebuilt, field)
    if not mine or not theirs:
        return None
    i, j = _first_after(mine, offset), _first_after(theirs, offset)
    if i != j or (i < len(mine) and mine[i].kind == "param"):
        return None
    shift = shift_at(mine, theirs, i, j)
    return _told(shift, mine, theirs, i) if shift else None


def _told(shift: Shift, mine: list[Segment], theirs: list[Segment], at: int) -> _Kind:
    if shift.cls == "order":
        return _moved([(a.path, b.path) for a, b in zip(mine, theirs, strict=False)][at : at + shift.count])
    first = (mine if shift.cls == "extra" else theirs)[at]
    more = f" and {shift.count - 1} more" if shift.count > 1 else ""
    if shift.cls == "extra":
        cause = f"the served request holds {where(first.path)}{more}, which the log does not imply"
    else:
        cause = f"the served request lacks what the log implies as {where(first.path)}{more}"
    return _Kind(shift.cls, cause, first.path)


def _moved(paths: list[tuple[str, str]]) -> _Kind:
    """Segments that changed places: blocks of one message, or whole items (messages, tools)."""
    first = paths[0][0]
    item = _item(first)
    path = first if all(_item(p) == item for pair in paths for p in pair) else item
    list_ = path.rpartition("/")[0]
    return _Kind("order", f"{_LISTS.get(list_) or f'the items of {where(list_)}'} stand in another order", path)


def _item(path: str) -> str:
    """The item of a top-level list that a segment is or stands in (``/messages/4``)."""
    return "/".join(path.split("/")[:3])


def _of_field(body: Body, field: str) -> list[Segment]:
    return [s for s in body.segments if s.path == f"/{field}" or s.path.startswith(f"/{field}/")]


def _first_after(segments: list[Segment], offset: int) -> int:
    """Index of the first segment that is not wholly before the byte."""
    return bisect_right(segments, offset, key=lambda s: s.end)


# --- words -----------------------------------------------------------------------------------------------------------

_LISTS = {
    "/messages": "the messages",
    "/contents": "the messages",
    "/input": "the input",
    "/tools": "the tools",
}
_ITEM = re.compile(r"/(messages|input|contents|system|tools)/(\d+)(?:/(?:content|parts)/(\d+))?(.*)")


def where(path: str) -> str:
    """A JSON pointer in words: ``message 38, block 1, input/command``."""
    if not path:
        return "the request"
    match = _ITEM.fullmatch(path)
    if match is None:
        return _LISTS.get(path, path.lstrip("/"))
    name, item, block, rest = match.groups()
    noun = {"tools": "tool", "system": "system block", "input": "input item"}.get(name, "message")
    parts = [f"{noun} {item}", f"block {block}" if block else "", rest.strip("/")]
    return ", ".join(p for p in parts if p)
