"""The context along a chain of lines, in the order the model reads it (claude_code.md §4.2).

A trail grows with its chain and is shared by every call on it: a call's context is the trail up to a length. Answers
stand in it once, with all their lines; results of parallel calls in the order they came; what a compaction preserved
behind the line it is anchored to.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, overload

from ctxscope.agents.claude_code.lines import API_ERROR, HAS_RESULTS
from ctxscope.agents.claude_code.tree import BOUNDARY, Boundary, Group, Node, Tree
from ctxscope.model import Entry

LOCAL_COMMAND = "local_command"
"""Subtype of system lines that are sent as a user's text."""
RESENDS_ERRORS = ("0.", "1.", "2.0.")
"""Versions whose later processes send what the client wrote of a failed call as an answer's text (measured in 2.0.30)."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Item:
    """A line of the context, or the lines of one answer."""

    role: str
    """``user``, ``assistant``, ``attachment`` or ``boundary``; the last two are no messages of their own."""
    nodes: Sequence[Node]
    group: Group | None = None


@dataclass(frozen=True, slots=True)
class Run:
    """Items ``start`` to ``end`` of a trail make one message of the request."""

    role: str
    start: int
    end: int


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


@dataclass(eq=False, slots=True, repr=False)
class Trail:
    """Items of one chain, with what is known after each of them."""

    items: list[Item] = field(default_factory=list)
    runs: list[Run] = field(default_factory=list)
    """Messages so far; the last one may go on."""
    begun: list[int] = field(default_factory=list)
    """How many runs there are with each item."""
    entries: list[Entry] = field(default_factory=list)
    counts: list[int] = field(default_factory=lambda: [0])
    """How many entries stand before each item, and after the last."""
    calls: list[Group | None] = field(default_factory=lambda: [None])
    """The last answer of a model before each item, and at the end."""
    made: list[Any] = field(default_factory=list)
    """Messages of the runs that are closed, as far as someone asked, without those that hold nothing."""
    made_with: list[int] = field(default_factory=lambda: [0])
    """How many of them there are with each run's."""
    replaced: list[int] = field(default_factory=list)
    """Which of them the one behind replaces."""

    def append(self, item: Item) -> None:
        """Add the next item."""
        self.items.append(item)
        role = "user" if item.role == "attachment" else item.role
        end = len(self.items)
        if role != "boundary":
            if role == "user" and self.runs and self.runs[-1].role == "user":
                self.runs[-1] = Run("user", self.runs[-1].start, end)
            else:
                self.runs.append(Run(role, end - 1, end))
        self.begun.append(len(self.runs))
        self.entries += [n.entry for n in item.nodes]
        self.counts.append(len(self.entries))
        real = item.group if item.group is not None and item.group.real else None
        self.calls.append(real or self.calls[-1])

    def fork(self, length: int) -> Trail:
        """Another chain that shares the first ``length`` items."""
        runs = self.runs_until(length)
        return Trail(
            self.items[:length],
            runs,
            self.begun[:length],
            self.entries[: self.counts[length]],
            self.counts[: length + 1],
            self.calls[: length + 1],
        )

    def runs_until(self, length: int) -> list[Run]:
        """The messages of the first ``length`` items."""
        runs = self.runs[: self.begun[length - 1]] if length else []
        if runs and runs[-1].end > length:
            runs[-1] = Run(runs[-1].role, runs[-1].start, length)
        return runs

    def context(self, length: int) -> View:
        """The entries of the first ``length`` items."""
        return View(self.entries, self.counts[length])

    def tail(self) -> Iterator[Item]:
        """Items back to the last answer, and that one, newest first."""
        for item in reversed(self.items):
            yield item
            if item.group is not None and item.group.real:
                return


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
        if length != len(trail.items):
            trail = trail.fork(length)
        _add(tree, trail, step, last)
        length = len(trail.items)
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
        _add(tree, own, step, len(tree.order))
    return own, len(own.items)


def _add(tree: Tree, trail: Trail, node: Node, last: int) -> None:
    """Add a line of the chain; ``last`` is the number of the chain's last one."""
    head, kind = node.head, node.entry.kind
    if kind == "assistant" and node.group is not None:
        _add_answer(trail, node, node.group)
    elif kind == "user":
        _add_user(tree, trail, node, last)
    elif kind == "attachment":
        trail.append(Item("attachment", (node,)))
    elif kind == "system" and head.sub == LOCAL_COMMAND:
        trail.append(Item("user", (node,)))
    elif kind == "system" and head.sub == BOUNDARY:
        trail.append(Item("boundary", (node,)))
    boundary = tree.anchors.get((node.entry.source, head.uuid))
    if boundary is not None and boundary.node.number < node.number:
        _splice(tree, trail, boundary)


def _add_answer(trail: Trail, node: Node, group: Group) -> None:
    if node.head.flags & API_ERROR:
        if node.head.version.startswith(RESENDS_ERRORS):
            trail.append(Item("assistant", (node,), group))
        return
    if any(item.group is group for item in trail.tail()):
        return
    trail.append(Item("assistant", node.lines, group))


def _add_user(tree: Tree, trail: Trail, node: Node, last: int) -> None:
    if not node.head.flags & HAS_RESULTS:
        trail.append(Item("user", (node,)))
        return
    group = next((item.group for item in trail.tail() if item.group is not None and item.group.real), None)
    known = [item.nodes[0] for item in trail.tail() if item.role == "user"]
    results = [tree.results.get((node.thread, use)) for use in group.uses] if group is not None else []
    found = [n for n in dict.fromkeys(results) if n is not None and n.number <= last]
    found.sort(key=lambda n: n.number)
    for each in found if node in found else [node]:
        if each not in known:
            trail.append(Item("user", (each,)))


def _splice(tree: Tree, trail: Trail, boundary: Boundary) -> None:
    """Add the lines a compaction preserved; of an answer only those of its lines."""
    source = boundary.node.entry.source
    nodes = [n for n in (tree.nodes.get((source, u)) for u in boundary.kept) if n is not None]
    kept: dict[Group, list[Node]] = {}
    for node in nodes:
        if node.group is not None:
            kept.setdefault(node.group, []).append(node)
    for node in nodes:
        if node.number >= boundary.node.number:
            continue
        if node.group is not None and node.entry.kind == "assistant":
            if not node.head.flags & API_ERROR and kept[node.group][0] is node:
                trail.append(Item("assistant", tuple(kept[node.group]), node.group))
        elif node.entry.kind == "user":
            trail.append(Item("user", (node,)))
        elif node.entry.kind == "attachment":
            trail.append(Item("attachment", (node,)))
