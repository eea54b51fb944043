"""Recorded Hermes sessions followed as they grew: a real database rewritten to the rows of each moment, a growing recording."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import pytest

import ctxscope
from ctxscope.model import Call
from ctxscope.session.inspection import Inspection
from tests.conftest import needs_captures
from tests.hermes_cases import CASES, Case, Tables
from tests.session_cases import covered, look, summed

pytestmark = needs_captures
TABLES = (("sessions", "id", "session"), ("messages", "id", "messages"), ("system_prompts", "hash", "prompts"))


@dataclass
class GrowingHome:
    """The home of a recorded case, written again from its first moment on."""

    case: Case
    folder: Path
    journal: str
    side_files: bool
    _held: dict[str, dict[object, dict[str, object]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.home.mkdir(parents=True)
        (self.folder / "wire").mkdir()
        shutil.copy(self.case.home / "config.yaml", self.home)
        shutil.copyfile(self.case.home / "state.db", self.home / "state.db")
        self._base = sqlite3.connect(self.home / "state.db", isolation_level=None)
        self._base.execute(f"PRAGMA journal_mode={self.journal}")
        names = {row[0] for row in self._base.execute("SELECT name FROM sqlite_master")}
        self._tables = [table for table in TABLES if table[0] in names]
        for table, *_ in self._tables:
            self._base.execute(f"DELETE FROM {table}")
        self._base.execute("VACUUM")
        if self.side_files:
            shutil.copytree(self.case.home / "sessions", self.home / "sessions")
            (self.home / "logs").mkdir()

    @property
    def home(self) -> Path:
        return self.folder / "log" / ".hermes"

    def become(self, tables: Tables) -> None:
        """The rows of another moment, in one transaction as the agent writes them."""
        self._base.execute("BEGIN IMMEDIATE")
        for table, key, name in self._tables:
            now = {row[key]: row for row in getattr(tables, name)}
            before = self._held.get(table, {})
            for gone in before.keys() - now.keys():
                self._base.execute(f"DELETE FROM {table} WHERE {key} = ?", (gone,))
            for which, row in now.items():
                self._put(table, key, before.get(which), row)
            self._held[table] = now
        self._base.execute("COMMIT")

    def _put(self, table: str, key: str, before: dict[str, object] | None, row: dict[str, object]) -> None:
        if before is None:
            marks = ", ".join("?" * len(row))
            self._base.execute(f"INSERT INTO {table} ({', '.join(row)}) VALUES ({marks})", tuple(row.values()))
            return
        changed = {c: row.get(c) for c in {**before, **row} if row.get(c) != before.get(c)}
        if changed:
            sets = ", ".join(f"{column} = ?" for column in changed)
            self._base.execute(f"UPDATE {table} SET {sets} WHERE {key} = ?", (*changed.values(), row[key]))

    def said_until(self, time: float) -> None:
        """Telemetry as far as its own times (UTC in the recorded runs) say it stood."""
        if self.side_files:
            (self.home / "logs" / "agent.log").write_bytes(b"".join(_lines_until(self.case, time)))

    def serve(self, n: int) -> Iterator[None]:
        """A request arrives; then its reply is there."""
        name = f"{n:04d}"
        source, target = self.case.folder / "wire", self.folder / "wire"
        shutil.copyfile(source / f"{name}.req", target / f"{name}.req")
        with (target / "index.jsonl").open("a", encoding="utf-8") as index:
            index.write(json.dumps(self.case.index[n]) + "\n")
        yield
        if (source / f"{name}.res").exists():
            shutil.copyfile(source / f"{name}.res", target / f"{name}.res")
            yield

    def close(self) -> None:
        self._base.close()


def _lines_until(case: Case, time: float) -> Iterator[bytes]:
    for line in (case.home / "logs" / "agent.log").read_bytes().splitlines(keepends=True):
        stamp = line[:23].decode("ascii", "replace")
        try:
            written = datetime.strptime(stamp, "%Y-%m-%d %H:%M:%S,%f").replace(tzinfo=UTC).timestamp()
        except ValueError:
            written = 0.0  # a further line of the entry before it
        if written > time:
            return
        yield line


@dataclass
class Followed:
    """An inspection that saw a case grow, and what it said of each exchange on the way."""

    inspection: Inspection
    said: dict[int, list[str]] = field(default_factory=dict)

    def look(self) -> None:
        self.inspection.poll()
        for call in self.calls.values():
            assert call.exchange is not None
            told = self.said.setdefault(call.exchange.n, [])
            if told[-1:] != [call.rebuilt.state]:
                told.append(call.rebuilt.state)

    @property
    def calls(self) -> dict[int, Call]:
        return {c.exchange.n: c for c in self.inspection.snapshot.calls if c.exchange}


def follow(home: GrowingHome) -> Followed:
    """Follow a case from the first moment that a session is there to its end."""
    case = home.case
    followed: Followed | None = None
    tables = Tables()
    for n, exchange in sorted(case.index.items()):
        if n in case.snaps:
            home.become(tables := case.as_of(n))
        home.said_until(exchange["t"])
        if followed is not None:
            followed.look()
        for _ in home.serve(n):
            if followed is None and tables.session:
                followed = Followed(ctxscope.open(home.folder))
            if followed is not None:
                followed.look()
    assert followed is not None
    home.become(case.final)
    home.said_until(float("inf"))
    followed.look()
    return followed


@pytest.mark.parametrize(("journal", "side_files"), [("WAL", True), ("DELETE", False)])
@pytest.mark.parametrize("name", CASES)
def test_a_followed_session_is_judged_as_its_requests_came(
    name: str,
    journal: str,
    side_files: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    record_property: pytest.RecordProperty,
) -> None:
    monkeypatch.setenv("CTXSCOPE_DATA_DIR", str(tmp_path / "followed"))
    monkeypatch.setattr("ctxscope.analysis.vocabulary.encoding", lambda _: None)  # tokens are not asked about here
    case = Case(name)
    home = GrowingHome(case, tmp_path / "case", journal, side_files)
    followed = follow(home)
    about = case.about["rebuild"]
    calls = followed.calls
    assert [n for n in about["exact"] if calls[n].rebuilt.state != "equal"] == []
    # Said before its answer was logged too: what a request was made of is in the log when it arrives.
    assert [n for n in about["exact"] if followed.said[n] != ["equal"]] == []
    for listed in about["inexact"]:
        _check_inexact(calls[listed["n"]], listed)
    counts = _check_bytes(followed, calls, {"system", *(["tools"] if side_files else [])})
    record_property("coverage", summed(f"{name} followed {'with' if side_files else 'without'} side files", counts))
    followed.inspection.close()
    assert _told(look(home.folder / "log", home.folder / "wire")) == _told(calls)
    monkeypatch.setenv("CTXSCOPE_DATA_DIR", str(tmp_path / "cold"))
    _check_cold(calls, look(home.folder / "log", home.folder / "wire"))
    home.close()


def _told(calls: dict[int, Call]) -> dict[int, tuple[object, ...]]:
    return {n: (c.kind, c.entry, c.rebuilt, c.reply, c.cache, c.markers) for n, c in calls.items()}


def _check_inexact(call: Call, listed: dict[str, str]) -> None:
    coverage, difference = call.rebuilt.coverage, call.rebuilt.first_difference
    assert coverage is not None
    if call.rebuilt.state == "equal":
        assert coverage.unknown == 0
        return
    assert difference is not None
    assert listed["first_difference"].startswith(f"equal to byte {difference.raw_offset} ")
    assert difference.cause.partition(":")[0] == listed["cause"].partition(":")[0]


def _check_bytes(followed: Followed, calls: dict[int, Call], logged_heads: set[str]) -> Counter[tuple[str, str]]:
    """Equal is what has equal bytes, and every such byte is accounted for; the sum of their coverage."""
    counts: Counter[tuple[str, str]] = Counter()
    for call in calls.values():
        if call.entry is None:
            continue
        view = followed.inspection.view(call.n)
        assert view.served is not None
        assert view.rebuilt is not None
        assert (view.served.data == view.rebuilt.data) == (call.rebuilt.state == "equal")
        if call.rebuilt.state == "equal":
            found = covered(view)
            assert {p for part, p in found if part == "messages"} <= {"logged", "derived"}
            assert {p for part, p in found if part in logged_heads} <= {"logged", "derived"}
            assert {part for part, p in found if p == "logged"} >= logged_heads
            counts += found
    return counts


def _check_cold(followed: dict[int, Call], cold: dict[int, Call]) -> None:
    """Opened at the end, the same files say less and nothing else (DESIGN law 3)."""
    for n, call in cold.items():
        seen = followed[n]
        if call.rebuilt.state in ("equal", "differs"):
            assert (seen.rebuilt.state, seen.entry) == (call.rebuilt.state, call.entry)
            assert seen.rebuilt.first_difference == call.rebuilt.first_difference
