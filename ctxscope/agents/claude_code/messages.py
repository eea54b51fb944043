"""Messages the chain implies: what each is made of, and how the client writes it (claude_code.md §4.2, §4.3)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ctxscope.agents.claude_code.texts import mapped, spelled, string, text_block
from ctxscope.agents.claude_code.trail import Run, Trail
from ctxscope.agents.claude_code.tree import Node, Tree
from ctxscope.model import Piece

EPHEMERAL = b'{"type":"ephemeral"}'
_NOT_SENT = ("caller", "citations")
"""Fields of stored blocks that are sent to some models only."""
_THOUGHTS = frozenset({"thinking", "redacted_thinking"})


@dataclass(frozen=True, slots=True, eq=False)
class Unit:
    """A block of a message and the line it stands in."""

    block: Mapping[str, Any]
    node: Node
    bare: bool = False
    """The line holds it as a plain string."""

    @property
    def kind(self) -> str:
        """The block's type."""
        return string(self.block.get("type"))

    @property
    def text(self) -> str | None:
        """The text of a text block."""
        text = self.block.get("text")
        return text if self.kind == "text" and isinstance(text, str) else None

    @property
    def thought(self) -> bool:
        """Whether it is thinking, open or not."""
        return self.kind in _THOUGHTS


@dataclass(frozen=True, slots=True, eq=False)
class Message:
    """A message the chain implies."""

    role: str
    units: tuple[Unit, ...]
    attached: tuple[Node, ...]
    """Attachments among its lines; what is sent of them the log may not tell."""

    @property
    def models(self) -> frozenset[str]:
        """The model that gave it, for an answer."""
        return frozenset(u.node.head.model for u in self.units)


@dataclass(frozen=True, slots=True)
class Form:
    """How the client of a session writes messages."""

    marks: int = 1
    """Messages at the end that carry a cache mark on their last block."""
    mark: bytes = EPHEMERAL
    newline: bool = True
    """Texts of a user's that follow one another are set apart by a newline."""


def messages(tree: Tree, trail: Trail, length: int) -> list[Message]:
    """The messages of a trail's first items; runs that hold nothing of a message are left out."""
    count = trail.begun[length - 1] if length else 0
    if not count:
        return []
    for run in trail.runs[len(trail.made_with) - 1 : count - 1]:
        message = _message(tree, trail, run)
        if message.units:
            trail.made.append(message)
        trail.made_with.append(len(trail.made))
    run = trail.runs[count - 1]
    last = _message(tree, trail, Run(run.role, run.start, min(run.end, length)))
    found: list[Message] = trail.made[: trail.made_with[count - 1]]
    return [*found, last] if last.units else found


def _message(tree: Tree, trail: Trail, run: Run) -> Message:
    nodes = tuple(n for item in trail.items[run.start : run.end] for n in item.nodes)
    found = tree.messages.get(nodes)
    if found is None:
        units = [u for n in nodes if n.entry.kind != "attachment" for u in units_of(n)]
        if run.role == "user":  # results come before everything else
            units.sort(key=lambda u: u.kind != "tool_result")
        attached = tuple(n for n in nodes if n.entry.kind == "attachment")
        tree.messages[nodes] = found = Message(run.role, tuple(units), attached)
    return found


def units_of(node: Node) -> Iterator[Unit]:
    """The blocks a line holds of a message."""
    data = node.entry.data
    content = data.get("content") if node.entry.kind == "system" else mapped(data.get("message")).get("content")
    if isinstance(content, str):
        yield Unit(text_block(content), node, bare=True)
    elif isinstance(content, list):
        for block in content:
            if isinstance(block, Mapping):
                yield Unit(block, node)


def sent(block: Mapping[str, Any], served: Mapping[str, Any] | None = None) -> Mapping[str, Any]:
    """A stored block as it is sent: without fields that only some models are given, unless the served one has them."""
    drop = [k for k in _NOT_SENT if k in block and (served is None or k not in served)]
    return {k: v for k, v in block.items() if k not in drop} if drop else block


def written(unit: Unit, *, newline: bool = False) -> list[Piece]:
    """A block by the rule alone; ``newline``: another text follows it."""
    block = sent(unit.block)
    if newline and unit.text is not None:
        block = {**block, "text": unit.text + "\n"}
    return [Piece(spelled(block), "logged", unit.node.entry.place)]


def marked(block: list[Piece], mark: bytes) -> list[Piece]:
    """A block with the cache mark as its last member."""
    last = block[-1]
    closed = Piece(last.data[:-1], last.provenance, last.place, last.path, last.external)
    return [*block[:-1], closed, Piece(b',"cache_control":' + mark + b"}")]


def may_be_marked(kind: str) -> bool:
    """Whether a block of this type can carry a cache mark."""
    return kind not in _THOUGHTS


def by_rule(message: Message, form: Form, *, mark: bool) -> list[Piece]:
    """A message as the client writes it when nothing is added to it."""
    units = message.units
    if len(units) == 1 and units[0].bare and not mark:
        unit = units[0]
        lead = b'{"role":"%s","content":' % message.role.encode()
        return [Piece(lead + spelled(unit.text) + b"}", "logged", unit.node.entry.place)]
    blocks = []
    for i, unit in enumerate(units):
        follows = message.role == "user" and i + 1 < len(units) and units[i + 1].kind == "text"
        blocks.append(written(unit, newline=form.newline and follows))
    if mark and may_be_marked(units[-1].kind):
        blocks[-1] = marked(blocks[-1], form.mark)
    return joined(message.role, blocks)


def joined(role: str, blocks: Sequence[list[Piece]]) -> list[Piece]:
    """A message out of its blocks; the brackets around what a line holds count as the line's."""
    out: list[Piece] = []
    lead = b'{"role":"%s","content":[' % role.encode()
    for block in blocks:
        out += led(lead, block)
        lead = b","
    if not out:
        return [Piece(lead + b"]}")]
    return [*out[:-1], *closed(out[-1], b"]}")]


def led(lead: bytes, pieces: Sequence[Piece]) -> list[Piece]:
    """Pieces with punctuation before them, as the first one's own where that is of the log."""
    first = pieces[0]
    if first.provenance == "logged" and not first.external:
        return [Piece(lead + first.data, "logged", first.place), *pieces[1:]]
    if first.provenance == "derived":
        return [Piece(lead + first.data), *pieces[1:]]
    return [Piece(lead), *pieces]


def closed(last: Piece, tail: bytes) -> list[Piece]:
    """A piece with punctuation behind it, in the same way."""
    if last.provenance == "logged" and not last.external:
        return [Piece(last.data + tail, "logged", last.place)]
    return [Piece(last.data + tail)] if last.provenance == "derived" else [last, Piece(tail)]
