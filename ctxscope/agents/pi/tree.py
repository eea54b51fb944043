"""The session tree: for each entry the context, level and model that hold after it (pi.md §3, §4.1).

Entries are folded in file order, each once. A log whose earlier entries changed (pi rewrites files of old versions) is
folded anew.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ctxscope.agents import Log, shared_memo
from ctxscope.agents.pi.lines import SESSION
from ctxscope.agents.pi.trail import Item, Trail, items, opening
from ctxscope.model import Entry, Place

PASSIVE = {"label", "session_info", "custom", "usage", "model_change", "thinking_level_change"}
"""Entries that give the model nothing and ask it for nothing."""


@dataclass(frozen=True, slots=True, eq=False)
class Node:
    """What holds after one entry, on its path from the root."""

    entry: Entry
    number: int
    """Position in the file."""
    parent: Node | None
    trail: Trail
    length: int
    """How much of ``trail`` is the context after this entry."""
    level: str = "off"
    model: tuple[str, str] | None = None
    """Provider and model of the last model_change."""
    model_place: Place | None = None
    turn: int = 0
    """User messages so far."""
    answer: Node | None = None
    """The newest answer on the path, this entry included."""
    call: Node | None = None
    """The newest of them that a request can have asked for."""
    edits: Mapping[str, Any] = field(default_factory=dict)
    """What context_edits put in place of earlier entries, by id: ``None`` drops."""
    compaction: Entry | None = None


@dataclass(eq=False, slots=True)
class Tree:
    """Nodes by entry id, in file order."""

    header: Mapping[str, Any] = field(default_factory=dict)
    nodes: dict[str, Node] = field(default_factory=dict)
    order: list[Node] = field(default_factory=list)
    folded: list[Entry] = field(default_factory=list)
    lost_parents: list[Entry] = field(default_factory=list)
    """Entries whose parent the file does not hold; pi starts a path there, and so do we."""

    def fold(self, entry: Entry) -> None:
        """Add the next entry of the log."""
        self.folded.append(entry)
        if entry.source != SESSION or entry.kind == "gone":
            return
        if entry.kind == "session":
            self.header = self.header or entry.data
            return
        if entry.kind == "unknown" and not entry.data:
            return
        node = _after(entry, self._parent(entry), len(self.order))
        self.nodes[entry.key] = node
        self.order.append(node)

    def _parent(self, entry: Entry) -> Node | None:
        if "id" not in entry.data:
            # Version 1 files are a list: each entry follows the one before it.
            return self.order[-1] if self.order else None
        name = entry.data.get("parentId")
        parent = self.nodes.get(name) if isinstance(name, str) else None
        if parent is None and name is not None:
            self.lost_parents.append(entry)
        return parent


def tree(log: Log) -> Tree:
    """The tree of a log, folded as far as the log goes."""
    memo = shared_memo(log, "pi.tree")
    found: Tree | None = memo.get("tree")
    if found is None or log.entries[: len(found.folded)] != found.folded:
        memo["tree"] = found = Tree()
    for entry in log.entries[len(found.folded) :]:
        found.fold(entry)
    return found


def _after(entry: Entry, parent: Node | None, number: int) -> Node:
    """The node of ``entry``: its parent's state changed by what the entry means."""
    root = parent or Node(entry, number, None, Trail(), 0)
    values: dict[str, Any] = {k: getattr(root, k) for k in _INHERITED} if parent else {}
    values |= _facts(entry, root)
    node = Node(entry, number, parent, root.trail, root.length, **values)
    if entry.kind == "compaction":
        trail = _compacted(node, entry)
    elif entry.kind == "context_edit":
        trail = _compacted(node, node.compaction) if node.compaction else _whole(node)
    else:
        trail = _extended(root, items(entry))
    values |= {"answer": node, "call": node if asked(node) else root.call} if entry.kind == "assistant" else {}
    return Node(entry, number, parent, trail, len(trail.items), **values) if trail is not root.trail or len(
        trail.items
    ) != root.length else Node(entry, number, parent, trail, root.length, **values)
