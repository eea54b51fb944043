"""One context file as a chapter of its session: its messages, and the calls its answers imply (kimi.md §4).

A turn is a checkpoint and the user's input; a step is a checkpoint, what the agent itself puts in (reminders,
notifications), the answer, the results of its tool calls.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import NamedTuple

from ctxscope.agents.kimi.rows import MESSAGES, parts, text_of
from ctxscope.agents.reading.charges import Charges
from ctxscope.model import Entry

SUMMARY = "<system>Previous context has been compacted. Here is the compaction output:</system>"
PAST = "<system>You just got a D-Mail from your future self."
"""How the message begins that a model sends back to an earlier checkpoint of its own context."""
REMINDERS = ("<system-reminder>", "<notification ", "<system>CHECKPOINT ")
"""How user rows begin that the agent puts into a step."""
_CARRIED = ("assistant", "tool", "usage")
"""Rows that stand before the second checkpoint only where a compaction wrote them."""
_AGENT = re.compile(r"(?m)^agent_id: (\w+)$")
"""How the result of a tool call names the subagent that it ran or started."""
CHARACTERS = 4
"""A token, by the agent's own estimate of texts not yet counted by a provider."""


class Step(NamedTuple):
    """A call that a chapter implies."""

    row: int
    """How many rows stand before it."""
    length: int
    """How many messages its request was made of."""
    answer: Entry | None
    """``None``: none was written, although the agent went on."""
    turn: int
    """User inputs of this chapter so far."""


@dataclass(eq=False, repr=False)
class Chapter:
    """The rows of one context file, taken in one by one."""

    rows: list[Entry] = field(default_factory=list)
    turns: list[int] = field(default_factory=lambda: [0])
    """User inputs before each row, and in all."""
    messages: list[Entry] = field(default_factory=list)
    noted: list[tuple[int, int]] = field(default_factory=list)
    """For each message, the size of the context as last noted before it, and how many messages stood there then."""
    charges: Charges = field(default_factory=Charges)
    """Characters of the messages' texts by what they are; filled as far as asked for."""
    characters: list[int] = field(default_factory=list)
    """Characters of the rows up to each message, as logged."""
    steps: list[Step] = field(default_factory=list)
    callers: dict[str, str] = field(default_factory=dict)
    """By subagent, the tool call that ran it, as its result says."""
    steered: list[int] = field(default_factory=list)
    """Which messages are inputs put into a turn under way."""
    checkpoints: int = 0
    carried: bool = False
    """What stands before the second checkpoint comes from the file before: a summary of it, or some of its rows."""
    head: list[Entry] = field(default_factory=list)
    """The messages that were carried over."""
    tokens: int = 0
    """Size of the context as last noted."""
    left: int | None = None
    """The same as noted before the second checkpoint: what a compaction left."""
    _counted: int = 0
    """Messages that it holds."""
    _fresh: bool = False
    """Nothing but reminders came since the last checkpoint."""

    @property
    def summary(self) -> Entry | None:
        """The message that stands for what a compaction left out."""
        return next((m for m in self.head[:2] if begins(m, SUMMARY)), None)

    @property
    def waits(self) -> bool:
        """Whether the last message is one that a call is due for."""
        in_head = self.carried and self.checkpoints == 1
        return bool(self.messages) and self.messages[-1].kind in ("user", "tool") and not in_head

    def take(self, row: Entry) -> None:
        """Add the next row."""
        turn = self.turns[-1]
        if row.kind == "checkpoint":
            if self._fresh and self.waits and self.checkpoints > 1:
                self.steps.append(Step(len(self.rows), len(self.messages), None, turn))
            self.checkpoints, self._fresh = self.checkpoints + 1, True
        elif self.checkpoints == 1 and (row.kind in _CARRIED or begins(row, SUMMARY)):
            self.carried, self.turns = True, [0] * len(self.turns)
        elif row.kind == "user":
            turn += self._input(row)
        elif row.kind == "assistant":
            self.steps.append(Step(len(self.rows), len(self.messages), row, turn))
        if row.kind == "usage":
            self.tokens, self._counted = row.data["token_count"], len(self.messages)
            self.left = self.tokens if self.checkpoints == 1 else self.left
        elif row.kind in MESSAGES and (row.kind != "prompt" or not self.messages):
            self._message(row)
        self.rows.append(row)
        self.turns.append(0 if self.carried and self.checkpoints == 1 else turn)

    def _input(self, row: Entry) -> int:
        """Note a user row; 1 where it is an input of the user's."""
        if begins(row, *REMINDERS):
            return 0
        fresh, self._fresh = self._fresh, False
        if begins(row, "<system>"):
            return 0
        if not fresh and self.checkpoints > 1:
            self.steered.append(len(self.messages))
        return 1

    def _message(self, row: Entry) -> None:
        if row.kind in ("assistant", "tool"):
            self._fresh = False
        if row.kind == "tool":
            texts = "\n".join(map(text_of, parts(row.data.get("content"))))
            for agent in _AGENT.findall(texts):
                self.callers.setdefault(agent, str(row.data.get("tool_call_id")))
        self.messages.append(row)
        self.noted.append((self.tokens, self._counted))
        self.characters.append(sum(self.characters[-1:]) + len(row.raw.decode("utf-8", "replace")))
        if self.checkpoints == 1 and row.kind != "prompt":
            self.head.append(row)


def begins(row: Entry, *texts: str) -> bool:
    """Whether a user row begins with one of some texts."""
    first = next(iter(parts(row.data.get("content"))), {})
    return row.kind == "user" and text_of(first).lstrip().startswith(texts)
