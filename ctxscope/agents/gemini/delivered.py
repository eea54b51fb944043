"""Signatures as replies delivered them, part by part of the answer that the log keeps (gemini.md §4).

The process keeps an answer's parts as they came and sends them again with the signatures they came with. Where a reply was
recorded it tells them before any request does, so that a request with another one is the one that differs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ctxscope.agents.gemini.history import Placed
from ctxscope.agents.gemini.parts import spelled, without_prefix
from ctxscope.model import Block, Reply
from ctxscope.wire.blocks import mapped

Replies = Callable[[int], Reply | None]
"""By number of a joined call, the reply it got; ``None`` where none was recorded."""


@dataclass(frozen=True, slots=True)
class Delivered:
    """What one reply said of the signatures of its answer."""

    calls: Mapping[int, bytes | None]
    """By number of the part, for its function calls; ``None``: it came without one."""
    all: frozenset[bytes]
    """Every signature in it. That of a text may be lost where its chunks are put together."""


def delivered(placed: Placed, reply: Reply | None) -> Delivered | None:
    """What a reply said of an answer's parts; ``None`` for one that broke off, or brought another answer."""
    if reply is None or not reply.complete or reply.error is not None:
        return None
    calls = [block for block in reply.blocks if block.kind == "tool_call"]
    logged = [mapped(part["functionCall"]) for part in placed.turn.parts if part.get("functionCall")]
    places = [number for number, part in enumerate(placed.sent.parts) if part.call]
    if not len(calls) == len(logged) == len(places):
        return None
    if any((call.name, call.id or None) not in _names(told) for call, told in zip(calls, logged, strict=True)):
        return None
    signatures = dict(zip(places, map(_signature, calls), strict=True))
    return Delivered(signatures, frozenset(s for block in reply.blocks if (s := _signature(block)) is not None))


def _names(logged: Mapping[str, object]) -> Sequence[tuple[object, str | None]]:
    """Name and id that a function call may have come with: the program gives one without an id an id of its own."""
    name = logged.get("name")
    return ((name, without_prefix(name, logged.get("id"))), (name, None))


def _signature(block: Block) -> bytes | None:
    return spelled(block.envelope) if block.envelope else None
