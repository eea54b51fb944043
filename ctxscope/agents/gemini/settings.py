"""What the Gemini CLI's settings and its own tables say of limits (gemini.md §5; read in 0.61.0)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ctxscope.agents import Log
from ctxscope.agents.gemini.lines import SETTINGS
from ctxscope.agents.gemini.replay import replays
from ctxscope.model import Config

WINDOW = 1_048_576
"""Every Gemini model has this window in the program's table."""
GEMMA_WINDOW = 256_000
_GEMMA = "gemma-4-"
THRESHOLD = 0.5
"""Share of the window at which it compresses, where the settings have no other."""


def config(log: Log) -> Config:
    """Window and compression threshold of the newest model."""
    entry = log.entries[log.index[key]] if (key := f"{SETTINGS}:file") in log.index else None
    settings = entry.data if entry is not None and entry.kind == SETTINGS else {}
    model = replays(log)[0].model
    if model is None:
        return Config()
    window = GEMMA_WINDOW if model.startswith(_GEMMA) else WINDOW
    share = _share(_inside(settings, "model", "compressionThreshold"))
    threshold = int(share * window) if share is not None else None
    return Config(
        window=window, threshold=threshold, window_by="rule", threshold_by=None if threshold is None else "rule"
    )


def _share(value: Any) -> float | None:
    """The share set; the program's own where none is set, unknown where it is no number."""
    if value is None:
        return THRESHOLD
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1 else None


def _inside(settings: Mapping[str, Any], *keys: str) -> Any:
    value: Any = settings
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value
