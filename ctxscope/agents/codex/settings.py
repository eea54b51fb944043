"""Window and limits, as config.toml and the rollout say them (codex.md §5)."""

from __future__ import annotations

from ctxscope.agents import Log
from ctxscope.agents.codex.fold import folded
from ctxscope.agents.codex.lines import CONFIG
from ctxscope.model import Config
from ctxscope.wire.blocks import integer, mapped, string

SHARE = 0.9
"""Share of the window at which a compaction is due where no limit is set (source only)."""


def config(log: Log) -> Config:
    """Window as the rollout reports it; the limit that starts a compaction from the settings, else by Codex's rule."""
    fold = folded(log)
    data = log.entries[log.index[CONFIG]].data if CONFIG in log.index else {}
    told = integer(data.get("model_context_window"))
    window = told or fold.counter.window
    limit = integer(data.get("model_auto_compact_token_limit"))
    threshold = limit or (due(log, Config(), window) if window is not None else None)
    provider = string(fold.header.get("model_provider")) or string(data.get("model_provider"))
    table = mapped(mapped(data.get("model_providers")).get(provider))
    return Config(
        agent_version=string(fold.header.get("cli_version")) or None,
        window=window,
        threshold=threshold,
        values={"provider": provider or None, "wire_api": string(table.get("wire_api")) or None},
        window_by=None if window is None else "config" if told else "log",
        threshold_by=None if threshold is None else "config" if limit else "rule",
    )


def due(log: Log, config: Config, window: int) -> int | None:  # noqa: ARG001 - the face's signature
    """Tokens at which a compaction is due in a window where no limit is set (source only)."""
    return int(window * SHARE)
