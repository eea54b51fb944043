"""A session's messages in the order the agent reads them, and which of them it reads at each call (opencode.md §4).

Rows are rewritten while an answer comes in. A message's state is what its row and those of its parts hold now; one that
was deleted (``/undo``) is left out of what was read from then on.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from ctxscope.agents import Log, shared_memo
from ctxscope.agents.reading.spoken import role_and_texts
from ctxscope.agents.reading.view import View
from ctxscope.model import Entry

STARTED, FINISHED = "step-start", "step-finish"
"""Parts that only a call leaves; answers that the agent makes up itself (a shell command of the user's) have none."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Said:
    """A message with its parts, as of now."""

    entry: Entry
    parts: tuple[Entry, ...]

    @property
    def id(self) -> str:
        """The message's id."""
        return str(self.entry.data.get("id"))

    @property
    def created(self) -> float:
        """When its row was made, in milliseconds."""
        return number(self.entry.data.get("time_created"))

    @property
    def model(self) -> tuple[str, str]:
        """Provider and model, as the agent names them: of an answer its own, of an input those it asks for."""
        data = self.entry.data
        where = data if self.entry.kind == "assistant" else mapped(data.get("model"))
        return str(where.get("providerID")), str(where.get("modelID"))

    @property
    def is_summary(self) -> bool:
        """Whether it is the answer to a request for a summary."""
        return self.entry.kind == "assistant" and self.entry.data.get("summary") is True

    @property
    def stands(self) -> bool:
        """Whether a summary was finished, so that it stands for what was before."""
        data = self.entry.data
        return self.is_summary and bool(data.get("finish")) and not data.get("error")

    @property
    def asks(self) -> Entry | None:
        """The part that asks for a summary, in a user message."""
        is_user = self.entry.kind == "user"
        return next((p for p in self.parts if is_user and p.kind == "compaction"), None)

    @property
    def is_input(self) -> bool:
        """Whether the user said it: not all of it was put in by the agent."""
        texts = [p for p in self.parts if p.kind in ("text", "file", "agent", "subtask")]
        return self.entry.kind == "user" and any(not p.data.get("synthetic") for p in texts)

    @property
    def is_call(self) -> bool:
        """Whether a model was called for it."""
        if self.entry.kind != "assistant":
            return False
        return not self.parts or any(p.kind == STARTED for p in self.parts)

    @property
    def is_answered(self) -> bool:
        """Whether the answer is there: finished, failed, or waiting only for its tools."""
        data = self.entry.data
        told = any(data.get(name) for name in ("finish", "error")) or mapped(data.get("time")).get("completed")
        return bool(told) or any(p.kind in ("tool", FINISHED) for p in self.parts)


@dataclass(eq=False, repr=False)
class Thread:
    """Messages that calls read, each call some more of them than the one before; a new one begins where history changes."""

    moment: float = 0
    """Outputs of tools that were cleared by then are read as cleared."""
    said: list[Said] = field(default_factory=list)
    entries: list[Entry] = field(default_factory=list)
    counts: list[int] = field(default_factory=lambda: [0])
    """How many of ``entries`` the first messages have."""
    characters: list[int] = field(default_factory=lambda: [0])
    """Characters of the JSON of the first messages."""

    def grow(self, said: Sequence[Said]) -> None:
        """Add messages behind those it has."""
        for one in said:
            self.said.append(one)
            self.entries += (one.entry, *one.parts)
            self.counts.append(len(self.entries))
            size = sum(len(e.raw.decode("utf-8", "replace")) for e in (one.entry, *one.parts))
            self.characters.append(self.characters[-1] + size)

    def context(self, length: int) -> View:
        """The entries of the first messages."""
        return View(self.entries, self.counts[length])


@dataclass(frozen=True, slots=True, eq=False)
class Asked:
    """A call: the answer, and what it was made of."""

    answer: Said
    thread: Thread
    length: int
    turn: int
    cause: str = ""
    """Why it reads another thread than the call before: ``compaction``, ``prune``, ``rewind``."""
    reminder: str = ""
    """Agent (``plan``; ``build`` behind it) whose reminder the newest input carries for this call alone."""


@dataclass(eq=False, repr=False)
class _Message:
    """What was observed of a message."""

    entry: Entry | None = None
    parts: dict[str, Entry] = field(default_factory=dict)
    gone_parts: set[str] = field(default_factory=set)
    born: int = 0
    gone: int | None = None
    """When it was first seen, and when it was seen to be deleted (``Entry.seq``)."""
    _said: Said | None = None

    def said(self) -> Said | None:
        """It and its parts; the very object as before while nothing of it changed that a request could hold."""
        if self.entry is None:
            return None
        ids = sorted(i for i in self.parts if self.gone is not None or i not in self.gone_parts)
        parts = tuple(self.parts[i] for i in ids)
        if self._said is None or not _same(self._said, self.entry, parts):
            self._said = Said(self.entry, parts)
        return self._said


@dataclass(eq=False, repr=False)
class History:
    """All messages of a session, folded as far as the log goes."""

    read: int = 0
    messages: dict[str, _Message] = field(default_factory=dict)
    order: list[tuple[float, str]] = field(default_factory=list)
    """Time and id of each message, in the order they are read."""
    threads: list[Thread] = field(default_factory=list)
    _changed: set[str] = field(default_factory=set)
    _owners: dict[str, str] = field(default_factory=dict)
    """Message of each part, by the part's entry key."""
    _kept: dict[str, Said] = field(default_factory=dict)

    def take(self, entry: Entry) -> None:
        """Add the next observation."""
        source, _, name = entry.key.partition(":")
        if source == "part":
            self._part(entry, name)
        elif source == "message" and entry.kind != "session":
            message = self.messages.setdefault(name, _Message(born=entry.seq))
            self._changed.add(name)
            if entry.kind == "gone":
                message.gone = entry.seq
            elif entry.data:
                key = (number(entry.data.get("time_created")), name)
                if message.entry is None:
                    insort(self.order, key)
                message.entry, message.gone = entry, None

    def _part(self, entry: Entry, name: str) -> None:
        owner = self._owners.setdefault(name, str(entry.data.get("message_id")))
        message = self.messages.setdefault(owner, _Message(born=entry.seq))
        self._changed.add(owner)
        if entry.kind == "gone":
            message.gone_parts.add(name)
        else:
            message.gone_parts.discard(name)
            message.parts[name] = entry

    def asked(self) -> list[Asked]:
        """Every call in order, with what it read."""
        for name in self._changed:
            said = self.messages[name].said()
            if said is not None:
                self._kept[name] = said
        self._changed.clear()
        return _Reading(self).run()


class _Reading:
    """One pass over the messages: what the agent reads grows with each, and begins anew where history is changed."""

    def __init__(self, history: History) -> None:
        self._history = history
        self._said = [history._kept[name] for _, name in history.order]  # noqa: SLF001 - one thing in two classes
        self._cleared = sorted({t for said in self._said for t in cleared(said)})
        self._any_gone = any(m.gone is not None for m in history.messages.values())
        self._number = -1
        self._now: list[Said] = []
        self._moment = 0.0
        self._cause = ""
        self._asker = ""
        """Agent that the newest input is for."""
        self._was_plan = False
        """An answer that is read was made in plan mode."""
        self._due: list[tuple[Said, int, int, int, str, str]] = []
        """Answer, number of the thread, length, turn, cause, reminder."""
        self._plans: list[tuple[list[Said], float]] = []
        self._places: dict[str, int] = {}

    def run(self) -> list[Asked]:
        """Every call in order."""
        turn = 0
        self._begin([], "")
        for at, said in enumerate(self._said):
            turn += said.is_input
            if said.is_call:
                self._call(said, turn)
            self._now.append(said)
            self._note(said)
            self._places[said.id] = at
            if said.stands:
                self._compacted(said, at)
        threads = self._threads()
        return [Asked(said, threads[n], length, turn, *told) for said, n, length, turn, *told in self._due]

    def _call(self, said: Said, turn: int) -> None:
        place = bisect_right(self._cleared, said.created)
        moment = self._cleared[place - 1] if place else 0.0
        if moment != self._moment and not said.is_summary:
            self._moment = moment
            self._begin(self._now, self._cause or "prune")
        if self._any_gone and (left := [s for s in self._now if not self._is_gone(s, said)]) != self._now:
            self._begin(left, "rewind")
        plans, builds = self._asker == "plan", self._asker == "build" and self._was_plan
        reminder = self._asker if not said.is_summary and (plans or builds) else ""
        self._due.append((said, self._number, len(self._now), turn, self._cause, reminder))
        self._cause = self._cause if said.is_summary else ""

    def _is_gone(self, said: Said, before: Said) -> bool:
        """Whether a call did not read a message that was undone.

        What is undone takes all behind it along: a call behind it that is still there was made later.
        """
        one, other = (self._history.messages[s.id] for s in (said, before))
        return one.gone is not None and (other.gone is None or one.gone < other.born)

    def _compacted(self, summary: Said, at: int) -> None:
        """What is read from a finished summary on: its question, itself, the messages kept as they were."""
        start = self._places.get(str(summary.entry.data.get("parentID")))
        asks = self._said[start].asks if start is not None else None
        if start is None or asks is None:
            return
        first = self._places.get(str(asks.data.get("tail_start_id")), start)
        self._begin((*self._said[start : at + 1], *self._said[min(first, start) : start]), "compaction")

    def _begin(self, said: Sequence[Said], cause: str) -> None:
        self._number += 1
        self._now, self._cause, self._asker, self._was_plan = list(said), cause, "", False
        self._plans.append((self._now, self._moment))
        for one in self._now:
            self._note(one)

    def _note(self, said: Said) -> None:
        agent = str(said.entry.data.get("agent"))
        if said.entry.kind == "user":
            self._asker = agent
        self._was_plan |= said.entry.kind == "assistant" and agent == "plan"

    def _threads(self) -> list[Thread]:
        """The threads as planned; one that only grew stays the same object, and so does what was made of it."""
        lengths = [0] * len(self._plans)
        for _, n, length, *_ in self._due:
            lengths[n] = max(lengths[n], length)
        kept, found = self._history.threads, []
        for n, ((said, moment), length) in enumerate(zip(self._plans, lengths, strict=True)):
            thread, wanted = (kept[n] if n < len(kept) else Thread(moment)), said[:length]
            have = len(thread.said)
            if (
                thread.moment != moment
                or have > length
                or any(a is not b for a, b in zip(thread.said, wanted, strict=False))
            ):
                thread, have = Thread(moment), 0
            thread.grow(wanted[have:])
            found.append(thread)
        self._history.threads = found
        return found


def history_of(log: Log) -> History:
    """The history of a log, continued with what is new."""
    history: History = shared_memo(log, "opencode.history").setdefault("history", History())
    for entry in log.versions[history.read :]:
        history.take(entry)
    history.read = len(log.versions)
    return history


def spoken(log: Log, entry: Entry) -> tuple[str, Iterator[str]]:
    """A message's role, and what its row and then those of its parts say."""
    role, own = role_and_texts(entry)
    message = history_of(log).messages.get(entry.key.partition(":")[2]) if entry.source == "message" else None
    whole = message.said() if message is not None else None
    parts = (role_and_texts(part)[1] for part in (whole.parts if whole is not None else ()))
    return role, chain(own, chain.from_iterable(parts))


def cleared(said: Said) -> Iterator[float]:
    """When outputs of its tools were cleared, in milliseconds."""
    for part in said.parts:
        if part.kind == "tool" and (moment := cleared_at(part)):
            yield moment


def cleared_at(part: Entry) -> float:
    """When a tool's output was cleared, in milliseconds; 0 where it was not."""
    return number(mapped(mapped(part.data.get("state")).get("time")).get("compacted"))


def mapped(value: Any) -> Mapping[str, Any]:
    """``value`` when it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def number(value: Any) -> float:
    """``value`` when it is a number, else 0."""
    return value if isinstance(value, int | float) and not isinstance(value, bool) and value == value else 0  # noqa: PLR0124 - the NaN test


_BESIDE = ("time_updated", "summary", "cost")
"""Fields of an input that are rewritten and no request holds (``summary`` is the list of files it changed)."""


def _same(said: Said, entry: Entry, parts: tuple[Entry, ...]) -> bool:
    if len(parts) != len(said.parts) or any(
        a is not b and a.data != b.data for a, b in zip(parts, said.parts, strict=True)
    ):
        return False
    if entry.kind != "user":
        return said.entry is entry or said.entry.data == entry.data
    one, other = ({k: v for k, v in e.data.items() if k not in _BESIDE} for e in (said.entry, entry))
    return one == other
