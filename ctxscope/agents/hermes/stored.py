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
    if isinstance(content, bytes):  # a BLOB is no text to the agent, but it is what is kept of the answer
        content = content.decode("utf-8", "replace")
    if isinstance(content, list):
        content = "".join(str(p.get("text", "")) for p in content if isinstance(p, dict))
    if isinstance(content, str) and content:
        out.append(Block("text", content, item_id=_message_id(data)))
    for call in tool_calls_of(data):
        function = call.get("function")
        named = function if isinstance(function, dict) else {}
        arguments = named.get("arguments")
        spelled = sorted_arguments(arguments, ascii_only=False) if isinstance(arguments, str) else "{}"
        name, call_id, item_id = (
            str(found or "") for found in (named.get("name"), call.get("id"), call.get("response_item_id"))
        )
        out.append(Block("tool_call", spelled, id=call_id, name=name, item_id=item_id))
    return tuple(out)


def _message_id(data: Mapping[str, Any]) -> str:
    """The provider's id of the answer's text; empty where it came in several items, which the row joins."""
    items = _objects(data.get("codex_message_items"))
    return str(items[0].get("id") or "") if len(items) == 1 else ""


def _objects(column: Any) -> list[dict[str, Any]]:
    """The objects of a JSON column that holds a list; none of anything else."""
    found = listed(column)
    return [item for item in found if isinstance(item, dict)] if isinstance(found, list) else []


def _thinking(data: Mapping[str, Any]) -> list[Block]:
    """The thinking text once, and a block for each of the opaque items stored beside it."""
    details, items = _objects(data.get("reasoning_details")), _objects(data.get("codex_reasoning_items"))
    envelopes = [str(d[k]) for d in (*details, *items) for k in _ENVELOPES if isinstance(d.get(k), str)]
    text = data.get("reasoning") or data.get("reasoning_content") or ""
    first = [Block("thinking", str(text), envelope=envelopes[0] if envelopes else "")] if text or envelopes else []
    return [*first, *(Block("thinking", envelope=e) for e in envelopes[1:])]
