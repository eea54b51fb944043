"""What pi's agent folder says of limits: models.json and settings.json (pi.md §4.6, §5)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ctxscope.agents import Log
from ctxscope.agents.pi.limits import BUDGETS, Limits
from ctxscope.agents.pi.lines import MODELS, SETTINGS
from ctxscope.agents.pi.points import node_of
from ctxscope.agents.pi.tree import tree
from ctxscope.model import NO_WINDOW, Config, Point, Window

DEFAULTS: Mapping[str, int] = {"reserveTokens": 16384, "keepRecentTokens": 20000}
"""pi's own: room left before it compacts, and history it keeps when it does."""


def config(log: Log) -> Config:
    """Window and compaction threshold of the newest model, and every model's limits by (provider, id)."""
    # A side file's entry is keyed by its name.
    files = {k: log.entries[log.index[k]].data for k in (SETTINGS, MODELS) if k in log.index}
    settings, models = files.get(SETTINGS, {}), _models(files.get(MODELS, {}))
    grown = tree(log)
    newest = grown.last.model if grown.last else None
    limits = models.get(newest) if newest else None
    window = limits.window if limits else None
    threshold = _due(settings, window, newest)
    budgets = {k: v for k, v in _mapping(settings.get("thinkingBudgets")).items() if _integer(v)}
    return Config(
        agent_version=grown.version,
        window=window,
        threshold=threshold,
        protect_tail=granted(settings, "keepRecentTokens", newest),
        window_by="config" if window is not None else None,
        threshold_by="rule" if threshold is not None else None,
        values={
            "limits": models,
            "budgets": {**BUDGETS, **budgets},
            "apis": _apis(files.get(MODELS, {})),
            "efforts": _efforts(files.get(MODELS, {})),
        },
    )


def window(log: Log, point: Point, config: Config) -> Window:
    """Of the model a call goes to, where the agent's table has it."""
    node = node_of(log, point)
    limits = config.values["limits"].get(node.model) if node is not None and node.model else None
    if limits is None or limits.window is None:
        return NO_WINDOW
    threshold = _due(_settings(log), limits.window, node.model if node is not None else None)
    return Window(limits.window, "config", threshold, "rule" if threshold is not None else None)


def due(log: Log, config: Config, window: int) -> int | None:  # noqa: ARG001 - the face's signature
    """What is left of a window above the reserve; ``None`` where nothing is, or the settings turn compaction off."""
    last = tree(log).last
    return _due(_settings(log), window, last.model if last else None)


def granted(settings: Mapping[str, Any], name: str, model: tuple[str, str] | None) -> int:
    """``reserveTokens`` or ``keepRecentTokens`` of a compaction: as set for the model (1.x), else for all, else pi's own."""
    compaction = _mapping(settings.get("compaction"))
    own = _mapping(_mapping(compaction.get("modelOverrides")).get("/".join(model))) if model else {}
    given = (_amount(value) for value in (own.get(name), compaction.get(name), DEFAULTS[name]))
    return next(amount for amount in given if amount is not None)


def _amount(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _settings(log: Log) -> Mapping[str, Any]:
    return log.entries[log.index[SETTINGS]].data if SETTINGS in log.index else {}


def _due(settings: Mapping[str, Any], window: int | None, model: tuple[str, str] | None) -> int | None:
    reserve = granted(settings, "reserveTokens", model)
    if window is None or window <= reserve or _mapping(settings.get("compaction")).get("enabled") is False:
        return None
    return window - reserve


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _integer(value: Any) -> int | None:
    return int(value) if isinstance(value, int | float) and not isinstance(value, bool) and value > 0 else None


def _listed(models: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any], Mapping[str, Any]]]:
    """Each model of the table with its provider's name and settings."""
    return [
        (name, _mapping(provider), model)
        for name, provider in _mapping(models.get("providers")).items()
        for model in _mapping(provider).get("models") or ()
        if isinstance(model, Mapping) and isinstance(model.get("id"), str)
    ]


def _models(models: Mapping[str, Any]) -> dict[tuple[str, str], Limits]:
    """Limits of the models whose output limit the table states; the others' are pi's own and unknown here."""
    found: dict[tuple[str, str], Limits] = {}
    for provider, _, model in _listed(models):
        output = _integer(model.get("maxTokens"))
        if output is not None:
            found[provider, model["id"]] = Limits(output, _integer(model.get("contextWindow")))
    return found


def _apis(models: Mapping[str, Any]) -> dict[tuple[str, str], str]:
    """The API each model of the table speaks."""
    named = ((p, m["id"], m.get("api") or settings.get("api")) for p, settings, m in _listed(models))
    return {(provider, model): api for provider, model, api in named if isinstance(api, str)}


def _efforts(models: Mapping[str, Any]) -> dict[tuple[str, str], Mapping[str, str | None]]:
    """For each model of the table the words it has for thinking levels, where they are others than the level's own."""
    found: dict[tuple[str, str], Mapping[str, str | None]] = {}
    for provider, _, model in _listed(models):
        # The older name of the table first.
        words = {
            **_mapping(_mapping(model.get("compat")).get("reasoningEffortMap")),
            **_mapping(model.get("thinkingLevelMap")),
        }
        found[provider, model["id"]] = {k: v for k, v in words.items() if v is None or isinstance(v, str)}
    return found
