"""``ctxscope recordings``: what is listed, what would go, what is asked, what is removed."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ctxscope import resources
from ctxscope.capture import listing
from ctxscope.capture.events import Chunk, End, Head, Message, Meta, Request
from ctxscope.capture.writer import Writer
from ctxscope.cli.main import main
from tests.conftest import ROOT

pty = pytest.importorskip("pty", reason="a terminal is asked")

DAY = 86_400.0
NOW = time.time()
PATIENCE = 60.0


def recording(name: str, *, days: float = 0.0, bodies: tuple[bytes, ...] = (b'{"a":1}',), **about: object) -> Path:
    """A recording in the data folder, last written some days ago."""
    path = resources.recordings() / f"{name}.ctxrec"
    writer = Writer(path, Meta(NOW, **about))  # type: ignore[arg-type] - words of a meta
    for n, body in enumerate(bodies, 1):
        target = "/v1/messages" if body else "/v1/models"
        writer.write(Request(n, NOW, "POST", target, "https://api.anthropic.com", body=body))
        writer.write(Head(n, NOW, 200))
        writer.write(End(n, NOW))
    writer.close()
    os.utime(path, (NOW - days * DAY,) * 2)
    return path


def listed(capsys, *words: str) -> list[dict]:
    assert main(["recordings", "--format", "json", *words]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["schema"] == 1
    return document["recordings"]


def names() -> set[str]:
    return {path.stem for path in resources.recordings().iterdir()}


# --- listing ---------------------------------------------------------------------------------------------------------


def test_recordings_are_listed_newest_first_with_what_they_hold(capsys):
    old = recording("old", days=3, agent="hermes", bodies=(b'{"a":1}', b"", b'{"a":1}'))
    new = recording("new", days=1, source="har")
    first, second = listed(capsys)
    assert first == {
        "path": str(new),
        "written": pytest.approx(NOW - DAY),
        "live": False,
        "agent": None,
        "source": "har",
        "requests": 1,
        "calls": 1,
        "stored": new.stat().st_size,
        "sent": 7,
    }
    assert (second["path"], second["agent"], second["source"]) == (str(old), "hermes", None)
    assert (second["requests"], second["calls"], second["sent"]) == (3, 2, 14)


def test_the_table_sums_up(capsys):
    recording("old", days=3, agent="hermes", bodies=(b'{"a":1}' * 9_000,))
    recording("new", days=1, source="har", bodies=(b"",))
    assert main(["recordings"]) == 0
    head, new, old, total = capsys.readouterr().out.splitlines()
    assert head.split() == ["written", "agent", "calls", "stored", "sent", "ratio", "path"]
    assert new.split()[2:4] == ["har", "0"]
    assert new.split()[-2] == "–"  # nothing sent: no ratio
    assert old.split()[2:4] == ["hermes", "1"]
    assert "62 KB" in old
    assert old.split()[-1] == str(resources.recordings() / "old.ctxrec")
    assert total.startswith("2 in all ")
    assert total.endswith(str(resources.recordings()))


def test_one_that_is_being_written_is_marked_live(capsys):
    path = recording("done")
    writer = Writer(resources.recordings() / "live.ctxrec", Meta(NOW, agent="pi"))
    try:
        assert {each["path"]: each["live"] for each in listed(capsys)} == {
            str(path): False,
            str(resources.recordings() / "live.ctxrec"): True,
        }
        assert main(["recordings"]) == 0
        assert any(line.startswith("now ") and " pi " in line for line in capsys.readouterr().out.splitlines())
    finally:
        writer.close()
    assert not any(each["live"] for each in listed(capsys))


def test_listing_does_not_disturb_a_writer(capsys):
    path = recording("a")
    writer = Writer(path, Meta(NOW))
    try:
        listed(capsys)
        writer.write(Request(9, NOW, "POST", "/v1/messages", "https://h", body=b"{}"))
    finally:
        writer.close()
    assert listed(capsys)[0]["requests"] == 2


def test_only_recordings_are_listed(tmp_path, capsys):
    real = recording("real")
    folder = resources.recordings()
    (folder / "notes.txt").write_text("mine")
    (folder / "fake.ctxrec").write_text("no recording")
    (folder / "link.ctxrec").symlink_to(real)
    (folder / "folder.ctxrec").mkdir()
    (folder / "copy.bak").write_bytes(real.read_bytes())
    assert [each["path"] for each in listed(capsys)] == [str(real)]
    assert main(["recordings", "--keep", "0", "--yes"]) == 0
    assert names() == {"notes", "fake", "link", "folder", "copy"}
    assert tmp_path.exists()


def test_a_damaged_recording_is_listed_too(capsys):
    path = recording("torn", bodies=(b"{}", b"{}"))
    path.write_bytes(path.read_bytes()[:-20])
    assert listed(capsys)[0]["requests"] == 2


def test_bodies_and_replies_are_not_read_to_list_a_recording(capsys, monkeypatch):
    path = recording("big", bodies=(os.urandom(1_000_000), b"", os.urandom(1_000_000)))
    writer = Writer(path, Meta(NOW))
    writer.write(Chunk(1, NOW, 0, bytes(3_000_000)))
    writer.write(Request(4, NOW, "GET", "/v1/responses", "https://h"))
    writer.write(Message(5, 4, NOW, "client", "text", b'{"type":"response.create"}', "/v1/responses"))
    writer.write(Message(6, 4, NOW, "client", "text", b"hello", "/v1/responses"))
    writer.close()
    (expected,) = listed(capsys)
    assert (expected["requests"], expected["calls"], expected["sent"]) == (5, 3, 2_000_026)
    monkeypatch.setattr("ctxscope.capture.record.Payload.read", None)
    assert listed(capsys) == [expected]


def test_no_folder_and_an_empty_one_hold_none(capsys):
    assert listed(capsys) == []
    resources.recordings().mkdir(parents=True)
    assert main(["recordings"]) == 0
    out, err = capsys.readouterr()
    assert (out, err) == ("", f"ctxscope: no recordings in {resources.recordings()}\n")


# --- what would go ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("older_than", "keep", "going"),
    [
        (None, None, []),
        (5 * DAY, None, ["d6", "d9"]),
        (None, 3, ["d6", "d9"]),
        (None, 0, ["d0", "d3", "d4", "d6", "d9"]),
        (5 * DAY, 4, ["d9"]),  # one rule keeps what the other lets go
        (DAY, 9, []),
        (0.0, None, ["d3", "d4", "d6", "d9"]),
    ],
)
def test_what_age_and_number_let_go(older_than, keep, going):
    rows = [
        listing.Listed(
            Path(f"d{days}"), NOW - days * DAY, 1, live=False, agent="", source="", requests=0, calls=0, sent=0
        )
        for days in (0, 3, 4, 6, 9)
    ]
    assert [str(each.path) for each in listing.outdated(rows, NOW, older_than, keep)] == going


def test_what_is_being_written_never_goes(capsys):
    recording("old", days=40)
    path = recording("live", days=60)
    writer = Writer(path, Meta(NOW))
    try:
        os.utime(path, (NOW - 60 * DAY,) * 2)
        assert main(["recordings", "--older-than", "30d", "--yes"]) == 0
        assert names() == {"live"}
        assert main(["recordings", "--keep", "0", "--yes"]) == 0
        assert names() == {"live"}
    finally:
        writer.close()
    assert "nothing to remove: all 1 recordings stay" in capsys.readouterr().err


def test_a_writer_that_comes_meanwhile_is_noticed(capsys, monkeypatch):
    path = recording("a", days=9)
    writers = []

    def late(*_args):
        writers.append(Writer(path, Meta(NOW)))
        return True

    monkeypatch.setattr("ctxscope.cli.recordings._agreed", late)
    try:
        assert main(["recordings", "--keep", "0"]) == 0
    finally:
        writers[0].close()
    assert names() == {"a"}
    assert f"{path}: is being written now; left" in capsys.readouterr().err


@pytest.mark.parametrize("words", [["--older-than", "30"], ["--older-than", "x"], ["--keep", "-1"], ["--keep", "few"]])
def test_an_age_or_a_number_that_is_none_is_refused(words, capsys):
    recording("a", days=90)
    with pytest.raises(SystemExit) as stopped:
        main(["recordings", *words, "--yes"])
    assert stopped.value.code == 2
    assert "expected a number" in capsys.readouterr().err
    assert names() == {"a"}


def test_pruning_without_a_rule_removes_nothing(capsys):
    recording("a", days=900)
    assert main(["recordings", "--prune", "--yes"]) == 2
    assert "expected --older-than AGE or --keep N with it" in capsys.readouterr().err
    assert names() == {"a"}


# --- asking ----------------------------------------------------------------------------------------------------------


def on_a_terminal(answer: bytes, *words: str) -> tuple[int, str, str]:
    """Exit code, stdout, and what the terminal showed, of the program asked on a terminal."""
    ours, theirs = pty.openpty()
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    program = subprocess.Popen(
        [sys.executable, "-m", "ctxscope", "recordings", *words],
        stdin=theirs,
        stdout=subprocess.PIPE,
        stderr=theirs,
        env=env,
        start_new_session=True,
    )
    os.close(theirs)
    try:
        shown = _shown_until(ours, b"[y/N] ")
        os.write(ours, answer)
        out, _ = program.communicate(timeout=PATIENCE)
        shown += _rest(ours)
    finally:
        program.kill()
        program.wait()
        os.close(ours)
    return program.returncode, out.decode(), shown.decode()


def _shown_until(terminal: int, words: bytes) -> bytes:
    shown = b""
    while words not in shown:
        ready, _, _ = select.select([terminal], [], [], PATIENCE)
        assert ready, shown
        shown += os.read(terminal, 4096)
    return shown


def _rest(terminal: int) -> bytes:
    shown = b""
    while select.select([terminal], [], [], 0)[0]:
        try:
            data = os.read(terminal, 4096)
        except OSError:  # how Linux tells that the other side is closed
            break
        if not data:
            break
        shown += data
    return shown


@pytest.mark.parametrize("answer", [b"y\n", b"YES\n"])
def test_who_agrees_removes_what_was_shown(answer):
    recording("old", days=40)
    recording("new", days=1)
    code, out, shown = on_a_terminal(answer, "--prune", "--older-than", "30d")
    assert code == 0
    assert "old.ctxrec" in out
    assert "new.ctxrec" not in out
    assert "ctxscope: remove 1 of 2 recordings, " in shown
    assert "removed 1 recordings" in shown
    assert names() == {"new"}


@pytest.mark.parametrize("answer", [b"n\n", b"\n", b"yep\n", b"\x04"])
def test_anything_else_removes_nothing(answer):
    recording("old", days=40)
    code, _, shown = on_a_terminal(answer, "--keep", "0")
    assert code == 0
    assert "removed nothing" in shown
    assert names() == {"old"}


def test_without_a_terminal_nobody_is_asked_and_nothing_goes(capsys, monkeypatch):
    recording("old", days=40)
    with Path(os.devnull).open() as nothing:
        monkeypatch.setattr("sys.stdin", nothing)
        assert main(["recordings", "--older-than", "30d"]) == 2
    out, err = capsys.readouterr()
    assert "old.ctxrec" in out
    assert "1 of 1 recordings" in err
    assert "there is no terminal to ask on; expected one, or --yes" in err
    assert names() == {"old"}


def test_yes_removes_without_asking(capsys):
    recording("old", days=40)
    recording("new", days=1)
    assert [each["path"] for each in listed(capsys, "--keep", "1", "--yes")] == [
        str(resources.recordings() / "old.ctxrec")
    ]
    assert names() == {"new"}
