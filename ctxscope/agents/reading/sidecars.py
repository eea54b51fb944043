"""What is stored where a sidecar may stand, as far as all agents take it alike."""

from __future__ import annotations

from typing import Any

from ctxscope.model import Ignored


def no_text(value: Any) -> Ignored | None:
    """What a value is that is no text; ``None`` for a text."""
    if isinstance(value, str):
        return None
    if isinstance(value, bytes):
        return "bytes"
    return "number" if isinstance(value, int | float) else "list" if isinstance(value, list) else "object"
