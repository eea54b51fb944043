"""What a served body shows outside its input, read without walking through the input."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ctxscope.agents import Log, shared_memo
from ctxscope.agents.codex.items import METADATA, PASSTHROUGH
from ctxscope.model import ApiName, Body, Segment
from ctxscope.wire import json_text
from ctxscope.wire.blocks import mapped
from ctxscope.wire.raw_object import member_texts, readable_members
from ctxscope.wire.spans import value_end

CHANGING = ("client_metadata", "previous_response_id")
"""Values that are another in each request: no two bodies share them."""
_WIRE_ONLY = (PASSTHROUGH.encode(), b'"%s":{' % METADATA.encode())
_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*"|[\[\]{}]', re.DOTALL)


@dataclass(frozen=True, slots=True, eq=False)
class Facts:
    """Top-level keys in order, the values of all but the input, and a little of that."""

    api: ApiName | None = None
    keys: tuple[str, ...] = ()
    values: Mapping[str, bytes] = field(default_factory=dict)
    readable: bool = False
    """Whether the whole body can be read, and is a request; else ``values`` are those before what is wrong."""
    count: int = 0
    """Items of the input."""
    first: bytes = b""
    """Its first item."""

    @property
    def is_socket(self) -> bool:
        """A message of a WebSocket, which says what it is."""
        return self.values.get("type") == b'"response.create"'

    @property
    def is_short(self) -> bool:
        """A request to ``/responses/compact``, which streams nothing."""
        return self.readable and "stream" not in self.values


def facts(log: Log, digest: str, load: Callable[[], Body]) -> Facts:
    """The facts of the body with this hash, which is loaded only the first time."""
    memo = shared_memo(log, "codex.facts")
    found: Facts | None = memo.get(digest) if digest else None
    if found is None:
        memo[digest] = found = _facts(load(), shared_memo(log, "codex.spellings"))
    return found


def _facts(body: Body, spellings: dict[bytes, bytes]) -> Facts:
    """Facts with long values shared between bodies: tools and instructions repeat in every call."""
    data = body.data
    last = next((s for s in reversed(body.segments) if s.path.startswith("/input/")), None)
    start, end, first = _input(body, last)
    try:
        found = member_texts(data[:start] + b"[]" + data[end:] if end else data)
    except ValueError:
        found = readable_members(data)
        return Facts(body.api, tuple(found), {k: v for k, v in found.items() if k != "input"})
    if not {"model", "input"} <= found.keys():
        return Facts(body.api, tuple(found), {k: v for k, v in found.items() if k != "input"})
    return Facts(
        api=body.api,
        keys=tuple(found),
        values={k: v if k in CHANGING else spellings.setdefault(v, v) for k, v in found.items() if k != "input"},
        readable=True,
        count=index_of(last) + 1 if last is not None else 0,
        first=spellings.setdefault(first, first),
    )


def index_of(segment: Segment) -> int:
    """Index of the item a segment lies in."""
    index = segment.path.split("/", 3)[2]
    return int(index) if index.isdigit() else 0


def _input(body: Body, last: Segment | None) -> tuple[int, int, bytes]:
    """Span of the input's array, ``last`` being the last segment in it, and its first item; nothing where it was not cut."""
    if last is None:
        return 0, 0, b""
    first = next(s for s in body.segments if s.path.startswith("/input/"))
    start = body.data.find(b"[", body.data.rfind(b'"input"', 0, first.start))
    end = _closed(body.data, last.end, last.path.count("/") - 1)
    if not end:
        return 0, 0, b""
    item = body.data[first.start : first.end] if first.start == start + 1 else b""
    return start, end, item if item[:1] == b"{" else b""


def _closed(data: bytes, at: int, depth: int) -> int:
    """Where so many objects and arrays that are open at a place are closed; 0 where they never are."""
    for token in _TOKEN.finditer(data, at):
        depth += {b"[": 1, b"{": 1, b"]": -1, b"}": -1}.get(token[0], 0)
        if depth == 0:
            return token.end()
    return 0


def _item(data: bytes, start: int) -> bytes:
    """The item that starts there, as spelled; empty where none does."""
    text = data[start:].decode("latin-1")
    try:
        return data[start : start + value_end(text, 0)] if text[:1] == "{" else b""
    except ValueError:
        return b""


def marked_items(body: Body) -> list[Mapping[str, Any]]:
    """All items of the input, parsed; none where no item carries what others are sent without."""
    if not any(mark in body.data for mark in _WIRE_ONLY):
        return []
    try:
        given = mapped(json_text.loads_leniently(body.data)).get("input")
    except ValueError:
        return []
    return [mapped(item) for item in given] if isinstance(given, list) else []


def last_item(body: Body) -> Mapping[str, bytes]:
    """The last item of the input, its values as spelled; nothing where it cannot be read."""
    inside = [s for s in body.segments if s.path.startswith("/input/")]
    last = index_of(inside[-1]) if inside else 0
    before = next((s for s in reversed(inside) if index_of(s) < last), None)
    if before is None:
        at = _input(body, inside[-1] if inside else None)[0] + 1
    else:
        depth = before.path.count("/") - 2
        at = body.data.find(b"{", _closed(body.data, before.end, depth) if depth else before.end)
    try:
        return member_texts(_item(body.data, at))
    except ValueError:
        return {}
