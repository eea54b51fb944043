"""What a served request is for, by the fixed texts of the agent's own side calls (hermes.md §5)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ctxscope.agents.hermes.served import parsed, system_parts
from ctxscope.model import Body, CallKind

_TITLE = "You name chat sessions."
_SUMMARY = "You are a summarization agent creating a"
_MICRO = "You are a conversation summarization assistant."
_LARGEST_SIDE = 4_000_000
"""A side call holds one text; nothing larger is parsed to look for it."""


def classify(body: Body) -> CallKind | None:
    """Kind of a served request; a body with tools is of the conversation."""
    if body.api is None:
        return None
    if any(s.kind == "tool" for s in body.segments):
        return "main"
    if len(body.data) > _LARGEST_SIDE:
        return None
    value = parsed(body)
    system = "".join(system_parts(value)[0])
    if system.startswith(_TITLE):
        return "side"
    if system.startswith(_MICRO) or _first_user(value).startswith(_SUMMARY):
        return "compaction"
    return None


def _first_user(value: Mapping[str, Any]) -> str:
    items = value.get("messages", value.get("input"))
    for item in items if isinstance(items, list) else ():
        if isinstance(item, dict) and item.get("role") == "user":
            content = item.get("content")
            if isinstance(content, list):
                return "".join(str(p.get("text", "")) for p in content if isinstance(p, dict))
            return content if isinstance(content, str) else ""
    return ""
