"""The session tree: for each entry the context, level and model that hold after it (pi.md §3, §4.1).

Entries are folded in file order, each once. A log whose earlier entries changed (pi rewrites files of old versions) is
folded anew. Entries that left the file stay, for calls were made of them, but nothing goes on from there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ctxscope.agents import Log, shared_memo
from ctxscope.agents.pi.lines import SESSION, message_stamp
from ctxscope.agents.pi.trail import Item, Trail, items, opening
from ctxscope.model import Entry, Place

INSTANT_MS = 5.0
"""Longest time an abort takes that came before the request was sent (measured: 0 to 2 ms)."""

_NEW_FIELDS = {"rawStopReason", "durationMs", "thinkingLevel"}


@dataclass(slots=True, eq=False, repr=False)
class Node:
    """What holds after one entry, on its path from the root; not changed once folded."""

    entry: Entry
    number: int
    """Position in the file."""
    parent: Node | None
    there: bool = True
    """The file still holds it."""
    own: list[Item] = field(default_factory=list)
    """What the entry itself gives the model, unedited."""
    trail: Trail = field(default_factory=Trail)
    length: int = 0
    """How much of ``trail`` is the context after this entry."""
    level: str = "off"
    level_place: Place | None = None
    """Where the level was set; ``None`` while it is the default."""
    model: tuple[str, str] | None = None
    """Provider and model of the last model_change."""
    model_place: Place | None = None
    turn: int = 0
    """User messages so far."""
    call: Node | None = None
    """The newest answer on the path, this entry included, that a request asked for."""
    edits: Mapping[str, Any] = field(default_factory=dict)
    """What context_edits put in place of earlier entries, by id: ``None`` drops."""
    compaction: Entry | None = None
    version: str | None = None
    """Of pi, as far as the file up to here tells (``Tree.version``)."""


@dataclass(eq=False, slots=True, repr=False)
class Tree:
    """Nodes by entry key, and in file order."""

    header: Mapping[str, Any] = field(default_factory=dict)
    header_place: Place | None = None
    nodes: dict[str, Node] = field(default_factory=dict)
    order: list[Node] = field(default_factory=list)
    last: Node | None = None
    """The newest node the file still holds."""
    lost_parents: list[Entry] = field(default_factory=list)
    """Entries whose parent the file does not hold; pi starts a path there, and so do we."""
    version: str | None = None
    """``1.x`` once something stands in the file that only 1.x writes, ``0.73`` once an answer stands there without."""
    read: int = 0
    """Versions of entries taken in."""
    _known: set[str] = field(default_factory=set)
    """Keys, lines and lost parents: an entry that is one of these changes what was folded before it."""

    def fold(self, entry: Entry, *, there: bool = True) -> None:
        """Add the next entry of the session file."""
        self._known |= {entry.key, entry.place.at}
        if not entry.data:
            return
        if entry.kind == "session":
            if not self.header:
                self.header, self.header_place = entry.data, entry.place
            return
        node = _follow(entry, self._parent(entry), len(self.order), there=there)
        self.nodes[entry.key] = node
        self.order.append(node)
        self.last = node if there else self.last
        if self.version != "1.x":
            self.version = "1.x" if newer(entry) else "0.73" if entry.kind == "assistant" else self.version
        node.version = self.version

    def unsettles(self, entry: Entry) -> bool:
        """Whether an observation changes what was folded: another version of a line or an entry, a parent that came late."""
        return entry.kind == "gone" or not self._known.isdisjoint((entry.key, entry.place.at))

    def _parent(self, entry: Entry) -> Node | None:
        if "id" not in entry.data:
            # Version 1 files are a list: each entry follows the one before it.
            return self.last
        name = entry.data.get("parentId")
        parent = self.nodes.get(name) if isinstance(name, str) else None
        if parent is None and name is not None:
            self.lost_parents.append(entry)
            self._known.add(str(name))
        return parent


def tree(log: Log) -> Tree:
    """The tree of a log, folded as far as the log goes."""
    memo = shared_memo(log, "pi.tree")
    found: Tree | None = memo.get("tree")
    new = log.versions[found.read if found else 0 :]
    if found is None:
        memo["tree"] = found = _folded(log)
    elif new:
        for entry in new:
            if entry.source != SESSION:
                continue
            if found.unsettles(entry):
                memo["tree"] = found = _folded(log)
                break
            found.fold(entry)
    found.read = len(log.versions)
    return found


def _folded(log: Log) -> Tree:
    """All that the file holds, and what left it and has an identity of its own, in the order of their lines."""
    held: dict[str, Entry] = {}
    for entry in log.versions:
        if entry.source == SESSION:
            held[entry.place.at] = entry
    there = {e.key for e in held.values()}
    entries = [e for e in log.entries if e.source == SESSION and e.kind != "gone" and (e.key in there or _has_id(e))]
    entries.sort(key=lambda e: (int(e.place.at.rpartition(" ")[2]), e.key in there))
    found = Tree()
    for entry in _parents_first(entries):
        found.fold(entry, there=entry.key in there)
    return found


def _has_id(entry: Entry) -> bool:
    return entry.data.get("id") == entry.key


def _parents_first(entries: Iterable[Entry]) -> Iterator[Entry]:
    """The same, but none before its parent, wherever in the file that stands."""
    waiting = {e.key: e for e in entries}
    for entry in [*waiting.values()]:
        line = []
        step: Entry | None = entry
        while step is not None and waiting.pop(step.key, None) is not None:
            line.append(step)
            step = waiting.get(str(step.data.get("parentId")))
        yield from reversed(line)


def path(node: Node | None) -> Iterator[Node]:
    """The nodes from ``node`` up to its root."""
    while node is not None:
        yield node
        node = node.parent


def descends(node: Node, ancestor: Node) -> bool:
    """Whether ``ancestor`` is on the path of ``node``; entries stand after their parents, which bounds the walk."""
    at: Node | None = node
    while at is not None and at.number > ancestor.number:
        at = at.parent
    return at is ancestor


def newer(entry: Entry) -> bool:
    """Whether only 1.x writes such an entry (pi.md §3)."""
    message = entry.data.get("message")
    if entry.kind in {"system", "usage", "context_edit"} or "systemMessage" in entry.data:
        return True
    return entry.kind == "assistant" and isinstance(message, Mapping) and bool(_NEW_FIELDS & message.keys())


def asked(entry: Entry) -> bool:
    """Whether a request can have asked for this answer.

    An abort that came between two requests is logged as an empty answer that took no time (measured on 0.73 and 1.6).
    """
    message = entry.data.get("message")
    if not isinstance(message, Mapping) or message.get("stopReason") != "aborted":
        return True
    if message.get("content") or message.get("responseId"):
        return True
    stamp = message_stamp(entry.data)
    return stamp is None or entry.time is None or entry.time * 1000 - stamp > INSTANT_MS


_INHERITED = ("level", "level_place", "model", "model_place", "turn", "call", "edits", "compaction", "trail", "length")


def _follow(entry: Entry, parent: Node | None, number: int, *, there: bool) -> Node:
    """The node of ``entry``: its parent's state, changed by what the entry means."""
    node = Node(entry, number, parent, there)
    if parent is not None:
        for name in _INHERITED:
            setattr(node, name, getattr(parent, name))
    data = entry.data
    if entry.kind == "thinking_level_change":
        node.level, node.level_place = str(data.get("thinkingLevel") or "off"), entry.place
    elif entry.kind == "model_change":
        node.model, node.model_place = (str(data.get("provider")), str(data.get("modelId"))), entry.place
    elif entry.kind == "compaction":
        node.compaction = entry
        _set(node, _replayed(node))
    elif entry.kind == "context_edit":
        node.edits = {**node.edits, str(data.get("targetId")): data.get("replacement")}
        _set(node, _replayed(node))
    else:
        node.own = items(entry)
        _extend(node)
    if entry.kind == "user":
        node.turn += 1
    elif entry.kind == "assistant" and asked(entry):
        node.call = node
    return node


def _set(node: Node, trail: Trail) -> None:
    node.trail, node.length = trail, len(trail.items)


def _extend(node: Node) -> None:
    """Put items after the path's context; where another path already went on from there, on a copy."""
    if not node.own:
        return
    if node.length != len(node.trail.items):
        node.trail = node.trail.fork(node.length)
    for item in node.own:
        node.trail.append(item)
    node.length = len(node.trail.items)


def _replayed(node: Node) -> Trail:
    """The context up to ``node`` from its whole path: the newest compaction and all edits applied."""
    nodes = [*path(node)][::-1]
    trail = Trail()
    start = 0
    if node.compaction is not None:
        start = next(i for i, n in enumerate(nodes) if n.entry is node.compaction) + 1
        for item in opening(node.compaction):
            trail.append(item, current=False)
        for kept in kept_by(nodes[: start - 1], node.compaction):
            _replay(trail, kept, node.edits, system=False)
    for later in nodes[start:]:
        _replay(trail, later, node.edits, system=True)
    return trail


def kept_by(before: list[Node], compaction: Entry) -> list[Node]:
    """History a compaction left as it was: from the entry it names on; none where that is itself."""
    first = compaction.data.get("firstKeptEntryId")
    index = compaction.data.get("firstKeptEntryIndex")
    if first is None and isinstance(index, int):
        return before[max(0, index - 1) :]
    return before[next((i for i, n in enumerate(before) if n.entry.key == first), len(before)) :]


def _replay(trail: Trail, node: Node, edits: Mapping[str, Any], *, system: bool) -> None:
    edited = node.entry.key in edits
    edit = edits.get(node.entry.key)
    if edited and not isinstance(edit, Mapping):
        return
    for item in items(node.entry, edit) if edited else node.own:
        if system or item.role != "system":
            trail.append(item, current=False)
