"""The context along a chain of lines, in the order the model reads it (claude_code.md §4.2).

A trail grows with its chain and is shared by every call on it: a call's context is the trail up to a length. Answers
stand in it once, with all their lines; results of parallel calls in the order they came; what a compaction preserved
behind the line it is anchored to.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, overload

from ctxscope.agents.claude_code.lines import API_ERROR, HAS_RESULTS
from ctxscope.agents.claude_code.tree import BOUNDARY, Boundary, Group, Node, Tree
from ctxscope.model import Entry

LOCAL_COMMAND = "local_command"
"""Subtype of system lines that are sent as a user's text."""
RESENDS_ERRORS = ("0.", "1.", "2.0.")
"""Versions whose later processes send what the client wrote of a failed call as an answer's text (measured in 2.0.30)."""


class Item(NamedTuple):
    """A line of the context, or the lines of one answer."""

    role: str
    """``user``, ``assistant``, ``attachment`` or ``boundary``; the last two are no messages of their own."""
    nodes: Sequence[Node]
    group: Group | None = None


Held = Node | Sequence[Node]
"""An item as a trail holds it: a line that is no answer, or the lines of an answer."""


@dataclass(frozen=True, slots=True)
class Run:
    """Items ``start`` to ``end`` of a trail make one message of the request."""

    role: str
    start: int
    end: int


class Runs(Sequence[Run]):
    """The messages of a trail's first items."""

    __slots__ = ("_length", "_trail")

    def __init__(self, trail: Trail, length: int) -> None:
        self._trail, self._length = trail, length

    def __len__(self) -> int:
        return self._trail.begun[self._length - 1] if self._length else 0

    @overload
    def __getitem__(self, index: int) -> Run: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Run]: ...
    def __getitem__(self, index: int | slice) -> Run | Sequence[Run]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        at = range(len(self))[index]
        start, end = self._trail.starts[at], min(self._trail.ends[at], self._length)
        return Run(_message_role(self._trail.item(start).role), start, end)


class View(Sequence[Entry]):
    """The entries of a growing trail's first items, as they were when the view was taken."""

    __slots__ = ("_entries", "_length")

    def __init__(self, entries: list[Entry], length: int) -> None:
        self._entries, self._length = entries, length

    def __len__(self) -> int:
        return self._length

    @overload
    def __getitem__(self, index: int) -> Entry: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Entry]: ...
    def __getitem__(self, index: int | slice) -> Entry | Sequence[Entry]:
        if isinstance(index, slice):
            return self._entries[: self._length][index]
        if not -self._length <= index < self._length:
            raise IndexError(index)
        return self._entries[index % self._length]

    def __iter__(self) -> Iterator[Entry]:
        return iter(self._entries[: self._length])


def _numbers() -> array[int]:
    return array("I")


@dataclass(eq=False, slots=True, repr=False)
class Trail:
    """Items of one chain, with what is known after each of them: numbers, since a long log has a chain of all its lines."""

    held: list[Held] = field(default_factory=list)
    starts: array[int] = field(default_factory=_numbers)
    ends: array[int] = field(default_factory=_numbers)
    """Items that each message begins and ends with; the last one may go on."""
    begun: array[int] = field(default_factory=_numbers)
    """How many messages there are with each item."""
    entries: list[Entry] = field(default_factory=list)
    counts: array[int] = field(default_factory=lambda: array("I", [0]))
    """How many entries stand before each item, and after the last."""
    made: Any = None
    """The messages that are closed, as far as someone asked."""

    def __len__(self) -> int:
        return len(self.held)

    def append(self, item: Held) -> None:
        """Add the next item."""
        role = _role(item)
        self.held.append(item)
        end = len(self.held)
        if role != "boundary":
            if role != "assistant" and self.starts and isinstance(self.held[self.starts[-1]], Node):
                self.ends[-1] = end
            else:
                self.starts.append(end - 1)
                self.ends.append(end)
        self.begun.append(len(self.starts))
        if isinstance(item, Node):
            self.entries.append(item.entry)
        else:
            self.entries += [n.entry for n in item]
        self.counts.append(len(self.entries))

    def item(self, at: int) -> Item:
        """One of the items, from 0."""
        held = self.held[at]
        return Item(_role(held), (held,)) if isinstance(held, Node) else Item("assistant", held, held[0].group)

    def items(self, start: int, end: int) -> Iterator[Item]:
        """Items ``start`` to ``end``."""
        return map(self.item, range(start, end))

    def back(self, length: int) -> Iterator[Item]:
        """The first ``length`` items, the last of them first."""
        return map(self.item, range(length - 1, -1, -1))

    def fork(self, length: int) -> Trail:
        """Another chain that shares the first ``length`` items."""
        begun = self.begun[length - 1] if length else 0
        ends, count = self.ends[:begun], self.counts[length]
        if ends and ends[-1] > length:
            ends[-1] = length
        held, starts = self.held[:length], self.starts[:begun]
        return Trail(held, starts, ends, self.begun[:length], self.entries[:count], self.counts[: length + 1])

    def runs(self, length: int) -> Runs:
        """The messages of the first ``length`` items."""
        return Runs(self, length)

    def context(self, length: int) -> View:
        """The entries of the first ``length`` items."""
        return View(self.entries, self.counts[length])

    def tail(self) -> Iterator[Held]:
        """Items back to the last answer of a model, and that one, newest first."""
        for held in reversed(self.held):
            yield held
            if _answer_of(held) is not None:
                return

    def answer_before(self, length: int) -> Group | None:
        """The last answer of a model among the first ``length`` items."""
        groups = (_answer_of(self.held[at]) for at in range(length - 1, -1, -1))
        return next((group for group in groups if group is not None), None)


def _answer_of(item: Held) -> Group | None:
    """The answer an item is, where a model gave it."""
    group = None if isinstance(item, Node) else item[0].group
    return group if group is not None and group.real else None


def _role(item: Held) -> str:
    """See ``Item.role``."""
    if not isinstance(item, Node):
        return "assistant"
    kind = item.entry.kind
    return kind if kind in ("user", "attachment") else "boundary" if item.head.sub == BOUNDARY else "user"


def _message_role(role: str) -> str:
    """Of the message an item belongs to: attachments are a user's, whatever else stands there."""
    return "user" if role == "attachment" else role


def trail_of(tree: Tree, node: Node | None) -> tuple[Trail, int]:
    """The context that ends with a line; kept with the lines, since nothing before them changes any more."""
    waiting: list[Node] = []
    at = node
    while at is not None and at.trail is None:
        waiting.append(at)
        at = tree.ancestor(at)
        if at is not None and at.number >= waiting[-1].number:
            at = None
    trail, length = (at.trail, at.length) if at is not None else (Trail(), 0)
    last = waiting[0].number if waiting else 0
    for step in reversed(waiting):
        if length != len(trail):
            trail = trail.fork(length)
        _add(tree, trail, step, last)
        length = len(trail)
        step.trail, step.length = trail, length
    return trail, length


def peek(tree: Tree, node: Node) -> tuple[Trail, int]:
    """The same for a line whose context may still change, as its last answer may get more lines: nothing is kept."""
    steps = [node]
    answer: Group | None = None
    at = tree.ancestor(node)
    while at is not None and at.number < steps[-1].number:
        if at.entry.kind == "assistant":
            if answer is not None and at.group is not answer:
                break
            answer = at.group
        steps.append(at)
        at = tree.ancestor(at)
    else:
        at = None
    trail, length = trail_of(tree, at)
    own = trail.fork(length)
    for step in reversed(steps):
        _add(tree, own, step, tree.upto)
    return own, len(own)


def _add(tree: Tree, trail: Trail, node: Node, last: int) -> None:
    """Add a line of the chain; ``last`` is the number of the chain's last one."""
    head, kind = node.head, node.entry.kind
    if kind == "assistant" and node.group is not None:
        _add_answer(trail, node, node.group)
    elif kind == "user":
        _add_user(tree, trail, node, last)
    elif kind == "attachment" or (kind == "system" and head.sub in (LOCAL_COMMAND, BOUNDARY)):
        trail.append(node)
    boundary = tree.anchors.get((node.entry.source, head.uuid))
    if boundary is not None and boundary.node.number < node.number:
        _splice(tree, trail, boundary)


def _add_answer(trail: Trail, node: Node, group: Group) -> None:
    if node.head.flags & API_ERROR:
        if node.head.version.startswith(RESENDS_ERRORS):
            trail.append((node,))
        return
    if any(held[0].group is group for held in trail.tail() if not isinstance(held, Node)):
        return
    trail.append(node.lines or (node,))


def _add_user(tree: Tree, trail: Trail, node: Node, last: int) -> None:
    if not node.head.flags & HAS_RESULTS:
        trail.append(node)
        return
    tail = [*trail.tail()]
    group = _answer_of(tail[-1]) if tail else None
    known = [held for held in tail if isinstance(held, Node) and _role(held) == "user"]
    results = [tree.result(node.thread, use) for use in group.uses] if group is not None else []
    found = [n for n in dict.fromkeys(results) if n is not None and n.number <= last]
    found.sort(key=lambda n: n.number)
    for each in found if node in found else [node]:
        if each not in known:
            trail.append(each)


def _splice(tree: Tree, trail: Trail, boundary: Boundary) -> None:
    """Add the lines a compaction preserved; of an answer only those of its lines."""
    source = boundary.node.entry.source
    nodes = [n for n in (tree.node(source, u) for u in boundary.kept) if n is not None]
    kept: dict[Group, list[Node]] = {}
    for node in nodes:
        if node.group is not None:
            kept.setdefault(node.group, []).append(node)
    for node in nodes:
        if node.number >= boundary.node.number:
            continue
        if node.group is not None and node.entry.kind == "assistant":
            if not node.head.flags & API_ERROR and kept[node.group][0] is node:
                trail.append(tuple(kept[node.group]))
        elif node.entry.kind in ("user", "attachment"):
            trail.append(node)
