"""The recorder beside the traffic: whatever becomes of the process that writes, events are taken and nothing waits."""

from __future__ import annotations

import os
import random
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from ctxscope import capture
from ctxscope.capture.events import Chunk, End, Event, Head, Meta, Request
from ctxscope.capture.recorder import Recorder

BODY = b'{"model":"m","max_tokens":5,"messages":[{"role":"user","content":"hello, number %d"}]}'


def exchange(n: int) -> Iterator[Event]:
    at = 1_700_000_000.0 + n
    yield Request(n, at, "POST", "/v1/messages", "https://models.example", body=BODY % n)
    yield Head(n, at + 0.1, 200, "OK", (("content-type", "application/json"),))
    yield Chunk(n, at + 0.2, 0, b'{"id":"msg_%d"}' % n)
    yield End(n, at + 0.2)


class Told(list[str]):
    """What the recorder said, and a way to wait for it."""

    def __init__(self) -> None:
        super().__init__()
        self.some = threading.Event()

    def __call__(self, words: str) -> None:
        self.append(words)
        self.some.set()


def bodies(path: Path) -> dict[int, tuple[bytes, bytes]]:
    recording = capture.open_recording(path, 0)
    return {e.n: (e.request(), e.response()) for e in recording.poll()}


def wait_for(recorder: Recorder, requests: int) -> None:
    with recorder._changed:
        assert recorder._changed.wait_for(lambda: recorder.stored.requests >= requests, 30)


def test_what_was_taken_is_stored_when_it_closes(tmp_path):
    told, path = Told(), tmp_path / "new" / "a.ctxrec"
    recorder = Recorder(path, Meta(1.0, agent="pi"), told)
    for n in range(1, 31):
        for event in exchange(n):
            recorder(event)
    stored = recorder.close()
    assert bodies(path) == {n: (BODY % n, b'{"id":"msg_%d"}' % n) for n in range(1, 31)}
    assert (stored.calls, stored.requests, stored.lost, told) == (30, 30, 0, [])
    assert stored.sent == sum(len(BODY % n) for n in range(1, 31))
    assert stored.stored == path.stat().st_size
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700


def test_a_killed_writer_is_followed_by_another_and_nothing_is_lost(tmp_path):
    told, path = Told(), tmp_path / "a.ctxrec"
    recorder = Recorder(path, Meta(1.0), told)
    for n in range(1, 101):
        for event in exchange(n):
            recorder(event)
        if n % 25 == 0:
            wait_for(recorder, n - 24)
            with recorder._changed:
                if recorder._writer is not None:
                    os.kill(recorder._writer.pid, signal.SIGKILL)
    stored = recorder.close()
    assert bodies(path) == {n: (BODY % n, b'{"id":"msg_%d"}' % n) for n in range(1, 101)}
    assert (stored.lost, told) == (0, [])


def test_killed_at_random_moments_it_loses_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr("ctxscope.capture.recorder.PAUSE_SECONDS", 0)
    moments, told, path = random.Random(50), Told(), tmp_path / "a.ctxrec"
    recorder = Recorder(path, Meta(1.0), told)
    n = killed = 0
    while killed < 50:
        for _ in range(moments.randrange(1, 4)):
            n += 1
            for event in exchange(n):
                recorder(event)
        if moments.random() < 0.5:  # sometimes in the middle of the work, sometimes when all of it is done
            wait_for(recorder, n)
        with recorder._changed:
            writer = recorder._writer
            if writer is not None and writer.poll() is None:
                os.kill(writer.pid, signal.SIGKILL)
                killed += 1
            acknowledged = recorder.stored.requests
        stored = bodies(path) if path.exists() else {}
        assert len(stored) >= acknowledged
        with recorder._changed:
            assert recorder._changed.wait_for(lambda dead=writer: recorder._writer not in (None, dead), 30)
    assert recorder.close().lost == 0
    assert bodies(path) == {i: (BODY % i, b'{"id":"msg_%d"}' % i) for i in range(1, n + 1)}
    assert told == []


def test_an_event_that_writers_die_of_is_passed_over_and_told(tmp_path, monkeypatch):
    monkeypatch.setattr("ctxscope.capture.recorder._START", _START_CHOKING)
    told, path = Told(), tmp_path / "a.ctxrec"
    recorder = Recorder(path, Meta(1.0), told)
    for n in (1, 2, 3):
        for event in exchange(n):
            recorder(event)
    assert recorder.close().lost == 1
    recording = capture.open_recording(path, 0)
    assert [e.n for e in recording.poll()] == [1, 3]
    assert any("1 events could not be recorded" in notice for notice in recording.notices)


_START_CHOKING = (
    "import sys; sys.path[:] = sys.argv[2:]; from ctxscope.capture import recording_process as p\n"
    "take = p._Work.take\n"
    "def choke(self, event):\n"
    "    if getattr(event, 'n', 0) == 2 and isinstance(event, p.Request): raise RuntimeError('chokes')\n"
    "    take(self, event)\n"
    "p._Work.take = choke; p.main()"
)


def test_a_part_of_a_reply_that_a_killed_writer_held_back_is_not_lost(tmp_path):
    path = tmp_path / "a.ctxrec"
    recorder = Recorder(path, Meta(1.0), Told())
    for event in list(exchange(1))[:3]:
        recorder(event)
    wait_for(recorder, 1)
    with recorder._changed:
        assert recorder._writer is not None
        os.kill(recorder._writer.pid, signal.SIGKILL)
    assert recorder.close().lost == 0
    assert bodies(path) == {1: (BODY % 1, b'{"id":"msg_1"}')}


def test_a_place_that_cannot_be_written_costs_the_events_and_is_said_once(tmp_path):
    told, folder = Told(), tmp_path / "folder"
    folder.write_bytes(b"a file where the folder should be")
    recorder = Recorder(folder / "a.ctxrec", Meta(1.0), told)
    for n in range(1, 4):
        for event in exchange(n):
            recorder(event)
    stored = recorder.close()
    assert stored.lost == 12
    assert len(told) == 1
    assert "a.ctxrec" in told[0]
    assert "unrecorded" in told[0]


def test_once_there_is_room_again_recording_goes_on_and_tells_of_the_gap(tmp_path, monkeypatch):
    monkeypatch.setattr("ctxscope.capture.recorder._START", _START_WITHOUT_PAUSE)
    told, folder = Told(), tmp_path / "folder"
    folder.write_bytes(b"")
    recorder = Recorder(folder / "a.ctxrec", Meta(1.0), told)
    for event in exchange(1):
        recorder(event)
    assert told.some.wait(30)
    with recorder._changed:
        assert recorder._changed.wait_for(lambda: recorder.stored.lost == 4, 30)
    folder.unlink()
    for event in exchange(2):
        recorder(event)
    assert recorder.close().lost == 4
    recording = capture.open_recording(folder / "a.ctxrec", 0)
    assert [e.n for e in recording.poll()] == [2]
    assert any("4 events could not be recorded" in notice for notice in recording.notices)


_START_WITHOUT_PAUSE = (
    "import sys; sys.path[:] = sys.argv[2:]; from ctxscope.capture import recording_process as p; "
    "p.REOPEN_SECONDS = 0; p.main()"
)


def test_a_folder_full_of_modules_lends_none_of_them(tmp_path, monkeypatch):
    (tmp_path / "json.py").write_text("raise SystemExit", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    recorder = Recorder(tmp_path / "a.ctxrec", Meta(1.0), Told())
    for event in exchange(1):
        recorder(event)
    assert recorder.close().requests == 1


def test_a_module_that_cannot_run_is_given_up_and_all_is_counted(tmp_path):
    told = Told()
    recorder = Recorder(tmp_path / "a.ctxrec", Meta(1.0), told, process="ctxscope.no_such_module")
    for event in exchange(1):
        recorder(event)
    stored = recorder.close()
    assert stored.lost == 4
    assert len(told) == 1


@pytest.mark.parametrize("late", [False, True])
def test_what_does_not_fit_in_memory_is_lost_rather_than_waited_for(tmp_path, monkeypatch, late):
    monkeypatch.setattr("ctxscope.capture.recorder.MOST_WAITING", 150)
    told = Told()
    recorder = Recorder(tmp_path / "a.ctxrec", Meta(1.0), told)
    for event in exchange(1):
        recorder(event)
    if late:
        monkeypatch.setattr("ctxscope.capture.recorder.MOST_WAITING", 10**6)
        for event in exchange(2):
            recorder(event)
    assert recorder.close().lost == 4
    recording = capture.open_recording(tmp_path / "a.ctxrec", 0)
    assert [e.n for e in recording.poll()] == ([2] if late else [])
