"""The command line on real files: bad input is one sentence, half an input is enough, nothing is left behind."""

from __future__ import annotations

import json
import os
import random
import shutil
import sqlite3
import subprocess
import sys
from collections import Counter
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from ctxscope.analysis import vocabulary
from ctxscope.cli.main import main
from tests.conftest import ROOT, SAMPLES
from tests.sources_writer import Writer

CASES = sorted(path.parent for path in SAMPLES.glob("*/*/expected.json"))
CLEAN = SAMPLES / "pi" / "clean_append"
HERMES = SAMPLES / "hermes" / "sidecar_differs"


def ctxscope(
    *words: str | Path, home: Path, stdout: Any = subprocess.PIPE, stderr: Any = subprocess.PIPE, **environment: str
) -> subprocess.CompletedProcess[bytes]:
    """The program as a process of its own, its home elsewhere."""
    home.mkdir(exist_ok=True)
    env = {**os.environ, "PYTHONPATH": str(ROOT), "HOME": str(home), "XDG_DATA_HOME": str(home / "data"), **environment}
    return subprocess.run(
        [sys.executable, "-m", "ctxscope", *map(str, words)],
        stdout=stdout,
        stderr=stderr,
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


def empty_database(folder: Path) -> Path:
    (folder / "home" / ".hermes").mkdir(parents=True)
    (folder / "home" / ".hermes" / "state.db").touch()
    return folder / "home"


def cut_database(folder: Path) -> Path:
    """Half of one: SQLite gives nothing of it."""
    home = folder / "home" / ".hermes"
    shutil.copytree(HERMES / "log" / ".hermes", home)
    content = (home / "state.db").read_bytes()
    (home / "state.db").write_bytes(content[: len(content) // 2])
    return home / "state.db"


def folder_of_a_cut_database(folder: Path) -> Path:
    return cut_database(folder).parents[1]


BAD = (
    *(empty_file, folder_without_sessions, log_of_an_unknown_agent, random_bytes, nothing_there),
    *(empty_database, cut_database, folder_of_a_cut_database),
)


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


@pytest.mark.parametrize("mode", ["DELETE", "WAL"])
@pytest.mark.parametrize("named", ["file", "folder"])
def test_a_database_that_stays_locked_is_named_and_left_alone(mode, named, tmp_path):
    home = tmp_path / "work" / "home"
    shutil.copytree(HERMES / "log", home)
    path = home / ".hermes" / "state.db"
    with Writer(path) as writer:  # a process of its own, that has the file for itself and keeps it
        writer.run(f"PRAGMA journal_mode={mode}")
        writer.run("PRAGMA locking_mode=EXCLUSIVE")
        writer.run("PRAGMA cache_size=1")
        writer.run("BEGIN EXCLUSIVE")
        writer.run("UPDATE messages SET content = hex(zeroblob(20000))")
        before = tree(tmp_path / "work")
        assert len(before) > len(tree(HERMES / "log"))  # a journal, or a -wal, beside it
        done = ctxscope("report", path if named == "file" else home, home=tmp_path / "home")
        assert tree(tmp_path / "work") == before
    said = done.stderr.decode()
    assert (done.returncode, done.stdout) == (2, b"")
    assert said == f"ctxscope: {path}: found locked for 1 s by another process, expected a SQLite 3 database\n"


@pytest.fixture
def mixed_home(tmp_path):
    """A pi session beside a database that is damaged; the home of a user."""
    home = tmp_path / "home"
    shutil.copytree(CLEAN / "log", home)
    cut_database(tmp_path)
    return home


def test_a_damaged_log_among_others_is_a_notice_and_the_rest_is_shown(tmp_path, mixed_home):
    shutil.copytree(CLEAN / "wire", mixed_home / "wire")
    bad = mixed_home / ".hermes" / "state.db"
    for words in (["report", mixed_home], ["report", mixed_home / "wire"], ["report", mixed_home, "--log", mixed_home]):
        done = ctxscope(*words, "--format", "json", home=tmp_path / "away")
        assert (done.returncode, done.stderr) == (0, b"")
        document = json.loads(done.stdout)
        assert document["totals"]["equal"] == len(document["calls"])
        (told,) = (notice for notice in document["notices"] if "expected a SQLite 3 database" in notice)
        assert "/state.db: found unreadable rows (database disk image is malformed)" in told
    named = ctxscope("report", bad, home=tmp_path / "away")
    assert (named.returncode, named.stdout) == (2, b"")
    assert named.stderr.decode().startswith(f"ctxscope: {bad}: found unreadable rows")


def test_a_damaged_log_in_the_home_hides_no_session(mixed_home):
    listed = ctxscope("sessions", "--format", "json", home=mixed_home)
    (expected,) = json.loads((CLEAN / "expected.json").read_text())["sessions"]
    assert [ref["id"] for ref in json.loads(listed.stdout)["sessions"]] == [expected["id"]]
    last = ctxscope("report", "last", "--format", "json", home=mixed_home)
    assert [ref["id"] for ref in json.loads(last.stdout)["sessions"]] == [expected["id"]]
    for done in (listed, last):
        assert done.returncode == 0
        assert len(done.stderr.splitlines()) == 1
        assert f"{mixed_home / '.hermes' / 'state.db'}: found unreadable rows" in done.stderr.decode()


def test_of_a_damaged_database_what_can_be_read_is_shown(tmp_path):
    shutil.copytree(HERMES, tmp_path / "work")
    path = tmp_path / "work" / "log" / ".hermes" / "state.db"
    with closing(sqlite3.connect(path)) as connection:
        (page,) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'system_prompts'").fetchone()
        (size,) = connection.execute("PRAGMA page_size").fetchone()
    content = bytearray(path.read_bytes())
    content[(page - 1) * size : (page - 1) * size + 8] = b"\x77" * 8
    path.write_bytes(content)
    done = ctxscope("report", tmp_path / "work", "--format", "json", home=tmp_path / "home")
    assert (done.returncode, done.stderr) == (0, b"")
    document = json.loads(done.stdout)
    whole = ctxscope("report", HERMES, "--format", "json", home=tmp_path / "home")
    assert document["totals"]["joined"] == json.loads(whole.stdout)["totals"]["joined"] > 0
    assert "found table system_prompts damaged" in " ".join(document["notices"])


@pytest.mark.parametrize(
    "change",
    [
        *(
            "messages SET active = x'ff'",
            "messages SET compacted = 1e999",
            "messages SET content = CAST(content AS BLOB)",
        ),
        *(
            "messages SET role = x'ff'",
            "sessions SET cwd = x'ff'",
            "sessions SET title = 1.5",
            "sessions SET id = x'ff'",
        ),
        *("system_prompts SET prompt = CAST(x'61ff' AS TEXT)", "sessions SET started_at = 'noon'"),
    ],
)
def test_a_column_that_holds_what_it_should_not_makes_no_traceback(change, tmp_path):
    shutil.copytree(HERMES, tmp_path / "work")
    with closing(sqlite3.connect(tmp_path / "work" / "log" / ".hermes" / "state.db")) as connection, connection:
        assert connection.execute(f"UPDATE {change}").rowcount
    for words in (["report", tmp_path / "work"], ["sessions", "--home", tmp_path / "work" / "log"]):
        done = ctxscope(*words, home=tmp_path / "home")
        assert (done.returncode, done.stderr) == (0, b"")


def test_no_byte_of_a_database_makes_a_traceback(tmp_path, monkeypatch, capsys):
    """One byte changed at a time, anywhere; in one process, which loads the vocabulary once."""
    monkeypatch.setattr(vocabulary, "encoding", cache(vocabulary.encoding))
    work = tmp_path / "work"
    shutil.copytree(HERMES, work)
    path = work / "log" / ".hermes" / "state.db"
    good = path.read_bytes()
    rng = random.Random(15)
    codes = Counter()
    for _ in range(300):
        content = bytearray(good)
        at = rng.randrange(len(content))
        content[at] ^= rng.randrange(1, 256)
        path.write_bytes(content)
        code = main(["report", str(work), "--format", "json"])
        out, err = capsys.readouterr()
        assert (code, err) == (0, ""), f"byte {at}: {content[at]}"
        codes["the log is read" if json.loads(out)["sessions"] else "it is not"] += 1
    assert min(codes["the log is read"], codes["it is not"]) > 0


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no device that is always full")
@pytest.mark.parametrize(
    "words",
    [["report", CLEAN], ["report", CLEAN, "--format", "json"], ["sessions", "--home", CLEAN / "log"], ["--help"]],
    ids=lambda words: " ".join(map(str, words[:1])),
)
@pytest.mark.parametrize("buffered", ["", "1"])
def test_output_that_cannot_be_written_is_one_line_on_stderr(words, buffered, tmp_path):
    with Path("/dev/full").open("wb") as full:
        done = ctxscope(*words, home=tmp_path / "home", stdout=full, PYTHONUNBUFFERED=buffered)
    assert done.returncode == 2
    assert done.stderr.decode() == (
        "ctxscope: standard output: cannot be written: No space left on device; expected a place that takes it\n"
    )
    with Path("/dev/full").open("wb") as full:
        mute = ctxscope(*words, home=tmp_path / "home", stdout=full, stderr=full, PYTHONUNBUFFERED=buffered)
    assert mute.returncode == 2


def test_a_closed_pipe_ends_it_quietly(tmp_path):
    read, write = os.pipe()
    os.close(read)
    done = ctxscope("report", CLEAN, home=tmp_path / "home", stdout=write)
    os.close(write)
    assert (done.returncode, done.stderr) == (141, b"")


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.parent.name}/{case.name}")
def test_every_sample_has_a_report_in_both_forms_and_stays_as_it_was(case, capfdbinary):
    before = tree(case)
    assert main(["report", str(case), "--format", "json"]) == 0
    out, err = capfdbinary.readouterr()
    assert err == b""
    document = json.loads(out)
    assert document["schema"] == 1
    assert main(["report", str(case)]) == 0
    out, err = capfdbinary.readouterr()
    assert err == b""
    assert out.startswith(b"# Divergence report: ")
    assert out.count(b"\n| ") >= len(document["calls"])
    assert tree(case) == before


def test_a_report_says_the_same_in_a_locale_that_has_not_all_of_its_letters(tmp_path):
    case = SAMPLES / "hermes" / "batch_compaction"
    plain, poor = (
        ctxscope("report", case, home=tmp_path / "home", **more)
        for more in ({"PYTHONUTF8": "1"}, {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"})
    )
    assert (poor.returncode, poor.stderr) == (0, b"")
    assert poor.stdout == plain.stdout.decode().encode("ascii", "backslashreplace")


@pytest.mark.parametrize("half", ["log", "wire"])
def test_half_an_input_opens_with_what_it_has(half, tmp_path):
    shutil.copytree(CLEAN / half, tmp_path / "work" / half)
    done = ctxscope("report", tmp_path / "work", "--format", "json", home=tmp_path / "home")
    assert (done.returncode, done.stderr) == (0, b"")
    document = json.loads(done.stdout)
    calls = document["calls"]
    assert calls
    assert {call["rebuilt"]["state"] for call in calls} == {"not_served" if half == "log" else "not_logged"}
    assert ("no recording found" if half == "log" else "no agent's log found") in " ".join(document["notices"])


def test_a_recording_that_matches_no_log_opens_beside_it_and_it_is_said(tmp_path):
    shutil.copytree(CLEAN / "log", tmp_path / "work" / "log")
    shutil.copytree(SAMPLES / "hermes" / "rotation" / "wire", tmp_path / "work" / "wire")
    done = ctxscope("report", tmp_path / "work", "--format", "json", home=tmp_path / "home")
    assert (done.returncode, done.stderr) == (0, b"")
    document = json.loads(done.stdout)
    assert {call["rebuilt"]["state"] for call in document["calls"]} == {"not_logged", "not_served"}
    assert "the recording joins no session found here" in document["notices"]


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
