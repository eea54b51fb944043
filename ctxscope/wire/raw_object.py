"""Bodies put together from the bytes of others, so that what is taken over keeps its spelling."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping

from ctxscope.wire.json_text import js_string
from ctxscope.wire.spans import blank_end, members, value_end


def member_texts(data: bytes) -> dict[str, bytes]:
    """The top-level values of a JSON object by key, as they are spelled; of equal keys the last.

    Raises ``ValueError`` for anything but an object.
    """
    text = data.decode("latin-1")
    start = blank_end(text, 0)
    if text[start : start + 1] != "{":
        raise ValueError("not a JSON object")
    found: dict[str, bytes] = {}

    def visit(key: str, at: int) -> int:
        end = value_end(text, at)
        found[key] = data[at:end]
        return end

    members(text, start, visit)
    return found


def readable_members(data: bytes) -> dict[str, bytes]:
    """The same of a body that is torn or damaged, as far as it can be read; the value it ends in is empty."""
    text = data.decode("latin-1")
    found: dict[str, bytes] = {}

    def visit(key: str, at: int) -> int:
        found[key] = b""
        end = value_end(text, at)
        found[key] = data[at:end]
        return end

    with contextlib.suppress(ValueError):
        members(text, blank_end(text, 0), visit)
    return found


def array_text(*parts: bytes) -> bytes:
    """One array out of arrays, whose items are taken over, and single values."""
    inside = (p[1:-1].strip(b" \t\n\r") if p[:1] == b"[" else p for p in parts)
    return b"[" + b",".join(p for p in inside if p) + b"]"


def spelled(fields: Mapping[str, bytes]) -> bytes:
    """An object out of its keys and the bytes of their values."""
    return b"{" + b",".join(js_string(k).encode() + b":" + v for k, v in fields.items()) + b"}"
