"""A chat file read as the program reads and writes it: histories, the calls they were sent with, and what rewrote them.

Each line adds a message, changes one, replaces them all, or takes some back (gemini.md §3, §4; read in 0.61.0).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ctxscope.agents import Log, shared_memo
from ctxscope.agents.gemini import events
from ctxscope.agents.gemini.events import Event
from ctxscope.agents.gemini.history import History, Turn
from ctxscope.agents.gemini.lines import AGENT, SESSION
from ctxscope.agents.gemini.parts import spelled
from ctxscope.model import Entry, Place

INTERRUPTED = "[The previous response was interrupted before it completed.]"
"""Answer the program puts behind tool results that never got one, before the user's next message; not logged."""
BINARY = "Binary content received. Proceeding with analysis."
"""Thought the program writes between a tool's response and the files it gave."""
INJECTED = "__binary_injection__"
"""Member of a tool's response that the log shows and the wire does not: the files follow as a message of their own."""

_MADE_OF_CALLS = ("gemini.points", "gemini.calls", "gemini.taught", "gemini.pieces")
"""What is remembered of calls that a chat written anew no longer tells of."""


@dataclass(eq=False, slots=True, repr=False)
class Call:
    """One call: what it was made of and how it was answered."""

    history: History
    length: int
    last: Entry
    """The newest entry of its context."""
    turn: int
    answer: Entry | None = None
    latest: Entry | None = None
    """The answer's newest version, which has its tool calls."""
    model: str | None = None
    dead: bool = False
    """It never got an answer, and none will come."""


@dataclass(eq=False, slots=True, repr=False)
class Replay:
    """One chat file, folded line by line."""

    source: str
    header: Mapping[str, Any] = field(default_factory=dict)
    history: History = field(default_factory=History)
    calls: list[Call] = field(default_factory=list)
    """Answered and dead ones, in the order the log tells of them."""
    happened: list[Event] = field(default_factory=list)
    turn: int = 0
    turns: list[tuple[int, int]] = field(default_factory=list)
    """Line of each user input and its number."""
    model: str | None = None
    tokens: int | None = None
    """Prompt tokens of the newest answer."""
    summary: str | None = None
    _seen: set[str] = field(default_factory=set)
    _at: dict[str, int] = field(default_factory=dict)
    """Place in the history by message id."""
    _waiting: Entry | None = None
    """A user's message or tool results whose answer is not logged yet."""
    _opened: bool = False
    """Whether it began a turn."""
    _resumed: bool = False
    """Whether a process has just taken the file up."""

    @property
    def waiting(self) -> Call | None:
        """The call that must be under way at the end of the log."""
        if self._waiting is None:
            return None
        return Call(self.history, len(self.history.turns), self._waiting, self.turn, model=self.model)

    def fold(self, entry: Entry) -> None:
        """Add the next line."""
        data = entry.data
        change = data.get("$set")
        if entry.kind == "rewind":
            self._rewind(entry, data["$rewindTo"])
        elif entry.kind == "session":
            self._resumed = bool(self.header)
            self.header = self.header or data
        elif entry.kind == "set" and isinstance(change, Mapping):
            self._set(entry, change)
        elif entry.kind in {"user", "gemini", "info"}:
            self._message(entry, data)

    def _message(self, entry: Entry, data: Mapping[str, Any]) -> None:
        name, new = data["id"], data["id"] not in self._seen
        self._seen.add(name)
        if not new:
            self._again(entry, name)
        elif entry.kind == "user":
            self._user(entry)
        elif entry.kind == "gemini":
            self._gemini(entry, data)
        elif self.history.turns and _is_binary(self.history.turns[-1]):
            self._add(_turn(entry, data))

    def _user(self, entry: Entry) -> None:
        turn = _turn(entry, entry.data)
        results = _has_responses(turn)
        before = self.history.turns[-1] if self.history.turns else None
        if not results and before is not None and _has_responses(before):
            self._died()
            self._add(Turn("", "model", ({"text": INTERRUPTED},), None))
        if not results and self._waiting is None:
            self.turn += 1
            self.turns.append((entry.place.number, self.turn))
            self._opened = True
        self._waiting = entry
        self._add(turn)

    def _gemini(self, entry: Entry, data: Mapping[str, Any]) -> None:
        turn = _turn(entry, data)
        if _is_answer(data):
            model = data.get("model")
            model = model if isinstance(model, str) and model else None
            self._switched(entry, model)
            self.calls.append(self._call(entry, model or self.model))
            self.model = model or self.model
            self._waiting, self._opened = None, False
            tokens = data.get("tokens")
            self.tokens = whole(tokens.get("input")) if isinstance(tokens, Mapping) else self.tokens
        elif not _is_binary(turn):
            # The program writes a whole history anew, message by message: nobody asked anything.
            if self._opened:
                self.turn -= 1
                self.turns.pop()
            self._waiting, self._opened = None, False
        self._add(turn)

    def _call(self, entry: Entry, model: str | None) -> Call:
        length = len(self.history.turns)
        self.history.taken = max(self.history.taken, length)
        last = self.history.entries[-1] if self.history.entries else entry
        return Call(self.history, length, last, self.turn, entry, entry, model)

    def _switched(self, entry: Entry, model: str | None) -> None:
        if model and self.model and model != self.model:
            self._tell("model_switch", entry, f"{self.model} to {model}")

    def _again(self, entry: Entry, name: str) -> None:
        """A message in a newer version: it stays where it is."""
        at = self._at.get(name)
        for call in reversed(self.calls):
            if call.answer is not None and call.answer.data.get("id") == name:
                call.latest = entry
            break
        if at is None:
            return
        new = _turn(entry, entry.data)
        if at == len(self.history.turns) - 1 and at >= self.history.taken:
            self.history.pop()
            self.history.append(new)
        else:
            self._put([*self.history.turns[:at], new, *self.history.turns[at + 1 :]])

    def _set(self, entry: Entry, change: Mapping[str, Any]) -> None:
        if isinstance(change.get("sessionId"), str):
            self._resumed = True
        if isinstance(change.get("summary"), str):
            self.summary = change["summary"]
        messages = change.get("messages")
        if not isinstance(messages, Sequence) or isinstance(messages, str):
            return
        listed = [m for m in messages if isinstance(m, Mapping) and isinstance(m.get("id"), str)]
        turns = [_turn(entry, m) for m in listed]
        names = {turn.id for turn in turns}
        self._died()
        told = events.of_set(self.history.turns, turns, self._seen, resumed=self._resumed)
        if told is not None:
            kind, where, dropped = told
            tokens = self.tokens if kind == "compaction" else None
            twice = events.doubled(turns) if kind == "resume" else 0
            self.happened.append(Event(kind, entry.place, where, len(self.calls), dropped, tokens, twice))
        self._resumed = self._resumed and events.is_first(turns)
        self._seen |= names
        self._put(turns)

    def _rewind(self, entry: Entry, name: str) -> None:
        """Take back a message and all behind it; an id that is not there takes back everything."""
        at = self._at.get(name, 0)
        self._died()
        dropped = self.history.turns[at:]
        places = tuple(dict.fromkeys(t.entry.place for t in dropped if t.entry is not None))
        many = "a message" if len(dropped) == 1 else f"{len(dropped)} messages"
        self._tell("rewind", entry, f"took back {many}", places)
        self._put(self.history.turns[:at])

    def _put(self, turns: Sequence[Turn]) -> None:
        self.history, self._at = History(), {}
        for turn in turns:
            self._add(turn)

    def _add(self, turn: Turn) -> None:
        if turn.id:
            self._at.setdefault(turn.id, len(self.history.turns))
        self.history.append(turn)

    def _died(self) -> None:
        call = self.waiting
        if call is not None:
            call.dead = True
            self.history.taken = max(self.history.taken, call.length)
            self.calls.append(call)
        self._waiting, self._opened = None, False

    def _tell(self, kind: str, entry: Entry, where: str, dropped: tuple[Place, ...] = ()) -> None:
        self.happened.append(Event(kind, entry.place, where, len(self.calls), dropped))


def replays(log: Log) -> Sequence[Replay]:
    """The session's chat and those of its subagents, folded as far as they were read; the session's own is the first."""
    memo = shared_memo(log, "gemini.replays")
    kept: _Kept | None = memo.get("kept")
    if kept is None or kept.rewrites != log.rewrites:
        memo["kept"] = kept = _Kept(log.rewrites)
        for name in _MADE_OF_CALLS:
            log.memo.pop(name, None)
    for entry in log.entries[kept.upto :]:
        source = entry.source.partition(":")[0]
        if source in {SESSION, AGENT}:
            kept.of(entry.source).fold(entry)
    kept.upto = len(log.entries)
    return list(kept.found.values())


@dataclass(eq=False, slots=True, repr=False)
class _Kept:
    rewrites: int
    upto: int = 0
    found: dict[str, Replay] = field(default_factory=lambda: {SESSION: Replay(SESSION)})

    def of(self, source: str) -> Replay:
        return self.found.setdefault(source, Replay(source))


def whole(value: Any) -> int | None:
    """A count as the log has it."""
    return int(value) if isinstance(value, int | float) and not isinstance(value, bool) and value == value else None  # noqa: PLR0124 - no NaN


def _is_answer(data: Mapping[str, Any]) -> bool:
    """Whether a new message of the model is what a call brought; the program writes some itself, without model and tokens."""
    return isinstance(data.get("tokens"), Mapping) or (isinstance(data.get("model"), str) and "tokens" in data)


def _turn(entry: Entry, message: Mapping[str, Any]) -> Turn:
    """A message as the history holds it."""
    content, role = message.get("content"), "model" if message.get("type") == "gemini" else "user"
    fresh = role == "model" and isinstance(content, str)
    parts: list[Mapping[str, Any]] = []
    if isinstance(content, str):
        parts += [{"text": content}] if content or role == "user" else []
    elif isinstance(content, Sequence):
        parts += [p if isinstance(p, Mapping) else {"text": p} for p in content if isinstance(p, Mapping | str)]
    elif isinstance(content, Mapping):
        parts.append(content)
    if fresh:
        parts += [{"functionCall": call} for call in tool_calls(message)]
    size = (
        len(entry.raw.decode("utf-8", "replace"))
        if message is entry.data
        else len(spelled(message).decode("utf-8", "replace"))
    )
    name = message.get("id")
    return Turn(name if isinstance(name, str) else "", role, tuple(map(_as_sent, parts)), entry, fresh, size)


def tool_calls(message: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The calls of tools that are logged with an answer."""
    calls = message.get("toolCalls")
    found = calls if isinstance(calls, Sequence) and not isinstance(calls, str) else ()
    return [{key: call.get(key) for key in ("id", "name", "args")} for call in found if isinstance(call, Mapping)]


def _as_sent(part: Mapping[str, Any]) -> Mapping[str, Any]:
    """A part without the files that a tool's response hands over."""
    answered = part.get("functionResponse")
    response = answered.get("response") if isinstance(answered, Mapping) else None
    if not isinstance(response, Mapping) or INJECTED not in response:
        return part
    kept = {key: value for key, value in response.items() if key != INJECTED}
    return {**part, "functionResponse": {**answered, "response": kept}} if isinstance(answered, Mapping) else part


def _has_responses(turn: Turn) -> bool:
    return turn.role == "user" and any(part.get("functionResponse") for part in turn.parts)


def _is_binary(turn: Turn) -> bool:
    return turn.role == "model" and any(p.get("text") == BINARY and p.get("thought") for p in turn.parts)
