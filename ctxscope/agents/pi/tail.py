"""Where a compaction of pi's divides what it summarises from the tail it keeps (pi.md §5).

Source of the rules: the compaction of 0.73.1, 0.74.2 (alike) and 1.6.0, read; to the message like every recorded one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ctxscope.agents.pi.estimate import COMPACTION, charge
from ctxscope.agents.pi.texts import blocks
from ctxscope.agents.pi.trail import items, ran
from ctxscope.agents.pi.tree import Node, kept_by, path
from ctxscope.model import Entry

OLD, NEW = "0.73", "1.x"
"""Versions by what their rules do: 0.74 does as 0.73."""


@dataclass(frozen=True, slots=True)
class Step:
    """One entry that the walk passes, as one version takes it."""

    entry: Entry
    tokens: int
    cuttable: bool
    """The tail may begin here: with anything the model reads but a tool result or a system message."""
    held: bool
    """pi has it among its messages, those for no model too."""
    shown: bool
    """It is one of the messages of the history that a model is given."""
    omitted: bool = False
    """It was one until a context_edit left it out."""

    @property
    def is_line(self) -> bool:
        """Whether it is a message of the session's own, and no extension's or branch's."""
        return self.entry.data.get("type") == "message"


def steps_of(last: Node, version: str) -> list[Step]:
    """The entries a compaction behind ``last`` walks over, oldest first: those behind the summary of the one before."""
    nodes = [*path(last)][::-1]
    at = next((i for i, n in enumerate(nodes) if n.entry is last.compaction), None)
    if at is None:
        return [_step(n, last.edits, version) for n in nodes]
    kept = [n for n in kept_by(nodes[:at], nodes[at].entry) if n.entry.kind != "system"]
    between = nodes[at : at + 1] if version == OLD else []  # where its walk for what stands before the tail ends
    return [_step(n, last.edits, version) for n in (*kept, *between, *nodes[at + 1 :])]


def cut_of(steps: Sequence[Step], keep: int, version: str) -> int:
    """How many of the messages shown lie before the tail that ``keep`` tokens (``keepRecentTokens``) buy.

    From the newest entry back, the entries' tokens are added up, each ``ceil(UTF-16 units / 4)``. Where the sum reaches
    ``keep`` the tail begins: with that entry, or the next one it may begin with, inside a turn too. A sum that never
    gets there keeps all. Where nothing behind that entry may begin a tail (a tool result that is too large alone), 1.x
    begins with the last one that may, its call; 0.73 keeps all. What extensions or branches said right before the tail
    0.73 keeps with it. Where nothing stands behind the entry but failed answers that were left out since, 1.x keeps nothing.
    """
    valid = [i for i, step in enumerate(steps) if step.cuttable]
    if not valid:
        return 0
    cut, total, reached = valid[0], 0, False
    for i in range(len(steps) - 1, -1, -1):
        total += steps[i].tokens
        if steps[i].tokens and total >= keep:
            cut, reached = next((v for v in valid if v >= i), valid[-1] if version == NEW else valid[0]), True
            break
    if version == NEW:
        cut += reached and _is_recovery(steps[cut + 1 :])
    else:
        while cut and steps[cut - 1].entry.kind != "compaction" and not steps[cut - 1].is_line:
            cut -= 1
    return sum(step.shown for step in steps[:cut])


def _is_recovery(suffix: Sequence[Step]) -> bool:
    """Whether nothing but left-out entries stands there, a failed answer among them, and no edit of an earlier message."""
    omitted = {step.entry.key for step in suffix if step.omitted}
    edits = (step.entry.data for step in suffix if step.entry.kind == "context_edit")
    outside = any(e.get("replacement") is not None and e.get("targetId") not in omitted for e in edits)
    closed = all(step.entry.kind != "compaction" and not step.held for step in suffix)
    return closed and not outside and any(step.omitted and step.entry.kind == "assistant" for step in suffix)


def _step(node: Node, edits: Mapping[str, Any], version: str) -> Step:
    entry, edit = node.entry, edits.get(node.entry.key)
    omitted = entry.key in edits and not isinstance(edit, Mapping)
    made = [] if omitted else items(entry, edit)
    read = [i for i in made if i.role != "system"]
    tokens = [_tokens(entry, i.role, i.bare or i.message, version) for i in made]
    aside = entry.kind == "bashExecution" and not made and not omitted
    if aside:  # a command that no model is told of: pi walks over it all the same
        tokens = [_tokens(entry, "user", ran(entry.data["message"]), version)]
    cuttable = aside or any(i.role != "toolResult" for i in read)
    return Step(entry, sum(tokens), cuttable, bool(made) or aside, bool(read), omitted=omitted and bool(node.own))


def _tokens(entry: Entry, role: str, message: Mapping[str, Any], version: str) -> int:
    """Tokens of one message; 0.73 counts none of extensions, branches and systems, and no image of a user's."""
    if version == OLD:
        if entry.data.get("type") != "message" or role == "system":
            return 0
        if entry.kind == "user":
            message = {"content": [b for b in blocks(message.get("content")) if b.get("type") != "image"]}
    return sum(charge(role, message, COMPACTION).values())
