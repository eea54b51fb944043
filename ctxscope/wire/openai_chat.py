"""The OpenAI Chat Completions API and the many servers that speak it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ctxscope.model import ApiName, Block, BlockKind, Body, Message, Reply, Segment, Stop, StopState, Usage
from ctxscope.wire import cutting
from ctxscope.wire.blocks import (
    arguments,
    error_text,
    first,
    indexed,
    integer,
    joined_text,
    listed,
    mapped,
    number,
    param,
    prompt_parts,
    string,
)
from ctxscope.wire.forms import Shape
from ctxscope.wire.json_text import loads
from ctxscope.wire.layout import Fields, Layout, Slot, text_of
from ctxscope.wire.sse import Event, events, is_stream

name: ApiName = "openai-chat"

_STOPS: Mapping[str, StopState] = {
    "stop": "complete",
    "tool_calls": "complete",
    "function_call": "complete",
    "length": "truncated",
    "content_filter": "blocked",
    "sensitive": "blocked",
    "insufficient_system_resource": "incomplete",
    "network_error": "incomplete",
    "abort": "incomplete",
    "error": "error",
}
"""prompt_caching §10, the servers' own reasons among them."""
_LEADING = ("system", "developer")


def _block_kind(fields: Fields) -> BlockKind:
    if text_of(fields, "role") in ("tool", "function"):
        return "tool_result"
    called = any(fields.get(key, "null") not in ("null", "[]") for key in ("tool_calls", "function_call"))
    return "tool_call" if called else "text"


def _role(fields: Fields) -> str:
    return text_of(fields, "role")


_CALL = Shape({"function": Shape()})
_MESSAGE = Shape(
    {
        "content": Shape({"image_url": Shape()}, each=True, text="text"),
        "tool_calls": Shape(_CALL.members, each=True),
        "function_call": Shape(),
    }
)
_LAYOUT = Layout(
    name,
    {"tools": Slot("tool", 0, _CALL), "messages": Slot("message", 2, _MESSAGE, leading_rank=1)},
    _role,
    _block_kind,
)


def matches(path: str, headers: Mapping[str, str], body: bytes) -> bool:  # noqa: ARG001 - the face of all APIs
    """``…/chat/completions``, with a body."""
    return bool(body) and path.partition("?")[0].rstrip("/").endswith("/chat/completions")


def segments(body: bytes, parent: Body | None) -> tuple[Segment, ...]:
    """See ``WireApi``; one segment a message, system and developer messages before any other as system."""
    return cutting.segments(_LAYOUT, body, parent)


def prompt(body: bytes, segment: Segment) -> bytes:
    """See ``WireApi``."""
    return cutting.prompt(_LAYOUT, body, segment)


def requested_max(body: Body) -> int | None:
    """``max_completion_tokens``, or ``max_tokens`` of older servers."""
    return first(integer(param(body, "max_completion_tokens")), integer(param(body, "max_tokens")))


def messages(body: Body, behind: str = "") -> tuple[Message, ...]:
    """See ``WireApi``; without the leading system and developer messages."""
    found = [(i, mapped(m)) for i, m in indexed(body, "messages", behind)]
    start = 0 if behind else _leading([m for _, m in found])
    return tuple(_message(m, f"/messages/{i}") for i, m in found[start:])


def system(body: Body) -> str:
    """See ``WireApi``; the leading system and developer messages."""
    found = [m for _, m in indexed(body, "messages", "")]
    return "\n".join(joined_text(mapped(m).get("content")) for m in found[: _leading(found)])


def is_continuation(body: Body) -> bool:  # noqa: ARG001 - the face of all APIs
    """Never: this API has no state."""
    return False


def expand(*_: object, **__: object) -> Body | None:
    """Never: this API has no continuations."""
    return None


def reply(data: bytes, headers: Mapping[str, str]) -> Reply:  # noqa: ARG001 - the face of all APIs
    """See ``WireApi``; of several choices the first."""
    if is_stream(data):
        return _streamed(events(data))
    try:
        value = loads(data)
    except ValueError:
        return Reply(stop=Stop(None, "incomplete"), complete=False)
    choices = listed(mapped(value).get("choices"))
    error = error_text(value)
    if error is not None or not choices:
        return Reply(error=error, stop=Stop(None, "error"))
    choice = mapped(choices[0])
    return _reply(value, mapped(choice.get("message")), string(choice.get("finish_reason")), complete=True)


def _leading(found: list[Any]) -> int:
    """How many messages at the start make the system prompt."""
    return next((i for i, m in enumerate(found) if mapped(m).get("role") not in _LEADING), len(found))


def _message(message: Mapping[str, Any], path: str) -> Message:
    role = string(message.get("role"))
    if role in ("tool", "function"):
        called = string(message.get("tool_call_id"))
        named = string(message.get("name"))
        text = joined_text(message.get("content"))
        return Message(role, (Block("tool_result", text, called, named, path=f"{path}/content"),), path)
    return Message(role, _blocks(message, path), path)


def _blocks(message: Mapping[str, Any], path: str = "") -> tuple[Block, ...]:
    """Thinking, then content, then calls: the order in which they were written."""
    found = _thinking(message, path)
    content = message.get("content")
    if isinstance(content, str):
        found += [Block("text", content, path=path and f"{path}/content")] if content else []
    found += [_part(mapped(p), path and f"{path}/content/{i}") for i, p in enumerate(listed(content))]
    if refusal := string(message.get("refusal")):
        found.append(Block("text", refusal, path=path and f"{path}/refusal"))
    calls: list[tuple[str, Any]] = [(f"/tool_calls/{i}", c) for i, c in enumerate(listed(message.get("tool_calls")))]
    if message.get("function_call"):
        calls.append(("/function_call", {"function": message["function_call"]}))
    return (*found, *(_call(mapped(c), path and path + at) for at, c in calls))


def _thinking(message: Mapping[str, Any], path: str) -> list[Block]:
    details = [mapped(d) for d in listed(message.get("reasoning_details"))]
    if details:
        return [
            Block(
                "thinking",
                string(d.get("text")) or string(d.get("summary")),
                envelope=string(d.get("signature")) or string(d.get("data")),
                path=path and f"{path}/reasoning_details/{i}",
            )
            for i, d in enumerate(details)
        ]
    for key in ("reasoning_content", "reasoning", "reasoning_text"):
        if text := string(message.get(key)):
            return [Block("thinking", text, path=path and f"{path}/{key}")]
    return []


def _part(part: Mapping[str, Any], path: str) -> Block:
    kind = string(part.get("type"))
    if kind in ("text", "refusal"):
        return Block("text", string(part.get(kind)), path=path)
    return Block("image" if kind == "image_url" else "other", path=path)


def _call(call: Mapping[str, Any], path: str) -> Block:
    function = mapped(call.get("function")) or mapped(call.get("custom"))
    called = function.get("arguments", function.get("input"))
    text = "" if called is None else arguments(called)
    return Block("tool_call", text, string(call.get("id")), string(function.get("name")), path=path)


def _usage(source: Mapping[str, Any]) -> tuple[Usage | None, tuple[str, ...]]:
    """Cached and written tokens are taken out of the prompt, which includes them (prompt_caching §7).

    Reasoning is part of the completion, except where the total says it was added to it (xAI). Also what to doubt of it.
    """
    read = first(
        number(source, "prompt_tokens_details", "cached_tokens"),
        number(source, "prompt_cache_hit_tokens"),
        number(source, "cached_tokens"),
    )
    written = first(
        number(source, "prompt_tokens_details", "cache_write_tokens"),
        number(source, "prompt_tokens_details", "cache_creation_input_tokens"),
    )
    total = number(source, "prompt_tokens")
    rest, read, written, doubts = prompt_parts(total, read, written)
    reasoning = number(source, "completion_tokens_details", "reasoning_tokens")
    output = number(source, "completion_tokens")
    if total is not None and output is not None and reasoning:
        apart = number(source, "total_tokens") == total + output + reasoning
        output += reasoning if apart else 0
    usage = Usage(
        rest if doubts else first(number(source, "prompt_cache_miss_tokens"), rest),
        read,
        written,
        output,
        reasoning,
    )
    return (None if usage == Usage() else usage), doubts


def _reply(
    around: Mapping[str, Any], message: Mapping[str, Any], reason: str, *, complete: bool, error: str | None = None
) -> Reply:
    """A reply from the object around the choice, the message and the finish reason."""
    state: StopState = _STOPS.get(reason, "unknown")
    if message.get("refusal") and state == "complete":
        state = "blocked"
    if error is not None or not complete:
        state = "error" if error is not None else "incomplete"
    usage, doubts = _usage(mapped(around.get("usage")))
    if usage is not None and not complete and not reason:
        # servers that count in every chunk have only counted so far
        usage = replace(usage, output=None, reasoning=None)
    return Reply(
        string(around.get("id")) or None,
        string(around.get("model")) or None,
        _blocks(message),
        usage,
        Stop(reason or None, state),
        error,
        None,
        complete,
        doubts,
        served_by=string(around.get("provider")) or None,
        prompt_seconds=_prompt_seconds(mapped(around.get("timings"))),
    )


def _prompt_seconds(timings: Mapping[str, Any]) -> float | None:
    """llama.cpp's own timing of the prompt, in seconds (prompt_caching §5)."""
    spent = number(timings, "prompt_ms")
    return spent / 1000 if spent is not None and spent > 0 else None


def _streamed(stream: list[Event]) -> Reply:
    around: dict[str, Any] = {}
    message: dict[str, Any] = {}
    calls: dict[int, dict[str, Any]] = {}
    reason, ended, error = "", False, None
    for event in stream:
        ended = ended or event.done
        chunk = mapped(event.value)
        error = error or error_text(chunk)
        around |= {k: v for k, v in chunk.items() if k in ("id", "model", "usage", "provider", "timings") and v}
        for choice in listed(chunk.get("choices")):
            if (number(mapped(choice), "index") or 0) != 0:
                continue
            reason = string(mapped(choice).get("finish_reason")) or reason
            # some servers repeat usage inside the choice only
            if mapped(choice).get("usage") and "usage" not in around:
                around["usage"] = choice["usage"]
            _extend(message, calls, mapped(mapped(choice).get("delta")))
    if calls:
        message["tool_calls"] = [calls[i] for i in sorted(calls)]
    return _reply(around, message, reason, complete=ended or error is not None, error=error)


def _extend(message: dict[str, Any], calls: dict[int, dict[str, Any]], delta: Mapping[str, Any]) -> None:
    for key, value in delta.items():
        if key == "tool_calls":
            for number_, call in enumerate(listed(value)):
                _extend_call(calls, number_, mapped(call))
        elif key == "reasoning_details":
            message[key] = _extend_details(listed(message.get(key)), listed(value))
        elif key == "content" and isinstance(value, list):
            message[key] = [*listed(message.get(key)), *value]
        elif isinstance(value, str) and key not in ("role", "name"):
            message[key] = string(message.get(key)) + value
        elif isinstance(value, dict) and key == "function_call":
            _extend_function(message.setdefault(key, {}), value)


def _extend_call(calls: dict[int, dict[str, Any]], position: int, delta: Mapping[str, Any]) -> None:
    index = integer(delta.get("index"))
    call = calls.setdefault(position if index is None else index, {"function": {}})
    if string(delta.get("id")):
        call["id"] = delta["id"]
    _extend_function(call["function"], mapped(delta.get("function")))


def _extend_function(function: dict[str, Any], delta: Mapping[str, Any]) -> None:
    if string(delta.get("name")):
        function["name"] = delta["name"]
    called = delta.get("arguments")
    if isinstance(called, str):
        function["arguments"] = string(function.get("arguments")) + called
    elif called is not None:
        function["arguments"] = called


def _extend_details(known: list[Any], new: list[Any]) -> list[Any]:
    """Details with one index and type are parts of one."""
    found = [dict(mapped(d)) for d in known]
    for detail in map(mapped, new):
        last = found[-1] if found else {}
        same = bool(last) and (last.get("type"), last.get("index")) == (detail.get("type"), detail.get("index"))
        if not same or "index" not in detail:
            found.append(dict(detail))
            continue
        for key, value in detail.items():
            grows = key in ("text", "summary", "data", "signature") and isinstance(value, str)
            last[key] = string(last.get(key)) + value if grows else value
    return found
