"""JSON text as a tree of spans, so that what is taken over from a body keeps its bytes and can be told by place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from ctxscope.wire import json_text
from ctxscope.wire.spans import blank_end, items, members, value_end

DEEPEST = 60
"""Deeper values are taken as one piece."""


@dataclass(frozen=True, slots=True, eq=False)
class Node:
    """A JSON value at ``data[start:end]``."""

    data: bytes
    start: int
    end: int
    kind: Literal["object", "array", "value"]
    members: tuple[tuple[str, Node], ...] = ()
    items: tuple[Node, ...] = ()

    @property
    def raw(self) -> bytes:
        """Its text."""
        return self.data[self.start : self.end]

    @property
    def fields(self) -> Mapping[str, Node]:
        """Members by key; of equal keys the last."""
        return dict(self.members)

    @property
    def value(self) -> Any:
        """Parsed; ``None`` for what cannot be."""
        try:
            return json_text.loads_leniently(self.raw)
        except ValueError:
            return None

    @property
    def is_string(self) -> bool:
        """Whether it is a string."""
        return self.data[self.start : self.start + 1] == b'"'


def parse(data: bytes) -> Node | None:
    """The value a text is; ``None`` when it is not JSON."""
    text = data.decode("latin-1")
    try:
        return _node(data, text, blank_end(text, 0), DEEPEST)
    except (ValueError, RecursionError):
        return None


def _node(data: bytes, text: str, start: int, depth: int) -> Node:
    opening = text[start : start + 1]
    if opening == "{" and depth:
        found: list[tuple[str, Node]] = []

        def member(key: str, at: int) -> int:
            found.append((key, _node(data, text, at, depth - 1)))
            return found[-1][1].end

        return Node(data, start, members(text, start, member), "object", tuple(found))
    if opening == "[" and depth:
        inner: list[Node] = []

        def item(_: int, at: int) -> int:
            inner.append(_node(data, text, at, depth - 1))
            return inner[-1].end

        return Node(data, start, items(text, start, item), "array", (), tuple(inner))
    return Node(data, start, value_end(text, start), "value")


def item_texts(data: bytes) -> tuple[bytes, ...]:
    """The items of an array as they are spelled. Raises ``ValueError`` for anything else."""
    text = data.decode("latin-1")
    start = blank_end(text, 0)
    if text[start : start + 1] != "[":
        raise ValueError("not an array")
    found: list[bytes] = []

    def item(_: int, at: int) -> int:
        end = value_end(text, at)
        found.append(data[at:end])
        return end

    items(text, start, item)
    return tuple(found)


def documents(data: bytes) -> tuple[list[tuple[int, bytes]], int | None]:
    """JSON values one after another, each with its offset, and the offset of what is none (``None``: nothing is left over)."""
    text = data.decode("latin-1")
    found: list[tuple[int, bytes]] = []
    at = blank_end(text, 3 if data.startswith(b"\xef\xbb\xbf") else 0)
    while at < len(text):
        try:
            end = value_end(text, at)
        except ValueError:
            return found, at
        found.append((at, data[at:end]))
        at = blank_end(text, end)
    return found, None
