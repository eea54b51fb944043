"""What Qwen Code's settings and its own lines say of limits (qwen.md §5; read in 0.15.10 and 0.24.4)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ctxscope.agents import Log
from ctxscope.agents.qwen.lines import SETTINGS
from ctxscope.agents.qwen.replay import replay
from ctxscope.agents.qwen.versions import Rules, rules_of
from ctxscope.model import Config, LimitSource

_OLD, _NEW = ("model", "chatCompression", "contextPercentageThreshold"), ("context", "autoCompactThreshold")
"""Where the settings have the share of the window at which it compresses."""


def config(log: Log) -> Config:
    """Version, window and compression threshold; the window where an answer or the settings tell it."""
    entry = log.entries[log.index[SETTINGS]] if SETTINGS in log.index else None
    settings = entry.data if entry is not None and entry.kind == SETTINGS else {}
    told = replay(log)
    rules = rules_of(told.version)
    window = told.window or _whole(_inside(settings, "model", "generationConfig", "contextWindowSize"))
    by: LimitSource | None = "log" if told.window else "config" if window else None
    share = _inside(settings, *(_NEW if rules.reminds else _OLD))
    share = rules.share if share is None else share
    known = isinstance(share, int | float) and not isinstance(share, bool) and share > 0
    threshold = _threshold(window, share, rules) if window and known else None
    return Config(told.version, window, threshold, window_by=by, threshold_by=None if threshold is None else "rule")


def _threshold(window: int, share: float, rules: Rules) -> int:
    """The share of the window; where some of it is kept free no more than the rest, unless nothing is left."""
    rest = window - rules.reserve
    return min(int(share * window), rest) if rest > 0 else int(share * window)


def _inside(settings: Mapping[str, Any], *keys: str) -> Any:
    value: Any = settings
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def _whole(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None
