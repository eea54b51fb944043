"""Whether a request goes on from a reply: it repeats what the reply said, behind what both requests share."""

from __future__ import annotations

from ctxscope.analysis.prompts import Prompt
from ctxscope.analysis.visible_text import visible_text
from ctxscope.model import Reply

_LOOKED_AT = 64
"""Segments in which a reply is looked for: a summary and some messages kept may stand before it."""
_TEXT = 200
"""Characters of a reply's text that must stand there; clients trim and wrap the rest."""
_LEAST = 16
"""Shorter texts repeat by chance."""


def echoes(prompt: Prompt, depth: int, reply: Reply | None) -> bool:
    """Whether segments from ``depth`` on repeat a reply: an id of one of its tool calls, or the beginning of its text."""
    if reply is None:
        return False
    calls = [b.id.encode() for b in reply.blocks if b.kind == "tool_call" and b.id]
    said = " ".join(reply.text.split())[:_TEXT]
    if not calls and len(said) < _LEAST:
        return False
    for place in range(depth, min(depth + _LOOKED_AT, len(prompt.segments))):
        segment = prompt.segments[place]
        if segment.kind != "message" or segment.role not in ("assistant", "model", ""):
            continue
        sent = prompt.sent(place)
        if any(name in sent for name in calls):
            return True
        if len(said) >= _LEAST:
            text = " ".join(" ".join(t for _, t in visible_text(prompt.load(), segment).texts).split())
            if said in text:
                return True
    return False
