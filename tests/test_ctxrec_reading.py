"""Recordings read whole, while they grow, cut short, damaged, replaced."""

from __future__ import annotations

import gzip
import json
import os
import random
from pathlib import Path
from typing import Any

import pytest

from ctxscope import capture
from ctxscope.capture import ctxrec_bodies, is_recording, open_recording
from ctxscope.capture.ctxrec import CtxRec
from ctxscope.capture.events import Chunk, End, Event, Head, Message, Meta, Places, Request
from ctxscope.capture.record import Record, records
from ctxscope.capture.writer import Writer
from ctxscope.model import CtxscopeError
from tests.ctxrec_events import (
    HEADERS,
    META,
    PATH,
    UPSTREAM,
    all_shown,
    body,
    created,
    is_harmed,
    read,
    reply,
    request,
    requests_of,
    session,
    shown,
    write,
)


def test_what_was_written_is_read(tmp_path: Path):
    recording, found = read(write(tmp_path / "a.ctxrec", session()))
    assert {n: e.request() for n, e in found.items()} == requests_of(session())
    first = found[1]
    assert (first.recording, first.method, first.path, first.status) == (0, "POST", PATH, 200)
    assert dict(first.headers) == {"host": "api.example.com", "user-agent": "pi/1", "x-session-id": "s1"}
    assert (first.time, first.first_byte, first.end) == (1001.0, 1001.3, 1003.5)
    assert (first.upstream, first.places) == (UPSTREAM, (("/logs/a.jsonl", "line 7"),))
    assert (first.response(), first.response_bytes) == (b"data: one\n\ndata: two\n\ndata: end\n\n", 33)
    assert (found[2].response(), found[2].response_bytes) == (b'{"output":[]}', 13)
    assert (found[3].response(), found[3].ended, first.ended) == (b"data: thr", "client left", None)
    assert not recording.partial
    assert recording.poll() == []


def test_the_bytes_that_were_sent_and_their_times_stay_reachable(tmp_path: Path):
    recording, _ = read(write(tmp_path / "a.ctxrec", session()))
    assert isinstance(recording, CtxRec)
    assert recording.as_sent(1) == body(1)
    assert recording.as_sent(2) == gzip.compress(body(2), mtime=0)
    assert recording.reply_as_sent(2) == gzip.compress(b'{"output":[]}', mtime=0)
    assert recording.chunk_times(1) == ((0, 1001.3), (11, 1003.3), (22, 1003.5))
    with pytest.raises(CtxscopeError, match="found no exchange 9"):
        recording.as_sent(9)


def test_an_unknown_encoding_is_given_as_it_was_sent_and_told(tmp_path: Path):
    events = [request(1, b"\0\1odd", headers=(("content-encoding", "compress"),)), *reply(1, b"odd", encoding="dcb")]
    recording, found = read(write(tmp_path / "a.ctxrec", events))
    assert (found[1].request(), found[1].response()) == (b"\0\1odd", b"odd")
    assert "request 1 is given as it was sent, encoded: its encoding 'compress' is none known" in recording.notices[0]
    assert "the reply to 1 is not decoded whole: its encoding 'dcb' is none known here" in recording.notices[1]


def test_a_packed_reply_that_grows_gives_what_it_holds_so_far(tmp_path: Path):
    text = os.urandom(40_000).hex().encode()
    packed = gzip.compress(text)
    path = tmp_path / "a.ctxrec"
    writer = Writer(path, META)
    writer.write(request(1, b"{}"))
    writer.write(Head(1, 1001.1, 200, "OK", (("Content-Encoding", "gzip"),)))
    recording = open_recording(path, 0)
    assert [e.response_bytes for e in recording.poll()] == [None]
    middle = len(packed) // 2
    writer.write(Chunk(1, 1001.2, 0, packed[:middle]))
    writer.flush()
    (half,) = recording.poll()
    assert half.response_bytes == middle
    assert len(half.response()) > 10_000
    assert text.startswith(half.response())
    writer.write(Chunk(1, 1001.3, middle, packed[middle:]))
    writer.write(End(1, 1001.4))
    writer.close()
    (whole,) = recording.poll()
    assert (whole.response(), whole.response_bytes) == (text, len(text))
    assert recording.notices == ()


def test_a_recording_says_where_it_came_from(tmp_path: Path):
    meta = Meta(
        1000.0,
        override=("OPENAI_BASE_URL=http://127.0.0.1:4100/…",),
        changes=("sends no cache marks",),
        side="in",
        pair="p1",
        source="har",
        notes=("header case is lost",),
    )
    path = write(tmp_path / "a.ctxrec", session(), meta)
    recording, _ = read(path)
    told = "\n".join(recording.notices)
    assert (
        "recorded through a proxy: OPENAI_BASE_URL=http://127.0.0.1:4100/…; the agent then: sends no cache marks"
        in told
    )
    assert "the inbound side of pair p1" in told
    assert "imported from har: header case is lost" in told
    assert "2 events could not be recorded: «No space left on device»" in told
    assert "exchange 3, 4, 6 did not end with its reply: client left" in told
    assert recording.meta == capture.told(path) == meta


def test_files_are_recordings_by_what_they_hold(tmp_path: Path):
    path = write(tmp_path / "a.ctxrec", session())
    assert is_recording(path)
    assert is_recording(path.rename(tmp_path / "renamed.bin"))
    for name, data, expected in (
        ("empty.ctxrec", b"", True),
        ("empty.txt", b"", False),
        ("begun.ctxrec", b'{"v":1', True),
        ("other.ctxrec", b'{"type":"session"}\n', False),
        ("log.jsonl", b'{"v":1,"t":"x"}\n', False),
        ("damaged.ctxrec", b"?" * 30 + (tmp_path / "renamed.bin").read_bytes(), True),
    ):
        (tmp_path / name).write_bytes(data)
        assert is_recording(tmp_path / name) is expected, name
    assert not is_recording(tmp_path / "missing.ctxrec")
    assert capture.told(tmp_path / "empty.ctxrec") == Meta(0.0)


def test_a_file_that_is_gone_is_a_notice(tmp_path: Path):
    path = write(tmp_path / "a.ctxrec", session())
    recording, found = read(path)
    path.unlink()
    assert recording.poll() == []
    assert "cannot be read: No such file or directory" in recording.notices[0]
    assert found[1].response() == b""
    assert open_recording(path, 0).poll() == []


@pytest.mark.parametrize("change", ["another", "cut", "its beginning", "its end"])
def test_another_file_or_a_shorter_one_begins_anew(tmp_path: Path, change: str):
    path = write(tmp_path / "a.ctxrec", session())
    recording, _ = read(path)
    before = recording.generation
    if change == "another":
        other = write(tmp_path / "b.ctxrec", [*session(), *session()], Meta(2000.0))
        other.replace(path)
    elif change == "cut":
        os.truncate(path, path.stat().st_size // 2)
    else:
        with path.open("r+b") as file:
            file.seek(12 if change == "its beginning" else path.stat().st_size - 12)
            file.write(b"?")
    found = {e.n: e for e in recording.poll()}
    assert recording.generation == before + 1
    fresh, expected = read(path)
    assert all_shown(found) == all_shown(expected)
    assert recording.notices == fresh.notices


def test_read_at_every_length_it_is_what_a_fresh_look_sees(tmp_path: Path):
    data = write(tmp_path / "whole.ctxrec", session()).read_bytes()
    path = tmp_path / "growing.ctxrec"
    path.touch()
    recording = open_recording(path, 0)
    found: dict[int, Any] = {}
    for length in range(len(data) + 1):
        with path.open("ab") as file:
            file.write(data[length - 1 : length] if length else b"")
        found |= all_shown({e.n: e for e in recording.poll()})
        fresh = open_recording(path, 0)
        assert found == all_shown({e.n: e for e in fresh.poll()})
        assert (recording.notices, recording.partial) == (fresh.notices, fresh.partial)
    assert recording.generation == 0
    assert not recording.partial


def test_cut_at_any_byte_what_was_written_before_is_read_and_continued(tmp_path: Path):
    events = session()
    path = tmp_path / "whole.ctxrec"
    writer, settled = Writer(path, META), []
    for event in events:
        writer.write(event)
        settled.append((writer.stored, writer.settled))
    writer.close()
    data, whole = path.read_bytes(), all_shown(read(path)[1])
    for length in range(len(data)):
        cut = tmp_path / "cut.ctxrec"
        cut.write_bytes(data[:length])
        done = max((events for stored, events in settled if stored <= length), default=0)
        recording, found = read(cut)
        for n, exchange in found.items():
            assert exchange.request() == whole[n][5]
            assert whole[n][6].startswith(exchange.response())
        asked = {e.n for e in events[:done] if isinstance(e, Request)}
        ended = {e.n for e in events[:done] if isinstance(e, End)}
        assert asked <= found.keys()
        assert all(shown(found[n]) == whole[n] for n in ended if n != 4)
        assert recording.partial is is_harmed(recording)
        if length % 23 == 0 or length > len(data) - 30:
            _continue(cut, events[done:], whole)


def _continue(cut: Path, rest: list[Event], whole: dict[int, Any]) -> None:
    write(cut, rest)
    recording, found = read(cut)
    assert all_shown(found) == whole
    assert not is_harmed(recording)


def test_a_damaged_byte_costs_its_record_and_what_builds_on_it(tmp_path: Path):
    data = write(tmp_path / "whole.ctxrec", session()).read_bytes()
    whole = all_shown(read(tmp_path / "whole.ctxrec")[1])
    with (tmp_path / "whole.ctxrec").open("rb") as file:
        spans = [r for r in records(file, 0, len(data)) if isinstance(r, Record)]
    builds = {r.fields["id"]: r.fields.get("par") for r in spans if r.kind == "req" or "par" in r.fields}
    assert [builds[n] for n in (1, 2, 3)] == [None, 1, 2]
    path = tmp_path / "damaged.ctxrec"
    edges = {at + by for r in spans for at in (r.at, r.payload.at, r.end) for by in range(-3, 3)} & set(
        range(len(data))
    )
    for at in sorted(edges | set(range(0, len(data), 5))):
        path.write_bytes(data[:at] + bytes((data[at] ^ 1,)) + data[at + 1 :])
        recording, found = read(path)
        hit = next(r for r in spans if r.at <= at < r.end)
        unharmed = at == hit.end - 1  # the line break behind a record
        assert is_harmed(recording) is not unharmed, at
        lost = set() if unharmed else _lost(hit, builds)
        assert {n for n in whole if n not in lost} <= found.keys(), at
        for n, exchange in found.items():
            assert n not in lost
            assert exchange.request() == whole[n][5]
            if hit.fields.get("id") not in (n, 4):
                assert shown(exchange) == whole[n], at
            elif hit.kind == "res" and not unharmed:
                assert exchange.response() in (b"", whole[n][6][:22])


def _lost(hit: Record, builds: dict[int, int | None]) -> set[int]:
    if hit.kind != "req" and hit.fields.get("from") != "client":
        return set()
    lost = {hit.fields["id"]}
    for n in sorted(builds):
        if builds[n] in lost:
            lost.add(n)
    return lost


def test_events_told_twice_are_read_once(tmp_path: Path):
    path = write(tmp_path / "a.ctxrec", session())
    once, exchanges = read(path)
    expected = all_shown(exchanges)
    for index in range(len(session()) + 1):
        path.unlink()
        write(path, session()[:index])
        write(path, session())
        twice, exchanges = read(path)
        assert all_shown(exchanges) == expected
        assert twice.notices == once.notices


def test_a_reply_without_its_middle_is_given_up_to_there(tmp_path: Path):
    path = write(
        tmp_path / "a.ctxrec",
        [request(1, b"{}"), Head(1, 1.0, 200), Chunk(1, 1.1, 0, b"one"), Chunk(1, 1.2, 6, b"three"), End(1, 1.3)],
    )
    recording, found = read(path)
    assert (found[1].response(), found[1].ended) == (b"one", "not recorded whole")
    assert "the reply to 1 was not recorded whole" in recording.notices[0]
    write(path, [Chunk(1, 1.15, 3, b"two"), End(1, 1.3)])
    recording, found = read(path)
    assert (found[1].response(), found[1].ended) == (b"onetwothree", None)
    assert recording.notices == ()


def test_a_body_that_is_not_the_one_stored_is_told_and_not_given(tmp_path: Path):
    path = write(tmp_path / "a.ctxrec", [request(1, body(1)), request(2, body(2)), *reply(2, b"x" * 2000)])
    recording, found = read(path)
    data = path.read_bytes()
    at = data.index(b"turn 1")
    with path.open("r+b") as file:
        file.seek(at)
        file.write(b"TURN")
    assert found[2].request() == b""
    recording.poll()
    assert "request 2 is damaged and left empty" in recording.notices[0]
    assert found[1].request() == body(1)


@pytest.mark.parametrize(
    "fields",
    [
        {"body": [[0, 1]], "len": 1},
        {"body": [5], "len": 5},
        {"body": [-1], "len": -1},
        {"body": [[0, -1]], "len": 0},
        {"body": None, "len": 0},
        {"body": [], "len": 10**30},
        {"body": [], "len": 0, "par": True},
        {"body": [[0, 10**12]], "len": 10**12, "par": 1},
        {"body": [], "len": 0, "enc": {"len": 1, "by": 7}},
        {"body": [], "len": 0, "headers": {}},
        {"body": [], "len": 0, "ts": 1e300},
        {"body": [], "len": 0, "id": "2"},
    ],
)
def test_a_whole_record_that_no_writer_wrote_is_left_out(tmp_path: Path, fields: dict[str, Any]):
    from ctxscope.capture.record import spell  # noqa: PLC0415 - used here alone

    path = write(tmp_path / "a.ctxrec", [request(1, body(1))])
    good = {"id": 2, "ts": 1.0, "method": "POST", "target": "/", "upstream": "", "headers": [], "sha256": ""}
    with path.open("ab") as file:
        file.write(spell("req", good | fields))
        file.write(spell("unheard-of", {"id": 1}))
    write(path, [request(3, body(2), at=3.0)])
    recording, found = read(path)
    assert sorted(found) == [1, 3]
    assert "found 2 records that this version of ctxscope does not know" in "\n".join(recording.notices)


def test_a_second_run_in_the_file_is_numbered_on(tmp_path: Path):
    path = write(tmp_path / "a.ctxrec", session())
    write(path, [request(1, body(1)), *reply(1, b"again")], Meta(2000.0, agent="pi"))
    recording, found = read(path)
    assert sorted(found) == [1, 2, 3, 4, 5, 6, 7]
    assert found[7].response() == b"again"
    assert recording.meta.time == 2000.0


def test_a_run_that_goes_on_keeps_its_numbers(tmp_path: Path):
    second = Meta(2000.0)
    path = write(tmp_path / "a.ctxrec", session())
    write(path, [request(1, body(1)), *reply(1, b"one")], second)
    write(path, [request(1, body(1)), request(2, body(2)), *reply(2, b"two")], second)
    recording, found = read(path)
    assert sorted(found) == [1, 2, 3, 4, 5, 6, 7, 8]
    assert [found[n].response() for n in (7, 8)] == [b"one", b"two"]
    assert not any("second" in notice for notice in recording.notices)


def test_a_body_is_read_alone_as_it_is_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    sent = edited(60)
    path = write(tmp_path / "a.ctxrec", [request(n, data) for n, data in sent.items()])
    for kept in (ctxrec_bodies._KEPT_BYTES, 0):
        monkeypatch.setattr(ctxrec_bodies, "_KEPT_BYTES", kept)
        orders = (list(sent), list(reversed(sent)), random.Random(3).sample(list(sent), len(sent)))
        for order in orders:
            _, found = read(path)
            assert [found[n].request() for n in order] == [sent[n] for n in order]
    assert path.stat().st_size < sum(map(len, sent.values())) / 3


def edited(versions: int) -> dict[int, bytes]:
    """Bodies each of which lacks something of the one before and has something new, at any place."""
    rng, found = random.Random(8), {1: random.Random(9).randbytes(20_000)}
    for n in range(2, versions + 1):
        data = found[n - 1]
        for _ in range(3):
            at, end = sorted(rng.choices(range(len(data)), k=2))
            data = data[:at] + rng.randbytes(rng.randint(0, 200)) + data[min(end, at + 150) :]
        found[n] = data
    return found


def test_places_and_messages_may_hold_anything(tmp_path: Path):
    odd = '\udc80/ «x» \n{"v":1,'
    events: list[Event] = [
        Request(1, 5.0, "POST", "/" + odd, UPSTREAM, ((odd, odd), *HEADERS), created(1)),
        Places(1, 5.0, ((odd, odd),)),
        Head(1, 6.0, 200, odd, ((odd, odd),)),
        Message(2, 1, 7.0, "client", "binary", b'\n{"v":1,"t":"req"\n', PATH, UPSTREAM),
        Message(2, 1, 8.0, "server", "binary", b"\0"),
        End(1, 9.0, "upstream reset", odd),
    ]
    recording, found = read(write(tmp_path / "a.ctxrec", events))
    assert found[1].places == ((odd, odd),)
    assert found[1].request() == created(1)
    assert json.loads(found[1].request())["type"] == "response.create"
    assert found[2].response() == b": 1 bytes, binary\n\n"
    assert not is_harmed(recording)
