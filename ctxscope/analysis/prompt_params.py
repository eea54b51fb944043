"""Request parameters that change what a provider renders, and from where on (prompt_caching §2.2, §3.1)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal

import orjson

from ctxscope.model import Body

Level = Literal["all", "messages"]
"""What such a change loses: the whole prefix, or only the messages."""

_UNSET: Any = None
_ANTHROPIC: dict[str, tuple[Level, Any]] = {
    "speed": ("all", "standard"),
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


def changed_params(call: Body, parent: Body) -> Iterator[tuple[str, Level]]:
    """Parameters that differ between two requests of one API and are rendered into the prompt."""
    table = _BY_API.get(call.api or "", {})
    if call.api != parent.api or not table:
        return
    mine, theirs = _values(call, table), _values(parent, table)
    for name, (level, default) in table.items():
        if _rendered(name, mine.get(name, default)) != _rendered(name, theirs.get(name, default)):
            yield name, level


def _values(body: Body, table: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for segment in body.segments:
        name = segment.path[1:]
        if segment.kind == "param" and name in table:
            try:
                found[name] = orjson.loads(body.data[segment.start : segment.end])
            except orjson.JSONDecodeError:
                found[name] = body.data[segment.start : segment.end]
    return {k: v for k, v in found.items() if v is not None}


def _rendered(name: str, value: Any) -> Any:
    """The part of a parameter that reaches the prompt."""
    if not isinstance(value, dict):
        return value
    hidden, defaults = _INVISIBLE.get(name, ()), _DEFAULTS.get(name, {})
    return {k: v for k, v in value.items() if k not in hidden and v is not None and defaults.get(k) != v}
