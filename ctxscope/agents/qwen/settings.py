"""What Qwen Code's settings and its own lines say of limits (qwen.md §5; read in 0.15.10)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ctxscope.agents import Log
from ctxscope.agents.qwen.lines import SETTINGS
from ctxscope.agents.qwen.replay import replay
from ctxscope.model import Config

THRESHOLD = 0.7
"""Share of the window at which it compresses, where the settings have no other."""


def config(log: Log) -> Config:
    """Version, window and compression threshold; the window where an answer or the settings tell it."""
    entry = log.entries[log.index[SETTINGS]] if SETTINGS in log.index else None
    settings = entry.data if entry is not None and entry.kind == SETTINGS else {}
    told = replay(log)
    window = told.window or _whole(_inside(settings, "model", "generationConfig", "contextWindowSize"))
    share = _inside(settings, "model", "chatCompression", "contextPercentageThreshold")
    share = THRESHOLD if share is None else share
    known = isinstance(share, int | float) and not isinstance(share, bool) and share > 0
    return Config(told.version, window, int(share * window) if window and known else None)


def _inside(settings: Mapping[str, Any], *keys: str) -> Any:
    value: Any = settings
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def _whole(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None
