from __future__ import annotations

import threading

import pytest

from ctxscope.sources.watch import Watcher

LONG = 60.0
"""Seconds a test may wait for what happens at once; never reached unless something is broken."""


@pytest.fixture(params=[LONG, 0.05], ids=["events", "sweep"])
def watching(request, monkeypatch):
    """A watcher that must rely on one of its two means alone."""
    if request.param != LONG:
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
    path.write_bytes(b"one\n")
    assert watcher.wait(LONG) == {path}


def test_a_file_that_does_not_exist_yet_in_a_folder_that_does_not_either(tmp_path, watching):
    path = tmp_path / "a" / "b" / "log.jsonl"
    watcher = watching(path)
    path.parent.mkdir(parents=True)
    path.write_bytes(b"one\n")
    assert watcher.wait(LONG) == {path}


def test_the_wal_of_a_database_counts_as_the_database(tmp_path, watching):
    path = tmp_path / "state.db"
    path.touch()
    watcher = watching(path)
    (tmp_path / "state.db-wal").write_bytes(b"frames")
    assert watcher.wait(LONG) == {path}


def test_a_new_file_in_a_watched_folder(tmp_path, watching):
    watcher = watching(tmp_path / "wire")
    (tmp_path / "wire").mkdir()
    found = watcher.wait(LONG)
    (tmp_path / "wire" / "0001.req").write_bytes(b"{}")
    assert found | watcher.wait(LONG) == {tmp_path / "wire"}


def test_a_path_added_later(tmp_path, watching):
    watcher = watching()
    (tmp_path / "sub").mkdir()
    watcher.add([tmp_path / "sub" / "log.jsonl"])
    (tmp_path / "sub" / "log.jsonl").touch()
    assert watcher.wait(LONG) == {tmp_path / "sub" / "log.jsonl"}


def test_wake_and_close_from_another_thread_end_a_wait(tmp_path, watching):
    watcher = watching(tmp_path / "log.jsonl")
    answers = []

    def wait_twice():
        answers.append(watcher.wait(LONG))
        answers.append(watcher.wait(LONG))

    waiting = threading.Thread(target=wait_twice)
    waiting.start()
    watcher.wake()
    while not answers and waiting.is_alive():
        waiting.join(0.001)
    watcher.close()
    waiting.join(LONG)
    assert answers == [set(), None]
    assert watcher.wait(LONG) is None


def test_a_quiet_wait_ends_empty(tmp_path, watching):
    assert watching(tmp_path).wait(0) == set()
