"""Captures that are JSON: an object a line, an array of objects, or one document, whole or cut short."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from json import JSONDecodeError, JSONDecoder
from pathlib import Path
from typing import Any, Final

from ctxscope.capture.importers.imported import Damage, UnfitError
from ctxscope.wire.json_text import loads

_FIRST_LINES = 8
"""Lines looked at to tell what a file is; the first of them may be damaged."""
_BLANK = " \t\r\n"
_BETWEEN = re.compile(r"\}\s*,\s*\{")
_BOM = b"\xef\xbb\xbf"
UNREADABLE: Final = object()
"""Stands in an array for what is no JSON."""


@dataclass(frozen=True, slots=True)
class Line:
    """One object of a file."""

    number: int
    """Of its line, or in its array, from 1."""
    value: dict[str, Any]
    load: Callable[[], dict[str, Any]]
    """Reads it again."""


def objects(path: Path, damage: Damage) -> Iterator[Line]:
    """The objects in a file of JSON lines, or in one array; a single object that fills many lines counts, too.

    Only the byte 0x0A ends a line. What is none is added to ``damage``.
    """
    with path.open("rb") as file:
        first = file.readline().removeprefix(_BOM).strip()
        if _is_document(first):
            yield from _in_a_document(path, damage)
            return
        file.seek(0)
        number, offset = 0, 0
        while data := file.readline():
            number += 1
            at, offset = offset, offset + len(data)
            value = _object(data.removeprefix(_BOM) if number == 1 else data, number, damage)
            if value is not None:
                yield Line(number, value, _reader(path, at, len(data)))


def first_objects(path: Path) -> Iterator[dict[str, Any]]:
    """Objects among the first lines of a file, or the first ones of its array, to tell what it is."""
    unread = Damage(path, "line", "")
    with path.open("rb") as file:
        for number in range(_FIRST_LINES):
            line = file.readline().removeprefix(_BOM).strip()
            if number == 0 and _is_document(line):
                yield from (each.value for each in _in_a_document(path, unread))
                return
            value = _object(line, number, unread)
            if value is not None:
                yield value


def _is_document(first: bytes) -> bool:
    """Whether a file with this first line is one JSON value that fills it."""
    return first == b"{" or first.startswith(b"[")


def document(path: Path) -> tuple[Any, bool]:
    """The value that a file is, and whether it is whole.

    Of one that is cut short or damaged, what can be read: objects lack what could not, arrays have ``UNREADABLE`` for it.
    Raises ``ValueError`` when not even a beginning can be read.
    """
    data = path.read_bytes().removeprefix(_BOM)
    try:
        return loads(data), True
    except ValueError:
        text = data.decode("utf-8", "surrogateescape")
        value, _ = _beginning(text, _skip(text, 0))
        if not isinstance(value, dict | list):
            raise
        return value, False


def _in_a_document(path: Path, damage: Damage) -> Iterator[Line]:
    value: Any
    try:
        value, whole = document(path)
    except ValueError:
        value, whole = None, False
    for number, each in enumerate(value if isinstance(value, list) else [value if whole else UNREADABLE], 1):
        if isinstance(each, dict):
            yield Line(number, each, lambda each=each: each)  # type: ignore[misc]
        else:
            damage.add(number, kind(each))


def _object(data: bytes, number: int, damage: Damage) -> dict[str, Any] | None:
    if not data.strip():
        return None
    try:
        value = loads(data)
    except ValueError:
        damage.add(number, "a line that is no JSON" if data.endswith(b"\n") else "half a line")
        return None
    if isinstance(value, dict):
        return value
    damage.add(number, kind(value))
    return None


def _reader(path: Path, offset: int, length: int) -> Callable[[], dict[str, Any]]:
    def load() -> dict[str, Any]:
        with path.open("rb") as file:
            file.seek(offset)
            value = loads(file.read(length).removeprefix(_BOM))
        if not isinstance(value, dict):
            raise UnfitError("no longer an object")
        return value

    return load


def kind(value: Any) -> str:
    """What a value is, for a person."""
    if value is UNREADABLE:
        return "what is no JSON: damaged, or cut short"
    names = {str: "text", list: "a list", dict: "a JSON object", bool: "a boolean", type(None): "null"}
    return names.get(type(value), "a number")


# --- what a damaged document still holds -----------------------------------------------------------------------------


def _beginning(text: str, at: int) -> tuple[Any, int]:
    """The value at ``at``, or as much of it as can be read, and where that ends (-1: it was not whole)."""
    try:
        return JSONDecoder(strict=False).raw_decode(text, at)
    except (JSONDecodeError, RecursionError):
        if text.startswith("{", at):
            return _object_beginning(text, at + 1)
        if text.startswith("[", at):
            return _array_beginning(text, at + 1)
        return None, -1


def _object_beginning(text: str, at: int) -> tuple[dict[str, Any], int]:
    found: dict[str, Any] = {}
    while True:
        at = _skip(text, at)
        try:
            key, at = JSONDecoder(strict=False).raw_decode(text, at)
        except (JSONDecodeError, RecursionError):
            return found, -1
        at = _skip(text, at)
        if not isinstance(key, str) or not text.startswith(":", at):
            return found, -1
        value, at = _beginning(text, _skip(text, at + 1))
        if at >= 0 or isinstance(value, dict | list):
            found[key] = value
        if at < 0 or not text.startswith(",", _skip(text, at)):
            return found, -1
        at = _skip(text, at) + 1


def _array_beginning(text: str, at: int) -> tuple[list[Any], int]:
    """The items of an array that can be read; one that cannot is ``UNREADABLE``, with all behind it up to the next like one."""
    found: list[Any] = []
    while at >= 0:
        try:
            value, at = JSONDecoder(strict=False).raw_decode(text, _skip(text, at))
        except (JSONDecodeError, RecursionError):
            after = at
        else:
            found.append(value)
            after = _skip(text, at)
            if text.startswith("]", after):
                return found, after + 1
        if text.startswith(",", after):
            at = after + 1
        else:
            at = _next_like(found, text, after)
            found.append(UNREADABLE)
    return found, -1


def _next_like(found: list[Any], text: str, at: int) -> int:
    """Where the next object with the keys of an earlier item begins; -1: nowhere."""
    known = next((each.keys() for each in found if isinstance(each, dict)), None)
    for candidate in _BETWEEN.finditer(text, at) if known else ():
        try:
            value, _ = JSONDecoder(strict=False).raw_decode(text, candidate.end() - 1)
        except (JSONDecodeError, RecursionError):
            continue
        if isinstance(value, dict) and known and len(known & value.keys()) * 2 > len(known):
            return candidate.end() - 1
    return -1


def _skip(text: str, at: int) -> int:
    while at < len(text) and text[at] in _BLANK:
        at += 1
    return at
