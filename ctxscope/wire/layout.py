"""What an API's bodies consist of: which parts of them are cut into segments, and how each part is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from ctxscope.model import ApiName, BlockKind
from ctxscope.wire.forms import Shape

PARAM_RANK = 9
Fields = Mapping[str, str]
"""An object's members by key, their values in prompt form (strings quoted)."""


@dataclass(frozen=True, slots=True)
class Slot:
    """How the value of one top-level key is cut."""

    kind: Literal["tool", "system", "message"]
    rank: int
    """Place of its segments in cache order."""
    shape: Shape
    """Of what becomes a segment."""
    array: bool = True
    """The value is an array of items; else an object with one inner array."""
    inner: frozenset[str] = frozenset()
    """Keys of an item's own array, whose items are the segments; empty: each item is a segment."""
    block_type: str = ""
    """Type of the block that a bare string in an inner array's place stands for."""
    bare: Callable[[str], str] | None = None
    """Prompt form of a bare string in the array's place; ``None``: there can be none."""
    leading_rank: int | None = None
    """Rank of system and developer items before any other, which make the system prompt; ``None``: they do not."""


@dataclass(frozen=True, slots=True)
class Layout:
    """What an API's bodies consist of."""

    name: ApiName
    slots: Mapping[str, Slot]
    """By top-level key; any other value is a parameter."""
    role: Callable[[Fields], str]
    block: Callable[[Fields], BlockKind]
    """Role of a message and kind of a block, from their members."""


def text_of(fields: Fields, key: str) -> str:
    """A short string member without its quotes, ``""`` where there is none."""
    value = fields.get(key, "")
    return value[1:-1] if value[:1] == '"' else ""
