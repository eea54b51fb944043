"""What a served body shows: its top-level values, and its messages one by one, found without parsing all of it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ctxscope.agents import Log, shared_memo
from ctxscope.model import Body
from ctxscope.wire import json_text
from ctxscope.wire.raw_object import member_texts, readable_members
from ctxscope.wire.spans import items, members, value_end

_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*"|[\[\]{}]', re.DOTALL)
_MESSAGES = "/messages/"
_KEPT = 64
"""Bodies whose top is remembered beside those that taught something."""


@dataclass(frozen=True, slots=True, eq=False)
class Top:
    """Top-level keys in order, and the values of all but the conversation."""

    keys: tuple[str, ...] = ()
    values: Mapping[str, bytes] = field(default_factory=dict)
    start: int = 0
    """Offset behind the bracket that opens the conversation; 0 where there is none that can be read."""
    end: int = 0
    """Offset of the bracket that closes it."""


def top_of(log: Log, body: Body) -> Top:
    """The top of a body; equal values are one object for all bodies of a session."""
    memo = shared_memo(log, "claude_code.tops")
    found: Top | None = memo.get(body.sha256) if body.sha256 else None
    if found is None:
        found = memo[body.sha256] = _top(body, shared_memo(log, "claude_code.values"))
        if len(memo) > _KEPT:
            del memo[next(iter(memo))]
    return found


def _top(body: Body, shared: dict[Any, Any]) -> Top:
    data = body.data
    start, end = _conversation(body)
    try:
        found = member_texts(data[: start - 1] + b"null" + data[end + 1 :] if start else data)
    except ValueError:
        torn = readable_members(data)
        return Top(tuple(torn), {k: v for k, v in torn.items() if k != "messages"})
    values = {k: shared.setdefault(v, v) for k, v in found.items() if k != "messages"}
    return Top(tuple(found), values, start, end)


def _conversation(body: Body) -> tuple[int, int]:
    """Inner span of the conversation's array; zeros where the body has none."""
    first = next((s for s in body.segments if s.path.startswith(_MESSAGES)), None)
    if first is None:
        return 0, 0
    last = next(s for s in reversed(body.segments) if s.path.startswith(_MESSAGES))
    at = body.data.rfind(b'"messages"', 0, first.start)
    start = body.data.find(b"[", at) + 1
    end = _closed(body.data, last.end, last.path.count("/") - 1)
    return (start, end - 1) if at >= 0 and end else (0, 0)


def _closed(data: bytes, at: int, depth: int) -> int:
    """Offset behind the token that closes ``depth`` open values; 0 where nothing does."""
    for token in _TOKEN.finditer(data, at):
        depth += {b"[": 1, b"{": 1, b"]": -1, b"}": -1}.get(token[0], 0)
        if depth == 0:
            return token.end()
    return 0


def message_number(path: str) -> int | None:
    """Number of the message a JSON pointer lies in; ``None`` where it lies in none."""
    steps = path.split("/", 3)
    return int(steps[2]) if path.startswith(_MESSAGES) and steps[2].isdigit() else None


def message_ends(body: Body, top: Top, first: int = 0, at: int = 0) -> list[int]:
    """Offsets behind the messages from number ``first`` on, which begins at or after ``at``."""
    lasts: list[tuple[int, int, int]] = []
    number = -1
    for segment in reversed(body.segments):
        if not segment.path.startswith(_MESSAGES):
            if lasts:
                break
            continue
        own = message_number(segment.path)
        if own is None or own < first:
            break
        if own != number:
            lasts.append((own, segment.end, segment.path.count("/") - 2))
            number = own
    ends = [_closed(body.data, end, depth) if depth else end for _, end, depth in reversed(lasts)]
    return [e for e in ends if at < e <= top.end]


@dataclass(frozen=True, slots=True, eq=False)
class ServedMessage:
    """One message of a body."""

    role: str
    content: Any
    """Its string, or the values of its blocks."""
    raw: Sequence[bytes]
    """Its blocks as spelled, cache marks left out; the whole message as one where its content is a string."""


def message_of(data: bytes) -> ServedMessage | None:
    """A message out of its bytes; ``None`` where it is none as Claude Code writes them."""
    text = data.decode("latin-1")
    spans: list[tuple[int, int]] = []

    def block(_: int, start: int) -> int:
        spans.append((start, value_end(text, start)))
        return spans[-1][1]

    def member(key: str, start: int) -> int:
        return items(text, start, block) if key == "content" and text[start] == "[" else value_end(text, start)

    try:
        value = json_text.loads(data)
        members(text, 0, member)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict) or not isinstance(value.get("role"), str):
        return None
    content = value.get("content")
    if isinstance(content, str):
        return ServedMessage(value["role"], content, (data,))
    if not isinstance(content, list) or not all(isinstance(b, dict) for b in content):
        return None
    return ServedMessage(
        value["role"], content, [_unmarked(data[a:b], v) for (a, b), v in zip(spans, content, strict=True)]
    )


def _unmarked(raw: bytes, value: Mapping[str, Any]) -> bytes:
    """A block's bytes without the cache mark that stands last in it."""
    if "cache_control" not in value:
        return raw
    at = raw.rfind(b',"cache_control":')
    return raw[:at] + b"}" if at > 0 else raw
