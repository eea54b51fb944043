"""The agent's ``config.yaml``: the few scalars that decide window, thresholds and markers (hermes.md §5, §6).

Only scalars are taken, and ``KEPT`` names those that a report may show: the rest of the file (messengers, web, tools,
often with their passwords) is nobody's business here.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

from ctxscope.agents import Log
from ctxscope.agents.hermes.log import agent_log, newest, notes_of, schema_version
from ctxscope.model import Config, LimitSource

_MOST, _DEEPEST = 10_000, 8
"""Values of a file, lists and mappings too, and steps of a key: aliases make a file of a few lines endless."""
_MINIMUM = 64_000
"""No threshold below it; where no more than it is left for a prompt, 85 % of that."""
_READ = (22, 26)
"""Versions of the schema (0.19, 0.20) whose rule was read whole."""
_BY_MODEL = "compression.model_thresholds"
"""A share for some models: which of them is in force depends on the name, and such a list is not read here."""
_WIDE = 512_000
"""Windows below it compact at 75 % of themselves or later."""
KEPT = (
    *("model.default", "model.provider", "model.api_mode", "model.context_length"),
    *("compression.enabled", "compression.in_place", "compression.threshold", "compression.target_ratio"),
    *("compression.protect_first_n", "compression.protect_last_n", "compression.threshold_tokens"),
    *("compression.micro_compact", "compression.micro_compact_every_n_turns", "compression.proactive_prune_tokens"),
)
"""Settings that say which model and which markers can occur: what a report may show of the file."""
_SCHEMA_VERSIONS = {22: "0.19", 26: "0.20", 30: "0.21"}


def scalars(text: str) -> dict[str, Any]:
    """Numbers, words and switches by dotted key (``compression.threshold``), lists left out; none where it is no YAML."""
    from ctxscope.agents.reading.yaml_text import mapping  # noqa: PLC0415 - most logs come without settings

    every = islice(_values("", mapping(text, core=False) or {}, 0), _MOST)
    return {key: value for key, value in every if isinstance(value, bool | int | float | str)}


def _values(before: str, values: Mapping[Any, Any], depth: int) -> Iterator[tuple[str, Any]]:
    """Every value there is, of whatever kind: who takes so many of them has looked at no more."""
    for key, value in values.items():
        yield f"{before}{key}", value
        if isinstance(value, Mapping) and depth < _DEEPEST:
            yield from _values(f"{before}{key}.", value, depth + 1)


def config_of(log: Log) -> Config:
    """Window, threshold and protected ends as ``config.yaml`` says; what it does not say is ``None``.

    The threshold is the formula of hermes.md §6, checked there against the agent's own telemetry.
    """
    entry = newest(log, "config:file")
    values: Mapping[str, Any] = entry.data if entry is not None else {}
    window = _number(values.get("model.context_length"))
    logged: Mapping[str, Any] = next(
        (e.data["fields"] for e in reversed(agent_log(log)) if e.data["event"] == "micro"), {}
    )
    threshold = _number(logged.get("threshold_tokens"))
    by: LimitSource | None = None if threshold is None else "log"
    if threshold is None and window is not None:
        threshold = _due(log, values, window)
        by = None if threshold is None else "rule"
    limit = window if window is not None else _number(logged.get("context_limit"))
    version = schema_version(log)
    return Config(
        agent_version=_SCHEMA_VERSIONS.get(version) if version is not None else None,
        window=limit,
        threshold=threshold,
        protect_head=_number(values.get("compression.protect_first_n")) if values else None,
        protect_tail=_number(values.get("compression.protect_last_n")) if values else None,
        values={name: values[name] for name in KEPT if name in values},
        window_by=None if limit is None else "log" if window is None else "config",
        threshold_by=by,
    )


def threshold_at(log: Log, values: Mapping[str, Any]) -> int | None:
    """The threshold under some version of the settings, by the rule; where they name no window, what the log tells."""
    window = _number(values.get("model.context_length"))
    return _due(log, values, window) if window is not None else config_of(log).threshold


def due(log: Log, config: Config, window: int) -> int | None:
    """Tokens at which a batch compaction starts in a window; ``None`` where the settings turn it off."""
    return _due(log, config.values, window)


def _due(log: Log, values: Mapping[str, Any], window: int) -> int | None:
    share = values.get("compression.threshold", 0.5)
    if values.get("compression.enabled", True) is False or not isinstance(share, int | float) or not 0 <= share <= 1:
        return None
    if any(name.startswith(_BY_MODEL) for name in values):
        return None
    reply, version = _number(notes_of(log).get("max_tokens")) or 0, schema_version(log)
    if version is not None and version > max(_READ) and _share_of(window, float(share), reply) < _MINIMUM:
        return None
    threshold, most = threshold_of(window, float(share), reply), _number(values.get("compression.threshold_tokens"))
    return min(threshold, most) if most is not None and most > 0 else threshold


def _share_of(window: int, share: float, max_tokens: int) -> int:
    room = _room(window, max_tokens)
    return math.floor(room * (max(share, 0.75) if window < _WIDE else share))


def _room(window: int, max_tokens: int) -> int:
    """Tokens that a prompt may take: the window without what is kept free for the reply."""
    return window - max_tokens if window > max_tokens else window


def threshold_of(window: int, share: float, max_tokens: int) -> int:
    """Tokens at which a batch compaction starts, for a window, its configured share and the reply's cap.

    As both versions' compressors reckon it; in 0.21 (source only) what is below the minimum is reckoned otherwise.
    """
    room, threshold = _room(window, max_tokens), max(_share_of(window, share, max_tokens), _MINIMUM)
    return threshold if threshold < room else max(1, min(math.floor(0.85 * room), room - 1))


def _number(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
