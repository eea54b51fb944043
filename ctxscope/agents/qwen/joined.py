"""The contents of a history as messages, where what the user's side says in a row is one message (read in 0.24.4).

A tool call that has no result behind its answer gets one that says so, and a result without its call is left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from ctxscope.agents.qwen.history import History
from ctxscope.agents.qwen.messages import Form, Message, answer, spelled
from ctxscope.model import Piece, Place

WORDS, WORDS_IN_TEXT = "/messages/*/content/*/text", "/messages/*/content"
"""Where words stand that no log holds; the second where contents are strings."""
UNRECORDED = (
    "Tool execution result was not recorded \u2014 likely interrupted by network failure, abort, or process exit. "
    "Treat as failure and retry if needed."
)
"""The result that a tool call without one gets."""
_MOST_KEPT = 6
Word = tuple[bytes, Literal["learned", "echoed"]]
"""An item of a content that is not logged, and where it is known from."""


@dataclass(frozen=True, slots=True)
class Unlogged:
    """What a process puts before what the user says."""

    first: tuple[Word, ...] = ()
    """Before everything."""
    before: tuple[tuple[str, tuple[Word, ...]], ...] = ()
    """Before the content that an entry holds, by its key."""
    process: int = 0
    """Number of the process."""


@dataclass(eq=False, slots=True)
class _Settled:
    """Groups of contents as later requests repeat them."""

    unlogged: Unlogged
    """What stands in them that no log holds."""
    pieces: list[Piece] = field(default_factory=list)
    ends: list[tuple[int, int]] = field(default_factory=list)
    """Behind each group, the number of contents and of pieces."""

    def cut(self, at: int) -> None:
        """Leave only the groups before a content."""
        while self.ends and self.ends[-1][0] > at:
            self.ends.pop()
        del self.pieces[self.ends[-1][1] if self.ends else 0 :]


class Joined:
    """The contents of a history in groups of one side each."""

    def __init__(self, history: History, left_out: tuple[int, int], form: Form, unlogged: Unlogged) -> None:
        self._history, self._form, self._unlogged = history, form, unlogged
        self._before: Mapping[str, tuple[Word, ...]] = dict(unlogged.before)
        self._left_out = range(*left_out)
        self._key = (form, left_out, unlogged.process)

    def pieces(self, length: int) -> list[Piece]:
        """Pieces of a request made of the first contents, each message behind its comma."""
        kept = self._settled(length)
        known = len(kept.ends)
        while known and kept.ends[known - 1][0] >= length:
            known -= 1
        start, count = kept.ends[known - 1] if known else (0, 0)
        out = kept.pieces[:count]
        settling = known == len(kept.ends)
        groups = list(self._groups(start, length))
        if not start and self._unlogged.first and (not groups or self._role(groups[0]) == "model"):
            out += self._user(list(self._learned(self._unlogged.first)))
        asked = self._calls(start)
        for group in groups:
            if self._role(group) == "model":
                out += self._unrecorded(asked)
                message, place = self._merged(group)
                data = answer(message.text, [c for _, c in message.calls], message.reasoning, self._form)
                out.append(Piece(b"," + data, "logged", place))
                asked = [name for name, _ in message.calls]
            else:
                out += self._said(group, asked, first=not start and group is groups[0])
                asked = []
            if settling and group[-1] + 1 < length:
                kept.pieces += out[len(kept.pieces) :]
                kept.ends.append((group[-1] + 1, len(out)))
        return out

    def _settled(self, length: int) -> _Settled:
        """What earlier requests of the same process settled, with the words of this one; few are asked for in turn."""
        kept = self._history.settled
        if self._key not in kept and len(kept) >= _MOST_KEPT:
            del kept[next(iter(kept))]
        found: _Settled = kept.setdefault(self._key, _Settled(self._unlogged))
        settled = found.ends[-1][0] if found.ends else 0
        used = max((end for end, _ in found.ends if end < length), default=0)
        at = self._alike(found.unlogged)
        if at < used or used == settled:  # else a shorter request than those before it, with all that it repeats
            found.cut(at)
            found.unlogged = self._unlogged
        return found

    def _alike(self, other: Unlogged) -> int:
        """How many contents have the same words before them as with others."""
        if other.first != self._unlogged.first:
            return 0
        turns = self._history.turns
        if other.before == self._unlogged.before:
            return len(turns)
        changed = {key for key, _ in set(other.before) ^ set(self._unlogged.before)}
        return next((n for n, turn in enumerate(turns) if turn.key in changed), len(turns))

    def words(self, start: int, length: int) -> tuple[int, int]:
        """Of the first contents from one of the user's side on: items its group's message has, and messages behind it."""
        first, *others = self._groups(start, length)
        own = sum(len(m.items) for i in first for m in self._messages(i))
        return own, sum(any(m.items for i in group for m in self._messages(i)) for group in others)

    def leads(self, length: int) -> int | None:
        """The content that a request begins with; ``None`` where that is an answer."""
        group = next(self._groups(0, length), None)
        return group[0] if group is not None and self._role(group) == "user" else None

    def _groups(self, start: int, length: int) -> Iterator[list[int]]:
        """Contents of one side each; an answer with tool calls ends its group, since their results follow it."""
        group: list[int] = []
        for at in range(start, length):
            if self._is_out(at):
                continue
            last = self._history.turns[group[-1]] if group else None
            if last is not None and (
                last.role != self._history.turns[at].role or (last.role == "model" and last.calls)
            ):
                yield group
                group = []
            group.append(at)
        if group:
            yield group

    def _is_out(self, at: int) -> bool:
        return at in self._left_out or (self._history.turns[at].role == "model" and not self._messages(at))

    def _role(self, group: Sequence[int]) -> str:
        return self._history.turns[group[0]].role

    def _messages(self, at: int) -> tuple[Message, ...]:
        return self._history.turns[at].messages(self._form)

    def _calls(self, start: int) -> list[str]:
        """The tool calls that wait for results where a request is gone on with behind settled groups."""
        at = next((n for n in range(start - 1, -1, -1) if not self._is_out(n)), None)
        turn = self._history.turns[at] if at is not None else None
        return turn.calls if turn is not None and turn.role == "model" else []

    def _merged(self, group: Sequence[int]) -> tuple[Message, Place | None]:
        """Answers side by side as one."""
        found, *others = (message for at in group for message in self._messages(at))
        for message in others:
            found = merged(found, message)
        return found, self._history.turns[group[0]].place(found.part)

    def _said(self, group: Sequence[int], asked: Sequence[str], *, first: bool) -> list[Piece]:
        """Results of tools, then all the words as one message."""
        out: list[Piece] = []
        words = list(self._learned(self._unlogged.first)) if first else []
        open_calls = list(dict.fromkeys(asked))
        for at in group:
            turn = self._history.turns[at]
            words += self._learned(self._before.get(turn.key, ()))
            for message in turn.messages(self._form):
                if message.role == "user":
                    words += [Piece(data, "logged", turn.place(part)) for data, part in message.items]
                elif message.id in open_calls:
                    open_calls.remove(message.id)
                    out.append(Piece(b"," + message.data, "logged", turn.place(message.part)))
        return [*out, *self._unrecorded(open_calls), *self._user(words)]

    def _unrecorded(self, names: Sequence[str]) -> list[Piece]:
        """Results of tool calls that have none."""
        content = UNRECORDED if self._form.flat else [{"type": "text", "text": UNRECORDED}]
        told = ({"role": "tool", "tool_call_id": name, "content": content} for name in names)
        return [Piece(b"," + spelled(message)) for message in told]

    def _learned(self, words: Sequence[Word]) -> Iterator[Piece]:
        path = WORDS_IN_TEXT if self._form.flat else WORDS
        return (Piece(data, provenance, path=path) for data, provenance in words)

    def _user(self, words: Sequence[Piece]) -> list[Piece]:
        """A message of the user's side; nothing without words."""
        if not words:
            return []
        start, between, end = (b'"', b"\\n\\n", b'"') if self._form.flat else (b"[", b",", b"]")
        out = [Piece(b',{"role":"user","content":' + start), words[0]]
        for word in words[1:]:
            out += (Piece(between), word)
        return [*out, Piece(end + b"}")]


def merged(one: Message, other: Message) -> Message:
    """Two answers side by side as one."""
    text = (one.text or "") + (other.text or "")
    return replace(one, text=text or None, calls=(*one.calls, *other.calls), reasoning=one.reasoning + other.reasoning)
