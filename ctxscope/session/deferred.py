"""Entries of a long log that keep what an index needs and read the rest of their line again when it is looked at."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any

from ctxscope.agents import Agent
from ctxscope.model import Entry, Record
from ctxscope.sources.jsonl import LineReader

FROM_BYTES = 256
"""A shorter line takes no more room than what stands for it."""
AT_HAND_BYTES = 3 * 1024 * 1024
"""Lines kept parsed, the last ones looked at: more than one poll reads, so that what is new is parsed once."""


class DeferredEntry(Entry):
    """An entry whose content stands in its file; equal in all it says to the entry it was made from."""

    __slots__ = ("_shelf",)
    _shelf: Shelf | Entry
    """Where its content is read; the whole entry, once its line says something else."""

    def __init__(self, entry: Entry, shelf: Shelf) -> None:
        for name in ("kind", "place", "key", "time", "seq", "source"):
            object.__setattr__(self, name, getattr(entry, name))
        object.__setattr__(self, "_shelf", shelf)

    @property
    def data(self) -> Mapping[str, Any]:
        """The parsed content; empty when the file was written over and does not hold it any more."""
        return self._whole.data

    @property
    def raw(self) -> bytes:
        """The line as logged; empty when the file does not hold it any more."""
        return self._whole.raw

    @property
    def _whole(self) -> Entry:
        return self._shelf if isinstance(self._shelf, Entry) else self._shelf.whole(self)

    def pin(self, line: bytes | None) -> None:
        """Keep the content, since its line is about to say something else; ``None``: nobody knows it any more."""
        if isinstance(self._shelf, Shelf):
            object.__setattr__(self, "_shelf", self._shelf.of(self, line))


class Shelf:
    """The content of the entries of one long log."""

    def __init__(self, reader: LineReader, agent: Agent) -> None:
        self._reader, self._agent = reader, agent
        self._at_hand: OrderedDict[int, tuple[Sequence[Entry], int]] = OrderedDict()
        """By line, its entries and its length."""
        self._bytes = 0

    def put(self, record: Record, entries: Sequence[Entry]) -> None:
        """Keep the entries of a line that was just read at hand."""
        assert isinstance(record.value, bytes)
        self._keep(record.place.number, entries, len(record.value))

    def whole(self, entry: Entry) -> Entry:
        """The entry with its content, read again if need be."""
        number = entry.place.number
        known = self._at_hand.get(number)
        if known is not None:
            self._at_hand.move_to_end(number)
            return _same(entry, known[0])
        line = self._reader.again(number)
        if line is None:
            return self.of(entry, None)
        entries = self._parsed(entry, line)
        self._keep(number, entries, len(line))
        return _same(entry, entries)

    def of(self, entry: Entry, line: bytes | None) -> Entry:
        """The entry with the content its line had."""
        if line is None:
            return _empty(entry)
        return _same(entry, self._parsed(entry, line))

    def earlier(self, number: int) -> bytes | None:
        """What a line said that the reader just told anew, where the file it stood in can still be read."""
        self.forget(number)
        return self._reader.earlier(number)

    def forget(self, number: int) -> None:
        """A line says something else now."""
        known = self._at_hand.pop(number, None)
        self._bytes -= known[1] if known else 0

    def _parsed(self, entry: Entry, line: bytes) -> Sequence[Entry]:
        record = Record(entry.source, str(entry.place.number), entry.place, line)
        return tuple(self._agent.entries(record))

    def _keep(self, number: int, entries: Sequence[Entry], size: int) -> None:
        self.forget(number)
        self._at_hand[number] = (entries, size)
        self._bytes += size
        while self._bytes > AT_HAND_BYTES and len(self._at_hand) > 1:
            _, (_, dropped) = self._at_hand.popitem(last=False)
            self._bytes -= dropped


def _same(entry: Entry, among: Sequence[Entry]) -> Entry:
    """The one of a line's entries that stands for ``entry``; one that says nothing, should there be none."""
    return next((e for e in among if e.key == entry.key), None) or _empty(entry)


def _empty(entry: Entry) -> Entry:
    return Entry(entry.kind, entry.place, entry.key, {}, entry.time, entry.seq, entry.source)
