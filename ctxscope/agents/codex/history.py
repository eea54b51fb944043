"""What the model is given, item by item, and how much of it each request carried (codex.md §4).

A history only grows; a compaction or a rollback begins another one. A request is a history up to a length, so that
requests share entries, items and pieces, and each costs what it adds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, overload
from uuid import UUID, uuid5

from ctxscope.agents.codex import shell_outputs
from ctxscope.agents.codex.estimate import Rule
from ctxscope.agents.codex.items import (
    METADATA,
    PASSTHROUGH,
    expected_output,
    given_output,
    is_sent,
    spelled,
)
from ctxscope.agents.reading.charges import Charge, Charges
from ctxscope.model import Entry, Piece, Place
from ctxscope.wire.blocks import string

ABORTED = "aborted"
"""What stands for the output of a call that has none (source only, codex.md §4.6)."""
_MADE_UP = UUID("90d38d3e-6a5b-4d52-bfe2-2f1e634bfac4")
"""Names the ids of outputs that stand for missing ones; they must be the same each time (source only)."""
_PREFIX = {"function_call_output": "fco", "tool_search_output": "tso", "custom_tool_call_output": "ctco"}

Form = frozenset[str]
"""Which wire-only members items carry: their names, those inside one as ``name/inner``; and ``RETOLD``."""
RETOLD = "outputs as text"
"""In a form: outputs of shells and patches are told as text."""


@dataclass(slots=True, eq=False, repr=False)
class Item:
    """One item of a history."""

    entry: Entry
    """The line it comes from: of its own, or the compaction that put it there."""
    payload: Mapping[str, Any]
    made: bool = False
    """Put together by a rule out of what the log says, not taken from it as it is."""
    retold: str | None = None
    """Its output as text, where some requests tell it so."""
    _pieces: dict[Form, Piece] = field(default_factory=dict)
    _bare: Mapping[str, Any] | None = None
    _charges: tuple[tuple[Rule, Charge], ...] = ()

    @property
    def place(self) -> Place:
        """Where its text stands in the log."""
        return self.entry.place

    @property
    def bare(self) -> Mapping[str, Any]:
        """The item without what only some requests carry."""
        if self._bare is None:
            self._bare = {k: v for k, v in self.payload.items() if k not in (PASSTHROUGH, METADATA)}
        return self._bare

    @property
    def extras(self) -> Form:
        """The wire-only members it has in the log."""
        found: set[str] = set()
        for name in (PASSTHROUGH, METADATA):
            value = self.payload.get(name)
            if isinstance(value, Mapping):
                found |= {name, *(f"{name}/{inner}" for inner in value)}
        return frozenset(found)

    def charge(self, rule: Rule) -> Charge:
        """What an estimator of Codex's own makes of it."""
        known = next((charge for of, charge in self._charges if of is rule), None)
        if known is None:
            known = rule.item(self.payload)
            self._charges = (*self._charges, (rule, known))
        return known

    def piece(self, form: Form) -> Piece:
        """The item as a request spells it."""
        if self.retold is None and RETOLD in form:
            form -= {RETOLD}
        found = self._pieces.get(form)
        if found is None:
            self._pieces[form] = found = Piece(spelled(self.sent(form)), "logged", self.place)
        return found

    def sent(self, form: Form) -> Mapping[str, Any]:
        """The item as a request carries it."""
        if not form:
            return self.bare
        sent: dict[str, Any] = {}
        for key, value in self.payload.items():
            if key == "output" and RETOLD in form and self.retold is not None:
                sent[key] = self.retold
                continue
            if key in (PASSTHROUGH, METADATA):
                if key not in form or not isinstance(value, Mapping):
                    continue
                value = {k: v for k, v in value.items() if f"{key}/{k}" in form}  # noqa: PLW2901 - what is sent of it
                if not value:
                    continue
            sent[key] = value
        return sent


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
class History:
    """Items in order, with what is known after each."""

    items: list[Item] = field(default_factory=list)
    sent: list[int] = field(default_factory=list)
    """Indexes of the items that requests carry: an output without its call is none."""
    carried: list[int] = field(default_factory=lambda: [0])
    """How many of ``sent`` are among the first items, by number of items."""
    entries: list[Entry] = field(default_factory=list)
    """The items' lines, each once in a row."""
    counts: list[int] = field(default_factory=lambda: [0])
    """How many of ``entries`` the first items make, by number of items."""
    characters: list[int] = field(default_factory=lambda: [0])
    """Characters of the first ``entries``, by their number."""
    members: list[Form] = field(default_factory=lambda: [frozenset()])
    """The wire-only members that the first items have in the log, by number of items."""
    waiting: dict[tuple[str, str], int] = field(default_factory=dict)
    """Calls that have no output yet: by type and id of that, the index of the call."""
    _charges: dict[str, Charges] = field(default_factory=dict)
    """By version of Codex's estimator, what ``sent`` comes to; filled as far as asked for."""
    _called: set[tuple[str, str]] = field(default_factory=set)
    _shells: set[str] = field(default_factory=set)
    """Calls of shells and patches whose output did not come yet."""
    _folds: dict[Form, list[Piece]] = field(default_factory=dict)

    def append(self, item: Item) -> None:
        """Add the next item."""
        expected, given = expected_output(item.payload), given_output(item.payload)
        if expected is not None:
            self._called.add(expected)
            self.waiting[expected] = len(self.items)
        if given is not None:
            self.waiting.pop(given, None)
        self._tell(item)
        sent = is_sent(item.payload) and (given is None or given in self._called)
        if sent:
            self.sent.append(len(self.items))
        self.carried.append(len(self.sent))
        self.items.append(item)
        if not (self.entries and self.entries[-1] is item.entry):
            self.entries.append(item.entry)
            self.characters.append(self.characters[-1] + len(item.entry.raw.decode("utf-8", "replace")))
        self.counts.append(len(self.entries))
        own, known = item.extras, self.members[-1]
        self.members.append(known if own <= known else known | own)

    def charged(self, length: int, rule: Rule) -> Charge:
        """What an estimator of Codex's own makes of what requests carry of the first items."""
        known = self._charges.setdefault(rule.version, Charges())
        return known.upto(self.sent, self.carried[length], lambda index: self.items[index].charge(rule))

    def _tell(self, item: Item) -> None:
        name = shell_outputs.called(item.payload)
        if name is not None:
            self._shells.add(name)
        elif "output" in item.payload and string(item.payload.get("call_id")) in self._shells:
            self._shells.discard(string(item.payload.get("call_id")))
            item.retold = shell_outputs.told(item.payload["output"])

    def cut(self, length: int) -> History:
        """Another history that begins with the first items of this one."""
        return history(self.items[:length])

    def missing(self) -> tuple[int, ...]:
        """Indexes of the calls that have no output."""
        return tuple(sorted(self.waiting.values()))

    def begins(self, spelled_item: bytes) -> bool:
        """Whether its first item is the one spelled so."""
        first = self.items[0]
        return any(spelled_item == first.piece(form).data for form in (frozenset[str](), first.extras))

    def extras(self, length: int) -> Form:
        """The wire-only members that the first items have in the log."""
        return self.members[length]

    def context(self, length: int) -> View:
        """The lines of the first items."""
        return View(self.entries, self.counts[length])

    def pieces(self, form: Form, start: int, end: int, missing: Sequence[int] = ()) -> list[Piece]:
        """What a request carries of the items from ``start`` to ``end``, each led by a comma.

        Behind each of the calls in ``missing`` stands what Codex sends in place of their output.
        """
        fold = self._folds.setdefault(form, [])
        first, last = self.carried[start], self.carried[end]
        for index in self.sent[len(fold) : last]:
            piece = self.items[index].piece(form)
            fold.append(Piece(b"," + piece.data, piece.provenance, piece.place))
        found = fold[first:last]
        for call in reversed(missing):
            if start <= call < end:
                aborted = Piece(b"," + spelled(_aborted(self.items[call].payload)))
                found.insert(self.carried[call + 1] - first, aborted)
        return found

    def count(self, start: int, end: int, missing: Sequence[int] = ()) -> int:
        """How many items ``pieces`` gives."""
        return max(0, self.carried[end] - self.carried[start]) + sum(start <= i < end for i in missing)


def history(items: Iterable[Item]) -> History:
    """A history of these items."""
    made = History()
    for item in items:
        made.append(item)
    return made


def _aborted(call: Mapping[str, Any]) -> dict[str, Any]:
    expected = expected_output(call)
    kind, name = expected if expected is not None else ("function_call_output", "")
    source = string(call.get("id"))
    prefix = _PREFIX[kind]
    own = {"id": f"{prefix}_{uuid5(_MADE_UP, f'{prefix}:{source}')}"} if source else {}
    if kind == "tool_search_output":
        return {"type": kind, **own, "call_id": name, "status": "completed", "execution": "client", "tools": []}
    return {"type": kind, **own, "call_id": name, "output": ABORTED}
