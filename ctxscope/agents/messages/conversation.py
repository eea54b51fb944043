"""The messages of a request out of a log that keeps them in the API's own form, followed along the served ones.

What is spelled as served is taken as it stands without looking closer, so that a call costs what is new or differs.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ctxscope.agents.messages.fields import Field, trimmed
from ctxscope.agents.messages.merge import Rules, merge
from ctxscope.agents.messages.pieces import Pieces
from ctxscope.agents.messages.trail import Trail
from ctxscope.agents.messages.tree import parse
from ctxscope.model import Piece
from ctxscope.wire.overlap import lcp
from ctxscope.wire.spans import value_end

_BLANK = (b" ", b"\t", b"\n", b"\r")


@dataclass(eq=False, slots=True)
class Served:
    """The served array, read item by item."""

    data: bytes
    at: int | None
    """Where the next item starts; ``None`` when there is none."""
    gap: bytes = b""
    """What stands before it, from the end of the item before."""
    _text: str = ""
    _base: int | None = None
    """Where in the body ``_text`` begins: only what is looked at closer is read."""

    @classmethod
    def of(cls, data: bytes, start: int) -> Served:
        """The array at ``start``; none where there is no array."""
        if data[start : start + 1] != b"[":
            return cls(data, None)
        found = cls(data, None)
        found._open(start)
        return found

    def begins_with(self, data: bytes) -> bool:
        """Whether the next item is spelled so."""
        at = self.at
        return (
            at is not None
            and self.data.startswith(data, at)
            and self.data[at + len(data) : at + len(data) + 1] in (b",", b"]", b" ", b"\n")
        )

    def item(self) -> bytes | None:
        """The next item as it is spelled."""
        if self.at is None:
            return None
        text, base = self._latin(self.at)
        try:
            return self.data[self.at : value_end(text, self.at - base) + base]
        except ValueError:
            return None

    def skip(self, length: int) -> None:
        """Go behind the next item, which is so long."""
        assert self.at is not None
        self._behind(self.at + length)

    def _latin(self, at: int) -> tuple[str, int]:
        if self._base is None or self._base > at:
            self._text, self._base = self.data[at:].decode("latin-1"), at
        return self._text, self._base

    def _blank_end(self, at: int) -> int:
        while self.data[at : at + 1] in _BLANK:
            at += 1
        return at

    def _open(self, start: int) -> None:
        at = start + 1
        at = self._blank_end(at)
        self.gap = self.data[start:at]
        self.at = at if self.data[at : at + 1] not in (b"]", b"") else None

    def _behind(self, end: int) -> None:
        at = self._blank_end(end)
        if self.data[at : at + 1] == b",":
            at = self._blank_end(at + 1)
            self.at, self.gap = at, self.data[end:at]
        else:
            self.at, self.gap = None, self.data[end:at]


@dataclass(eq=False, slots=True)
class _Stood:
    """Where the writing of an earlier request stood behind each of its messages."""

    data: bytes
    """The served body it followed."""
    found: list[Piece]
    marks: list[tuple[int, int, bytes, int]]
    """Before each message: pieces written, where the served item starts, what stands before that, its number."""


@dataclass(eq=False, slots=True)
class Follow:
    """Writes the messages of one request."""

    trail: Trail
    first: int
    length: int
    rules: Rules
    sent: dict[Field, bool]
    served: Served
    path: str
    """Pointer of the array."""
    index: int = 0
    """Of the next item."""
    found: list[Piece] = field(default_factory=list)

    def write(self, lead: Sequence[tuple[Piece, ...]]) -> tuple[Piece, ...]:
        """The whole array; ``lead`` stands before the logged messages."""
        plain = self._plain()
        key = ("stood", self.path, self.first, self.rules, frozenset(self.sent.items()), *(p for i in lead for p in i))
        marks = self._resume(self.trail.rendered.get(key))
        if not marks:
            for item in lead:
                self._separate()
                self.found += item
                self._pass(b"".join(p.data for p in item))
        for at in range(self.first + max(0, len(marks) - 1), self.length):
            if len(marks) == at - self.first and self.served.at is not None:
                marks.append((len(self.found), self.served.at, self.served.gap, self.index))
            self._separate()
            if self.served.begins_with(plain[at].data):
                self.found.append(plain[at])
                self._pass(plain[at].data)
            else:
                self._closer(at, plain[at])
        self.trail.rendered[key] = _Stood(self.served.data, self.found, marks)
        end = Piece(self.served.gap + b"]") if self._by_value_gap() and self.served.at is None else CLOSE
        return (*self.found, *(() if self.index else (OPEN,)), end)

    def _resume(self, stood: _Stood | None) -> list[tuple[int, int, bytes, int]]:
        """Go on where an earlier request stood as the two bodies part; its marks up to there."""
        if stood is None or not stood.marks:
            return []
        same = lcp(stood.data, self.served.data)
        count = min(bisect_right(stood.marks, same, key=lambda mark: mark[1]), self.length - self.first)
        if not count:
            return []
        pieces, self.served.at, self.served.gap, self.index = stood.marks[count - 1]
        self.found = stood.found[:pieces]
        return stood.marks[:count]

    def _plain(self) -> list[Piece]:
        """Each message as the client is expected to spell it, shared by all calls."""
        key = (self.rules, frozenset(self.sent.items()))
        made: list[Piece] = self.trail.rendered.setdefault(key, [])
        made += (
            Piece(self.rules.spelling.text(trimmed(message.text, self.sent)), "logged", message.place)
            for message in self.trail.messages[len(made) : self.length]
        )
        return made

    def _closer(self, at: int, plain: Piece) -> None:
        """A message that is not served as expected: merged with the served one in its place."""
        item = self.served.item()
        if item is None:
            self.found.append(plain)
            self.index += 1
            self.served.at = None
            return
        key = ("like", self.rules, frozenset(self.sent.items()))
        seen: dict[int, Any] = self.trail.rendered.setdefault(key, {})
        if at not in seen or seen[at][:2] != (item, self.index):
            seen[at] = (item, self.index, self._merged(at, item))
        self.found += seen[at][2]
        self._pass(item)

    def _merged(self, at: int, item: bytes) -> tuple[Piece, ...]:
        message = self.trail.messages[at]
        logged, served = parse(trimmed(message.text, self.sent)), parse(item)
        out = Pieces(message.place)
        if logged is None:
            out.logged(message.text)
        else:
            merge(out, logged, served, self.rules, f"{self.path}/{self.index}")
        return tuple(out.found)

    def _separate(self) -> None:
        if self._by_value_gap() and self.served.at is not None:
            self.found.append(Piece(self.served.gap))
        else:
            self.found.append(self._comma() if self.index else OPEN)

    def _comma(self) -> Piece:
        return SPACED_COMMA if self.rules.spelling.spaced else COMMA

    def _by_value_gap(self) -> bool:
        return self.rules.by_value and bool(self.served.gap)

    def _pass(self, data: bytes) -> None:
        """Go on behind an item written; the served array goes on behind its own."""
        self.index += 1
        if self.served.at is None:
            return
        own = data if self.served.begins_with(data) else self.served.item()
        if own is None:
            self.served.at = None
        else:
            self.served.skip(len(own))


OPEN, CLOSE, COMMA, SPACED_COMMA = Piece(b"["), Piece(b"]"), Piece(b","), Piece(b", ")
