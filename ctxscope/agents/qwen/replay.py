"""A chat file read as the program reads and writes it: the calls it tells of, and what rewrote their history.

Lines form a tree by ``parentUuid``: a rewind goes on from an earlier line (qwen.md §3, §4; read in 0.15.10 and 0.24.4).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from ctxscope.agents import Log, shared_memo
from ctxscope.agents.qwen import lines
from ctxscope.agents.qwen.compressed import asked_at, kept, split, summed_up
from ctxscope.agents.qwen.contents import parts_of, turn_of, whole
from ctxscope.agents.qwen.history import History, Turn
from ctxscope.agents.qwen.lines import SESSION, event, payload
from ctxscope.agents.qwen.loaded import Chain, is_broken, is_headless
from ctxscope.agents.qwen.recovery import question
from ctxscope.agents.qwen.state import Call, Event, Node, Segment
from ctxscope.agents.qwen.versions import rules_of
from ctxscope.model import Entry

ACKNOWLEDGED = "Got it. Thanks for the additional context!"
RESPONSE, ERROR = "qwen-code.api_response", "qwen-code.api_error"

_MADE_OF_CALLS = ("qwen.points", "qwen.calls", "qwen.taught")
"""What is remembered of calls that a chat written anew no longer tells of."""


@dataclass(eq=False, slots=True, repr=False)
class Replay:
    """The chat file, folded line by line."""

    calls: list[Call] = field(default_factory=list)
    happened: list[Event] = field(default_factory=list)
    segments: list[Segment] = field(default_factory=list)
    """Those that a compression began."""
    orphans: list[Entry] = field(default_factory=list)
    """Lines whose parent is not in the file."""
    version: str | None = None
    versions: set[str] = field(default_factory=set)
    window: int | None = None
    tip: Node = field(default_factory=lambda: Node(History(), 0))
    newest: Entry | None = None
    turns: int = 0
    """Inputs of the user so far."""
    _nodes: dict[str, Node] = field(default_factory=dict)
    _responses: list[Mapping[str, Any]] = field(default_factory=list)
    """Telemetry of replies since the last answer."""
    _errors: list[str] = field(default_factory=list)
    _chain: Chain = field(default_factory=Chain)
    _reread: dict[tuple[str, str], History] = field(default_factory=dict)
    """What processes hold that read the chat file: by the line up to which they read it, and the entry they went on from."""

    @property
    def waiting(self) -> Call | None:
        """The call that must be under way at the end of the log."""
        call = self._call(self.tip, None) if self.tip.waiting else None
        if call is not None:
            call.errors = list(self._errors)
        return call

    @property
    def loses(self) -> bool:
        """Whether the log shows that a process did not read a line back that holds a line end of its own."""
        return self._chain.breaks

    def fold(self, entry: Entry) -> None:
        """Add the next line."""
        data = entry.data
        version = data.get("version")
        if isinstance(version, str) and version:
            self.version = version
            self.versions.add(version)
        before = self._before(entry, data)
        self._chain.add(entry, self.newest, _parent(entry))
        after = self._step(entry, before)
        if is_broken(entry):
            after = replace(after, changed=True)
        self._nodes[entry.key] = self.tip = after
        self.newest = entry

    def _before(self, entry: Entry, data: Mapping[str, Any]) -> Node:
        """Where the line goes on from."""
        parent = data.get("parentUuid")
        if parent is None and not self._nodes:
            return self.tip
        if not isinstance(parent, str):
            return Node(History(), 0)
        if parent not in self._nodes:
            self.orphans.append(entry)
            return self.tip
        return self._nodes[parent]

    def _step(self, entry: Entry, node: Node) -> Node:
        if entry.kind in {"user", "tool_result"}:
            return self._said(entry, node)
        if entry.kind == "assistant":
            return self._answered(entry, node)
        if entry.kind == lines.COMPRESSION:
            return self._compressed(entry, node)
        if entry.kind == lines.TELEMETRY:
            self._telemetry(event(entry))
        elif entry.kind == lines.SENT:
            return replace(node, sent=True)
        elif entry.kind == lines.REWIND:
            self._rewound(entry, node)
        return node

    def _telemetry(self, told: Mapping[str, Any]) -> None:
        name = told.get("event.name")
        if told.get("subagent_name"):
            return  # another conversation: what is worth remembering, for one
        if name == RESPONSE:
            self._responses.append(told)
        elif name == ERROR and isinstance(told.get("error_message"), str):
            self._errors.append(told["error_message"])

    def _said(self, entry: Entry, node: Node) -> Node:
        """A message of the user, or a result of a tool."""
        parts, size = parts_of(entry.data.get("message")), _size(entry)
        new = entry.kind == "user" and entry.data.get("subtype") not in lines.NO_TURN
        if new and node.waiting and (self._errors or node.results or node.sent):
            call = self._call(node, None)
            call.dead, call.errors = True, self._errors
            self.calls.append(call)
            node = replace(node, waiting=0, fresh=False)
        if new or not node.waiting:
            self._errors = []
        if not new and node.results and len(node.history.turns) == node.length:
            # The results of one answer's calls are one content, a line each.
            node.history.grow(parts, entry, size)
            return node
        history, length = _extended(node, Turn("user", parts, entry, size))
        opened = new and not node.waiting
        self.turns += opened
        return replace(
            node,
            history=history,
            length=length,
            turn=self.turns,
            waiting=node.waiting + 1,
            results=not new,
            call=None,
            asked=node.asked and not opened,
            sent=False,
            follows=_parent(entry) if opened and node.changed else None if opened else node.follows,
        )

    def _answered(self, entry: Entry, node: Node) -> Node:
        data, before = entry.data, node.call
        parts, model = parts_of(data.get("message")), data.get("model")
        window = data.get("contextWindowSize")
        self.window = window if isinstance(window, int) and not isinstance(window, bool) else self.window
        answer = Turn("model", parts, entry, _size(entry))
        if node.follows is not None and not node.asked and is_headless(_told(self._responses, entry)):
            node = self._read_back(node, node.follows)
        kind: Literal["main", "escalated"] = "main"
        if before is not None and before.answer is not None:
            if not parts_of(before.answer.data.get("message")):
                node = replace(node, history=before.history, length=before.length)
            elif _prompt(before.answer) is not None and _prompt(before.answer) == _prompt(entry):
                # The reply was cut: the program asked the same again, with room for a longer one.
                node = replace(node, history=before.history, length=before.length, changed=True)
                kind = "escalated"
            elif before.kind == "escalated":
                return self._recovered(entry, node, before, answer)
        call = self._call(node, entry)
        call.kind, call.model = kind, model if isinstance(model, str) and model else node.model
        self._switched(entry, node.model, call.model)
        return self._behind(node, call, [answer] if parts else [])

    def reread(self, call: Call, follows: str, since: str) -> Call:
        """A call as a process makes it that read the chat file up to a line and went on from the entry ``since``."""
        turns = call.history.turns[: call.length]
        at = next((n for n, turn in enumerate(turns) if turn.key == since), None)
        if at is None:
            return call
        compression, read = self._chain.read(follows)
        if compression is not None:
            held = self._nodes[compression.key]
            read = (*held.history.turns[: held.length], *read)
        turns, known = [*read, *turns[at:]], self._reread.get((follows, since))
        if known is None or any(a is not b for a, b in zip(known.turns, turns, strict=False)):
            known = self._reread[follows, since] = History().until(0, turns)
        for turn in turns[len(known.turns) :]:
            known.append(turn)
        return replace(call, history=known, length=len(turns))

    def _read_back(self, node: Node, key: str) -> Node:
        """The conversation as a process has it that read the chat file up to a line."""
        compression, read = self._chain.read(key)
        if compression is not None:
            return replace(node, follows=None)
        asked = node.history.turns[node.length - node.waiting : node.length]
        history = History().until(0, (*read, *asked))
        segment = Segment(node.segment.number, node.segment.entry) if node.segment.number else node.segment
        changed = any(turn.entry is not None and is_broken(turn.entry) for turn in asked)
        return replace(node, history=history, length=len(history.turns), segment=segment, changed=changed, follows=None)

    def _recovered(self, entry: Entry, node: Node, before: Call, answer: Turn) -> Node:
        """An answer cut even then is gone on with; both become one."""
        cut = node.history.turns[node.length - 1]
        asked = Turn("user", ({"text": question(cut, told=rules_of(self.version).reminds)},), None)
        history = node.history.until(node.length, (asked,))
        call = self._call(replace(node, history=history, length=len(history.turns)), entry)
        call.kind, call.model = "escalated", before.model
        whole = Turn("model", (*cut.parts, *answer.parts), entry, cut.characters + answer.characters)
        return self._behind(replace(node, length=node.length - 1), call, [whole])

    def _behind(self, node: Node, call: Call, turns: Sequence[Turn]) -> Node:
        self.calls.append(call)
        for turn in turns:
            history, length = _extended(node, turn)
            node = replace(node, history=history, length=length)
        return replace(node, waiting=0, results=False, call=call, asked=True, model=call.model, fresh=False)

    def _call(self, node: Node, answer: Entry | None) -> Call:
        entries = node.history.entries
        last = entries[node.history.counts[node.length] - 1] if node.history.counts[node.length] else answer
        last = last or self.newest
        assert last is not None
        call = Call(node.history, node.length, last, node.turn, node.segment, not node.asked, answer, node.model)
        call.rules, call.follows, call.fresh = rules_of(self.version), node.follows, node.fresh
        if answer is not None:
            call.told = _told(self._responses, answer)
            call.tries = sum(t.get("prompt_id") == call.told.get("prompt_id") for t in self._responses)
            self._responses = []
            call.errors, self._errors = self._errors, []
        return call

    def _switched(self, entry: Entry, old: str | None, new: str | None) -> None:
        if old and new and old != new:
            self.happened.append(Event("model_switch", entry.place, f"{old} to {new}", len(self.calls)))

    def _compressed(self, entry: Entry, node: Node) -> Node:
        told = payload(entry)
        listed = told.get("compressedHistory")
        if not isinstance(listed, Sequence) or isinstance(listed, str):
            return node
        turns = [turn_of(c, entry) for c in listed if isinstance(c, Mapping)]
        asked = node.history.turns[node.length - node.waiting : node.length]
        at = asked_at(turns, asked)
        old = node.history.turns[: node.length - node.waiting]
        if rules_of(self.version).reminds:
            summed = summed_up(old, len(asked) if node.results else 0)
        else:
            summed = split(old, kept(turns[:at]))
        call = self._call(replace(node, length=summed), entry)
        call.kind, call.first = "compaction", False
        self.calls.append(call)
        self._compaction(entry, payload(entry).get("info"), node.history.turns[:summed])
        history = History().until(0, (*turns, *(asked if at == len(turns) else ())))
        lost = (len(turns), len(history.turns))
        early = (min(at + len(asked), len(turns)), len(turns))
        segment = Segment(node.segment.number + 1, entry, lost, early)
        self.segments.append(segment)
        return replace(
            node,
            history=history,
            length=len(history.turns),
            segment=segment,
            results=False,
            waiting=0,
            call=None,
            sent=False,
            changed=False,
            follows=None,
            fresh=bool(asked),
        )

    def _compaction(self, entry: Entry, info: Any, dropped: Sequence[Turn]) -> None:
        told = info if isinstance(info, Mapping) else {}
        tokens = (whole(told.get("originalTokenCount")), whole(told.get("newTokenCount")))
        places = tuple(dict.fromkeys(p for t in dropped for p in t.places))
        where = f"replaced {messages(len(dropped))} by a summary"
        self.happened.append(Event("compaction", entry.place, where, len(self.calls), places, tokens))

    def _rewound(self, entry: Entry, node: Node) -> None:
        gone = self.tip.history.turns[node.length :] if self.tip.history is node.history else ()
        places = tuple(dict.fromkeys(p for t in gone for p in t.places))
        where = f"took back {messages(len(gone))}" if gone else "went back to an earlier message"
        self.happened.append(Event("rewind", entry.place, where, len(self.calls), places))


def replay(log: Log) -> Replay:
    """The session's chat, folded as far as it was read."""
    memo = shared_memo(log, "qwen.replay")
    known = memo.get("kept")
    if known is None or known[1] != log.rewrites:
        known = [Replay(), log.rewrites, 0]
        memo["kept"] = known
        for name in _MADE_OF_CALLS:
            log.memo.pop(name, None)
    found: Replay = known[0]
    for entry in log.entries[known[2] :]:
        if entry.source == SESSION and entry.kind != "gone" and entry.data:
            found.fold(entry)
    known[2] = len(log.entries)
    return found


def messages(count: int) -> str:
    """A number of messages in words."""
    return "a message" if count == 1 else f"{count} messages"


def _extended(node: Node, turn: Turn) -> tuple[History, int]:
    """The node's history with one more content: the same one where nothing else goes on from there."""
    history = node.history
    if len(history.turns) != node.length:
        history = history.until(node.length)
    history.append(turn)
    return history, len(history.turns)


def _parent(entry: Entry) -> str | None:
    name = entry.data.get("parentUuid")
    return name if isinstance(name, str) else None


def _size(entry: Entry) -> int:
    return len(entry.raw.decode("utf-8", "replace"))


def _prompt(answer: Entry) -> int | None:
    """Tokens of the prompt, as the answer reports them."""
    told = answer.data.get("usageMetadata")
    return whole(told.get("promptTokenCount")) if isinstance(told, Mapping) else None


def _told(told: Sequence[Mapping[str, Any]], answer: Entry) -> Mapping[str, Any]:
    """The telemetry of the reply an answer came in: of that before it the one with the same counts, else the last."""
    prompt = _prompt(answer)
    same = [t for t in told if prompt is not None and t.get("input_token_count") == prompt]
    return (same or list(told) or [{}])[-1]
