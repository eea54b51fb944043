"""pi's own token estimates: the compaction one and the one that caps a request (pi.md §6).

Both take the usage that the last answer they trust reported, and add for each later message ``ceil(UTF-16 units / n)``: n is
4 for compaction and 3.5 for the cap (1.x). A message counts its texts and thinking, names and arguments of its tool calls
as JSON, 4,800 units an image, never a signature; a system message its content, its sections, and the tools it adds as
JSON. The cap adds the tools it removes, and rounds each of the two alone; only the cap counts the fixed words that the
model reads around a summary or a command.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from ctxscope.agents.pi.texts import blocks, string
from ctxscope.agents.reading.charges import Charge, added, rounded
from ctxscope.wire.json_text import js

IMAGE_CHARACTERS = 4800
COMPACTION, REQUEST = 4.0, 3.5
"""Characters a token, in the two estimators."""


class Running(NamedTuple):
    """Both estimates after some messages: reported tokens of the last answer they trust, and what came after it."""

    compaction: int = 0
    request: int = 0
    newest: float = -math.inf
    """Largest message stamp so far, in milliseconds."""
    length: int = 0
    """Messages so far."""
    compaction_since: int = 0
    request_since: int = 0
    """Of them those up to the answer whose reported tokens stand for all before; 0: there is none."""

    def after(
        self,
        role: str,
        message: Mapping[str, Any],
        stamp: float,
        bare: Mapping[str, Any] | None = None,
        *,
        current: bool,
    ) -> Running:
        """The estimates once one more message stands at the end; ``bare``: as the compaction estimator takes it.

        ``current`` is False for history that a compaction or context_edit changed after the message was answered: the
        compaction estimator does not trust usage across one.
        """
        usage = _total(message) if role == "assistant" else None
        trusted = usage is not None and stamp >= self.newest
        counted = usage is not None and current
        own = (0, 0) if trusted and counted else _both(role, message, bare)
        length = self.length + 1
        return Running(
            usage if counted and usage is not None else self.compaction + own[0],
            usage if trusted and usage is not None else self.request + own[1],
            max(self.newest, stamp),
            length,
            length if counted else self.compaction_since,
            length if trusted else self.request_since,
        )


def _total(message: Mapping[str, Any]) -> int | None:
    """Tokens an answer reported; ``None`` when it failed or reported nothing."""
    usage = message.get("usage")
    if message.get("stopReason") in {"error", "aborted"} or not isinstance(usage, Mapping):
        return None
    total = usage.get("totalTokens")
    if not total:
        total = sum(usage.get(k) or 0 for k in ("input", "output", "cacheRead", "cacheWrite"))
    return int(total) or None if isinstance(total, int | float) and abs(total) <= sys.float_info.max else None


def _both(role: str, message: Mapping[str, Any], bare: Mapping[str, Any] | None) -> tuple[int, int]:
    """Tokens of one message by both estimators: what ``charge`` comes to, without telling its kinds apart."""
    if role == "system":
        return sum(charge(role, message, COMPACTION).values()), sum(charge(role, message, REQUEST).values())
    units = sum(count for _, count in _units(role, message.get("content")))
    own = units if bare is None else sum(count for _, count in _units(role, bare.get("content")))
    return math.ceil(own / COMPACTION), math.ceil(units / REQUEST)


def charge(role: str, message: Mapping[str, Any], per: float) -> Charge:
    """Tokens of one message by one of the estimators, by what it charges for."""
    if role != "system":
        return rounded(added({kind: count} for kind, count in _units(role, message.get("content"))), per)
    sections = message.get("sections")
    units = utf16(string(message.get("content")))
    units += sum(utf16(string(v)) for v in sections.values()) if isinstance(sections, Mapping) else 0
    named = ("toolsAdded",) if per == COMPACTION else ("toolsAdded", "toolsRemoved")
    tools = [utf16(js(message[k])) for k in named if message.get(k) or message.get(k) == []]
    if per == COMPACTION:
        return rounded({"system": units, "tools": sum(tools)}, per)
    return added((rounded({"system": units}, per), *(rounded({"tools": t}, per) for t in tools)))


def _units(role: str, content: Any) -> Iterator[tuple[str, int]]:
    """UTF-16 units of a content's blocks, each with what they are."""
    for block in blocks(content):
        kind = block.get("type")
        if kind == "text":
            yield "tool_results" if role == "toolResult" else "text", utf16(string(block.get("text")))
        elif kind == "thinking":
            yield "thinking", utf16(string(block.get("thinking")))
        elif kind == "toolCall":
            yield "tool_calls", utf16(string(block.get("name"))) + utf16(js(block.get("arguments")))
        elif kind == "image":
            yield "images", IMAGE_CHARACTERS


def utf16(text: str) -> int:
    """Length as JavaScript counts it: UTF-16 units."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2
