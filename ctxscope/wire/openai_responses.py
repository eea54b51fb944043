"""The OpenAI Responses API."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any, cast

from ctxscope.model import ApiName, Block, BlockKind, Body, Message, Reply, Segment, Stop, StopState, Usage
from ctxscope.wire import WireApi, cutting
from ctxscope.wire.blocks import (
    arguments,
    error_text,
    indexed,
    integer,
    joined_text,
    listed,
    mapped,
    number,
    param,
    parsed,
    prompt_parts,
    string,
    top,
)
from ctxscope.wire.body import make_body
from ctxscope.wire.forms import Shape, text_block
from ctxscope.wire.json_text import js, loads
from ctxscope.wire.layout import Fields, Layout, Slot, text_of
from ctxscope.wire.raw_object import array_text, member_texts, spelled
from ctxscope.wire.sse import Event, events, is_stream

name: ApiName = "openai-responses"

_REASONS: Mapping[str, StopState] = {
    "max_output_tokens": "truncated",
    "max_messages": "incomplete",
    "content_filter": "blocked",
    "steered": "incomplete",
}
"""``incomplete_details.reason`` (prompt_caching §10)."""
_STATUSES: Mapping[str, StopState] = {"completed": "complete", "failed": "error"}
_ENDS = frozenset({"response.completed", "response.incomplete", "response.failed", "response.cancelled"})
_LEADING = ("system", "developer")


def _kind(kind: str) -> BlockKind:
    if kind in ("message", ""):
        return "text"
    if kind == "reasoning":
        return "thinking"
    if kind.endswith("_output"):
        return "tool_result"
    return "tool_call" if kind.endswith("_call") else "other"


def _block_kind(fields: Fields) -> BlockKind:
    return _kind(text_of(fields, "type"))


def _role(fields: Fields) -> str:
    return text_of(fields, "role") or _implied_role(_block_kind(fields))


def _implied_role(kind: BlockKind) -> str:
    if kind == "tool_result":
        return "tool"
    return "assistant" if kind in ("thinking", "tool_call") else ""


def _same(quoted: str) -> str:
    return quoted


def _user_message(quoted: str) -> str:
    return f'{{"content":[{text_block(quoted, "input_text")}],"role":"user"}}'


_ITEM = Shape(
    {
        "content": Shape(each=True, text="input_text"),
        "summary": Shape(each=True),
        "output": Shape(each=True, text="input_text"),
    }
)
_LAYOUT = Layout(
    name,
    {
        "tools": Slot("tool", 0, Shape()),
        "instructions": Slot("system", 1, Shape(), bare=_same),
        # the leading developer items make the system prompt too, but stay behind the instructions
        "input": Slot("message", 2, _ITEM, bare=_user_message, leading_rank=2),
    },
    _role,
    _block_kind,
)


def matches(path: str, headers: Mapping[str, str], body: bytes) -> bool:  # noqa: ARG001 - the face of all APIs
    """``…/responses`` with a body, and ``…/responses/compact``, which summarizes what it carries in the same form."""
    return bool(body) and path.partition("?")[0].rstrip("/").endswith(("/responses", "/responses/compact"))


def segments(body: bytes, parent: Body | None) -> tuple[Segment, ...]:
    """See ``WireApi``; system and developer items before any other are system, in rank with the input."""
    return cutting.segments(_LAYOUT, body, parent)


def prompt(body: bytes, segment: Segment) -> bytes:
    """See ``WireApi``."""
    return cutting.prompt(_LAYOUT, body, segment)


def requested_max(body: Body) -> int | None:
    """``max_output_tokens``."""
    return integer(param(body, "max_output_tokens"))


def messages(body: Body, behind: str = "") -> tuple[Message, ...]:
    """See ``WireApi``; what the model wrote in a row (reasoning, text, calls) is one assistant message."""
    items = list(indexed(body, "input", behind))
    if not items and not behind and isinstance(given := top(body, "input")[0], str):
        return (Message("user", (Block("text", given, path="/input"),), "/input"),)
    start = 0 if behind else _leading([m for _, m in items])
    found: list[Message] = []
    for index, value in items[start:]:
        item, path = mapped(value), f"/input/{index}"
        role = string(item.get("role")) or _implied_role(_kind(string(item.get("type"))))
        blocks = _blocks(item, path)
        if role == "assistant" and found and found[-1].role == "assistant":
            found[-1] = Message(role, found[-1].blocks + blocks, found[-1].path)
        else:
            found.append(Message(role, blocks, path))
    return tuple(found)


def system(body: Body) -> str:
    """See ``WireApi``; the instructions, then the leading system and developer items."""
    items = [m for _, m in indexed(body, "input", "")]
    texts = [joined_text(*top(body, "instructions"))]
    texts += [joined_text(mapped(i).get("content")) for i in items[: _leading(items)]]
    return "\n".join(t for t in texts if t)


def is_continuation(body: Body) -> bool:
    """Whether the body names a response to continue."""
    return bool(string(param(body, "previous_response_id")))


def expand(
    body: Body,
    earlier: Body,
    reply: Reply | None,
    reply_bytes: bytes | None,
    stored: Sequence[Block] | None = None,
) -> Body | None:
    """The earlier input, the output items and the new input, under the body's own instructions and tools.

    ``None`` unless the reply is whole and the one named; instructions and tools are not inherited by this API. No agent
    known stores the answer to a response it goes on from, so that from a ``stored`` one nothing is made.
    """
    if stored is not None or reply is None or reply_bytes is None or not reply.complete or not reply.id:
        return None
    if param(body, "previous_response_id") != reply.id:
        return None
    try:
        before, now = member_texts(earlier.data), member_texts(body.data)
        answer = js(_output(reply_bytes)).encode()
        history = array_text(_as_items(before["input"]), answer, _as_items(now.get("input", b"[]")))
    except (ValueError, KeyError, RecursionError):
        return None
    order = {key: now[key] for key in before if key in now}
    effective = {**order, **now, "input": history}
    del effective["previous_response_id"]
    return make_body(spelled(effective), cast("WireApi", sys.modules[__name__]), earlier)


def reply(data: bytes, headers: Mapping[str, str]) -> Reply:  # noqa: ARG001 - the face of all APIs
    """See ``WireApi``."""
    if is_stream(data):
        response, ended, error = _assemble(events(data))
        return _reply(response, complete=ended or error is not None, error=error)
    try:
        value = loads(data)
    except ValueError:
        return Reply(stop=Stop(None, "incomplete"), complete=False)
    if "output" not in mapped(value):
        return Reply(error=error_text(value), stop=Stop(None, "error"))
    return _reply(value, complete=True)


def _leading(items: list[Any]) -> int:
    """How many items at the start make the system prompt."""
    return next((i for i, m in enumerate(items) if mapped(m).get("role") not in _LEADING), len(items))


def _as_items(value: bytes) -> bytes:
    if value[:1] == b'"':
        return b'{"role":"user","content":' + value + b"}"
    return value


def _blocks(item: Mapping[str, Any], path: str = "") -> tuple[Block, ...]:
    kind, name = _kind(string(item.get("type"))), string(item.get("id"))
    if kind == "thinking":
        text = joined_text(item.get("summary")) or joined_text(item.get("content"))
        return (Block(kind, text, envelope=string(item.get("encrypted_content")), path=path, item_id=name),)
    called = string(item.get("call_id")) or name
    if kind == "tool_call":
        given = next((item[k] for k in ("arguments", "input", "action") if k in item), None)
        text = "" if given is None else arguments(given)
        return (Block(kind, text, called, string(item.get("name")) or _builtin(item), path=path, item_id=name),)
    if kind == "tool_result":
        return (Block(kind, joined_text(item.get("output")), called, path=path),)
    if kind == "text":
        content = item.get("content")
        if isinstance(content, str):
            return (Block("text", content, path=path and f"{path}/content", item_id=name),)
        return tuple(_part(mapped(p), path and f"{path}/content/{i}", name) for i, p in enumerate(listed(content)))
    return (Block(kind, envelope=string(item.get("encrypted_content")), path=path),)


def _builtin(item: Mapping[str, Any]) -> str:
    """Name of a tool the API brings itself: its call's type without the ending."""
    return string(item.get("type")).removesuffix("_call")


def _part(part: Mapping[str, Any], path: str, item: str) -> Block:
    kind = string(part.get("type"))
    if kind in ("input_text", "output_text", "text", "refusal"):
        return Block("text", string(part.get("refusal" if kind == "refusal" else "text")), path=path, item_id=item)
    return Block("image" if kind == "input_image" else "other", path=path)


def _usage(source: Mapping[str, Any]) -> tuple[Usage | None, tuple[str, ...]]:
    """Cached and written tokens are taken out of the input, which includes them (prompt_caching §7); what to doubt."""
    rest, read, written, doubts = prompt_parts(
        number(source, "input_tokens"),
        number(source, "input_tokens_details", "cached_tokens"),
        number(source, "input_tokens_details", "cache_write_tokens"),
    )
    output = number(source, "output_tokens")
    usage = Usage(rest, read, written, output, number(source, "output_tokens_details", "reasoning_tokens"))
    return (None if usage == Usage() else usage), doubts


def _diagnostics(value: Any) -> str | None:
    diagnostics = mapped(value)
    kind = string(diagnostics.get("type"))
    if not kind:
        return None
    miss = mapped(diagnostics.get("cache_miss")) or diagnostics
    reason, missed = string(miss.get("reason")), number(miss, "cache_missed_tokens")
    return kind + (f": {reason}" if reason else "") + (f" ({missed} tokens)" if missed is not None else "")


def _stop(response: Mapping[str, Any]) -> Stop:
    status = string(response.get("status"))
    reason = string(mapped(response.get("incomplete_details")).get("reason"))
    if status == "incomplete":
        return Stop(reason or status, _REASONS.get(reason, "incomplete"))
    refused = any(
        mapped(part).get("type") == "refusal"
        for item in listed(response.get("output"))
        for part in listed(mapped(item).get("content"))
    )
    if status == "completed" and refused:
        return Stop(status, "blocked")
    if status in ("cancelled", "queued", "in_progress"):
        return Stop(status, "incomplete")
    if not status and response.get("object") == "response.compaction":
        return Stop(None, "complete")  # it has no status: what there is of it is all
    return Stop(status or None, _STATUSES.get(status, "unknown"))


def _reply(response: Mapping[str, Any], *, complete: bool, error: str | None = None) -> Reply:
    error = error or error_text(response)
    stop = _stop(response)
    if error is not None or not complete:
        # the status a stream begins with is not why it ended
        reason = stop.reason if complete and stop.reason != "in_progress" else None
        stop = Stop(reason, "error" if error is not None else "incomplete")
    usage, doubts = _usage(mapped(response.get("usage")))
    return Reply(
        string(response.get("id")) or None,
        string(response.get("model")) or None,
        tuple(b for item in listed(response.get("output")) for b in _blocks(mapped(item))),
        usage,
        stop,
        error,
        _diagnostics(response.get("prompt_cache_diagnostics")),
        complete,
        doubts,
    )


def _output(data: bytes) -> list[Any]:
    """The output items of a reply, as the API gives them."""
    return listed((_assemble(events(data))[0] if is_stream(data) else parsed(data)).get("output"))


def _assemble(stream: list[Event]) -> tuple[dict[str, Any], bool, str | None]:
    """The response a stream builds, whether it came to its end, and the error it broke off with."""
    response: dict[str, Any] = {}
    items: dict[int, dict[str, Any]] = {}
    ended, error = False, None
    for event in stream:
        value = mapped(event.value)
        kind = string(value.get("type")) or event.name
        index = integer(value.get("output_index")) or 0
        if isinstance(value.get("response"), dict):
            response |= value["response"]
        if kind in ("response.output_item.added", "response.output_item.done"):
            items[index] = dict(mapped(value.get("item")))
        elif kind.endswith(".delta"):
            _extend(items.setdefault(index, {}), kind, value)
        elif kind == "error":
            error = error_text(value) or string(value.get("message")) or "error"
        ended = ended or kind in _ENDS
    if not listed(response.get("output")):
        response["output"] = [items[i] for i in sorted(items)]
    return response, ended, error


def _extend(item: dict[str, Any], kind: str, value: Mapping[str, Any]) -> None:
    """What a torn stream has of an item that never came whole."""
    text = string(value.get("delta"))
    if kind in ("response.function_call_arguments.delta", "response.mcp_call_arguments.delta"):
        item["arguments"] = string(item.get("arguments")) + text
    elif kind == "response.custom_tool_call_input.delta":
        item["input"] = string(item.get("input")) + text
    elif kind == "response.output_text.delta":
        _extend_part(item, "content", integer(value.get("content_index")) or 0, "output_text", text)
    elif kind == "response.reasoning_summary_text.delta":
        _extend_part(item, "summary", integer(value.get("summary_index")) or 0, "summary_text", text)
    elif kind == "response.reasoning_text.delta":
        _extend_part(item, "content", integer(value.get("content_index")) or 0, "reasoning_text", text)


def _extend_part(item: dict[str, Any], key: str, index: int, kind: str, text: str) -> None:
    parts = [dict(mapped(p)) for p in listed(item.get(key))]
    if not 0 <= index < len(parts):
        # parts come one after another: any other number is not to be trusted with memory
        index = len(parts)
        parts.append({"type": kind, "text": ""})
    parts[index]["text"] = string(parts[index].get("text")) + text
    item[key] = parts
