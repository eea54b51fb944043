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


@pytest.mark.parametrize("name", ["wire/0001.req", "wire/index.jsonl", "log/.pi/agent/settings.json", "wire/new.md"])
def test_nothing_of_the_agent_or_the_recording_is_written_over(name, tmp_path):
    work = tmp_path / "work"
    shutil.copytree(CLEAN, work)
    before = tree(work)
    done = ctxscope("report", work, "-o", work / name, home=tmp_path / "home")
    assert (done.returncode, done.stdout) == (2, b"")
    assert "expected another file to write to" in done.stderr.decode()
    assert tree(work) == before


@pytest.mark.parametrize("t", [1_769_936_400_000, 1e300, float("nan")])
@pytest.mark.parametrize("verb", ["md", "json"])
def test_a_line_of_the_index_that_is_wrong_is_told_and_the_rest_opens(t, verb, tmp_path):
    work = tmp_path / "work"
    shutil.copytree(CLEAN, work)
    index = work / "wire" / "index.jsonl"
    lines = [json.loads(line) for line in index.read_text().splitlines()]
    bad = [json.dumps({**lines[1], "t": t}), '{"n":1e400,"t":1,"path":"/x"}']
    index.write_text("\n".join([json.dumps(lines[0]), *bad, *map(json.dumps, lines[2:])]) + "\n")
    done = ctxscope("report", work, "--format", verb, home=tmp_path / "home")
    assert (done.returncode, done.stderr) == (0, b"")
    said = done.stdout.decode()
    assert "index.jsonl line 2: not an exchange; expected seconds since the epoch as t" in said.replace("`", "")
    assert "index.jsonl line 3: not an exchange; expected a whole number as n" in said.replace("`", "")
    if verb == "json":
        numbers = [call["exchange"]["n"] for call in json.loads(said)["calls"] if call["exchange"]]
        assert numbers == [line["n"] for line in lines if line is not lines[1]]


def test_of_an_agents_settings_only_those_about_the_context_are_told(tmp_path):
    work = tmp_path / "work"
    shutil.copytree(SAMPLES / "hermes" / "batch_compaction", work)
    config = work / "log" / ".hermes" / "config.yaml"
    config.write_text(config.read_text() + "telegram:\n  token: open-sesame\nuser:\n  nick: adalove\n")
    done = ctxscope("report", work, "--format", "json", "--content", "full", home=tmp_path / "home")
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"sesame" not in done.stdout
    assert b"adalove" not in done.stdout
    values = json.loads(done.stdout)["sessions"][0]["config"]["values"]
    assert "compression.threshold" in values
    assert {name.partition(".")[0] for name in values} == {"model", "compression"}
    assert not {"model.api_key", "model.base_url"} & set(values)


@pytest.mark.parametrize("verb", ["md", "json"])
def test_an_error_of_the_provider_is_told_unless_no_content_is_wanted(verb, tmp_path):
    work = tmp_path / "work"
    shutil.copytree(CLEAN, work)
    log = next((work / "log").rglob("*.jsonl"))
    *lines, last = log.read_text().splitlines()
    value = json.loads(last)
    value["message"] |= {"stopReason": "error", "errorMessage": "the kettle is on fire", "content": []}
    log.write_text("\n".join([*lines, json.dumps(value)]) + "\n")
    for content, told in (("redacted", True), ("none", False)):
        done = ctxscope("report", work, "--format", verb, "--content", content, home=tmp_path / "home")
        assert (done.returncode, done.stderr) == (0, b"")
        assert ("kettle" in done.stdout.decode()) is told
        assert "the call failed: «" in done.stdout.decode()


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
