"""Where Claude Code must have called a model: one point per answer, and one for a line still waiting (claude_code.md §7).

Only what is new is looked at: points made before stay, but for answers that got more lines.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from ctxscope.agents import Log, shared_memo
from ctxscope.agents.claude_code.answered import AnsweredPoint, Notes
from ctxscope.agents.claude_code.lines import API_ERROR, SESSION, SYNTHETIC
from ctxscope.agents.claude_code.texts import mapped, string
from ctxscope.agents.claude_code.trail import Trail, peek, trail_of
from ctxscope.agents.claude_code.tree import MAIN, Group, Node, Tree, tree
from ctxscope.model import Point

GIVES_UP = ("Continue from where you left off", "[Request interrupted by user]")
"""How the lines begin that the client writes when a call was broken off (measured in 2.1.112, 2.1.332)."""
_NEAR = 32
"""Lines that may stand between an input and what follows it."""


@dataclass(eq=False, slots=True, repr=False)
class _Call:
    """What is known of the call that an answer came of."""

    order: tuple[float, int]
    turn: int | None
    """For a line of the session's own transcript."""
    point: Point | None = None
    left: str | None = None
    """See ``Point.branched_from``; settled with its first point."""
    followed: bool = False
    """Another call of the log went on from it."""


@dataclass(eq=False, slots=True, repr=False)
class _Made:
    """Points so far."""

    tree: Tree
    seen: int = 0
    """Lines of the tree whose turns are known."""
    began: list[float] = field(default_factory=list)
    """When each turn of the main thread began."""
    waiting: bool = True
    """No answer came since the last input: a further one belongs to the same turn."""
    turn: int = 0
    lineages: dict[str, str] = field(default_factory=dict)
    clock: dict[str, float] = field(default_factory=dict)
    """By thread, the latest time so far."""
    cut: dict[Node, tuple[Node, int]] = field(default_factory=dict)
    """Inputs whose calls broke off before anything of an answer was logged: the line behind each, and its turn."""
    broken: dict[Node, Point] = field(default_factory=dict)
    """Their points."""


def requests(log: Log) -> Sequence[Point]:
    """Points in the order of their answers."""
    found: Sequence[Point] | None = log.memo.get("points")
    if found is None:
        grown = tree(log)
        memo = shared_memo(log, "claude_code.points")
        made: _Made | None = memo.get("made")
        if made is None or made.tree is not grown:
            memo["made"] = made = _Made(grown)
        log.memo["points"] = found = _points(grown, made)
    return found


def context_of(log: Log, point: Point) -> tuple[Trail, int]:
    """The context a point's request was made of."""
    node = point.data.get("node")
    if not isinstance(node, Node):
        return Trail(), 0
    grown = tree(log)
    return peek(grown, node) if point.answer is None else trail_of(grown, node)


def error_line(point: Point) -> str | None:
    """What the client wrote of a call that failed: the text of the error line behind its input."""
    node = point.data.get("error")
    if not isinstance(node, Node):
        return None
    content = mapped(node.entry.data.get("message")).get("content")
    blocks = content if isinstance(content, list) else []
    found = content if isinstance(content, str) else next((string(mapped(b).get("text")) for b in blocks), "")
    return found or None


def _points(grown: Tree, made: _Made) -> list[Point]:
    for node in grown.order[made.seen :]:
        _advance(grown, made, node)
    made.seen = len(grown.order)
    lineages = {thread: _lineage(grown, thread) for thread in grown.roots}
    touched = dict.fromkeys(grown.touched)
    grown.touched.clear()
    for thread, lineage in lineages.items():
        if made.lineages.get(thread, lineage) != lineage:
            touched |= dict.fromkeys(g for g in grown.answers if g.thread == thread and _call(g).point is not None)
    made.lineages = lineages
    for group in touched:
        if group.real:
            _call(group).point = _answered(grown, made, group)
    answered = [point for g in grown.answers if (point := _call(g).point) is not None]
    found = [*answered, *_broken_off(grown, made), *_waiting(grown, made)]
    found.sort(key=lambda p: p.order)
    return found


def _gives_up(node: Node) -> bool:
    """Whether a line shows that nothing came to an input before it: the next one, or words the client puts there."""
    if node.entry.kind == "assistant":
        return bool(node.head.flags & SYNTHETIC) and not node.head.flags & API_ERROR
    return node.opens_turn or (node.entry.kind == "user" and node.head.starts.startswith(GIVES_UP))


def _asked_before(grown: Tree, node: Node) -> Node | None:
    """The input right before a line, if a call was due for it."""
    before = grown.ancestor(node)
    for _ in range(_NEAR):
        if before is None or before.entry.kind in ("user", "assistant"):
            break
        before = grown.ancestor(before)
    due = before is not None and before.thread == node.thread and before.asks and _settled(grown, before)
    return before if due else None


def _advance(grown: Tree, made: _Made, node: Node) -> None:
    """Turns and times, line by line."""
    turn = made.turn
    clock = made.clock.get(node.thread, 0.0)
    if node.entry.time is not None and node.entry.time > clock:
        made.clock[node.thread] = clock = node.entry.time
    if node.thread == MAIN and node.opens_turn and not (made.waiting and made.turn):
        made.turn += 1
        made.began.append(clock)
        made.waiting = True
    before = _asked_before(grown, node) if _gives_up(node) else None
    if before is not None:
        made.cut.setdefault(before, (node, turn))
    group = node.group
    if group is not None and group.nodes[0] is node:
        group.call = _Call((clock, node.number), made.turn if node.entry.source == SESSION else None)
        if node.thread == MAIN and group.real:
            made.waiting = False


def _call(group: Group) -> _Call:
    call: _Call = group.call
    return call


def _turn(grown: Tree, made: _Made, group: Group) -> int:
    """Of the input that led to a call; for a subagent's transcript, of the call that started it."""
    call = _call(group)
    if call.turn is not None:
        return call.turn
    starter = _starter(grown, group.thread)
    turn = _call(starter).turn if starter is not None else None
    return bisect_right(made.began, call.order[0]) if turn is None else turn


def _starter(grown: Tree, thread: str) -> Group | None:
    """The answer whose tool call started a subagent."""
    use = grown.facts.get(thread, {}).get("toolUseId")
    if isinstance(use, str) and use in grown.uses:
        return grown.uses[use]
    result = grown.made_by.get(thread)
    return grown.uses.get(result.head.results[0]) if result is not None and result.head.results else None


def _lineage(grown: Tree, thread: str) -> str:
    if thread == MAIN:
        return "main"
    names = [thread]
    starter = _starter(grown, thread)
    while starter is not None and starter.thread != MAIN and starter.thread not in names:
        names.append(starter.thread)
        starter = _starter(grown, starter.thread)
    return "sub:" + "/".join(reversed(names))


def _answered(grown: Tree, made: _Made, group: Group) -> Point:
    first = group.nodes[0]
    parent = _asked_by(grown, first, group)
    if parent is not None and group.real:
        parent.asked = True
    trail, length = trail_of(grown, parent)
    call = _call(group)
    if call.point is None:
        before = trail.answer_before(length)
        if before is not None:
            call.left = before.nodes[0].entry.key if _call(before).followed else None
            _call(before).followed = True
    return AnsweredPoint(
        Notes(parent, group),
        turn=_turn(grown, made, group),
        order=call.order,
        lineage=made.lineages[group.thread],
        branched_from=call.left,
    )


def _asked_by(grown: Tree, first: Node, group: Group) -> Node | None:
    """The line an answer's request ended with."""
    parent = grown.ancestor(first)
    while parent is not None and parent.group is group:
        parent = grown.ancestor(parent)
    return parent


def _broken_off(grown: Tree, made: _Made) -> Iterator[Point]:
    """Calls of which nothing came: their process was ended, and a later one went on."""
    for node, (behind, turn) in made.cut.items():
        if node.asked:
            continue
        if node not in made.broken:
            made.broken[node] = _open(grown, made, node, None, behind, turn)
        yield made.broken[node]


def _waiting(grown: Tree, made: _Made) -> list[Point]:
    """Inputs that no answer followed: the last of a thread, and those after which the client told of an error."""
    found = []
    for thread, tip in grown.tips.items():
        error = tip if tip.head.flags & API_ERROR else None
        asked = tip
        while asked is not None and asked.head.flags & API_ERROR:
            asked = asked.parent  # type: ignore[assignment]
            while asked is not None and asked.entry.kind not in ("user", "assistant"):
                asked = asked.parent  # type: ignore[assignment]
        if asked is not None and asked.thread == thread and _is_due(grown, asked):
            found.append(_open(grown, made, asked, error))
    return found


def _is_due(grown: Tree, node: Node) -> bool:
    """Whether a request must be out: after a prompt, all results of an answer, or a compaction in the middle of a turn."""
    if node.asks:
        return _settled(grown, node)
    last = grown.last_boundary(node)
    return last is not None and last.summary is node and last.trigger == "auto"


def _settled(grown: Tree, node: Node) -> bool:
    """Whether every tool call of the answer before has its result."""
    if not node.head.results:
        return True
    group = grown.uses.get(node.head.results[0])
    return group is None or all(grown.result(node.thread, use) is not None for use in group.uses)


def _open(
    grown: Tree, made: _Made, node: Node, error: Node | None, behind: Node | None = None, turn: int | None = None
) -> Point:
    """A call without an answer; ``error``: the line that tells of its end, ``behind``: the one that went on without it."""
    trail, length = peek(grown, node)
    before = trail.answer_before(length)
    last = before.nodes[-1] if before is not None else node
    if turn is None:
        turn = made.turn if node.thread == MAIN else bisect_right(made.began, made.clock.get(node.thread, 0.0))
    clock = made.clock.get(node.thread, 0.0) if behind is None else node.entry.time or 0.0
    notes = {
        "model": last.head.model if last.head.model != "<synthetic>" else "",
        "node": node,
        "group": None,
        "ref": "",
        "version": node.head.version,
        "agent": last.thread,
    }
    return Point(
        key=f"after:{node.entry.key}",
        place=node.entry.place,
        context=trail.context(length),
        answer=None,
        turn=turn,
        order=(clock, node.number),
        time=node.entry.time,
        kind="main" if node.thread == MAIN else "subagent",
        lineage=made.lineages[node.thread],
        api="anthropic-messages",
        data=notes | ({"error": error, "dead": True} if error else {}) | ({"behind": behind} if behind else {}),
    )
