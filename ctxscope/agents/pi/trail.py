"""The context along one path of the session tree, in the order the model reads it (pi.md §4.1, §4.2).

A trail grows with its path and is shared by every call on it: a call's context is the trail up to a length.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, overload

from ctxscope.agents.pi import texts
from ctxscope.agents.pi.estimate import COMPACTION, Running, charge
from ctxscope.agents.pi.head import Head
from ctxscope.agents.pi.lines import OLD_ROLES, message_stamp
from ctxscope.agents.reading.charges import Charge, Charges
from ctxscope.model import Entry

DROPPED = {"error", "aborted"}
"""Stop reasons of answers that later requests leave out (pi.md §4.4)."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Item:
    """One message of the context and the entry it comes from."""

    entry: Entry
    role: str
    """``user``, ``assistant``, ``toolResult`` or ``system``."""
    message: Mapping[str, Any]
    stamp: float
    """The message's own time in milliseconds, as pi's usage rule compares it."""
    bare: Mapping[str, Any] | None = None
    """The same without the fixed words the model reads around it: so pi's compaction estimator takes it."""

    @property
    def dropped(self) -> bool:
        """Whether requests leave it out: an answer that failed or was aborted."""
        return self.role == "assistant" and self.message.get("stopReason") in DROPPED


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
    """Items of one path, with what is known after each of them."""

    items: list[Item] = field(default_factory=list)
    entries: list[Entry] = field(default_factory=list)
    """Entries the requests are made of: the items' own, without answers that are left out."""
    counts: list[int] = field(default_factory=lambda: [0])
    """How many of ``entries`` stand before each item, and after the last."""
    characters: list[int] = field(default_factory=lambda: [0])
    """Characters of the lines before each of ``entries``, and of all."""
    heads: list[Head] = field(default_factory=lambda: [Head()])
    """The head before each item, and after the last."""
    estimates: list[Running] = field(default_factory=lambda: [Running()])
    pictures: list[bool] = field(default_factory=lambda: [False])
    """Whether an image stands before each item, and before the end."""
    folds: dict[Any, Any] = field(default_factory=dict)
    """Rendered forms of the trail, by target; functions of the items alone."""
    charges: dict[float, Charges] = field(default_factory=dict)
    """What the items are charged, by estimator (``pi.estimate``); filled as far as asked for."""

    def append(self, item: Item, *, current: bool = True) -> None:
        """Add the next item of the path; ``current`` as ``Running.after`` means it."""
        self.items.append(item)
        if not item.dropped and not (self.entries and self.entries[-1] is item.entry):
            self.entries.append(item.entry)
            self.characters.append(self.characters[-1] + len(item.entry.raw.decode("utf-8", "replace")))
        self.counts.append(len(self.entries))
        head = self.heads[-1]
        self.heads.append(head.after(item.message, item.entry.place) if item.role == "system" else head)
        self.pictures.append(self.pictures[-1] or bool(texts.images(item.message.get("content"))))
        running = self.estimates[-1].after(item.role, item.message, item.stamp, item.bare, current=current)
        self.estimates.append(running)

    def fork(self, length: int) -> Trail:
        """Another path that shares the first ``length`` items."""
        return Trail(
            self.items[:length],
            self.entries[: self.counts[length]],
            self.counts[: length + 1],
            self.characters[: self.counts[length] + 1],
            self.heads[: length + 1],
            self.estimates[: length + 1],
            self.pictures[: length + 1],
            charges={per: known.cut(length) for per, known in self.charges.items()},
        )

    def charged(self, length: int, per: float) -> Charge:
        """What one of the estimators makes of the first ``length`` items, by what it charges for."""
        known = self.charges.setdefault(per, Charges())
        running = self.estimates[length]
        compaction = per == COMPACTION
        since = running.compaction_since if compaction else running.request_since
        later = known.upto(self.items, length, lambda i: charge(i.role, _measured(i, per), per), since)
        whole = running.compaction if compaction else running.request
        return {**later, "reported": whole - sum(later.values())}

    def context(self, length: int) -> View:
        """The entries of the first ``length`` items that requests are made of."""
        return View(self.entries, self.counts[length])


def items(entry: Entry, edit: Mapping[str, Any] | None = None) -> list[Item]:
    """The messages one entry gives the model; none for what is not context.

    ``edit`` is the ``{content}`` a later context_edit put in place of its content.
    """
    data = entry.data
    stamp = message_stamp(data) or (entry.time or 0.0) * 1000
    bare: Mapping[str, Any] | None = None
    if data.get("type") == "message":
        message = data.get("message")
        if not isinstance(message, Mapping) or entry.kind == "unknown":
            return []
        found = _message(_edited(message, edit))
        bare = ran(message) if message.get("role") == "bashExecution" else None
    elif entry.kind == "custom_message":
        found = _user(_edited(data, edit).get("content"))
    elif entry.kind == "branch_summary" and texts.string(data.get("summary")):
        found, bare = _user(texts.branch_summary(data["summary"])), {"content": data["summary"]}
    else:
        found = None
    return [Item(entry, *found, stamp, bare)] if found else []


def ran(message: Mapping[str, Any]) -> Mapping[str, Any]:
    """A command the user ran and its output, as pi's compaction estimator takes them."""
    return {"content": texts.string(message.get("command")) + texts.string(message.get("output"))}


def opening(compaction: Entry) -> list[Item]:
    """What stands before the history a compaction kept: its system message (1.x) and its summary."""
    stamp = (compaction.time or 0.0) * 1000
    system = compaction.data.get("systemMessage")
    first = [Item(compaction, "system", system, stamp)] if isinstance(system, Mapping) else []
    summary = texts.string(compaction.data.get("summary"))
    return [*first, Item(compaction, *_user(texts.compaction_summary(summary)), stamp, {"content": summary})]


def _measured(item: Item, per: float) -> Mapping[str, Any]:
    """What one of the estimators measures of an item."""
    return item.bare if item.bare is not None and per == COMPACTION else item.message


def _edited(message: Mapping[str, Any], edit: Mapping[str, Any] | None) -> Mapping[str, Any]:
    return {**message, "content": edit["content"]} if edit is not None and "content" in edit else message


def _user(content: Any) -> tuple[str, Mapping[str, Any]]:
    """A user message of what is not one; text becomes a block, as pi does for its own messages."""
    return "user", {"role": "user", "content": texts.blocks(content) if isinstance(content, str) else content}


def _message(message: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]] | None:
    role = message.get("role")
    role = OLD_ROLES.get(str(role), role)
    if role in {"user", "assistant", "toolResult", "system"}:
        return str(role), message
    if role == "custom":
        return _user(message.get("content"))
    if role == "bashExecution" and not message.get("excludeFromContext"):
        return _user(texts.bash_execution(message))
    return None
