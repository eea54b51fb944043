"""The fields of a record, read as what they must be; a recording may come from anywhere."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeGuard

from ctxscope.capture.raw_index import seconds

Fields = Mapping[str, Any]


class MalformedError(Exception):
    """A whole record whose fields no writer of ours wrote."""


def time(fields: Fields, name: str) -> float:
    """Seconds since the epoch."""
    found = seconds(fields.get(name))
    if found is None:
        raise MalformedError(name)
    return found


def count(fields: Fields, name: str) -> int:
    """A whole number, not negative."""
    found = fields.get(name)
    if not is_count(found):
        raise MalformedError(name)
    return found


def text(fields: Fields, name: str) -> str:
    """A string; one that is not there is empty."""
    found = fields.get(name, "")
    if not isinstance(found, str):
        raise MalformedError(name)
    return found


def pairs(fields: Fields, name: str) -> list[tuple[Any, Any]]:
    """A list of lists of two."""
    found = fields.get(name)
    if not isinstance(found, list) or not all(map(is_pair, found)):
        raise MalformedError(name)
    return [(one, other) for one, other in found]


def texts(fields: Fields, name: str) -> tuple[tuple[str, str], ...]:
    """Pairs of strings."""
    found = tuple((one, other) for one, other in pairs(fields, name) if isinstance(one, str) and isinstance(other, str))
    if len(found) != len(fields[name]):
        raise MalformedError(name)
    return found


def is_count(value: Any) -> TypeGuard[int]:
    """Whether a value is a whole number, not negative."""
    return type(value) is int and value >= 0


def is_pair(value: Any) -> TypeGuard[list[Any]]:
    """Whether a value is a list of two."""
    return isinstance(value, list) and len(value) == 2  # noqa: PLR2004 - that is a pair
