"""What processes of 0.21.2 and later put into their requests that no log holds (read in 0.24.4).

A process begins with reminders: skills, its environment, tools that can be searched for. Before the first words that are
said in it stands the date. A compression takes the reminders out, and they are back one call later. The next process has
its own, and those of the one before are gone. The log does not tell where a process began: the first call of a turn shows
it by what it was served, and that holds for the rest of the turn.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from ctxscope.agents.qwen.joined import Joined, Unlogged, Word
from ctxscope.agents.qwen.lines import NO_TURN
from ctxscope.agents.qwen.messages import Form
from ctxscope.agents.qwen.state import Call
from ctxscope.model import Body, Point
from ctxscope.wire.spans import value_end

_REMINDER, _MEMORY = b"<system-reminder>\\n", b"## Relevant memory\\n"
_DATE = _REMINDER + b"The current date is: "
_IN_ITEM, _IN_TEXT = b'{"type":"text","text":"', b""
_BLOCKS = re.compile(rb"(?:<system-reminder>\\n(?:(?!</system-reminder>).)*\\n</system-reminder>\\n\\n)+", re.DOTALL)
_BLOCK = re.compile(rb"(<system-reminder>\\n(?:(?!</system-reminder>).)*\\n</system-reminder>)\\n\\n", re.DOTALL)


@dataclass(frozen=True, slots=True, eq=False)
class Words:
    """What the first call that shows it has before some words."""

    at: int
    items: tuple[bytes, ...]


@dataclass(eq=False, slots=True)
class Process:
    """A run of the program, as far as its calls were recorded."""

    number: int
    at: int
    """Place of its first call among the joined ones."""
    point: Point
    firsts: dict[str, Words] = field(default_factory=dict)
    """What its requests begin with, by key of the compression behind which it is written anew."""
    befores: dict[str, Words] = field(default_factory=dict)
    """What stands before a content, by key of its entry."""
    follows: tuple[str, str] | None = None
    """Where it reads back something else than the one before held: the line up to which it read, and what was said then."""


@dataclass(eq=False, slots=True)
class Processes:
    """Those of a session, in the order of their calls."""

    found: list[Process] = field(default_factory=list)
    openings: dict[str | int, tuple[int, int]] = field(default_factory=dict)
    """By turn, or key of the compression: its first joined call, and the number of its process."""
    last: list[tuple[int, int]] = field(default_factory=list)
    """The process of each opening, in order."""
    seen: dict[bytes, int] = field(default_factory=dict)
    """The first call with each item."""

    def take(
        self, at: int, point: Point, call: Call, load: Callable[[], Body], reread: Callable[[Call, str, str], Call]
    ) -> Process:
        """The process of the next call; ``reread``: the call as a process makes it that read the chat file."""
        key, shown = _opening(call), Shown(call, load)
        if key not in self.openings:
            process = self._which(at, point, shown)
            if process.at == at and call.follows and shown.entry:
                process.follows = (call.follows, shown.entry)
            self.openings[key] = (at, process.number)
            self.last.append((at, process.number))
            if shown.entry and shown.own:
                process.befores[shown.entry] = self._words(at, shown.own)
        process = self.found[self.openings[key][1]]
        if _segment(call) not in process.firsts and not call.fresh:
            shown = Shown(reread(call, *process.follows), load) if process.follows is not None else shown
            start = shown.start(len(w.items) if (w := process.befores.get(shown.leader or "")) else 0)
            process.firsts[_segment(call)] = self._words(at, start)
        return process

    def forget(self, start: int) -> None:
        """Take the calls from ``start`` on out again."""
        self.found = [p for p in self.found if p.at < start]
        for process in self.found:
            process.firsts = {k: w for k, w in process.firsts.items() if w.at < start}
            process.befores = {k: w for k, w in process.befores.items() if w.at < start}
        self.openings = {k: o for k, o in self.openings.items() if o[0] < start}
        self.last = [o for o in self.last if o[0] < start]
        self.seen = {k: at for k, at in self.seen.items() if at < start}

    def of(self, call: Call, at: int) -> Process | None:
        """The process of a call that was taken at a place, or before it."""
        opening = self.openings.get(_opening(call))
        return self.found[opening[1]] if opening is not None and opening[0] <= at else None

    def unlogged(self, process: Process, call: Call, at: int) -> Unlogged:
        """What stands in a call's request that its log does not hold."""
        first = process.firsts.get(_segment(call))
        return Unlogged(
            self._told(first, at) if first is not None and first.at <= at else (),
            tuple((key, self._told(words, at)) for key, words in process.befores.items() if words.at <= at),
            process.number,
        )

    def is_other(self, process: Process, at: int) -> bool:
        """Whether a process showed reminders that none before it had, up to a call."""
        words = (w for w in (*process.firsts.values(), *process.befores.values()) if w.at <= at)
        return any(self.seen[item] >= process.at for w in words for item in w.items)

    def _told(self, words: Words, at: int) -> tuple[Word, ...]:
        return tuple((item, "learned" if self.seen[item] < at else "echoed") for item in words.items)

    def _words(self, at: int, items: tuple[bytes, ...]) -> Words:
        for item in items:
            self.seen.setdefault(item, at)
        return Words(at, items)

    def _which(self, at: int, point: Point, shown: Shown) -> Process:
        """The process before, where all that it had said the date before is there, and it is not said anew; else a new one."""
        before = self.found[self.last[-1][1]] if self.last else None
        if before is not None:
            keys = shown.keys - {shown.entry}
            expected = sum(_dates(words.items) for key, words in before.befores.items() if key in keys)
            if shown.dates >= expected and (expected or not _dates(shown.own)):
                return before
        self.found.append(Process(len(self.found), at, point))
        return self.found[-1]


class Shown:
    """What a served body shows around the contents of the log."""

    def __init__(self, call: Call, load: Callable[[], Body]) -> None:
        self._call, self._load = call, load
        self._joined = Joined(call.history, (0, 0), _FORM, Unlogged())
        index = None if call.kind == "compaction" else _asked(call)
        self._index = index
        self.entry = call.history.turns[index].key if index is not None else ""
        """Key of what the user said last."""
        self._read: tuple[tuple[bytes, ...], int] | None = None

    @property
    def keys(self) -> set[str]:
        """Keys of the entries the request is made of."""
        return {turn.key for turn in self._call.history.turns[: self._call.length]}

    @property
    def own(self) -> tuple[bytes, ...]:
        """What stands right before what the user said last."""
        return self._shown()[0]

    @property
    def dates(self) -> int:
        """How many other reminders of the date there are."""
        return self._shown()[1]

    @property
    def leader(self) -> str | None:
        """Key of the content that the request begins with."""
        at = self._joined.leads(self._call.length)
        return self._call.history.turns[at].key if at is not None else None

    def start(self, own: int) -> tuple[bytes, ...]:
        """What the request begins with; ``own``: how many of these are known to stand before its first content."""
        said, at = _said(self._load()), self._joined.leads(self._call.length)
        items = _items(said[0]) if said else ()
        found = _leading(items)
        most = len(found)
        if found and at is not None and found[0].startswith(_IN_ITEM):
            most = len(items) - self._joined.words(at, self._call.length)[0]  # what is logged may read like it
        return found[: max(0, min(len(found), most) - own)]

    def _shown(self) -> tuple[tuple[bytes, ...], int]:
        if self._read is None:
            body = self._load()
            own = self._before(body) if self._index is not None else ()
            total = body.data.count(_IN_ITEM + _DATE) or body.data.count(b'"' + _DATE) + body.data.count(
                b"\\n\\n" + _DATE
            )
            self._read = own, total - _dates(own)
        return self._read

    def _before(self, body: Body) -> tuple[bytes, ...]:
        assert self._index is not None
        count, behind = self._joined.words(self._index, self._call.length)
        messages = _said(body)
        if not count or len(messages) <= behind:
            return ()
        message = _items(messages[len(messages) - 1 - behind])
        if message and not message[-1].startswith(_IN_ITEM[:1]):
            count = 1  # a string: words side by side are one paragraph
        items = message[: max(0, len(message) - count)]
        start = len(items)
        while start and _reminds(items[start - 1]):
            start -= 1
        return items[start:]


_FORM = Form(joined=True)


def last_item(body: Body) -> bytes:
    """The last item of the last message, as spelled: of a request for a summary its question."""
    last = next((s for s in reversed(body.segments) if s.kind == "message"), None)
    items = _items(body.data[last.start : last.end]) if last is not None and last.role == "user" else ()
    return items[-1] if items else b""


def _opening(call: Call) -> str | int:
    return call.answer.key if call.kind == "compaction" and call.answer is not None else call.turn


def _segment(call: Call) -> str:
    return call.segment.entry.key if call.segment.entry is not None else ""


def _asked(call: Call) -> int | None:
    """The content that holds what the user said last."""
    for at in range(call.length - 1, -1, -1):
        entry = call.history.turns[at].entry
        if entry is not None and entry.kind == "user" and entry.data.get("subtype") not in NO_TURN:
            return at
    return None


def _bare(item: bytes) -> bytes:
    return item.removeprefix(_IN_ITEM)


def _reminds(item: bytes) -> bool:
    return _bare(item).startswith((_REMINDER, _MEMORY))


def dates_of(items: tuple[bytes, ...]) -> tuple[bytes, ...]:
    """The reminders of the date among some."""
    return tuple(item for item in items if _bare(item).startswith(_DATE))


def is_lasting(item: bytes) -> bool:
    """Whether an item is a reminder of what a process begins with: neither the date nor a memory."""
    return _bare(item).startswith(_REMINDER) and not dates_of((item,))


def _dates(items: tuple[bytes, ...]) -> int:
    return len(dates_of(items))


def _leading(items: tuple[bytes, ...]) -> tuple[bytes, ...]:
    end = next((n for n, item in enumerate(items) if not _reminds(item)), len(items))
    return items[:end]


def _said(body: Body) -> list[bytes]:
    """The messages of the user's side, as spelled."""
    return [body.data[s.start : s.end] for s in body.segments if s.role == "user"]


def _items(message: bytes) -> tuple[bytes, ...]:
    """The items of a message's content, as spelled."""
    at = message.find(b'"content":') + len(b'"content":')
    text = message.decode("latin-1")
    if at < len(b'"content":') or text[at : at + 1] != "[":
        return _paragraphs(message[at:])
    found, start = [], at + 1
    try:
        while text[start : start + 1] == "{":
            end = value_end(text, start)
            found.append(message[start:end])
            start = end + (text[end : end + 1] == ",")
    except ValueError:
        return ()
    return tuple(found)


def _paragraphs(value: bytes) -> tuple[bytes, ...]:
    """Reminders, and the words between them, of a content that is a string."""
    inside, found, start = value[1 : value.rfind(b'"')], [], 0
    for blocks in _BLOCKS.finditer(inside):
        if blocks.start() > start:
            found.append(inside[start : blocks.start()].removesuffix(b"\\n\\n"))
        found += _BLOCK.findall(blocks[0])
        start = blocks.end()
    return (*found, inside[start:]) if start < len(inside) else tuple(found)
