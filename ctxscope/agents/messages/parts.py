"""Messages as OpenTelemetry's GenAI conventions keep them: a role and typed parts (wire_formats §1).

pydantic-ai writes ``thinking`` for ``reasoning`` and ``result`` for ``response``; both are read.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ctxscope.model import Block
from ctxscope.wire import json_text
from ctxscope.wire.blocks import arguments, listed, mapped, string

THINKING = ("reasoning", "thinking")
RESPONSES = ("response", "result", "content")


def blocks(text: bytes) -> tuple[Block, ...]:
    """The parts of one message; empty texts are none."""
    try:
        message = mapped(json_text.loads_leniently(text))
    except ValueError:
        return ()
    return tuple(found for p in listed(message.get("parts")) if (found := _block(mapped(p))) is not None)


def _block(part: Mapping[str, Any]) -> Block | None:
    kind = string(part.get("type"))
    name, called = string(part.get("name")), string(part.get("id"))
    if kind == "text":
        return Block("text", string(part.get("content"))) if part.get("content") else None
    if kind in THINKING:
        return Block("thinking", string(part.get("content"))) if part.get("content") else None
    if kind == "tool_call":
        given = part.get("arguments")
        return Block("tool_call", "" if given is None else arguments(given), called, name)
    if kind == "tool_call_response":
        return Block("tool_result", result_text(result_of(part)), called, name)
    return Block("image" if kind in ("blob", "uri", "file", "image") else "other")


def result_of(part: Mapping[str, Any]) -> Any:
    """What a tool gave back."""
    return next((part[key] for key in RESPONSES if key in part), None)


def result_text(value: Any) -> str:
    """A tool's result as text."""
    return value if isinstance(value, str) else "" if value is None else arguments(value)
