"""Messages the chain implies: what each is made of, and how the client writes it (claude_code.md §4.2, §4.3)."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ctxscope.agents.claude_code.lines import API_ERROR, SYNTHETIC
from ctxscope.agents.claude_code.texts import mapped, spelled, string, text_block
from ctxscope.agents.claude_code.trail import Run, Trail
from ctxscope.agents.claude_code.tree import Node, Tree
from ctxscope.model import Piece

EPHEMERAL = b'{"type":"ephemeral"}'
_NOT_SENT = ("caller", "citations")
"""Fields of stored blocks that are sent to some models only."""
PLANNING, _PLAN = "ExitPlanMode", ("plan", "planFilePath")
"""The tool that shows a plan, and the arguments the client itself fills in."""
_OPEN = 3
"""Runs at the end of a context that what follows may still change."""
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
    maybe: bool = False
    """A later process sends it, the one that wrote it does not."""

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


@dataclass(slots=True, eq=False, repr=False)
class _Made:
    """Messages of a trail's runs that are closed."""

    messages: list[Message] = field(default_factory=list)
    """Without those that hold nothing."""
    upto: list[int] = field(default_factory=lambda: [0])
    """How many of them there are with each run's."""
    replaced: list[int] = field(default_factory=list)
    """Which of them the one behind replaces."""


def messages(tree: Tree, trail: Trail, length: int) -> list[Message]:
    """The messages of a trail's first items; runs that hold nothing of a message are left out.

    What is sent of an answer shows in what follows it: runs that have enough behind them stay as they are.
    """
    if trail.made is None:
        trail.made = _Made()
    made: _Made = trail.made
    runs = trail.runs(length)
    settled, whole = max(len(runs) - _OPEN, 0), trail.runs(len(trail))
    for number in range(len(made.upto) - 1, settled):
        _put(made.messages, _message(tree, trail, number, whole), made.replaced)
        made.upto.append(len(made.messages))
    found = _kept(made, made.upto[settled])
    for number in range(settled, len(runs)):
        _put(found, _message(tree, trail, number, runs))
    return found


def _put(found: list[Message], message: Message, replaced: list[int] | None = None) -> None:
    """Add a message; a user's behind a user's, since what stood between is not sent, makes one with it.

    ``replaced`` takes note of the one it replaces instead of removing it.
    """
    if not message.units:
        return
    last = found[-1] if found else None
    if last is not None and last.role == message.role == "user":
        message = _user((*last.units, *message.units), (*last.attached, *message.attached))
        if replaced is None:
            found.pop()
        else:
            replaced.append(len(found) - 1)
    found.append(message)


def _kept(made: _Made, count: int) -> list[Message]:
    """The first messages made, without those that the next one replaced."""
    found: list[Message] = []
    start = 0
    for at in made.replaced[: bisect_left(made.replaced, count - 1)]:
        found += made.messages[start:at]
        start = at + 1
    return [*found, *made.messages[start:count]]


def _message(tree: Tree, trail: Trail, number: int, runs: Sequence[Run]) -> Message:
    """The message of one of the runs of a context."""
    run = runs[number]
    nodes = tuple(n for item in trail.items(run.start, run.end) for n in item.nodes)
    maybe = False
    if run.role == "assistant":
        upto = _number(trail, runs, number + 2)
        nodes = tuple(n for n in nodes if _is_answered(tree, n, upto))
        maybe = _may_be_left(nodes, runs[number + 1].role if number + 1 < len(runs) else "assistant")
    found = tree.messages.get((nodes, maybe))
    if found is None:
        units = tuple(u for n in nodes for u in units_of(n))
        if run.role == "user":
            found = _user(units, tuple(n for n in nodes if n.entry.kind == "attachment"))
        else:
            found = Message(run.role, () if _says_nothing(units) else units, (), maybe)
        tree.messages[nodes, maybe] = found
    return found


def _number(trail: Trail, runs: Sequence[Run], number: int) -> int:
    """Number of the line by which a run's results are there or never come: where the next answer but one begins."""
    if number >= len(runs):
        return trail.item(runs[-1].end - 1).nodes[-1].number + 1
    run = runs[number]
    if run.role == "assistant":
        return trail.item(run.start).nodes[0].number
    return trail.item(run.end - 1).nodes[-1].number + 1


def _may_be_left(nodes: Sequence[Node], following: str) -> bool:
    """Whether an answer is sent by later processes alone: an error's text, or the beginning of one that broke off.

    2.0.30 then asks again, as if nothing had come (measured).
    """
    if any(n.head.flags & API_ERROR for n in nodes):
        return True
    return following == "assistant" and not any(n.head.stop or n.head.flags & SYNTHETIC for n in nodes)


def _user(units: Sequence[Unit], attached: tuple[Node, ...]) -> Message:
    """A user's message: results come before everything else, then the images of attachments."""
    return Message("user", tuple(sorted(units, key=_rank)), attached)


def _rank(unit: Unit) -> int:
    return 0 if unit.kind == "tool_result" else 1 if unit.node.entry.kind == "attachment" else 2


def _is_answered(tree: Tree, node: Node, upto: int) -> bool:
    """Whether a line of an answer is sent: one whose tool call has no result is dropped when a process goes on (measured)."""
    uses = node.head.uses
    if not uses:
        return True
    results = (tree.result(node.thread, use) for use in uses)
    return any(r is not None and r.number < upto for r in results)


def _says_nothing(units: Sequence[Unit]) -> bool:
    """Whether an answer is not sent: nothing but thinking, or nothing but white space (2.1.112)."""
    rest = [u for u in units if not u.thought]
    return not rest or all(u.text is not None and bool(u.text) and not u.text.strip() for u in units)


def units_of(node: Node) -> Iterator[Unit]:
    """The blocks a line holds of a message."""
    data = node.entry.data
    if node.entry.kind == "attachment":
        yield from _picture(node)
        return
    content = data.get("content") if node.entry.kind == "system" else mapped(data.get("message")).get("content")
    if isinstance(content, str):
        yield Unit(text_block(content), node, bare=True)
    elif isinstance(content, list):
        for block in content:
            if isinstance(block, Mapping):
                yield Unit(block, node)


def _picture(node: Node) -> Iterator[Unit]:
    """The block of an image the user named with ``@`` (measured in 2.1.112; before, it is not logged)."""
    content = mapped(mapped(node.entry.data.get("attachment")).get("content")) if node.head.sub == "file" else {}
    if content.get("type") == "image":
        file = mapped(content.get("file"))
        source = {"type": "base64", "data": file.get("base64"), "media_type": file.get("type")}
        yield Unit({"type": "image", "source": source}, node)


def sent(block: Mapping[str, Any], served: Mapping[str, Any] | None = None) -> Mapping[str, Any]:
    """A stored block as it is sent: without fields that only some models are given, unless the served one has them."""
    drop = [k for k in _NOT_SENT if k in block and (served is None or k not in served)]
    return {k: v for k, v in block.items() if k not in drop} if drop else block


def without_plan(block: Mapping[str, Any], served: Mapping[str, Any]) -> Mapping[str, Any]:
    """A call that shows the user a plan, as 2.1 sends it: the plan is put in for the log alone (measured in 2.1.112)."""
    stored, asked = block.get("input"), served.get("input")
    if block.get("name") != PLANNING or not isinstance(stored, Mapping) or not isinstance(asked, Mapping):
        return block
    if set(_PLAN) & set(asked):
        return block
    return {**block, "input": {k: v for k, v in stored.items() if k not in _PLAN}}


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
