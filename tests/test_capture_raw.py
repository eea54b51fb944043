"""Raw folders: finished, growing and damaged."""

from __future__ import annotations

import json
from pathlib import Path

from ctxscope.capture import is_recording, open_recording


def line(n: int, **more: object) -> bytes:
    return (
        json.dumps(
            {"n": n, "t": 1000.0 + n, "method": "POST", "path": "/v1/messages", "headers": {"Host": "h"}, **more}
        ).encode()
        + b"\n"
    )


def folder(tmp_path: Path, *lines: bytes) -> Path:
    (tmp_path / "index.jsonl").write_bytes(b"".join(lines))
    return tmp_path


def test_a_finished_folder_gives_its_exchanges_once(tmp_path: Path):
    where = folder(tmp_path, line(1, status=200), line(2))
    (where / "0001.req").write_bytes(b"{}")
    (where / "0001.res").write_bytes(b"data")
    (where / "0002.req").write_bytes(b"[]")
    recording = open_recording(where, 3)
    first, second = recording.poll()
    assert (first.recording, first.n, first.status, first.headers) == (3, 1, 200, {"host": "h"})
    assert (first.request(), first.response(), first.response_bytes) == (b"{}", b"data", 4)
    assert (second.request(), second.response(), second.response_bytes) == (b"[]", b"", None)
    assert recording.poll() == []
    assert recording.notices == ()


def test_a_line_waits_for_its_body_and_a_reply_that_grows_comes_again(tmp_path: Path):
    recording = open_recording(folder(tmp_path, line(1)), 0)
    assert recording.poll() == []
    assert "0001.req" in recording.notices[0]
    (tmp_path / "0001.req").write_bytes(b"{}")
    assert [e.response_bytes for e in recording.poll()] == [None]
    (tmp_path / "0001.res").write_bytes(b"one")
    assert [e.response_bytes for e in recording.poll()] == [3]
    (tmp_path / "0001.res").write_bytes(b"one two")
    assert [e.response() for e in recording.poll()] == [b"one two"]
    assert recording.notices == ()


def test_half_a_line_is_held_back(tmp_path: Path):
    whole = line(1)
    (tmp_path / "0001.req").write_bytes(b"{}")
    recording = open_recording(folder(tmp_path, whole[:20]), 0)
    assert recording.poll() == []
    assert recording.partial
    folder(tmp_path, whole)
    assert [e.n for e in recording.poll()] == [1]
    assert not recording.partial


def test_a_bad_line_is_named_and_the_rest_is_read(tmp_path: Path):
    (tmp_path / "0002.req").write_bytes(b"{}")
    recording = open_recording(folder(tmp_path, b'{"n": 1}\n', line(2)), 0)
    assert [e.n for e in recording.poll()] == [2]
    assert "line 1" in recording.notices[0]


def test_a_replaced_index_is_read_again(tmp_path: Path):
    (tmp_path / "0001.req").write_bytes(b"{}")
    (tmp_path / "0002.req").write_bytes(b"{}")
    recording = open_recording(folder(tmp_path, line(1)), 0)
    assert [e.n for e in recording.poll()] == [1]
    (tmp_path / "index.jsonl").unlink()
    folder(tmp_path, line(2))
    assert [e.n for e in recording.poll()] == [2]


def test_only_a_folder_with_an_index_of_exchanges_is_a_recording(tmp_path: Path):
    assert not is_recording(tmp_path)
    folder(tmp_path, b'{"type":"session"}\n')
    assert not is_recording(tmp_path)
    folder(tmp_path, line(1))
    assert is_recording(tmp_path)
