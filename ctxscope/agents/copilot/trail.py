"""A conversation as messages in the order they are sent, and the calls made between them.

A trail only grows; each call sees it up to a length, so that calls share what came before them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, overload

from ctxscope.model import Entry


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
            return [self._entries[i] for i in range(*index.indices(self._length))]
        if not -self._length <= index < self._length:
            raise IndexError(index)
        return self._entries[index % self._length]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Request:
    """A tool call that an answer asks for."""

    id: str
    name: str
    arguments: Any
    summary: str
    """The model's own word for what it is about (``intentionSummary``)."""
    number: int
    """Its place among the calls of its answer."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Item:
    """One message of a conversation and the event it comes from."""

    entry: Entry
    role: str
    """``user``, ``assistant`` or ``tool``."""
    process: int
    """The run of the program that wrote it, from 1."""
    requests: tuple[Request, ...] = ()
    """Of an answer, the tool calls; of a tool's result, the call it answers, where that is known."""


@dataclass(eq=False, slots=True, repr=False)
class Trail:
    """One conversation: the main one, or a subagent's."""

    lineage: str
    items: list[Item] = field(default_factory=list)
    """In the order of the log."""
    called: list[Item] = field(default_factory=list)
    """The same with the results of one answer in the order of its calls."""
    entries: list[Entry] = field(default_factory=list)
    """Events that the messages are made of, system prompts among them."""
    characters: list[int] = field(default_factory=lambda: [0])
    """Of the lines of the entries up to each."""
    system: Entry | None = None
    requests: dict[str, Request] = field(default_factory=dict)
    call: Call | None = None
    """The call under way, or the last one."""
    rewritten: tuple[str, Entry] | None = None
    """What the log does not tell the effect of, since when."""
    plain: dict[Any, Any] = field(default_factory=dict)
    """The messages as rendered without a recording."""

    def put(self, entry: Entry) -> None:
        """Add an event to those the messages are made of."""
        self.entries.append(entry)
        self.characters.append(self.characters[-1] + len(entry.raw.decode("utf-8", "replace")))

    def add(self, item: Item) -> None:
        """Add a message."""
        self.put(item.entry)
        at = len(self.called)
        if item.role == "tool" and item.requests:
            # what an earlier request held stays where it was
            floor = self.call.length if self.call is not None else 0
            while at > floor and _comes_later(self.called[at - 1], item):
                at -= 1
        self.called.insert(at, item)
        self.items.append(item)


def _comes_later(other: Item, item: Item) -> bool:
    return other.role == "tool" and bool(other.requests) and other.requests[0].number > item.requests[0].number


@dataclass(eq=False, slots=True, repr=False)
class Call:
    """A place where a request must have gone out."""

    number: int
    trail: Trail
    start: Entry
    """The event it began with: ``assistant.turn_start``, or the answer where none was logged."""
    process: int
    turn: int
    length: int
    """Messages of the trail the request is made of."""
    entries: int
    """The same in events."""
    system: Entry | None
    model: tuple[str, Entry | None]
    rewritten: tuple[str, Entry] | None
    answer: Entry | None = None
    usage: Entry | None = None
    error: str | None = None
    over: bool = False
    """Nothing more can come of it."""

    @property
    def key(self) -> str:
        """What its point is known by."""
        return self.answer.key if self.answer is not None else f"after:{self.start.key}"

    @property
    def base(self) -> int:
        """Messages before the trail's own: the system prompt, where one is logged."""
        return int(self.system is not None)
