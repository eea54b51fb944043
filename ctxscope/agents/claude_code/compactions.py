"""What a compact_boundary tells beyond its marker: who asked for it, and how long it took (claude_code.md §5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ctxscope.agents import Log, shared_memo
from ctxscope.agents.claude_code.incidents import tokens_of
from ctxscope.agents.claude_code.markers import markers
from ctxscope.agents.claude_code.texts import mapped
from ctxscope.agents.claude_code.tree import BOUNDARY, tree
from ctxscope.model import Compacted, Entry


def compactions(log: Log) -> Sequence[Compacted]:
    """One for each boundary of the log."""
    told = {node.entry.place: node.entry for node in tree(log).events if node.head.sub == BOUNDARY}
    memo: dict[Entry, tuple[bool | None, float | None]] = shared_memo(log, "claude_code.compactions")
    out: list[Compacted] = []
    for marker in markers(log):
        entry = told.get(marker.place) if marker.kind == "compaction" and marker.place is not None else None
        if entry is not None:
            if entry not in memo:  # its line is read again for this
                memo[entry] = _said(mapped(entry.data.get("compactMetadata")))
            automatic, seconds = memo[entry]
            out.append(Compacted(marker, automatic=automatic, seconds=seconds))
    return out


def _said(metadata: Mapping[str, Any]) -> tuple[bool | None, float | None]:
    """Whether the client began it itself, and how long it took."""
    took, trigger = tokens_of(metadata.get("durationMs")), metadata.get("trigger")
    automatic = {"auto": True, "manual": False}.get(trigger) if isinstance(trigger, str) else None
    return automatic, took / 1000 if took is not None else None
