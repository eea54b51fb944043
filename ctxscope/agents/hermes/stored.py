"""An assistant row's answer as blocks: what the log keeps of a reply."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ctxscope.agents.hermes.canonical import sorted_arguments
from ctxscope.agents.hermes.rows import content_of, listed, tool_calls_of
from ctxscope.model import Block

_ENVELOPES = ("signature", "data", "encrypted_content")


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
    """The thinking text once, with the opaque bytes stored beside it."""
    details = [d for d in (listed(data.get("reasoning_details")) or []) if isinstance(d, dict)]
    items = [d for d in (listed(data.get("codex_reasoning_items")) or []) if isinstance(d, dict)]
    envelope = "".join(str(d[k]) for d in (*details, *items) for k in _ENVELOPES if isinstance(d.get(k), str))
    text = data.get("reasoning") or data.get("reasoning_content") or ""
    return [Block("thinking", str(text), envelope=envelope)] if text or envelope else []
