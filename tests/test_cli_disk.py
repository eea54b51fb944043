"""The command line on real files: bad input is one sentence, half an input is enough, nothing is left behind."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT, SAMPLES

CASES = sorted(path.parent for path in SAMPLES.glob("*/*/expected.json"))
CLEAN = SAMPLES / "pi" / "clean_append"


def ctxscope(*words: str | Path, home: Path, **environment: str) -> subprocess.CompletedProcess[bytes]:
    """The program as a process of its own, its home elsewhere."""
    home.mkdir(exist_ok=True)
    env = {**os.environ, "PYTHONPATH": str(ROOT), "HOME": str(home), "XDG_DATA_HOME": str(home / "data"), **environment}
    return subprocess.run(
        [sys.executable, "-m", "ctxscope", *map(str, words)],
        capture_output=True,
        env=env,
        stdin=subprocess.DEVNULL,
        check=False,
    )


def tree(folder: Path) -> dict[str, tuple[int, int]]:
    return {str(p.relative_to(folder)): (p.stat().st_size, p.stat().st_mtime_ns) for p in sorted(folder.rglob("*"))}


def empty_file(folder: Path) -> Path:
    (folder / "empty.jsonl").touch()
    return folder / "empty.jsonl"


def folder_without_sessions(folder: Path) -> Path:
    (folder / "nothing" / "inside").mkdir(parents=True)
    (folder / "nothing" / "inside" / "notes.txt").write_text("no session")
    return folder / "nothing"


def log_of_an_unknown_agent(folder: Path) -> Path:
    (folder / "other.jsonl").write_text('{"kind":"weather","degrees":12}\n' * 20)
    return folder / "other.jsonl"


def random_bytes(folder: Path) -> Path:
    (folder / "noise.bin").write_bytes(random.Random(7).randbytes(1_000_000))
    return folder / "noise.bin"


def nothing_there(folder: Path) -> Path:
    return folder / "missing.jsonl"


BAD = (empty_file, folder_without_sessions, log_of_an_unknown_agent, random_bytes, nothing_there)


@pytest.mark.parametrize("make", BAD)
@pytest.mark.parametrize("verb", ["md", "json"])
def test_bad_input_names_the_file_and_what_was_expected(make, verb, tmp_path):
    work = tmp_path / "work"
    work.mkdir()
    path = make(work)
    before = tree(work)
    done = ctxscope("report", path, "--format", verb, "-o", work / "report", home=tmp_path / "home")
    said = done.stderr.decode()
    assert (done.returncode, done.stdout) == (2, b"")
    assert path.name in said
    assert "expected" in said
    assert len(said.splitlines()) == 1
    assert tree(work) == before


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.parent.name}/{case.name}")
def test_every_sample_has_a_report_in_both_forms_and_stays_as_it_was(case, tmp_path):
    before = tree(case)
    done = ctxscope("report", case, "--format", "json", home=tmp_path / "home", LC_ALL="C")
    assert (done.returncode, done.stderr) == (0, b"")
    document = json.loads(done.stdout)
    assert document["schema"] == 1
    words = ctxscope("report", case, home=tmp_path / "home", LC_ALL="C")
    assert (words.returncode, words.stderr) == (0, b"")
    assert words.stdout.startswith(b"# Divergence report: ")
    assert words.stdout.count(b"\n| ") >= len(document["calls"])
    assert tree(case) == before


@pytest.mark.parametrize("half", ["log", "wire"])
def test_half_an_input_opens_with_what_it_has(half, tmp_path):
    shutil.copytree(CLEAN / half, tmp_path / "work" / half)
    done = ctxscope("report", tmp_path / "work", "--format", "json", home=tmp_path / "home")
    assert (done.returncode, done.stderr) == (0, b"")
    calls = json.loads(done.stdout)["calls"]
    assert calls
    assert {call["rebuilt"]["state"] for call in calls} == {"not_served" if half == "log" else "not_logged"}


def test_sessions_below_a_home_are_listed(tmp_path):
    done = ctxscope("sessions", "--home", CLEAN / "log", "--format", "json", home=tmp_path / "home")
    assert (done.returncode, done.stderr) == (0, b"")
    expected = json.loads((CLEAN / "expected.json").read_text())["sessions"]
    found = json.loads(done.stdout)["sessions"]
    assert [(ref["agent"], ref["id"]) for ref in found] == [(ref["agent"], ref["id"]) for ref in expected]


def test_a_log_in_the_home_is_opened_as_last_and_by_its_id(tmp_path):
    home = tmp_path / "home"
    shutil.copytree(CLEAN / "log", home)
    (expected,) = json.loads((CLEAN / "expected.json").read_text())["sessions"]
    for word in ("last", expected["id"][:13]):
        done = ctxscope("report", word, "--format", "json", home=home)
        assert (done.returncode, done.stderr) == (0, b"")
        assert [ref["id"] for ref in json.loads(done.stdout)["sessions"]] == [expected["id"]]
