"""pi's own token estimates: the compaction one and the one that caps a request (pi.md §6)."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ctxscope.agents.pi.texts import blocks, string
from ctxscope.wire.json_text import js

IMAGE_CHARACTERS = 4800
COMPACTION, REQUEST = 4.0, 3.5
"""Characters a token, in the two estimators."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """Both estimates after some messages: reported tokens of the last answer they trust, and what came after it."""

    compaction: int = 0
    request: int = 0
    newest: float = -math.inf
    """Largest message stamp so far, in milliseconds."""

    def after(self, role: str, message: Mapping[str, Any], stamp: float, *, current: bool) -> Estimate:
        """The estimates once one more message stands at the end.

        ``current`` is False for history that a compaction or context_edit changed after the message was answered: the
        compaction estimator does not trust usage across one.
        """
        usage = _total(message) if role == "assistant" else None
        counted = usage if current else None
        compaction = self.compaction + _tokens(role, message, COMPACTION) if counted is None else counted
        trusted = usage is not None and stamp >= self.newest
        request = usage if trusted and usage is not None else self.request + _tokens(role, message, REQUEST)
        return Estimate(compaction, request, max(self.newest, stamp))


def _total(message: Mapping[str, Any]) -> int | None:
    """Tokens an answer reported; ``None`` when it failed or reported nothing."""
    usage = message.get("usage")
    if message.get("stopReason") in {"error", "aborted"} or not isinstance(usage, Mapping):
        return None
    total = usage.get("totalTokens")
    if not total:
        total = sum(usage.get(k) or 0 for k in ("input", "output", "cacheRead", "cacheWrite"))
    return int(total) or None if isinstance(total, int | float) and abs(total) <= sys.float_info.max else None


def _tokens(role: str, message: Mapping[str, Any], per: float) -> int:
    """One message: characters over ``per``, rounded up."""
    if role != "system":
        return math.ceil(_characters(message.get("content")) / per)
    sections = message.get("sections")
    length = _units(string(message.get("content")))
    length += sum(_units(string(v)) for v in sections.values()) if isinstance(sections, Mapping) else 0
    tools = [_units(js(message[k])) for k in ("toolsAdded", "toolsRemoved") if message.get(k)]
    if per == COMPACTION:
        return math.ceil((length + sum(tools)) / per)
    return math.ceil(length / per) + sum(math.ceil(t / per) for t in tools)


def _characters(content: Any) -> int:
    total = 0
    for block in blocks(content):
        kind = block.get("type")
        if kind == "text":
            total += _units(string(block.get("text")))
        elif kind == "thinking":
            total += _units(string(block.get("thinking")))
        elif kind == "toolCall":
            total += _units(string(block.get("name"))) + _units(js(block.get("arguments")))
        elif kind == "image":
            total += IMAGE_CHARACTERS
    return total


def _units(text: str) -> int:
    """Length as JavaScript counts it: UTF-16 units."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2
