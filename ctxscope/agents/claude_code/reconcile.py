"""A message a record holds as it was sent, beside the lines of the transcript it was made of.

Such a message repeats what lines hold: each text gets the place of its line, and where the two differ, the line's text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ctxscope.agents.claude_code.attached import told
from ctxscope.agents.claude_code.lines import IS_META
from ctxscope.agents.claude_code.messages import Message, Unit, sent
from ctxscope.agents.claude_code.records import Found
from ctxscope.agents.claude_code.texts import (
    added_from,
    is_reminder,
    is_text,
    mapped,
    spelled,
    string,
    trimmed,
    well_formed,
    wrapped,
)
from ctxscope.agents.claude_code.tree import Node
from ctxscope.model import Place

Block = tuple[Mapping[str, Any], Place | None, bool]
"""A block, where the log holds it, and whether it restores text from outside the log."""


@dataclass(frozen=True, slots=True, eq=False)
class Told:
    """A message with the place of each block."""

    role: str
    blocks: Sequence[Block]
    more: Mapping[str, Any]
    place: Place | None = None
    bare: bool = True
    """No line holds its text as a block."""


def as_told(message: Message) -> Told:
    """A message of the chain alone."""
    blocks = [(sent(u.block), u.node.entry.place, False) for u in message.units]
    return Told(message.role, blocks, {}, bare=all(u.bare for u in message.units))


def as_recorded(known: Found, place: Place, message: Message | None, restored: set[Node]) -> Told:
    """A recorded message; ``message``: what the chain has at its place."""
    if message is None:
        return Told(known.role, [(b, place, False) for b in known.blocks], known.more, place)
    waiting = list(message.units)
    settled: dict[int, Block] = {}
    for i, block in enumerate(known.blocks):
        unit = next((u for u in waiting if _is(u, block)), None)
        if unit is not None:
            waiting.remove(unit)
            settled[i] = (block, unit.node.entry.place, False)
        elif (node := _attachment(block, message)) is not None:
            settled[i] = (block, node.entry.place, node in restored)
    for fits in (_is_as_long, _replaces, _is_of_kind):
        for i, block in enumerate(known.blocks):
            unit = next((u for u in waiting if i not in settled and fits(u, block)), None)
            if unit is not None:
                waiting.remove(unit)
                settled[i] = (_as(unit, block), unit.node.entry.place, False)
    out = [settled.get(i, (block, place, False)) for i, block in enumerate(known.blocks)]
    return Told(known.role, out, known.more, place)


def _forms(unit: Unit) -> tuple[str, ...]:
    """A line's text, with what the client puts around some."""
    own = well_formed(unit.text or "")
    forms = (own, wrapped(own)) if unit.node.head.flags & IS_META else (own,)
    return (*forms, *(f"{f}\n" for f in forms))


def _is(unit: Unit, block: Mapping[str, Any]) -> bool:
    """Whether a block is a line's."""
    if unit.text is None or block.get("type") != "text":
        own = *map(well_formed, (unit.block, sent(unit.block, block))), _result(unit, block)
        return any(o == block and spelled(o) == spelled(block) for o in own)  # the order of keys is content
    return string(block.get("text")) in _forms(unit)


def _is_as_long(unit: Unit, block: Mapping[str, Any]) -> bool:
    """Whether a text has the length of a line's: of several the one that was changed."""
    text = string(block.get("text"))
    return unit.text is not None and bool(text) and len(text) in map(len, _forms(unit))


def _replaces(unit: Unit, block: Mapping[str, Any]) -> bool:
    """Whether a block stands for a line that says something else."""
    if unit.text is not None:
        return block.get("type") == "text" and not is_reminder(string(block.get("text")))
    return any(string(unit.block.get(n)) and unit.block.get(n) == block.get(n) for n in ("id", "tool_use_id"))


def _is_of_kind(unit: Unit, block: Mapping[str, Any]) -> bool:
    """Whether a block is what a line holds by another id."""
    return unit.text is None and unit.kind == block.get("type")


def _as(unit: Unit, block: Mapping[str, Any]) -> Mapping[str, Any]:
    """A line's block in the form of the recorded one."""
    if unit.text is None:
        return _result(unit, block) or well_formed(sent(unit.block, block))
    recorded, text = string(block.get("text")), well_formed(unit.text)
    if is_reminder(recorded) and not is_reminder(text):
        text = wrapped(text)
    if recorded.endswith("\n") and not text.endswith("\n"):
        text += "\n"
    return {**block, "text": text}


def _result(unit: Unit, block: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """A line's tool result with the reminders the recorded one ends in."""
    own, recorded = well_formed(unit.block.get("content")), block.get("content")
    if unit.kind != "tool_result":
        return None
    with_reminders = _ended(own, recorded) if isinstance(own, str) else _listed(own, recorded)
    return {**unit.block, "content": with_reminders} if with_reminders is not None else None


def _ended(own: str, recorded: Any) -> str | None:
    """A text with the reminders the recorded one ends in; the text before them is trimmed (§5)."""
    at = added_from(own, recorded) if isinstance(recorded, str) else None
    if at is None:
        return None
    kept = own if own == recorded[:at] else trimmed(own)
    return f"{kept}{recorded[at:]}" if kept else string(recorded[at:]).lstrip("\n")


def _listed(own: Any, recorded: Any) -> list[Any] | None:
    """Blocks of a result with the reminders behind the recorded ones; a text before them ends its line (2.1.332)."""
    if not isinstance(own, list) or not isinstance(recorded, list) or not own or len(recorded) <= len(own):
        return None
    added = recorded[len(own) :]
    if not all(is_text(b) and is_reminder(b["text"]) for b in added):
        return None
    last, there = own[-1], string(mapped(recorded[len(own) - 1]).get("text"))
    if is_text(last) and there.endswith("\n") and not last["text"].endswith("\n"):
        last = {**last, "text": last["text"] + "\n"}
    return [*own[:-1], last, *added]


def _attachment(block: Mapping[str, Any], message: Message) -> Node | None:
    """The attachment a block was rendered from."""
    text = string(block.get("text")).rstrip("\n")
    for node in message.attached if text else ():
        if any(text == own.rstrip("\n") for own in told(node)):
            return node
    return None
