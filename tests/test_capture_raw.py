"""Raw folders: finished, growing and damaged."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

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


@pytest.mark.parametrize(
    ("bad", "expected"),
    [
        (b'{"n":1e400,"t":1}', "a whole number as n"),
        (b'{"n":1.5,"t":1}', "a whole number as n"),
        (b'{"n":true,"t":1}', "a whole number as n"),
        (b'{"n":-1,"t":1}', "a whole number as n"),
        (b'{"n":99999999999999999999,"t":1}', "a whole number as n"),
        (b'{"n":"x","t":1}', "a whole number as n"),
        (b'{"n":[1],"t":1}', "a whole number as n"),
        (b'{"n":1,"t":1700000000250}', "seconds since the epoch as t"),
        (b'{"n":1,"t":NaN}', "seconds since the epoch as t"),
        (b'{"n":1,"t":1e300}', "seconds since the epoch as t"),
        (b'{"n":1,"t":1e400}', "seconds since the epoch as t"),
        (b'{"n":1,"t":-1}', "seconds since the epoch as t"),
        (b'{"n":1,"t":null}', "seconds since the epoch as t"),
        (b'{"n":1,"t":true}', "seconds since the epoch as t"),
        (b"[]", "a JSON object with n, t, path"),
        (b'{"n":1', "a JSON object with n, t, path"),
        (b"\xff\xfe", "a JSON object with n, t, path"),
        (b"[" * 100_000, "a JSON object with n, t, path"),
    ],
)
def test_whatever_a_bad_line_holds_it_is_told_by_file_and_line(tmp_path: Path, bad: bytes, expected: str):
    for n in (2, 3):
        (tmp_path / f"{n:04d}.req").write_bytes(b"{}")
    recording = open_recording(folder(tmp_path, line(2), bad + b"\n", line(3)), 0)
    assert [e.n for e in recording.poll()] == [2, 3]
    assert recording.notices == (f"{tmp_path / 'index.jsonl'} line 2: not an exchange; expected {expected}",)


def test_many_bad_lines_are_one_notice(tmp_path: Path):
    (tmp_path / "0001.req").write_bytes(b"{}")
    recording = open_recording(folder(tmp_path, line(1), *[b'{"n":1,"t":-1}\n'] * 30), 0)
    assert [e.n for e in recording.poll()] == [1]
    (told,) = recording.notices
    assert "line 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13 and 18 more: not an exchange" in told


def test_odd_values_beside_number_and_time_are_unknown(tmp_path: Path):
    (tmp_path / "0001.req").write_bytes(b"{}")
    odd = {"method": None, "path": 7, "headers": [1], "status": True, "t_first": float("nan"), "t_end": 1e300}
    (exchange,) = open_recording(folder(tmp_path, line(1, **odd)), 0).poll()
    assert (exchange.method, exchange.path, exchange.headers) == ("POST", "", {})
    assert (exchange.status, exchange.first_byte, exchange.end) == (None, None, None)


def test_a_body_that_cannot_be_read_is_told_and_counts_as_empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "0001.req").write_bytes(b"{}")
    (tmp_path / "0001.res").mkdir()
    (tmp_path / "0002.req").write_bytes(b"{}")
    real = io.open

    def closed(file, *words, **options):
        if str(file).endswith("0002.req"):
            raise PermissionError(13, "Permission denied")
        return real(file, *words, **options)

    monkeypatch.setattr(io, "open", closed)
    recording = open_recording(folder(tmp_path, line(1), line(2)), 0)
    first, second = recording.poll()
    assert (first.response_bytes, second.request()) == (None, b"")
    assert recording.notices == (f"{tmp_path / '0002.req'}: cannot be read: Permission denied",)
    assert recording.poll() == []
    assert "cannot be read" in recording.notices[0]


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
