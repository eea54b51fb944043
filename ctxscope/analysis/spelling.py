"""How two values or texts differ: the classes of REPORT_SCHEMA that can be told from the values alone."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from typing import Any

BREAKPOINT_KEYS = frozenset({"cache_control", "prompt_cache_breakpoint", "cachePoint"})
"""Members by which a client marks where the provider may keep a prefix (prompt_caching §2, §3.2)."""
ID_KEYS = frozenset({"id", "tool_call_id", "tool_use_id", "call_id", "item_id"})
_ALIKE = {
    "line_ending": "only the line endings differ",
    "unicode_form": "the same text in another Unicode form (NFC or NFD)",
    "whitespace": "only white space differs",
}


def same(a: Any, b: Any) -> bool:
    """Whether two parsed JSON values are one value: key order aside, ``1`` equal to ``1.0``, ``true`` not equal to 1."""
    if isinstance(a, bool) or isinstance(b, bool):
        return a is b
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(same(v, b[k]) for k, v in a.items())
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b, strict=True))
    return (type(a) is type(b) and a == b) or _numbers(a, b)


def _numbers(a: Any, b: Any) -> bool:
    return isinstance(a, int | float) and isinstance(b, int | float) and a == b


def without_breakpoints(value: Any) -> Any:
    """The value with the client's cache marks left out, however deep."""
    if isinstance(value, dict):
        return {k: without_breakpoints(v) for k, v in value.items() if k not in BREAKPOINT_KEYS}
    if isinstance(value, list):
        return [without_breakpoints(v) for v in value]
    return value


def single_text(value: Any) -> str | None:
    """The text of a block list that holds exactly one text block and nothing else but marks; else ``None``."""
    if isinstance(value, list) and len(value) == 1 and isinstance(value[0], Mapping):
        block = without_breakpoints(value[0])
        if set(block) <= {"type", "text"} and isinstance(block.get("text"), str):
            return str(block["text"])
    return None


def text_class(a: str, b: str) -> str:
    """Class of the difference of two different texts: the narrowest rule that makes them equal, else ``content``."""
    if a.replace("\r\n", "\n") == b.replace("\r\n", "\n"):
        return "line_ending"
    if unicodedata.normalize("NFC", a) == unicodedata.normalize("NFC", b):
        return "unicode_form"
    if "".join(a.split()) == "".join(b.split()):
        return "whitespace"
    return "content"


def text_cause(cls: str) -> str | None:
    """``text_class`` in words; ``None`` for ``content``, which needs to name what differs."""
    return _ALIKE.get(cls)
