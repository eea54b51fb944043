"""Entries of a long log that keep what an index needs and read the rest of their line again when it is looked at."""

from __future__ import annotations

from array import array
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

    __slots__ = ("_content",)
    _content: Shelf | Entry
    """Where its content is read; the whole entry while it is new, and once its line says something else."""

    def __init__(self, entry: Entry, seq: int) -> None:
        put = object.__setattr__
        put(self, "kind", entry.kind)
        put(self, "place", entry.place)
        put(self, "key", entry.key)
        put(self, "time", entry.time)
        put(self, "seq", seq)
        put(self, "source", entry.source)
        put(self, "_content", entry)

    @property
    def data(self) -> Mapping[str, Any]:
        """The parsed content; empty when the file was written over and does not hold it any more."""
        content = self._content
        return content.data if isinstance(content, Entry) else content.whole(self).data

    @property
    def raw(self) -> bytes:
        """The line as logged; empty when the file does not hold it any more."""
        content = self._content
        return content.raw if isinstance(content, Entry) else content.whole(self).raw

    def put_away(self, shelf: Shelf) -> None:
        """Let go of the content: it is read from the file from now on."""
        object.__setattr__(self, "_content", shelf)

    def pin(self, line: bytes | None) -> None:
        """Keep the content, since its line is about to say something else; ``None``: nobody knows it any more."""
        if isinstance(self._content, Shelf):
            object.__setattr__(self, "_content", self._content.of(self, line))


class Told:
    """What each line of a long log told last, as numbers: for each line a record and a tuple would cost more than its entries."""

    def __init__(self) -> None:
        self._first = array("Q")
        """By line less one, the number of its first entry among all observed, plus one; 0: it told nothing."""
        self._count: dict[int, int] = {}
        """By line, of those that gave not one entry but some."""
        self._version: dict[int, int] = {}
        """By line, of those that came again."""

    def note(self, number: int, first: int, count: int, version: int) -> None:
        """A line told ``count`` entries, the first of them number ``first``."""
        missing = number - len(self._first)
        if missing > 0:
            self._first.extend([0] * missing)
        self._first[number - 1] = first + 1
        if count != 1 or number in self._count:
            self._count[number] = count
        if version:
            self._version[number] = version

    def last(self, number: int) -> tuple[range, int] | None:
        """Numbers of the entries a line told last, and its version; ``None``: it told none."""
        first = self._first[number - 1] if 0 < number <= len(self._first) else 0
        if not first:
            return None
        return range(first - 1, first - 1 + self._count.get(number, 1)), self._version.get(number, 0)


class Shelf:
    """The content of the entries of one long log."""

    def __init__(self, reader: LineReader, agent: Agent) -> None:
        self._reader, self._agent = reader, agent
        self.told = Told()
        self._new: list[DeferredEntry] = []
        """Entries that have their content with them still."""
        self._at_hand: OrderedDict[int, tuple[Sequence[Entry], int]] = OrderedDict()
        """By line, its entries and its length."""
        self._bytes = 0

    def put(self, record: Record, entries: Sequence[Entry], seen: int) -> tuple[DeferredEntry, ...]:
        """The entries of a line that was just read, numbered from ``seen`` on; their content stays until ``put_away``."""
        assert isinstance(record.value, bytes)
        number = record.place.number
        self.told.note(number, seen, len(entries), record.version)
        self._keep(number, entries, len(record.value))
        new = tuple([DeferredEntry(entry, seq) for seq, entry in enumerate(entries, seen)])
        self._new += new
        return new

    def put_away(self) -> None:
        """Let go of the content of what is new, but for the lines read last."""
        for entry in self._new:
            entry.put_away(self)
        self._new.clear()

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
        self.put_away()
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
