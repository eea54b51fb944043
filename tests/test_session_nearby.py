"""What begins beside something that is followed, a session or a recording: it is found, and a fresh look says the same."""

from __future__ import annotations

import json
import os
import shutil
import threading
from pathlib import Path
from typing import Any

import pytest

import ctxscope
from ctxscope.model import CtxscopeError
from ctxscope.session import lookout
from ctxscope.session.inspection import Inspection
from tests.conftest import CAPTURES, SAMPLES, needs_captures
from tests.session_growth import Disk, Moment, grown, pi_moments, samples
from tests.session_looks import agrees

LONG = 60.0
"""Seconds a test may wait for what happens at once; never reached unless something is broken."""


def follow(moments: list[Moment], disk: Disk) -> Inspection:
    """Followed from the first moment at which anything can be opened; a fresh look is taken after each later one."""
    followed: Inspection | None = None
    for at, moment in enumerate(moments):
        disk.put(moment)
        if followed is not None:
            followed.poll()
            assert agrees(followed) is None, f"after moment {at}"
        else:
            followed = openable(disk.folder)
    assert followed is not None
    return followed


def openable(folder: Path) -> Inspection | None:
    try:
        return ctxscope.open(folder)
    except CtxscopeError:
        return None


def ids(inspection: Inspection) -> list[str]:
    return [session.id for session in inspection.snapshot.sessions]


def states(inspection: Inspection) -> list[str]:
    return [call.rebuilt.state for call in inspection.snapshot.calls]


# --- sessions ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", samples(), ids=lambda p: f"{p.parent.name}-{p.name}")
def test_a_case_followed_from_its_first_byte_says_what_a_fresh_look_says_at_every_moment(case: Path, tmp_path: Path):
    moments, disk = grown(case, tmp_path)
    followed = follow(list(moments), disk)
    expected = json.loads((case / "expected.json").read_text())
    assert [s.id for s in followed.snapshot.sessions] == [s["id"] for s in expected["sessions"]]
    assert len(followed.snapshot.recordings) == len(list(case.rglob("index.jsonl")))


@needs_captures
@pytest.mark.parametrize("name", ["pi073_f_fork", "pi16_f_tree"])
def test_a_recorded_case_with_branches_does_too(name: str, tmp_path: Path):
    case = CAPTURES / "pi" / name
    moments, disk = grown(case, tmp_path)
    sessions, calls = ids(follow(list(moments), disk)), states(ctxscope.open(disk.folder))
    assert len(sessions) == len(list(case.glob("log/.pi/agent/sessions/*/*.jsonl")))
    assert "equal" in calls


@pytest.fixture
def rotating(tmp_path: Path) -> tuple[list[Moment], Disk]:
    moments, disk = grown(SAMPLES / "hermes" / "rotation", tmp_path)
    return list(moments), disk


def rotated(moment: Moment) -> bool:
    return moment.tables is not None and len(moment.tables["sessions"]) > 1


def test_a_rotation_is_followed_into_the_session_that_continues(rotating):
    moments, disk = rotating
    first = next(i for i, m in enumerate(moments) if rotated(m))
    for moment in moments[:first]:
        disk.put(moment)
    followed = ctxscope.open(disk.folder)
    assert len(ids(followed)) == 1
    for moment in moments[first:]:
        disk.put(moment)
        followed.poll()
    assert states(followed) == ["equal"] * 3 + ["not_logged"] + ["equal"] * 2
    assert [s.ref.parent for s in followed.assembly.sessions] == [None, ids(followed)[0]]
    assert any(path.name == f"session_{ids(followed)[1]}.json" for path in followed._files())


@pytest.mark.parametrize("how", ["session", "log", "no recording"])
def test_whoever_follows_one_session_follows_it_on_but_into_no_other(how: str, rotating):
    moments, disk = rotating
    first = next(i for i, m in enumerate(moments) if rotated(m))
    for moment in moments[:first]:
        disk.put(moment)
    (parent,) = ids(ctxscope.open(disk.folder))
    followed = {
        "session": lambda: ctxscope.open(disk.folder, session=parent),
        "log": lambda: ctxscope.open(disk.folder / "log/.hermes/state.db"),
        "no recording": lambda: ctxscope.open(disk.folder / "log"),
    }[how]()
    tables = moments[-1].tables
    assert tables is not None
    other = {**tables["sessions"][0], "id": "20260201_120000_07e812", "started_at": 1769947200.0}
    late = Moment(tables={**tables, "sessions": [*tables["sessions"], other]})
    for moment in [*moments[first:], late]:
        disk.put(moment)
        followed.poll()
    child = tables["sessions"][1]["id"]
    # Any session in a named file may be in the recording, so there a fresh look lists the other one, too.
    assert ids(followed) == [parent, child, *([other["id"]] if how == "log" else [])]
    if how == "log":
        assert agrees(followed) is None


@pytest.fixture
def forked(tmp_path: Path) -> tuple[list[Moment], Disk]:
    """Two pi sessions in one recording, of which the second says that it continues the first."""
    case = tmp_path / "case"
    shutil.copytree(SAMPLES / "pi" / "two_sessions_one_recording", case)
    first, second = sorted(case.rglob("sessions/*/*.jsonl"))
    head, newline, rest = second.read_bytes().partition(b"\n")
    header = {**json.loads(head), "parentSession": f"/home/ada/.pi/agent/sessions/--home-ada-tides--/{first.name}"}
    second.write_bytes(json.dumps(header, separators=(",", ":")).encode() + newline + rest)
    return list(pi_moments(case)), Disk(tmp_path / "grown")


def begun(disk: Disk, moments: list[Moment]) -> list[Moment]:
    """Put what happened until the first session stands in the log and the first exchange in the recording; the rest."""
    for i, moment in enumerate(moments):
        disk.put(moment)
        if len(logs(disk.folder)) == 1 and any(disk.folder.rglob("0001.res")):
            return moments[i + 1 :]
    raise AssertionError


def logs(folder: Path) -> list[Path]:
    return sorted(folder.rglob("sessions/*/*.jsonl"))


@pytest.mark.parametrize("how", ["folder", "recording", "session", "log"])
def test_a_fork_of_a_pi_session_is_followed_whatever_was_named(how: str, forked):
    moments, disk = forked
    later = begun(disk, moments)
    (log,) = logs(disk.folder)
    followed = {
        "folder": lambda: ctxscope.open(disk.folder),
        "recording": lambda: ctxscope.open(disk.folder / "wire", log=str(disk.folder / "log")),
        "session": lambda: ctxscope.open(disk.folder, session=log.stem.partition("_")[2]),
        "log": lambda: ctxscope.open(log),
    }[how]()
    assert len(ids(followed)) == 1
    for moment in later:
        disk.put(moment)
        followed.poll()
    assert ids(followed) == [path.stem.partition("_")[2] for path in logs(disk.folder)]
    assert set(states(followed)) == {"equal"}


@pytest.mark.parametrize("how", ["session", "log"])
def test_another_pi_session_is_not_followed_where_one_was_named(how: str, tmp_path: Path):
    disk = Disk(tmp_path)
    later = begun(disk, list(pi_moments(SAMPLES / "pi" / "two_sessions_one_recording")))
    (log,) = logs(disk.folder)
    name = log.stem.partition("_")[2]
    followed = ctxscope.open(disk.folder, session=name) if how == "session" else ctxscope.open(log)
    for moment in later:
        disk.put(moment)
        followed.poll()
    assert len(logs(disk.folder)) == 2
    assert ids(followed) == [name]
    assert sorted(states(followed)) == ["equal", "equal", "not_logged", "pending"]


def test_a_session_taken_up_again_is_found_by_its_calls(tmp_path: Path):
    """Two in a database, of which only one has calls at first."""
    moments, disk = grown(SAMPLES / "hermes" / "rotation", tmp_path)
    *_, last = moments
    wire = {name: data for name, data in last.files.items() if name.startswith("wire/")}
    index = wire["wire/index.jsonl"].splitlines(keepends=True)
    disk.put(Moment({**last.files, "wire/index.jsonl": b"".join(index[:3])}, last.tables))
    followed = ctxscope.open(disk.folder)
    assert len(ids(followed)) == 1
    assert last.tables is not None
    child = {**last.tables["sessions"][1], "ended_at": None, "title": "taken up again"}
    disk.put(Moment(wire, {**last.tables, "sessions": [last.tables["sessions"][0], child]}))
    followed.poll()
    assert [s.title for s in followed.snapshot.sessions][1] == "taken up again"
    assert agrees(followed) is None


def test_a_pi_session_taken_up_again_is_found_by_its_calls(tmp_path: Path):
    case = SAMPLES / "pi" / "two_sessions_one_recording"
    shutil.copytree(case, tmp_path, dirs_exist_ok=True)
    old = logs(tmp_path)[0]
    wire = tmp_path / "wire"
    lines = (wire / "index.jsonl").read_bytes().splitlines(keepends=True)
    whole = old.read_bytes()
    old.write_bytes(b"".join(whole.splitlines(keepends=True)[:4]))  # nothing was asked yet
    (wire / "index.jsonl").write_bytes(lines[1])
    followed = ctxscope.open(tmp_path)
    assert len(ids(followed)) == 1
    (wire / "index.jsonl").write_bytes(b"".join([lines[1], lines[0], *lines[2:]]))
    followed.poll()
    old.write_bytes(whole)
    followed.poll()
    assert agrees(followed) is None
    assert len(ids(followed)) == 2


# --- what was not there, or could not be read --------------------------------------------------------------------------


@pytest.mark.parametrize("case", ["pi/clean_append", "hermes/sidecar_differs"])
def test_a_first_session_is_found_beside_a_recording(case: str, tmp_path: Path):
    shutil.copytree(SAMPLES / case / "wire", tmp_path / "wire")
    followed = ctxscope.open(tmp_path)
    assert set(states(followed)) == {"not_logged"}
    source = SAMPLES / case / "log"
    for path in sorted(source.rglob("*"), key=lambda p: (len(p.parts), p)):
        target = tmp_path / "log" / path.relative_to(source)
        if path.is_dir():
            target.mkdir(parents=True)
        else:
            shutil.copy(path, target)
        followed.poll()
        assert agrees(followed) is None, path.name
    assert "equal" in states(followed)


@pytest.mark.parametrize("named", ["folder", "log"])
@pytest.mark.parametrize("case", ["pi/clean_append", "hermes/rotation"])
def test_a_recording_that_comes_later_is_found(case: str, named: str, tmp_path: Path):
    shutil.copytree(SAMPLES / case / "log", tmp_path / "log")
    file = next(p for p in tmp_path.rglob("*") if p.name == "state.db" or p.parent.name.startswith("--"))
    followed = ctxscope.open(tmp_path if named == "folder" else file)
    assert set(states(followed)) == {"not_served"}
    source = SAMPLES / case / "wire"
    (tmp_path / "late").mkdir()
    for path in [source / "index.jsonl", *sorted(source.glob("0*"))]:
        followed.poll()
        shutil.copy(path, tmp_path / "late")
    followed.poll()
    assert agrees(followed) is None
    assert "equal" in states(followed)


def test_a_recording_that_began_before_its_log_was_named_belongs_to_it_once_it_has_a_call(tmp_path: Path):
    case = tmp_path / "case"
    shutil.copytree(SAMPLES / "pi" / "clean_append", case)
    index = case / "wire" / "index.jsonl"
    lines = index.read_bytes()
    index.write_bytes(b"")
    (log,) = logs(case)
    followed = ctxscope.open(log)
    assert followed.snapshot.recordings == ()
    index.write_bytes(lines)
    followed.poll()
    assert agrees(followed) is None
    assert set(states(followed)) == {"equal"}


def test_a_database_that_could_not_be_read_is_tried_again_once_it_changed(tmp_path: Path):
    shutil.copytree(SAMPLES / "hermes" / "rotation", tmp_path, dirs_exist_ok=True)
    path = tmp_path / "log" / ".hermes" / "state.db"
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    followed = ctxscope.open(tmp_path)
    assert any(str(path) in notice for notice in followed.snapshot.notices)
    assert agrees(followed) is None
    path.write_bytes(whole)
    followed.poll()
    assert agrees(followed) is None
    assert not any(str(path) in notice for notice in followed.snapshot.notices)
    assert len(ids(followed)) == 2


# --- cost --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", ["pi/two_sessions_one_recording", "hermes/rotation"])
def test_a_poll_without_news_walks_nothing_and_opens_nothing(case: str, tmp_path: Path, monkeypatch):
    shutil.copytree(SAMPLES / case, tmp_path, dirs_exist_ok=True)
    monkeypatch.setattr(lookout, "racy", lambda _: False)
    for path in sorted((tmp_path / "log").rglob("*.jsonl"))[1:]:
        os.utime(path, (1.0, 1.0))
    followed = ctxscope.open(tmp_path)
    followed.poll()

    def never(*_: object, **__: object) -> None:
        raise AssertionError

    for name in ("folders_below", "children", "open_readers", "_entries", "_head"):
        monkeypatch.setattr(lookout, name, never)
    monkeypatch.setattr("ctxscope.session.nearby.arrange", never)
    assert not followed.poll()


def test_what_is_followed_in_a_thread_goes_on_into_a_new_session(rotating):
    moments, disk = rotating
    first = next(i for i, m in enumerate(moments) if rotated(m))
    for moment in moments[:first]:
        disk.put(moment)
    followed = ctxscope.open(disk.folder)
    arrived = threading.Event()

    def look(snapshot: Any) -> None:
        if [c.rebuilt.state for c in snapshot.calls].count("equal") == 5:
            arrived.set()

    stop = followed.follow(look)
    for moment in moments[first:]:
        disk.put(moment)
    assert arrived.wait(LONG)
    stop()
