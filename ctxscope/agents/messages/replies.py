"""What a log keeps of an answer: a whole reply, a message, or text; and what it says of tokens and of the end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from ctxscope import wire
from ctxscope.agents.messages.shapes import blocks, common_form, is_message
from ctxscope.agents.messages.tree import item_texts
from ctxscope.model import ApiName, Block, Stop, StopState, Usage
from ctxscope.wire import json_text
from ctxscope.wire.blocks import mapped, number, prompt_parts, string

_STOPS: Mapping[str, StopState] = {
    "stop": "complete",
    "tool_call": "complete",
    "tool_calls": "complete",
    "end_turn": "complete",
    "length": "truncated",
    "content_filter": "blocked",
    "error": "error",
}
"""Finish reasons of the GenAI conventions (wire_formats §1), and those providers' own words that spans carry."""


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer as stored."""

    blocks: tuple[Block, ...] | None = None
    ids: frozenset[str] = frozenset()
    usage: Usage | None = None
    stop: Stop | None = None
    model: str | None = None


NOT_KEPT = Answer()


@lru_cache(maxsize=256)
def answer(data: bytes) -> Answer:
    """The answer that a logged reply holds; ``NOT_KEPT`` for what is none."""
    try:
        value = json_text.loads_leniently(data)
    except ValueError:
        return NOT_KEPT
    if isinstance(value, str):
        return _of_text(value)
    api = _api(value)
    if api is not None:
        reply = wire.by_name(api).reply(data, {})
        return Answer(reply.blocks, reply.ids, reply.usage, reply.stop, reply.model)
    if isinstance(value, list):
        try:
            return said(item_texts(data))
        except ValueError:
            return NOT_KEPT
    return said((data,)) if is_message(value) else NOT_KEPT


def said(texts: tuple[bytes, ...]) -> Answer:
    """The answer that some logged messages are."""
    found = blocks(common_form(texts), texts)
    first = mapped(json_text.loads_leniently(texts[0])) if texts else {}
    named = string(first.get("response_id"))
    calls = frozenset(b.id for b in found if b.kind == "tool_call" and b.id)
    return Answer(found, calls | ({named} if named else frozenset()), _usage(first), _stop(first))


def of_span(data: bytes | None, told: Mapping[str, Any]) -> Answer:
    """The answer that a span holds in its output messages and attributes."""
    base = said(item_texts(data)) if data is not None and data[:1] == b"[" and len(data) > 2 else NOT_KEPT  # noqa: PLR2004 - "[]"
    named = string(told.get("gen_ai.response.id"))
    reasons = told.get("gen_ai.response.finish_reasons")
    reason = string(reasons[0]) if isinstance(reasons, list | tuple) and reasons else string(reasons)
    read, written = (number(told, f"gen_ai.usage.cache_{kind}.input_tokens") for kind in ("read", "creation"))
    total = number(told, "gen_ai.usage.input_tokens")
    rest, read, written, _ = prompt_parts(total, read, written)
    usage = Usage(
        rest,
        read,
        written,
        number(told, "gen_ai.usage.output_tokens"),
        number(told, "gen_ai.usage.details.reasoning_tokens"),
    )
    return Answer(
        base.blocks,
        base.ids | ({named} if named else frozenset()),
        None if usage == Usage() else usage,
        Stop(reason, _STOPS.get(reason, "unknown")) if reason else base.stop,
        string(told.get("gen_ai.response.model")) or None,
    )


def _of_text(text: str) -> Answer:
    """A reply kept as text: JSON or a stream of some API, else the text the model wrote."""
    data = text.encode("utf-8", "surrogatepass")
    if text.lstrip()[:1] in ("{", "[") and (inner := answer(data)) is not NOT_KEPT:
        return inner
    return Answer((Block("text", text),)) if text else NOT_KEPT


def _api(value: Any) -> ApiName | None:
    found = mapped(value)
    if "choices" in found:
        return "openai-chat"
    if "candidates" in found:
        return "gemini"
    if isinstance(found.get("output"), list):
        return "openai-responses"
    if isinstance(found.get("content"), list) and ("stop_reason" in found or "usage" in found):
        return "anthropic-messages"
    return None


def _stop(message: Mapping[str, Any]) -> Stop | None:
    reason = string(message.get("finish_reason")) or string(message.get("stop_reason"))
    return Stop(reason, _STOPS.get(reason, "unknown")) if reason else None


def _usage(message: Mapping[str, Any]) -> Usage | None:
    """Usage kept with a message, in the words of either OpenAI or Anthropic."""
    kept = mapped(message.get("usage"))
    if not kept:
        return None
    api: ApiName = "openai-chat" if "prompt_tokens" in kept else "anthropic-messages"
    if "input_tokens" in kept and isinstance(kept.get("input_tokens_details"), dict):
        api = "openai-responses"
    around: dict[str, dict[str, Any]] = {
        "openai-chat": {"choices": [{"message": {"content": ""}}], "usage": kept},
        "openai-responses": {"output": [], "status": "completed", "usage": kept},
        "anthropic-messages": {"type": "message", "content": [], "usage": kept},
    }
    return wire.by_name(api).reply(json_text.js(around[api]).encode("utf-8", "surrogatepass"), {}).usage
