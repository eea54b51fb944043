"""Records folded into a session's log: what is an observation, and what of it a later opening needs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ctxscope.model import Place, Record, SessionRef
from ctxscope.session.fold import SessionLog
from ctxscope.sources.kept import KeptVersions

ROW = {"id": "s1", "model": "fern-mini", "system_prompt_hash": "aa", "message_count": 2, "model_config": "{}"}


def hermes(folder: Path) -> SessionLog:
    return SessionLog.open(SessionRef("hermes", "s1", (folder / ".hermes/state.db",), folder))


def pi(folder: Path) -> SessionLog:
    return SessionLog.open(SessionRef("pi", "s2", (folder / "s.jsonl",), folder))


def session_row(version: int = 0, **cells: Any) -> Record:
    return Record("session", "s1", Place(0, "row s1"), {**ROW, **cells}, version)


def line(number: int, value: bytes | None, version: int = 0) -> Record:
    return Record("session", str(number), Place(0, f"line {number}"), value, version)


def entry(name: str, **cells: str) -> bytes:
    return b'{"type":"label","id":"%s","label":"%s"}' % (name.encode(), cells.get("label", "x").encode())


@pytest.fixture
def versions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CTXSCOPE_DATA_DIR", str(tmp_path / "data"))
    return tmp_path / "data/versions"


def test_a_rewritten_row_that_says_the_same_is_no_observation(tmp_path: Path, versions: Path):
    log = hermes(tmp_path)
    log.fold([session_row(), session_row(1, message_count=4, input_tokens=900)])
    assert (log.seen, log.log.rewrites) == (1, 0)
    log.fold([session_row(2, message_count=4, system_prompt_hash="bb")])
    assert (log.seen, log.log.rewrites) == (2, 1)
    assert [e.data["system_prompt_hash"] for e in log.log.history("session:s1")] == ["aa", "bb"]
    log.keep()
    assert list(versions.iterdir())


def test_a_line_that_moved_is_its_entry_in_another_place(tmp_path: Path):
    log = pi(tmp_path)
    log.fold([line(1, entry("a")), line(2, entry("b"))])
    log.fold([line(1, entry("b"), 1)])
    assert {e.key: e.place.at for e in log.log.entries} == {"a": "line 1", "b": "line 1"}
    seen = log.seen
    log.fold([line(1, entry("b"), 2)])
    assert log.seen == seen


def test_an_entry_that_comes_back_to_its_line_is_observed_again(tmp_path: Path):
    log = pi(tmp_path)
    log.fold([line(1, entry("a")), line(1, entry("b"), 1), line(1, entry("a"), 2)])
    assert [e.key for e in log.log.versions] == ["a", "b", "a"]


def test_what_never_told_anything_leaves_no_trace(tmp_path: Path):
    log = hermes(tmp_path)
    noise = Record("agent_log", "1", Place(2, "line 1"), b"starting up")
    log.fold([noise, replace(noise, value=b"still starting", version=1), replace(noise, value=None, version=2)])
    assert log.seen == 0
    assert not log.log.entries


@pytest.mark.usefixtures("versions")
def test_nothing_is_kept_of_a_log_that_only_grew(tmp_path: Path):
    log = pi(tmp_path)
    for number in range(1, 4):
        log.fold([line(number, entry(str(number)))])
        log.keep()
    assert not KeptVersions().load(log._name)


@pytest.mark.usefixtures("versions")
def test_a_line_cut_off_is_kept_although_its_entry_stays(tmp_path: Path):
    header = b'{"type":"session","id":"s2"}\n'
    path = tmp_path / "s.jsonl"
    path.write_bytes(header + entry("a") + b"\n" + entry("b") + b"\n")
    followed = pi(tmp_path)
    followed.poll()
    path.write_bytes(header + entry("c") + b"\n")
    followed.poll()
    followed.keep()
    again = pi(tmp_path)
    again.poll()
    assert [e.key for e in followed.log.entries if e.kind != "gone"] == ["s2", "a", "b", "c"]
    assert [(e.key, e.seq, e.raw) for e in again.log.versions] == [(e.key, e.seq, e.raw) for e in followed.log.versions]
