"""What a person reads of a logged message: its role, and its texts and tool calls in order.

Agents put a message into their lines under few names; one whose form is its own takes what it needs from here.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ctxscope.model import Entry

_INSIDE = ("data", "message", "payload", "item")
"""Where a line holds its message; one may lie in another."""
_TEXTS = ("content", "parts", "text", "thinking", "summary", "output", "result", "response")
_CALLS = ("tool_calls", "functionCall", "function", "input", "arguments", "args")
_DEEPEST = 8


def role_and_texts(entry: Entry) -> tuple[str, Iterator[str]]:
    """Role, else kind, of the message in an entry, and its texts; nothing is read of those that are not asked for."""
    data: Mapping[str, Any] = entry.data
    for name in _INSIDE:
        inner = data.get(name)
        data = inner if isinstance(inner, Mapping) else data
    role = data.get("role")
    return role if isinstance(role, str) else entry.kind, texts(data)


def texts(value: Any, depth: int = 0) -> Iterator[str]:
    """Texts and tool calls of a message, or of a part of one, in the order a person reads them."""
    if depth > _DEEPEST:
        return
    if isinstance(value, str):
        if value:
            yield value
    elif isinstance(value, Mapping):
        yield from _of_object(value, depth)
    elif isinstance(value, Iterable):
        for each in value:
            yield from texts(each, depth + 1)


def _of_object(value: Mapping[str, Any], depth: int) -> Iterator[str]:
    name = value.get("name")
    if isinstance(name, str) and any(key in value for key in _CALLS):
        yield f"→ {name}"
    for key in _TEXTS:
        yield from texts(value.get(key), depth + 1)
    for key in _CALLS:
        held = value.get(key)
        if key == "tool_calls" or (isinstance(held, Mapping) and key in ("function", "functionCall")):
            yield from texts(_parsed(held), depth + 1)
        elif held:
            yield held if isinstance(held, str) else json.dumps(held, ensure_ascii=False, default=str)


def _parsed(value: Any) -> Any:
    """A column of JSON as its value; anything else as it is."""
    try:
        return json.loads(value) if isinstance(value, str | bytes) else value
    except (ValueError, RecursionError):
        return value
