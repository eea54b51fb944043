"""Where a compaction of omp's divides what it summarises from the tail it keeps (omp.md §5).

Source of the rule: the compaction of 18.2.3, read; releases before 18.2 cut otherwise. To the message like the two recorded
compactions of a model whose tokens omp estimates; models it counts with a tokenizer of their family are not reproduced.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ctxscope.agents.omp.estimate import fragment, of_item
from ctxscope.agents.omp.items import FAILED, Item
from ctxscope.agents.omp.lines import finite, stamp
from ctxscope.agents.omp.tree import Node, Rewrite, Tree, path
from ctxscope.agents.pi.texts import blocks, string
from ctxscope.model import Entry, Place
from ctxscope.wire.json_text import js

VERSION = "18.2"
_ROLES = frozenset({"user", "developer", "assistant", "toolResult", "custom", "hookMessage"})
"""Whose content counts; of other messages nothing but a command with its output, and a summary."""
_CUTTABLE = frozenset({"user", "assistant", "bashExecution", "hookMessage", "branchSummary", "compactionSummary"})
_REMOTE = frozenset({"openaiRemoteCompaction", "anthropicCompaction"})
"""Keys of history that a provider keeps: what the next compaction then begins with depends on the model in use."""


@dataclass(frozen=True, slots=True)
class Step:
    """One message that the walk passes, by omp's estimator."""

    tokens: int
    envelope: int = 0
    """Of them those of opaque reasoning bytes."""
    cuttable: bool = True
    """The tail may begin with it."""
    shown: bool = True
    """It is one of the messages of the history that a model is given."""

    def size(self, *, bare: bool) -> int:
        """Its tokens; ``bare``: as if it held no envelope."""
        return self.tokens - self.envelope if bare else self.tokens


def budget_of(steps: Sequence[Step], keep: int, prompt: float | None, *, bare: bool = False) -> int:
    """Tokens of the tail: ``keepRecentTokens``, made smaller where a provider reported more than omp estimates.

    floor(keep ÷ (``prompt`` ÷ tokens of all steps)), at least 1, where that ratio is above 1; ``prompt`` is what the last
    answer's request was billed for, ``None`` where no answer tells.
    """
    estimated = sum(step.size(bare=bare) for step in steps)
    if prompt is None or estimated <= 0 or prompt / estimated <= 1:
        return keep
    return max(1, math.floor(keep / (prompt / estimated)))


def cut_of(steps: Sequence[Step], budget: int, *, bare: bool = False) -> int:
    """How many of the messages shown lie before the tail.

    From the newest message back, groups (what may begin a tail, with all that follows it up to the next such message) are
    added as long as their sum is no more than the budget. The newest group is always kept. A tail may begin inside a turn.
    """
    starts = [i for i, step in enumerate(steps) if step.cuttable]
    if not starts:
        return 0
    cut, total, end = starts[-1], 0, len(steps)
    for start in reversed(starts):
        total += sum(step.size(bare=bare) for step in steps[start:end])
        if total > budget:
            break
        cut = end = start
    return sum(step.shown for step in steps[:cut])


def steps_of(grown: Tree, compaction: Node, shown: frozenset[Place]) -> list[Step] | None:
    """The messages it walked over, oldest first, in the versions of its time; ``None`` where that is not reproduced.

    They are those behind the summary of the compaction before, or behind a reset where that came later, with those that
    the compaction before had kept. ``shown``: where the messages of the history stand.
    """
    nodes = [*path(compaction.parent)][::-1]
    reset = max((i for i, n in enumerate(nodes) if n.entry.kind == "reset_boundary"), default=-1)
    last = max((i for i, n in enumerate(nodes) if n.entry.kind == "compaction"), default=-1)
    if last > reset:
        before = nodes[last].entry.data
        preserved = before.get("preserveData")
        if isinstance(preserved, Mapping) and _REMOTE & preserved.keys():
            return None
        first = before.get("firstKeptEntryId")
        nodes = nodes[next((i for i in range(reset + 1, last) if nodes[i].entry.key == first), last + 1) :]
    else:
        nodes = nodes[reset + 1 :]
    written: dict[int, list[Rewrite]] = {}
    for rewrite in grown.rewrites:
        written.setdefault(rewrite.node.number, []).append(rewrite)
    versions = ((node, _version(node, written.get(node.number, ()), compaction)) for node in nodes)
    return [step for node, entry in versions for step in _steps(entry, node.run == compaction.run, shown)]


def prompt_of(last: Node) -> float | None:
    """Tokens that the request of the last answer which did not fail was billed for; ``None`` where none tells."""
    usage = _usage(last)
    if usage is None:
        return None
    if "contextTokens" in usage:
        return max(0.0, usage["contextTokens"])
    prompt = sum(usage.get(name, 0.0) for name in ("input", "cacheRead", "cacheWrite"))
    return prompt if prompt > 0 else context_of(last)


def context_of(last: Node) -> float:
    """Tokens that omp notes as those before a compaction: all that the last answer reported, its output too; 0 without one."""
    usage = _usage(last) or {}
    if "contextTokens" in usage:
        return max(0.0, usage["contextTokens"])
    parts = sum(usage.get(name, 0.0) for name in ("input", "output", "cacheRead", "cacheWrite"))
    apart = sum(usage.get(f"orchestration {name}", 0.0) for name in ("input", "output", "cacheRead"))
    return max(0.0, (usage.get("totalTokens") or parts) - apart)


def _usage(last: Node) -> dict[str, float] | None:
    """The numbers of the last usage on a path, of an answer that did not fail."""
    for node in path(last):
        message = node.entry.data.get("message")
        if node.entry.kind != "assistant" or not isinstance(message, Mapping) or message.get("stopReason") in FAILED:
            continue
        usage = message.get("usage")
        if isinstance(usage, Mapping):
            apart = usage.get("orchestration")
            told = {f"orchestration {k}": v for k, v in apart.items()} if isinstance(apart, Mapping) else {}
            numbers = ((str(k), finite(v)) for k, v in (*usage.items(), *told.items()))
            return {k: v for k, v in numbers if v is not None}
    return None


def _steps(entry: Entry, here: bool, shown: frozenset[Place]) -> Iterator[Step]:
    """The step of a message, if it is one; ``here``: in the process that compacted."""
    kind = entry.data.get("type")
    if kind not in ("message", "custom_message", "branch_summary"):
        return
    charged = of_item(Item(entry, entry.kind, {"content": _content(entry)}, 0.0))
    unlogged = sum(map(fragment, _unlogged(entry.data.get("message")))) if here else 0
    cuttable = kind != "message" or entry.kind in _CUTTABLE
    yield Step(sum(charged.values()) + unlogged, charged.get("envelope", 0) + unlogged, cuttable, entry.place in shown)


def _version(node: Node, written: Iterable[Rewrite], compaction: Node) -> Entry:
    """The entry of a node as the compaction found it: rewritten by what had happened until then."""
    found = node.first
    for rewrite in written:
        at = rewrite.at
        past = at <= stamp(compaction.first) if at is not None else rewrite.number <= compaction.number
        found = rewrite.after if past else found
    return found


def _content(entry: Entry) -> Any:
    """What counts of a message as omp holds it, without the words that a model reads around it."""
    data = entry.data
    if data.get("type") != "message":
        return data.get("content") if data.get("type") == "custom_message" else string(data.get("summary"))
    message = data.get("message")
    message = message if isinstance(message, Mapping) else {}
    if entry.kind == "bashExecution":
        return [{"type": "text", "text": string(message.get(name))} for name in ("command", "output")]
    if entry.kind in ("branchSummary", "compactionSummary"):
        return string(message.get("summary"))
    return message.get("content") if entry.kind in _ROLES else ()


def _unlogged(message: Any) -> Iterator[str]:
    """Signatures of an answer that only the process holds which was given it.

    The log leaves out those whose reasoning item stands in ``providerPayload``, spelled as JSON the same (omp.md §3).
    """
    payload = message.get("providerPayload") if isinstance(message, Mapping) else None
    if not isinstance(payload, Mapping) or payload.get("type") != "openaiResponsesHistory":
        return
    bare = [b for b in blocks(message.get("content")) if b.get("type") == "thinking" and not b.get("thinkingSignature")]
    reasoning = [item for item in blocks(payload.get("items")) if item.get("type") == "reasoning"]
    yield from (js(item) for _, item in zip(bare, reasoning, strict=False))
