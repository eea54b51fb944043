"""What a served request is for, by the fixed texts of the agent's own side calls (hermes.md §5)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ctxscope.model import Body, CallKind
from ctxscope.wire import by_name
from ctxscope.wire.blocks import joined_text, listed, mapped, parsed

_TITLE = "You name chat sessions."
_SUMMARY = "You are a summarization agent creating a"
_MICRO = "You are a conversation summarization assistant."
_LARGEST_SIDE = 4_000_000
"""A side call holds one text; nothing larger is parsed to look for it."""


def classify(body: Body) -> CallKind | None:
    """Kind of a served request; a body with tools is of the conversation."""
    if body.api is None:
        return None
    if any(s.kind == "tool" for s in reversed(body.segments)):
        return "main"
    if len(body.data) > _LARGEST_SIDE:
        return None
    value = parsed(body.data)
    system = by_name(body.api).system(body)
    if system.startswith(_TITLE):
        return "side"
    if system.startswith(_MICRO) or _first_user(value).startswith(_SUMMARY):
        return "compaction"
    return None


def _first_user(value: Mapping[str, Any]) -> str:
    for item in listed(value.get("messages", value.get("input"))):
        if mapped(item).get("role") == "user":
            return joined_text(item.get("content"))
    return ""
