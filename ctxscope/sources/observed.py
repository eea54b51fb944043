"""Observations as they are kept: spelled as JSON, put back in the order they were made, beside what the files hold now.

A unit never rewritten is only named where it was first seen: its value is the file's to hold. Of a rewritten one every
version is kept, long cells of rows excepted that its newest version has as well.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ctxscope.model import Place, Record

LONG = 200
"""Characters or bytes of a row's cell from which on it is left to the file, as long as the file holds it."""

Unit = tuple[str, str]
"""Source and key."""


@dataclass(eq=False, slots=True)
class Sights:
    """Lines of a file seen for the first time, one behind the other; a long log has too many to name each."""

    source: str
    first: int
    last: int

    def goes_on(self, unit: Unit) -> bool:
        """Whether a unit is the next line; it is one of them then."""
        source, key = unit
        if source != self.source or key != str(self.last + 1):
            return False
        self.last += 1
        return True

    @property
    def names(self) -> list[str]:
        """The source, and the keys of its units in order."""
        return [self.source, *map(str, range(self.first, self.last + 1))]


Observation = Unit | Sights | Record
"""A unit or several seen for the first time, or a version of one that was rewritten."""


def unit_of(record: Record) -> Unit:
    """What a record is a version of."""
    return (record.source, record.key)


def spelled(observations: Sequence[Observation]) -> Iterator[Any]:
    """Observations in order as JSON: ``[source, key, …]`` for first sights, an object for a version."""
    newest = {unit_of(o): o.value for o in observations if isinstance(o, Record)}
    run: list[str] = []
    for one in observations:
        if isinstance(one, Record):
            if run:
                yield run
                run = []
            yield _version(one, newest[unit_of(one)])
            continue
        names = one.names if isinstance(one, Sights) else one
        if run and names[0] != run[0]:
            yield run
            run = []
        run += names[1:] if run else names
    if run:
        yield run


@dataclass(eq=False, slots=True)
class _Version:
    """A version as kept."""

    number: int
    place: Place | None
    value: Any
    """As spelled, told by ``known``."""
    known: bool


@dataclass(eq=False)
class Observations:
    """What was kept of one session, in the order observed."""

    _order: list[tuple[Unit, _Version]] = field(default_factory=list)
    _versions: dict[Unit, list[_Version]] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self._order)

    def add(self, items: Any) -> None:
        """What ``spelled`` gave; damaged items are left out, and what two followers of the session kept twice."""
        for item in items if isinstance(items, list) else ():
            with contextlib.suppress(KeyError, TypeError, ValueError, AttributeError):
                if isinstance(item, list):
                    for key in item[1:]:
                        self._sight((str(item[0]), str(key)))
                else:
                    log, at = item["place"]
                    unit = (str(item["source"]), str(item["key"]))
                    value = _checked(item["value"])
                    self._take(unit, _Version(int(item["version"]), Place(log, at), value, known=True))

    def replay(self, now: Sequence[Record]) -> tuple[list[Record], list[Record]]:
        """Every observation in order: those kept, then those that ``now`` adds.

        ``now`` is all that the sources hold, each unit once. A version that is lost (rewritten while nobody looked) is
        stood in for by the next one known, as in a log read for the first time.
        """
        held = {unit_of(r): r for r in now}
        unplaced = _Unplaced(now, self._versions)
        known: list[Record] = []
        for unit, version in self._order:
            if version is self._versions[unit][0]:
                known += unplaced.before(unit)
            record = self._record(unit, version, held.get(unit))
            if record is not None:
                known.append(record)
        added = [r for r in now if unplaced.has(unit_of(r)) or self._is_rewritten(unit_of(r))]
        last = {unit_of(r): r for r in known}
        gone = [r for unit, r in last.items() if unit not in held and r.value is not None]
        return known, [*added, *(replace(r, value=None, version=r.version + 1) for r in gone)]

    def _sight(self, unit: Unit) -> None:
        if unit not in self._versions:
            self._append(unit, _Version(0, None, None, known=False))

    def _take(self, unit: Unit, version: _Version) -> None:
        """A version not yet kept comes last; its number bounds how early it can have been kept by another follower."""
        versions = self._versions.get(unit, [])
        mark = _mark(version.value)
        for earlier in versions:
            if earlier.number < version.number:
                continue
            if not earlier.known and earlier.number == version.number:
                earlier.place, earlier.value, earlier.known = version.place, version.value, True
                return
            if earlier.known and _mark(earlier.value) == mark:
                earlier.value = _united(earlier.value, version.value)
                return
        if versions:
            version.number = max(version.number, versions[-1].number + 1)
        self._append(unit, version)

    def _append(self, unit: Unit, version: _Version) -> None:
        self._versions.setdefault(unit, []).append(version)
        self._order.append((unit, version))

    def _is_rewritten(self, unit: Unit) -> bool:
        return any(v.known for v in self._versions.get(unit, ()))

    def _record(self, unit: Unit, version: _Version, now: Record | None) -> Record | None:
        versions = self._versions[unit]
        for candidate in versions[versions.index(version) :]:
            if not candidate.known or candidate.place is None:
                continue
            if candidate.value is None and candidate is not version:
                return None  # lost, and gone before anyone could tell what it was
            with contextlib.suppress(KeyError, ValueError):
                value = _value(candidate.value, lambda name, digest: self._cell(unit, name, digest, now))
                return Record(*unit, candidate.place, value, version.number)
        return replace(now, version=version.number) if now is not None else None

    def _cell(self, unit: Unit, name: str, digest: str, now: Record | None) -> Any:
        """A cell left to the file, or told by another version; ``KeyError`` when neither holds it."""
        cells = [v.value["row"].get(name) for v in self._versions[unit] if v.known and v.value and "row" in v.value]
        cells = [_plain(cell) for cell in cells if _left(cell) is None]
        if now is not None and isinstance(now.value, Mapping):
            cells.append(now.value.get(name))
        for cell in cells:
            if _long(cell) and _digest(cell) == digest:
                return cell
        raise KeyError(name)


class _Unplaced:
    """Units that are here now and nowhere in what was kept."""

    def __init__(self, now: Sequence[Record], kept: Mapping[Unit, Any]) -> None:
        self._kept = kept
        self._waiting: dict[str, deque[Record]] = {}
        self._ahead = {unit_of(r) for r in now}
        """Units still waiting."""
        self._given: set[Unit] = set()
        for record in now:
            self._waiting.setdefault(record.source, deque()).append(record)

    def before(self, unit: Unit) -> Iterator[Record]:
        """Those of its source that stand before a kept one: they came earlier, and what told so was dropped."""
        while unit in self._ahead:
            record = self._waiting[unit[0]].popleft()
            self._ahead.remove(unit_of(record))
            if unit_of(record) not in self._kept:
                self._given.add(unit_of(record))
                yield record

    def has(self, unit: Unit) -> bool:
        """Whether a unit was neither kept nor given by ``before``."""
        return unit not in self._kept and unit not in self._given


# --- values as JSON --------------------------------------------------------------------------------------------------


def _version(record: Record, newest: Any) -> dict[str, Any]:
    place = (record.place.log, record.place.at)
    value = _spell(record.value, newest)
    return {"source": record.source, "key": record.key, "place": place, "version": record.version, "value": value}


def _spell(value: Any, newest: Any) -> Any:
    """A record's value; cells that ``newest`` has as well are left to it."""
    if isinstance(value, bytes):
        return {"bytes": base64.b64encode(value).decode()}
    if value is None:
        return None
    beside = newest if isinstance(newest, Mapping) else {}
    return {"row": {n: _spell_cell(c, left=_long(c) and beside.get(n) == c) for n, c in value.items()}}


def _spell_cell(cell: Any, *, left: bool) -> Any:
    if left:
        return {"left": _digest(cell)}
    return {"bytes": base64.b64encode(cell).decode()} if isinstance(cell, bytes) else cell


def _checked(spelled: Any) -> Any:
    """A spelled value of the right shape; ``ValueError`` for any other, which only damage makes."""
    if spelled is None or isinstance(spelled.get("bytes"), str) or isinstance(spelled.get("row"), dict):
        return spelled
    raise ValueError(spelled)


def _value(spelled: Any, cell: Callable[[str, str], Any]) -> Any:
    """A value read back; ``cell(name, digest)`` finds what was left to the file, or raises ``KeyError``."""
    if spelled is None:
        return None
    if "bytes" in spelled:
        return _plain(spelled)
    cells = spelled["row"].items()
    return {n: _plain(c) if (digest := _left(c)) is None else cell(n, digest) for n, c in cells}


def _plain(cell: Any) -> Any:
    return base64.b64decode(cell["bytes"], validate=True) if isinstance(cell, dict) else cell


def _left(cell: Any) -> str | None:
    """The digest that stands for a cell left to the file."""
    return cell["left"] if isinstance(cell, dict) and "left" in cell else None


def _long(cell: Any) -> bool:
    return isinstance(cell, str | bytes) and len(cell) > LONG


def _digest(cell: str | bytes) -> str:
    data = cell.encode("utf-8", "surrogatepass") if isinstance(cell, str) else cell
    return hashlib.sha256(data).hexdigest()[:32]


def _mark(spelled: Any) -> Any:
    """What two spellings of one value share, whatever was left to the file."""
    if not isinstance(spelled, dict) or "row" not in spelled:
        return spelled
    return {
        n: _spell_cell(_plain(c), left=True) if _left(c) is None and _long(_plain(c)) else c
        for n, c in spelled["row"].items()
    }


def _united(one: Any, other: Any) -> Any:
    """The fuller of two spellings of one value, cell by cell."""
    if not isinstance(one, dict) or "row" not in one:
        return one
    theirs = other["row"]
    return {"row": {n: theirs[n] if _left(c) is not None else c for n, c in one["row"].items()}}
