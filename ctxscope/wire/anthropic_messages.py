"""The Anthropic Messages API."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from typing import Any, cast

from ctxscope.model import ApiName, Block, BlockKind, Body, Message, Reply, Segment, Stop, StopState, Usage
from ctxscope.wire import WireApi, cutting
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
    parsed,
    string,
    top,
)
from ctxscope.wire.body import make_body
from ctxscope.wire.forms import Shape, text_block
from ctxscope.wire.json_text import js, loads
from ctxscope.wire.layout import Fields, Layout, Slot, text_of
from ctxscope.wire.raw_object import array_text, member_texts, spelled
from ctxscope.wire.sse import Event, events, is_stream

name: ApiName = "anthropic-messages"

_ELSEWHERE = re.compile(
    r"/publishers/anthropic/models/[^/]+:(?:streamR|r)awPredict$|/model/.*claude[^/]*/invoke(?:-with-response-stream)?$"
)
"""Vertex and Bedrock (prompt_caching §1)."""
_PROFILE = re.compile(r"/model/arn(?:%3A|:).*/invoke(?:-with-response-stream)?$", re.IGNORECASE)
"""Bedrock's ARN of a profile that its user made, which does not name the model."""
_CLAUDE = b'"anthropic_version"'
"""What Bedrock wants in the bodies for Claude, and in no others."""

_STOPS: Mapping[str, StopState] = {
    "end_turn": "complete",
    "stop_sequence": "complete",
    "tool_use": "complete",
    "max_tokens": "truncated",
    "model_context_window_exceeded": "truncated",
    "pause_turn": "incomplete",
    "compaction": "incomplete",
    "refusal": "blocked",
}
"""prompt_caching §10."""
_STREAMED = {"text_delta": "text", "thinking_delta": "thinking", "signature_delta": "signature"}
"""Delta types that extend a string of their block, with its key."""
_TYPES = {"thinking": "thinking", "text": "text", "tool_call": "tool_use"}
_AT_THE_END = ("output_tokens", "output_tokens_details")
"""Usage for which ``message_start`` holds a placeholder: what was written is told by ``message_delta``, near the end."""


def _kind(kind: str) -> BlockKind:
    if kind in ("thinking", "redacted_thinking"):
        return "thinking"
    if kind in ("text", "image"):
        return cast("BlockKind", kind)
    if kind.endswith("tool_use"):
        return "tool_call"
    return "tool_result" if kind.endswith("tool_result") else "other"


def _block_kind(fields: Fields) -> BlockKind:
    return _kind(text_of(fields, "type"))


def _role(fields: Fields) -> str:
    return text_of(fields, "role")


def _system_string(quoted: str) -> str:
    return text_block(quoted, "text")


_PART = Shape({"source": Shape()})
_BLOCK = Shape({"source": Shape(), "content": Shape(_PART.members, each=True, text="text")})
_LAYOUT = Layout(
    name,
    {
        "tools": Slot("tool", 0, Shape()),
        "system": Slot("system", 1, _PART, bare=_system_string),
        "messages": Slot("message", 2, _BLOCK, inner=frozenset({"content"}), block_type="text"),
    },
    _role,
    _block_kind,
)


def matches(path: str, headers: Mapping[str, str], body: bytes) -> bool:  # noqa: ARG001 - the face of all APIs
    """``…/v1/messages``, whatever stands before it; not ``count_tokens`` or batches, and not without a body.

    Vertex and Bedrock take the same body under paths that name the model, or a profile that stands for one.
    """
    plain = path.partition("?")[0].rstrip("/")
    if not body:
        return False
    named = plain.endswith("/v1/messages") or _ELSEWHERE.search(plain) is not None
    return named or (_PROFILE.search(plain) is not None and _CLAUDE in body)


def segments(body: bytes, parent: Body | None) -> tuple[Segment, ...]:
    """See ``WireApi``."""
    return cutting.segments(_LAYOUT, body, parent)


def prompt(body: bytes, segment: Segment) -> bytes:
    """See ``WireApi``."""
    return cutting.prompt(_LAYOUT, body, segment)


def requested_max(body: Body) -> int | None:
    """``max_tokens``."""
    return integer(param(body, "max_tokens"))


def messages(body: Body, behind: str = "") -> tuple[Message, ...]:
    """See ``WireApi``; a ``system`` message among the others is one of them."""
    found = []
    for index, message in indexed(body, "messages", behind):
        path = f"/messages/{index}"
        content = mapped(message).get("content")
        if isinstance(content, str):
            blocks: tuple[Block, ...] = (Block("text", content, path=f"{path}/content"),)
        else:
            blocks = tuple(_block(b, f"{path}/content/{i}") for i, b in enumerate(listed(content)))
        found.append(Message(string(mapped(message).get("role")), blocks, path))
    return tuple(found)


def system(body: Body) -> str:
    """See ``WireApi``."""
    return joined_text(*top(body, "system"))


def is_continuation(body: Body) -> bool:
    """Whether the body continues a message thread (``thread.type`` ``continue``)."""
    return mapped(param(body, "thread")).get("type") == "continue"


def expand(
    body: Body,
    earlier: Body,
    reply: Reply | None,
    reply_bytes: bytes | None,
    stored: Sequence[Block] | None = None,
) -> Body | None:
    """The earlier messages, the answer and the new ones, under the earlier system and tools; see ``WireApi``.

    ``None`` unless the reply is whole and the one the thread names (prompt_caching §9).
    """
    if reply is None or reply_bytes is None or not reply.complete:
        return None
    thread = mapped(param(body, "thread"))
    if thread.get("type") != "continue" or not reply.id or thread.get("previous_message_id") != reply.id:
        return None
    try:
        before, now = member_texts(earlier.data), member_texts(body.data)
        content = _delivered(reply_bytes)[0]
        answer = js(
            {"role": "assistant", "content": content if stored is None else as_stored(content, stored)}
        ).encode()
        history = array_text(before["messages"], answer, now["messages"])
    except (ValueError, KeyError, RecursionError):
        return None
    kept = {k: v for k, v in before.items() if k in ("system", "tools") or k in now}
    effective = {**kept, **now, "messages": history}
    effective |= {k: before[k] for k in ("system", "tools") if k in before and k not in now}
    effective.pop("thread", None)
    return make_body(spelled(effective), cast("WireApi", sys.modules[__name__]), earlier)


def reply(data: bytes, headers: Mapping[str, str]) -> Reply:  # noqa: ARG001 - the face of all APIs
    """See ``WireApi``."""
    if is_stream(data):
        return _streamed(events(data))
    try:
        value = loads(data)
    except ValueError:
        return Reply(stop=Stop(None, "incomplete"), complete=False)
    if mapped(value).get("type") == "error" or "content" not in mapped(value):
        return Reply(error=error_text(value), stop=Stop(None, "error"))
    return _reply(value, complete=True)


def as_stored(content: Sequence[Any], stored: Sequence[Block]) -> list[Any]:
    """The content of a delivered answer, saying what the stored one says.

    Thinking that is not stored at all stays: agents that never keep it are not wrong about what was said.
    """
    kept: list[Any] = []
    left = {kind: [b for b in stored if b.kind == kind] for kind in ("thinking", "text", "tool_call")}
    said = {kind: [b for b in map(_block, content) if b.kind == kind] for kind in left}
    for kind in ("thinking", "text"):
        if _said(left[kind]) == _said(said[kind]) or (kind == "thinking" and not left[kind]):
            left[kind] = said[kind]
    queues = {kind: list(blocks) for kind, blocks in left.items()}
    for value in content:
        queue = queues.get(_block(value).kind)
        if queue is None:
            kept.append(value)
        elif queue:
            kept.append(_saying(mapped(value), queue.pop(0)))
    return kept + [_saying({"type": _TYPES[b.kind]}, b) for queue in queues.values() for b in queue]


def _said(blocks: Sequence[Block]) -> tuple[str, str]:
    return "".join(b.text for b in blocks), "".join(b.envelope for b in blocks)


def _saying(value: Mapping[str, Any], block: Block) -> dict[str, Any]:
    """A content block with the text, envelope, call of another block of its kind; as it is where they are the same."""
    if block.kind == "text":
        return {**value, "text": block.text}
    if block.kind == "tool_call":
        given = _ordered(_as_js(block.text), value.get("input"))
        same = js(given) == js(value.get("input"))
        return {**value, "id": block.id, "name": block.name, "input": value.get("input") if same else given}
    sealed = {"data" if "data" in value else "signature": block.envelope} if block.envelope else {}
    return {**value, **({"thinking": block.text} if "data" not in value else {}), **sealed}


def _as_js(text: str) -> Any:
    try:
        return loads(text)
    except ValueError:
        return text


def _ordered(value: Any, like: Any) -> Any:
    """A value with the keys of its objects in the order they have in another one."""
    if isinstance(value, dict) and isinstance(like, dict):
        keys = [k for k in like if k in value]
        return {k: _ordered(value[k], like.get(k)) for k in (*keys, *(k for k in value if k not in like))}
    if isinstance(value, list) and isinstance(like, list):
        padded = [*like, *([None] * len(value))]
        return [_ordered(v, padded[i]) for i, v in enumerate(value)]
    return value


def _block(value: Any, path: str = "") -> Block:
    block = mapped(value)
    kind = _kind(string(block.get("type")))
    if kind == "text":
        return Block(kind, string(block.get("text")), path=path)
    if kind == "thinking":
        envelope = string(block.get("signature")) or string(block.get("data"))
        return Block(kind, string(block.get("thinking")), envelope=envelope, path=path)
    if kind == "tool_call":
        called = arguments(block.get("input", {}))
        return Block(kind, called, string(block.get("id")), string(block.get("name")), path=path)
    if kind == "tool_result":
        return Block(kind, joined_text(block.get("content")), string(block.get("tool_use_id")), path=path)
    return Block(kind, path=path)


def _usage(source: Mapping[str, Any]) -> Usage | None:
    """Input is what follows the last breakpoint, apart from cached tokens already (prompt_caching §7)."""
    written = number(source, "cache_creation_input_tokens")
    if written is None:
        by_ttl = [number(source, "cache_creation", f"ephemeral_{ttl}_input_tokens") for ttl in ("5m", "1h")]
        written = sum(n for n in by_ttl if n is not None) if any(n is not None for n in by_ttl) else None
    usage = Usage(
        number(source, "input_tokens"),
        number(source, "cache_read_input_tokens"),
        written,
        number(source, "output_tokens"),
        first(number(source, "output_tokens_details", "thinking_tokens")),
    )
    return None if usage == Usage() else usage


def diagnostics_of(value: Any) -> str | None:
    """The API's own word on its cache, from an answer's ``diagnostics``: ``tools_changed (700 tokens)``; ``None``: none."""
    diagnostics = mapped(value)
    if "cache_miss_reason" not in diagnostics:
        return None
    reason = mapped(diagnostics["cache_miss_reason"])
    if not reason:
        return "pending"
    missed = number(reason, "cache_missed_input_tokens")
    return string(reason.get("type")) + (f" ({missed} tokens)" if missed is not None else "")


def _stop(message: Mapping[str, Any]) -> Stop:
    reason = string(message.get("stop_reason")) or None
    state: StopState = _STOPS.get(reason or "", "unknown")
    content = [mapped(b) for b in listed(message.get("content"))]
    answered = {string(b.get("tool_use_id")) for b in content}
    waiting = any(b.get("type") == "server_tool_use" and b.get("id") not in answered for b in content)
    return Stop(reason, "incomplete" if reason == "tool_use" and waiting else state)


def _reply(message: Mapping[str, Any], *, complete: bool, error: str | None = None) -> Reply:
    stop = _stop(message)
    if error is not None or not complete:
        stop = Stop(stop.reason, "error" if error is not None else "incomplete")
    return Reply(
        string(message.get("id")) or None,
        string(message.get("model")) or None,
        tuple(_block(b) for b in listed(message.get("content"))),
        _usage(mapped(message.get("usage"))),
        stop,
        error,
        diagnostics_of(message.get("diagnostics")),
        complete,
        edits=_edits(message.get("context_management")),
    )


def _edits(value: Any) -> tuple[str, ...]:
    """What the server cleared from the request (prompt_caching §9), as ``clear_tool_uses_20250919 (40000 tokens)``."""
    found = []
    for edit in map(mapped, listed(mapped(value).get("applied_edits"))):
        tokens = edit.get("cleared_input_tokens")
        name = string(edit.get("type")) or "an edit"
        found.append(f"{name} ({tokens} tokens)" if isinstance(tokens, int) else name)
    return tuple(found)


def _streamed(stream: list[Event]) -> Reply:
    message, ended, error = _assemble(stream)
    return _reply(message, complete=ended or error is not None, error=error)


def _delivered(data: bytes) -> tuple[list[Any], Mapping[str, Any]]:
    """The content blocks of a reply as the API would give them in one piece, and the message around them."""
    message = _assemble(events(data))[0] if is_stream(data) else parsed(data)
    return listed(message.get("content")), message


def _assemble(stream: list[Event]) -> tuple[dict[str, Any], bool, str | None]:
    """The message a stream builds, whether it came to its end, and the error it broke off with."""
    message: dict[str, Any] = {}
    content: dict[int, dict[str, Any]] = {}
    partial: dict[int, str] = {}
    placeholder: Mapping[str, Any] = {}
    ended, error = False, None
    for event in stream:
        value = mapped(event.value)
        kind = string(value.get("type")) or event.name
        index = integer(value.get("index")) or 0
        if kind == "message_start":
            message = dict(mapped(value.get("message")))
            placeholder = mapped(message.get("usage"))
            message["usage"] = {k: v for k, v in placeholder.items() if k not in _AT_THE_END}
            content = {i: dict(mapped(b)) for i, b in enumerate(listed(message.get("content")))}
            partial.clear()
        elif kind == "content_block_start":
            content[index] = dict(mapped(value.get("content_block")))
        elif kind == "content_block_delta":
            _extend(content.setdefault(index, {}), partial, index, mapped(value.get("delta")))
        elif kind == "message_delta":
            message |= mapped(value.get("delta"))
            message |= {k: v for k, v in value.items() if k in ("diagnostics", "context_management")}
            later = {k: v for k, v in mapped(value.get("usage")).items() if v is not None}
            message["usage"] = {**mapped(message.get("usage")), **later}
        elif kind == "message_stop":
            ended = True
            message["usage"] = {**placeholder, **mapped(message.get("usage"))}
        elif kind == "error":
            error = error_text(value) or "error"
    for index, text in partial.items():
        try:
            content[index]["input"] = loads(text)
        except ValueError:
            content[index]["input"] = text
    return {**message, "content": [content[i] for i in sorted(content)]}, ended, error


def _extend(block: dict[str, Any], partial: dict[int, str], index: int, delta: Mapping[str, Any]) -> None:
    kind = string(delta.get("type"))
    if kind in _STREAMED:
        key = _STREAMED[kind]
        block[key] = string(block.get(key)) + string(delta.get(key))
    elif kind == "input_json_delta":
        partial[index] = partial.get(index, "") + string(delta.get("partial_json"))
    elif kind == "citations_delta":
        block["citations"] = [*listed(block.get("citations")), delta.get("citation")]
    elif kind == "compaction_delta":
        block |= {k: v for k, v in delta.items() if k != "type"}
