"""omp's own token estimate: a quarter of the UTF-8 bytes of each fragment, rounded up (omp.md §6).

For model families its catalogue knows (Claude, Qwen 3, DeepSeek, Kimi, GLM) omp counts with the family's own tokenizer,
which is not reproduced here.
"""

from __future__ import annotations

import math
import re

from ctxscope.agents import Log
from ctxscope.agents.omp.items import Item
from ctxscope.agents.omp.points import context_of, node_of
from ctxscope.agents.omp.trail import Trail
from ctxscope.agents.omp.tree import path
from ctxscope.agents.pi.texts import blocks, string
from ctxscope.model import Point
from ctxscope.wire.json_text import js

IMAGE_TOKENS, FRAME_TOKENS = 1200, 5024
NAIVE = 4
_COUNTED = re.compile(r"claude|qwen-?3|deepseek|kimi|glm", re.IGNORECASE)


def estimate(log: Log, point: Point) -> int | None:
    """Messages as estimated and the head as omp last noted it; ``None`` where it counts with a family's tokenizer."""
    context, node = context_of(log, point), node_of(log, point)
    if context is None or node is None or _COUNTED.search(str(point.data.get("model"))):
        return None
    for step in path(node):
        message = step.entry.data.get("message")
        noted = message.get("contextSnapshot") if isinstance(message, dict) else None
        head = noted.get("nonMessageTokens") if isinstance(noted, dict) else None
        if isinstance(head, int):
            return head + tokens(*context)
    return None


def naive(log: Log, point: Point) -> int | None:
    """ceil(characters / 4) of the context's lines as logged, every field."""
    context = context_of(log, point)
    if context is None:
        return None
    trail, length = context
    return math.ceil(trail.characters[trail.counts[length]] / NAIVE)


def tokens(trail: Trail, length: int) -> int:
    """Estimated tokens of the first ``length`` items of a trail; each is estimated once."""
    known = trail.tokens
    if len(known) == 1 and trail.origin is not None:
        shared, upto = trail.origin
        known[:] = shared.tokens[: upto + 1]
    for item in trail.items[len(known) - 1 : length]:
        known.append(known[-1] + (0 if item.absent else of_item(item)))
    return known[length]


def of_item(item: Item) -> int:
    """Estimated tokens of one message; reasoning envelopes count."""
    frame = item.entry.kind == "compaction"
    return sum(_block(b, frame=frame) for b in blocks(item.message.get("content")))


def _block(block: object, *, frame: bool) -> int:
    if not isinstance(block, dict):
        return 0
    kind = block.get("type")
    if kind == "image":
        return FRAME_TOKENS if frame else IMAGE_TOKENS
    if kind == "toolCall":
        return fragment(string(block.get("name"))) + fragment(js(block.get("arguments") or {}))
    names = {"text": ("text",), "thinking": ("thinking", "thinkingSignature"), "redactedThinking": ("data",)}
    return sum(fragment(string(block.get(name))) for name in names.get(str(kind), ()))


def fragment(text: str) -> int:
    """Estimated tokens of one text."""
    return (len(text.encode("utf-8", "surrogatepass")) + 3) >> 2
