"""A file that is part of a session opens the session: a subagent's transcript named alone, or lying loose beside it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import ctxscope
from ctxscope.session.finding import find
from tests.conftest import SAMPLES
from tests.session_looks import agrees

CASE = SAMPLES / "claude_code" / "hooks_around_compaction"


@pytest.fixture(autouse=True)
def no_vocabulary(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("ctxscope.analysis.vocabulary.encoding", lambda _: None)


@pytest.fixture
def case(tmp_path: Path) -> Path:
    return Path(shutil.copytree(CASE, tmp_path / "case"))


@pytest.fixture
def loose(tmp_path: Path) -> Path:
    """The transcripts alone, in no layout."""
    (log,) = CASE.glob("log/.claude/projects/*/*.jsonl")
    shutil.copy(log, tmp_path / "day.jsonl")
    shutil.copytree(log.with_suffix(""), tmp_path / "day")
    return tmp_path


def kinds(path: Path) -> list[tuple[str, str]]:
    return [(call.lineage, call.rebuilt.state) for call in ctxscope.open(path).snapshot.calls]


def test_a_subagent_s_file_opens_its_session_with_its_recording(case: Path):
    (agent,) = case.rglob("agent-*.jsonl")
    (log,) = case.glob("log/.claude/projects/*/*.jsonl")
    inspection = ctxscope.open(agent)
    assert kinds(agent) == kinds(log)
    assert inspection.snapshot.recordings == (str(case / "wire"),)
    assert f"{agent}: part of the session in {log}, which is shown whole" in inspection.snapshot.notices
    inspection.poll()
    assert agrees(inspection) is None


def test_a_subagent_s_file_outside_any_layout_opens_the_log_its_folder_is_named_by(loose: Path):
    (agent,) = loose.rglob("agent-*.jsonl")
    assert kinds(agent) == kinds(loose / "day.jsonl")


def test_a_subagent_s_file_without_its_session_is_opened_alone(loose: Path):
    (loose / "day.jsonl").unlink()
    (agent,) = loose.rglob("agent-*.jsonl")
    assert [ref.paths for ref in find(agent).sessions] == [(agent,)]


def test_a_loose_folder_lists_a_subagent_s_file_as_part_of_its_session(loose: Path):
    assert [ref.paths[0] for ref in find(loose).sessions] == [loose / "day.jsonl"]


def test_a_log_of_its_own_is_no_part_of_another(case: Path):
    (log,) = case.glob("log/.claude/projects/*/*.jsonl")
    found = find(log)
    assert ([ref.paths[0] for ref in found.sessions], found.unread) == ([log], {})
