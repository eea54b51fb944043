"""Rows of an agent's database as records: new ones, changed ones as new versions, deleted ones as gone."""

from __future__ import annotations

import contextlib
import hashlib
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ctxscope.model import CtxscopeError, Place, Record, SourceSpec
from ctxscope.sources.database import DAMAGE, EXPECTED, Database, DatabaseBusyError, primary_code, told
from ctxscope.sources.files import missing

BATCH = 500
"""Keys per query; SQLite has long allowed 999 parameters."""
DAMAGED = (None, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_FORMAT, sqlite3.SQLITE_TOOBIG)
"""Codes of errors that concern some rows and are no reason to do without the others."""
NUMERIC = ("INT", "REAL", "FLOA", "DOUB", "NUM", "DEC", "BOOL", "DATE", "TIME")
"""Parts of declared types whose values are small: re-read too, they tell a row id that was used again."""


@dataclass(frozen=True, slots=True)
class SeenRow:
    """What is remembered of a row: 16 bytes over what may be rewritten, 16 over all of it."""

    quick: bytes
    full: bytes
    version: int


@dataclass(slots=True)
class Delta:
    """What one read found; it counts only once the read is known to be sound."""

    records: list[Record] = field(default_factory=list)
    rows: dict[Any, SeenRow] = field(default_factory=dict)
    gone: dict[Any, int] = field(default_factory=dict)
    """Version by key."""
    notices: list[str] = field(default_factory=list)


class TableReader:
    """Follows one table (kind ``sqlite``), or the part of it that ``where`` names."""

    more = False

    def __init__(self, spec: SourceSpec, file: SqliteFile) -> None:
        self.spec = spec
        self._file = file
        self._rows: dict[Any, SeenRow] = {}
        self._gone: dict[Any, int] = {}
        self._notices: list[str] = []
        self.pending: list[Record] | None = None
        """Found by a read another table asked for, not yet polled."""

    @property
    def partial(self) -> bool:
        """The database is busy; the next poll tries again."""
        return self._file.busy

    @property
    def notices(self) -> tuple[str, ...]:
        """What is missing in the schema, and what keeps the file from being read now."""
        return (*self._notices, *self._file.notices)

    def poll(self) -> list[Record]:
        """Records since the last poll, from the same transaction as those of the file's other tables."""
        if self.pending is None:
            self._file.refresh()
        records, self.pending = self.pending or [], None
        return records

    def close(self) -> None:
        """Nothing is held between polls."""

    def read(self, connection: sqlite3.Connection, *, whole: bool) -> Delta:
        """Compare the table with what was seen of it; ``whole``: every byte, since it may be another file.

        Of a damaged table the rows that can be had count, and none is called gone.
        """
        delta = Delta()
        query = self._query(connection, delta.notices)
        if query is None:
            return delta
        quick = None if whole or not self._rows else self._quick(query, connection)
        if quick is None:
            present = {row[query.key] for row in self._compare(query, query.rows(connection), delta)}
        else:
            stale = [key for key, digest in quick.items() if key not in self._rows or self._rows[key].quick != digest]
            for _ in self._compare(query, query.rows_of(connection, stale), delta):
                pass
            present = set(quick)
        if query.damage:
            delta.notices.append(
                f"{self.spec.path}: found table {self.spec.table} damaged ({query.damage[0]}); rows may be missing"
            )
            return delta
        for key in self._rows.keys() - present:
            delta.gone[key] = self._rows[key].version + 1
            delta.records.append(self._record(key, None, delta.gone[key]))
        return delta

    def _quick(self, query: TableQuery, connection: sqlite3.Connection) -> dict[Any, bytes] | None:
        """By key a digest of what may be rewritten; ``None`` when the table is damaged."""
        try:
            return {row[query.key]: _quick_digest(tuple(row)) for row in query.quick_rows(connection)}
        except DAMAGE as error:
            query.stand(error)
            return None

    def apply(self, delta: Delta) -> None:
        """Take what a sound read found."""
        for key, version in delta.gone.items():
            del self._rows[key]
            self._gone[key] = version
        self._rows |= delta.rows
        self._notices = delta.notices
        self.pending = [*(self.pending or []), *delta.records]

    def _compare(self, query: TableQuery, rows: Iterable[sqlite3.Row], delta: Delta) -> Iterator[sqlite3.Row]:
        for row in rows:
            key, full = row[query.key], _full_digest(row)
            seen = self._rows.get(key)
            version = seen.version if seen else self._gone.get(key, -1)
            if seen is None or seen.full != full:
                version += 1
                delta.records.append(self._record(key, dict(row), version))
            delta.rows[key] = SeenRow(_quick_digest(tuple(row[name] for name in query.quick)), full, version)
            yield row

    def _record(self, key: Any, value: Mapping[str, Any] | None, version: int) -> Record:
        return Record(self.spec.key, str(key), Place(self.spec.log, f"row {key}"), value, version)

    def _query(self, connection: sqlite3.Connection, notices: list[str]) -> TableQuery | None:
        """How to ask this schema, older or newer than the one we know; ``None`` when its rows cannot be told apart."""
        spec = self.spec
        types = {
            row["name"]: row["type"].upper() for row in connection.execute(f"PRAGMA table_info({_name(spec.table)})")
        }
        if not types:
            if not spec.optional:
                notices.append(f"{spec.path}: found no table {spec.table}, expected one")
            return None
        for column in (spec.key_column, *(spec.where[:1] if spec.where else ())):
            if column not in types:
                notices.append(f"{spec.path}: table {spec.table} has no column {column}; its rows are not read")
                return None
        columns = tuple(name for name in types if _is_text(name))
        small = {name for name in columns if any(part in types[name] for part in NUMERIC)}
        quick = tuple(name for name in columns if name in small or name in spec.mutable or name == spec.key_column)
        order = tuple(name for part in spec.order_by.split(",") if (name := part.strip()) in types)
        return TableQuery(spec, columns, quick, order or (spec.key_column,))


@dataclass(frozen=True, slots=True)
class TableQuery:
    """The statements for one table: column names quoted, values bound.

    Names come from the agent's schema or our own specs and are known to exist: SQLite reads an unknown quoted name as
    a text.
    """

    spec: SourceSpec
    columns: tuple[str, ...]
    """All but those whose names a damaged schema made unspeakable."""
    quick: tuple[str, ...]
    """Columns that tell whether a row changed."""
    order: tuple[str, ...]
    damage: list[str] = field(default_factory=list)
    """What kept rows from being read."""

    @property
    def key(self) -> str:
        """The column that identifies a row."""
        return self.spec.key_column

    def rows(self, connection: sqlite3.Connection) -> Iterator[sqlite3.Row]:
        """All rows, whole; of a damaged table those that can be had."""
        given: set[Any] = set()
        try:
            for row in self._select(connection, self.columns):
                given.add(row[self.key])
                yield row
        except DAMAGE as error:
            self.stand(error)
            yield from sorted(
                self._around(connection, given), key=lambda row: [_rank(row[name]) for name in self.order]
            )

    def quick_rows(self, connection: sqlite3.Connection) -> Iterable[sqlite3.Row]:
        """All rows, only what may be rewritten. Raises what a damaged table makes SQLite raise."""
        return self._select(connection, self.quick)

    def rows_of(self, connection: sqlite3.Connection, keys: Sequence[Any]) -> Iterator[sqlite3.Row]:
        """The rows with these keys, whole, as far as they can be had; keys in the table's order."""
        for start in range(0, len(keys), BATCH):
            marks, values = zip(*map(_bound, keys[start : start + BATCH]), strict=True)
            try:
                yield from self._select(connection, self.columns, f"{_name(self.key)} IN ({', '.join(marks)})", values)
            except DAMAGE as error:
                self.stand(error)

    def stand(self, error: Exception) -> None:
        """Note damage; raises what is none: a lock, a full disk, a file that cannot be read."""
        if primary_code(error) not in DAMAGED:
            raise error
        self.damage.append(told(error))

    def _around(self, connection: sqlite3.Connection, given: set[Any]) -> list[sqlite3.Row]:
        """Further rows of a damaged table: those before the first bad page and behind the last, without any index."""
        found: list[sqlite3.Row] = []
        for order in ("rowid", "rowid DESC"):
            with contextlib.suppress(*DAMAGE):
                for row in self._select(connection, self.columns, order=order, hint=" NOT INDEXED"):
                    if row[self.key] not in given:
                        given.add(row[self.key])
                        found.append(row)
        return found

    def _select(
        self,
        connection: sqlite3.Connection,
        columns: Sequence[str],
        condition: str = "",
        values: Sequence[Any] = (),
        *,
        order: str = "",
        hint: str = "",
    ) -> Iterable[sqlite3.Row]:
        conditions = [condition] if condition else []
        if self.spec.where is not None:
            mark, value = _bound(self.spec.where[1])
            conditions.append(f"{_name(self.spec.where[0])} = {mark}")
            values = (*values, value)
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        chosen, order = ", ".join(map(_name, columns)), order or ", ".join(map(_name, self.order))
        return connection.execute(
            f"SELECT {chosen} FROM {_name(self.spec.table)}{hint}{where} ORDER BY {order}",  # noqa: S608 - quoted names only
            tuple(values),
        )


class SqliteFile:
    """The tables of one database file that are read together."""

    def __init__(self, path: Path, specs: Sequence[SourceSpec]) -> None:
        self.readers = [TableReader(spec, self) for spec in specs]
        self.busy = False
        self.notices: tuple[str, ...] = ()
        self._database = Database(path)
        self._replaced = 0
        self._required = not all(spec.optional for spec in specs)

    def refresh(self) -> None:
        """Read all tables in one transaction, if anything changed, and leave each what it has to tell.

        Waits for a busy file only while it was never read; later that makes it ``busy`` until the next poll.
        """
        first = self._database.identity is None
        try:
            self._read(first=first)
        except DatabaseBusyError:
            self.busy = True
        except CtxscopeError as error:
            if first and self._required:
                raise
            self.busy = False
            self.notices = (str(error),)

    def _read(self, *, first: bool) -> None:
        database = self._database
        if not database.exists():
            if first and self._required:
                raise missing(database.path, EXPECTED)
            self.notices = () if first else (f"{database.path.name}: the file is gone",)
            return
        if database.unchanged():
            self.busy = False
            return

        def tables(connection: sqlite3.Connection) -> list[Delta]:
            return [reader.read(connection, whole=database.replaced) for reader in self.readers]

        deltas = database.read(tables, wait=first)
        self.busy = False
        self._replaced += database.replaced
        told = f"{database.path.name}: replaced by another file ({self._replaced} times)"
        self.notices = (told,) if self._replaced else ()
        for reader, delta in zip(self.readers, deltas, strict=True):
            reader.apply(delta)


def _name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _is_text(name: str) -> bool:
    """Whether a statement can name it."""
    return "\0" not in name and not any("\ud800" <= character <= "\udfff" for character in name)


def _bound(value: Any) -> tuple[str, Any]:
    """How a statement says a value and what is bound there; text that is not UTF-8 goes in as its bytes."""
    if isinstance(value, str) and not _is_text(value):
        return "CAST(? AS TEXT)", value.encode("utf-8", "surrogateescape")
    return "?", value


def _rank(value: Any) -> tuple[int, Any]:
    """Sorts values as SQLite does: NULL, numbers, texts, blobs."""
    if value is None:
        return 0, 0
    return (1 if isinstance(value, int | float) else 2 if isinstance(value, str) else 3), value


def _quick_digest(values: tuple[Any, ...]) -> bytes:
    """16 bytes over the values of the quick columns; computed for every row at every change, hence in one go."""
    return hashlib.sha256(repr(values).encode("utf-8", "surrogatepass")).digest()[:16]


def _full_digest(row: sqlite3.Row) -> bytes:
    """16 bytes over names and values; NULLs left out, so that a column an upgrade adds changes no row."""
    found = hashlib.sha256()
    for name, value in dict(row).items():
        if value is None:
            continue
        if isinstance(value, str):
            data = value.encode("utf-8", "surrogateescape")
        else:
            data = value if isinstance(value, bytes) else repr(value).encode()
        found.update(f"{len(name)} {name} {type(value).__name__} {len(data)} ".encode())
        found.update(data)
    return found.digest()[:16]
