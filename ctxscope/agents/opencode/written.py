"""A thread as sent to a model: its messages spelled, and where in the request they stand (opencode.md §4)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import pairwise

from ctxscope.agents import Log, shared_memo
from ctxscope.agents.opencode import chat, claude, items
from ctxscope.agents.opencode.history import Asked, Thread
from ctxscope.agents.opencode.speech import Block, Speech, speeches
from ctxscope.model import Piece

CLAUDE, ITEMS = "claude", "items"
"""Forms of a request beside those of Chat Completions (``chat.FORMS``): Anthropic's API, the Responses API."""
MARKED = 2
"""Messages at the end that carry cache marks."""


_KEPT = {CLAUDE: claude.kept, ITEMS: items.kept}
"""What is left of a speech, in the APIs that take files in the results of tools."""


def is_marked(model: tuple[str, str]) -> bool:
    """Whether cache marks are set for a model where its API is not Anthropic's."""
    return model[0] == "anthropic" or any(name in model[1] for name in ("claude", "anthropic"))


def written_of(log: Log, asked: Asked, form: str) -> Written:
    """What a call reads, as sent to its model; one for all calls that go on from one another."""
    key = (asked.thread, asked.answer.model, form)
    found: Written = shared_memo(log, "opencode.written").setdefault(key, Written(*key))
    return found


@dataclass(eq=False, repr=False)
class Written:
    """A thread as sent to a model, written as far as some call needed it; what marks move over is written for each call."""

    thread: Thread
    model: tuple[str, str]
    form: str
    """``CLAUDE``, ``ITEMS``, or how reasoning is sent in Chat Completions."""
    speeches: list[Speech] = field(default_factory=list)
    counts: list[int] = field(default_factory=lambda: [0])
    """How many speeches the first messages of the log have."""
    pieces: list[Piece] = field(default_factory=list)
    ends: list[int] = field(default_factory=lambda: [0])
    """How many of ``pieces`` the first speeches have."""

    def upto(self, length: int, reminder: Piece | None = None) -> tuple[Piece, ...]:
        """The messages that the first ``length`` of the log are sent as, without the brackets around them.

        ``reminder``: a text, as spelled, that the newest input carries behind its own for this once.
        """
        self._speak(length)
        count = self.counts[length]
        marked = 0 if self.form == ITEMS or not (self.form == CLAUDE or is_marked(self.model)) else MARKED
        settled = max(0, count - marked)
        while len(self.ends) <= settled:
            self.pieces += self._speech(len(self.ends) - 1, marked=False)
            self.ends.append(len(self.pieces))
        newest = self._newest(length) if reminder is not None else None
        kept = settled if newest is None else min(settled, newest)
        rest: list[Piece] = []
        for at in range(kept, count):
            rest += self._speech(at, marked=at >= settled, reminder=reminder if at == newest else None)
        end = (Piece(b"]}"),) if count and self.form == CLAUDE else ()
        return (*self.pieces[: self.ends[kept]], *rest, *end)

    def reminded(self, length: int, systems: int) -> tuple[int, int] | None:
        """Where a reminder would stand: number of the message, behind ``systems`` others, and of the block in it."""
        self._speak(length)
        newest = self._newest(length)
        if newest is None:
            return None
        before, inside = self.speeches[:newest], len(self.speeches[newest].blocks)
        if self.form == ITEMS:
            return systems + sum(map(items.count, before)), inside
        if self.form != CLAUDE:
            return systems + sum(len(s.blocks) if s.role == "tool" else 1 for s in before), inside
        roles = [claude.role_of(s) for s in self.speeches[: newest + 1]]
        message = sum(a != b for a, b in pairwise(roles))
        first = next((i + 1 for i in range(newest - 1, -1, -1) if roles[i] != roles[newest]), 0)
        return systems + message, inside + sum(len(s.blocks) for s in self.speeches[first:newest])

    def _newest(self, length: int) -> int | None:
        """The speech of the newest input."""
        for at in range(length - 1, -1, -1):
            if self.thread.said[at].entry.kind == "user":
                return self.counts[at] if self.counts[at] < self.counts[at + 1] else None
        return None

    def _speak(self, length: int) -> None:
        for said in self.thread.said[len(self.counts) - 1 : length]:
            for speech in speeches(said, self.model, self.thread.moment, takes_files=self.form in _KEPT):
                kept = _KEPT[self.form](speech) if self.form in _KEPT else speech
                if kept is not None:
                    self.speeches.append(kept)
            self.counts.append(len(self.speeches))

    def _speech(self, at: int, *, marked: bool, reminder: Piece | None = None) -> list[Piece]:
        """One speech with what stands before it: a comma, or in Anthropic's API also the end and beginning of messages."""
        speech = self.speeches[at]
        if reminder is not None:
            more = Block("text", speech.blocks[-1].entry, learned=reminder)
            speech = replace(speech, blocks=(*speech.blocks, more))
        if self.form != CLAUDE:
            found: list[Piece] = []
            for message in (
                items.written(speech) if self.form == ITEMS else chat.written(speech, self.form, marked=marked)
            ):
                found += [*([Piece(b",")] if at or found else []), *message]
            return found
        role = claude.role_of(speech)
        if at and claude.role_of(self.speeches[at - 1]) == role:
            lead = b","
        else:
            lead = b'%s{"role":"%s","content":[' % (b"]}," if at else b"", role.encode())
        return [Piece(lead), *claude.written(speech, claude="claude" in self.model[1], marked=marked)]
