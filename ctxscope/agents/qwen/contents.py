"""Contents as the log holds them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ctxscope.agents.qwen.history import Parts, Turn
from ctxscope.agents.qwen.messages import spelled
from ctxscope.model import Entry


def parts_of(message: Any) -> Parts:
    """The parts of a message; none where it has no such form."""
    parts = message.get("parts") if isinstance(message, Mapping) else None
    listed = parts if isinstance(parts, Sequence) and not isinstance(parts, str) else ()
    return tuple(p if isinstance(p, Mapping) else {"text": p} for p in listed if isinstance(p, Mapping | str))


def turn_of(content: Mapping[str, Any], entry: Entry) -> Turn:
    """A content that stands in a compression."""
    role = "model" if content.get("role") == "model" else "user"
    return Turn(role, parts_of(content), entry, len(spelled(content).decode("utf-8", "replace")))


def whole(value: Any) -> int | None:
    """A count as the log has it."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None
