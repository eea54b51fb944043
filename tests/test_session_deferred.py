"""Long logs whose lines are read again when looked at: the same verdicts, whatever becomes of the file meanwhile."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import ctxscope
from ctxscope.model import Snapshot
from ctxscope.session import deferred
from ctxscope.session.deferred import DeferredEntry
from ctxscope.session.inspection import Inspection
from ctxscope.sources import jsonl
from tests.conftest import CAPTURES, SAMPLES

CLAUDE = [*sorted(SAMPLES.glob("claude_code/*")), *sorted(p.parent for p in CAPTURES.glob("claude_code/*/case.json"))]
CASE = SAMPLES / "claude_code" / "hooks_around_compaction"


@pytest.fixture(autouse=True)
def no_vocabulary(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("ctxscope.analysis.vocabulary.encoding", lambda _: None)


@pytest.fixture
def read_again(monkeypatch: pytest.MonkeyPatch):
    """Every log is long, and no line is kept at hand."""
    monkeypatch.setattr(jsonl.LineReader, "holds_from", 0)
    monkeypatch.setattr(deferred, "FROM_BYTES", 0)
    monkeypatch.setattr("ctxscope.session.fold.FROM_BYTES", 0)
    monkeypatch.setattr(deferred, "AT_HAND_BYTES", 1)


def verdicts(snapshot: Snapshot) -> list[tuple[object, ...]]:
    return [(c.n, c.exchange, c.entry, c.rebuilt, c.reply, c.usage, c.what, c.kind) for c in snapshot.calls]


def entries(inspection: Inspection) -> list[object]:
    return [e for s in inspection.assembly.sessions for e in s.log.entries if e.source.startswith(("session", "agent"))]


@pytest.mark.parametrize("case", CLAUDE, ids=lambda p: p.name)
def test_a_log_that_is_read_again_says_what_one_that_is_kept_says(case: Path, request: pytest.FixtureRequest):
    kept = ctxscope.open(case)
    request.getfixturevalue("read_again")
    again = ctxscope.open(case)
    assert entries(again)
    assert all(isinstance(e, DeferredEntry) for e in entries(again))
    assert verdicts(again.snapshot) == verdicts(kept.snapshot)
    assert again.snapshot.markers == kept.snapshot.markers
    assert again.snapshot.notices == kept.snapshot.notices
    for session in (*kept.assembly.sessions, *again.assembly.sessions):
        session.close()


def copied(tmp_path: Path) -> tuple[Path, Path]:
    shutil.copytree(CASE, tmp_path / "case")
    (log,) = (p for p in (tmp_path / "case" / "log").rglob("*.jsonl") if "subagents" not in p.parts)
    return tmp_path / "case", log


@pytest.mark.usefixtures("read_again")
def test_what_a_replaced_log_said_is_still_known(tmp_path: Path):
    case, log = copied(tmp_path)
    inspection = ctxscope.open(case)
    before = verdicts(inspection.snapshot)
    said = [dict(e.data) for e in entries(inspection)]
    lines = log.read_bytes().splitlines(keepends=True)
    new = tmp_path / "new"
    new.write_bytes(b"".join([lines[0].replace(b'"version"', b'"note":"x","version"'), *lines[1:]]))
    new.replace(log)
    inspection.poll()
    (session,) = inspection.assembly.sessions
    first, second = session.log.history(session.log.entries[0].key)
    assert dict(first.data) == said[0]
    assert dict(second.data) == {**said[0], "note": "x"}
    assert [row[3].state for row in verdicts(inspection.snapshot)] == [row[3].state for row in before]
    inspection.close()


@pytest.mark.usefixtures("read_again")
def test_what_was_written_over_is_not_made_up(tmp_path: Path):
    case, log = copied(tmp_path)
    inspection = ctxscope.open(case)
    (session,) = inspection.assembly.sessions
    old = session.log.entries[2]
    data = log.read_bytes()
    log.write_bytes(data.replace(b"e", b"a"))  # in place: what it said is nowhere any more
    inspection.poll()
    assert old.data == {}
    assert old.raw == b""
    assert inspection.snapshot.calls
    inspection.close()


@pytest.mark.usefixtures("read_again")
def test_a_log_that_grows_is_read_again_from_where_it_stands(tmp_path: Path):
    case, log = copied(tmp_path)
    data = log.read_bytes()
    lines = data.splitlines(keepends=True)
    log.write_bytes(b"".join(lines[:4]))
    inspection = ctxscope.open(case)
    for line in lines[4:]:
        with log.open("ab") as file:
            file.write(line)
        inspection.poll()
    fresh = ctxscope.open(case)
    assert verdicts(inspection.snapshot) == verdicts(fresh.snapshot)
    inspection.close()
    fresh.close()
