"""One conversation as logged: messages that are only added; what rewrites it begins another one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, overload

from ctxscope.agents.messages.shapes import About, about
from ctxscope.model import Entry, Place


@dataclass(frozen=True, slots=True, eq=False)
class Message:
    """One message of a trail."""

    text: bytes
    """As logged."""
    place: Place
    entry: Entry

    @property
    def about(self) -> About:
        """What it is."""
        return about(self.text)


@dataclass(eq=False, slots=True, repr=False)
class Trail:
    """Messages in order, with the sums that a prefix of them is asked for."""

    messages: list[Message] = field(default_factory=list)
    characters: list[int] = field(default_factory=lambda: [0])
    """Characters as logged of the first n messages."""
    rendered: dict[Any, Any] = field(default_factory=dict)
    """What was made of the messages, by form."""

    def add(self, message: Message) -> None:
        """Append one."""
        self.messages.append(message)
        self.characters.append(self.characters[-1] + len(message.text.decode("utf-8", "replace")))

    def branch(self, length: int) -> Trail:
        """Another trail with the first ``length`` messages."""
        return Trail(self.messages[:length], self.characters[: length + 1])


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Prefix(Sequence[Entry]):
    """The entries of the first messages of a trail; costs nothing to make."""

    trail: Trail
    length: int

    def __len__(self) -> int:
        return self.length

    @overload
    def __getitem__(self, index: int) -> Entry: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Entry]: ...
    def __getitem__(self, index: int | slice) -> Entry | Sequence[Entry]:
        if isinstance(index, slice):
            return [m.entry for m in self.trail.messages[: self.length][index]]
        return self.trail.messages[range(self.length)[index]].entry

    def __iter__(self) -> Iterator[Entry]:
        return (self.trail.messages[i].entry for i in range(self.length))
