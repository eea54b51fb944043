"""Events of a pi log that rewrite, leave or restore history (pi.md §3, §5)."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ctxscope.agents import Log
from ctxscope.agents.pi.head import added, removed
from ctxscope.agents.pi.points import requests
from ctxscope.agents.pi.texts import string
from ctxscope.agents.pi.tree import Node, descends, tree
from ctxscope.model import Marker, Place, Point

SPLIT_TURN = "\n\n---\n\n**Turn Context (split turn):**\n\n"
"""Stands in the summary of a compaction that cut inside a turn."""


@dataclass(eq=False)
class After:
    """Finds the first point whose context grew out of a node."""

    points: Sequence[Point]
    nodes: Mapping[str, Node]

    def key(self, node: Node) -> str | None:
        """Key of that point; ``None`` when no call came after."""
        first = bisect_right(self.points, (float(node.number), 1), key=lambda p: p.order)
        for point in self.points[first:]:
            at = self.nodes.get(point.key.removeprefix("after:"))
            if at is not None and descends(at, node):
                return point.key
        return None


def markers(log: Log) -> Sequence[Marker]:
    """Markers in file order."""
    grown = tree(log)
    after = After(requests(log), grown.nodes)
    found: list[Marker] = []
    if grown.header.get("parentSession"):
        found.append(_fork(grown.header, grown.header_place, after.points))
    tip: Node | None = None
    lost = set(map(id, grown.lost_parents))
    for node in grown.order:
        marker = _marker(node, after)
        if marker is not None:
            found.append(marker)
        if node.there:
            if tip is not None and node.parent is not tip and id(node.entry) not in lost and _went_back(node):
                found.append(_moved(node, after))
            tip = node
    return found


def _went_back(node: Node) -> bool:
    """Whether someone went back to an entry's parent; a summary of the branch left says so itself."""
    if node.entry.kind == "branch_summary":
        return False
    return node.parent is None or (node.parent.there and node.parent.entry.kind != "branch_summary")


def _marker(node: Node, after: After) -> Marker | None:
    entry, data = node.entry, node.entry.data
    if entry.kind == "compaction":
        return compaction(node, after)
    if entry.kind == "context_edit":
        what = "replaced the content of" if isinstance(data.get("replacement"), Mapping) else "left out"
        place = _place_of(node, after.nodes.get(string(data.get("targetId"))))
        where = f"context_edit {what} {place or 'an entry that is not on this path'}"
        dropped = (place,) if place and what == "left out" else ()
        return Marker("strip", after.key(node), logged=True, where=where, place=entry.place, dropped=dropped)
    if entry.kind == "branch_summary":
        where = "came back from another branch with a summary of it"
        return Marker("rewind", after.key(node), logged=True, where=where, place=entry.place)
    before = node.parent.model if node.parent else None
    if entry.kind == "model_change" and before and node.model and before != node.model:
        where = f"{'/'.join(before)} to {'/'.join(node.model)}"
        return Marker("model_switch", after.key(node), logged=True, where=where, place=entry.place)
    if entry.kind == "system" and node.parent is not None:
        return _tools_changed(node, after)
    return None


def _tools_changed(node: Node, after: After) -> Marker | None:
    message = node.entry.data.get("message") or {}
    head = node.parent.trail.heads[node.parent.length] if node.parent else None
    if (
        head is None
        or not (head.tools or head.parts())
        or not (message.get("toolsAdded") or message.get("toolsRemoved"))
    ):
        return None
    new = ", ".join(string(t.get("name")) for t in added(message))
    old = ", ".join(removed(message))
    where = "; ".join(w for w in (f"added {new}" if new else "", f"removed {old}" if old else "") if w)
    return Marker("tools_changed", after.key(node), logged=True, where=where, place=node.entry.place)


def compaction(node: Node, after: After) -> Marker:
    """The marker of a compaction's entry."""
    data = node.entry.data
    kept = {id(i.entry) for i in node.trail.items[: node.length]}
    before = node.parent.trail.items[: node.parent.length] if node.parent else []
    dropped = tuple(dict.fromkeys(i.entry.place for i in before if id(i.entry) not in kept and i.role != "system"))
    split = ", cutting inside a turn" if SPLIT_TURN in string(data.get("summary")) else ""
    tokens = data.get("tokensBefore")
    return Marker(
        "compaction",
        after.key(node),
        logged=True,
        where=f"replaced {len(dropped)} messages by a summary{split}",
        place=node.entry.place,
        before_tokens=tokens if isinstance(tokens, int) else None,
        dropped=dropped,
    )


def _moved(node: Node, after: After) -> Marker:
    parent = node.parent.entry.place if node.parent else "the start"
    where = f"went back to {parent} in the session tree"
    return Marker("rewind", after.key(node) or _own(node, after), logged=True, where=where, place=node.entry.place)


def _own(node: Node, after: After) -> str | None:
    keys = {p.key for p in after.points}
    return next((k for k in (node.entry.key, f"after:{node.entry.key}") if k in keys), None)


def _fork(header: Mapping[str, Any], place: Place | None, points: Sequence[Point]) -> Marker:
    first = next((p.key for p in points if not p.data.get("copied")), None)
    where = f"forked from session {string(header.get('parentSession')).rpartition('_')[2].removesuffix('.jsonl')}"
    return Marker("resume", first, logged=True, where=where, place=place)


def _place_of(node: Node, target: Node | None) -> Place | None:
    return target.entry.place if target is not None and descends(node, target) else None
