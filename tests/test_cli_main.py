"""The verbs: which there are, what they list, and what they say when they cannot."""

from __future__ import annotations

import io
import json
import re
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from ctxscope import __version__, cli
from ctxscope.cli import sessions, target
from ctxscope.cli.diagnostics import guarded
from ctxscope.cli.main import main
from ctxscope.cli.table import table
from ctxscope.model import CtxscopeError, SessionRef

REFS = [
    SessionRef(
        "pi", "aa11", (Path("/srv/x/a.jsonl"),), Path("/srv/x"), "/srv/プラム", 1_700_000_000.0, 5_000, "plums \x1b[2J"
    ),
    SessionRef("hermes", "bb22", (Path("/srv/x/state.db"),), Path("/srv/x"), None, None, None),
]


UNREAD: dict[Path, str] = {}


@pytest.fixture
def on_this_machine(monkeypatch):
    """Two sessions, whatever the home."""
    module = ModuleType("ctxscope.session.finding")
    module.survey = lambda _home: SimpleNamespace(sessions=list(REFS), unread=dict(UNREAD), copies=[])
    module.recordings_alone = list
    monkeypatch.setitem(sys.modules, "ctxscope.session.finding", module)


@pytest.fixture
def one_unread(monkeypatch):
    """A log beside them that cannot be read."""
    monkeypatch.setitem(UNREAD, Path("/srv/x/bad.db"), "/srv/x/bad.db: found noise, expected a log")


def test_help_lists_every_verb_with_what_it_does(capsys):
    assert main(["--help"]) == 0
    out = capsys.readouterr().out
    for name in ("demo", "open", "report", "sessions"):
        assert re.search(rf"^  {name} +[A-Z].*\.$|^  {name} +[A-Z]", out, re.MULTILINE)
        assert name in cli.names()


def test_version(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"ctxscope {__version__}\n"


@pytest.mark.parametrize("name", cli.names())
def test_every_verb_has_its_face_and_a_summary(name):
    verb = cli.load(name)
    assert callable(verb.add_arguments)
    assert callable(verb.run)
    assert cli.summary(name).endswith(".")


@pytest.mark.parametrize("words", [["report"], ["report", "x", "--format", "pdf"], ["sessions", "--nope"], ["--nope"]])
def test_bad_usage_exits_2_with_the_usage_on_stderr(words, capsys):
    with pytest.raises(SystemExit) as stopped:
        main(words)
    assert stopped.value.code == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("usage: ctxscope")


@pytest.mark.parametrize("words", [["demo"], ["open", "/srv"], ["/srv"]])
def test_the_app_asks_for_a_terminal_and_names_the_other_way(words, capsys, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO())
    assert main(words) == 2
    assert "needs a terminal" in capsys.readouterr().err


def test_an_interrupt_leaves_no_traceback(capsys):
    def interrupted() -> int:
        raise KeyboardInterrupt

    assert guarded(interrupted) == 130
    assert capsys.readouterr().err == ""


@pytest.mark.usefixtures("on_this_machine")
def test_sessions_are_a_table_aligned_in_terminal_cells(capsys, tmp_path):
    assert main(["sessions", "--home", str(tmp_path)]) == 0
    head, first, second = capsys.readouterr().out.splitlines()
    assert head.split() == ["agent", "updated", "size", "id", "directory"]
    assert first.endswith("/srv/プラム")
    assert "4.9 KB  aa11" in first
    assert second.split() == ["hermes", "–", "–", "bb22", "–"]
    assert head.index("directory") == first.index("/srv") == second.rindex("–")


@pytest.mark.parametrize("updated", [1e300, float("nan"), float("-inf")])
@pytest.mark.parametrize("fmt", ["text", "json"])
@pytest.mark.usefixtures("on_this_machine")
def test_a_session_whose_time_is_no_date_is_listed_without_one(updated, fmt, capsys, tmp_path, monkeypatch):
    monkeypatch.setattr(sys.modules[__name__], "REFS", [replace(REFS[0], updated=updated)])
    assert main(["sessions", "--home", str(tmp_path), "--format", fmt]) == 0
    out = capsys.readouterr().out
    if fmt == "json":
        assert json.loads(out)["sessions"][0]["updated"] is None
        assert "NaN" not in out
    else:
        assert out.splitlines()[1].split()[:2] == ["pi", "–"]


@pytest.mark.usefixtures("on_this_machine")
def test_sessions_as_json_hold_what_is_known_and_null(capsys, tmp_path):
    assert main(["sessions", "--home", str(tmp_path), "--format", "json"]) == 0
    out = capsys.readouterr().out
    assert out.isascii()
    first, second = json.loads(out)["sessions"]
    assert first["title"] == "plums \x1b[2J"
    assert second == {
        "agent": "hermes",
        "id": "bb22",
        "directory": None,
        "updated": None,
        "size": None,
        "title": None,
        "parent": None,
        "log": ["/srv/x/state.db"],
    }


def test_a_home_that_is_not_there_is_bad_input(capsys):
    assert main(["sessions", "--home", "/nosuch/home"]) == 2
    assert (
        capsys.readouterr().err
        == "ctxscope: /nosuch/home: no such folder; expected a home folder with the logs of agents\n"
    )


def test_a_table_is_aligned_by_what_a_terminal_shows():
    first, second = table(
        sessions._COLUMNS, [("pi", "–", "–", "プラム", "/a"), ("pi", "–", "–", "abcdef", "/b")]
    ).splitlines()[1:]
    assert len(first) + 3 == len(second)


def test_a_table_escapes_what_a_terminal_would_obey():
    assert "\x1b" not in table(sessions._COLUMNS, [sessions._row(SessionRef("pi", "a\x1b[2J", (), Path(), "\x9b2J"))])


@pytest.mark.usefixtures("on_this_machine")
def test_a_name_is_a_path_or_last_or_the_beginning_of_an_id(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert target.resolve("last") == target.Target(Path("/srv/x/a.jsonl"), "aa11")
    assert target.resolve("bb") == target.Target(Path("/srv/x/state.db"), "bb22")
    assert target.resolve("cc") == target.Target(Path("cc"))
    (tmp_path / "last").write_text("")
    assert target.resolve("last", "s") == target.Target(Path("last"), "s")


@pytest.mark.usefixtures("on_this_machine")
def test_an_id_that_could_be_two_sessions_is_not_guessed(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys.modules[__name__], "REFS", [REFS[0], SessionRef("pi", "aa12", (Path("b"),), Path())])
    with pytest.raises(CtxscopeError, match="aa1: begins the id of 2 sessions"):
        target.resolve("aa1")


@pytest.mark.usefixtures("on_this_machine", "one_unread")
def test_a_log_that_cannot_be_read_among_others_is_narrated(capsys, tmp_path):
    assert main(["sessions", "--home", str(tmp_path)]) == 0
    out, err = capsys.readouterr()
    assert len(out.splitlines()) == 1 + len(REFS)
    assert err == "ctxscope: /srv/x/bad.db: found noise, expected a log\n"


@pytest.mark.usefixtures("on_this_machine", "one_unread")
def test_where_no_session_can_be_read_what_cannot_is_the_error(capsys, tmp_path, monkeypatch):
    monkeypatch.setattr(sys.modules[__name__], "REFS", [])
    monkeypatch.chdir(tmp_path)
    assert main(["sessions", "--home", str(tmp_path)]) == 2
    assert capsys.readouterr() == ("", "ctxscope: /srv/x/bad.db: found noise, expected a log\n")
    with pytest.raises(CtxscopeError, match=r"^/srv/x/bad\.db: found noise, expected a log$"):
        target.resolve("last")


@pytest.mark.usefixtures("on_this_machine", "one_unread")
def test_a_log_that_cannot_be_read_matters_where_it_might_hold_the_session(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    told = ("/srv/x/bad.db: found noise, expected a log",)
    assert target.resolve("last") == target.Target(Path("/srv/x/a.jsonl"), "aa11", told)
    assert target.resolve("bb") == target.Target(Path("/srv/x/state.db"), "bb22")
    assert target.resolve("cc") == target.Target(Path("cc"), None, told)


def test_live_is_what_was_written_just_now_in_this_directory(tmp_path):
    here = SessionRef("pi", "a", (Path("a"),), Path(), str(tmp_path), 1_000.0)
    old = SessionRef("pi", "b", (Path("b"),), Path(), str(tmp_path), 10.0)
    unknown = SessionRef("pi", "c", (Path("c"),), Path(), str(tmp_path), None)
    away = SessionRef("pi", "d", (Path("d"),), Path(), str(tmp_path / "other"), 1_000.0)
    assert target.here([here, old, unknown, away], tmp_path) == [here, old, unknown]
    assert target.live([here, old, unknown], 1_200.0) == [here]
