"""An assistant row's answer as blocks: what the log keeps of a reply."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ctxscope.agents.hermes.canonical import sorted_arguments
from ctxscope.agents.hermes.rows import content_of, listed, tool_calls_of
from ctxscope.model import Block, Stop, StopState

_ENVELOPES = ("signature", "data", "encrypted_content")

_STOPS: Mapping[str, StopState] = {
    "stop": "complete",
    "tool_calls": "complete",
    "verification_required": "complete",
    "length": "truncated",
    "incomplete": "incomplete",
    "content_filter": "blocked",
}
"""hermes.md §2; a candidate that must be verified is a whole answer."""


def stop_of(data: Mapping[str, Any]) -> Stop | None:
    """Why an assistant row's answer ended; ``None`` where the row does not say."""
    reason = data.get("finish_reason")
    return Stop(reason, _STOPS.get(reason, "unknown")) if isinstance(reason, str) and reason else None


def answer_blocks(data: Mapping[str, Any]) -> tuple[Block, ...]:
    """Thinking, text and tool calls of an assistant row, in the order a reply gives them."""
    out = list(_thinking(data))
    content = content_of(data)
    if isinstance(content, list):
        content = "".join(str(p.get("text", "")) for p in content if isinstance(p, dict))
    if isinstance(content, str) and content:
        out.append(Block("text", content))
    for call in tool_calls_of(data):
        function = call.get("function")
        named = function if isinstance(function, dict) else {}
        arguments = named.get("arguments")
        spelled = sorted_arguments(arguments, ascii_only=False) if isinstance(arguments, str) else "{}"
        out.append(Block("tool_call", spelled, id=str(call.get("id") or ""), name=str(named.get("name") or "")))
    return tuple(out)


def _thinking(data: Mapping[str, Any]) -> list[Block]:
    """The thinking text once, and a block for each of the opaque items stored beside it."""
    details = [d for d in (listed(data.get("reasoning_details")) or []) if isinstance(d, dict)]
    items = [d for d in (listed(data.get("codex_reasoning_items")) or []) if isinstance(d, dict)]
    envelopes = [str(d[k]) for d in (*details, *items) for k in _ENVELOPES if isinstance(d.get(k), str)]
    text = data.get("reasoning") or data.get("reasoning_content") or ""
    first = [Block("thinking", str(text), envelope=envelopes[0] if envelopes else "")] if text or envelopes else []
    return [*first, *(Block("thinking", envelope=e) for e in envelopes[1:])]
