"""``ctxscope report``: data on stdout in any encoding, narration on stderr, files whole or untouched."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from ctxscope.cli.main import main
from tests.cli_fakes import TEXT, plant
from tests.conftest import ROOT


@pytest.fixture(autouse=True)
def _fake(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "ctxscope.session.inspection", plant())
    monkeypatch.chdir(tmp_path)
    (tmp_path / "log").write_text("x")


def process(*words: str, **environment: str) -> subprocess.CompletedProcess[bytes]:
    env = {**os.environ, "PYTHONPATH": str(ROOT), **environment}
    return subprocess.run(
        [sys.executable, "-m", "tests.cli_fakes", *words],
        capture_output=True,
        env=env,
        stdin=subprocess.DEVNULL,
        check=False,
    )


def test_markdown_goes_to_stdout_and_nothing_to_stderr(capsys):
    assert main(["report", "log"]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("# Divergence report: orchard ≈ plums")
    assert err == ""


def test_the_command_to_reproduce_is_the_one_given(capsys):
    assert main(["report", "log", "--call", "2", "--session", "a b", "--content", "none"]) == 0
    assert "\nctxscope report log --call 2 --session 'a b' --format md --content none\n" in capsys.readouterr().out


def test_one_call_is_reported_alone(capsys):
    assert main(["report", "log", "--call", "2", "--format", "json"]) == 0
    assert [call["n"] for call in json.loads(capsys.readouterr().out)["calls"]] == [2]


@pytest.mark.parametrize("name", ["--session", "--log", "--recording"])
@pytest.mark.parametrize("verb", [["report", "log"], ["log"]], ids=["report", "open"])
def test_what_takes_one_value_is_not_given_two(verb, name, capsys):
    with pytest.raises(SystemExit) as stopped:
        main([*verb, name, "one", name, "two"])
    assert stopped.value.code == 2
    assert f"argument {name}: given twice, one and two; expected one" in capsys.readouterr().err


@pytest.mark.parametrize("words", [["--call", "9"], ["--turn", "4"]])
def test_a_call_that_is_not_there_is_bad_usage(words, capsys):
    assert main(["report", "log", *words]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("ctxscope: no ")
    assert "there are calls 1 to 2" in err


def test_bad_input_is_one_line_without_a_traceback(capsys):
    assert main(["report", "./bad"]) == 2
    assert capsys.readouterr() == ("", "ctxscope: bad: an empty file\\x1b[2J; expected a log\n")


@pytest.mark.parametrize(
    "environment",
    [
        {"LC_ALL": "C"},
        {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
        {"PYTHONIOENCODING": "ascii"},
        {"PYTHONIOENCODING": "cp1252"},
    ],
)
@pytest.mark.parametrize("fmt", ["md", "json"])
def test_a_pipe_of_any_encoding_gets_the_report(environment, fmt):
    done = process("report", "log", "--format", fmt, **environment)
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"\x1b" not in done.stdout
    if fmt == "json":
        encoding = "cp1252" if "cp1252" in environment.values() else "utf-8"
        calls = json.loads(done.stdout.decode(encoding))["calls"]
        assert calls[1]["rebuilt"]["first_difference"]["served"] == TEXT


def test_an_ascii_pipe_gets_ascii():
    assert process("report", "log", PYTHONIOENCODING="ascii").stdout.isascii()
    assert process("report", "log", "--format", "json", PYTHONIOENCODING="ascii").stdout.isascii()


def test_a_reader_that_leaves_is_no_error_of_ours():
    read, write = os.pipe()
    os.close(read)
    env = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": ""}
    done = subprocess.run(
        [sys.executable, "-m", "tests.cli_fakes", "report", "log"],
        stdout=write,
        stderr=subprocess.PIPE,
        env=env,
        check=False,
    )
    os.close(write)
    assert (done.returncode, done.stderr) == (141, b"")


def test_a_file_is_written_whole_and_said(tmp_path, capsys):
    target = tmp_path / "report.md"
    target.write_text("old")
    assert main(["report", "log", "-o", "report.md"]) == 0
    out, err = capsys.readouterr()
    assert (out, err) == ("", "ctxscope: wrote report.md\n")
    assert target.read_text().startswith("# Divergence report")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["log", "report.md"]


def test_a_file_that_cannot_be_written_leaves_nothing_behind(tmp_path, capsys):
    assert main(["report", "log", "-o", "missing/report.md"]) == 2
    assert capsys.readouterr().err == (
        "ctxscope: missing/report.md: cannot be written: No such file or directory; expected a file in a folder that exists\n"
    )
    assert [p.name for p in tmp_path.iterdir()] == ["log"]


@pytest.mark.parametrize("name", ["", ".", "log/r.md", "~no-such-person-here/r.md", "x" * 300, "a\0b", "loop/r.md"])
def test_a_place_where_no_file_can_be_is_one_line(name, tmp_path, capsys):
    (tmp_path / "loop").symlink_to("loop")
    assert main(["report", "log", "-o", name]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert len(err.splitlines()) == 1
    assert "cannot be written" in err
    assert sorted(p.name for p in tmp_path.iterdir()) == ["log", "loop"]


def test_a_log_is_never_written_over(tmp_path, capsys):
    (tmp_path / "link").symlink_to("log")
    assert main(["report", "log", "-o", "link"]) == 2
    assert "is what the report is about" in capsys.readouterr().err
    assert (tmp_path / "log").read_text() == "x"


@pytest.mark.parametrize(
    ("path", "owner"),
    [
        ("/srv/orchard/state.db", "is what the report is about"),
        ("/srv/orchard/state.db-wal", "is what the report is about"),
        ("/srv/orchard/wire", "belongs to a recording"),
        ("/srv/orchard/wire/0001.req", "belongs to a recording"),
        ("/srv/orchard/wire/new/report.md", "belongs to a recording"),
    ],
)
def test_what_a_session_consists_of_is_never_written_over(path, owner, capsys):
    assert main(["report", "log", "-o", path]) == 2
    assert capsys.readouterr().err == f"ctxscope: {path}: {owner}; expected another file to write to\n"


def test_a_failing_write_keeps_the_old_file(tmp_path, monkeypatch, capsys):
    (tmp_path / "r.md").write_text("old")
    monkeypatch.setattr(
        "pathlib.Path.replace", lambda *_: (_ for _ in ()).throw(OSError(28, "No space left on device"))
    )
    assert main(["report", "log", "-o", "r.md"]) == 2
    assert "No space left" in capsys.readouterr().err
    assert (tmp_path / "r.md").read_text() == "old"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["log", "r.md"]
