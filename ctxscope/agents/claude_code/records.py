"""The request records newer versions keep: bodies by the hashes of their messages (claude_code.md §4.1)."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import orjson

from ctxscope.agents import Log, shared_memo
from ctxscope.agents.claude_code.lines import SESSION
from ctxscope.agents.claude_code.messages import Unit, units_of
from ctxscope.agents.claude_code.texts import BILLING, mapped, spelled, string, text_block
from ctxscope.agents.claude_code.tree import Group, Node, Tree, tree
from ctxscope.model import Entry, Point
from ctxscope.wire import json_text

_UNDIGESTED = frozenset({"metadata", "stream", "thread", "diagnostics", "safeguards", "data_flow"})
_KEPT_LISTS = 32
"""Requests whose list of hashes is kept: each is as long as its conversation."""


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """A message that a hash stands for."""

    role: str
    blocks: Sequence[Mapping[str, Any]]
    units: tuple[Unit, ...] = ()
    """The transcript's blocks it was made of, one for each; none for one a record holds as it was sent."""
    entry: Entry | None = None
    """The record that holds it."""
    more: Mapping[str, Any] = field(default_factory=dict)
    """Members beside role and content."""


@dataclass(eq=False, slots=True, repr=False)
class Records:
    """All records so far, and the messages that can be found by hash."""

    tree: Tree
    upto: int = 0
    hashed: int = 0
    requests: dict[str, Entry] = field(default_factory=dict)
    shapes: dict[str, Entry] = field(default_factory=dict)
    pool: dict[str, Found] = field(default_factory=dict)
    lengths: dict[str, int | None] = field(default_factory=dict)
    lists: dict[str, tuple[str, ...]] = field(default_factory=dict)
    runs: dict[str, list[Node]] = field(default_factory=dict)
    """By source, the user lines since its last answer."""

    def take(self, entry: Entry) -> None:
        """Add a line outside the chain."""
        data = entry.data if entry.kind.startswith("api-request") else {}
        if entry.kind == "api-request" and string(data.get("id")):
            self.requests[data["id"]] = entry
        elif entry.kind == "api-request-shape" and string(data.get("shapeHash")):
            self.shapes[data["shapeHash"]] = entry
        elif entry.kind == "api-request-blob" and string(data.get("hash")):
            message = mapped(data.get("message"))
            role, content = string(message.get("role")), message.get("content")
            blocks = [text_block(content)] if isinstance(content, str) else content
            if role and isinstance(blocks, list) and all(isinstance(b, dict) for b in blocks):
                more = {k: v for k, v in message.items() if k not in ("role", "content")}
                self.pool.setdefault(data["hash"], Found(role, blocks, (), entry, more))

    def hash_lines(self, upto: int) -> None:
        """Add the messages that lines of the transcript make, in file order: answers, runs of user lines, results."""
        for node in self.tree.order[self.hashed : upto]:
            if node.entry.kind not in ("user", "assistant"):
                continue
            run = self.runs.setdefault(node.entry.source, [])
            if node.entry.kind == "user":
                run.append(node)
                self._add("user", run)
                for use in node.head.results[:1]:
                    self._results(self.tree.uses.get(use))
            else:
                run.clear()
                if node.group is not None and node.group.nodes[-1] is node:
                    self._add("assistant", node.group.nodes)
        self.hashed = upto

    def _results(self, group: Group | None) -> None:
        """Add the message with the results of one answer's calls, in the order of the calls."""
        uses = group.uses if group is not None else []
        nodes = [n for use in uses if group and (n := self.tree.result(group.thread, use)) is not None]
        if len(nodes) > 1:
            self._add("user", list(dict.fromkeys(nodes)))

    def _add(self, role: str, nodes: Sequence[Node]) -> None:
        units = tuple(u for n in nodes for u in units_of(n))
        blocks = [u.block for u in units]
        name = digest({"role": role, "content": blocks})
        self.pool.setdefault(name, Found(role, blocks, units))

    def length(self, name: str) -> int | None:
        """How many messages a request has; ``None`` where a record it builds on is missing or no record at all."""
        waiting: list[str] = []
        at: str | None = name
        while at is not None and at not in self.lengths:
            if at in waiting or at not in self.requests:
                return None  # asked again: the record may come yet
            waiting.append(at)
            at = _base(self.requests[at])
        for each in reversed(waiting):
            entry = self.requests[each]
            base, tail = _base(entry), entry.data.get("tail")
            before = self.lengths[base] if base is not None else 0
            keep = _keep(entry) if base is not None else 0
            known = isinstance(tail, list) and all(isinstance(t, str) for t in tail)
            fits = known and before is not None and before >= keep
            self.lengths[each] = keep + len(tail) if fits and isinstance(tail, list) else None
        return self.lengths.get(name)

    def hashes(self, name: str) -> tuple[str, ...] | None:
        """Hashes of a request's messages; ``None`` as for ``length``."""
        length = self.length(name)
        if length is None:
            return None
        if name not in self.lists:
            self.lists[name] = self._list(name, length)
            while len(self.lists) > _KEPT_LISTS:
                del self.lists[next(iter(self.lists))]
        return self.lists[name]

    def _list(self, name: str, limit: int) -> tuple[str, ...]:
        """The hashes, put together from the tails back to a request that is known or builds on none."""
        parts: list[Sequence[str]] = []
        at: str | None = name
        while at is not None and limit:
            if at in self.lists:
                parts.append(self.lists[at][:limit])
                break
            entry = self.requests[at]
            at = _base(entry)
            keep = _keep(entry) if at is not None else 0
            if limit > keep:
                parts.append(entry.data["tail"][: limit - keep])
            limit = min(limit, keep)
        return tuple(chain.from_iterable(reversed(parts)))


def _base(entry: Entry) -> str | None:
    """The request a record builds on; with nothing kept of it, it builds on none."""
    base = entry.data.get("base")
    return base if isinstance(base, str) and _keep(entry) else None


def _keep(entry: Entry) -> int:
    keep = entry.data.get("keep")
    return keep if isinstance(keep, int) and keep > 0 else 0


def records(log: Log) -> Records:
    """The records of a log, as far as it was read."""
    grown = tree(log)
    memo = shared_memo(log, "claude_code.records")
    found: Records | None = memo.get("records")
    if found is None or found.tree is not grown:
        memo["records"] = found = Records(grown)
    for entry in grown.others[found.upto :]:
        found.take(entry)
    found.upto = len(grown.others)
    return found


def record_of(log: Log, point: Point) -> Entry | None:
    """The record of a call's request: the one its answer names; for a call not answered yet the last of its thread."""
    found = records(log)
    ref = point.data.get("ref")
    if isinstance(ref, str) and ref:
        entry = found.requests.get(ref)
        return entry if entry is not None and found.length(ref) is not None else None
    if point.answer is not None:
        return None
    return _open_record(found, point)


def _open_record(found: Records, point: Point) -> Entry | None:
    """The newest record of the thread, if it was written behind the line that waits, and before the one that gave up."""
    agent = str(point.data.get("agent") or "")
    source = SESSION if not agent else f"agent:{agent}"
    behind = point.data.get("behind")
    last = behind.entry.place.number if isinstance(behind, Node) else None
    for entry in reversed(found.requests.values()):
        if entry.source == source and (last is None or entry.place.number < last):
            later = entry.place.log == point.place.log and entry.place.number > point.place.number
            return entry if later and found.length(entry.data["id"]) is not None else None
    return None


def digest(value: Any) -> str:
    """sha256 over JSON with sorted keys, cache marks left out."""
    return hashlib.sha256(canonical(without_marks(value))).hexdigest()


def request_digest(body: bytes, betas: Any) -> str | None:
    """The digest a record keeps of its request, out of a body (§4.1); ``None`` for what is no JSON object.

    Ids and transport are left out, the betas of the header are in, texts are blocks, cache marks stay.
    """
    try:
        value = json_text.loads(body)
    except ValueError:
        return None
    if not isinstance(value, dict):
        return None
    kept = {k: v for k, v in value.items() if k not in _UNDIGESTED}
    if isinstance(kept.get("system"), list):
        kept["system"] = [b for b in kept["system"] if not string(mapped(b).get("text")).startswith(BILLING)]
    if isinstance(kept.get("messages"), list):
        kept["messages"] = [_listed(m) for m in kept["messages"]]
    return hashlib.sha256(canonical({**kept, "betas": betas})).hexdigest()


def _listed(message: Any) -> Any:
    content = mapped(message).get("content")
    return {**message, "content": [text_block(content)]} if isinstance(content, str) else message


def canonical(value: Any) -> bytes:
    """Compact JSON, keys sorted, raw UTF-8."""
    try:
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    except TypeError:  # lone surrogates, which orjson refuses
        return spelled(_sorted(value))


def _sorted(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {k: _sorted(value[k]) for k in sorted(value)}
    return [_sorted(v) for v in value] if isinstance(value, list) else value


def without_marks(value: Any) -> Any:
    """A value without any cache mark in it."""
    if isinstance(value, dict):
        return {k: without_marks(v) for k, v in value.items() if k != "cache_control"}
    return [without_marks(v) for v in value] if isinstance(value, list) else value
