"""What a served body shows outside its conversation, read without walking through the conversation."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ctxscope.agents import Log, shared_memo
from ctxscope.model import ApiName, Body
from ctxscope.wire.raw_object import member_texts, readable_members
from ctxscope.wire.spans import value_end

BULK = ("messages", "input", "contents")
_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*"|[\[\]{}]', re.DOTALL)
_TAIL_BYTES = 400
"""Enough of the conversation's end to hold a cache mark on its last block."""
_HEAD_BYTES = 40
"""Enough of its start to hold the first message's role."""


@dataclass(frozen=True, slots=True, eq=False)
class Facts:
    """Top-level keys in order, the values of all but the conversation, and a little of that."""

    api: ApiName | None = None
    keys: tuple[str, ...] = ()
    values: Mapping[str, bytes] = field(default_factory=dict)
    bulk: str = ""
    """Key of the conversation; empty where the body cannot be read, and ``values`` are those before what is wrong."""
    start: int = 0
    """Offset of the first message in the body."""
    head: bytes = b""
    tail: bytes = b""
    """The conversation's first and last bytes."""

    def first_message(self, body: Body) -> bytes:
        """The first message as spelled; empty when there is none."""
        text = body.data[self.start :].decode("latin-1")
        try:
            return body.data[self.start : self.start + value_end(text, 0)] if text[:1] == "{" else b""
        except ValueError:
            return b""


def facts(log: Log, digest: str, load: Callable[[], Body]) -> Facts:
    """The facts of the body with this hash, which is loaded only the first time."""
    memo = shared_memo(log, "served.facts")
    found: Facts | None = memo.get(digest) if digest else None
    if found is None:
        found = _facts(load(), shared_memo(log, "served.spellings"))
        memo[digest] = found
    return found


def _facts(body: Body, spellings: dict[Any, Any]) -> Facts:
    """Facts with long values shared between bodies: tools and system repeat in every call."""
    data = body.data
    bulk, start, end = _conversation(body)
    try:
        found = member_texts(data[:start] + b"null" + data[end:] if bulk else data)
    except ValueError:
        found = readable_members(data)
        return Facts(body.api, tuple(found), {k: v for k, v in found.items() if k not in BULK})
    values = {k: spellings.setdefault(v, v) for k, v in found.items() if k != bulk}
    head, tail = data[start + 1 : start + 1 + _HEAD_BYTES], data[max(start, end - _TAIL_BYTES) : end]
    return Facts(body.api, tuple(found), values, bulk, start + 1, head, tail)


def _conversation(body: Body) -> tuple[str, int, int]:
    """Key and span of the conversation's array; an empty key when the body has none."""
    segments = body.segments
    first = next((s for s in segments if _bulk(s.path)), None)
    if first is None:
        return "", 0, 0
    last = next(s for s in reversed(segments) if _bulk(s.path))
    key = _bulk(first.path)
    at = body.data.rfind(b'"%s"' % key.encode(), 0, first.start)
    start = body.data.find(b"[", at)
    depth = last.path.count("/") - 1
    for token in _TOKEN.finditer(body.data, last.end):
        depth += {b"[": 1, b"{": 1, b"]": -1, b"}": -1}.get(token[0], 0)
        if depth == 0:
            return key, start, token.end()
    return "", 0, 0


def _bulk(path: str) -> str:
    name = path.split("/", 2)[1] if path.count("/") > 1 else ""
    return name if name in BULK else ""
