"""Where pi must have called a model: one point per answer, and one for a last message still waiting (pi.md §4.1, §7)."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

from ctxscope.agents import Log, shared_memo
from ctxscope.agents.pi import texts
from ctxscope.agents.pi.disk import session_id
from ctxscope.agents.pi.responses import signed
from ctxscope.agents.pi.tree import Node, Tree, asked, descends, newer, path, tree
from ctxscope.model import ApiName, Block, Entry, Place, Point, Stop, StopState, Usage
from ctxscope.wire import json_text

API_NAMES: Mapping[str, ApiName] = {
    "anthropic-messages": "anthropic-messages",
    "openai-completions": "openai-chat",
    "openai-responses": "openai-responses",
    "google-generative-ai": "gemini",
}
"""Our name of each API, by pi's."""
_STOPS: Mapping[str, StopState] = {
    "stop": "complete",
    "toolUse": "complete",
    "length": "truncated",
    "error": "error",
    "aborted": "incomplete",
}
"""pi.md §3."""
_BESIDE = {"label", "session_info", "usage"}
"""Entries that tell nothing of whether a request is still due."""
TOGETHER_SECONDS = 1.0
"""Two user messages logged this close were delivered together (steering), not one after a call that never answered."""


def requests(log: Log) -> Sequence[Point]:
    """Points in file order; the lineage of each follows from where the file's last entry stands."""
    found: Sequence[Point] | None = log.memo.get("points")
    if found is None:
        log.memo["points"] = found = _points(tree(log), shared_memo(log, "pi.points"))
    return found


def node_of(log: Log, point: Point) -> Node | None:
    """The node whose context a point's request was made of."""
    grown = tree(log)
    if point.answer is not None:
        node = grown.nodes.get(point.answer.key)
        return node.parent if node else None
    return grown.nodes.get(point.key.removeprefix("after:"))


def level_of(point: Point) -> str:
    """The thinking level a request was made with."""
    return str(point.data["thinkingLevel"])


def session_of(log: Log, point: Point) -> tuple[str, Place | None]:
    """Id of the session that made a call, and where it stands: a fork's copied calls were made by its parent."""
    grown = tree(log)
    name = grown.header.get("id")
    if point.data.get("copied"):
        name = session_id(str(grown.header.get("parentSession")))
    return str(name or log.ref.id), grown.header_place


def error_line(log: Log, point: Point) -> str | None:
    """What pi wrote of a call that failed, or of one an abort came before; ``None`` when it wrote nothing."""
    grown = tree(log)
    nodes = [grown.nodes.get(point.key.removeprefix("after:"))]
    if point.answer is None:
        nodes = [n for n in grown.order if n.parent is not None and n.parent is nodes[0]]
    for node in nodes:
        message = node.entry.data.get("message") if node else None
        words = message.get("errorMessage") if isinstance(message, Mapping) else None
        if isinstance(words, str) and words:
            return words
    return None


def _points(grown: Tree, made: dict[Any, Any]) -> list[Point]:
    """``made`` keeps the answered points by node: what stands behind a node never changes."""
    lineages = _Lineages(grown)
    children: dict[int, list[Node]] = {}
    for node in grown.order:
        if node.parent is not None and node.there:
            children.setdefault(node.parent.number, []).append(node)
    found: list[Point] = []
    for node in grown.order:
        if node.entry.kind == "assistant" and isinstance(node.entry.data.get("message"), Mapping):
            if asked(node.entry):
                placed = lineages.of(node, node.parent.call if node.parent else None)
                if (node, placed) not in made:
                    made[node, placed] = _answered(grown, node, *placed)
                found.append(made[node, placed])
        elif waits := _waits(grown, node, children):
            found.append(_open(grown, node, lineages, dead=waits == "dead"))
    return found


class _Lineages:
    """Lineage and branch of each point: ``main`` is the path to the file's last entry."""

    def __init__(self, grown: Tree) -> None:
        self._main = {n.number for n in path(grown.last)}
        self._branches: dict[int, int] = {}
        self._last_of: set[int] = set()
        self._grown = grown
        self._forked = bool(grown.header.get("parentSession"))
        """Whether the first call of the fork's own is still to come; it left the last one copied."""

    def of(self, node: Node, before: Node | None) -> tuple[str, str | None]:
        """Lineage of the point at ``node`` and the key of the point it left for a branch, if it did."""
        left = before is not None and before.number in self._last_of
        if before is not None and node.there:
            self._last_of.add(before.number)
        if self._forked and not _copied(self._grown, node.entry):
            left, self._forked = True, False
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


def _waits(grown: Tree, node: Node, children: Mapping[int, list[Node]]) -> str | None:
    """``open`` where a request is out or due, ``dead`` where a user message never got its call, else ``None``."""
    if node.entry.kind not in {"user", "toolResult"}:
        return None
    if not node.there or not _settled(node):
        return None
    line, front = [], list(children.get(node.number, ()))
    while front:
        step = front.pop()
        if step.entry.kind == "assistant" and asked(step.entry):
            return None
        if step.entry.kind in {"user", "toolResult"}:
            line.append(step)
        elif step.entry.kind != "assistant":
            front += children.get(step.number, ())
    last = next((n for n in reversed(grown.order) if n.there and n.entry.kind not in _BESIDE), None)
    if last is not None and descends(last, node) and not line and last.entry.kind != "assistant":
        return "open"
    if node.entry.kind != "user":
        return None
    return None if any(_together(node.entry, s.entry) for s in line) else "dead"


def _together(first: Entry, second: Entry) -> bool:
    return first.time is not None and second.time is not None and abs(second.time - first.time) < TOGETHER_SECONDS


def _settled(node: Node) -> bool:
    """Whether every tool call of the last answer has its result: only then is the next request due."""
    missing: set[str] = set()
    for step in path(node):
        message = step.entry.data.get("message")
        if step.entry.kind == "toolResult" and isinstance(message, Mapping):
            missing.add(str(message.get("toolCallId")))
        elif step.entry.kind == "assistant" and isinstance(message, Mapping):
            calls = {str(b.get("id")) for b in texts.blocks(message.get("content")) if b.get("type") == "toolCall"}
            return node.entry.kind == "user" or calls <= missing
        elif step.entry.kind == "user":
            return True
    return True


def _answered(grown: Tree, node: Node, lineage: str, branched: str | None) -> Point:
    message = node.entry.data["message"]
    parent = node.parent
    stored, response = blocks(message), message.get("responseId")
    calls = {b.id for b in stored if b.kind == "tool_call" and b.id}
    return Point(
        key=node.entry.key,
        place=node.entry.place,
        context=parent.trail.context(parent.length) if parent else (),
        answer=node.entry,
        ids=frozenset(calls | ({response} if isinstance(response, str) and response else set())),
        turn=parent.turn if parent else 0,
        order=(float(node.number), 0),
        time=node.entry.time,
        lineage=lineage,
        branched_from=branched,
        blocks=stored,
        stop=_stop(message),
        api=API_NAMES.get(str(message.get("api"))),
        data=_notes(grown, parent, message, node.entry),
        stored_usage=usage(message),
    )


def _open(grown: Tree, node: Node, lineages: _Lineages, *, dead: bool) -> Point:
    lineage, branched = lineages.of(node, node.call)
    notes = _notes(grown, node, {}, node.entry)
    return Point(
        key=f"after:{node.entry.key}",
        place=node.entry.place,
        context=node.trail.context(node.length),
        answer=None,
        turn=node.turn,
        order=(float(node.number), 1),
        time=node.entry.time,
        lineage=lineage,
        branched_from=branched,
        data={**notes, "dead": True} if dead else notes,
    )


def _notes(grown: Tree, node: Node | None, message: Mapping[str, Any], entry: Entry) -> dict[str, Any]:
    """What rebuilding needs beside the context: API, provider, model, level, version."""
    provider, model = (message.get("provider"), message.get("model"))
    place = entry.place
    if not message and node and node.model:
        (provider, model), place = node.model, node.model_place or place
    return {
        "api": message.get("api") or _api_before(node, provider, model),
        "provider": provider,
        "model": model,
        "model_place": place,
        "thinkingLevel": node.level if node else "off",
        "level_place": node.level_place if node else None,
        "version": _version(node, entry if message else None),
        "copied": _copied(grown, entry),
    }


def _copied(grown: Tree, entry: Entry) -> bool:
    """Whether a fork took an entry over from the session it forked."""
    started = grown.header.get("timestamp")
    forked = grown.header.get("parentSession") and isinstance(started, str)
    return bool(forked and str(entry.data.get("timestamp")) < str(started))


def _api_before(node: Node | None, provider: Any, model: Any) -> str | None:
    """The API the same model last spoke on this path, for a call whose answer is not logged yet."""
    call = node.call if node else None
    while call is not None:
        message = call.entry.data.get("message") or {}
        if (message.get("provider"), message.get("model")) == (provider, model):
            return str(message.get("api"))
        call = call.parent.call if call.parent else None
    return None


def _version(node: Node | None, answer: Entry | None) -> str:
    """``1.x`` when the path or the answer holds what only 1.x writes, else ``0.73``."""
    if node and (node.trail.heads[node.length].tools or node.trail.heads[node.length].parts()):
        return "1.x"
    answer = answer or (node.call.entry if node and node.call else None)
    return "1.x" if answer is not None and newer(answer) else "0.73"


def _stop(message: Mapping[str, Any]) -> Stop | None:
    """Why an answer ended, in the provider's word where 1.x stores it."""
    reason, raw = message.get("stopReason"), message.get("rawStopReason")
    if not isinstance(reason, str):
        return None
    return Stop(raw if isinstance(raw, str) and raw else reason, _STOPS.get(reason, "unknown"))


_ZERO_IS_SAID: Mapping[str, frozenset[str]] = {
    "anthropic-messages": frozenset({"cacheRead", "cacheWrite"}),
    "openai-responses": frozenset({"cacheRead"}),
}
"""Fields of an API's usage that are always there: pi stores 0 for what a reply leaves out, too."""


def usage(message: Mapping[str, Any]) -> Usage | None:
    """Usage as the answer stores it; ``None`` where nothing was reported (pi stores zeros then)."""
    stored = message.get("usage")
    if not isinstance(stored, Mapping) or not any(
        stored.get(k) for k in ("input", "output", "cacheRead", "cacheWrite")
    ):
        return None

    said = _ZERO_IS_SAID.get(str(message.get("api")), frozenset())

    def number(key: str) -> int | None:
        value = stored.get(key)
        if (
            not isinstance(value, int | float)
            or not abs(value) <= sys.float_info.max
            or (not value and key.startswith("cache") and key not in said)
        ):
            return None
        return int(value)

    return Usage(number("input"), number("cacheRead"), number("cacheWrite"), number("output"), number("reasoning"))


def blocks(message: Mapping[str, Any]) -> tuple[Block, ...]:
    """An answer as stored, in the form common to all APIs."""
    api = str(message.get("api"))
    return tuple(found for b in texts.blocks(message.get("content")) for found in _blocks(b, api))


def _blocks(block: Mapping[str, Any], api: str) -> list[Block]:
    kind = block.get("type")
    if kind == "text":
        item = signed(texts.string(block.get("textSignature")))[0] if api == "openai-responses" else ""
        return [Block("text", texts.string(block.get("text")), item_id=item)]
    if kind == "thinking":
        return _thinking(texts.string(block.get("thinking")), texts.string(block.get("thinkingSignature")), api)
    if kind == "toolCall":
        arguments = json_text.js(_sorted(block.get("arguments")))
        name, (call, _, item) = texts.string(block.get("name")), texts.string(block.get("id")).partition("|")
        return [Block("tool_call", arguments, call, name, texts.string(block.get("thoughtSignature")), item_id=item)]
    return [Block("other")]


def _sorted(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {k: _sorted(value[k]) for k in sorted(value)}
    return [_sorted(v) for v in value] if isinstance(value, list) else value


def _thinking(thought: str, signature: str, api: str) -> list[Block]:
    """Thinking with its opaque bytes; OpenAI's APIs keep whole items, or the name of a field, as the signature."""
    if api not in {"openai-responses", "openai-completions"}:
        return [Block("thinking", thought, envelope=signature)]
    try:
        item = json_text.loads(signature)
    except ValueError:
        item = None
    if isinstance(item, dict):
        name, envelope = texts.string(item.get("id")), texts.string(item.get("encrypted_content"))
        return [Block("thinking", thought, envelope=envelope, item_id=name)]
    if isinstance(item, list):
        return [_detail(d) for d in item if isinstance(d, Mapping)]
    return [Block("thinking", thought)]


def _detail(detail: Mapping[str, Any]) -> Block:
    """One entry of reasoning_details as a block."""
    thought = texts.string(detail.get("text")) or texts.string(detail.get("summary"))
    envelope = texts.string(detail.get("signature")) or texts.string(detail.get("data"))
    return Block("thinking", thought, envelope=envelope)
