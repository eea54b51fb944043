"""Exact byte spans of JSON values, found without keeping what they hold.

A body decoded as latin-1 has one character per byte, so the index the C scanner of the standard library returns is the
byte offset (engineering §2). Walkers take a ``visit`` callback that is given where a value starts and returns where it
ends; whatever is wrong with the text raises ``ValueError``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from json.decoder import scanstring  # type: ignore[attr-defined]  # the C scanner; typeshed omits it
from typing import NoReturn

from ctxscope.wire.json_text import loads

DEPTH_LIMIT = 10_000
"""Nesting beyond which a value counts as unreadable; well above what clients can spell (JSON.stringify: some 4,000)."""

_scan_once = json.JSONDecoder(strict=False, parse_int=float).scan_once  # type: ignore[attr-defined]  # typeshed omits it
"""Integers as floats: Python refuses to convert very long ones, which are JSON all the same."""
_BLANK = re.compile(r"[ \t\n\r]*")
_TOKEN = re.compile(
    r"[ \t\n\r]*"
    r'(?:("(?:[^"\\]++|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*+")'
    r"|(-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?|true|false|null|NaN|-?Infinity)"
    r"|([\[{])|([\]}])|([:,]))"
)
_STRING, _SCALAR, _OPEN, _CLOSE = 1, 2, 3, 4


def blank_end(text: str, at: int) -> int:
    """Index of the first character at or after ``at`` that is not JSON whitespace."""
    return _BLANK.match(text, at).end()  # type: ignore[union-attr]  # the pattern matches everywhere


def value_end(text: str, start: int) -> int:
    """End of the value that starts at ``start``; ``ValueError`` when there is none or it nests too deep."""
    try:
        _, end = _scan_once(text, start)
    except StopIteration:
        _fail(text, start)
    except RecursionError:
        # how deep the C scanner gets depends on the caller's own stack: the answer must not
        return _value_end_deep(text, start)
    return int(end)


def members(text: str, start: int, visit: Callable[[str, int], int]) -> int:
    """Walk the object at ``start``: ``visit(key, value_start) -> value_end`` for each member; returns its end."""
    at = blank_end(text, start + 1)
    if text[at : at + 1] == "}":
        return at + 1
    return more_members(text, _member(text, at, visit), visit)


def more_members(text: str, at: int, visit: Callable[[str, int], int]) -> int:
    """The rest of an object whose latest member's value ends at ``at``."""
    while True:
        at = blank_end(text, at)
        mark = text[at : at + 1]
        if mark == "}":
            return at + 1
        if mark != ",":
            _fail(text, at)
        at = _member(text, blank_end(text, at + 1), visit)


def items(text: str, start: int, visit: Callable[[int, int], int]) -> int:
    """Walk the array at ``start``: ``visit(index, item_start) -> item_end`` for each item; returns its end."""
    at = blank_end(text, start + 1)
    if text[at : at + 1] == "]":
        return at + 1
    return more_items(text, visit(0, at), 0, visit)


def more_items(text: str, at: int, index: int, visit: Callable[[int, int], int]) -> int:
    """The rest of an array whose item ``index`` ends at ``at``."""
    while True:
        at = blank_end(text, at)
        mark = text[at : at + 1]
        if mark == "]":
            return at + 1
        if mark != ",":
            _fail(text, at)
        index += 1
        at = visit(index, blank_end(text, at + 1))


def _member(text: str, at: int, visit: Callable[[str, int], int]) -> int:
    if text[at : at + 1] != '"':
        _fail(text, at)
    key, end = scanstring(text, at + 1, False)
    if not key.isascii():
        # latin-1 made raw UTF-8 unreadable: take the key as it is meant
        key = loads(text[at:end].encode("latin-1"))
    colon = blank_end(text, end)
    if text[colon : colon + 1] != ":":
        _fail(text, colon)
    return visit(key, blank_end(text, colon + 1))


def _value_end_deep(text: str, start: int) -> int:
    """``value_end`` with a stack of its own instead of recursion."""
    stack: list[str] = []
    at, want = start, "value"
    while True:
        token = _TOKEN.match(text, at)
        if token is None:
            _fail(text, at)
        at, mark = token.end(), token[token.lastindex or 0]
        if token.lastindex == _OPEN and want in ("value", "first item"):
            stack.append("}" if mark == "{" else "]")
            if len(stack) > DEPTH_LIMIT:
                raise ValueError(f"nests deeper than {DEPTH_LIMIT} at byte {at}")
            want = "first key" if mark == "{" else "first item"
            continue
        want = _after(token.lastindex, mark, want, stack)
        if not want:
            _fail(text, token.start())
        if want == "comma" and not stack:
            return at


def _after(group: int | None, mark: str, want: str, stack: list[str]) -> str:
    """What must follow a token that opens nothing, ``""`` when it may not stand here; closes what it closes."""
    if group == _CLOSE and want in ("comma", "first key" if mark == "}" else "first item"):
        return "comma" if stack.pop() == mark else ""
    if want in ("value", "first item") and group in (_STRING, _SCALAR):
        return "comma"
    if want in ("key", "first key") and group == _STRING:
        return "colon"
    if want == "colon" and mark == ":":
        return "value"
    if want == "comma" and mark == ",":
        return "key" if stack[-1] == "}" else "value"
    return ""


def _fail(text: str, at: int) -> NoReturn:
    raise ValueError(f"not JSON at byte {at} of {len(text)}")
