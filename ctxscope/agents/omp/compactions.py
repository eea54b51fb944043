"""What each compaction of omp's found, kept and put a summary, an archive or a handoff document in place of (omp.md §5, §6)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ctxscope.agents import Log
from ctxscope.agents.omp import settings
from ctxscope.agents.omp.estimate import charges, head_of, is_counted
from ctxscope.agents.omp.markers import After, compaction
from ctxscope.agents.omp.points import requests, usage_of
from ctxscope.agents.omp.tail import VERSION, budget_of, context_of, cut_of, prompt_of, steps_of
from ctxscope.agents.omp.tree import Node, Tree, tree
from ctxscope.model import Compacted, Place, TailCut

_AT_ONCE = frozenset({"snapcompact", "shake"})
"""Methods that ask no model: others may have been begun ahead, on a shorter history."""


def compactions(log: Log) -> Sequence[Compacted]:
    """In the order logged; the cut is the one the log states, since it tells the first entry kept."""
    grown = tree(log)
    after = After(requests(log), grown.nodes)
    return [_told(log, node, after) for node in grown.order if node.entry.kind == "compaction"]


def _told(log: Log, node: Node, after: After) -> Compacted:
    own = settings.compaction(log, node.first.seq)
    marker = compaction(node, after)
    trail, length = node.before or tree(log).current(None)
    places = tuple(dict.fromkeys(item.entry.place for item in trail.items[:length]))
    dropped = set(marker.dropped)
    cut = max((i for i, place in enumerate(places) if place in dropped), default=-1) + 1
    budget, rules = _ruled(log, node, places, cut, own)
    at_once = node.parent is not None and node.entry.data.get("method") in _AT_ONCE
    return Compacted(
        marker,
        messages=places,
        head=next((i for i, place in enumerate(places) if place in dropped), 0),
        cut=cut,
        rules=rules,
        budget=budget,
        reckoned_before=int(context_of(node.parent)) if at_once and node.parent is not None else None,
        reckoned_after=_left(node),
        unseen=_unseen(node),
        usage=usage_of(node.entry.data),
        setting="" if own is None else settings.words(own),
    )


def _ruled(
    log: Log, node: Node, places: Sequence[Place], cut: int, own: Mapping[str, Any] | None
) -> tuple[int | None, tuple[TailCut, ...]]:
    """The budget of the tail, and where the rule cuts with the envelope and without.

    Neither is known without the settings, for a model whose family has a tokenizer, and where an extension or a rescue
    made the cut. The log names no release: the rule is its own where it cuts where the log does.
    """
    parent, data = node.parent, node.entry.data
    if own is None or parent is None or parent.entry.kind == "compaction" or data.get("fromExtension") is True:
        return None, ()
    if node.model is None or is_counted(node.model[1]):
        return None, ()
    grown, keep = tree(log), settings.keep_recent(own)
    memo, key = grown.memo.setdefault("cuts", {}), (node.number, keep, len(grown.rewrites), cut)
    if key not in memo:
        memo[key] = _cuts(grown, node, places, cut, keep)
    found: tuple[int | None, tuple[TailCut, ...]] = memo[key]
    return found


def _cuts(
    grown: Tree, node: Node, places: Sequence[Place], cut: int, keep: int
) -> tuple[int | None, tuple[TailCut, ...]]:
    steps = steps_of(grown, node, frozenset(places))
    if steps is None or node.parent is None:
        return None, ()
    prompt = prompt_of(node.parent)
    before = len(places) - sum(step.shown for step in steps)  # the summary of the one before, which no rule keeps
    budgets = [budget_of(steps, keep, prompt, bare=bare) for bare in (False, True)]
    at = [before + cut_of(steps, budget, bare=bare) for bare, budget in zip((False, True), budgets, strict=True)]
    held = at[0] == cut
    return budgets[0], (TailCut(VERSION, at[0], True, held), TailCut(VERSION, at[1], False, held))


def _left(node: Node) -> int | None:
    """The head as noted and the messages left, as the compaction floor has them: without envelopes."""
    head = head_of(node)
    if head is None or node.left is None or node.model is None or is_counted(node.model[1]):
        return None
    return head + sum(tokens for kind, tokens in charges(*node.left).items() if kind != "envelope")


def _unseen(node: Node) -> int | None:
    """Estimated tokens of the messages that came after the last answer."""
    if node.before is None or node.model is None or is_counted(node.model[1]):
        return None
    trail, length = node.before
    answered = max((i for i in range(length) if trail.items[i].role == "assistant"), default=None)
    if answered is None:
        return None
    return sum(charges(trail, length).values()) - sum(charges(trail, answered + 1).values())
