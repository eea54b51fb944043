"""Chat Completions: the message list as the agent spells it (hermes.md §4.7, §4.11)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any

from ctxscope.agents.hermes.canonical import Message, blank, sorted_arguments
from ctxscope.agents.hermes.replay import Route, reasoning_content
from ctxscope.wire.json_text import py

_MARKS = 4
"""Cache marks a request may carry."""
_KEPT = ("role", "name", "content", "tool_calls", "tool_call_id", "reasoning_details", "message_id", "observed")
_CALL_KEYS = ("id", "type", "index", "function")


def wire_message(message: Message, route: Route) -> dict[str, Any]:
    """A canonical message as the object served, in its key order."""
    out: dict[str, Any] = {}
    pads = route.pads_reasoning and message.role == "assistant"
    for name, value in message.data.items():
        if name == "tool_calls":
            out[name] = [wire_call(c, keeps_extra=route.kind[2]) for c in value]
        elif name == "reasoning_content":
            if pads:
                out[name] = reasoning_content(message.data)
        elif name == "content" and isinstance(value, str):
            out[name] = value.strip()
        elif name in _KEPT and (value is not None or name in {"content", "tool_call_id"}):
            out[name] = value
    if pads and "reasoning_content" not in out:
        out["reasoning_content"] = reasoning_content(message.data)
    return out


def wire_call(call: Mapping[str, Any], *, keeps_extra: bool) -> dict[str, Any]:
    """A tool call without the agent's own ids, its arguments compact, sorted and ASCII."""
    out = {k: v for k, v in call.items() if k in _CALL_KEYS or (keeps_extra and k == "extra_content")}
    function = call.get("function")
    if isinstance(function, dict):
        arguments = function.get("arguments")
        text = arguments if isinstance(arguments, str) else "{}"
        out["function"] = {**function, "arguments": sorted_arguments(text, ascii_only=True)}
    return out


def marked_positions(contents: Sequence[Any], used: int) -> frozenset[int]:
    """Messages that carry a cache mark: the last ones with content, as many as the system left (hermes.md §4.7.5)."""
    wanted = max(_MARKS - used, 0)
    filled = (i for i in range(len(contents) - 1, -1, -1) if not blank(contents[i]))
    return frozenset(islice(filled, wanted))


def marked(wire: Mapping[str, Any], mark: Mapping[str, Any]) -> dict[str, Any]:
    """A message with the mark on its (last) text."""
    content = wire["content"]
    if isinstance(content, str):
        parts: list[Any] = [{"type": "text", "text": content, "cache_control": mark}]
    else:
        parts = [*content[:-1], {**content[-1], "cache_control": mark}]
    return {**wire, "content": parts}


def spelled(wire: Mapping[str, Any]) -> bytes:
    """A message's bytes."""
    return py(wire).encode("utf-8", "replace")
