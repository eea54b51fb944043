"""The app beside a running agent: what is written to disk while it is open comes to the screen."""

from __future__ import annotations

import shutil
import sqlite3
import threading
from contextlib import closing
from pathlib import Path

import pytest

from ctxscope.cli.source import InspectionSource
from ctxscope.cli.target import Target
from ctxscope.session.inspection import Inspection
from tests.conftest import SAMPLES
from tests.tui_pilot import SIZES, User, play

at_both_sizes = pytest.mark.parametrize("size", SIZES, ids=["80x24", "160x45"])
FOLLOWING = ("ctxscope-follow", "ctxscope-watch")


class Growing:
    """A copy of a pi sample of which only the first exchanges and the lines up to their answers are written."""

    def __init__(self, folder: Path, calls: int, name: str = "clean_append") -> None:
        self.case, self.folder = SAMPLES / "pi" / name, folder / name
        shutil.copytree(self.case, self.folder)
        self.index = self.folder / "wire" / "index.jsonl"
        (self.log,) = self.folder.rglob(".pi/agent/sessions/*/*.jsonl")
        self.exchanges = self.index.read_bytes().splitlines(keepends=True)
        self.lines = self.log.read_bytes().splitlines(keepends=True)
        self.answers = [i for i, line in enumerate(self.lines) if b'"role":"assistant"' in line]
        self.bodies = {
            file.name: file.read_bytes() for file in self.index.parent.iterdir() if file.suffix in (".req", ".res")
        }
        for file in self.bodies:
            if int(file[:4]) > calls:
                (self.index.parent / file).unlink()
        self.index.write_bytes(b"".join(self.exchanges[:calls]))
        self.log.write_bytes(b"".join(self.logged(calls)))

    def logged(self, calls: int) -> list[bytes]:
        """Lines up to the answer of a call."""
        return self.lines[: self.answers[calls - 1] + 1]

    def serve(self, n: int) -> None:
        """The recorder writes an exchange."""
        for kind in ("req", "res"):
            name = f"{n:04d}.{kind}"
            (self.index.parent / name).write_bytes(self.bodies[name])
        with self.index.open("ab") as file:
            file.write(self.exchanges[n - 1])

    def answer(self, n: int) -> None:
        """The agent writes what lies between two answers, and the second of them."""
        with self.log.open("ab") as file:
            for line in self.lines[self.answers[n - 2] + 1 : self.answers[n - 1] + 1]:
                file.write(line)
                file.flush()

    def open(self) -> InspectionSource:
        return InspectionSource.open(Target(self.folder))


def shows(user: User, words: str):
    return lambda: words in user.screen


@pytest.fixture(autouse=True)
def own_data_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))


@at_both_sizes
def test_what_is_written_comes_to_the_screen_and_the_cursor_keeps_to_the_end(size, tmp_path):
    growing = Growing(tmp_path, 2)
    source = growing.open()

    async def journey(user: User) -> None:
        assert user.call == 2
        assert "2 calls" in user.screen
        growing.serve(3)
        await user.until(lambda: user.call == 3, "the cursor stands on call 3")
        assert "3 calls" in user.screen
        growing.answer(3)
        await user.until(lambda: source.snapshot.calls[2].rebuilt.state == "equal", "call 3 is joined to its answer")
        await user.until(shows(user, "served = rebuilt"), "the verdict of call 3 is shown")
        assert "3/3 · following" in user.screen
        growing.serve(4)
        growing.answer(4)
        await user.until(lambda: user.call == 4, "the cursor stands on call 4")
        await user.until(shows(user, "served = rebuilt"), "the verdict of call 4 is shown")
        assert user.app.screen.shown.n == 4

    play(journey, size=size, source=source)


@at_both_sizes
def test_a_user_who_moved_up_stays_there_and_is_told_that_more_came(size, tmp_path):
    growing = Growing(tmp_path, 2)

    async def journey(user: User) -> None:
        await user.press("K")
        assert user.call == 1
        growing.serve(3)
        await user.until(shows(user, "↓ 1 new below"), "one new call is told")
        growing.answer(3)
        growing.serve(4)
        await user.until(shows(user, "↓ 2 new below"), "two new calls are told")
        assert user.call == 1
        await user.press("F")
        assert user.call == 4
        assert "new below" not in user.screen
        assert "4/4 · following" in user.screen

    play(journey, size=size, source=growing.open())


def test_half_a_line_is_no_error_and_is_said(tmp_path):
    growing = Growing(tmp_path, 3)

    async def journey(user: User) -> None:
        line = growing.lines[growing.answers[2] + 1]
        with growing.log.open("ab") as file:
            file.write(line[:40])
        await user.until(shows(user, "○ writing…"), "a writer is in the middle of a line")
        with growing.log.open("ab") as file:
            file.write(line[40:])
        await user.until(shows(user, "● live"), "the line is whole")

    play(journey, source=growing.open())


def test_a_log_that_is_replaced_by_a_longer_one_is_followed(tmp_path):
    growing = Growing(tmp_path, 2)
    source = growing.open()

    async def journey(user: User) -> None:
        growing.serve(3)
        await user.until(lambda: user.call == 3, "the cursor stands on call 3")
        new = growing.log.with_name("new.tmp")
        new.write_bytes(b"".join(growing.logged(3)))
        new.replace(growing.log)
        await user.until(lambda: source.snapshot.calls[2].rebuilt.state == "equal", "call 3 is joined to its answer")
        await user.until(shows(user, "served = rebuilt"), "its verdict is shown")
        assert "3 calls" in user.screen

    play(journey, source=source)


def test_a_row_that_an_agent_inserts_comes_to_the_screen(tmp_path):
    folder = tmp_path / "case"
    shutil.copytree(SAMPLES / "hermes" / "sidecar_differs", folder)
    (database,) = folder.rglob("state.db")
    with closing(sqlite3.connect(database)) as connection:
        (answer,) = connection.execute("SELECT * FROM messages ORDER BY id DESC LIMIT 1").fetchall()
        connection.execute("DELETE FROM messages WHERE id = ?", answer[:1])
        connection.commit()

    async def journey(user: User) -> None:
        await user.press("v", "v")
        assert "stored = delivered" not in user.screen
        with closing(sqlite3.connect(database)) as connection:
            connection.execute(f"INSERT INTO messages VALUES ({','.join('?' * len(answer))})", answer)
            connection.commit()
        await user.until(shows(user, "stored = delivered"), "the answer is known to be stored")
        await user.until(shows(user, "delivered │ stored in the log"), "both are beside each other")

    play(journey, source=InspectionSource.open(Target(folder)))


def test_closing_the_app_ends_its_threads_and_gives_the_files_back(tmp_path, monkeypatch):
    closed = []

    def close(self):
        closed.append(self)

    monkeypatch.setattr(InspectionSource, "close", close)
    source = Growing(tmp_path, 3).open()

    async def journey(user: User) -> None:
        assert set(FOLLOWING) <= {thread.name for thread in threading.enumerate()}
        await user.press("q")

    app = play(journey, source=source)
    assert app.return_code == 0
    assert not set(FOLLOWING) & {thread.name for thread in threading.enumerate()}
    assert closed == [source]


def test_an_error_while_following_is_a_notice_and_the_next_change_is_read(tmp_path, monkeypatch, capfd):
    growing = Growing(tmp_path, 2)
    source = growing.open()
    poll, failing = Inspection.poll, threading.Event()

    def sometimes(self):
        if failing.is_set():
            raise RuntimeError("a reader stumbled [/foo]")
        return poll(self)

    monkeypatch.setattr(Inspection, "poll", sometimes)

    async def journey(user: User) -> None:
        failing.set()
        growing.serve(3)
        await user.until(shows(user, " notice"), "there is a notice")
        user.app.clear_notifications()
        await user.press("i")
        assert "a reader stumbled [/foo]" in user.words
        await user.press("escape")
        assert user.call == 2
        failing.clear()
        growing.answer(3)
        await user.until(lambda: user.call == 3, "the next change is read")
        await user.until(lambda: not any("stumbled" in n for n in source.snapshot.notices), "the notice is gone")

    play(journey, source=source)
    assert "Traceback" not in "".join(capfd.readouterr())


@pytest.mark.parametrize("error", [RuntimeError("nobody thought of this [/foo]"), KeyError(3)])
def test_an_error_while_a_call_is_read_is_told_and_the_app_lives_on(tmp_path, monkeypatch, error):
    source = Growing(tmp_path, 4).open()
    view = Inspection.view

    def sometimes(self, n):
        if n == 3:
            raise error
        return view(self, n)

    monkeypatch.setattr(Inspection, "view", sometimes)

    async def journey(user: User) -> None:
        await user.press("K")
        assert "call 3 cannot be read" in user.screen
        assert type(error).__name__ in user.line("why")
        await user.press("K")
        assert user.call == 2
        assert "served = rebuilt" in user.line("why")

    play(journey, source=source)
