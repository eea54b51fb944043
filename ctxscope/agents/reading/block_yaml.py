"""Settings in YAML as agents write them: mappings and lists in block style, scalars on one line, values in JSON.

A reader of what is wanted stands here instead of a YAML library, whose every feature a file from elsewhere could then use.
What is richer (anchors, tags, texts over several lines, braces that are no JSON) reads as ``None`` in its place.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

_KEY = re.compile(
    r"""("(?:[^"\\]|\\.)*"|'(?:[^']|'')*'|[^\s"'#&*!|>%@`\[\]{},?:-](?:[^#:]|:(?=\S)|(?<=\S)\#)*?)\s*:(?:\s+(.*))?$"""
)
_QUOTED = re.compile(r"""("(?:[^"\\]|\\.)*"|'(?:[^']|'')*')\s*(?:#.*)?$""")
_COMMENT = re.compile(r"(?:^|\s)#.*$")
_NUMBER = re.compile(r"[-+]?\d{1,18}(\.\d{1,18})?$")
_WORDS = {"true": True, "false": False}
_DEEPEST = 40

Lines = list[tuple[int, str]]
"""Column and text of each line that says something."""


class _UnreadableError(Exception):
    """Lines that do not nest."""


def mapping(text: str) -> dict[str, Any] | None:
    """A file's one mapping, an empty file's an empty one; ``None`` where it holds another thing, or its lines do not nest."""
    text = text.removeprefix("\ufeff")
    try:
        whole = json.loads(text)
    except (ValueError, RecursionError):
        lines = [(len(raw) - len(raw.lstrip(" ")), raw.lstrip(" ").rstrip()) for raw in text.splitlines()]
        said = [line for line in lines if line[1] and not line[1].startswith("#")]
        said = said[1:] if said[:1] == [(0, "---")] else said
        try:
            whole, end = _block(said, 0, 0) if said else ({}, 0)
        except _UnreadableError:
            return None
        whole = whole if end == len(said) else None
    return whole if isinstance(whole, dict) else None


def _block(lines: Lines, at: int, depth: int) -> tuple[Any, int]:
    """The mapping or list that begins with a line, and the index of the first line behind it."""
    column = lines[at][0]
    if depth > _DEEPEST:
        raise _UnreadableError
    found, at = _list(lines, at, depth) if _is_item(lines[at][1]) else _mapping(lines, at, depth)
    if at < len(lines) and lines[at][0] > column:
        raise _UnreadableError
    return found, at


def _mapping(lines: Lines, at: int, depth: int) -> tuple[dict[str, Any], int]:
    found: dict[str, Any] = {}
    column = lines[at][0]
    while at < len(lines) and lines[at][0] == column and not _is_item(lines[at][1]):
        key = _KEY.match(lines[at][1])
        if key is None:
            raise _UnreadableError
        name, said = str(_scalar(key[1])), _COMMENT.sub("", key[2] or "")
        at += 1
        below = at < len(lines) and (lines[at][0] > column or (lines[at][0] == column and _is_item(lines[at][1])))
        if said or not below:
            found[name], at = _one(key[2] or "", lines, at, column)
        else:
            found[name], at = _block(lines, at, depth + 1)
    return found, at


def _list(lines: Lines, at: int, depth: int) -> tuple[list[Any], int]:
    found: list[Any] = []
    column = lines[at][0]
    while at < len(lines) and lines[at][0] == column and _is_item(lines[at][1]):
        text = lines[at][1][1:].lstrip()
        if _is_item(text) or _KEY.match(text):  # what stands behind the dash begins a block of its own
            lines[at] = (column + len(lines[at][1]) - len(text), text)
            value, at = _block(lines, at, depth + 1)
        elif not text and at + 1 < len(lines) and lines[at + 1][0] > column:
            value, at = _block(lines, at + 1, depth + 1)
        else:
            value, at = _one(text, lines, at + 1, column)
        found.append(value)
    return found, at


def _is_item(text: str) -> bool:
    return text == "-" or text.startswith("- ")


def _one(text: str, lines: Sequence[tuple[int, str]], at: int, column: int) -> tuple[Any, int]:
    """A value on a line of its own; one that goes on below it is passed over."""
    end = at
    while end < len(lines) and lines[end][0] > column:
        end += 1
    return (_scalar(text) if end == at else None), end


def _scalar(text: str) -> Any:
    quoted = _QUOTED.match(text)
    if quoted is not None and text[0] == "'":
        return quoted[1][1:-1].replace("''", "'")
    text = quoted[1] if quoted is not None else _COMMENT.sub("", text).strip()
    if _NUMBER.match(text):
        return float(text) if "." in text else int(text)
    if text[:1] in ('"', "[", "{"):
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            return _flow(text)
    return _WORDS.get(text, None if text in ("", "null", "~") or text[0] in "&*!|>%@`" else text)


def _flow(text: str) -> list[Any] | dict[str, Any] | None:
    """Plain words between brackets, or in pairs between braces."""
    words = [word.strip() for word in text[1:-1].split(",") if word.strip()]
    if text[:1] + text[-1:] not in ("[]", "{}") or re.search(r"[\[\]{}\"'#]", text[1:-1]):
        return None
    if text[:1] == "[":
        return [_scalar(word) for word in words]
    pairs = [_KEY.match(word) for word in words]
    return None if None in pairs else {str(pair[1]): _scalar(pair[2] or "") for pair in pairs if pair is not None}
