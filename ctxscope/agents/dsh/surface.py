"""The surface: what of a log the model sees, as a list that grows, and whose runs are replaced by position (dsh.md §4.1)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, overload

from ctxscope.agents.dsh.texts import mapped, whole
from ctxscope.agents.reading.charges import Charges
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
            return self._entries[: self._length][index]
        if not -self._length <= index < self._length:
            raise IndexError(index)
        return self._entries[index % self._length]

    def __iter__(self) -> Iterator[Entry]:
        return iter(self._entries[: self._length])


@dataclass(eq=False, slots=True, repr=False)
class Trail:
    """The nodes between two replacements: requests share them, each up to a length of its own."""

    nodes: list[Entry] = field(default_factory=list)
    sums: dict[str, list[int]] = field(default_factory=dict)
    """Running totals over the nodes, by name; filled as far as asked for."""
    charges: Charges = field(default_factory=Charges)
    """The nodes by the harness's own estimate (``dsh.estimate``), likewise."""
    folds: dict[Any, Any] = field(default_factory=dict)
    """Rendered forms, by API; functions of the nodes alone."""

    def view(self, length: int) -> View:
        """The first nodes."""
        return View(self.nodes, length)

    def total(self, name: str, measure: Callable[[Entry], int], length: int) -> int:
        """The sum of a measure over the first nodes; each node is measured once."""
        sums = self.sums.setdefault(name, [0])
        for node in self.nodes[len(sums) - 1 : length]:
            sums.append(sums[-1] + measure(node))
        return sums[length]


@dataclass(frozen=True, slots=True)
class Surface:
    """What the model sees at one moment."""

    trail: Trail = field(default_factory=Trail)
    length: int = 0

    @property
    def nodes(self) -> View:
        """The events in order."""
        return self.trail.view(self.length)

    def after(self, entry: Entry) -> Surface | None:
        """The surface once an event was added or took the place of others.

        The same object where the event is none of the surface's; ``None`` where what it replaces is not there: then
        nobody can say what the model sees.
        """
        operation = entry.data.get("surfaceOp")
        if operation is None:
            return self
        if operation == "append":
            self.trail.nodes.append(entry)
            return Surface(self.trail, self.length + 1)
        found = replaced(operation)
        if found is None:
            return None
        ends = [i for number in found for i, node in enumerate(self.nodes) if node.data.get("seq") == number]
        if len(ends) != len(found) or ends[0] > ends[-1]:
            return None
        nodes = list(self.nodes)
        nodes[ends[0] : ends[-1] + 1] = [entry]
        return Surface(Trail(nodes), len(nodes))


def replaced(operation: Any) -> tuple[int, int] | None:
    """The numbers of the first and the last event replaced, which are found by position; ``None``: no replacement."""
    fields = mapped(operation)
    if fields.get("op") != "replace":
        return None
    names = ("startSeq", "endSeq") if "startSeq" in fields else ("start", "end")
    first, last = (whole(fields.get(name)) for name in names)
    return None if first is None or last is None else (first, last)
