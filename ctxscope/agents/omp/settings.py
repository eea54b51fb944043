"""Windows, thresholds and what a compaction goes by, as omp's settings and its own rules say (omp.md §5)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from ctxscope.agents import Log
from ctxscope.agents.omp.side_files import MODELS, SETTINGS, UNREADABLE
from ctxscope.agents.omp.tree import tree
from ctxscope.model import Config, LimitSource, Point, Window

SHARE, RESERVE = 0.15, 16384
"""Of the window, and in tokens: what omp keeps free where its settings say nothing else."""
KEEP_RECENT = 20000
"""``keepRecentTokens`` where they say nothing."""


def config(log: Log) -> Config:
    """Window and threshold of the newest model, as models.yml and config.yml say; its log names neither version nor limits."""
    last = tree(log).last
    window, threshold, by = _limits(log, "/".join(last.model) if last is not None and last.model else None)
    own = compaction(log)
    return Config(
        window=window,
        threshold=threshold,
        protect_tail=None if own is None else keep_recent(own),
        window_by="config" if window is not None else None,
        threshold_by=by,
        values={} if own is None else {"compaction": own},
    )


def window(log: Log, point: Point) -> Window:
    """Of the model a call goes to, where the table has it."""
    size, threshold, by = _limits(log, f"{point.data.get('provider')}/{point.data.get('model')}")
    return Window(size, "config" if size is not None else None, threshold, by)


def due(log: Log, window: int) -> int | None:
    """Tokens above which a context of a window is compacted; ``None`` where the settings turn that off, or nothing is left."""
    return None if _is_unreadable(log) else due_of(compaction(log) or {}, window)


def compaction(log: Log, seq: int | None = None) -> Mapping[str, Any] | None:
    """The settings of compactions as config.yml says them; ``None`` where it is not at hand or cannot be read.

    ``seq``: as of this observation, else the newest.
    """
    entry = log.as_of(SETTINGS, seq)
    found: Mapping[str, Any] | None = None if entry is None else entry.data.get("compaction")
    return found


def due_of(settings: Mapping[str, Any], window: int) -> int | None:
    """The threshold under some settings (``resolveThresholdTokens`` of 18.2.3, read).

    ``thresholdTokens``, at most the window less one; else ``thresholdPercent`` of the window, from 1 to 99, rounded down;
    else the window less what is reserved: ``reserveTokens``, or 15 % of the window, rounded down, where that is more. The 15 %
    alone where they reserve the whole window, or the default reserve would leave no more than them.
    """
    if not _is_on(settings):
        return None
    tokens, percent, own = (settings.get(n) for n in ("thresholdTokens", "thresholdPercent", "reserveTokens"))
    if tokens is not None and tokens > 0:
        return min(window - 1, _whole(tokens)) or None
    if percent is not None and percent > 0:
        share = float(min(99, max(1, percent)) / 100)
        return math.floor(window * share) or None
    least = math.floor(window * SHARE)
    reserve = max(least, RESERVE if own is None else int(own))
    if reserve >= window or (own is None and reserve >= window - max(1, least)):
        reserve = max(1, least)
    left = min(window - 1, window - reserve)
    return left if left > 0 else None


def keep_recent(settings: Mapping[str, Any]) -> int:
    """Tokens of the tail, before they are scaled to what a provider reports."""
    return int(settings.get("keepRecentTokens", KEEP_RECENT))


def words(settings: Mapping[str, Any]) -> str:
    """The settings a compaction goes by."""
    name = next((n for n in ("thresholdTokens", "thresholdPercent") if settings.get(n, 0) > 0), "reserveTokens")
    order = settings.get("methodOrder")
    said = [f"{name} {settings.get(name, RESERVE)}", f"keepRecentTokens {keep_recent(settings)}"]
    return ", ".join(said if order is None else [*said, f"methodOrder {' '.join(order) or 'none'}"])


def _limits(log: Log, model: str | None) -> tuple[int | None, int | None, LimitSource | None]:
    """Window, threshold, and how that is known; tokens that the settings name are the threshold of any window above them."""
    size: int | None = _file(log, MODELS).get("windows", {}).get(model)
    if _is_unreadable(log):
        return size, None, None
    settings = compaction(log) or {}
    tokens = settings.get("thresholdTokens", 0)
    bare = _whole(tokens) if tokens > 0 and _is_on(settings) else None
    threshold = bare if size is None else due_of(settings, size)
    return size, threshold, None if threshold is None else "config" if threshold == tokens else "rule"


def _is_unreadable(log: Log) -> bool:
    """Whether settings are there that omp may read and nothing here could."""
    return UNREADABLE in _file(log, SETTINGS)


def _whole(tokens: float) -> int:
    """``thresholdTokens``, of which omp takes no less than one."""
    return max(1, int(tokens))


def _is_on(settings: Mapping[str, Any]) -> bool:
    """Whether omp compacts by itself: an order without methods turns it off, too."""
    return settings.get("enabled") is not False and settings.get("methodOrder") != []


def _file(log: Log, key: str) -> Mapping[str, Any]:
    return log.entries[log.index[key]].data if key in log.index else {}
