"""The context along one path of the session tree, in the order the model reads it.

A trail grows with its path and is shared by every call on it: a call's context is the trail up to a length. Where an
entry on the path was rewritten since, or another path left it, a new trail shares what both begin with.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ctxscope.agents.omp.items import Item
from ctxscope.agents.pi.trail import View
from ctxscope.agents.reading.charges import Charges
from ctxscope.model import Entry


@dataclass(eq=False, slots=True, repr=False)
class Trail:
    """Items of one path, with what is known after each of them."""

    items: list[Item] = field(default_factory=list)
    entries: list[Entry] = field(default_factory=list)
    """Entries the requests are made of: the items' own, without answers that are left out."""
    counts: list[int] = field(default_factory=lambda: [0])
    """How many of ``entries`` stand before each item, and after the last."""
    characters: list[int] = field(default_factory=lambda: [0])
    """Characters of the lines before each of ``entries``, and of all."""
    origin: tuple[Trail, int] | None = None
    """The trail it left, and how much of that it shares."""
    folds: dict[Any, Any] = field(default_factory=dict)
    """Rendered forms of the trail, by target; functions of the items alone."""
    digests: list[int] = field(default_factory=list)
    """Digest of each item, as far as they were asked for."""
    charges: Charges = field(default_factory=Charges)
    """Estimated tokens of the items, likewise."""

    def append(self, item: Item) -> None:
        """Add the next item of the path."""
        self.items.append(item)
        if not item.absent and not (self.entries and self.entries[-1] is item.entry):
            self.entries.append(item.entry)
            self.characters.append(self.characters[-1] + len(item.entry.raw.decode("utf-8", "replace")))
        self.counts.append(len(self.entries))

    def fork(self, length: int) -> Trail:
        """Another path that shares the first ``length`` items."""
        kept = self.counts[length]
        return Trail(
            self.items[:length],
            self.entries[:kept],
            self.counts[: length + 1],
            self.characters[: kept + 1],
            (self, length),
        )

    def like(self, items: Sequence[Item]) -> Trail:
        """A trail of just these items: this one itself where it begins with all of them, else one that leaves it."""
        mine = self.items
        shared = next((i for i, (a, b) in enumerate(zip(mine, items, strict=False)) if a is not b), None)
        shared = min(len(mine), len(items)) if shared is None else shared
        if shared == len(items):
            return self
        found = self if shared == len(mine) else self.fork(shared)
        for item in items[shared:]:
            found.append(item)
        return found

    def context(self, length: int) -> View:
        """The entries of the first ``length`` items that requests are made of."""
        return View(self.entries, self.counts[length])
