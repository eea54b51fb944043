"""In which ways two segments differ that say the same: the differences providers treat differently (prompt_caching §6).

Read with what a JSON parser drops: order and repetition of keys, the spelling of numbers.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from typing import Any, Literal

from ctxscope.analysis.spelling import BREAKPOINT_KEYS
from ctxscope.model import Segment

_Zone = Literal["protocol", "schema", "arguments"]
"""What the API defines · what a tool's author wrote · what the model or a tool wrote."""
_SCHEMAS = frozenset({"input_schema", "parameters", "parametersJsonSchema", "inputSchema"})
_DATA = frozenset({"input", "args", "arguments", "response"})
"""Members whose values are no part of the API: an id or a null in there is what was said (``response``: Gemini's results)."""
_CALL_IDS = frozenset({"tool_call_id", "tool_use_id", "call_id"})
_CALLS = frozenset({"function", "input", "args", "arguments", "response", *_CALL_IDS})
"""Members that make an object a tool call or its result, whose ``id`` is the call's."""
_ITEMS = frozenset(
    [
        *("message", "reasoning", "function_call", "function_call_output"),
        *("custom_tool_call", "custom_tool_call_output"),
    ]
)
"""Types of Responses items that hold all they say, so that their ``id`` is a name only; others are meant by it."""
_REMEMBERED, _SHORT = 1024, 16_384
"""Pairs of segments whose comparison is kept, and the bytes up to which one is: a judge asks for each several times."""
_BLANKS = re.compile(r'("(?:[^"\\]++|\\.)*+")|[ \t\n\r]+', re.DOTALL)

CLASSES = {
    "tool_call_id": "id_regenerated",
    "number_spelling": "number_spelling",
    "null_member": "null_vs_missing",
    "schema_key_order": "key_order",
    "arguments_key_order": "key_order",
    "tool_key_order": "key_order",
    "message_key_order": "key_order",
    "arguments_text": "escape",
    "form": "form",
}
"""Differences by the classes of the report; ``whitespace`` and ``escape`` are both."""


def kinds_apart(new: bytes, old: bytes, segment: Segment) -> frozenset[str] | None:
    """Which differences (names of ``DIFFERENCES``) two spellings of a segment show; ``None`` where they say two things.

    ``new`` and ``old`` are the segment as sent by two requests, ``segment`` either of them.
    """
    order = "tool_key_order" if segment.kind == "tool" else "message_key_order"
    return _remembered(new, old, order) if len(new) + len(old) <= _SHORT else _kinds_apart(new, old, order)


def _kinds_apart(new: bytes, old: bytes, order: str) -> frozenset[str] | None:
    try:
        now, before = _read(new), _read(old)
        walk = _Walk(order)
        if not walk.alike(now, before, "protocol"):
            return None
    except (ValueError, RecursionError, InvalidOperation):
        return None
    if walk.kinds:
        return frozenset(walk.kinds)
    return frozenset({"whitespace"} if _minified(new) == _minified(old) else {"escape"})


_remembered = lru_cache(maxsize=_REMEMBERED)(_kinds_apart)


class _Members(list[tuple[str, Any]]):
    """An object's members in their order."""


class _Number(str):
    """A number as spelled."""

    __slots__ = ()


def _read(text: str | bytes) -> Any:
    return json.loads(text, object_pairs_hook=_Members, parse_float=_Number, parse_int=_Number)


def _type_of(members: Mapping[str, Any]) -> str:
    found = members.get("type")
    return found if type(found) is str else ""


def _minified(raw: bytes) -> str:
    return _BLANKS.sub(r"\1", raw.decode("latin-1"))


class _Walk:
    """Compares two values and collects the kinds of their differences."""

    def __init__(self, protocol_order: str) -> None:
        self.kinds: set[str] = set()
        self._parsed = False
        """Inside arguments that are JSON in a string."""
        self._order = {"protocol": protocol_order, "schema": "schema_key_order", "arguments": "arguments_key_order"}

    def alike(self, new: Any, old: Any, zone: _Zone) -> bool:
        """Whether two values say the same."""
        if isinstance(new, _Members) and isinstance(old, _Members):
            return self._objects(new, old, zone)
        if type(new) is not type(old):
            return zone == "protocol" and self._forms(new, old)
        if isinstance(new, _Number):
            return self._numbers(new, old)
        if isinstance(new, list):
            return len(new) == len(old) and all(self.alike(a, b, zone) for a, b in zip(new, old, strict=True))
        return bool(new == old)

    def _objects(self, new: _Members, old: _Members, zone: _Zone) -> bool:
        if zone == "protocol":
            new, old = (_Members(m for m in side if m[0] not in BREAKPOINT_KEYS) for side in (new, old))
        now, before = dict(new), dict(old)
        if len(now) != len(new) or len(before) != len(
            old
        ):  # a key stands twice: which one counts is the parser's choice
            return bool(new == old)
        alone = {key: side[key] for side, other in ((now, before), (before, now)) for key in side if key not in other}
        item = zone == "protocol" and _type_of(now) in _ITEMS
        if item and ("id" in now) != ("id" in before):
            self.kinds.add("tool_call_id")
            del alone["id"]
        if alone:
            if zone != "protocol" or any(value is not None for value in alone.values()):
                return False
            self.kinds.add("null_member")
        both = [key for key in now if key in before]
        if both != [key for key in before if key in now]:
            self.kinds.add(self._order[zone])
        called = item or not _CALLS.isdisjoint(both)
        return all(self._member(key, now[key], before[key], zone, called=called) for key in both)

    def _member(self, key: str, new: Any, old: Any, zone: _Zone, *, called: bool) -> bool:
        if zone != "protocol":
            return self.alike(new, old, zone)
        if key in _SCHEMAS:
            return self.alike(new, old, "schema")
        if isinstance(new, str) and isinstance(old, str) and new != old:
            if key in _CALL_IDS or (key == "id" and called):
                self.kinds.add("tool_call_id")
                return True
            return key == "arguments" and self._texts(new, old)
        return self.alike(new, old, "arguments" if key in _DATA else zone)

    def _texts(self, new: str, old: str) -> bool:
        """Arguments that are JSON in a string."""
        try:
            now, before = _read(new), _read(old)
        except ValueError:
            return False
        outside, self.kinds, self._parsed = self.kinds, set(), True
        same = self.alike(now, before, "arguments")
        self.kinds, self._parsed = outside | (self.kinds or {"arguments_text"}), False
        return same

    def _numbers(self, new: str, old: str) -> bool:
        """What parses arguments makes one number of 1e3 and 1000.0, and another of 1000 (prompt_caching §6)."""
        whole = [spelled.lstrip("-").isdigit() for spelled in (new, old)]
        if new != old and not (self._parsed and whole[0] == whole[1]):
            self.kinds.add("number_spelling")
        return new == old or Decimal(new) == Decimal(old)

    def _forms(self, new: Any, old: Any) -> bool:
        """A text, and a list of one block of it."""
        texts = [side if type(side) is str else _single(side) for side in (new, old)]
        self.kinds.add("form")
        return texts[0] is not None and texts[0] == texts[1]


def _single(value: Any) -> str | None:
    """The text of a list that holds one text block and nothing else but marks."""
    if not (isinstance(value, list) and len(value) == 1 and isinstance(value[0], _Members)):
        return None
    block = {key: item for key, item in value[0] if key not in BREAKPOINT_KEYS}
    text = block.get("text")
    return text if set(block) <= {"type", "text"} and isinstance(text, str) else None


def classes(kinds: Sequence[str]) -> list[str]:
    """Differences by the classes of the report, each once."""
    return list(dict.fromkeys(CLASSES.get(kind, kind) for kind in kinds))
