"""Message threads: which earlier request a follow-up continues (pi.md §4.5)."""

from __future__ import annotations

from dataclasses import dataclass

from ctxscope.agents.pi.texts import string
from ctxscope.agents.pi.tree import Node
from ctxscope.wire import json_text


@dataclass(frozen=True, slots=True)
class Continued:
    """The answer a follow-up goes on from: its id, and how much of the trail its request was."""

    message_id: str
    length: int
    call: Node


def thread_before(node: Node) -> Continued | None:
    """The thread a request after ``node`` continues; ``None`` where history or head changed since, or nothing was sent."""
    call = node.call
    while call is not None and not _stands(call):
        call = call.parent.call if call.parent else None
    if call is None or call.parent is None:
        return None
    sent, message = call.parent, call.entry.data["message"]
    same_history = sent.trail is node.trail or node.trail.items[: sent.length] == sent.trail.items[: sent.length]
    if not same_history or node.length <= sent.length or node.trail.items[sent.length].entry is not call.entry:
        return None
    if not node.trail.heads[node.length].same(sent.trail.heads[sent.length]):
        return None
    return Continued(string(message.get("responseId")), sent.length, call)


def thread_from(node: Node, message_id: str) -> Continued | None:
    """The thread of the answer ``message_id`` on the path of ``node``, as far as the context still holds its request."""
    call = node.call
    while call is not None and (call.entry.data.get("message") or {}).get("responseId") != message_id:
        call = call.parent.call if call.parent else None
    if call is None or call.parent is None or not message_id:
        return None
    sent = call.parent
    whole = node.trail.items[: sent.length] == sent.trail.items[: sent.length]
    return Continued(message_id, sent.length, call) if whole and node.length > sent.length else None


def continued_id(thread: bytes) -> str:
    """The answer a served thread value continues from; empty where it does not."""
    try:
        value = json_text.loads(thread)
    except ValueError:
        return ""
    return string(value.get("previous_message_id")) if isinstance(value, dict) else ""


def _stands(call: Node) -> bool:
    """Whether the answer is one that later requests build on."""
    message = call.entry.data.get("message") or {}
    return message.get("stopReason") not in {"error", "aborted"} and bool(message.get("responseId"))
