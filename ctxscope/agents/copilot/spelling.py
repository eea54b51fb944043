"""JSON as the Copilot CLI writes it, to its log and to the wire: serde_json's, with a sign in every exponent (measured)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import orjson

from ctxscope.wire.json_text import js, py

_PLAIN_FROM = -5
"""Least exponent of a number that is written without one."""
_LEAST, _MOST = -(2**63), 2**64 - 1
"""Whole numbers outside of these are read as floating ones."""
_BEYOND = 10**308


def spelled(value: Any) -> str:
    """A parsed value as text, its objects in the order they have; ``null`` for one nested too deep to be written."""
    try:
        return _written(value)
    except RecursionError:
        return "null"


def raw(value: Any) -> bytes:
    """The same as bytes of a body."""
    return spelled(value).encode("utf-8", "surrogatepass")


def canonical(value: Any) -> str:
    """A value with the keys of its objects sorted, as blocks of all APIs carry arguments; ``null`` for one too deep."""
    try:
        return js(_sorted(value))
    except RecursionError:
        return "null"


def _sorted(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {k: _sorted(value[k]) for k in sorted(value)}
    return [_sorted(v) for v in value] if isinstance(value, list) else value


def _written(value: Any) -> str:
    if isinstance(value, float):
        return _number(value)
    if isinstance(value, int) and not _LEAST <= value <= _MOST:
        return _number(float(value)) if abs(value) < _BEYOND else "null"
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, Mapping):
        return "{" + ",".join(f"{_text(str(k))}:{_written(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ",".join(map(_written, value)) + "]"
    return py(value)


def _text(text: str) -> str:
    try:
        return orjson.dumps(text).decode()
    except orjson.JSONEncodeError:  # half a surrogate pair
        return py(text)


def _number(number: float) -> str:
    if not math.isfinite(number):
        return "null"
    digits, has_exponent, exponent = repr(number).partition("e")
    if not has_exponent:
        return digits
    if _PLAIN_FROM <= int(exponent) < 0:
        return format(Decimal(repr(number)), "f")
    return f"{digits}e{int(exponent):+d}"
