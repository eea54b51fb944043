"""A conversation as one process holds it: contents in order, which only grow; what rewrites them begins another history."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, overload

from ctxscope.agents.qwen.messages import Form, Message, is_valid, messages
from ctxscope.model import Entry, Place

Parts = tuple[Mapping[str, Any], ...]


@dataclass(frozen=True, slots=True, eq=False)
class Turn:
    """One content of the history."""

    role: str
    """``user`` or ``model``."""
    parts: Parts
    entry: Entry | None
    """Where it is logged; ``None`` for one that the program puts in without a word."""
    characters: int = 0
    """Length of the content in the log."""
    owners: tuple[Entry, ...] = ()
    """The entry of each part, where they stand in several."""
    written: dict[Form, tuple[Message, ...]] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """Key of the entry it is logged in; empty without one."""
        return self.entry.key if self.entry is not None else ""

    def place(self, part: int = 0) -> Place | None:
        """Where it, or one of its parts, stands in the log."""
        entry = self.owners[part] if part < len(self.owners) else self.entry
        return entry.place if entry is not None else None

    @property
    def places(self) -> list[Place]:
        """Every place it stands in."""
        known = self.owners or ((self.entry,) if self.entry is not None else ())
        return [entry.place for entry in dict.fromkeys(known)]

    def with_more(self, parts: Parts, entry: Entry, characters: int) -> Turn:
        """The same content with parts that another line adds."""
        known = self.owners or (self.entry,) * len(self.parts) if self.entry is not None else self.owners
        owners = (*known, *(entry,) * len(parts))
        return Turn(self.role, (*self.parts, *parts), self.entry, self.characters + characters, owners)

    @property
    def calls(self) -> list[str]:
        """Ids of the tool calls in it."""
        return [m for message in self.messages(_ANY) for m, _ in message.calls]

    @property
    def results(self) -> list[str]:
        """Ids of the tool calls it has results of."""
        return [message.id for message in self.messages(_ANY) if message.role == "tool"]

    def messages(self, form: Form) -> tuple[Message, ...]:
        """It as messages; none of an answer that is left out."""
        if form not in self.written:
            sent = self.role != "model" or is_valid(self.parts)
            self.written[form] = messages(self.role, self.parts, form) if sent else ()
        return self.written[form]


_ANY = Form()


@dataclass(eq=False, slots=True, repr=False)
class History:
    """Contents in order."""

    turns: list[Turn] = field(default_factory=list)
    entries: list[Entry] = field(default_factory=list)
    """The entries they stand in, each once."""
    counts: list[int] = field(default_factory=lambda: [0])
    """How many of ``entries`` the contents up to each are made of."""
    characters: list[int] = field(default_factory=lambda: [0])
    called: dict[str, int] = field(default_factory=dict)
    """Number of the answer that each tool call first stands in, by its id."""
    answered: dict[str, int] = field(default_factory=dict)
    """Number of the content that its result first stands in."""
    settled: dict[Any, Any] = field(default_factory=dict)
    """What later requests repeat, as it is written (``body``)."""

    def append(self, turn: Turn) -> None:
        """Add a content at the end."""
        at = len(self.turns)
        self.turns.append(turn)
        if turn.entry is not None and (not self.entries or self.entries[-1] is not turn.entry):
            self.entries.append(turn.entry)
        self.counts.append(len(self.entries))
        self.characters.append(self.characters[-1] + turn.characters)
        for name in turn.calls:
            self.called.setdefault(name, at)
        for name in turn.results:
            self.answered.setdefault(name, at)

    def grow(self, parts: Parts, entry: Entry, characters: int) -> None:
        """Add parts to the last content."""
        self.turns[-1] = turn = self.turns[-1].with_more(parts, entry, characters)
        self.entries.append(entry)
        self.counts[-1] = len(self.entries)
        self.characters[-1] += characters
        for name in turn.results:
            self.answered.setdefault(name, len(self.turns) - 1)

    def until(self, length: int, more: Iterable[Turn] = ()) -> History:
        """A history of the first contents alone, and then some others."""
        found = History()
        for turn in (*self.turns[:length], *more):
            found.append(turn)
            for entry in dict.fromkeys(turn.owners):
                if entry is not turn.entry:
                    found.entries.append(entry)
                    found.counts[-1] = len(found.entries)
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
