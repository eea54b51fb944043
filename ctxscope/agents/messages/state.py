"""What one unit of a log tells: a message, or a whole request with, perhaps, what came back."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from typing import Any

from ctxscope.agents.messages import spans
from ctxscope.agents.messages.shapes import is_message
from ctxscope.agents.messages.tree import item_texts
from ctxscope.wire import json_text
from ctxscope.wire.blocks import mapped, string
from ctxscope.wire.raw_object import member_texts, spelled

CONVERSATION = ("messages", "input", "contents")
WRAPPERS = ("complete_input_dict", "request", "body", "payload", "request_body")
"""Members in which a request is kept, beside what came back (the first: LiteLLM's callback)."""
REPLIES = ("response", "output", "completion", "reply", "answer", "response_body")
SESSIONS = (
    "session_id",
    "conversation_id",
    "thread_id",
    "chat_id",
    "sessionId",
    "conversationId",
    "threadId",
    "chatId",
)
TIMES = ("timestamp", "created_at", "time", "ts", "created", "createdAt", "date", "started_at", "start_time")
HEAD = ("tools", "system", "instructions", "system_instruction", "systemInstruction")
"""What a request's head is logged as, beside the messages."""
_MILLISECONDS_FROM = 1e11
_LISTS = ("tool_calls", "parts")
_PACKED = re.compile(rb'"(?:tool_calls|parts)"\s*:\s*"')
_MARKS = frozenset({"model", "max_tokens", "temperature", "stream", *HEAD})
"""Members of which one shows that an object is a request."""


@dataclass(frozen=True, slots=True)
class State:
    """A conversation as it stood when something was logged: the messages of one request, or all so far."""

    messages: tuple[bytes, ...]
    """JSON text of each."""
    top: Mapping[str, bytes] = field(default_factory=dict)
    """Other members of the request, as logged."""
    response: bytes | None = None
    made: bool = False
    """A request was surely made of just these messages."""
    span: Mapping[str, Any] | None = None
    """Attributes of the span it was read from."""
    error: str | None = None


@lru_cache(maxsize=1 << 15)
def shared(text: bytes) -> bytes:
    """A message's text, one object for equal ones: requests repeat their history. A column's list is taken out of its text."""
    return _unpacked(text) if _PACKED.search(text) else text


def _unpacked(text: bytes) -> bytes:
    """A message whose tool calls stand in it as text: a table has them in a column of their own."""
    try:
        found = member_texts(text)
        for key in _LISTS:
            inner = json_text.loads(found[key]) if found.get(key, b"")[:1] == b'"' else ""
            if inner.lstrip()[:1] == "[" and isinstance(json_text.loads(inner), list):
                found[key] = inner.strip().encode("utf-8", "surrogatepass")
    except (ValueError, RecursionError):
        return text
    return spelled(found)


def session_of(value: Mapping[str, Any]) -> str | None:
    """The id of its session that a message or request states."""
    for source in (value, mapped(value.get("metadata"))):
        for key in SESSIONS:
            found = source.get(key)
            if isinstance(found, str | int) and not isinstance(found, bool) and found != "":
                return str(found)
    return None


def time_of(value: Mapping[str, Any]) -> float | None:
    """When something was logged, in seconds since the epoch: ISO text, seconds or milliseconds."""
    for key in TIMES:
        stamp = value.get(key)
        if isinstance(stamp, str):
            try:
                return datetime.fromisoformat(stamp).timestamp()
            except (ValueError, OverflowError):
                continue
        if isinstance(stamp, int | float) and not isinstance(stamp, bool) and 0 < stamp < _MILLISECONDS_FROM * 1e3:
            return stamp / 1000 if stamp > _MILLISECONDS_FROM else float(stamp)
    return None


def of_array(data: bytes) -> State | None:
    """A JSON array that is nothing but messages; ``None`` otherwise."""
    texts = _messages(data)
    return State(texts) if texts else None


def of_object(data: bytes) -> State | None:
    """An object that holds a conversation: a request, a row with a column of messages, a wrapped request; else ``None``."""
    try:
        found = member_texts(data)
    except (ValueError, RecursionError):
        return None
    outer, wrapped = found, False
    if isinstance(arguments := found.get("additional_args"), bytes) and b'"complete_input_dict"' in arguments:
        found = _members(arguments)
    for key in WRAPPERS:
        if key in found and any(name in (inner := _members(found[key])) for name in CONVERSATION):
            found, wrapped = inner, True
            break
    any_text = _is_request(found, outer)
    told = ((k, _messages(found[k], any_text=any_text)) for k in CONVERSATION if k in found)
    key, texts = next(((k, texts) for k, texts in told if texts), ("", ()))
    if not key:
        return None
    response = next((outer[k] for k in REPLIES if k in outer and outer[k] not in (b"null", b'""')), None)
    top = {k: shared(v) for k, v in found.items() if k != key and (wrapped or k not in REPLIES)}
    made = wrapped or response is not None or (bool(_MARKS & top.keys()) and not _is_answer(texts[-1]))
    return State(texts, top, response, made, error=_error(outer))


def of_span(told: Mapping[str, Any]) -> State:
    """The request and the answer that a model call's span holds."""
    given, out = told.get(spans.INPUT), told.get(spans.OUTPUT)
    top = {key: _as_text(told[key]) for key in (spans.SYSTEM, spans.TOOLS) if told.get(key) is not None}
    kept = {k: v for k, v in told.items() if k.startswith(("gen_ai.request.", "gen_ai.response.", "gen_ai.usage."))}
    kept |= {k: told[k] for k in ("gen_ai.agent.name", "gen_ai.provider.name") if k in told}
    error = told.get("error.type")
    response = None if out is None else _as_text(out)
    return State(_messages(_as_text(given)), top, response, True, kept, string(error) or None)


def _messages(data: bytes, *, any_text: bool = False) -> tuple[bytes, ...]:
    """The messages of a conversation's value, also where a column holds them as text; empty for anything else."""
    try:
        if data[:1] == b'"':
            inner = json_text.loads(data)
            if not inner.lstrip().startswith("["):
                return (b'{"role":"user","content":%s}' % data,) if any_text else ()
            data = inner.encode("utf-8", "surrogatepass")
        texts = item_texts(data)
        if not texts or not any(map(is_message, map(json_text.loads_leniently, texts))):
            return ()
    except (ValueError, RecursionError):
        return ()
    return tuple(map(shared, texts))


def _members(data: bytes) -> dict[str, bytes]:
    try:
        return member_texts(data)
    except (ValueError, RecursionError):
        return {}


def _is_request(found: Mapping[str, bytes], outer: Mapping[str, bytes]) -> bool:
    """Whether a text in the place of the messages is a prompt: of a request to the Responses API."""
    return "input" in found and "model" in found and ("object" in outer or "instructions" in found or "output" in outer)


def _is_answer(text: bytes) -> bool:
    value = json_text.loads_leniently(text)
    return isinstance(value, dict) and value.get("role") in ("assistant", "model")


def _error(outer: Mapping[str, bytes]) -> str | None:
    if (raw := outer.get("error")) is None:
        return None
    try:
        value = json_text.loads_leniently(raw)
    except ValueError:
        return None
    return string(value) or string(mapped(value).get("message")) or None


def _as_text(value: Any) -> bytes:
    """JSON text of an attribute: the string it is, or the value spelled."""
    if isinstance(value, str):
        return value.encode("utf-8", "surrogatepass")
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")
    except RecursionError:
        return b"null"
