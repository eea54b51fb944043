"""What a captured body shows that the log does not hold: envelope values, forms, marks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ctxscope.model import Body
from ctxscope.wire.json_text import loads
from ctxscope.wire.raw_object import member_texts


@dataclass(frozen=True, slots=True, eq=False)
class Top:
    """A body's top-level keys in order, and the bytes of each value."""

    keys: tuple[str, ...]
    values: Mapping[str, bytes]


def top_of(body: Body) -> Top:
    """Top-level keys and values as they are spelled; none for what is no JSON object."""
    try:
        values = member_texts(body.data)
    except ValueError:
        values = {}
    return Top(tuple(values), values)


def parsed(body: Body) -> Mapping[str, Any]:
    """The body as a JSON object; empty when it is none."""
    try:
        value = loads(body.data)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def system_parts(value: Mapping[str, Any]) -> tuple[list[str], Mapping[str, Any] | None, int]:
    """Texts of the system prompt as blocks, the cache mark on them, and how many carry one."""
    system = value.get("system", value.get("instructions"))
    if system is None:
        messages = value.get("messages")
        first = messages[0] if isinstance(messages, list) and messages and isinstance(messages[0], dict) else {}
        system = first.get("content") if first.get("role") in {"system", "developer"} else None
    if isinstance(system, str):
        return [system], None, 0
    blocks = [b for b in system if isinstance(b, dict)] if isinstance(system, list) else []
    marks = [b["cache_control"] for b in blocks if isinstance(b.get("cache_control"), dict)]
    return [str(b.get("text", "")) for b in blocks], (marks[0] if marks else None), len(marks)


def system_role(value: Mapping[str, Any]) -> str:
    """Role of a chat body's system message."""
    messages = value.get("messages")
    first = messages[0] if isinstance(messages, list) and messages else None
    return "developer" if isinstance(first, dict) and first.get("role") == "developer" else "system"


def tool_forms(value: Mapping[str, Any]) -> Mapping[str, bool]:
    """For each tool result of a chat body whether it is in loaded form (no ``name``), by tool-call id."""
    messages = value.get("messages")
    if not isinstance(messages, list):
        return {}
    tools = [m for m in messages if isinstance(m, dict) and m.get("role") == "tool"]
    forms = {str(m["tool_call_id"]): "name" not in m for m in tools if m.get("tool_call_id")}
    for message in messages:
        if isinstance(message, dict) and message.get("role") == "assistant" and message.get("tool_calls"):
            late = _late(list(message))
            if late is not None:
                forms.update(
                    {f"assistant:{c['id']}": late for c in message["tool_calls"] if isinstance(c, dict) and "id" in c}
                )
    return forms


def _late(keys: list[str]) -> bool | None:
    """Whether reasoning stands after the tool calls, as it does once loaded; ``None`` where that tells nothing.

    A padded ``reasoning_content`` stands late in a live message too.
    """
    calls = keys.index("tool_calls")
    if "reasoning_details" in keys:
        return keys.index("reasoning_details") > calls
    if "reasoning_content" in keys and keys.index("reasoning_content") < calls:
        return False
    return None
