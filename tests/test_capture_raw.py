"""Raw folders: finished, growing and damaged."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from ctxscope.capture import Recording, is_recording, open_recording, raw, raw_index


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
        (b'{"n":1,"t":1700000000250}', "seconds since the epoch as t, which calls are put in order by"),
        (b'{"n":1,"t":NaN}', "seconds since the epoch as t, which calls are put in order by"),
        (b'{"n":1,"t":1e300}', "seconds since the epoch as t, which calls are put in order by"),
        (b'{"n":1,"t":1e400}', "seconds since the epoch as t, which calls are put in order by"),
        (b'{"n":1,"t":-1}', "seconds since the epoch as t, which calls are put in order by"),
        (b'{"n":1,"path":"/v1"}', "seconds since the epoch as t, which calls are put in order by"),
        (b'{"n":1,"t":null}', "seconds since the epoch as t, which calls are put in order by"),
        (b'{"n":1,"t":true}', "seconds since the epoch as t, which calls are put in order by"),
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
    assert recording.notices == (f"{tmp_path}: 0002.req cannot be read: Permission denied",)
    assert recording.poll() == []
    assert "cannot be read" in recording.notices[0]


def bodies(tmp_path: Path, *numbers: int) -> None:
    for n in numbers:
        for kind in ("req", "res"):
            (tmp_path / f"{n:04d}.{kind}").write_bytes(f"{kind} {n}".encode())


def told(recording: Recording) -> list[tuple[int, bytes, bytes]]:
    return [(e.n, e.request(), e.response()) for e in recording.poll()]


def whole(*numbers: int) -> list[tuple[int, bytes, bytes]]:
    return [(n, f"req {n}".encode(), f"res {n}".encode()) for n in numbers]


def test_what_is_missing_on_either_side_is_one_notice_each_with_all_names(tmp_path: Path):
    bodies(tmp_path, 1, 30, 31)
    (tmp_path / "00001.req").write_bytes(b"{}")  # not the name of exchange 1
    (tmp_path / "0003.res").write_bytes(b"a reply alone")
    recording = open_recording(folder(tmp_path, *map(line, range(1, 20))), 0)
    assert told(recording) == whole(1)
    names = ", ".join(f"{n:04d}.req" for n in range(2, 14))
    assert recording.notices == (
        f"{tmp_path}: found no {names} and 6 more, expected beside the lines of index.jsonl that name them",
        f"{tmp_path}: found 00001.req, 0030.req, 0030.res, 0031.req, 0031.res, which no line of index.jsonl names; left out",
    )


def test_half_a_last_line_is_told_for_as_long_as_it_is_half(tmp_path: Path):
    bodies(tmp_path, 1, 2)
    last = line(2)
    recording = open_recording(folder(tmp_path, line(1), last[:30]), 0)
    assert told(recording) == whole(1)
    half, unnamed = recording.notices
    assert half.startswith(f"{tmp_path / 'index.jsonl'}: found 30 bytes after line 1 that do not end in a line break")
    assert "0002.req, 0002.res" in unnamed
    assert recording.partial
    folder(tmp_path, line(1), last)
    assert told(recording) == whole(2)
    assert recording.notices == ()
    assert not recording.partial


def test_a_last_line_that_only_lacks_its_line_break_counts_and_comes_once(tmp_path: Path):
    bodies(tmp_path, 1, 2, 3)
    recording = open_recording(folder(tmp_path, line(1), line(2).rstrip()), 0)
    assert told(recording) == whole(1, 2)
    assert "0003.req" in " ".join(recording.notices)
    assert not recording.partial
    folder(tmp_path, line(1), line(2), line(3))
    assert told(recording) == whole(3)
    assert (recording.notices, recording.generation) == ((), 0)


def test_what_follows_a_line_without_its_line_break_may_spoil_it(tmp_path: Path):
    bodies(tmp_path, 1, 2)
    recording = open_recording(folder(tmp_path, line(1), line(2).rstrip()), 0)
    assert told(recording) == whole(1, 2)
    folder(tmp_path, line(1), line(2).rstrip() + b"}\n")
    assert told(recording) == whole(1)
    assert "line 2: not an exchange" in recording.notices[0]
    assert recording.generation == 1


def test_a_request_that_comes_before_its_line_is_told_only_until_then(tmp_path: Path):
    bodies(tmp_path, 1)
    recording = open_recording(folder(tmp_path, line(1)), 0)
    recording.poll()
    bodies(tmp_path, 2)
    assert recording.poll() == []
    assert "0002.req" in recording.notices[0]
    folder(tmp_path, line(1), line(2))
    assert told(recording) == whole(2)
    assert (recording.notices, recording.generation) == ((), 0)


def replaced(tmp_path: Path) -> None:
    bodies(tmp_path, 1)
    (tmp_path / "new.jsonl").write_bytes(line(1, path="/v1/other"))
    (tmp_path / "new.jsonl").replace(tmp_path / "index.jsonl")


def begun_anew(tmp_path: Path) -> None:
    for file in tmp_path.iterdir():
        file.unlink()
    bodies(tmp_path, 1, 2)
    folder(tmp_path, line(1, path="/v1/other"), line(2, path="/v1/other"))


def begun_anew_and_longer(tmp_path: Path) -> None:
    numbers = range(1, 12)
    bodies(tmp_path, *numbers)
    folder(tmp_path, line(1), *(line(n, path="/v1/other") for n in numbers))


def cut_short(tmp_path: Path) -> None:
    folder(tmp_path, line(1), line(2))


def rewritten_in_the_middle(tmp_path: Path) -> None:
    content = (tmp_path / "index.jsonl").read_bytes()
    (tmp_path / "index.jsonl").write_bytes(content.replace(b'"n": 4, "t"', b'"n": 4 ,"t"'))


def a_request_gone(tmp_path: Path) -> None:
    (tmp_path / "0002.req").unlink()


def a_request_rewritten(tmp_path: Path) -> None:
    (tmp_path / "0002.req").write_bytes(b"REQ 2")


def a_request_grown_behind(tmp_path: Path) -> None:
    (tmp_path / "0002.req").write_bytes(b"req 2 and more")


def a_reply_rewritten(tmp_path: Path) -> None:
    (tmp_path / "0002.res").write_bytes(b"RES 2")


def a_reply_cut_short(tmp_path: Path) -> None:
    (tmp_path / "0002.res").write_bytes(b"res")


def a_reply_gone(tmp_path: Path) -> None:
    (tmp_path / "0002.res").unlink()


REWRITES = (
    *(replaced, begun_anew, begun_anew_and_longer, cut_short, rewritten_in_the_middle),
    *(a_request_gone, a_request_rewritten, a_request_grown_behind, a_reply_rewritten, a_reply_cut_short, a_reply_gone),
)


@pytest.mark.parametrize("tick", [True, False], ids=["within one tick", "later"])
@pytest.mark.parametrize("rewrite", REWRITES)
def test_what_voids_exchanges_begins_a_generation_that_says_all_a_fresh_look_says(
    tmp_path: Path, rewrite: Callable[[Path], None], tick: bool, monkeypatch: pytest.MonkeyPatch
):
    for module in (raw, raw_index):
        monkeypatch.setattr(module, "is_racy", lambda _: tick)
    numbers = range(1, 9)
    bodies(tmp_path, *numbers)
    folder(tmp_path, *map(line, numbers))
    changed_at(tmp_path, 1.0)
    recording = open_recording(tmp_path, 0)
    assert told(recording) == whole(*numbers)
    assert recording.poll() == []
    rewrite(tmp_path)
    changed_at(tmp_path, 1.0 if tick else 2.0)
    found = told(recording)
    fresh = open_recording(tmp_path, 0)
    assert found == told(fresh)
    assert recording.generation == 1
    assert recording.notices == fresh.notices
    assert recording.poll() == []
    assert recording.generation == 1


def changed_at(tmp_path: Path, seconds: float) -> None:
    for file in tmp_path.iterdir():
        os.utime(file, (seconds, seconds))


def test_a_file_that_stays_as_it_is_once_it_is_old_is_not_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    bodies(tmp_path, 1)
    recording = open_recording(folder(tmp_path, line(1)), 0)
    assert told(recording) == whole(1)
    monkeypatch.setattr(raw, "is_racy", lambda _: False)
    assert recording.poll() == []
    monkeypatch.setattr(raw, "_loader", None)
    assert recording.poll() == []


def test_only_a_folder_with_an_index_of_exchanges_is_a_recording(tmp_path: Path):
    assert not is_recording(tmp_path)
    folder(tmp_path, b'{"type":"session"}\n')
    assert not is_recording(tmp_path)
    folder(tmp_path, line(1))
    assert is_recording(tmp_path)


def test_a_recording_whose_first_line_is_damaged_is_one(tmp_path: Path):
    bodies(tmp_path, 1, 2)
    folder(tmp_path, line(1)[5:], line(2))
    assert is_recording(tmp_path)
    recording = open_recording(tmp_path, 0)
    assert told(recording) == whole(2)
    assert "line 1: not an exchange" in recording.notices[0]
    assert "0001.req, 0001.res, which no line" in recording.notices[1]
