"""The harness's own token estimate, by which it decides to compact (dsh.md §6; its logged counts are met exactly)."""

from __future__ import annotations

import math
from typing import Any

from ctxscope.agents.dsh.answers import message_of
from ctxscope.agents.dsh.points import header_of
from ctxscope.agents.dsh.surface import Surface
from ctxscope.agents.dsh.texts import blocks, mapped, spelled, string
from ctxscope.model import Entry

PER_TOKEN = 4
"""UTF-16 units a token."""
FRAME = 4
"""Tokens added for each block, and for each message."""


def of_surface(surface: Surface) -> int:
    """Tokens of all messages the model sees, the prompt among them."""
    return surface.trail.total("tokens", _tokens, surface.length)


def of_head(head: Entry | None) -> int:
    """Tokens of a request header: its tools as JSON, and in v0 its prompt."""
    if head is None:
        return 0
    header = header_of(head)
    tools = (
        math.ceil(_units(spelled(header["tools"]).decode("utf-8", "replace")) / PER_TOKEN) if "tools" in header else 0
    )
    system = string(header.get("system"))
    return tools + (math.ceil(_units(system) / PER_TOKEN) + 2 * FRAME if system else 0)


def of_characters(surface: Surface) -> int:
    """ceil(characters / 4) of the messages as logged, every field; not of the stream kept beside an answer."""
    return math.ceil(surface.trail.total("characters", _characters, surface.length) / PER_TOKEN)


def _characters(entry: Entry) -> int:
    return len(spelled(message_of(entry)).decode("utf-8", "replace"))


def _tokens(entry: Entry) -> int:
    """One message; signatures are not priced."""
    return FRAME + sum(math.ceil(_length(b) / PER_TOKEN) + FRAME for b in blocks(message_of(entry).get("content")))


def _length(block: Any) -> int:
    kind = block.get("type")
    if kind in ("text", "reasoning"):
        return _units(string(block.get("text")))
    if kind == "tool-call":
        return _units(string(block.get("name"))) + _units(string(block.get("arguments")))
    return sum(_length(mapped(b)) for b in blocks(block.get("content"))) if kind == "tool-result" else 0


def _units(text: str) -> int:
    """Length as JavaScript counts it: UTF-16 units."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2
