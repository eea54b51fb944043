"""What each compaction of pi's found, kept and summarised (pi.md §5, §6)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ctxscope.agents import Log
from ctxscope.agents.pi.lines import SETTINGS
from ctxscope.agents.pi.markers import After, compaction
from ctxscope.agents.pi.points import requests, usage
from ctxscope.agents.pi.settings import KEEP_RECENT_TOKENS, RESERVE_TOKENS
from ctxscope.agents.pi.tree import Node, tree
from ctxscope.model import Compacted


def compactions(log: Log) -> Sequence[Compacted]:
    """In file order; the cut is the one the log states, since it tells the first entry kept."""
    grown = tree(log)
    after = After(requests(log), grown.nodes)
    setting = _setting(log)
    return [_told(node, after, setting) for node in grown.order if node.entry.kind == "compaction"]


def _told(node: Node, after: After, setting: str) -> Compacted:
    marker = compaction(node, after)
    parent = node.parent
    found = parent.trail.items[: parent.length] if parent is not None else []
    places = tuple(dict.fromkeys(item.entry.place for item in found if item.role != "system"))
    dropped = set(marker.dropped)
    last = max((i for i, place in enumerate(places) if place in dropped), default=-1)
    answers = [i for i, item in enumerate(found) if item.role == "assistant"]
    sums = parent.trail.estimates if parent is not None else []
    return Compacted(
        marker,
        messages=places,
        head=next((i for i, place in enumerate(places) if place in dropped), 0),
        cut=last + 1,
        reckoned_before=sums[len(found)].compaction if found else None,
        reckoned_after=node.trail.estimates[node.length].compaction,
        unseen=sums[len(found)].compaction - sums[answers[-1] + 1].compaction if answers else None,
        usage=usage(node.entry.data),
        setting=setting,
    )


def _setting(log: Log) -> str:
    """The settings a compaction goes by; empty where the agent's folder holds none."""
    if SETTINGS not in log.index:
        return ""
    own: Any = log.entries[log.index[SETTINGS]].data.get("compaction")
    own = own if isinstance(own, Mapping) else {}
    named = {"reserveTokens": RESERVE_TOKENS, "keepRecentTokens": KEEP_RECENT_TOKENS, **own}
    return ", ".join(f"{name} {str(named[name]).lower()}" for name in ("reserveTokens", "keepRecentTokens"))
