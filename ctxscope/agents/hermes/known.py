"""Rows and columns that are known of Hermes's message table (hermes.md §3; schemas of 0.19 and 0.20)."""

from __future__ import annotations

from ctxscope.agents.reading.drift import Dialect
from ctxscope.model import Entry

_COLUMNS = (
    *("id", "session_id", "role", "content", "api_content", "timestamp", "token_count", "finish_reason"),
    *("tool_call_id", "tool_calls", "tool_name", "effect_disposition", "platform_message_id", "observed"),
    *("reasoning", "reasoning_content", "reasoning_details", "codex_reasoning_items", "codex_message_items"),
    *("active", "compacted", "display_kind", "display_metadata"),
)


def _role(entry: Entry) -> str:
    role = entry.data.get("role")
    return role if isinstance(role, str) else ""


DIALECT = Dialect(
    title="Hermes Agent",
    kinds=dict.fromkeys(("user", "assistant", "tool"), ()),
    common=_COLUMNS,
    kind=_role,
    sources=("messages", "parent_messages"),
)
