"""What each compaction of pi's found, kept and summarised (pi.md §5, §6)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ctxscope.agents import Log, shared_memo
from ctxscope.agents.pi.lines import SETTINGS
from ctxscope.agents.pi.markers import After, compaction
from ctxscope.agents.pi.points import requests, usage
from ctxscope.agents.pi.settings import DEFAULTS, granted
from ctxscope.agents.pi.tail import NEW, OLD, cut_of, steps_of
from ctxscope.agents.pi.tree import Node, Tree, tree
from ctxscope.model import Compacted, TailCut


def compactions(log: Log) -> Sequence[Compacted]:
    """In file order; the cut is the one the log states, since it tells the first entry kept."""
    grown = tree(log)
    after = After(requests(log), grown.nodes)
    told = (node for node in grown.order if node.entry.kind == "compaction")
    return [_told(node, after, _settings(log, node), _Cuts(log, grown)) for node in told]


def _settings(log: Log, node: Node) -> Mapping[str, Any] | None:
    """Those in force when an entry was written, as far as they were observed; ``None`` where none are at hand."""
    entry = log.as_of(SETTINGS, log.history(node.entry.key)[0].seq)
    return None if entry is None else entry.data


@dataclass(eq=False, repr=False)
class _Cuts:
    """Where the rules cut, worked out once for each compaction of a tree and budget."""

    log: Log
    grown: Tree

    def of(self, node: Node, budget: int, cut: int) -> tuple[TailCut, ...]:
        """By both versions; pi counts no signature, so that without the envelope they cut at the same place.

        The log names no release, and its settings may not be those of the time: the rule of its version is its own where
        it cuts where the log does, at ``cut``.
        """
        last = node.parent
        memo = shared_memo(self.log, "pi.cuts")
        if memo.get("tree") is not self.grown:
            memo.clear()
            memo["tree"] = self.grown
        key = (node.number, budget)
        if key not in memo and last is not None:
            before = int(last.compaction is not None)  # the summary of the one before, which no rule keeps
            versions = (NEW, OLD) if node.version == NEW else (OLD, NEW)
            memo[key] = [(v, before + cut_of(steps_of(last, v), budget, v)) for v in versions]
        cuts: list[tuple[str, int]] = memo.get(key, [])
        return tuple(TailCut(v, at, held, v == node.version and at == cut) for v, at in cuts for held in (True, False))


def _told(node: Node, after: After, settings: Mapping[str, Any] | None, cuts: _Cuts) -> Compacted:
    marker = compaction(node, after)
    parent = node.parent
    found = parent.trail.items[: parent.length] if parent is not None else []
    places = tuple(dict.fromkeys(item.entry.place for item in found if item.role != "system"))
    dropped = set(marker.dropped)
    last = max((i for i, place in enumerate(places) if place in dropped), default=-1)
    answers = [i for i, item in enumerate(found) if item.role == "assistant"]
    sums = parent.trail.estimates if parent is not None else []
    own = {} if settings is None else {name: granted(settings, name, node.model) for name in DEFAULTS}
    budget = None if node.entry.data.get("fromHook") else own.get("keepRecentTokens")
    return Compacted(
        marker,
        messages=places,
        head=next((i for i, place in enumerate(places) if place in dropped), 0),
        cut=last + 1,
        rules=() if budget is None else cuts.of(node, budget, last + 1),
        budget=budget,
        reckoned_before=sums[len(found)].compaction if found else None,
        reckoned_after=node.trail.estimates[node.length].compaction,
        unseen=sums[len(found)].compaction - sums[answers[-1] + 1].compaction if answers else None,
        usage=usage(node.entry.data),
        setting=", ".join(f"{name} {value}" for name, value in own.items()),
    )
