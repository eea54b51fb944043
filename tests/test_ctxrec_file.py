"""The file of a recording: which files are taken for one, what is done to others, and who else asks for it."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from ctxscope.capture import listing, record_file
from ctxscope.capture.events import Chunk, End, Event, Head, Meta, Request
from ctxscope.capture.record import spell
from ctxscope.capture.writer import Writer
from ctxscope.model import CtxscopeError
from tests.ctxrec_events import META, UPSTREAM, all_shown, read, request, session, write

fcntl = pytest.importorskip("fcntl", reason="locks")


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


# --- what it ends in --------------------------------------------------------------------------------------------------


def test_a_recording_inside_a_torn_reply_is_cut_with_it(tmp_path: Path):
    inner = write(tmp_path / "inner.ctxrec", session(), Meta(5.0, agent="other")).read_bytes()
    events: list[Event] = [
        request(1, b"{}"),
        Head(1, 1001.0, 200),
        Chunk(1, 1001.1, 0, b"\n" + inner + bytes(900)),
        End(1, 1002.0),
    ]
    data = write(tmp_path / "a.ctxrec", events).read_bytes()
    whole = all_shown(read(tmp_path / "a.ctxrec")[1])
    path = tmp_path / "torn.ctxrec"
    for cut in (data.index(inner) + len(inner) // 2, data.index(inner) + len(inner) + 5):
        path.write_bytes(data[:cut])
        recording, found = read(path)
        assert {n: e.response() for n, e in found.items()} == {1: b""}
        assert [meta.agent for meta in recording._contents.metas] == ["pi"]  # type: ignore[attr-defined]
        with path.open("ab") as file:
            file.write(data[cut:])
        assert {e.n: e.response() for e in recording.poll()} == {1: whole[1][6]}
        path.write_bytes(data[:cut])
        write(path, events)
        assert all_shown(read(path)[1]) == whole
        assert b'"agent":"other"' not in path.read_bytes()[: data.index(inner)]


# --- what it is -------------------------------------------------------------------------------------------------------


def test_a_pipe_is_refused_at_once_and_left_as_it_is(tmp_path: Path):
    os.mkfifo(tmp_path / "pipe", 0o644)
    (tmp_path / "link.ctxrec").symlink_to("pipe")
    before = mode(tmp_path / "pipe")
    for name in ("pipe", "link.ctxrec"):
        with pytest.raises(CtxscopeError, match=rf"{name}: found no regular file; expected none, or a \.ctxrec"):
            Writer(tmp_path / name, META)
    assert mode(tmp_path / "pipe") == before != 0o600


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("notes.txt", b"some notes\n"),
        ("log.jsonl", b'{"v":1,"t":"event","n":7}\n{"v":1,"t":"event","n":8}\n'),
        ("notes.txt", b"copied from a recording:\n" + spell("meta", {"ts": 1.0}) + b"and that was it\n"),
    ],
)
def test_another_s_file_keeps_its_bytes_and_its_mode(tmp_path: Path, name: str, data: bytes):
    path = tmp_path / name
    path.write_bytes(data)
    path.chmod(0o644)
    with pytest.raises(CtxscopeError, match="found a file that is no recording"):
        Writer(path, META)
    assert (path.read_bytes(), mode(path)) == (data, 0o644)


def test_a_recording_that_others_could_read_is_private_again(tmp_path: Path):
    path = write(tmp_path / "a.ctxrec", session())
    path.chmod(0o644)
    write(path, ())
    assert mode(path) == 0o600


# --- who else asks for it ---------------------------------------------------------------------------------------------


def test_a_writer_waits_for_who_only_asks_whether_there_is_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path, waits = write(tmp_path / "a.ctxrec", session()), list[float]()
    with path.open("rb") as asking:
        fcntl.flock(asking, fcntl.LOCK_SH | fcntl.LOCK_NB)

        def wait(seconds: float) -> None:
            waits.append(seconds)
            if len(waits) == 3:
                fcntl.flock(asking, fcntl.LOCK_UN)

        monkeypatch.setattr(record_file.time, "sleep", wait)
        write(path, ())
        assert len(waits) == 3
        fcntl.flock(asking, fcntl.LOCK_SH | fcntl.LOCK_NB)
        waits.clear()
        monkeypatch.setattr(record_file.time, "sleep", waits.append)
        with pytest.raises(CtxscopeError, match="another process is writing this recording"):
            Writer(path, META)
        assert sum(waits) == pytest.approx(0.2)


def test_who_asks_at_the_same_time_is_no_writer(tmp_path: Path):
    path = write(tmp_path / "a.ctxrec", session())
    with path.open("rb") as asking:
        fcntl.flock(asking, fcntl.LOCK_SH | fcntl.LOCK_NB)
        assert not listing.is_live(path)
    writer = Writer(path, META)
    try:
        assert listing.is_live(path)
    finally:
        writer.close()


def test_writers_given_one_salt_give_a_secret_one_hash(tmp_path: Path):
    path, salt = tmp_path / "a.ctxrec", b"0123456789abcdef"
    for n in (1, 2, 3):
        writer = Writer(path, META, salt=salt if n < 3 else None)
        writer.write(Request(n, 1.0, "GET", "/x?key=hunter2", UPSTREAM, (("authorization", "hunter2"),)))
        writer.close()
    first, second, other = (dict(e.headers)["authorization"] for e in read(path)[1].values())
    assert first == second != other
    assert salt not in path.read_bytes()
    assert salt.hex().encode() not in path.read_bytes()
