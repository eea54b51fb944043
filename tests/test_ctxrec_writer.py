"""The writer: what is in the file when, what happens when the disk is full, who else may write or read it."""

from __future__ import annotations

import errno
import gzip
import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from ctxscope.capture import record_file
from ctxscope.capture.events import Chunk, End, Event, Head, Loss, Message, Meta
from ctxscope.capture.record import Record, records
from ctxscope.capture.writer import NotStoredError, Writer
from ctxscope.model import CtxscopeError
from tests.conftest import ROOT
from tests.ctxrec_events import META, all_shown, body, is_harmed, read, request, session, write


@contextmanager
def writing(path: Path, meta: Meta = META, **how: Any) -> Iterator[Writer]:
    writer = Writer(path, meta, **how)
    try:
        yield writer
    finally:
        writer.close()


def kinds(path: Path) -> list[str]:
    with path.open("rb") as file:
        return [r.kind for r in records(file, 0, path.stat().st_size) if isinstance(r, Record)]


# --- what is in the file when -----------------------------------------------------------------------------------------


def test_chunks_wait_for_a_second_of_theirs_or_the_end(tmp_path: Path):
    path = tmp_path / "a.ctxrec"
    with writing(path) as writer:
        writer.write(request(1, b"{}"))
        for n in range(11):
            writer.write(Chunk(1, 1001 + n / 10, n, b"x"))
            assert writer.settled == (1 if n < 10 else 12)
        assert kinds(path) == ["meta", "req", "res", "chunks"]
        writer.write(Chunk(1, 1003.0, 11, b"y"))
        assert kinds(path)[4:] == []
        writer.write(End(1, 1003.1))
        assert kinds(path)[4:] == ["res", "chunks", "end"]
        assert writer.settled == 14
    assert read(path)[1][1].response() == b"x" * 11 + b"y"


def test_chunks_wait_no_longer_than_a_megabyte_of_them(tmp_path: Path):
    path = tmp_path / "a.ctxrec"
    with writing(path) as writer:
        writer.write(request(1, b"{}"))
        for n in range(3):
            writer.write(Chunk(1, 1001.0, n * 400_000, bytes(400_000)))
        assert (writer.settled, kinds(path)[2:]) == (4, ["res", "chunks"])


def test_what_waits_is_written_with_any_later_event_on_demand_and_at_the_end(tmp_path: Path):
    path = tmp_path / "a.ctxrec"
    with writing(path) as writer:
        for n in (1, 2, 3):
            writer.write(request(n, b"{}"))
            writer.write(Chunk(n, 1010.0 + n / 2, 0, b"x"))
        assert (writer.settled, kinds(path).count("res")) == (3, 1)
        writer.write(Head(9, 1012.0, 200))
        assert (writer.settled, kinds(path).count("res")) == (5, 2)
        writer.flush(1011.4)
        assert writer.settled == 5
        writer.flush()
        assert (writer.settled, kinds(path).count("res")) == (7, 3)
        writer.write(Chunk(3, 1014.0, 1, b"y"))
    assert read(path)[1][3].response() == b"xy"
    assert all(e.end is None for e in read(path)[1].values())


def test_each_record_is_one_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    written: list[bytes] = []
    real = os.write
    monkeypatch.setattr(record_file.os, "write", lambda fd, data: written.append(bytes(data)) or real(fd, data))
    path = write(tmp_path / "a.ctxrec", session())
    assert len(written) == len(kinds(path))
    assert b"".join(written) == path.read_bytes()


def test_it_can_be_searched_as_text(tmp_path: Path):
    path = write(tmp_path / "a.ctxrec", session())
    lines = path.read_bytes().split(b"\n")
    assert any(b"turn 2: the tide of day 2" in line for line in lines)
    assert sum(line.startswith(b'{"v":1,"t":"req","id":3,') for line in lines) == 1


def test_growing_bodies_cost_what_is_new(tmp_path: Path):
    with writing(tmp_path / "a.ctxrec") as writer:
        for n in range(1, 60):
            before = writer.stored
            writer.write(request(n, body(n)))
            assert n == 1 or writer.stored - before < 800
    assert len(body(59)) > 8000


def test_a_packed_body_is_stored_once_where_it_can_be_packed_again(tmp_path: Path):
    data = os.urandom(20_000).hex().encode()
    like_ours, odd = gzip.compress(data, 6), gzip.compress(data[:100]) + gzip.compress(data[100:])
    sizes = []
    for n, sent in enumerate((like_ours, odd)):
        path = tmp_path / f"{n}.ctxrec"
        write(path, [request(1, sent, headers=(("content-encoding", "gzip"),))])
        recording, found = read(path)
        assert (found[1].request(), recording.as_sent(1)) == (data, sent)
        sizes.append(path.stat().st_size)
    assert sizes[0] < len(data) + 600
    assert sizes[1] > len(data) + len(odd)


def test_packing_again_is_given_up_where_it_never_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    tried: list[str] = []
    monkeypatch.setattr("ctxscope.capture.encodings.encode", lambda _d, recipe, _b: tried.append(recipe) or b"")
    write(
        tmp_path / "a.ctxrec",
        [request(n, gzip.compress(body(n)), headers=(("content-encoding", "gzip"),)) for n in range(1, 9)],
    )
    assert len(tried) == 9


def test_the_body_last_given_is_at_hand_decoded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    packed, odd = gzip.compress(body(2)), gzip.compress(body(2))[:-9]
    with writing(tmp_path / "a.ctxrec") as writer:
        assert writer.last_body is None
        for sent, expected in ((body(1), body(1)), (packed, body(2)), (odd, odd), (b"", b"")):
            writer.write(request(1, sent, headers=(("content-encoding", "gzip" if sent[:1] == b"\x1f" else ""),)))
            writer.write(Head(1, 1002.0, 200))
            assert writer.last_body == expected
        writer.write(Message(2, 1, 1003.0, "client", "text", b"hello"))
        writer.write(Message(2, 1, 1003.0, "server", "text", b"ahoy"))
        assert writer.last_body == b"hello"
        Disk(monkeypatch, 0)
        with pytest.raises(NotStoredError):
            writer.write(request(3, packed, headers=(("content-encoding", "gzip"),)))
        assert writer.last_body == body(2)


# --- when it cannot be written ----------------------------------------------------------------------------------------


class Disk:
    """A disk that takes ``left`` bytes more, a few at a time."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, left: int, most: int = 1 << 40) -> None:
        self.left, self.most = left, most
        self._write, self._truncate = os.write, os.ftruncate
        monkeypatch.setattr(record_file.os, "write", self.write)
        monkeypatch.setattr(record_file.os, "ftruncate", self.truncate)
        self.may_truncate = True

    def write(self, file: int, data: Any) -> int:
        if self.left <= 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        done = self._write(file, bytes(data[: min(self.left, self.most)]))
        self.left -= done
        return done

    def truncate(self, file: int, size: int) -> None:
        if not self.may_truncate:
            raise OSError(errno.EIO, "Input/output error")
        self._truncate(file, size)


def test_short_writes_are_continued(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    expected = write(tmp_path / "a.ctxrec", session())
    Disk(monkeypatch, 1 << 40, most=7)
    found = write(tmp_path / "b.ctxrec", session())
    assert all_shown(read(found)[1]) == all_shown(read(expected)[1])


@pytest.mark.parametrize("truncates", [True, False])
def test_on_a_full_disk_an_event_is_refused_and_the_file_stays_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, truncates: bool
):
    path = tmp_path / "a.ctxrec"
    size = write(tmp_path / "whole.ctxrec", session()).stat().st_size - write(path, ()).stat().st_size
    for left in range(0, size, 97):
        path.unlink()
        with monkeypatch.context() as patch, writing(path) as writer:
            disk = Disk(patch, left)
            disk.may_truncate = truncates
            refused = _give(writer, session())
            assert refused > 0
            assert not truncates or path.stat().st_size == writer.stored
            disk.left, disk.may_truncate = 1 << 40, True
            writer.write(Loss(1009.0, refused, "No space left on device"))
            for event in session():
                writer.write(event)
        recording, found = read(path)
        assert all_shown(found) == all_shown(read(tmp_path / "whole.ctxrec")[1])
        assert not is_harmed(recording)
        assert f": {refused + 2} events could not be recorded" in "\n".join(recording.notices)


def _give(writer: Writer, events: list[Event]) -> int:
    refused = 0
    for event in events:
        try:
            writer.write(event)
        except NotStoredError as error:
            refused += error.events
    return refused


def test_a_refused_chunk_takes_those_that_waited_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    with writing(tmp_path / "a.ctxrec") as writer:
        writer.write(request(1, b"{}"))
        disk = Disk(monkeypatch, 0)
        for n in range(3):
            writer.write(Chunk(1, 1001.0, n, b"x"))
        with pytest.raises(NotStoredError) as refused:
            writer.write(Chunk(1, 1003.0, 3, b"x"))
        assert refused.value.events == 4
        assert writer.settled == 5
        with pytest.raises(NotStoredError) as refused:
            writer.write(End(1, 1003.1))
        assert refused.value.events == 1
        disk.left = 1 << 40
        writer.write(End(1, 1003.1))
    _, found = read(tmp_path / "a.ctxrec")
    assert (found[1].response(), found[1].end) == (b"", 1003.1)


def test_a_body_that_was_refused_is_nobody_s_parent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    with writing(tmp_path / "a.ctxrec") as writer:
        writer.write(request(1, body(1)))
        disk = Disk(monkeypatch, 0)
        with pytest.raises(OSError, match="No space left"):
            writer.write(request(2, body(2)))
        disk.left = 1 << 40
        writer.write(request(3, body(3)))
    assert {n: e.request() for n, e in read(tmp_path / "a.ctxrec")[1].items()} == {1: body(1), 3: body(3)}


def test_a_recording_that_was_removed_takes_no_more(tmp_path: Path):
    path = tmp_path / "a.ctxrec"
    with writing(path) as writer:
        path.unlink()
        with pytest.raises(NotStoredError, match="the recording was removed"):
            writer.write(request(1, b"{}"))


def test_a_limit_on_the_file_s_size_is_an_error_like_any(tmp_path: Path):
    """The real thing once: the system itself refuses, in the middle of a write."""
    code = (
        "import resource, signal, sys\nfrom pathlib import Path\n"
        "from ctxscope.capture.events import Meta, Request\nfrom ctxscope.capture.writer import Writer\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\nresource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000))\n"
        "writer = Writer(Path(sys.argv[1]), Meta(1.0))\n"
        "try: writer.write(Request(1, 1.0, 'POST', '/', '', (), bytes(9000)))\n"
        "except OSError as error: print(error.strerror)\n"
        "writer.write(Request(2, 2.0, 'POST', '/', '', (), b'small'))\nwriter.close()\n"
    )
    path = tmp_path / "a.ctxrec"
    done = subprocess.run([sys.executable, "-c", code, path], cwd=ROOT, check=True, capture_output=True, text=True)
    assert done.stdout == "File too large\n"
    assert {n: e.request() for n, e in read(path)[1].items()} == {2: b"small"}


# --- who else --------------------------------------------------------------------------------------------------------


def test_nobody_else_may_read_it(tmp_path: Path):
    old = os.umask(0)
    try:
        path = write(tmp_path / "one" / "two" / "a.ctxrec", session())
        (tmp_path / "open.ctxrec").touch()
        write(tmp_path / "open.ctxrec", session())
    finally:
        os.umask(old)
    modes = [stat.S_IMODE(p.stat().st_mode) for p in (path, path.parent, path.parent.parent)]
    assert modes == [0o600, 0o700, 0o700]
    assert stat.S_IMODE((tmp_path / "open.ctxrec").stat().st_mode) == 0o600


def test_one_writer_a_file(tmp_path: Path):
    path = tmp_path / "a.ctxrec"
    with writing(path), pytest.raises(CtxscopeError, match=r"a\.ctxrec: another process is writing this recording"):
        Writer(path, META)
    with writing(path):
        pass


@pytest.mark.parametrize("data", [b"some notes\n", b'{"type":"session"}\n', b"\0"])
def test_a_file_that_is_no_recording_is_left_alone(tmp_path: Path, data: bytes):
    path = tmp_path / "notes.txt"
    path.write_bytes(data)
    with pytest.raises(CtxscopeError, match="found a file that is no recording"):
        Writer(path, META)
    assert path.read_bytes() == data


def test_what_cannot_be_opened_is_an_os_error(tmp_path: Path):
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match="Not a directory"):
        Writer(tmp_path / "file" / "a.ctxrec", META)
    with pytest.raises(IsADirectoryError):
        Writer(tmp_path, META)


def test_every_record_reaches_the_disk_where_that_is_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    synced: list[int] = []
    name = "fdatasync" if hasattr(os, "fdatasync") else "fsync"
    monkeypatch.setattr(record_file.os, name, synced.append)
    path = tmp_path / "a.ctxrec"
    with writing(path, sync=True) as writer:
        writer.write(request(1, b"{}"))
    assert len(synced) == len(kinds(path)) == 2


def test_it_brings_little_with_it():
    code = "import sys, ctxscope.capture.writer; print(sorted(m for m in sys.modules if '.' not in m))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, capture_output=True, text=True)
    heavy = {"aiohttp", "asyncio", "platformdirs", "textual", "rich", "tiktoken", "watchfiles", "brotli", "backports"}
    assert heavy & set(eval(done.stdout)) == set()  # noqa: S307 - of our own making
