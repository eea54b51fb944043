"""The harness's own token estimate, by which it decides to compact (dsh.md §6).

Each block ``ceil(UTF-16 units / 4) + 4``, each message 4 more; the tools ``ceil(units of their JSON / 4)``; signatures and
images are not priced. The counts it logs of messages are met to the token; of tools it logged none.
"""

from __future__ import annotations

import math
from typing import Any

from ctxscope.agents.dsh.answers import message_of
from ctxscope.agents.dsh.points import header_of
from ctxscope.agents.dsh.surface import Surface
from ctxscope.agents.dsh.texts import blocks, mapped, spelled, string
from ctxscope.agents.reading.charges import Charge, added, estimated
from ctxscope.model import Entry, Estimate

PER_TOKEN = 4
"""UTF-16 units a token."""
FRAME = 4
"""Tokens added for each block, and for each message."""
_KINDS = {"reasoning": "thinking", "tool-call": "tool_calls", "tool-result": "tool_results"}
_HELD = frozenset({"text", "thinking", "tool_calls", "tool_results", "bookkeeping"})
"""What the counts of replaced messages in its log hold (``Estimate.verified``)."""


def estimate(surface: Surface, head: Entry | None) -> Estimate:
    """What the harness makes of a request: all messages the model sees, and the head."""
    return estimated("DeepSeek Harness", added((charges(surface), of_head(head))), _HELD)


def of_surface(surface: Surface) -> int:
    """Tokens of all messages the model sees, the prompt among them."""
    return sum(charges(surface).values())


def charges(surface: Surface) -> Charge:
    """The same by what is charged for."""
    return surface.trail.charges.upto(surface.trail.nodes, surface.length, of_message)


def of_head(head: Entry | None) -> Charge:
    """Tokens of a request header: its tools as JSON, and in v0 its prompt."""
    if head is None:
        return {}
    header = header_of(head)
    charged: dict[str, int] = {}
    if "tools" in header:
        charged["tools"] = math.ceil(_units(spelled(header["tools"]).decode("utf-8", "replace")) / PER_TOKEN)
    if system := string(header.get("system")):
        charged |= {"system": math.ceil(_units(system) / PER_TOKEN), "bookkeeping": 2 * FRAME}
    return charged


def of_characters(surface: Surface) -> int:
    """ceil(characters / 4) of the messages as logged, every field; not of the stream kept beside an answer."""
    return math.ceil(surface.trail.total("characters", _characters, surface.length) / PER_TOKEN)


def _characters(entry: Entry) -> int:
    return len(spelled(message_of(entry)).decode("utf-8", "replace"))


def of_message(entry: Entry) -> Charge:
    """Tokens of one message, by what is charged for."""
    said = {"system/message": "system", "tool/result": "tool_results"}.get(entry.kind, "text")
    found = list(blocks(message_of(entry).get("content")))
    charged = added({_KINDS.get(str(b.get("type")), said): math.ceil(_length(b) / PER_TOKEN)} for b in found)
    return {**charged, "bookkeeping": FRAME + FRAME * len(found)}


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
