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
    """Whether two parsed JSON values are one value: key order aside, ``1`` equal to ``1.0``, ``true`` not equal to 1.

    Without recursion, as deep as a value may nest.
    """
    pairs = [(a, b)]
    while pairs:
        a, b = pairs.pop()
        if isinstance(a, dict) and isinstance(b, dict):
            if a.keys() != b.keys():
                return False
            pairs += [(value, b[key]) for key, value in a.items()]
        elif isinstance(a, list) and isinstance(b, list):
            if len(a) != len(b):
                return False
            pairs += zip(a, b, strict=True)
        elif not _same_scalar(a, b):
            return False
    return True


def _same_scalar(a: Any, b: Any) -> bool:
    if isinstance(a, bool) or isinstance(b, bool):
        return a is b
    if isinstance(a, int | float) and isinstance(b, int | float):
        return a == b
    return isinstance(a, str | None) and a == b


def without_breakpoints(value: Any) -> Any:
    """The value with the client's cache marks left out, however deep; without recursion."""
    whole = [value]
    copies: list[Any] = [whole]
    while copies:
        copy = copies.pop()
        for key, inner in list(copy.items() if isinstance(copy, dict) else enumerate(copy)):
            if isinstance(inner, dict):
                copy[key] = {k: v for k, v in inner.items() if k not in BREAKPOINT_KEYS}
                copies.append(copy[key])
            elif isinstance(inner, list):
                copy[key] = list(inner)
                copies.append(copy[key])
    return whole[0]


def single_text(value: Any) -> str | None:
    """The text of a block list that holds exactly one text block and nothing else but marks; else ``None``."""
    if isinstance(value, list) and len(value) == 1 and isinstance(value[0], Mapping):
        block = {k: v for k, v in value[0].items() if k not in BREAKPOINT_KEYS}
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
