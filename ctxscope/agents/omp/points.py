"""Where omp must have called a model: a point per answer, one for a message still waiting, one per logged side call.

An answer persisted again as a sibling (omp.md §3) is one answer, hence one point.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ctxscope.agents import Log
from ctxscope.agents.omp.answers import asked, together
from ctxscope.agents.omp.disk import subagent
from ctxscope.agents.omp.lines import finite
from ctxscope.agents.omp.trail import Trail
from ctxscope.agents.omp.tree import Node, Tree, descends, path, tree
from ctxscope.agents.pi.disk import session_id
from ctxscope.agents.pi.points import API_NAMES, usage
from ctxscope.agents.pi.points import blocks as stored_blocks
from ctxscope.agents.pi.texts import blocks, string
from ctxscope.model import Block, Entry, Place, Point, Stop, StopState, Usage

_STOPS: Mapping[str, StopState] = {
    "stop": "complete",
    "toolUse": "complete",
    "length": "truncated",
    "error": "error",
    "aborted": "incomplete",
}
_BESIDE = {
    *("label", "title_change", "custom", "model_usage", "mode_change", "credential_pin", "ttsr_injection"),
    *("service_tier_change", "unknown", "session_init", "model_change", "thinking_level_change"),
}
"""Entries that tell nothing of whether a request is still due."""
_INPUT = {"user", "toolResult", "custom_message", "developer"}
"""Entries that a request may answer."""


def requests(log: Log) -> list[Point]:
    """Points in the order logged; the lineage of each follows from where the file's last entry stands."""
    found: list[Point] | None = log.memo.get("points")
    if found is None:
        grown = tree(log)
        found = _points(grown, grown.memo.setdefault("points", {}))
        name = subagent(log.ref.paths[0])
        log.memo["points"] = found = [_started(p, name) for p in found] if name else found
    return found


def _started(point: Point, name: str) -> Point:
    """A call of a subagent, in a lineage of its name."""
    if point.kind != "main":
        return point
    lineage = f"sub:{name}" if point.lineage == "main" else f"sub:{name}/{point.lineage}"
    return replace(point, kind="subagent", lineage=lineage)


def node_of(log: Log, point: Point) -> Node | None:
    """The node of a point's answer, or of the message that waits."""
    return tree(log).nodes.get(point.key.removeprefix("after:"))


def context_of(log: Log, point: Point) -> tuple[Trail, int] | None:
    """The context a point's request was made of; ``None`` for a side call, of which the log says nothing."""
    node = node_of(log, point)
    if node is None or point.kind == "side":
        return None
    return node.before if point.answer is not None else tree(log).now(node)


def session_of(log: Log, point: Point) -> tuple[str, Place | None]:
    """Id of the session that made a call, and where it stands: a fork's copied calls were made by its parent."""
    grown = tree(log)
    name = grown.header.get("id")
    if point.data.get("copied"):
        name = session_id(str(grown.header.get("parentSession")))
    return str(name or log.ref.id), grown.header_place


def error_line(log: Log, point: Point) -> str | None:
    """What omp wrote of a call that failed, or of one an abort came before; ``None`` when it wrote nothing."""
    node = node_of(log, point)
    nodes = [node]
    if point.answer is None:
        nodes = [n for n in tree(log).order if n.parent is not None and n.parent is node]
    for found in nodes:
        message = found.entry.data.get("message") if found else None
        words = message.get("errorMessage") if isinstance(message, Mapping) else None
        if isinstance(words, str) and words:
            return words
    return None


def _points(grown: Tree, made: dict[Any, Point]) -> list[Point]:
    """``made`` keeps answered points: what stands behind a node never changes."""
    lineages = _Lineages(grown)
    children: dict[int, list[Node]] = {}
    for node in grown.order:
        if node.parent is not None:
            children.setdefault(node.parent.number, []).append(node)
    found: list[Point] = []
    for node in grown.order:
        kind = node.entry.kind
        if kind == "assistant" and isinstance(node.entry.data.get("message"), Mapping):
            if node.twin is None and asked(node.entry):
                placed = lineages.of(node, node.parent.call if node.parent else None)
                key = (node.number, placed, node.entry)
                if key not in made:
                    made[key] = _answered(grown, node, *placed)
                found.append(made[key])
        elif kind == "model_usage":
            found.append(_side(node))
        elif waits := _waits(grown, node, children):
            found.append(_open(grown, node, lineages, dead=waits == "dead"))
    return found


class _Lineages:
    """Lineage and branch of each point: ``main`` is the path to the file's last entry."""

    def __init__(self, grown: Tree) -> None:
        tip = list(path(_tip(grown)))
        self._main = {n.number for n in tip} | {n.twin.number for n in tip if n.twin is not None}
        self._branches: dict[int, int] = {}
        self._last_of: set[int] = set()
        self._grown = grown
        self._forked = bool(grown.header.get("parentSession"))
        """Whether the first call of the fork's own is still to come; it left the last one copied."""

    def of(self, node: Node, before: Node | None) -> tuple[str, str | None]:
        """Lineage of the point at ``node`` and the key of the point it left for a branch, if it did."""
        before = (before.twin or before) if before is not None else None
        left = before is not None and before.number in self._last_of
        if before is not None:
            self._last_of.add(before.number)
        if self._forked and not copied(self._grown, node.entry):
            left, self._forked = before is not None, False
        branched = before.entry.key if left and before is not None else None
        if node.number in self._main:
            return "main", branched
        first = node
        for step in path(node):
            if step.number in self._main:
                break
            if step.number in self._branches:
                return f"branch:{self._branches[step.number]}", branched
            first = step
        number = self._branches.setdefault(first.number, len(self._branches) + 1)
        return f"branch:{number}", branched


def _tip(grown: Tree) -> Node | None:
    """Where the file's conversation stands: its last entry, a call beside it left out."""
    return next((n for n in reversed(grown.order) if n.entry.kind != "model_usage"), None)


def copied(grown: Tree, entry: Entry) -> bool:
    """Whether a fork took an entry over from the session it forked."""
    started = grown.header.get("timestamp")
    forked = grown.header.get("parentSession") and isinstance(started, str)
    return bool(forked and str(entry.data.get("timestamp")) < str(started))


def _waits(grown: Tree, node: Node, children: Mapping[int, list[Node]]) -> str | None:
    """``open`` where a request is out or due, ``dead`` where a user message never got its call, else ``None``."""
    if node.entry.kind not in _INPUT or not _settled(node) or not (node.own or node.entry.kind == "toolResult"):
        return None
    line, front = [], list(children.get(node.number, ()))
    while front:
        step = front.pop()
        if step.entry.kind == "assistant" and asked(step.entry):
            return None
        if step.entry.kind in _INPUT:
            line.append(step)
        if step.entry.kind not in {"assistant", "user", "toolResult"}:
            front += children.get(step.number, ())
    last = next((n for n in reversed(grown.order) if n.entry.kind not in _BESIDE), None)
    ended = grown.order[-1].entry.data.get("customType") == "session_exit"
    if last is not None and descends(last, node) and not line and last.entry.kind != "assistant" and not ended:
        return "open"
    if node.entry.kind != "user" or (line and not any(s.entry.kind == "user" for s in line)):
        return None
    return None if any(together(node.entry, s.entry) for s in line) else "dead"


def _settled(node: Node) -> bool:
    """Whether every tool call of the last answer has its result: only then is the next request due."""
    seen: set[str] = set()
    for step in path(node):
        message = step.entry.data.get("message")
        if step.entry.kind == "toolResult" and isinstance(message, Mapping):
            seen.add(string(message.get("toolCallId")))
        elif step.entry.kind == "assistant" and isinstance(message, Mapping):
            calls = {string(b.get("id")) for b in blocks(message.get("content")) if b.get("type") == "toolCall"}
            return node.entry.kind != "toolResult" or calls <= seen
        elif step.entry.kind == "user":
            return True
    return True


def _answered(grown: Tree, node: Node, lineage: str, branched: str | None) -> Point:
    message = node.entry.data["message"]
    trail, length = node.before or (Trail(), 0)
    stored, response = _stored(message), message.get("responseId")
    calls = {b.id for b in stored if b.kind == "tool_call" and b.id}
    return Point(
        key=node.entry.key,
        place=node.entry.place,
        context=trail.context(length),
        answer=node.entry,
        ids=frozenset(calls | ({response} if isinstance(response, str) and response else set())),
        turn=node.turn,
        order=(float(node.number), 0),
        time=node.entry.time,
        lineage=lineage,
        branched_from=branched,
        blocks=stored,
        stop=_stop(message),
        api=API_NAMES.get(str(message.get("api"))),
        data=_notes(grown, node, message),
        stored_usage=usage_of(message),
    )


def _stored(message: Mapping[str, Any]) -> tuple[Block, ...]:
    """An answer as stored; of Responses the opaque reasoning stands in the items kept for replay."""
    found = stored_blocks({**message, "content": [_as_pi(b) for b in blocks(message.get("content"))]})
    payload = message.get("providerPayload")
    items = payload.get("items") if isinstance(payload, Mapping) else None
    if message.get("api") != "openai-responses" or not isinstance(items, list):
        return found
    thoughts = [i for i in items if isinstance(i, Mapping) and i.get("type") == "reasoning"]
    out: list[Block] = []
    for block in found:
        if block.kind == "thinking" and thoughts and not block.envelope:
            item = thoughts.pop(0)
            text = block.text.removesuffix("\n\n")
            envelope = string(item.get("encrypted_content"))
            out.append(replace(block, text=text, envelope=envelope, item_id=string(item.get("id"))))
        else:
            out.append(block)
    return tuple(out)


def _as_pi(block: Mapping[str, Any]) -> Mapping[str, Any]:
    """Redacted thinking as pi stores it."""
    if block.get("type") != "redactedThinking":
        return block
    return {"type": "thinking", "thinking": "", "thinkingSignature": block.get("data"), "redacted": True}


def usage_of(message: Mapping[str, Any]) -> Usage | None:
    """Usage as an answer or a side call stores it; omp's name for tokens thought differs from pi's."""
    stored = message.get("usage")
    if not isinstance(stored, Mapping):
        return None
    numbers = {k: v for k, v in stored.items() if finite(v) is not None}
    if "reasoningTokens" in numbers:
        numbers["reasoning"] = numbers["reasoningTokens"]
    return usage({**message, "usage": numbers})


def _side(node: Node) -> Point:
    """A call that omp made beside the conversation and of which it logs the tokens alone."""
    data = node.entry.data
    return Point(
        key=node.entry.key,
        place=node.entry.place,
        context=(),
        answer=node.entry,
        turn=node.turn,
        order=(float(node.number), 0),
        time=node.entry.time,
        kind="side",
        lineage="side",
        stop=_stop(data),
        api=API_NAMES.get(str(data.get("api"))),
        data={k: data.get(k) for k in ("api", "provider", "model", "purpose")} | {"thinkingLevel": "off"},
        stored_usage=usage_of(data),
    )


def _open(grown: Tree, node: Node, lineages: _Lineages, *, dead: bool) -> Point:
    lineage, branched = lineages.of(node, node.call)
    trail, length = grown.now(node)
    notes = _notes(grown, node, {})
    return Point(
        key=f"after:{node.entry.key}",
        place=node.entry.place,
        context=trail.context(length),
        answer=None,
        turn=node.turn,
        order=(float(node.number), 1),
        time=node.entry.time,
        lineage=lineage,
        branched_from=branched,
        data={**notes, "dead": True} if dead else notes,
    )


def _notes(grown: Tree, node: Node, message: Mapping[str, Any]) -> dict[str, Any]:
    """What rebuilding needs beside the context: API, provider, model, level."""
    provider, model = message.get("provider"), message.get("model")
    place = node.entry.place
    if not message and node.model:
        (provider, model), place = node.model, node.model_place or place
    return {
        "api": message.get("api") or _api_before(node, provider, model),
        "provider": provider,
        "model": model,
        "model_place": place,
        "thinkingLevel": node.level,
        "level_place": node.level_place,
        "copied": copied(grown, node.entry),
    }


def _api_before(node: Node, provider: Any, model: Any) -> str | None:
    """The API the same model last spoke on this path, for a call whose answer is not logged yet."""
    call = node.call
    while call is not None:
        message = call.entry.data.get("message")
        if isinstance(message, Mapping) and (message.get("provider"), message.get("model")) == (provider, model):
            return str(message.get("api"))
        call = call.parent.call if call.parent else None
    return None


def received(block: Block) -> Block:
    """A block as delivered or sent, under the name omp stores: without Claude Code's prefix of a tool."""
    return replace(block, name=block.name.removeprefix("_")) if block.name.startswith("_") else block


def _stop(message: Mapping[str, Any]) -> Stop | None:
    reason = message.get("stopReason")
    return Stop(reason, _STOPS.get(reason, "unknown")) if isinstance(reason, str) else None
