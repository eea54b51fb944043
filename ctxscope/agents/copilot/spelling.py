"""JSON as the Copilot CLI writes it (``JSON.stringify``), for values nested as deep as they may be."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ctxscope.wire.json_text import js


def spelled(value: Any) -> str:
    """A parsed value as text; ``null`` for one nested too deep to be written."""
    try:
        return js(value)
    except RecursionError:
        return "null"


def raw(value: Any) -> bytes:
    """The same as bytes of a body."""
    return spelled(value).encode("utf-8", "surrogatepass")


def in_order(value: Any) -> Any:
    """A value with the keys of its objects sorted; ``None`` for one nested too deep."""
    try:
        return _sorted(value)
    except RecursionError:
        return None


def _sorted(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {k: _sorted(value[k]) for k in sorted(value)}
    return [_sorted(v) for v in value] if isinstance(value, list) else value
