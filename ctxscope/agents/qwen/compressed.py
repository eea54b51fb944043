"""What the line of a compression says of the history it took over."""

from __future__ import annotations

from collections.abc import Sequence

from ctxscope.agents.qwen.history import Turn

BRIDGE = "Continue with the prior task using the context above."
"""What a compression puts before kept contents that begin with an answer."""


def kept(turns: Sequence[Turn]) -> Sequence[Turn]:
    """What a compression kept of the history: what follows summary and thanks."""
    rest = turns[2:]
    bridged = rest[:1] and [p.get("text") for p in rest[0].parts] == [BRIDGE]
    return rest[1:] if bridged else rest


def asked_at(turns: Sequence[Turn], asked: Sequence[Turn]) -> int:
    """Where in a compression's line the contents stand that still waited for an answer; its length where they do not."""
    for at in range(len(turns) - len(asked), -1, -1) if asked else ():
        pairs = zip(turns[at : at + len(asked)], asked, strict=True)
        if all(one.role == "user" and one.parts[len(one.parts) - len(two.parts) :] == two.parts for one, two in pairs):
            return at
    return len(turns)


def summed_up(turns: Sequence[Turn], results: int) -> int:
    """How many contents a compression of 0.21.2 and later summed up: all, with the results of tools that wait to be sent.

    Without these a last answer with open tool calls is left out.
    """
    if results or not (turns and turns[-1].role == "model" and turns[-1].calls):
        return len(turns) + results
    return len(turns) - 1


def split(turns: Sequence[Turn], left: Sequence[Turn]) -> int:
    """How many contents a compression summed up; a last answer with open tool calls may be left out of both."""
    for end in (len(turns), len(turns) - 1):
        start = end - len(left)
        if start >= 0 and all(a.parts == b.parts for a, b in zip(turns[start:end], left, strict=True)):
            return start
    return max(0, len(turns) - len(left))
