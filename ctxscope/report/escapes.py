r"""A text as it stands and as what it spells: JSON in a body writes ``sk\u002dant``, and JSON inside JSON twice so.

Whoever looks for something in a text looks in all its readings, and gets places in the text as it stands.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

_ESCAPE = re.compile(r"""\\(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|([\\/"'bfnrt]))""")
_NAMED = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_DEEPEST = 4
"""Escapes inside escapes that are followed: a tool's arguments, quoting JSON that quotes JSON."""


@dataclass(frozen=True, slots=True)
class Reading:
    """A text with some levels of its escapes undone, and the way back."""

    text: str
    _here: Sequence[int] = (0,)
    """Places where characters stop to lie at the same distance from each other as in the text it was read from."""
    _there: Sequence[int] = (0,)
    """The same places in that text."""
    _below: Reading | None = None

    def back(self, place: int) -> int:
        """Where the character at ``place`` begins in the text as it stands."""
        if self._below is None:
            return place
        n = bisect_right(self._here, place) - 1
        return self._below.back(self._there[n] + place - self._here[n])


def readings(text: str) -> Iterator[Reading]:
    """The text as it stands, then with its escapes undone, as long as there are any."""
    reading = Reading(text)
    yield reading
    for _ in range(_DEEPEST):
        if "\\" not in reading.text:
            return
        inner = _unescaped(reading)
        if len(inner.text) == len(reading.text):
            return
        reading = inner
        yield reading


def _unescaped(outer: Reading) -> Reading:
    parts: list[str] = []
    here, there = [0], [0]
    size = end = 0
    for match in _ESCAPE.finditer(outer.text):
        parts += (outer.text[end : match.start()], _character(match))
        size += match.start() - end
        end = match.end()
        here += (size, size + 1)
        there += (match.start(), end)
        size += 1
    parts.append(outer.text[end:])
    return Reading("".join(parts), here, there, outer)


def _character(match: re.Match[str]) -> str:
    code, byte, name = match.groups()
    return _NAMED.get(name, name) if name else chr(int(code or byte, 16))
