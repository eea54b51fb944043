"""A conversation as messages in the order they are sent, and the calls made between them.

A trail only grows; each call sees it up to a length, so that calls share what came before them. Where messages are taken
away (a compaction, a resume after a cut answer), another trail goes on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, overload

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


Role = Literal["user", "assistant", "tool", "lost", "cut", "onward", "summary"]


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
    answer: Entry
    directory: str = ""
    """Working directory of the session, which the tools' messages spell paths from."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Item:
    """One message of a conversation and the event it comes from."""

    entry: Entry
    role: Role
    """``user``, ``assistant`` and ``tool`` as they are logged. Not logged as such: ``lost``, the words for a result that
    never came; ``cut``, an answer that ended at its limit without a tool call; ``onward``, the words that ask to go on
    after it. ``summary``: what a compaction left."""
    process: int
    """The run of the program that wrote it, from 1; 0 for what the program itself says in the model's place."""
    requests: tuple[Request, ...] = ()
    """Of an answer, the tool calls; of a tool's result, the call it answers, where that is known."""
    beside: tuple[Entry, ...] = ()
    """Of a user's message, the images attached; of a summary, the user's messages it repeats."""

    @property
    def is_passing(self) -> bool:
        """Whether it is sent only in its own run: it is not logged, or nobody is logged who asked for it."""
        return self.role in ("cut", "onward") or (self.role == "tool" and not self.requests)


@dataclass(eq=False, slots=True, repr=False)
class Trail:
    """One conversation: the main one, or a subagent's. What takes messages away starts another one of its lineage."""

    lineage: str
    items: list[Item] = field(default_factory=list)
    """In the order they are sent."""
    entries: list[Entry] = field(default_factory=list)
    """Events that the messages are made of, system prompts among them, in the order of the log."""
    characters: list[int] = field(default_factory=lambda: [0])
    """Of the lines of the entries up to each."""
    system: Entry | None = None
    requests: dict[str, Request] = field(default_factory=dict)
    waiting: dict[str, Request] = field(default_factory=dict)
    """Tool calls whose result is not logged yet."""
    said: list[Entry] = field(default_factory=list)
    """All messages of the user, before a compaction too."""
    model: tuple[str, Entry | None] = ("", None)
    effort: tuple[str, Entry | None] = ("", None)
    call: Call | None = None
    """The call under way, or the last one."""
    floor: int = 0
    """Messages that a call was made of, which stay where they are."""
    passing: int = 0
    """Messages that only their own run sends."""
    compaction: Compaction | None = None
    """The compaction under way."""
    rewritten: tuple[str, Entry] | None = None
    """What the log does not tell the effect of, since when."""
    plain: dict[Any, Any] = field(default_factory=dict)
    """The messages as rendered without a recording."""

    def put(self, entry: Entry) -> None:
        """Add an event to those the messages are made of."""
        self.entries.append(entry)
        self.characters.append(self.characters[-1] + len(entry.raw.decode("utf-8", "replace")))

    def add(self, item: Item) -> None:
        """Add a message: a result of a tool behind its answer, in the order of the calls; any other at the end."""
        self.put(item.entry)
        self.place(item)

    def place(self, item: Item) -> None:
        """Put a message where it is sent, of an event already counted."""
        at = len(self.items)
        if item.role in ("tool", "lost") and item.requests:
            request = item.requests[0]
            self.waiting.pop(request.id, None)
            # what an earlier request held stays where it was
            while at > self.floor and not _precedes(self.items[at - 1], request):
                at -= 1
            at = at if at > self.floor else len(self.items)
        self.passing += item.is_passing
        self.items.insert(at, item)

    def anew(self, items: list[Item]) -> Trail:
        """The conversation with other messages; nothing that was called before changes."""
        entries = dict.fromkeys(e for item in items for e in (*item.beside, item.entry))
        asked = {item.entry for item in items if item.role == "assistant"}
        trail = Trail(
            self.lineage,
            items,
            system=self.system,
            requests=dict(self.requests),
            waiting={k: r for k, r in self.waiting.items() if r.answer in asked},
            said=list(self.said),
            model=self.model,
            effort=self.effort,
            call=self.call,
            rewritten=self.rewritten,
            passing=sum(item.is_passing for item in items),
        )
        for entry in (*((self.system,) if self.system is not None else ()), *entries):
            trail.put(entry)
        return trail


def _precedes(other: Item, request: Request) -> bool:
    """Whether a message stands before the result of a tool call: its answer, or the result of an earlier call of it."""
    if other.role == "assistant":
        return other.entry is request.answer
    return (
        bool(other.requests)
        and other.requests[0].answer is request.answer
        and (other.requests[0].number <= request.number)
    )


@dataclass(eq=False, slots=True, repr=False)
class Compaction:
    """A compaction under way."""

    call: Call
    upto: int
    """Messages of the trail that the summary stands for."""
    said: int
    """Messages of the user that it repeats."""


@dataclass(eq=False, slots=True, repr=False)
class Call:
    """A place where a request must have gone out."""

    number: int
    trail: Trail
    start: Entry
    """The event it began with: ``assistant.turn_start``, ``session.compaction_start``, or the answer where none was
    logged."""
    process: int
    turn: int
    length: int
    """Messages of the trail the request is made of."""
    entries: int
    """The same in events."""
    system: Entry | None
    model: tuple[str, Entry | None]
    effort: tuple[str, Entry | None]
    rewritten: tuple[str, Entry] | None
    is_compaction: bool = False
    shown: Entry | None = None
    """Of a compaction, the event that holds its messages."""
    answer: Entry | None = None
    usage: Entry | None = None
    api_id: str = ""
    """Id of the response, where no answer and no usage record tells it."""
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

    @property
    def is_under_way(self) -> bool:
        """Whether its request may still be to come: nothing of its answer is logged."""
        return self.answer is None and self.usage is None and not self.over

    def see(self, trail: Trail) -> None:
        """Be made of all that a trail holds now."""
        self.trail, self.length, self.entries = trail, len(trail.items), len(trail.entries)
        self.system, self.rewritten = trail.system, trail.rewritten
        trail.floor = self.length
