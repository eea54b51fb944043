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
    settings = log.entries[log.index[SETTINGS]].data if SETTINGS in log.index else None
    told = (node for node in grown.order if node.entry.kind == "compaction")
    return [_told(node, after, settings, _Cuts(log, grown)) for node in told]


@dataclass(eq=False, repr=False)
class _Cuts:
    """Where the rules cut, worked out once for each compaction of a tree and budget."""

    log: Log
    grown: Tree

    def of(self, node: Node, budget: int) -> tuple[TailCut, ...]:
        """By both versions; pi counts no signature, so that without the envelope they cut at the same place."""
        version, last = self.grown.version, node.parent
        memo = shared_memo(self.log, "pi.cuts")
        if memo.get("tree") is not self.grown:
            memo.clear()
            memo["tree"] = self.grown
        key = (node.number, budget, version)
        if key not in memo and last is not None:
            before = int(last.compaction is not None)  # the summary of the one before, which no rule keeps
            versions = (NEW, OLD) if version == NEW else (OLD, NEW)
            cuts = [(v, before + cut_of(steps_of(last, v), budget, v)) for v in versions]
            memo[key] = tuple(TailCut(v, at, held, v == version) for v, at in cuts for held in (True, False))
        found: tuple[TailCut, ...] = memo.get(key, ())
        return found


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
        rules=() if budget is None else cuts.of(node, budget),
        budget=budget,
        reckoned_before=sums[len(found)].compaction if found else None,
        reckoned_after=node.trail.estimates[node.length].compaction,
        unseen=sums[len(found)].compaction - sums[answers[-1] + 1].compaction if answers else None,
        usage=usage(node.entry.data),
        setting=", ".join(f"{name} {value}" for name, value in own.items()),
    )
