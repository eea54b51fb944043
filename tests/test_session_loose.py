"""Logs that lie in a folder in no agent's layout, and what a log full of something else is said to hold."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

import ctxscope
from ctxscope.model import CtxscopeError
from ctxscope.session.assembly import MOST_NOTICES
from tests.conftest import SAMPLES


@pytest.fixture(autouse=True)
def no_vocabulary(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("ctxscope.analysis.vocabulary.encoding", lambda _: None)


def logs(agent: str) -> list[Path]:
    return sorted(p for p in (SAMPLES / agent).rglob("*.jsonl") if "log" in p.parts and "subagents" not in p.parts)


def test_logs_that_lie_loose_in_a_folder_are_found_by_what_they_hold(tmp_path: Path):
    folder = tmp_path / "a" / "b"
    folder.mkdir(parents=True)
    shutil.copy(logs("pi")[0], folder / "one.jsonl")
    (folder / "other.jsonl").write_text('{"nobody": "knows"}\n', encoding="utf-8")
    inspection = ctxscope.open(tmp_path)
    (session,) = inspection.snapshot.sessions
    assert (session.agent, session.log) == ("pi", (str(folder / "one.jsonl"),))


def test_a_folder_in_an_agent_s_own_home_is_opened_as_what_it_holds(tmp_path: Path):
    case = SAMPLES / "kimi" / "compaction_rotates"
    shutil.copytree(case / "log", tmp_path / "log")
    inspection = ctxscope.open(tmp_path / "log" / ".kimi")
    assert {s.agent for s in inspection.snapshot.sessions} == {"kimi"}
    assert inspection.assembly.sessions[0].ref.home == tmp_path / "log"


def test_a_folder_of_other_files_is_no_log(tmp_path: Path):
    (tmp_path / "notes.json").write_text("{}", encoding="utf-8")
    with pytest.raises(CtxscopeError, match="neither an agent's log nor a recording"):
        ctxscope.open(tmp_path)


def test_a_log_full_of_something_else_is_told_in_bounds(tmp_path: Path):
    log = tmp_path / "log.jsonl"
    shutil.copy(logs("pi")[0], log)
    with log.open("ab") as file:
        file.write(b"\n".join(os.urandom(9).hex().encode() for _ in range(5 * MOST_NOTICES)) + b"\n")
    notices = ctxscope.open(log).snapshot.notices
    assert MOST_NOTICES < len(notices) < MOST_NOTICES + 20
    assert any("more notices" in notice for notice in notices)
