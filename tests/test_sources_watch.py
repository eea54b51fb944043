from __future__ import annotations

import threading

import pytest

from ctxscope.sources.watch import Watcher

LONG = 60.0
"""Seconds a test may wait for what happens at once; never reached unless something is broken."""
NEVER = 100 * LONG


@pytest.fixture(params=[NEVER, 0.05], ids=["events", "sweep"])
def watching(request, monkeypatch):
    """A watcher that must rely on one of its two means alone."""
    if request.param != NEVER:
        monkeypatch.setattr("watchfiles.watch", lambda *_, **__: iter(()))
    opened = []

    def watch(*paths):
        opened.append(Watcher(paths, sweep=request.param))
        return opened[-1]

    yield watch
    for watcher in opened:
        watcher.close()


def test_an_append_ends_the_wait(tmp_path, watching):
    path, other = tmp_path / "log.jsonl", tmp_path / "other.jsonl"
    path.touch()
    other.touch()
    watcher = watching(path, other)
    for content in (b"one\n", b"one\ntwo\n"):  # the second time it surely listens already
        path.write_bytes(content)
        assert watcher.wait(LONG) == {path}


def test_a_file_that_does_not_exist_yet_in_a_folder_that_does_not_either(tmp_path, watching):
    path, other = tmp_path / "a" / "b" / "log.jsonl", tmp_path / "other.jsonl"
    watcher = watching(path, other)
    other.touch()
    assert watcher.wait(LONG) == {other}
    path.parent.mkdir(parents=True)
    path.write_bytes(b"one\n")
    # The touch above may be told twice; what counts is that the new file is told.
    assert any(path in (watcher.wait(LONG) or ()) for _ in range(3))


def test_the_wal_of_a_database_counts_as_the_database(tmp_path, watching):
    path = tmp_path / "state.db"
    path.touch()
    watcher = watching(path)
    for content in (b"frames", b"more frames"):
        (tmp_path / "state.db-wal").write_bytes(content)
        assert watcher.wait(LONG) == {path}


def test_a_new_file_in_a_watched_folder(tmp_path, watching):
    watcher = watching(tmp_path / "wire")
    (tmp_path / "wire").mkdir()
    watcher.wait(LONG)
    for name in ("0001.req", "0002.req"):
        (tmp_path / "wire" / name).write_bytes(b"{}")
        assert watcher.wait(LONG) == {tmp_path / "wire"}


def test_a_path_added_later(tmp_path, watching):
    watcher = watching()
    (tmp_path / "sub").mkdir()
    watcher.add([tmp_path / "sub" / "log.jsonl"])
    (tmp_path / "sub" / "log.jsonl").touch()
    assert watcher.wait(LONG) == {tmp_path / "sub" / "log.jsonl"}


def test_wake_and_close_from_another_thread_end_a_wait(tmp_path, watching):
    watcher = watching(tmp_path / "log.jsonl")
    answers, woken = [], threading.Event()

    def wait_twice():
        answers.append(watcher.wait(NEVER))
        woken.set()
        answers.append(watcher.wait(NEVER))

    waiting = threading.Thread(target=wait_twice)
    waiting.start()
    watcher.wake()
    assert woken.wait(LONG)
    watcher.close()
    waiting.join(LONG)
    assert answers == [set(), None]
    assert watcher.wait(LONG) is None


def test_a_quiet_wait_ends_empty(tmp_path, watching):
    assert watching(tmp_path).wait(0) == set()
