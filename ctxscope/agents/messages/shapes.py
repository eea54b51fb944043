"""What one logged message is: of which API's form, who wrote it, which tool calls it makes or answers.

Forms: ``chat`` and ``plain`` (role and text, which several APIs share), ``anthropic``, ``responses`` (input items),
``gemini`` (contents) and ``parts`` (OpenTelemetry GenAI: role and typed parts; wire_formats §1).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

from ctxscope import wire
from ctxscope.agents.messages import parts
from ctxscope.model import ApiName, Block, Body
from ctxscope.wire import json_text
from ctxscope.wire.blocks import listed, mapped, string

Form = Literal["plain", "chat", "anthropic", "responses", "gemini", "parts"]
Sort = Literal["system", "input", "result", "output"]

ROLES = frozenset({"system", "developer", "user", "assistant", "tool", "function", "model"})
BULK: Mapping[ApiName, str] = {
    "openai-chat": "messages",
    "anthropic-messages": "messages",
    "openai-responses": "input",
    "gemini": "contents",
}
"""Key of the conversation in each API's body."""
API_OF: Mapping[Form, ApiName] = {
    "chat": "openai-chat",
    "anthropic": "anthropic-messages",
    "responses": "openai-responses",
    "gemini": "gemini",
}
FITS: Mapping[ApiName, frozenset[Form]] = {
    "openai-chat": frozenset({"plain", "chat"}),
    "anthropic-messages": frozenset({"plain", "anthropic"}),
    "openai-responses": frozenset({"plain", "responses"}),
    "gemini": frozenset({"gemini"}),
}
"""Forms that an API's body carries as they are; another one is compared by value."""
_SAYS = ("content", "parts", "tool_calls", "function_call", "refusal", "reasoning_content", "reasoning")
_ANTHROPIC = frozenset(
    {"tool_use", "tool_result", "thinking", "redacted_thinking", "server_tool_use", "document", "search_result"}
)
_CHAT = frozenset({"image_url", "input_audio", "file"})
_RESPONSES = frozenset({"input_text", "output_text", "input_image", "input_file"})
_CHAT_KEYS = ("tool_calls", "tool_call_id", "function_call", "reasoning_content", "reasoning_details")


@dataclass(frozen=True, slots=True)
class About:
    """One message, looked at."""

    role: str
    form: Form
    sort: Sort
    calls: frozenset[str]
    """Ids of the tool calls it makes."""
    answers: frozenset[str]
    """Ids of the tool calls it answers."""
    identity: str
    """What tells an answer from others although something in it was edited: its call ids, else what it says."""


NOTHING = About("", "plain", "input", frozenset(), frozenset(), "")


def is_message(value: Any) -> bool:
    """Whether a parsed value is one message, or one input item, of a form known here."""
    if not isinstance(value, dict):
        return False
    role, kind = value.get("role"), value.get("type")
    if isinstance(role, str):
        return role in ROLES and any(key in value for key in _SAYS)
    return isinstance(kind, str) and _is_item(kind) and bool({"call_id", "summary", "id", "output"} & value.keys())


def _is_item(kind: str) -> bool:
    return kind in ("reasoning", "item_reference", "compaction") or kind.endswith(("_call", "_call_output"))


@lru_cache(maxsize=1 << 15)
def about(text: bytes) -> About:
    """What a message is, by its JSON text; ``NOTHING`` for what is none."""
    try:
        value = json_text.loads_leniently(text)
    except ValueError:
        return NOTHING
    if not is_message(value):
        return NOTHING
    form, content = _form(value), value.get("content")
    if form == "plain" and isinstance(content, str):
        return About(value["role"], form, _sort(value["role"], ()), frozenset(), frozenset(), content)
    said = blocks(form, (text,)) if form != "plain" or value.get("role") not in ("system", "developer") else ()
    calls = frozenset(b.id for b in said if b.kind == "tool_call" and b.id)
    answers = frozenset(b.id for b in said if b.kind == "tool_result" and b.id)
    role = string(value.get("role")) or ("assistant" if not string(value.get("type")).endswith("_output") else "tool")
    told = " ".join(sorted(calls)) or "\n".join(b.text for b in said if b.kind in ("text", "tool_call"))
    return About(role, form, _sort(role, said), calls, answers, told or text.decode("utf-8", "replace"))


def _sort(role: str, said: Sequence[Block]) -> Sort:
    if role in ("system", "developer"):
        return "system"
    if role in ("assistant", "model"):
        return "output"
    if role in ("tool", "function") or (said and all(b.kind == "tool_result" for b in said)):
        return "result"
    return "input"


def _form(value: Mapping[str, Any]) -> Form:
    if isinstance(value.get("parts"), list):
        inner = [mapped(p) for p in value["parts"]]
        return "parts" if any("type" in p for p in inner) else "gemini"
    if "role" not in value or value.get("type") == "message":
        return "responses"
    if any(value.get(key) for key in _CHAT_KEYS) or value["role"] in ("tool", "function"):
        return "chat"
    kinds = {string(mapped(b).get("type")) for b in listed(value.get("content"))}
    if kinds & _RESPONSES:
        return "responses"
    if kinds & _ANTHROPIC or any("source" in mapped(b) for b in listed(value.get("content"))):
        return "anthropic"
    return "chat" if kinds & _CHAT or value["role"] == "developer" else "plain"


def common_form(texts: Iterable[bytes]) -> Form:
    """The form of messages that stand together: that of the first that is not plain."""
    return next((form for form in (about(t).form for t in texts) if form != "plain"), "plain")


@lru_cache(maxsize=1 << 12)
def blocks(form: Form, texts: tuple[bytes, ...]) -> tuple[Block, ...]:
    """What messages say, one after another, in the form common to all APIs."""
    if form == "parts":
        return tuple(block for text in texts for block in parts.blocks(text))
    api = API_OF.get(form, "openai-chat")
    body = Body(b'{"%s":[%s]}' % (BULK[api].encode(), b",".join(texts)), api, ())
    return tuple(block for message in wire.by_name(api).messages(body) for block in message.blocks)
