"""A call's context where every later one goes on from it: the first entries of one growing list, never copied."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import overload

from ctxscope.model import Entry


class View(Sequence[Entry]):
    """The first entries of a growing list, as they were when the view was taken."""

    __slots__ = ("_entries", "_length")

    def __init__(self, entries: list[Entry], length: int) -> None:
        self._entries, self._length = entries, length

    def __len__(self) -> int:
        return self._length

    @overload
    def __getitem__(self, index: int) -> Entry: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Entry]: ...
    def __getitem__(self, index: int | slice) -> Entry | Sequence[Entry]:
        if isinstance(index, slice):
            return [self._entries[i] for i in range(*index.indices(self._length))]
        if not -self._length <= index < self._length:
            raise IndexError(index)
        return self._entries[index % self._length]

    def __iter__(self) -> Iterator[Entry]:
        return (self._entries[i] for i in range(self._length))
