"""The transcript as it grows: lines by uuid, answers put together from their lines, and who continues whom.

Every line is taken once. What a line's fields do not say, or say wrongly, leaves it without a parent (claude_code.md
§3, §4.2).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ctxscope.agents import Log, shared_memo
from ctxscope.agents.claude_code.incidents import Hook, compacted_ids, compaction_of, hook_name, is_progress
from ctxscope.agents.claude_code.lines import (
    AGENT,
    API_ERROR,
    HAS_RESULTS,
    HAS_TEXT,
    HIDDEN,
    IS_META,
    META,
    SESSION,
    SIDECHAIN,
    SUMMARY,
    SYNTHETIC,
    Head,
    head_of,
)
from ctxscope.agents.claude_code.texts import mapped
from ctxscope.model import Entry

MAIN = ""
"""Name of the main thread; a subagent's is its id, or the start of its first line's uuid where it has none."""
CHAINED = frozenset({"user", "assistant", "system", "attachment", "progress"})
BOUNDARY, MICRO = "compact_boundary", "microcompact_boundary"
RESTORING = frozenset(
    {
        *("file", "compact_file_reference", "plan_file_reference", "invoked_skills", "nested_memory", "instructions"),
        *("hook_additional_context", "hook_success", "session_context", "edited_text_file", "task_status"),
    }
)
"""Attachments that, behind a compaction, bring text back from outside the log: files, plans, skills, hooks, memory."""
_NO_INPUT = (
    *("<local-command-", "<command-name>", "<bash-", "[Request interrupted"),
    *("<session-start-hook>", "<user-prompt-submit-hook>", "<pre-tool-use-hook>", "<post-tool-use-hook>"),
)
"""What a user line begins with that asks the model for nothing."""
_NEAR = 32
"""Lines that may stand between two of one answer: results of its first calls, and what is no message."""


@dataclass(eq=False, slots=True, repr=False)
class Group:
    """The answer of one call: all lines with its message id."""

    name: str
    number: int
    thread: str
    nodes: list[Node] = field(default_factory=list)
    real: bool = False
    """A model gave it; texts the client made up itself are no calls."""
    call: Any = None
    """What is known of the call it answers, once asked for."""

    @property
    def lines(self) -> list[Node]:
        """Its lines, once each: 2.0 writes those of an answer that came unstreamed again, block by block (measured)."""
        return self.nodes[0].lines or self.nodes

    @property
    def uses(self) -> list[str]:
        """Ids of its tool calls, in order."""
        return [use for node in self.lines for use in node.head.uses]


@dataclass(eq=False, slots=True, repr=False)
class Node:
    """A line of the chain."""

    entry: Entry
    head: Head
    number: int
    """Place among the log's entries; what stands behind another in a file has a greater one."""
    thread: str
    parent: Node | None = None
    group: Group | None = None
    asked: bool = False
    """A request that was answered ended with it."""
    lines: list[Node] | None = None
    """Of an answer's line, all that were written with it."""
    trail: Any = None
    """The context it ends, once asked for, and its length there."""
    length: int = 0

    @property
    def asks(self) -> bool:
        """Whether a user line wants an answer: a prompt or a tool's result, not the record of a local command."""
        flags = self.head.flags
        if self.entry.kind != "user" or flags & (HIDDEN | SUMMARY | API_ERROR):
            return False
        return bool(flags & HAS_RESULTS) or not (flags & IS_META or self.head.starts.startswith(_NO_INPUT))

    @property
    def opens_turn(self) -> bool:
        """Whether it is an input of the user's."""
        return self.asks and bool(self.head.flags & HAS_TEXT) and not self.head.flags & HAS_RESULTS


@dataclass(eq=False, slots=True, repr=False)
class Boundary:
    """A compaction of the log."""

    node: Node
    anchor: str
    kept: tuple[str, ...]
    left: str
    trigger: str
    tokens: tuple[int | None, int | None]
    """For these see ``compaction_of``."""
    summary: Node | None = None
    open: bool = True
    """No answer of a model came since."""
    restored: list[Node] = field(default_factory=list)
    """Attachments that brought text back from outside the log before that."""


@dataclass(eq=False, slots=True, repr=False)
class Tree:
    """All lines so far."""

    upto: int = 0
    """Entries taken, lines or not."""
    rewrites: int = 0
    nodes: dict[str, dict[str, Node]] = field(default_factory=dict)
    """By source, and there by uuid."""
    order: list[Node] = field(default_factory=list)
    groups: dict[str, dict[str, Group]] = field(default_factory=dict)
    """By thread, and there by message id."""
    answers: list[Group] = field(default_factory=list)
    """Groups in the order of their first lines."""
    touched: list[Group] = field(default_factory=list)
    """Groups with lines since the points were last made."""
    results: dict[str, dict[str, Node]] = field(default_factory=dict)
    """By thread, and there by tool-call id, the line with its result."""
    uses: dict[str, Group] = field(default_factory=dict)
    """By tool-call id, the answer that made it."""
    boundaries: dict[str, list[Boundary]] = field(default_factory=dict)
    """By source."""
    bounds: dict[str, list[int]] = field(default_factory=dict)
    """Numbers of their lines."""
    anchors: dict[tuple[str, str], Boundary] = field(default_factory=dict)
    tips: dict[str, Node] = field(default_factory=dict)
    """By thread, its last user or assistant line."""
    roots: dict[str, Node] = field(default_factory=dict)
    """By thread, its first line."""
    made_by: dict[str, Node] = field(default_factory=dict)
    """By subagent's id, the tool result that tells of it."""
    facts: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    """By subagent's id, what its meta file says."""
    events: list[Node] = field(default_factory=list)
    """Lines that rewrite history or put something into it."""
    hooks: list[Hook] = field(default_factory=list)
    errors: list[Node] = field(default_factory=list)
    """Lines in which the client gave up a call."""
    lost: list[Node] = field(default_factory=list)
    """Lines whose parent is not there."""
    version: str | None = None
    others: list[Entry] = field(default_factory=list)
    """Lines outside the chain, in order."""
    restored: set[Node] = field(default_factory=set)
    """Attachments that bring text back behind a compaction, before the next answer."""
    cleared: set[str] = field(default_factory=set)
    """Tool calls whose results a micro-compaction took out of later requests."""
    listed: list[Node] = field(default_factory=list)
    """Attachments of the main thread that list skills."""
    messages: dict[tuple[tuple[Node, ...], bool], Any] = field(default_factory=dict)
    """By their lines, the messages made of them so far."""

    def take(self, entry: Entry) -> None:
        """Add the next entry."""
        at = self.upto
        self.upto += 1
        source = entry.source
        if source.startswith(META) and entry.kind == META:
            self.facts[source.partition(":")[2]] = entry.data
            return
        if source != SESSION and not source.startswith(AGENT):
            return
        head = head_of(entry)
        if head.version:
            self.version = head.version
        if entry.kind not in CHAINED or not head.uuid:
            if entry.kind not in ("gone", "unknown"):
                self.others.append(entry)
            return
        parent = self.node(source, head.parent) or self.node(SESSION, head.parent) if head.parent else None
        number = entry.seq if entry.seq == at else at  # one number object where both say the same
        node = Node(entry, head, number, self._thread(source, head, parent), parent)
        if head.parent and parent is None:
            self.lost.append(node)
        self.nodes.setdefault(source, {}).setdefault(head.uuid, node)
        self.order.append(node)
        self._place(node)

    def node(self, source: str, uuid: str) -> Node | None:
        """The first line of a source with a uuid."""
        own = self.nodes.get(source)
        return own.get(uuid) if own is not None else None

    def result(self, thread: str, use: str) -> Node | None:
        """The line of a thread with the result of a tool call."""
        own = self.results.get(thread)
        return own.get(use) if own is not None else None

    def _thread(self, source: str, head: Head, parent: Node | None) -> str:
        if source != SESSION:
            return source.partition(":")[2]
        if not head.flags & SIDECHAIN:
            return MAIN
        if parent is not None and parent.thread != MAIN:
            return parent.thread
        return head.agent or head.uuid[:8]

    def _place(self, node: Node) -> None:
        head, thread, kind = node.head, node.thread, node.entry.kind
        self.roots.setdefault(thread, node)
        if kind in ("user", "assistant"):
            self.tips[thread] = node
        if kind == "assistant":
            self._answer(node)
        elif kind == "user":
            self._input(node)
        elif kind == "attachment":
            self._attachment(node)
        elif head.sub == BOUNDARY:
            self._boundary(node)
        elif head.sub == MICRO:
            self.events.append(node)
            self.cleared |= compacted_ids(node.entry)
        elif head.sub in ("stop_hook_summary", "session_start") or is_progress(node.entry):
            self._hook(node)

    def _hook(self, node: Node) -> None:
        self.hooks.append(Hook(node.number, node.thread, hook_name(node.entry, node.head.sub)))

    def _input(self, node: Node) -> None:
        head = node.head
        for name in head.results:
            self.results.setdefault(node.thread, {}).setdefault(name, node)
        if head.agent and head.flags & HAS_RESULTS and head.agent != node.thread:
            self.made_by.setdefault(head.agent, node)
        if head.flags & SUMMARY:
            self._summary(node)

    def _attachment(self, node: Node) -> None:
        kind, last = node.head.sub, self.last_boundary(node)
        if last is not None and last.open and kind in RESTORING:
            self.restored.add(node)
            last.restored.append(node)
        if kind.startswith("hook_"):
            self._hook(node)
        elif kind == "skill_listing" and node.thread == MAIN:
            self.listed.append(node)
        elif kind == "queued_command":
            self.events.append(node)

    def last_boundary(self, node: Node) -> Boundary | None:
        """The last compaction of a line's file so far."""
        found = self.boundaries.get(node.entry.source)
        return found[-1] if found else None

    def boundary_before(self, node: Node) -> Boundary | None:
        """The last compaction before a line of its file."""
        at = bisect_left(self.bounds.get(node.entry.source, ()), node.number)
        return self.boundaries[node.entry.source][at - 1] if at else None

    def boundary_at(self, node: Node) -> tuple[Boundary, Boundary | None]:
        """The compaction that a line is, and the next one of its file."""
        found = self.boundaries[node.entry.source]
        at = bisect_left(self.bounds[node.entry.source], node.number)
        return found[at], found[at + 1] if at + 1 < len(found) else None

    def _answer(self, node: Node) -> None:
        name = node.head.message or f"line:{node.number}"
        groups = self.groups.setdefault(node.thread, {})
        group = groups.get(name)
        if group is None:
            group = groups[name] = Group(name, node.number, node.thread)
            self.answers.append(group)
        if node.head.flags & API_ERROR:
            self.errors.append(node)
        lines = _lines_with(node, group)
        if lines is None:  # it begins again: from here on not all its lines are of one writing
            group.nodes, lines = [*group.nodes], []
        lines.append(node)
        if lines is not group.nodes:
            group.nodes.append(node)
        node.lines, node.group = lines, group
        if not node.head.flags & (SYNTHETIC | API_ERROR) and not name.startswith("line:"):
            group.real = True
        for use in node.head.uses:
            self.uses.setdefault(use, group)
        self.touched.append(group)
        last = self.last_boundary(node)
        if last is not None and not node.head.flags & (SYNTHETIC | API_ERROR):
            last.open = False

    def _boundary(self, node: Node) -> None:
        boundary = Boundary(node, *compaction_of(node.entry))
        self.events.append(node)
        self.boundaries.setdefault(node.entry.source, []).append(boundary)
        self.bounds.setdefault(node.entry.source, []).append(node.number)
        if boundary.anchor:
            self.anchors[node.entry.source, boundary.anchor] = boundary

    def _summary(self, node: Node) -> None:
        """The first summary behind a boundary is its own."""
        last = self.last_boundary(node)
        if last is not None and last.summary is None:
            last.summary = node
        elif last is None:
            self.events.append(node)

    def ancestor(self, node: Node) -> Node | None:
        """The line a line's context goes on from; over a compaction that preserved its parent, the summary."""
        parent = node.parent
        last = self.boundary_before(node) if parent is not None else None
        if (
            parent is not None
            and last is not None
            and parent.number < last.node.number
            and parent.head.uuid in last.kept
        ):
            return last.summary or last.node
        return parent


def _lines_with(node: Node, group: Group) -> list[Node] | None:
    """The lines of an answer that a further one goes on from; ``None`` where it begins them again."""
    if not group.nodes:
        return group.nodes
    at = node.parent
    for _ in range(_NEAR):
        if at is None or at.group is group or at.entry.kind == "assistant":
            break
        at = at.parent
    if at is not None and at.group is group:
        return at.lines
    first = group.nodes[0]
    return None if _begins(node) == _begins(first) else first.lines


def _begins(node: Node) -> Any:
    content = mapped(node.entry.data.get("message")).get("content")
    return content[0] if isinstance(content, list) and content else content


def tree(log: Log) -> Tree:
    """The tree of a log, grown by what came since it was last asked for; begun anew where lines were rewritten."""
    memo = shared_memo(log, "claude_code.tree")
    grown: Tree | None = memo.get("tree")
    if grown is None or grown.rewrites != log.rewrites:
        memo["tree"] = grown = Tree(rewrites=log.rewrites)
    for entry in log.entries[grown.upto :]:
        grown.take(entry)
    return grown


def walk(node: Node | None) -> Iterator[Node]:
    """A line and those it continues, newest first."""
    while node is not None:
        yield node
        node = node.parent
