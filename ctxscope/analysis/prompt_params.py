"""Request parameters that change what a provider renders, and from where on (prompt_caching §2.2, §3.1)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

import orjson

from ctxscope.analysis.prompts import Prompt

Level = Literal["all", "system", "messages"]
"""From where on such a change loses the prefix."""

_UNSET: Any = None
_ANTHROPIC: dict[str, tuple[Level, Any]] = {
    "speed": ("system", "standard"),
    "tool_choice": ("messages", {"type": "auto"}),
    "thinking": ("messages", {"type": "disabled"}),
    "output_config": ("messages", {}),
    "output_format": ("messages", _UNSET),
    "context_management": ("messages", _UNSET),
}
_OPENAI: dict[str, tuple[Level, Any]] = {
    "parallel_tool_calls": ("all", True),
    "response_format": ("all", {"type": "text"}),
    "text": ("all", {}),
    "reasoning": ("all", {}),
    "reasoning_effort": ("all", _UNSET),
    "verbosity": ("all", "medium"),
    "context_management": ("all", _UNSET),
    "service_tier": ("all", "auto"),
}
_BY_API: dict[str, dict[str, tuple[Level, Any]]] = {
    "anthropic-messages": _ANTHROPIC,
    "openai-chat": _OPENAI,
    "openai-responses": _OPENAI,
}
"""Per API: parameter -> what its change loses, and the value that means the same as leaving it out. Gemini documents
none."""
_INVISIBLE = {"thinking": ("display",), "reasoning": ("summary", "generate_summary")}
"""Members that change only what comes back."""
_DEFAULTS: dict[str, dict[str, Any]] = {
    "output_config": {"effort": "high"},
    "text": {"format": {"type": "text"}, "verbosity": "medium"},
}
"""Members whose explicit default equals leaving them out."""


def changed_params(mine: Prompt, theirs: Prompt) -> Iterator[tuple[str, Level]]:
    """Parameters that differ between two requests of one API and are rendered into the prompt."""
    table = _BY_API.get(mine.api or "", {})
    if mine.api != theirs.api:
        return
    for name, (level, default) in table.items():
        now, before = mine.settings.params.get(name), theirs.settings.params.get(name)
        if now != before and _rendered(name, _value(now, default)) != _rendered(name, _value(before, default)):
            yield name, level


def _value(spelled: bytes | None, default: Any) -> Any:
    """A parameter's value; ``null`` means the same as leaving it out."""
    if spelled is None:
        return default
    try:
        value = orjson.loads(spelled)
    except orjson.JSONDecodeError:
        return spelled
    return default if value is None else value


def _rendered(name: str, value: Any) -> Any:
    """The part of a parameter that reaches the prompt."""
    if not isinstance(value, dict):
        return value
    hidden, defaults = _INVISIBLE.get(name, ()), _DEFAULTS.get(name, {})
    return {k: v for k, v in value.items() if k not in hidden and v is not None and defaults.get(k) != v}
