"""omp's own token estimate: a quarter of the UTF-8 bytes of each fragment, rounded up (omp.md §6).

For model families its catalogue knows (Claude, Qwen 3, DeepSeek, Kimi, GLM) omp counts with the family's own tokenizer,
which is not reproduced here. Blocks of Anthropic's server tools count as their JSON, and stand under the envelope: the
compaction floor leaves both out.
"""

from __future__ import annotations

import math
import re

from ctxscope.agents import Log
from ctxscope.agents.omp.items import Item
from ctxscope.agents.omp.points import context_of, node_of
from ctxscope.agents.omp.trail import Trail
from ctxscope.agents.omp.tree import Node, path
from ctxscope.agents.pi.texts import blocks, string
from ctxscope.agents.reading.charges import Charge, added, estimated
from ctxscope.model import Estimate, Point
from ctxscope.wire.json_text import js

IMAGE_TOKENS, FRAME_TOKENS = 1200, 5024
NAIVE = 4
_HELD = frozenset({"head", "text", "thinking"})
"""What the sizes omp logs behind its compactions hold (``Estimate.verified``)."""
_COUNTED = re.compile(r"claude|qwen-?3|deepseek|kimi|glm", re.IGNORECASE)


def estimates(log: Log, point: Point) -> tuple[Estimate, ...]:
    """The head as omp last noted it and the messages as estimated, then the same as the compaction floor has them.

    The floor leaves reasoning envelopes out. Empty where omp counts with a family's tokenizer, or noted no head.
    """
    context, node = context_of(log, point), node_of(log, point)
    if context is None or node is None or is_counted(str(point.data.get("model"))):
        return ()
    head = head_of(node)
    if head is None:
        return ()
    charged = {**charges(*context), "head": head}
    floor = {**charged, "envelope": 0}
    return estimated("omp", charged, _HELD), estimated("omp compaction floor", floor, frozenset())


def is_counted(model: str) -> bool:
    """Whether omp counts with a tokenizer of the model's family, and estimates nothing."""
    return _COUNTED.search(model) is not None


def head_of(node: Node) -> int | None:
    """Tokens of system prompt and tools, as omp last noted them on the way to a node."""
    for step in path(node):
        message = step.entry.data.get("message")
        noted = message.get("contextSnapshot") if isinstance(message, dict) else None
        head = noted.get("nonMessageTokens") if isinstance(noted, dict) else None
        if isinstance(head, int):
            return head
    return None


def naive(log: Log, point: Point) -> int | None:
    """ceil(characters / 4) of the context's lines as logged, every field."""
    context = context_of(log, point)
    if context is None:
        return None
    trail, length = context
    return math.ceil(trail.characters[trail.counts[length]] / NAIVE)


def tokens(trail: Trail, length: int) -> int:
    """Estimated tokens of the first ``length`` items of a trail."""
    return sum(charges(trail, length).values())


def charges(trail: Trail, length: int) -> Charge:
    """The same by what is charged for; each item is estimated once."""
    if not trail.charges.length and trail.origin is not None:
        shared, upto = trail.origin
        trail.charges = shared.charges.cut(upto)
    return trail.charges.upto(trail.items, length, lambda item: {} if item.absent else of_item(item))


def of_item(item: Item) -> Charge:
    """Estimated tokens of one message, by what is charged for; reasoning envelopes count."""
    frame = item.entry.kind == "compaction"
    said = "tool_results" if item.role == "toolResult" else "text"
    return added(_block(b, said, frame=frame) for b in blocks(item.message.get("content")))


def _block(block: object, said: str, *, frame: bool) -> Charge:
    if not isinstance(block, dict):
        return {}
    kind = block.get("type")
    if kind == "image":
        return {"images": FRAME_TOKENS if frame else IMAGE_TOKENS}
    if kind == "toolCall":
        return {"tool_calls": fragment(string(block.get("name"))) + fragment(js(block.get("arguments") or {}))}
    if kind == "text":
        return {said: fragment(string(block.get("text")))}
    if kind == "thinking":
        texts = string(block.get("thinking")), string(block.get("thinkingSignature"))
        return {"thinking": fragment(texts[0]), "envelope": fragment(texts[1])}
    if kind == "anthropicServerTool":
        return {"envelope": fragment(js(block.get("block")))}
    return {"envelope": fragment(string(block.get("data")))} if kind == "redactedThinking" else {}


def fragment(text: str) -> int:
    """Estimated tokens of one text."""
    return (len(text.encode("utf-8", "surrogatepass")) + 3) >> 2
