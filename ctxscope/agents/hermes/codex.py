"""Responses API: rows as input items, every stored reasoning item replayed each turn (hermes.md §4.5, §4.9)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ctxscope.agents.hermes.canonical import Message, blank, sorted_arguments
from ctxscope.agents.hermes.replay import Route

_REASONING_OWN = frozenset({"id", "_issuer_kind"})
"""Keys of a stored reasoning item the agent cuts before sending."""
_HOSTED = "other:"


def wire_items(messages: Sequence[Message], route: Route) -> list[list[dict[str, Any]]]:
    """The input items of each message, in order."""
    seen: set[str] = set()
    return [_items(m, route, seen) for m in messages]


def wire_tools(tools: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The snapshot's tools in this API's shape."""
    functions = [t.get("function") or {} for t in tools]
    return [
        {
            "type": "function",
            "name": f.get("name"),
            "description": f.get("description", ""),
            "strict": False,
            "parameters": f.get("parameters"),
        }
        for f in functions
    ]


def _items(message: Message, route: Route, seen: set[str]) -> list[dict[str, Any]]:
    content = message.data.get("content")
    if isinstance(content, str):
        content = content.strip()
    if message.role == "tool":
        output = "" if content is None else content
        return [{"type": "function_call_output", "call_id": message.data.get("tool_call_id"), "output": output}]
    if message.role == "user":
        return [{"role": "user", "content": _parts(content) if isinstance(content, list) else (content or "")}]
    reasoning = _reasoning(message, route, seen)
    return [*reasoning, *_said(message, content, bool(reasoning)), *_calls(message)]


def _reasoning(message: Message, route: Route, seen: set[str]) -> list[dict[str, Any]]:
    out: list[dict[str, Any]] = []
    items = message.data.get("codex_reasoning_items")
    for item in items if isinstance(items, list) else ():
        if not isinstance(item, dict) or _foreign(item, route):
            continue
        name = item.get("id")
        if isinstance(name, str) and name in seen:
            continue
        if isinstance(name, str):
            seen.add(name)
        out.append({k: v for k, v in item.items() if k not in _REASONING_OWN})
    return out


def _foreign(item: Mapping[str, Any], route: Route) -> bool:
    """Whether another host issued an encrypted item; only hosts named by URL can be compared."""
    issuer = item.get("_issuer_kind")
    if not isinstance(issuer, str) or not issuer.startswith(_HOSTED) or not route.base_url:
        return False
    return issuer.removeprefix(_HOSTED).rstrip("/") != route.base_url.rstrip("/")


def _said(message: Message, content: Any, reasoned: bool) -> list[dict[str, Any]]:
    items = message.data.get("codex_message_items")
    stored = [dict(i) for i in items if isinstance(i, dict)] if isinstance(items, list) else []
    if stored:
        return stored
    if blank(content):
        return [{"role": "assistant", "content": ""}] if reasoned else []
    return [{"role": "assistant", "content": content}]


def _calls(message: Message) -> list[dict[str, Any]]:
    out: list[dict[str, Any]] = []
    for call in message.data.get("tool_calls") or ():
        function = call.get("function")
        named = function if isinstance(function, dict) else {}
        text = named.get("arguments")
        out.append(
            {
                "type": "function_call",
                "call_id": call.get("call_id") or call.get("id"),
                "name": named.get("name"),
                "arguments": sorted_arguments(text, ascii_only=True) if isinstance(text, str) else "{}",
            }
        )
    return out


def _parts(content: Sequence[Any]) -> list[dict[str, Any]]:
    out: list[dict[str, Any]] = []
    for part in content:
        if isinstance(part, dict) and part.get("type") in {"image_url", "input_image"}:
            value = part.get("image_url")
            out.append({"type": "input_image", "image_url": value.get("url") if isinstance(value, dict) else value})
        elif isinstance(part, dict):
            out.append({"type": "input_text", "text": part.get("text", "")})
    return out
