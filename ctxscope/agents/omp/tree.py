"""The session tree: for each entry the context, level and model that hold after it, in the versions of its time.

Entries are folded in the order observed, each once. omp rewrites messages in their place (prune, shake, strip): what
was sent before is the version before. A rewrite that says when it happened (``prunedAt``) holds for answers begun since;
one that does not say holds from where it was observed (omp.md §2, §4.1).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ctxscope.agents import Log, shared_memo
from ctxscope.agents.omp.answers import asked, content_of, response_of, together
from ctxscope.agents.omp.items import Item, items, opening, remote_items
from ctxscope.agents.omp.lines import SESSION, is_message, pruned_at, stamp
from ctxscope.agents.omp.store import Store, store, unshaken
from ctxscope.agents.omp.trail import Trail
from ctxscope.agents.pi.texts import blocks, string
from ctxscope.model import Entry, Place

Model = tuple[str, str]


@dataclass(slots=True, eq=False, repr=False)
class Node:
    """What holds after one entry, on its path from the root."""

    entry: Entry
    """The version that holds now; ``first`` is what stood there at first."""
    first: Entry
    number: int
    """Position in the order observed."""
    parent: Node | None
    own: list[Item] = field(default_factory=list)
    generation: int = -1
    """The rewrites that ``trail`` reflects."""
    trail: Trail = field(default_factory=Trail)
    length: int = 0
    before: tuple[Trail, int] | None = None
    """Of an answer, the context it was given; of a compaction, the one it found: in the versions of its time."""
    left: tuple[Trail, int] | None = None
    """Of a compaction: the context it left, likewise."""
    level: str = "off"
    level_place: Place | None = None
    model: Model | None = None
    model_place: Place | None = None
    turn: int = 0
    """User messages so far."""
    run: int = 0
    """How many times a process had ended before."""
    call: Node | None = None
    """The newest answer on the path, this entry included, that a request asked for."""
    compaction: Node | None = None
    reset: int = -1
    """Number of the newest reset boundary on the path."""
    twin: Node | None = None
    """The node that persisted the same answer first."""


@dataclass(frozen=True, slots=True)
class Rewrite:
    """A message written anew in its place."""

    node: Node
    before: Entry
    after: Entry
    at: float | None
    """When, in milliseconds since the epoch, where it says so."""
    number: int
    """Of the first entry observed after it."""


@dataclass(eq=False, slots=True, repr=False)
class Tree:
    """Nodes by entry key, and in the order observed."""

    header: Mapping[str, Any] = field(default_factory=dict)
    header_place: Place | None = None
    nodes: dict[str, Node] = field(default_factory=dict)
    order: list[Node] = field(default_factory=list)
    last: Node | None = None
    rewrites: list[Rewrite] = field(default_factory=list)
    lost_parents: list[Entry] = field(default_factory=list)
    read: int = 0
    """Versions of entries taken in."""
    generation: int = 0
    """Counts the rewrites that hold."""
    runs: int = 0
    live: list[Node] = field(default_factory=list)
    """Failed answers that the running process still sends: it left none out since it read its log."""
    held: Store = field(default_factory=Store)
    shaken: int = 0
    """What was known of shaken regions when it was folded (``Store.shaken``)."""
    memo: dict[Any, Any] = field(default_factory=dict)
    """For what is made of its nodes; goes with them when a log is folded anew."""
    _due: list[tuple[float, Node, Entry]] = field(default_factory=list)
    """Rewrites that do not hold yet: when they happened, and what they wrote."""
    _answers: dict[tuple[str, float], Node] = field(default_factory=dict)

    def fold(self, entry: Entry) -> None:
        """Take in the next version observed of an entry of the session file."""
        if not entry.data or entry.kind == "gone":
            return
        if entry.kind in {"session", "title"}:
            if entry.kind == "session":
                self.header, self.header_place = entry.data, entry.place
            return
        known = self.nodes.get(entry.key)
        if known is not None:
            self._rewritten(known, entry)
            return
        if entry.kind == "assistant":
            self._hold_until(stamp(entry))
        elif died(self, entry):
            self._ended()
        if entry.kind == "compaction" or self._leaves(entry):
            self._settle()
        node = _follow(self, entry)
        self.nodes[entry.key] = node
        self.order.append(node)
        self.last = node
        if entry.kind == "custom" and entry.data.get("customType") == "session_exit":
            self._ended()

    def parent(self, entry: Entry) -> Node | None:
        """The node an entry follows; an entry whose parent the file does not hold begins a path."""
        if "parentId" not in entry.data and "id" not in entry.data:
            return self.last
        name = entry.data.get("parentId")
        parent = self.nodes.get(name) if isinstance(name, str) else None
        if parent is None and name is not None:
            self.lost_parents.append(entry)
        return parent

    def current(self, node: Node | None) -> tuple[Trail, int]:
        """The context after a node as the versions that hold now give it."""
        if node is None:
            return Trail(), 0
        if node.generation != self.generation:
            parent = node.parent
            if parent is not None and parent.generation == self.generation and node.compaction is parent.compaction:
                _extend(node)
            else:
                self._replay(node)
            node.generation = self.generation
        return node.trail, node.length

    def now(self, node: Node) -> tuple[Trail, int]:
        """The same for a request that is still to be answered: every rewrite holds, which later answers may not see."""
        trail, length = self.current(node)
        if not self._due:
            return trail, length
        newest = {due[1].entry.key: items(due[2]) for due in sorted(self._due, key=lambda d: d[0])}
        found = _replayed([*path(node)][::-1], node, newest)
        return trail.like(found), len(found)

    def restored(self, entry: Entry) -> tuple[list[Item], float] | None:
        """What a message that is seen shaken said before, and until when; ``None`` where that is not known."""
        if b"[shaken ~" not in entry.raw:
            return None
        content = entry.data.get("message") if is_message(entry) else entry.data
        was = unshaken(content, self.held) if isinstance(content, Mapping) else None
        until = pruned_at(entry) or self.held.shaken_at(entry)
        return (items(entry, restored=was), until) if was is not None and until is not None else None

    def twin_of(self, entry: Entry) -> Node | None:
        """The node that persisted an answer first, if this is the same one again (omp.md §3)."""
        name = response_of(entry)
        first = self._answers.get((name, stamp(entry))) if name else None
        return first if first is not None and first.entry.data.get("parentId") == entry.data.get("parentId") else None

    def answered(self, node: Node) -> None:
        """Remember an answer by its response's id."""
        name = response_of(node.entry)
        if name:
            self._answers.setdefault((name, stamp(node.entry)), node)

    def due(self, at: float, node: Node, entry: Entry) -> None:
        """Let a version of an entry hold for answers begun since a moment (milliseconds since the epoch)."""
        self._due.append((at, node, entry))

    def _ended(self) -> None:
        """A process ended: the next one reads the log."""
        self.runs += 1
        self._settle()

    def _settle(self) -> None:
        """Leave out failed answers, as a context built from the log does."""
        for node in self.live:
            node.own = items(node.entry)
        self.generation += bool(self.live)
        self.live = []

    def _leaves(self, entry: Entry) -> bool:
        """Whether an entry goes on elsewhere in the tree than the last one stood, for which the context is built anew."""
        if not self.live or entry.kind in {"model_usage", "assistant"} or self.last is None:
            return False
        at = self.nodes.get(string(entry.data.get("parentId")))
        beside = self.last.parent if self.last.entry.kind in {"assistant", "model_usage"} else self.last
        return at is not self.last and at is not beside

    def _rewritten(self, node: Node, entry: Entry) -> None:
        before = node.entry
        if entry.data == before.data:
            node.entry = entry
            return
        at = pruned_at(entry)
        at = at if at is not None and at != pruned_at(before) else None
        self.rewrites.append(Rewrite(node, before, entry, at, len(self.order)))
        if at is not None:
            self.due(at, node, entry)
        else:
            self._hold(node, entry)

    def _hold_until(self, moment: float) -> None:
        """Let the rewrites hold that happened before an answer was begun."""
        for due in [d for d in self._due if d[0] <= moment]:
            self._due.remove(due)
            self._hold(due[1], due[2])

    def _hold(self, node: Node, entry: Entry) -> None:
        rebuilt = content_of(node.entry) != content_of(entry)
        node.entry = entry
        node.own = items(entry)
        self.live = [n for n in self.live if n is not node]
        self.generation += 1
        if rebuilt:
            self._settle()

    def _replay(self, node: Node) -> None:
        """The context of a whole path anew, on the trail it had as far as that still holds."""
        found = _replayed([*path(node)][::-1], node, {})
        trail = node.parent.trail if node.parent and not node.trail.items else node.trail
        node.trail, node.length = trail.like(found), len(found)


def tree(log: Log) -> Tree:
    """The tree of a log, folded as far as the log goes."""
    memo, held = shared_memo(log, "omp.tree"), store(log)
    found: Tree | None = memo.get("tree")
    if found is None or found.shaken != held.shaken:
        memo["tree"] = found = Tree(held=held, shaken=held.shaken)
    for entry in log.versions[found.read :]:
        if entry.source == SESSION:
            found.fold(entry)
    found.read = len(log.versions)
    return found


def path(node: Node | None) -> Iterator[Node]:
    """The nodes from ``node`` up to its root."""
    while node is not None:
        yield node
        node = node.parent


def descends(node: Node, ancestor: Node) -> bool:
    """Whether ``ancestor`` is on the path of ``node``; entries follow their parents, which bounds the walk."""
    at: Node | None = node
    while at is not None and at.number > ancestor.number:
        at = at.parent
    return at is ancestor


def died(grown: Tree, entry: Entry) -> bool:
    """Whether a user message shows that the process before it ended without a word (measured).

    One that lives ends each turn with an answer, an aborted one too, and gives each tool call a result.
    """
    if entry.kind != "user" or entry.data.get("message", {}).get("steering") is True:
        return False
    results: set[str] = set()
    for node in path(grown.nodes.get(string(entry.data.get("parentId")))):
        message = node.entry.data.get("message")
        if not isinstance(message, Mapping):
            if node.entry.kind in {"compaction", "branch_summary", "custom_message", "reset_boundary"}:
                return False
        elif node.entry.kind == "toolResult":
            results.add(string(message.get("toolCallId")))
        elif node.entry.kind == "assistant":
            calls = {string(b.get("id")) for b in blocks(message.get("content")) if b.get("type") == "toolCall"}
            return message.get("stopReason") == "toolUse" and bool(calls - results)
        else:
            return node.entry.kind == "user" and not together(node.entry, entry)
    return False


_INHERITED = ("level", "level_place", "model", "model_place", "turn", "call", "compaction", "reset")


def _follow(grown: Tree, entry: Entry) -> Node:
    """The node of ``entry``: its parent's state, changed by what the entry means."""
    parent = grown.parent(entry)
    node = Node(entry, entry, len(grown.order), parent, run=grown.runs)
    if parent is not None:
        for name in _INHERITED:
            setattr(node, name, getattr(parent, name))
    if entry.kind == "assistant":
        node.twin = grown.twin_of(entry)
        node.before = grown.current(parent)
        node.call = node if asked(entry) else node.call
        grown.answered(node)
    else:
        _set(node)
    if entry.kind == "compaction":
        node.before = grown.current(parent)
    if entry.kind not in {"compaction", "reset_boundary"}:
        was = grown.restored(entry)
        node.own = items(entry) if was is None else was[0]
        if any(i.failed for i in node.own):
            node.own = [replace(i, live=True) for i in node.own]
            grown.live.append(node)
        if was is not None:
            grown.due(was[1], node, entry)
    found = grown.current(node)
    node.left = found if entry.kind == "compaction" else None
    return node


def _set(node: Node) -> None:
    """What an entry that is no answer changes beside the context."""
    entry, data = node.entry, node.entry.data
    if entry.kind == "thinking_level_change":
        level = data.get("thinkingLevel")
        node.level, node.level_place = level if isinstance(level, str) and level else "off", entry.place
    elif entry.kind == "model_change" and isinstance(data.get("model"), str):
        provider, _, model = data["model"].partition("/")
        node.model, node.model_place = (provider, model), entry.place
    elif entry.kind == "compaction":
        node.compaction = node
    elif entry.kind == "reset_boundary":
        node.reset = node.number
    elif entry.kind == "user":
        node.turn += 1


def _extend(node: Node) -> None:
    """Put a node's items behind its parent's context; where another path already went on from there, on a copy."""
    parent = node.parent
    node.trail, node.length = (parent.trail, parent.length) if parent else (Trail(), 0)
    if node.reset == node.number:
        node.trail, node.length = Trail(), 0
    elif node.own:
        if node.length != len(node.trail.items):
            node.trail = node.trail.fork(node.length)
        for item in node.own:
            node.trail.append(item)
        node.length = len(node.trail.items)


def _replayed(nodes: list[Node], node: Node, newest: Mapping[str, list[Item]]) -> list[Item]:
    """The items of a path: what stands behind the newest reset or compaction, whichever came later.

    An older compaction among what the newest one kept gives nothing. ``newest``: by entry key, items in place of the ones
    that hold.
    """

    def given(some: Iterable[Node]) -> list[Item]:
        return [i for n in some if n.entry.kind != "compaction" for i in newest.get(n.entry.key, n.own)]

    compaction = node.compaction
    if node.reset >= 0 and (compaction is None or node.reset > compaction.number):
        return given(n for n in nodes if n.number > node.reset)
    if compaction is None:
        return given(nodes)
    at = nodes.index(compaction)
    return [*_opened(compaction), *given(_kept(nodes[:at], compaction.entry)), *given(nodes[at + 1 :])]


def _opened(compaction: Node) -> list[Item]:
    """The items a compaction itself gives, made once."""
    if not compaction.own:
        compaction.own = opening(compaction.entry)
    return compaction.own


def _kept(before: list[Node], compaction: Entry) -> list[Node]:
    """History a compaction left as it was: from the entry it names on; none where that is not before it."""
    if remote_items(compaction) is None:
        first = compaction.data.get("firstKeptEntryId")
        return before[next((i for i, n in enumerate(before) if n.entry.key == first), len(before)) :]
    through = compaction.data.get("providerReplayThroughEntryId")
    return before[next((i + 1 for i, n in enumerate(before) if n.entry.key == through), len(before)) :]
