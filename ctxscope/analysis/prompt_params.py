"""Request parameters that change what a provider renders, and from where on: by its rules (prompt_caching §2.2, §3.1)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import orjson

from ctxscope.analysis.prompts import Prompt
from ctxscope.analysis.providers.rules import Param, Rules


def changed_params(rules: Rules, mine: Prompt, theirs: Prompt) -> Iterator[tuple[str, Param]]:
    """Parameters that differ between two requests of one API and are rendered into the prompt."""
    if mine.api != theirs.api:
        return
    for name, param in rules.params.items():
        now, before = mine.settings.params.get(name), theirs.settings.params.get(name)
        if now != before and _rendered(param, now) != _rendered(param, before):
            yield name, param


def _rendered(param: Param, spelled: bytes | None) -> Any:
    """The part of a parameter that reaches the prompt; ``null`` means the same as leaving it out."""
    value = _value(spelled, param.default)
    if not isinstance(value, dict):
        return value
    return {k: v for k, v in value.items() if k not in param.hidden and v is not None and param.defaults.get(k) != v}


def _value(spelled: bytes | None, default: Any) -> Any:
    if spelled is None:
        return default
    try:
        value = orjson.loads(spelled)
    except orjson.JSONDecodeError:
        return spelled
    return default if value is None else value
