"""Cases as they grew: what lay on disk moment by moment, the observations readers made of it, and what is said of them."""

from __future__ import annotations

import contextlib
import json
import re
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from datetime import UTC, datetime
from itertools import accumulate
from pathlib import Path
from types import MappingProxyType
from typing import Any
from unittest import mock

from ctxscope import capture
from ctxscope.analysis.tokens import Counter
from ctxscope.model import CtxscopeError, Exchange, Record, SessionRef
from ctxscope.session.assembly import Assembly
from ctxscope.session.finding import Found
from ctxscope.session.fold import SessionLog
from tests import hermes_cases
from tests.agent_cases import PACKED, ZSTD, frames, lines_of, packed_frames
from tests.conftest import CAPTURES, SAMPLES
from tests.samples import hermes_cases as hermes_samples
from tests.samples import hermes_db, hermes_form, make_samples

Tables = Mapping[str, Sequence[Mapping[str, Any]]]
KEYS = {"schema_version": "version", "system_prompts": "hash"}
"""Column that identifies a row; ``id`` elsewhere."""
MILLISECONDS = 1e11
"""A larger number of a clock counts milliseconds."""
ZONE = 900
"""Time zones lie a multiple of a quarter hour apart; agent.log names none."""


@dataclass(frozen=True)
class Moment:
    """What an agent or a recorder wrote at once: files, whole, by path in the case, and the rows of a database."""

    files: Mapping[str, bytes] = field(default_factory=dict)
    tables: Tables | None = None


# --- pi: everything is a line ----------------------------------------------------------------------------------------


def pi_moments(case: Path) -> Iterator[Moment]:
    """A log line or a side of an exchange at a time, in the order they happened."""
    grown: dict[str, bytes] = {}
    events: list[tuple[float, int, str, bytes]] = []
    for side in sorted(case.rglob("*.json")):
        if side.name in ("models.json", "settings.json"):
            yield Moment({str(side.relative_to(case)): side.read_bytes()})
    for log in sorted(case.rglob("*.jsonl")):
        name = str(log.relative_to(case))
        if log.name == "index.jsonl":
            events += _exchanges(case, log)
        else:
            lines = log.read_bytes().splitlines(keepends=True)
            stamps = (datetime.fromisoformat(json.loads(line)["timestamp"]).timestamp() for line in lines)
            times = list(accumulate(stamps, max))  # a fork begins with lines older than itself
            events += [(t, i + 2, name, line) for i, (t, line) in enumerate(zip(times, lines, strict=True))]
    for _, _, name, data in sorted(events, key=lambda e: e[:2]):
        grown[name] = grown.get(name, b"") + data
        yield Moment({name: grown[name]})


def _exchanges(case: Path, index: Path) -> Iterator[tuple[float, int, str, bytes]]:
    """Request, line of the index, reply: what happened when, with a rank among things of one time."""
    for line in index.read_bytes().splitlines(keepends=True):
        told = json.loads(line)
        request, reply = (index.with_name(f"{told['n']:04d}.{kind}") for kind in ("req", "res"))
        yield told["t"], -2, str(request.relative_to(case)), request.read_bytes()
        yield told["t"], -1, str(index.relative_to(case)), line
        if reply.exists():
            yield told.get("t_end", told["t"]), 0, str(reply.relative_to(case)), reply.read_bytes()


# --- others: a line or a frame at a time, what is neither as it was left ----------------------------------------------


def other_moments(case: Path) -> Iterator[Moment]:
    """The files that no lines tell of, then lines, frames and sides of exchanges in the order they happened."""
    grown: dict[str, bytes] = {}
    events: list[tuple[float, int, str, bytes]] = []
    logs = set(lines_of(case / "log"))
    indices = sorted(case.glob("**/wire/index.jsonl"))
    yield Moment(
        {
            str(p.relative_to(case)): p.read_bytes()
            for p in sorted((case / "log").rglob("*"))
            if p.is_file() and p not in logs
        }
    )
    for index in indices:
        events += _exchanges(case, index)
    for log in sorted(logs):
        pieces = (
            list(packed_frames(log.read_bytes()))
            if log.suffix in PACKED
            else log.read_bytes().splitlines(keepends=True)
        )
        times = list(accumulate((_stamp(piece) for piece in pieces), max))
        events += [
            (t, i + 2, str(log.relative_to(case)), p) for i, (t, p) in enumerate(zip(times, pieces, strict=True))
        ]
    for _, _, name, data in sorted(events, key=lambda e: e[:2]):
        grown[name] = grown.get(name, b"") + data
        yield Moment({name: grown[name]})


def _stamp(piece: bytes) -> float:
    """When a line was written, as far as it says; 0 sorts it with the line before it."""
    text = b"".join(frames(piece)) if piece[:4] == ZSTD else piece
    with contextlib.suppress(ValueError):
        told = json.loads(text.split(b"\n")[0])
        stamp = told.get("timestamp", told.get("time", 0)) if isinstance(told, dict) else 0
        if isinstance(stamp, str):
            return datetime.fromisoformat(stamp).timestamp()
        return stamp / 1000 if stamp > MILLISECONDS else stamp
    return 0.0


# --- Hermes: rows as they stood --------------------------------------------------------------------------------------

SAMPLE_SCRIPTS = {make.__name__: make for make in make_samples.AGENTS["hermes"]}


class GrowingHome(hermes_form.Home):
    """A home whose states are looked at as its script tells the story; what ``archive`` does shows with the next rows."""

    ids = 0
    look: Callable[[hermes_form.Home], None] = staticmethod(lambda _: None)
    told: Mapping[str, Any] = MappingProxyType({})
    """Columns of the session row that are another's than the form's own."""
    provider = "custom"
    """As config.yaml names it."""

    def add(self, *rows: dict[str, Any]) -> None:
        super().add(*rows)
        for row in self.rows[len(self.rows) - len(rows) :]:
            self.ids += 1
            row["id"] = self.ids  # ids are not used again, whatever was deleted
        self.look(self)

    def note(self, at: float, logger: str, text: str, *, named: bool = True) -> None:
        super().note(at, logger, text, named=named)
        self.look(self)

    def _session_row(self, session: hermes_form.Session, digest: str) -> dict[str, Any]:
        return {**super()._session_row(session, digest), **self.told}

    def _config(self) -> str:
        return super()._config().replace("provider: custom", f"provider: {self.provider}")


def hermes_moments(script: Callable[[Path], None], scratch: Path) -> list[Moment]:
    """A Hermes case, written to ``scratch``, after each thing that its script lets happen."""
    found: list[Moment] = []
    rows: dict[str, Any] = {}

    def look(home: hermes_form.Home) -> None:
        if all(any(r["session_id"] == s.id for r in home.rows) for s in home.sessions):
            with mock.patch.object(hermes_form, "write_database", take):
                home.write(scratch)
            files = {str(p.relative_to(scratch)): p.read_bytes() for p in sorted(scratch.rglob("*")) if p.is_file()}
            asked = sorted(name for name in files if name.endswith(".res"))
            if found and asked and asked[-1] not in found[-1].files:
                found.append(Moment({name: data for name, data in files.items() if name != asked[-1]}))
            found.append(Moment(files, {t: [dict(r) for r in rs] for t, rs in rows.items()}))

    def take(_path: Path, schema: int, prompts: Any, sessions: Any, messages: Any, _usage: Any) -> None:
        rows.update(schema_version=[{"version": schema}], sessions=sessions, messages=messages)
        rows.update({"system_prompts": prompts} if schema == hermes_db.NEW else {})

    home = type("Home", (GrowingHome,), {"look": staticmethod(look)})
    with mock.patch.object(hermes_samples, "Home", home):
        script(scratch)
    return found


def capture_moments(case: hermes_cases.Case) -> Iterator[Moment]:
    """Rows as of each request, agent.log line by line, exchanges; at last the database as it was left."""
    home = "log/.hermes"
    config = case.home / "config.yaml"
    if config.exists():
        yield Moment({f"{home}/config.yaml": config.read_bytes()})
    started: set[str] = set()
    grown: dict[str, bytes] = {}
    for _, _, name, data in sorted(_capture_events(case), key=lambda e: e[:2]):
        if name == "rows":
            tables = case.as_of(int(data)) if data else case.final
            yield Moment(tables=_tables(tables))
            for row in tables.session:
                snapshot = case.home / "sessions" / f"session_{row['id']}.json"
                if row["id"] not in started and snapshot.exists():
                    started.add(row["id"])
                    yield Moment({f"{home}/sessions/{snapshot.name}": snapshot.read_bytes()})
        else:
            grown[name] = grown.get(name, b"") + data
            yield Moment({name: grown[name]})


def _capture_events(case: hermes_cases.Case) -> Iterator[tuple[float, int, str, bytes]]:
    yield from _exchanges(case.folder, case.folder / "wire/index.jsonl")
    for n in case.snaps:
        yield case.index[n]["t"], -3, "rows", str(n).encode()
    yield float("inf"), 0, "rows", b""
    log = case.home / "logs/agent.log"
    shift: float | None = None
    last = 0.0
    for i, line in enumerate(log.read_bytes().splitlines(keepends=True) if log.exists() else ()):
        stamp = re.match(rb"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}", line)
        if stamp:
            moment = datetime.fromisoformat(stamp[0].decode()).replace(tzinfo=UTC).timestamp()
            shift = round((moment - case.index[1]["t"]) / ZONE) * ZONE if shift is None else shift
            last = moment - shift
        yield last, i + 1, str(log.relative_to(case.folder)), line


def _tables(tables: hermes_cases.Tables) -> Tables:
    return {
        "schema_version": tables.schema,
        "system_prompts": tables.prompts,
        "sessions": tables.session,
        "messages": tables.messages,
    }


# --- on disk ---------------------------------------------------------------------------------------------------------


@dataclass
class Disk:
    """A folder brought from moment to moment as agents write: files appended to, rows inserted, updated, deleted."""

    folder: Path
    schema: Mapping[str, str] | None = None
    """Columns by table, as a CREATE statement names them; else those of the samples."""
    _rows: dict[tuple[str, Any], Mapping[str, Any]] = field(default_factory=dict)

    def put(self, moment: Moment) -> None:
        for name, data in moment.files.items():
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            old = path.read_bytes() if path.exists() else None
            if old is not None and old != data and data.startswith(old):
                with path.open("ab") as file:
                    file.write(data[len(old) :])
            elif old != data:
                path.write_bytes(data)
        if moment.tables is not None:
            self._bring(moment.tables)

    def _bring(self, tables: Tables) -> None:
        path = self.folder / "log/.hermes/state.db"
        path.parent.mkdir(parents=True, exist_ok=True)
        new = not path.exists()
        with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as base:
            base.execute("BEGIN")
            schema = self.schema or hermes_db.tables(tables["schema_version"][0]["version"])
            for table, columns in schema.items() if new else ():
                base.execute(f"CREATE TABLE {table} ({columns})")
            for table, rows in tables.items():
                key = KEYS.get(table, "id")
                now = {row[key]: row for row in rows}
                for gone in [k for t, k in self._rows if t == table and k not in now]:
                    base.execute(f"DELETE FROM {table} WHERE {key} = ?", [gone])
                    del self._rows[table, gone]
                for value, row in now.items():
                    if self._rows.get((table, value)) == row:
                        continue
                    if (table, value) in self._rows:
                        marks = ", ".join(f"{name} = ?" for name in row)
                        base.execute(f"UPDATE {table} SET {marks} WHERE {key} = ?", [*row.values(), value])
                    else:
                        marks = ", ".join("?" for _ in row)
                        base.execute(f"INSERT INTO {table} ({', '.join(row)}) VALUES ({marks})", list(row.values()))
                    self._rows[table, value] = dict(row)
            base.execute("COMMIT")


# --- cases -----------------------------------------------------------------------------------------------------------


def samples() -> list[Path]:
    return sorted(path.parent for path in SAMPLES.glob("*/*/expected.json"))


def captures() -> list[Path]:
    return sorted(path.parent for agent in ("hermes", "pi") for path in CAPTURES.glob(f"{agent}/*/case.json"))


def grown(case: Path, scratch: Path) -> tuple[Iterable[Moment], Disk]:
    """What lay on disk moment by moment, and a disk in ``scratch`` to put it on."""
    if case.parent.name == "pi":
        return pi_moments(case), Disk(scratch / "grown")
    if case.parent.name != "hermes":
        return other_moments(case), Disk(scratch / "grown")
    if case.is_relative_to(SAMPLES):
        script = SAMPLE_SCRIPTS[case.name]
        return hermes_moments(script, scratch / "written"), Disk(scratch / "grown")
    recorded = hermes_cases.Case(case.name)
    first = (recorded.final.session, recorded.final.messages, recorded.final.prompts, recorded.final.schema)
    names = ("sessions", "messages", "system_prompts", "schema_version")
    schema = {name: ", ".join(rows[0]) for name, rows in zip(names, first, strict=True) if rows}
    return capture_moments(recorded), Disk(scratch / "grown", schema)


# --- observations ----------------------------------------------------------------------------------------------------

Observation = tuple[int, Record] | Exchange
"""A record with the number of its session, or an exchange."""


@dataclass(frozen=True)
class Stream:
    """A case as readers and recordings told it."""

    refs: Sequence[SessionRef]
    observations: Sequence[Observation]

    def assembly(self) -> Assembly:
        """Nothing observed yet."""
        return Assembly([SessionLog.open(ref) for ref in self.refs], counter=COUNTER)


COUNTER = Counter()
"""Keeps counts by text, which no order of observations changes."""


def observed(found: Found, case: Path, moments: Iterable[Moment], disk: Disk) -> Stream:
    """All that the readers of a case's sessions and recordings tell as it grows; lines that tell nothing left out.

    ``found``: what lies in the finished ``case``.
    """
    refs = [_moved(ref, case, disk.folder) for ref in found.sessions]
    logs = [SessionLog.open(ref) for ref in refs]
    folders = [disk.folder / path.relative_to(case) for path in found.recordings]
    recordings = [capture.open_recording(folder, i) for i, folder in enumerate(folders)]
    out: list[Observation] = []
    for moment in moments:
        disk.put(moment)
        for number, log in enumerate(logs):
            log._find_sources()
            for reader in log.readers:
                with contextlib.suppress(CtxscopeError):  # not there yet
                    out += [(number, record) for record in reader.poll() if list(log.agent.entries(record))]
        for recording in recordings:
            out += map(_frozen, recording.poll())
    return Stream(refs, out)


def _moved(ref: SessionRef, case: Path, folder: Path) -> SessionRef:
    paths = tuple(folder / path.relative_to(case) for path in ref.paths)
    return replace(ref, paths=paths, home=folder / ref.home.relative_to(case))


def _frozen(exchange: Exchange) -> Exchange:
    """An exchange whose bodies stay what they were when it was observed."""
    request, response = exchange.request(), exchange.response()
    return replace(exchange, request=lambda: request, response=lambda: response)


def fold(assembly: Assembly, observations: Sequence[Observation]) -> None:
    """What an inspection does with all that is new at once: logs first, then traffic, then it judges and counts."""
    for one in observations:
        if isinstance(one, tuple):
            assembly.sessions[one[0]].fold([one[1]])
    for one in observations:
        if isinstance(one, Exchange):
            assembly.traffic.take(one)
    assembly.publish(("recording",), (), partial=False, changed=True)
    assembly.count()


# --- what is said ----------------------------------------------------------------------------------------------------


def told(value: Any) -> Any:
    """A snapshot, or a part of one, as plain values that compare; its revision counts publications and says nothing."""
    if is_dataclass(value) and not isinstance(value, type):
        return {f.name: told(getattr(value, f.name)) for f in fields(value) if f.name != "revision"}
    if isinstance(value, Mapping):
        return {k: told(v) for k, v in value.items()}
    return [told(v) for v in value] if isinstance(value, list | tuple) else value


def difference(one: Any, other: Any, path: str = "") -> str | None:
    """The first place where two told values part; ``None`` when they are the same."""
    if one == other:
        return None
    if isinstance(one, dict) and isinstance(other, dict) and one.keys() == other.keys():
        return next(d for k in one if (d := difference(one[k], other[k], f"{path}/{k}")))
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        return next(
            d for i, (a, b) in enumerate(zip(one, other, strict=True)) if (d := difference(a, b, f"{path}/{i}"))
        )
    return f"{path}: {one!r:.300} | {other!r:.300}"
