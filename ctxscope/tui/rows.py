r"""Display rows: where a body is cut so that a person can read it. Rows tile the bytes; nothing is dropped or added.

Raw rows end at line ends (``\n`` in the bytes or escaped in a string) and between the larger JSON values. Pretty rows hold
one JSON member or element each, with the nesting depth for indentation, which is no part of the bytes.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from operator import sub
from typing import Literal

Form = Literal["raw", "pretty", "hex"]
FORMS: tuple[Form, ...] = ("raw", "pretty", "hex")
"""In the order a key walks them."""
LONGEST_ROW = 4096
"""Bytes; a longer row is cut, at a character border where there is one."""

_RAW_END = re.compile(rb"\\\\|\\n|\n|\},|\],|\[(?=[\[{])")
_LINE_ESCAPE = re.compile(rb"\\\\|\\n(?!\")")
_LINE_END_ESCAPE, _ESCAPED_BACKSLASH = b"\\n", b"\\\\"
"""The second ends no row: it is matched so that its second half does not begin an ``\\n``. That every alternative begins with a
letter lets the engine skip eight times faster what cannot begin one; a look-behind would not."""
_TOKEN = re.compile(rb'"(?:[^"\\]++|\\.)*+"|[{}\[\],\n]', re.DOTALL)
_OPENING, _CLOSING = (b"{", b"["), (b"}", b"]")
_UTF8_CONTINUATION = range(0x80, 0xC0)
_LONGEST_CHARACTER = 4


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Cuts of one body: row i is ``data[starts[i]:starts[i + 1]]``."""

    starts: Sequence[int]
    """Row starts and, last, the length of the data; ``[0]`` alone for an empty body."""
    depths: Sequence[int] | None = None
    """Nesting depth of each row, for pretty rows."""

    def __len__(self) -> int:
        return len(self.starts) - 1


def split(data: bytes, form: Form) -> Rows:
    """Rows of ``data``; hex is laid out over raw rows, so that both sides of a comparison stay aligned."""
    return _pretty(data) if form == "pretty" else _raw(data)


def character_border(data: bytes, at: int, floor: int) -> int:
    """The last place at or before ``at`` (above ``floor``) that does not cut a UTF-8 character; ``at`` if none is near."""
    for back in range(min(_LONGEST_CHARACTER, at - floor)):
        if at - back >= len(data) or data[at - back] not in _UTF8_CONTINUATION:
            return at - back
    return at


def _extend(starts: list[int], data: bytes, end: int) -> None:
    """End the row that began at ``starts[-1]`` at ``end``, in pieces when it is too long."""
    while end - starts[-1] > LONGEST_ROW:
        starts.append(character_border(data, starts[-1] + LONGEST_ROW, starts[-1]))
    if end > starts[-1]:
        starts.append(end)


def _raw(data: bytes) -> Rows:
    ends = _ends(_RAW_END, data, 0, len(data))
    if data and (not ends or ends[-1] != len(data)):
        ends.append(len(data))
    if max(map(sub, ends, [0, *ends]), default=0) <= LONGEST_ROW:
        return Rows([0, *ends])
    starts = [0]
    for end in ends:
        _extend(starts, data, end)
    return Rows(starts)


def _ends(pattern: re.Pattern[bytes], data: bytes, start: int, end: int) -> list[int]:
    """Where the matches of one of the two patterns end that know escaped backslashes, these left out."""
    found = pattern.finditer(data, start, end)
    if data.find(_ESCAPED_BACKSLASH, start, end) < 0:
        return [match.end() for match in found]
    return [match.end() for match in found if match[0] != _ESCAPED_BACKSLASH]


def _line_ends(data: bytes, start: int, end: int) -> Sequence[int]:
    """Where escaped line ends of a string end; most strings are short and have none."""
    return () if data.find(_LINE_END_ESCAPE, start, end) < 0 else _ends(_LINE_ESCAPE, data, start, end)


def _pretty(data: bytes) -> Rows:
    starts, depth, row_depth = [0], 0, 0
    depths: list[int] = []

    def cut(end: int) -> None:
        _extend(starts, data, end)
        depths.extend([row_depth] * (len(starts) - 1 - len(depths)))

    for token in _TOKEN.finditer(data):
        start, end = token.span()
        kind = data[start : start + 1]
        if kind == b'"':
            for escape_end in _line_ends(data, start, end):
                cut(escape_end)
                row_depth = depth + 1
            continue
        if kind in _OPENING:
            depth += 1
            if data[end : end + 1] in _CLOSING:
                continue
        if kind in _CLOSING:
            depth = max(depth - 1, 0)
            if data[start - 1 : start] in _OPENING:
                continue
            cut(start)
        elif kind == b"\n":
            depth = 0
            cut(end)
        else:
            cut(end)
        row_depth = depth
    cut(len(data))
    return Rows(starts, depths)
