r"""The prompt form of a JSON value: its text with the spelling a provider cannot see removed.

Whitespace between tokens and escapes (``\u00e9`` beside ``é``) are made uniform; in objects that belong to the protocol
(message, block, tool) keys are sorted and cache marks dropped; inside schemas and tool inputs key order, duplicate keys
and number spelling stay (prompt_caching §6). Text is latin-1 here, one character per byte.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from ctxscope.wire.json_text import js_string, loads
from ctxscope.wire.spans import items, members, value_end

MARKS = frozenset({"cache_control", "prompt_cache_breakpoint"})
"""Members by which a client sets a breakpoint; no part of the prompt."""

_OUTSIDE_STRINGS = re.compile(r'("(?:[^"\\]++|\\.)*+")|[ \t\n\r]+', re.DOTALL)
_ESCAPES = re.compile(r"(?:\\u[0-9a-fA-F]{4})+|\\/|\\\\")


@dataclass(frozen=True, slots=True)
class Shape:
    """Which part of a value belongs to the protocol; what has no shape is kept as the client wrote it."""

    members: Mapping[str, Shape] = field(default_factory=dict)
    """Shapes of an object's members, by key."""
    each: bool = False
    """The value is an array and this is the shape of its items."""
    text: str = ""
    """Block type that a string stands for, where a string equals a list of one such block."""


@dataclass(frozen=True, slots=True)
class Form:
    """A value's prompt form."""

    end: int
    """Where the value ends in the text it was read from."""
    text: str
    fields: Mapping[str, str] = field(default_factory=dict)
    """Forms of an object's members by key, cache marks left out."""
    marked: bool = False
    """A cache mark was dropped somewhere in it."""


def plain(text: str) -> str:
    """A value's text in uniform spelling, key order and numbers untouched."""
    if text[:1] != '"':
        text = _OUTSIDE_STRINGS.sub(r"\1", text)
    if "\\u" in text or "\\/" in text:
        text = _ESCAPES.sub(_unescape, text)
    return text


def object_text(fields: Mapping[str, str]) -> str:
    """An object of the protocol from the forms of its members."""
    return join_members(sorted(fields.items()))


def join_members(pairs: list[tuple[str, str]]) -> str:
    """An object's text from keys and the text of their values, in this order."""
    return "{" + ",".join(f"{_key(key)}:{value}" for key, value in pairs) + "}"


def text_block(quoted: str, kind: str) -> str:
    """The block that a bare string stands for."""
    return object_text({"type": f'"{kind}"', "text": quoted})


def form(text: str, start: int, shape: Shape | None) -> Form:
    """The prompt form of the value at ``start``; ``ValueError`` when there is none."""
    opening = text[start : start + 1]
    if shape is not None and opening == "[" and shape.each:
        return _array(text, start, shape)
    if shape is not None and opening == "{" and not shape.each:
        return _object(text, start, shape)
    end = value_end(text, start)
    value = plain(text[start:end])
    if shape is not None and shape.text and opening == '"':
        value = f"[{text_block(value, shape.text)}]"
    return Form(end, value)


def _object(text: str, start: int, shape: Shape) -> Form:
    pairs: list[tuple[str, str]] = []
    marked = False

    def visit(key: str, at: int) -> int:
        nonlocal marked
        part = form(text, at, shape.members.get(key))
        if key in MARKS:
            marked = marked or part.text != "null"
        else:
            marked = marked or part.marked
            pairs.append((key, part.text))
        return part.end

    end = members(text, start, visit)
    pairs.sort(key=lambda pair: pair[0])
    return Form(end, join_members(pairs), dict(pairs), marked)


def _array(text: str, start: int, shape: Shape) -> Form:
    parts: list[Form] = []
    item = Shape(shape.members)

    def visit(_index: int, at: int) -> int:
        parts.append(form(text, at, item))
        return parts[-1].end

    end = items(text, start, visit)
    return Form(end, "[" + ",".join(p.text for p in parts) + "]", marked=any(p.marked for p in parts))


def _key(key: str) -> str:
    return f'"{key}"' if key.isidentifier() and key.isascii() else _latin(js_string(key))


def _latin(text: str) -> str:
    return text.encode("utf-8").decode("latin-1")


def _unescape(match: re.Match[str]) -> str:
    spelled = match[0]
    if spelled == "\\/":
        return "/"
    if spelled == "\\\\":
        return spelled
    return _latin(js_string(loads(f'"{spelled}"'))[1:-1])
