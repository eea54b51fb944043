"""Blocks and usage numbers, as several APIs spell them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from ctxscope.model import Body
from ctxscope.wire.json_text import loads


def parsed(data: bytes) -> dict[str, Any]:
    """A JSON object; ``{}`` for anything else."""
    try:
        value = loads(data)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def listed(value: Any) -> list[Any]:
    """``value`` when it is a list, else an empty one."""
    return value if isinstance(value, list) else []


def mapped(value: Any) -> dict[str, Any]:
    """``value`` when it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def string(value: Any) -> str:
    """``value`` when it is a string, else ``""``."""
    return value if isinstance(value, str) else ""


def number(source: Mapping[str, Any], *path: str) -> int | None:
    """The integer at ``path``; ``None`` where there is none."""
    value: Any = source
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value or value in _INFINITE:  # noqa: PLR0124 - the NaN test
        return None
    return int(value)


def first(*values: int | None) -> int | None:
    """The first number that is known."""
    return next((v for v in values if v is not None), None)


def arguments(value: Any) -> str:
    """A tool call's arguments as compact JSON with sorted keys; a string that does not parse stays as it is.

    ``""`` for what nests too deep to be spelled.
    """
    if isinstance(value, str):
        try:
            value = loads(value)
        except ValueError:
            return string(value)
    try:
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()
    except (TypeError, orjson.JSONEncodeError):
        return _arguments_by_json(value)


def joined_text(content: Any) -> str:
    """The text of a string or of a list of blocks, one below the other."""
    if isinstance(content, str):
        return content
    texts = (string(mapped(block).get("text")) for block in listed(content))
    return "\n".join(t for t in texts if t)


def error_text(value: Any) -> str | None:
    """The message of an error reply, whatever form the server gave it; ``None`` when it is none."""
    if isinstance(value, list) and value:
        value = value[0]
    error = mapped(value).get("error") or (mapped(value).get("detail") if _only_error(value) else None)
    if not error:
        return None
    if isinstance(error, str):
        return error
    message = string(mapped(error).get("message"))
    return message or string(mapped(error).get("type")) or arguments(error)


def param(body: Body, key: str) -> Any:
    """The parsed value of a top-level parameter; ``None`` where there is none."""
    path = f"/{key}"
    for segment in body.segments:
        if segment.kind == "param" and segment.path == path:
            try:
                return loads(body.data[segment.start : segment.end])
            except ValueError:
                return None
    return None


def integer(value: Any) -> int | None:
    """``value`` when it is a whole number."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None


_INFINITE: Sequence[float] = (float("inf"), float("-inf"))


def _only_error(value: Any) -> bool:
    return isinstance(value, dict) and not {"choices", "candidates", "content", "output"} & value.keys()


def _arguments_by_json(value: Any) -> str:
    import json  # noqa: PLC0415 - only for what orjson refuses: lone surrogates, integers over 64 bits

    try:
        return json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    except (RecursionError, ValueError):
        return ""
