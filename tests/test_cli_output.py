"""A report is never written over anything that belongs to an agent or to a recording, by whatever name it is called."""

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from ctxscope.model import CtxscopeError, Snapshot
from ctxscope.session.belongings import refuse
from tests.conftest import SAMPLES
from tests.report_samples import snapshot
from tests.tui_pilot import User, play
from tests.tui_session import FakeSource

NOTHING = snapshot(sessions=(), recordings=())


@pytest.fixture
def work(tmp_path: Path) -> Path:
    shutil.copytree(SAMPLES / "pi" / "clean_append", tmp_path / "work")
    shutil.copytree(SAMPLES / "hermes" / "batch_compaction", tmp_path / "work" / "hermes")
    return tmp_path / "work"


def files(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def refused(path: Path, shown=NOTHING) -> bool:
    said = ""
    try:
        refuse([path], shown)
    except CtxscopeError as error:
        said = str(error)
    assert not said or (said.startswith(f"{path}: ") and said.endswith("; expected another file to write to"))
    return bool(said)


def test_every_file_of_agent_and_recording_is_refused_and_every_place_beside_them(work):
    for name in files(work):
        assert refused(work / name) == (Path(name).name != "expected.json"), name
    for new in (
        *("wire/0001.md", "wire/index.md", "hermes/wire/r.json"),
        *("log/.pi/r.md", "log/.pi/agent/new/r.md", "log/.pi/agent/auth.json", "log/.pi/agent/sessions/r.jsonl"),
        *("hermes/log/.hermes/state.db-wal", "hermes/log/.hermes/logs/r.md", "hermes/log/.hermes/.env"),
    ):
        assert refused(work / new), new
    for free in ("r.md", "log/r.md", "wire.md", "hermes/log/r.json", "log/.pirate/r.md"):
        assert not refused(work / free), free


def opened(work: Path) -> Snapshot:
    """A snapshot that names the log and the recording of a folder."""
    log = next((work / "log").rglob("*.jsonl"))
    session = replace(snapshot().sessions[0], log=(str(log),))
    return replace(NOTHING, sessions=(session,), recordings=(str(work / "wire"),))


@pytest.mark.parametrize("link", [os.symlink, os.link])
def test_another_name_of_a_file_is_that_file(work, link):
    shown = opened(work)
    for n, target in enumerate((Path(shown.sessions[0].log[0]), work / "wire" / "0001.req")):
        link(target, work / f"link{n}")
        assert refused(work / f"link{n}", shown)


def test_a_folder_reached_by_a_link_is_that_folder(work, tmp_path):
    shown = opened(work)
    (tmp_path / "elsewhere").symlink_to(work)
    assert refused(tmp_path / "elsewhere" / "wire" / "r.md")
    assert refused(tmp_path / "elsewhere" / "log" / ".pi" / "r.md")
    (work / "log" / ".pi").rename(tmp_path / "moved")
    (work / "log" / ".pi").symlink_to(tmp_path / "moved")
    assert refused(work / "log" / ".pi" / "agent" / "settings.json")
    assert refused(tmp_path / "moved" / "agent" / "settings.json", shown)


def test_a_log_outside_of_any_home_is_refused_and_its_neighbours_are_not(work, tmp_path):
    copy = tmp_path / "copy.jsonl"
    shutil.copy(next((work / "log").rglob("*.jsonl")), copy)
    database = tmp_path / "copy.db"
    shutil.copy(work / "hermes" / "log" / ".hermes" / "state.db", database)
    assert refused(copy)
    assert refused(database)
    assert not refused(tmp_path / "copy.md")
    session = replace(snapshot().sessions[0], log=(str(database),))
    for side in ("-wal", "-shm", "-journal"):
        assert refused(tmp_path / f"copy.db{side}", replace(NOTHING, sessions=(session,)))


def test_the_export_dialog_writes_nothing_there_either(work):
    settings = work / "log" / ".pi" / "agent" / "settings.json"
    before = settings.read_bytes()
    source = FakeSource()
    source.snapshot = replace(source.snapshot, sessions=opened(work).sessions)

    async def journey(user: User) -> None:
        await user.press("e")
        user.app.screen.query_one("#file").value = str(settings)
        await user.press("enter")
        await user.press("enter")
        assert "not written" in user.screen

    play(journey, source=source)
    assert settings.read_bytes() == before
    assert not settings.with_suffix(".md").exists()
