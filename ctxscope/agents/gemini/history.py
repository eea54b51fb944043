"""A conversation as one process holds it, and the contents its requests are made of (gemini.md §4).

A history only grows; what rewrites it begins another one. A request is a history up to a length. Neighbours of one role
are one content.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, overload

from ctxscope.agents.gemini.parts import Sent, sent
from ctxscope.model import Entry, Piece


@dataclass(frozen=True, slots=True, eq=False)
class Turn:
    """One message of the history."""

    id: str
    role: str
    """``user`` or ``model``."""
    parts: tuple[Mapping[str, Any], ...]
    entry: Entry | None
    """Where it is logged; ``None`` for one that the program puts in without a word."""
    fresh: bool = False
    """An answer as the process that got it keeps it: with the model's own signatures, which are not logged."""
    characters: int = 0
    """Length of the message in the log."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Where the contents stand behind some turns of a history."""

    contents: int = 0
    role: str = ""
    """Of the last content."""
    parts: int = 0
    """In the last content."""
    called: bool = False
    """Whether a function call stands in the last content."""
    texts: bool = False
    responses: bool = False
    """Whether text, or a function response, stands in it."""
    active: int = -1
    """Of the contents before the last one the last that begins a loop; -1: none."""
    characters: int = 0

    @property
    def loop(self) -> int:
        """The content from which on function calls must have a signature: the last that a user wrote; -1: none."""
        begins = self.role == "user" and self.texts and not self.responses
        return self.contents - 1 if begins else self.active


@dataclass(frozen=True, slots=True)
class Placed:
    """The sent parts of one turn and where they stand."""

    turn: Turn
    sent: Sent
    content: int
    first: int
    """Number of its first part in the content."""
    call: int | None
    """Which of its parts is the content's first function call, if one is."""
    index: int
    """Number of the turn."""


@dataclass(eq=False, slots=True, repr=False)
class History:
    """Turns in order, with their layout."""

    turns: list[Turn] = field(default_factory=list)
    layouts: list[Layout] = field(default_factory=lambda: [Layout()])
    placed: list[Placed | None] = field(default_factory=list)
    """By turn; ``None`` for one of which nothing is sent."""
    entries: list[Entry] = field(default_factory=list)
    """The entries that the turns stand in, each once."""
    counts: list[int] = field(default_factory=lambda: [0])
    """How many of ``entries`` the turns up to each are made of."""
    settled: list[Piece] = field(default_factory=list)
    """Pieces of the contents that later requests repeat as they are (``contents``)."""
    starts: list[int] = field(default_factory=list)
    """Index in ``settled`` behind each content."""
    needs: list[int] = field(default_factory=list)
    """Number of the call that first sent the last signature up to each content."""
    ends: list[int] = field(default_factory=list)
    """First turn behind each content."""
    settled_by: object = None
    """What taught them."""
    taken: int = 0
    """Turns that some request has been made of."""

    def append(self, turn: Turn) -> None:
        """Add a turn at the end."""
        before = self.layouts[-1]
        made = sent(turn.role, turn.parts, fresh=turn.fresh)
        self.turns.append(turn)
        if turn.entry is not None and (not self.entries or self.entries[-1] is not turn.entry):
            self.entries.append(turn.entry)
        self.counts.append(len(self.entries))
        characters = before.characters + turn.characters
        if made is None:
            self.placed.append(None)
            self.layouts.append(replace(before, characters=characters))
            return
        same = before.contents > 0 and before.role == turn.role
        content = before.contents - 1 if same else before.contents
        calls = [i for i, part in enumerate(made.parts) if part.call]
        called = same and before.called
        first = before.parts if same else 0
        self.placed.append(
            Placed(turn, made, content, first, calls[0] if calls and not called else None, len(self.turns) - 1)
        )
        self.layouts.append(
            Layout(
                content + 1,
                turn.role,
                first + len(made.parts),
                called or bool(calls),
                made.texts or (same and before.texts),
                made.responses or (same and before.responses),
                before.active if same else before.loop,
                characters,
            )
        )

    def pop(self) -> None:
        """Take the last turn out again, which no request was made of."""
        for held in (self.turns, self.layouts, self.placed, self.counts):
            held.pop()
        del self.entries[self.counts[-1] :]

    def until(self, length: int) -> History:
        """A history of the first turns alone."""
        found = History()
        for turn in self.turns[:length]:
            found.append(turn)
        return found

    def context(self, length: int) -> Sequence[Entry]:
        """The entries a request was made of."""
        return View(self.entries, self.counts[length])


class View(Sequence[Entry]):
    """The first entries of a growing list, as they were when the view was taken."""

    __slots__ = ("_entries", "_length")

    def __init__(self, entries: list[Entry], length: int) -> None:
        self._entries, self._length = entries, length

    def __len__(self) -> int:
        return self._length

    @overload
    def __getitem__(self, index: int) -> Entry: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Entry]: ...
    def __getitem__(self, index: int | slice) -> Entry | Sequence[Entry]:
        if isinstance(index, slice):
            return self._entries[: self._length][index]
        if not -self._length <= index < self._length:
            raise IndexError(index)
        return self._entries[index % self._length]

    def __iter__(self) -> Iterator[Entry]:
        return iter(self._entries[: self._length])
