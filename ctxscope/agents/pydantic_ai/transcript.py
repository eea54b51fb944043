"""One stored file as a conversation: its messages in order, those sent as one put together, and what is sent of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, overload

from ctxscope.model import Entry, Piece
from ctxscope.wire.blocks import listed, mapped, string


class View(Sequence[Entry]):
    """The first entries of a list that does not change."""

    __slots__ = ("_entries", "_length")

    def __init__(self, entries: Sequence[Entry], length: int) -> None:
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


class UnknownPartError(Exception):
    """A part that no rule here says how to send."""

    def __init__(self, entry: Entry, what: str) -> None:
        super().__init__(what)
        self.entry, self.what = entry, what


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """One part of a message and the entry it stands in."""

    entry: Entry
    kind: str
    data: dict[str, Any]


@dataclass(frozen=True, slots=True, eq=False)
class Unit:
    """What is sent as one: a response, or requests that follow one another."""

    role: str
    """``request`` or ``response``."""
    entries: tuple[Entry, ...]
    parts: tuple[Part, ...]
    first: bool
    """Whether it opens the conversation: only there do system prompts stand before all."""

    def known(self) -> Unit:
        """The unit itself; raises ``UnknownPartError`` where it is no message of a known kind."""
        if self.role == "unknown":
            raise UnknownPartError(self.entries[0], "what is no message of a kind that is known")
        return self


@dataclass(eq=False, slots=True, repr=False)
class Written:
    """The units as one API is sent them; ends before the first that no rule tells how to send."""

    pieces: list[Piece] = field(default_factory=list)
    starts: list[int] = field(default_factory=lambda: [0])
    unknown: UnknownPartError | None = None


@dataclass(eq=False, slots=True, repr=False)
class Transcript:
    """The messages of one file."""

    entries: tuple[Entry, ...]
    units: list[Unit] = field(default_factory=list)
    until: list[int] = field(default_factory=list)
    """By number of messages, the units they make."""
    characters: list[int] = field(default_factory=lambda: [0])
    written: dict[Any, Written] = field(default_factory=dict)
    notes: dict[str, Any] = field(default_factory=dict)
    """What else was derived from it."""

    @classmethod
    def of(cls, entries: Sequence[Entry]) -> Transcript:
        """The conversation that some messages make."""
        made = cls(tuple(entries))
        group: list[Entry] = []
        made.until.append(0)
        for number, entry in enumerate(made.entries):
            made.characters.append(made.characters[-1] + len(entry.raw.decode("utf-8", "replace")))
            group.append(entry)
            made.until.append(len(made.units) + 1)
            if number + 1 == len(made.entries) or not _joins(entry, made.entries[number + 1]):
                made.units.append(_unit(group, first=not made.units))
                group = []
        return made

    def write(self, form: Any, render: Callable[[Unit], Sequence[Piece]], length: int) -> Written:
        """The first ``length`` messages as ``render`` writes them, each led by its comma; kept by form."""
        written = self.written.setdefault(form, Written())
        while len(written.starts) <= self.until[length] and written.unknown is None:
            unit = self.units[len(written.starts) - 1]
            try:
                written.pieces += render(unit.known())
            except UnknownPartError as part:
                written.unknown = part
            else:
                written.starts.append(len(written.pieces))
        return written


def _unit(group: Sequence[Entry], *, first: bool) -> Unit:
    parts = [Part(e, string(mapped(p).get("part_kind")), mapped(p)) for e in group for p in listed(e.data.get("parts"))]
    if len(group) > 1:  # results stand before all else in requests that are sent as one
        parts.sort(key=lambda part: part.kind not in RESULTS)
    return Unit(group[0].kind, tuple(group), tuple(parts), first)


RESULTS = ("tool-return", "retry-prompt")
"""Parts that answer a tool call; a retry prompt does where it names a tool."""


def _joins(one: Entry, two: Entry) -> bool:
    """Whether two messages are sent as one: requests in a row whose instructions are not at odds."""
    if one.kind != "request" or two.kind != "request":
        return False
    mine, theirs = one.data.get("instructions"), two.data.get("instructions")
    return not mine or not theirs or mine == theirs


def instructions(entries: Sequence[Entry]) -> tuple[str, Entry | None]:
    """The instructions a request is sent with: those of its newest message, or of the one before mere tool results."""
    requests: list[Entry] = []
    for at in range(len(entries) - 1, -1, -1):
        if entries[at].kind == "request":
            requests.append(entries[at])
            if string(entries[at].data.get("instructions")):
                only_results = all(
                    string(mapped(p).get("part_kind")) in RESULTS
                    for r in requests[:-1]
                    for p in listed(r.data.get("parts"))
                )
                return (string(entries[at].data["instructions"]), entries[at]) if only_results else ("", None)
            if len(requests) > 1:
                break
    return "", None
