"""A session's sources into its log: records become entries, numbered as seen, and fold in any batches to the same log.

What a followed session saw rewritten is kept in ctxscope's own data folder, and folded again at the next opening in the
order it was observed (DESIGN law 3). Of settings no version is: keys and passwords stand in them (law 7).
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ctxscope import agents
from ctxscope.model import Entry, Place, Record, SessionRef
from ctxscope.session.deferred import FROM_BYTES, DeferredEntry, Shelf
from ctxscope.sources import Reader, open_readers
from ctxscope.sources.jsonl import LineReader
from ctxscope.sources.kept import KeptVersions
from ctxscope.sources.observed import Observation, Sights, Unit, unit_of


@dataclass(eq=False, repr=False)
class SessionLog:
    """One session being read."""

    ref: SessionRef
    agent: agents.Agent
    log: agents.Log
    readers: list[Reader] = field(default_factory=list)
    conversation: set[str] = field(default_factory=set)
    """Keys of the sources that hold the messages."""
    passing: set[str] = field(default_factory=set)
    """Keys of the sources of which no version is kept."""
    seen: int = 0
    """Entries observed so far."""
    beside: int = 0
    """Entries observed beside the conversation itself (prompts, tools, settings, the agent's own telemetry).

    Each may change what an earlier request is rebuilt to, although none of its messages came again.
    """
    _last: dict[Unit, tuple[Record, Sequence[Entry]]] = field(default_factory=dict)
    """By unit that told something, the version that last told something else, and its entries; lines on shelves apart."""
    _unkept: list[Observation] = field(default_factory=list)
    """Observations in order that are not in the data folder."""
    _worth_keeping: bool = False
    """Something was rewritten, now or when the session was followed before; until then the files tell it all."""
    _lines: dict[str, LineReader] = field(default_factory=dict)
    """Readers by source whose lines may be read again."""
    _shelves: dict[str, Shelf] = field(default_factory=dict)
    """Where the entries of long logs have their content, by source."""
    shelved: dict[str, Any] = field(default_factory=dict)
    """By source, a hash of all lines that were put on its shelf, in the order observed."""
    _lost: int = 0
    """Lines of long logs that were written over in place."""
    _began: bool = False
    _trouble: str | None = None

    @classmethod
    def open(cls, ref: SessionRef) -> SessionLog:
        """Name its sources; nothing is read before ``poll``."""
        session = cls(ref, agents.load(ref.agent), agents.Log(ref))
        session._find_sources()
        return session

    def poll(self) -> bool:
        """Read what is new, in files that appeared too; True when it told something."""
        before = self.seen
        if self._began:
            self._find_sources()
        if not self._began:
            self._begin()
        else:
            self._take()
        return self.seen != before

    def _take(self) -> None:
        for records in self._new_records():
            self.fold(records)
            if self._shelves:  # what follows from these lines is worked out while they are at hand
                self.agent.index(self.log)
                for shelf in self._shelves.values():
                    shelf.put_away()

    def fold(self, records: Iterable[Record]) -> None:
        """Add records in the order observed; one that says what its unit said before is no observation."""
        for record in records:
            unit = unit_of(record)
            last = self._told_last(unit)
            entries = list(self.agent.entries(record))
            if last is None:
                if record.value is None or not entries:
                    continue
                self._sight(unit)
            else:
                before = self._as_it_was(*last)
                if self._says_the_same(entries, record, *last):
                    continue
                record = replace(record, version=last[0].version + 1)  # noqa: PLW2901 - a process counts from 0 again
                if record.source not in self.passing:
                    self._unkept += (record,) if before is None else (before, record)
                    self._worth_keeping = True
                self._last.pop(unit, None)
            shelf = self._shelf(record)
            added: Sequence[Entry]
            if shelf is not None and isinstance(record.value, bytes):
                made = self.shelved.setdefault(record.source, hashlib.sha256())
                made.update(record.value)
                made.update(b"\n")
                added = shelf.put(record, entries, self.seen)
            else:
                added = tuple([_numbered(entry, seq) for seq, entry in enumerate(entries, self.seen)])
                self._last[unit] = (record, added)
            for entry in added:
                self.log.add(entry)
            self.seen += len(added)
            if record.source not in self.conversation:
                self.beside += len(added)

    def _told_last(self, unit: Unit) -> tuple[Record, Sequence[Entry]] | None:
        """The version of a unit that last told something else, and its entries; what is on a shelf is no part of it."""
        last = self._last.get(unit)
        if last is not None:
            return last
        source, key = unit
        shelf = self._shelves.get(source)
        found = shelf.told.last(int(key)) if shelf is not None else None
        if found is None:
            return None
        numbers, version = found
        entries = self.log.versions[numbers.start : numbers.stop]
        return Record(source, key, Place(self._lines[source].spec.log, int(key)), b"", version), entries

    def _sight(self, unit: Unit) -> None:
        """A unit is seen for the first time: this alone is told, where settings stand among what was observed, too."""
        run = self._unkept[-1] if self._unkept else None
        if isinstance(run, Sights) and run.goes_on(unit):
            return
        source, key = unit
        number = int(key) if source in self._lines and key.isdecimal() else 0
        self._unkept.append(Sights(source, number, number) if str(number) == key else unit)

    def _shelf(self, record: Record) -> Shelf | None:
        """Where the content of a line is read again, if its log is long; else ``None``: it is kept."""
        reader = self._lines.get(record.source) if self.agent.rereads else None
        if reader is None or not reader.holds or not isinstance(record.value, bytes) or len(record.value) < FROM_BYTES:
            return None
        shelf = self._shelves.get(record.source)
        if shelf is None:
            shelf = self._shelves[record.source] = Shelf(reader, self.agent)
        return shelf

    def _as_it_was(self, record: Record, entries: Sequence[Entry]) -> Record | None:
        """The version before the one just read, its entries made to keep what they said; ``None`` when that is lost."""
        if record.value != b"" or record.source not in self._shelves:
            return record
        line = self._shelves[record.source].earlier(record.place.number)
        if line is None:
            self._lost += 1
        for entry in entries:
            if isinstance(entry, DeferredEntry):
                entry.pin(line)
        return None if line is None else replace(record, value=line)

    def keep(self) -> None:
        """Put what the files may not hold much longer into the data folder; for a session that is followed.

        Where nothing was rewritten, nothing is written. A folder that cannot be written costs a notice, and what is
        observed from then on is not kept: a record with a hole would mislead.
        """
        if not self._worth_keeping or not self._unkept:
            return
        observations, self._unkept = self._unkept, []
        if self._trouble is not None:
            return
        try:
            KeptVersions().keep(self._name, observations)
        except OSError as error:
            self._trouble = f"versions rewritten from now on are not kept for the next opening: {error}"

    def _find_sources(self) -> None:
        """Open what the agent names and is not read yet; its files take their numbers behind the known ones."""
        known = {reader.spec.key for reader in self.readers}
        specs = [spec for spec in self.agent.sources(self.ref) if spec.key not in known]
        if not specs:
            return
        further = {s.log: s.path for s in specs if s.log >= len(self.ref.paths)}
        if further:
            paths = (*self.ref.paths, *(further[number] for number in sorted(further)))
            self.ref = self.log.ref = replace(self.ref, paths=paths)
        opened = open_readers(specs)
        self.readers += opened
        self._lines |= {reader.spec.key: reader for reader in opened if isinstance(reader, LineReader)}
        # What grows a message at a time: a log of lines, a table whose rows are rewritten.
        self.conversation.update(s.key for s in specs if s.kind == "jsonl" or s.mutable)
        self.passing.update(s.key for s in specs if not s.kept)

    @property
    def _name(self) -> str:
        """What the session is kept under: the same whatever link or relative path it was opened by."""
        return f"{self.ref.agent}\n{self.ref.id}\n{os.path.realpath(self.ref.paths[0])}"

    def _begin(self) -> None:
        kept = KeptVersions().load(self._name, self.passing)
        if kept:
            known, added = kept.replay([r for records in self._new_records() for r in records])
            self._lines = {}  # what is folded now is not what the files say
            self.fold(known)
            self._unkept, self._worth_keeping = [], True
            self.fold(added)
        else:
            self._take()
        self._began = True

    def _new_records(self) -> Iterable[Sequence[Record]]:
        for reader in self.readers:
            yield reader.poll()
            while reader.more:
                yield reader.poll()

    def _says_the_same(self, entries: Sequence[Entry], record: Record, before: Record, gave: Sequence[Entry]) -> bool:
        """Whether a unit gives the entries it gave, and each still is what the log has."""
        if (record.value is None) != (before.value is None) or [e.key for e in entries] != [e.key for e in gave]:
            return False
        return all(map(self._is_current, entries))

    def _is_current(self, entry: Entry) -> bool:
        at = self.log.index.get(entry.key)
        if at is None:
            return False
        now = self.log.entries[at]
        return (now.kind, now.place, now.time, now.raw) == (entry.kind, entry.place, entry.time, entry.raw) and (
            now.data == entry.data
        )

    @property
    def partial(self) -> bool:
        """A source holds back an unfinished line."""
        return any(reader.partial for reader in self.readers)

    @property
    def notices(self) -> tuple[str, ...]:
        """What the readers could not read as expected, and what cannot be kept."""
        told = [notice for reader in self.readers for notice in reader.notices]
        if self._lost:
            told.append(
                f"{self._lost} lines of a long log were written over: what they said before is not known any more"
            )
        return tuple(told if self._trouble is None else [*told, self._trouble])

    def close(self) -> None:
        """Give the files back."""
        for reader in self.readers:
            reader.close()


def _numbered(entry: Entry, seq: int) -> Entry:
    """An entry with its number among those observed."""
    if entry.seq == seq:
        return entry
    return Entry(entry.kind, entry.place, entry.key, entry.data, entry.time, seq, entry.source, entry.raw)
