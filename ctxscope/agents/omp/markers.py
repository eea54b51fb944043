"""Events of an omp log that rewrite, leave or restore history (omp.md §5)."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from ctxscope.agents import Log
from ctxscope.agents.omp import wording
from ctxscope.agents.omp.lines import pruned_at, stamp
from ctxscope.agents.omp.points import requests
from ctxscope.agents.omp.tree import Node, Rewrite, Tree, descends, tree
from ctxscope.agents.pi.disk import session_id
from ctxscope.agents.pi.texts import blocks, string
from ctxscope.model import Entry, Marker, Place, Point

_HOW = {
    "snapcompact": "an archive of it",
    "handoff": "a handoff document",
    "remote": "what the provider compacted it to",
    "shake": "what shaking it left",
}


_INIT = 8
"""Entries among which a subagent's log says what it was started for."""


@dataclass(eq=False)
class After:
    """Finds the first point behind a node, or behind a moment."""

    points: Sequence[Point]
    nodes: Mapping[str, Node]

    def key(self, node: Node) -> str | None:
        """Key of the first point whose context grew out of a node; ``None`` when no call came after."""
        first = bisect_right(self.points, (float(node.number), 1), key=lambda p: p.order)
        for point in self.points[first:]:
            at = self.nodes.get(point.key.removeprefix("after:"))
            if point.kind != "side" and at is not None and descends(at, node):
                return point.key
        return None

    def moment(self, milliseconds: float) -> str | None:
        """Key of the first point whose request was made since a moment."""
        return next((p.key for p in self.points if p.answer is None or stamp(p.answer) >= milliseconds), None)

    def observed(self, number: int) -> str | None:
        """Key of the first point whose answer was observed later than so many entries."""
        return next((p.key for p in self.points if p.order >= (float(number), 0)), None)


def markers(log: Log) -> Sequence[Marker]:
    """Markers in the order logged; rewrites stand where they happened."""
    grown = tree(log)
    after = After(requests(log), grown.nodes)
    found: list[tuple[float, Marker]] = []
    if grown.header.get("parentSession") and not any(n.entry.kind == "session_init" for n in grown.order[:_INIT]):
        found.append((-1.0, _fork(grown, after.points)))
    tip: Node | None = None
    lost = set(map(id, grown.lost_parents))
    for node in grown.order:
        found += [(float(node.number), m) for m in _of_node(node, grown, after)]
        if node.entry.kind == "model_usage":
            continue
        if (
            node.twin is None
            and tip is not None
            and node.parent is not tip
            and id(node.first) not in lost
            and _went_back(node, tip)
        ):
            found.append((node.number - 0.5, _moved(node, after)))
        tip = node
    found += _rewrites(grown, after)
    return [m for _, m in sorted(found, key=lambda f: f[0])]


def _of_node(node: Node, grown: Tree, after: After) -> Iterator[Marker]:
    entry, data = node.entry, node.entry.data
    before = node.parent.model if node.parent else None
    if entry.kind == "compaction":
        yield compaction(node, after)
    elif entry.kind == "reset_boundary":
        yield Marker("rewind", after.key(node), logged=True, where="/clear: history restarts", place=entry.place)
    elif entry.kind == "branch_summary":
        where = "came back from another branch with a summary of it"
        yield Marker("rewind", after.key(node), logged=True, where=where, place=entry.place)
    elif entry.kind == "model_change" and before and node.model and before != node.model:
        where = f"{'/'.join(before)} to {'/'.join(node.model)}"
        yield Marker("model_switch", after.key(node), logged=True, where=where, place=entry.place)
    elif entry.kind == "user":
        message = data.get("message")
        if isinstance(message, Mapping) and message.get("steering") is True:
            where = "a message that came while the model worked, sent in an envelope"
            yield Marker("steer", after.key(node), logged=True, where=where, place=entry.place)
    elif entry.kind == "custom_message" and string(data.get("customType")) == "async-result":
        where = "the result of a background job"
        yield Marker("steer", after.key(node), logged=True, where=where, place=entry.place)
    if node.run > 0 and node.parent is not None and node.parent.run < node.run and _ended(grown, node):
        where = "a new process went on with the session"
        yield Marker(
            "resume", after.key(node) or after.observed(node.number), logged=True, where=where, place=entry.place
        )


def _ended(grown: Tree, node: Node) -> bool:
    """Whether a node is the first one after a process ended."""
    before = grown.order[node.number - 1] if node.number else None
    return (before is not None and before.run < node.run) or bool(
        before and before.entry.data.get("customType") == "session_exit"
    )


def _went_back(node: Node, tip: Node) -> bool:
    """Whether someone went back to an entry's parent; a summary of the branch left says so itself."""
    if node.entry.kind == "branch_summary" or (node.parent and node.parent.entry.kind == "branch_summary"):
        return False
    # A call in flight is logged behind what its tools already noted.
    return not (tip.entry.kind == "custom" and node.parent is tip.parent)


def compaction(node: Node, after: After) -> Marker:
    """The marker of a compaction's entry."""
    data = node.entry.data
    kept = {id(i.entry) for i in node.trail.items[: node.length]}
    before = node.parent.trail.items[: node.parent.length] if node.parent else []
    dropped = tuple(dict.fromkeys(i.entry.place for i in before if id(i.entry) not in kept))
    method = string(data.get("method")) or "soft"
    how = _HOW.get(method, "a summary")
    tokens = {k: v if isinstance(v := data.get(k), int) else None for k in ("tokensBefore", "tokensAfter")}
    return Marker(
        "compaction",
        after.key(node),
        logged=True,
        where=f"{method}: replaced {len(dropped)} messages by {how}",
        place=node.entry.place,
        before_tokens=tokens["tokensBefore"],
        after_tokens=tokens["tokensAfter"],
        dropped=dropped,
    )


def _moved(node: Node, after: After) -> Marker:
    parent = node.parent.entry.place if node.parent else "the start"
    keys = {p.key for p in after.points}
    own = next((k for k in (node.entry.key, f"after:{node.entry.key}") if k in keys), None)
    where = f"went back to {parent} in the session tree"
    return Marker("rewind", after.key(node) or own, logged=True, where=where, place=node.entry.place)


def _fork(grown: Tree, points: Sequence[Point]) -> Marker:
    first = next((p.key for p in points if not p.data.get("copied")), None)
    where = f"forked from session {session_id(str(grown.header.get('parentSession')))}"
    return Marker("resume", first, logged=True, where=where, place=grown.header_place)


def _rewrites(grown: Tree, after: After) -> Iterator[tuple[float, Marker]]:
    """A marker for each kind of rewrite at each moment; also of one that had happened before the log was first read."""
    told = [(r, _kind(r)) for r in grown.rewrites]
    seen = {id(r.node) for r, kind in told if kind in {"prune", "shake"}}
    timed: list[tuple[float, str, Place]] = [
        (r.at, kind, r.node.entry.place) for r, kind in told if r.at is not None and kind is not None
    ]
    for node in grown.order:
        at = pruned_at(node.first)
        if at is not None and id(node) not in seen:
            timed.append((at, _of_text(node.first), node.first.place))
    for (at, kind), group in groupby(sorted(timed, key=lambda t: (t[0], t[1])), lambda t: t[:2]):
        places = tuple(dict.fromkeys(p for _, _, p in group))
        point = after.moment(at)
        yield _position(grown, point), _rewritten(kind, point, places)
    untimed = [(r.number, kind, r.node.entry.place) for r, kind in told if r.at is None and kind is not None]
    for (number, kind), some in groupby(sorted(untimed, key=lambda t: (t[0], t[1])), lambda t: t[:2]):
        places = tuple(dict.fromkeys(p for _, _, p in some))
        yield number - 0.4, _rewritten(kind, after.observed(number), places)


def _position(grown: Tree, point: str | None) -> float:
    node = grown.nodes.get((point or "").removeprefix("after:"))
    return node.number - 0.4 if node else float(len(grown.order))


_SAYS = {
    "prune": "superseded, useless or old tool results replaced in place",
    "shake": "regions shaken out of messages in place",
    "strip": "images or thinking taken out of messages in place",
}


def _rewritten(kind: str, point: str | None, places: tuple[Place, ...]) -> Marker:
    where = f"{_SAYS[kind]}: {len(places)} {'message' if len(places) == 1 else 'messages'}"
    return Marker(kind, point, logged=True, where=where, place=places[0] if places else None, dropped=places)


def _kind(rewrite: Rewrite) -> str | None:
    """What a rewrite was: ``None`` for one that took nothing away (a retry's note, an id of an error)."""
    before, after = rewrite.before.data.get("message"), rewrite.after.data.get("message")
    if rewrite.after.kind == "custom_message":
        before, after = rewrite.before.data, rewrite.after.data
    if (
        not isinstance(before, Mapping)
        or not isinstance(after, Mapping)
        or before.get("content") == after.get("content")
    ):
        return None
    if b"[shaken ~" in rewrite.after.raw and b"[shaken ~" not in rewrite.before.raw:
        return "shake"
    if rewrite.at is not None:
        return _of_text(rewrite.after)
    kinds = [[b.get("type") for b in blocks(m.get("content"))] for m in (before, after)]
    lost = {k for k in ("image", "thinking", "redactedThinking") if kinds[0].count(k) > kinds[1].count(k)}
    return "strip" if lost else "prune"


def _of_text(entry: Entry) -> str:
    """What was done to a tool result, as its text says."""
    message = entry.data.get("message")
    text = (
        "".join(string(b.get("text")) for b in blocks(message.get("content"))) if isinstance(message, Mapping) else ""
    )
    return "shake" if wording.SHAKEN.search(text) or wording.BARE_SHAKEN.search(text) else "prune"
