"""Recorded sessions of every agent, opened when they had ended: what must rebuild is equal, and nothing is borrowed elsewhere."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import ctxscope
from ctxscope import agents
from ctxscope.agents.reading import files
from ctxscope.model import Call
from ctxscope.session.finding import SURE, head_of, survey
from tests.agent_cases import CASES, NEWER, ONE_EACH, about, copied, is_database, lines_of, with_lines
from tests.conftest import needs_captures
from tests.session_cases import look, unchanged

pytestmark = needs_captures
NEW_KIND = "zz_invented_kind"
NEW_FIELD = "zzInventedField"
WIDTH = {"semantic": 0, "messages": 1, "input": 1, "system+messages": 1, "body": 2, "whole body": 2}
"""How much of a request a scope takes in; case.json's words beside ours."""
RECORDS = [case for case in ONE_EACH if any(lines_of(case / "log"))]


@pytest.fixture(autouse=True)
def no_vocabulary(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("ctxscope.analysis.vocabulary.encoding", lambda _: None)


@pytest.mark.parametrize("case", NEWER, ids=lambda p: p.name)
def test_every_call_that_must_rebuild_is_equal_at_its_scope_or_a_wider_one(case: Path):
    calls, told = unchanged(case), about(case)["rebuild"]
    wanted = told["exact"]
    if "exact_n" in (told.get("final_log_only") or {}):
        wanted = told["final_log_only"]["exact_n"]
    assert [(n, calls[n].rebuilt.state) for n in wanted if calls[n].rebuilt.state != "equal"] == []
    for n in wanted:
        scope = calls[n].rebuilt.scope
        assert scope is not None
        assert WIDTH[scope] >= WIDTH[told["scope"]]


@pytest.mark.parametrize("case", NEWER, ids=lambda p: p.name)
def test_equal_means_the_same_bytes_and_only_what_no_log_holds_is_borrowed(case: Path):
    inspection = ctxscope.open(case)
    names = {s.id: s.agent for s in inspection.snapshot.sessions}
    for call in inspection.snapshot.calls:
        if call.exchange is None or call.entry is None or call.session is None:
            continue
        view = inspection.view(call.n)
        if view.rebuilt is None or view.served is None:
            assert call.rebuilt.state in ("not_supported", "not_served")
            continue
        assert b"".join(p.data for p in view.pieces) == view.rebuilt.data
        assert (view.rebuilt.data == view.served.data) == (call.rebuilt.state == "equal")
        listed = agents.load(names[call.session]).learnable
        borrowed = {p.path for p in view.pieces if p.provenance in ("learned", "echoed")}
        assert {path for path in borrowed if not any(item.covers(path) for item in listed)} == set()
        if call.rebuilt.state == "equal" and call.rebuilt.coverage:
            assert call.rebuilt.coverage.unknown == 0
    inspection.close()


@pytest.mark.parametrize("case", CASES, ids=lambda p: p.name)
def test_a_home_holds_sessions_of_its_own_agent_only(case: Path):
    found = survey(case / "log")
    assert {ref.agent for ref in found.sessions} == {case.parent.name}
    assert found.unread == {}
    files_there = {p for p in (case / "log").rglob("*") if p.is_file()}
    assert {path for ref in found.sessions for path in ref.paths} <= files_there


@pytest.mark.parametrize("case", CASES, ids=lambda p: p.name)
def test_no_file_is_claimed_by_two_agents(case: Path):
    for path in sorted(p for p in (case / "log").rglob("*") if p.is_file()):
        head = head_of(path)
        sure = {name for name in agents.names() if agents.load(name).claims(path, head) >= SURE}
        assert sure <= {case.parent.name}, path
    mains = {ref.paths[0] for ref in survey(case / "log").sessions}
    for path in mains:
        assert agents.load(case.parent.name).claims(path, files.head(path) if not is_database(path) else head_of(path))


# --- a log of a version that is newer than any known one --------------------------------------------------------------


def reordered(line: bytes) -> bytes:
    """The same record with the keys of its envelope the other way round, what they hold untouched."""
    try:
        record = json.loads(line)
    except ValueError:
        return line
    if not isinstance(record, dict) or "pad" in record:
        return line  # a slot of fixed width is overwritten in place and keeps its form
    return json.dumps(dict(reversed(record.items())), ensure_ascii=False, separators=(",", ":")).encode(
        "utf-8", "surrogatepass"
    )


def with_field(line: bytes) -> bytes:
    try:
        record = json.loads(line)
    except ValueError:
        return line
    if not isinstance(record, dict) or "pad" in record:
        return line
    return json.dumps({**record, NEW_FIELD: 1}, ensure_ascii=False, separators=(",", ":")).encode(
        "utf-8", "surrogatepass"
    )


def verdicts(calls: dict[int, Call]) -> dict[int, tuple[object, ...]]:
    return {n: (c.session, c.rebuilt.state, c.rebuilt.scope, c.usage, c.kind) for n, c in calls.items()}


@pytest.mark.parametrize("case", RECORDS, ids=lambda p: p.name)
def test_the_order_of_an_envelope_s_keys_changes_nothing(case: Path, tmp_path: Path):
    log = copied(case, tmp_path)
    for path in lines_of(log):
        with_lines(path, lambda lines: [reordered(line) for line in lines])
    assert verdicts(look(log, case / "wire")) == verdicts(dict(unchanged(case)))


@pytest.mark.parametrize("case", RECORDS, ids=lambda p: p.name)
def test_a_field_nobody_knows_is_counted_and_changes_nothing(case: Path, tmp_path: Path):
    log = copied(case, tmp_path)
    for path in lines_of(log):
        with_lines(path, lambda lines: [with_field(line) for line in lines])
    assert verdicts(look(log, case / "wire")) == verdicts(dict(unchanged(case)))
    assert any(NEW_FIELD in notice for notice in notices_of(log, case))


@pytest.mark.parametrize("case", RECORDS, ids=lambda p: p.name)
def test_a_record_nobody_knows_is_counted_and_leaves_what_came_before(case: Path, tmp_path: Path):
    log = copied(case, tmp_path)
    for path in lines_of(log):
        with_lines(path, lambda lines: _with_record(lines, len(lines) // 2))
    before, after = unchanged(case), look(log, case / "wire")
    assert any(NEW_KIND in notice for notice in notices_of(log, case))
    first = len(before) // 4  # the record stands in the middle of each file: surely behind what the first calls need
    for n in sorted(before)[:first]:
        assert after[n].rebuilt.state == before[n].rebuilt.state
    assert {c.rebuilt.state for n, c in after.items() if c.rebuilt.state != before[n].rebuilt.state} <= {
        "not_supported"
    }


def _with_record(lines: list[bytes], at: int) -> list[bytes]:
    """A record of an invented kind in the form of the one before it, its identity its own."""
    record = next((r for r in map(_parsed, reversed(lines[:at])) if isinstance(r, dict)), {})
    kept = {k: v for k, v in record.items() if k in ("timestamp", "time", "sessionId", "version")}
    kind = "role" if "role" in record and "type" not in record else "type"
    new = {**kept, kind: NEW_KIND}
    if "seq" in record:
        new["seq"] = record["seq"] + 1
    return [*lines[:at], json.dumps(new).encode(), *lines[at:]]


def _parsed(line: bytes) -> object:
    try:
        return json.loads(line)
    except ValueError:
        return None


def notices_of(log: Path, case: Path) -> tuple[str, ...]:
    inspection = ctxscope.open(log, recording=str(case / "wire"))
    try:
        return inspection.snapshot.notices
    finally:
        inspection.close()


@pytest.mark.parametrize("case", ONE_EACH, ids=lambda p: p.name)
def test_opening_a_log_leaves_its_folder_as_it_was(case: Path, tmp_path: Path):
    log = copied(case, tmp_path)
    before = {p: p.stat().st_mtime_ns for p in log.rglob("*")}
    shutil.copytree(case / "wire", tmp_path / "wire")
    ctxscope.open(log).close()
    assert {p: p.stat().st_mtime_ns for p in log.rglob("*")} == before


@pytest.mark.parametrize("case", NEWER, ids=lambda p: p.name)
def test_a_subagent_s_first_request_breaks_nobody_s_cache(case: Path):
    seen: set[str] = set()
    for call in unchanged(case).values():
        if call.lineage.startswith("sub:") and call.lineage not in seen:
            seen.add(call.lineage)
            assert call.cache.verdict != "break"
