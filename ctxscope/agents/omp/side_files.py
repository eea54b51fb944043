"""What omp's folder says of windows and compactions: config.yml and models.yml, of which nothing else is kept.

Which file it reads (18.2.3, read): of its settings ``config.yml``, else ``config.yaml``, else the ``settings.json`` of its
first days; of its model table ``models.yml``, else ``models.yaml``, else ``models.json``. Settings of a project
(``.omp`` in its folder), of ``--config`` and of ``PI_CONFIG_FILES`` go before these; they lie outside its home, and are not read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from sys import float_info
from typing import Any

SETTINGS, MODELS = "settings", "models"
"""Source keys."""
UNREADABLE = "unreadable"
"""Says of a file that nothing could be taken of it."""
_FILES = {
    SETTINGS: ("config.yml", "config.yaml", "settings.json"),
    MODELS: ("models.yml", "models.yaml", "models.json"),
}
_NUMBERS = ("thresholdTokens", "thresholdPercent", "reserveTokens", "keepRecentTokens")
_METHODS = frozenset({"remote", "snapcompact", "handoff", "shake", "soft"})


def files(agent: Path) -> Iterator[tuple[str, Path]]:
    """By source key the file of each kind that omp reads in its folder: the first that is there."""
    for key, names in _FILES.items():
        yield key, next((agent / name for name in names if (agent / name).is_file()), agent / names[0])


def read(source: str, raw: bytes) -> Mapping[str, Any]:
    """What is wanted of a file: ``compaction`` settings, or ``windows`` by ``provider/model``; else ``UNREADABLE``."""
    from ctxscope.agents.reading.yaml_text import mapping  # noqa: PLC0415 - most logs come without settings

    whole = mapping(raw.decode("utf-8", "replace"), core=True)
    if whole is None:
        return {UNREADABLE: True}
    if source == MODELS:
        return {"windows": dict(_windows(_mapping(whole.get("providers"))))}
    compaction = whole.get("compaction", {})
    return {"compaction": dict(_compaction(compaction))} if isinstance(compaction, Mapping) else {UNREADABLE: True}


def _compaction(settings: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Those that decide when it compacts and what it keeps; ``strategy`` is the old name of an order of methods."""
    if isinstance(settings.get("enabled"), bool):
        yield "enabled", settings["enabled"]
    order = settings.get("methodOrder")
    if isinstance(order, list):
        yield "methodOrder", [*dict.fromkeys(m for m in order if isinstance(m, str) and m in _METHODS)]
    elif settings.get("strategy") == "off":
        yield "methodOrder", []
    for name in _NUMBERS:
        value = settings.get(name)
        if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= float_info.max:
            yield name, value


def _windows(providers: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    """Each model's own, then what an override puts in its place."""
    for name, provider in providers.items():
        models = _mapping(provider).get("models")
        overrides = _mapping(_mapping(provider).get("modelOverrides"))
        own = [(m.get("id"), m) for m in models if isinstance(m, Mapping)] if isinstance(models, list) else []
        for model, told in (*own, *overrides.items()):
            size = _whole(_mapping(told).get("contextWindow"))
            if isinstance(model, str) and size is not None and size > 0:
                yield f"{name}/{model}", size


def _whole(value: Any) -> int | None:
    """A whole number, also one spelled as a fraction (``1e6``): JavaScript knows no other kind."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
