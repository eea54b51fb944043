"""What a served body shows beside its conversation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from ctxscope.agents import Log, shared_memo
from ctxscope.model import Body
from ctxscope.wire.blocks import listed, mapped, parsed
from ctxscope.wire.raw_object import member_texts
from ctxscope.wire.spans import items, value_end

BULK = {"openai-chat": "messages", "anthropic-messages": "messages", "openai-responses": "input"}
"""Where each API has the conversation; no other can be rebuilt."""
_SYSTEM = ("system", "developer")


@dataclass(frozen=True, slots=True, eq=False)
class Facts:
    """Top-level keys in order, the values of all but the conversation, the system messages it begins with."""

    api: str | None = None
    """``None`` for a body that cannot be read, which shows nothing."""
    keys: tuple[str, ...] = ()
    values: Mapping[str, bytes] = field(default_factory=dict)
    systems: tuple[bytes, ...] = ()
    form: str = ""
    """How reasoning is sent back; empty where no answer shows it."""


def facts(log: Log, digest: str, load: Callable[[], Body]) -> Facts:
    """The facts of the body with this hash, which is loaded only the first time."""
    memo = shared_memo(log, "opencode.facts")
    if digest not in memo:
        memo[digest] = _facts(load(), shared_memo(log, "opencode.spellings"))
    found: Facts = memo[digest]
    return found


def _facts(body: Body, spellings: dict[bytes, bytes]) -> Facts:
    try:
        members = member_texts(body.data)
    except ValueError:
        return Facts()
    keys = tuple(members)
    messages = members.pop(BULK.get(body.api or "", ""), b"")
    values = {key: spellings.setdefault(value, value) for key, value in members.items()}
    is_chat = body.api == "openai-chat"
    is_apart = body.api == "anthropic-messages"
    systems = () if is_apart else tuple(spellings.setdefault(s, s) for s in _systems(messages))
    return Facts(body.api, keys, values, systems, _form(body) if is_chat else "")


def _systems(messages: bytes) -> list[bytes]:
    """The system messages an array begins with, as spelled."""
    text = messages.decode("latin-1")
    found: list[bytes] = []

    def visit(index: int, start: int) -> int:
        end = value_end(text, start)
        if index == len(found) and mapped(parsed(messages[start:end])).get("role") in _SYSTEM:
            found.append(messages[start:end])
        return end

    if text[:1] == "[":
        items(text, 0, visit)
    return found


def _form(body: Body) -> str:
    """As the first answer shows that has reasoning, or the lack of the field in one without."""
    for message in listed(parsed(body.data).get("messages")):
        keys = list(mapped(message))
        if mapped(message).get("role") != "assistant":
            continue
        if "reasoning_content" not in keys:
            return "apart"
        if not message["reasoning_content"]:
            return "interleaved"
        if "tool_calls" in keys:
            return "interleaved" if keys.index("reasoning_content") > keys.index("tool_calls") else "apart"
    return ""
