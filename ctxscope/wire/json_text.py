"""JSON spelled as the clients spell it, so that a rebuilt body can equal a served one byte for byte.

Rules per client: wire_formats §2 of the project's reference, checked against recorded bodies.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from json.encoder import encode_basestring
from typing import Any

import orjson

_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_INTEGER_KEY = re.compile(r"0|[1-9][0-9]{0,9}")
_LARGEST_INDEX = 2**32 - 2
"""ECMAScript array indices end here; such keys come first, in numeric order."""
_EXPONENT_FROM, _EXPONENT_BELOW = 1e21, 1e-6
"""Number::toString switches to exponents at these magnitudes."""


def loads(data: bytes | str) -> Any:
    """Parse JSON, keeping what orjson refuses: lone surrogates, NaN, numbers beyond all measure.

    Raises ``ValueError`` for what is not JSON at all, and for nesting too deep to parse.
    """
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        return _by_json(data.decode("utf-8", "surrogatepass") if isinstance(data, bytes) else data, strict=True)


def loads_leniently(data: bytes) -> Any:
    """Parse what is JSON but for its spelling: control characters in strings, bytes that are no UTF-8 (U+FFFD here).

    A body that can be cut can be read so. Raises ``ValueError`` as ``loads`` does.
    """
    try:
        return loads(data)
    except ValueError:
        return _by_json(data.decode("utf-8", "replace"), strict=False)


def _by_json(text: str, *, strict: bool) -> Any:
    try:
        return json.loads(text, strict=strict, parse_int=_whole)
    except RecursionError:
        raise ValueError("nests too deep") from None


def _whole(digits: str) -> int | float:
    """An integer; what has more digits than Python cares to convert is infinite, as it is for a JS client."""
    try:
        return int(digits)
    except ValueError:
        return float(digits)


def js_string(text: str) -> str:
    r"""A string as ``JSON.stringify`` writes it: raw Unicode, lone surrogates escaped, U+2028 raw."""
    quoted: str = encode_basestring(text)
    return _LONE_SURROGATE.sub(lambda m: f"\\u{ord(m[0]):04x}", quoted)


def js(value: Any) -> str:
    """A parsed value as ``JSON.stringify`` writes it: compact, insertion order, integer-like keys first, JS numbers."""
    if isinstance(value, str):
        return js_string(value)
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return js_number(value)
    if isinstance(value, Mapping):
        return "{" + ",".join(f"{js_string(k)}:{js(value[k])}" for k in js_key_order(value)) + "}"
    if isinstance(value, Sequence):
        return "[" + ",".join(js(v) for v in value) + "]"
    raise TypeError(f"not a JSON value: {type(value).__name__}")


def js_key_order(keys: Mapping[str, Any]) -> list[str]:
    """Keys in the order a JS object enumerates them: array indices by value, then the rest as inserted."""
    numeric = [k for k in keys if _INTEGER_KEY.fullmatch(k) and int(k) <= _LARGEST_INDEX]
    if not numeric:
        return list(keys)
    return [*sorted(numeric, key=int), *(k for k in keys if k not in set(numeric))]


def js_number(value: float) -> str:
    """A number as ECMAScript's Number::toString(10) writes it; NaN and infinities are ``null`` in JSON."""
    try:
        number = float(value)
    except OverflowError:
        return "null"
    if number != number or number in (float("inf"), float("-inf")):  # noqa: PLR0124 - the NaN test
        return "null"
    if number == int(number) and abs(number) < _EXPONENT_FROM:
        exact = isinstance(value, int) and abs(value) <= 2**53
        return str(value) if exact else _integer(number)
    mantissa, _, exponent = repr(number).partition("e")
    if not exponent:
        return mantissa
    if abs(number) >= _EXPONENT_BELOW and int(exponent) < 0:
        sign, digits = ("-" if number < 0 else ""), mantissa.lstrip("-").replace(".", "")
        return f"{sign}0.{'0' * (-int(exponent) - 1)}{digits}"
    power = int(exponent)
    return f"{mantissa.removesuffix('.0')}e{'+' if power > 0 else '-'}{abs(power)}"


def _integer(number: float) -> str:
    """An integral double below 1e21: its shortest digits, padded with zeros as JS does, not its exact value."""
    if number == 0:
        return "0"
    mantissa, _, exponent = repr(number).partition("e")
    if not exponent:
        return mantissa.removesuffix(".0")
    sign, digits = ("-" if number < 0 else ""), mantissa.lstrip("-").replace(".", "")
    return sign + digits.ljust(int(exponent) + 1, "0")


def py(value: Any) -> str:
    """A value as openai-python and anthropic-python write a body: compact, raw Unicode, the caller's key order."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
