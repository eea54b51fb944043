"""Events of a transcript that rewrite, leave or restore history (claude_code.md §5)."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ctxscope.agents import Log, shared_memo
from ctxscope.agents.claude_code.attached import told
from ctxscope.agents.claude_code.incidents import compacted_ids, tokens_of
from ctxscope.agents.claude_code.lines import IS_META, SUMMARY, written
from ctxscope.agents.claude_code.points import requests
from ctxscope.agents.claude_code.texts import mapped
from ctxscope.agents.claude_code.trail import trail_of
from ctxscope.agents.claude_code.tree import BOUNDARY, MAIN, MICRO, Boundary, Node, Tree, tree
from ctxscope.model import Marker, Place, Point

_MOST_NAMES, _FIRST = 6, 20


class After:
    """Finds the first point of a thread behind a line."""

    def __init__(self, points: Sequence[Point]) -> None:
        self.threads: dict[str, tuple[list[int], list[Point]]] = {}
        for point in points:
            numbers, own = self.threads.setdefault(str(point.data.get("agent") or ""), ([], []))
            numbers.append(point.order[1])
            own.append(point)

    def point(self, node: Node) -> Point | None:
        """The first point of the line's thread whose answer, or waiting line, comes at or after it."""
        numbers, points = self.threads.get(node.thread, ([], []))
        at = bisect_left(numbers, node.number)
        return points[at] if at < len(points) else None

    def key(self, node: Node) -> str | None:
        """Its key."""
        point = self.point(node)
        return point.key if point else None

    def answers(self, node: Node) -> tuple[int, int]:
        """Numbers of the answers before and behind a line."""
        numbers, _ = self.threads.get(node.thread, ([], []))
        at = bisect_right(numbers, node.number)
        return (numbers[at - 1] if at else -1), (numbers[at] if at < len(numbers) else 1 << 60)


def markers(log: Log) -> Sequence[Marker]:
    """Markers in log order."""
    grown, points = tree(log), requests(log)
    after = After(points)
    found: list[tuple[int, Marker]] = []
    for node in grown.events:
        found += [(node.number, m) for m in _marker(log, grown, node, after)]
    seam = _seam(log, grown)
    if seam is not None:
        parent = f"session {log.ref.parent}" if log.ref.parent else "another session"
        where = f"continues {parent}: the lines before it were copied from there"
        found.append((seam.number, Marker("resume", after.key(seam), logged=True, where=where, place=seam.entry.place)))
    found += _between(points)
    found.sort(key=lambda f: f[0])
    return [marker for _, marker in found]


def _marker(log: Log, grown: Tree, node: Node, after: After) -> Iterator[Marker]:
    if node.head.sub == BOUNDARY:
        boundary, following = grown.boundary_at(node)
        yield _compaction(log, grown, boundary, after)
        restored = sorted(_restored(boundary, following), key=lambda n: n.number)
        if restored:
            yield _restore(restored, after)
    elif node.head.sub == MICRO:
        yield _micro(grown, node, after)
    elif node.head.flags & SUMMARY:
        where = "the session begins with the summary of another conversation"
        yield Marker("compaction", after.key(node), logged=True, where=where, place=node.entry.place)
    elif node.head.sub == "queued_command":
        where = "a message the user wrote while the model worked was put into the turn"
        yield Marker("steer", after.key(node), logged=True, where=where, place=node.entry.place)


def _compaction(log: Log, grown: Tree, boundary: Boundary, after: After) -> Marker:
    node, trigger = boundary.node, boundary.trigger
    dropped = _dropped(log, grown, boundary)
    words = f"{trigger} compaction" if trigger in ("auto", "manual") else "a compaction"
    where = f"{words} replaced {len(dropped)} entries by a summary"
    if boundary.kept:
        where += f", {len(boundary.kept)} were kept"
    hooks = hooks_around(grown, node, after.answers(node))
    if hooks:
        where += f"; hooks around it: {_counted(hooks)}"
    return Marker(
        "compaction",
        after.key(node),
        logged=True,
        where=where,
        place=node.entry.place,
        before_tokens=boundary.tokens[0],
        after_tokens=boundary.tokens[1],
        dropped=dropped,
    )


def _dropped(log: Log, grown: Tree, boundary: Boundary) -> tuple[Place, ...]:
    """Places of the entries that stood in the context before a compaction and not behind it."""
    memo: dict[Boundary, tuple[Place, ...]] = shared_memo(log, "claude_code.dropped")
    if boundary not in memo:
        node = boundary.node
        last = grown.node(node.entry.source, boundary.left) or grown.node(node.entry.source, node.head.parent)
        kept = set(boundary.kept)
        places: list[Place] = []
        if last is not None and last.number < node.number:
            trail, length = trail_of(grown, last)
            nodes = (n for item in trail.items(0, length) for n in item.nodes if item.role in ("user", "assistant"))
            places = [n.entry.place for n in nodes if n.head.uuid not in kept]
        memo[boundary] = tuple(dict.fromkeys(places))
    return memo[boundary]


def hooks_around(grown: Tree, node: Node, answers: tuple[int, int]) -> Counter[str]:
    """Hooks that left a record between the answers before and behind a line, by what they are called there."""
    first, last = answers
    found: Counter[str] = Counter()
    for at in range(bisect_left(grown.hooks, (first + 1,)), len(grown.hooks)):
        hook = grown.hooks[at]
        if hook.number >= last:
            break
        if hook.thread == node.thread:
            found[hook.name] += 1
    return found


def _counted(names: Counter[str]) -> str:
    told_ = [name if n == 1 else f"{name} ({n})" for name, n in sorted(names.items())]
    more = len(told_) - _MOST_NAMES
    return ", ".join(told_[:_MOST_NAMES]) + (f" and {more} more" if more > 0 else "")


def _restored(boundary: Boundary, following: Boundary | None) -> Iterator[Node]:
    end = following.node.number if following is not None else 1 << 60
    return (n for n in boundary.restored if n.number < end and any(True for _ in told(n)))


def _restore(nodes: Sequence[Node], after: After) -> Marker:
    names = Counter(n.head.sub for n in nodes)
    where = f"text from outside the log was put back behind the compaction: {_counted(names)}"
    return Marker("restore", after.key(nodes[0]), logged=True, where=where, place=nodes[0].entry.place)


def _micro(grown: Tree, node: Node, after: After) -> Marker:
    data = mapped(node.entry.data.get("microcompactMetadata"))
    ids = sorted(compacted_ids(node.entry))
    results = [n for i in ids if (n := grown.result(node.thread, i)) is not None]
    before, saved = tokens_of(data.get("preTokens")), tokens_of(data.get("tokensSaved"))
    return Marker(
        "micro",
        after.key(node),
        logged=True,
        where=f"cleared the results of {len(ids)} tool calls; the log keeps them",
        place=node.entry.place,
        before_tokens=before,
        after_tokens=before - saved if before is not None and saved is not None and saved <= before else None,
        dropped=tuple(dict.fromkeys(n.entry.place for n in sorted(results, key=lambda n: n.number))),
    )


def _seam(log: Log, grown: Tree) -> Node | None:
    """The first line of a session's own behind those copied from another; ``None`` where nothing was copied.

    2.1.332 names the origin on copied answers. 2.1.112 writes the new prompt's queue lines before the copies. 1.0 keeps
    copied prompts as blocks and its own as strings (measured; §2).
    """
    memo = shared_memo(log, "claude_code.seam")
    copies: _Copies | None = memo.get("copies")
    if copies is None or copies.tree is not grown:
        memo["copies"] = copies = _Copies(grown)
    copies.look(log.ref.id)
    if copies.last is not None or log.ref.parent is None:
        return copies.seam
    main = [n for n in grown.order if n.thread == MAIN]
    began = next((t for e in grown.others[:_FIRST] if (t := written(e.data.get("timestamp"))) is not None), None)
    if began is not None and main and (main[0].entry.time or began) < began:
        return next((n for n in main if n.entry.time is not None and n.entry.time >= began), None)
    prompts = [n for n in main if n.opens_turn]
    listed = [n for n in prompts if _is_listed(n)]
    return next((n for n in prompts if n.number > listed[-1].number), None) if listed else None


@dataclass(eq=False, slots=True)
class _Copies:
    """Lines that name the session they were copied from, looked at once each."""

    tree: Tree
    upto: int = 0
    last: Node | None = None
    seam: Node | None = None
    """The first prompt behind them."""

    def look(self, session: str) -> None:
        """Look at the lines since the last time."""
        for node in self.tree.order[self.upto :]:
            if node.thread != MAIN:
                continue
            if _names_origin(node, session):
                self.last, self.seam = node, None
            elif self.last is not None and self.seam is None and node.opens_turn:
                self.seam = node
        self.upto = len(self.tree.order)


def _is_listed(node: Node) -> bool:
    return isinstance(mapped(node.entry.data.get("message")).get("content"), list)


def _names_origin(node: Node, session: str) -> bool:
    """Whether a line says that it was copied from another session."""
    if not {"requestSessionId", "forkedFrom"} & set(node.head.names):
        return False
    origin = node.entry.data.get("requestSessionId")
    return "forkedFrom" in node.head.names or (isinstance(origin, str) and origin not in ("", session))


def _between(points: Sequence[Point]) -> Iterator[tuple[int, Marker]]:
    """What two calls of a thread tell: another model, a branch left."""
    models: dict[str, str] = {}
    for point in points:
        if point.answer is None:
            continue
        model = str(point.data.get("model") or "")
        was = models.get(point.lineage)
        if was and model and was != model:
            where = f"{was} to {model}"
            yield point.order[1], Marker("model_switch", point.key, logged=True, where=where, place=point.place)
        models[point.lineage] = model or was or ""
        asked = point.data.get("node")
        if point.branched_from is not None and isinstance(asked, Node) and not asked.head.flags & IS_META:
            where = "went back to an earlier place of the conversation"
            yield point.order[1], Marker("rewind", point.key, logged=True, where=where, place=asked.entry.place)
