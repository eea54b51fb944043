"""What a served body shows outside its conversation, read without walking through the conversation."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ctxscope.agents import Log, shared_memo
from ctxscope.agents.messages.shapes import BULK
from ctxscope.agents.messages.spelling import spaces_shown
from ctxscope.model import ApiName, Body
from ctxscope.wire.overlap import lcp
from ctxscope.wire.raw_object import member_texts
from ctxscope.wire.spans import blank_end, value_end

_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*"|[\[\]{}]', re.DOTALL)


@dataclass(frozen=True, slots=True, eq=False)
class Facts:
    """Top-level keys in order, the values of all but the conversation, where that stands, how it is spelled."""

    api: ApiName | None = None
    model: str | None = None
    keys: tuple[str, ...] = ()
    values: Mapping[str, bytes] = field(default_factory=dict)
    bulk: str = ""
    """Key of the conversation; empty where the body cannot be read."""
    start: int = 0
    end: int = 0
    """Where its value stands."""
    lead: tuple[bytes, ...] = ()
    """Its first items that are system or developer messages."""
    spaced: bool | None = None


def facts(log: Log, digest: str, load: Callable[[], Body]) -> Facts:
    """The facts of the body with this hash, which is loaded only the first time."""
    memo = shared_memo(log, "messages.facts")
    found: Facts | None = memo.get(digest) if digest else None
    if found is None:
        memo[digest] = found = _facts(load(), shared_memo(log, "messages.values"))
    return found


@dataclass(eq=False, slots=True)
class Items:
    """Where the items of arrays stand, each array read from where it parts from the one before."""

    data: bytes = b""
    start: int = 0
    spans: list[tuple[int, int]] = field(default_factory=list)

    def of(self, data: bytes, start: int) -> Sequence[tuple[int, int]]:
        """The spans of the items of the array at ``start``."""
        if start != self.start:
            self.spans = []
        same = lcp(self.data, data)
        kept = bisect_left(self.spans, same, key=lambda span: span[1])
        kept = max(0, kept - 1)
        behind = self.spans[kept][0] if kept < len(self.spans) else None
        self.spans = self.spans[:kept]
        self.data, self.start = data, start
        self.spans += item_spans(data, start, behind if kept else None)
        return self.spans


def item_spans(data: bytes, start: int, first: int | None = None) -> Iterator[tuple[int, int]]:
    """Where the items of the array at ``start`` stand, from the one at ``first`` on; ends at what is not JSON."""
    base = start + 1 if first is None else first
    text = data[base:].decode("latin-1")
    at = blank_end(text, 0)
    while text[at : at + 1] not in ("]", ""):
        try:
            end = value_end(text, at)
        except ValueError:
            return
        yield at + base, end + base
        at = blank_end(text, end)
        if text[at : at + 1] != ",":
            return
        at = blank_end(text, at + 1)


def _facts(body: Body, kept: dict[bytes, bytes]) -> Facts:
    """Long values are shared between bodies: tools and system repeat in every call."""
    data = body.data
    if body.api is None:
        return Facts()
    key = BULK[body.api]
    start, end = _conversation(body, key)
    try:
        found = member_texts(data[:start] + b"null" + data[end:] if end else data)
    except (ValueError, RecursionError):
        return Facts(body.api, body.model)
    if not end and key in found:  # an empty list, or a prompt that is a text
        start = data.rfind(found[key])
        end = start + len(found[key])
    values = {k: kept.setdefault(v, v) for k, v in found.items() if k != key}
    lead = _lead(body, start) if data[start : start + 1] == b"[" else ()
    bulk = key if key in found else ""
    return Facts(body.api, body.model, tuple(found), values, bulk, start, end, lead, spaces_shown(data))


def _lead(body: Body, start: int) -> tuple[bytes, ...]:
    found: list[bytes] = []
    for at, end in item_spans(body.data, start):
        text = body.data[at:end]
        if not any(b'"%s"' % role in text[:400] for role in (b"system", b"developer")):
            break
        try:
            role = member_texts(text).get("role")
        except (ValueError, RecursionError):
            break
        if role not in (b'"system"', b'"developer"'):
            break
        found.append(text)
    return tuple(found)


def _conversation(body: Body, key: str) -> tuple[int, int]:
    """Span of the conversation's array; zeros when the body has none with items."""
    prefix = f"/{key}/"
    first = next((s for s in body.segments if s.path.startswith(prefix)), None)
    if first is None:
        return 0, 0
    last = next(s for s in reversed(body.segments) if s.path.startswith(prefix))
    at = body.data.rfind(b'"%s"' % key.encode(), 0, first.start)
    start = body.data.find(b"[", at)
    depth = last.path.count("/") - 1
    for token in _TOKEN.finditer(body.data, last.end):
        depth += {b"[": 1, b"{": 1, b"]": -1, b"}": -1}.get(token[0], 0)
        if depth == 0:
            return start, token.end()
    return 0, 0
