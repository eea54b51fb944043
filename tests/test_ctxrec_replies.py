"""Replies as they grow and end: what they hold, what they cost, what is said of damaged ones; and places beside them."""

from __future__ import annotations

import gzip
import os
import zlib
from pathlib import Path
from typing import Any

import pytest

from ctxscope.capture import ctxrec_replies, encodings, open_recording
from ctxscope.capture.ctxrec import CtxRec
from ctxscope.capture.events import Chunk, End, Event, Head, Message, Places
from ctxscope.capture.writer import Writer
from ctxscope.model import CtxscopeError
from ctxscope.wire import openai_responses
from tests.ctxrec_events import META, PATH, UPSTREAM, read, reply, request, session, write

GZIP = (("Content-Encoding", "gzip"),)


def counted(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str) -> list[int]:
    """Bytes given to a function each time it is called."""
    calls, real = list[int](), getattr(owner, name)

    def call(data: bytes, *more: Any) -> Any:
        calls.append(len(data))
        return real(data, *more)

    monkeypatch.setattr(owner, name, call)
    return calls


# --- growing ----------------------------------------------------------------------------------------------------------


def test_a_packed_reply_is_decoded_only_when_it_is_asked_for_and_once_it_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    packer, text, path, at = zlib.compressobj(6, zlib.DEFLATED, 31), b"", tmp_path / "a.ctxrec", 0
    writer = Writer(path, META)
    writer.write(request(1, b"{}"))
    writer.write(Head(1, 1001.1, 200, "OK", GZIP))
    recording = open_recording(path, 0)
    assert [e.response_bytes for e in recording.poll()] == [None]
    decoded = counted(monkeypatch, encodings, "decode")
    for n in range(20):
        part = os.urandom(3000).hex().encode()
        packed = packer.compress(part) + packer.flush(zlib.Z_SYNC_FLUSH)
        writer.write(Chunk(1, 1002.0 + n, at, packed))
        writer.flush()
        text, at = text + part, at + len(packed)
        (growing,) = recording.poll()
        assert growing.response_bytes == at
    assert decoded == []
    assert growing.response() == growing.response() == text
    assert decoded == [at]
    tail = packer.flush()
    writer.write(Chunk(1, 1030.0, at, tail))
    writer.write(End(1, 1031.0))
    writer.close()
    (whole,) = recording.poll()
    assert (whole.response_bytes, whole.response()) == (len(text), text)
    assert decoded == [at, at + len(tail)]
    assert recording.notices == ()


def test_how_an_exchange_ended_is_decided_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    events = [request(1, b'{"input":[]}'), *reply(1, b'data: {"type":"response.completed"}\n\n', how="client left")]
    path = write(tmp_path / "a.ctxrec", events[:-1])
    parsed = counted(monkeypatch, openai_responses, "reply")
    recording = open_recording(path, 0)
    recording.poll()
    assert parsed == []
    writer = Writer(path, META)
    for event in (events[-1], Places(1, 1001.0, (("/l", "line 1"),)), Places(1, 1001.0, ()), events[-1]):
        writer.write(event)
        assert [e.ended for e in recording.poll()] == [None]
    writer.close()
    assert len(parsed) == 1
    broken = write(tmp_path / "b.ctxrec", [events[0], *reply(1, b"data: {}\n\n", how="client left")])
    assert read(broken)[1][1].ended == "client left"


def test_how_an_exchange_ended_is_decided_without_its_request(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = write(tmp_path / "a.ctxrec", session())
    asked: list[int] = []
    monkeypatch.setattr("ctxscope.capture.ctxrec_bodies.Bodies.body", lambda _self, n: asked.append(n) or b"")
    recording, found = read(path)
    assert "exchange 3, 4, 6 did not end with its reply: client left" in "\n".join(recording.notices)
    assert found[5].ended is None
    assert asked == []


def test_a_reply_told_further_after_its_end_is_looked_at_again(tmp_path: Path):
    done = b'data: {"type":"response.completed","response":{"id":"r"}}\n\n'
    path = write(tmp_path / "a.ctxrec", [request(1, b"{}"), *reply(1, done[:20], how="client left")])
    recording = open_recording(path, 0)
    assert [e.ended for e in recording.poll()] == ["client left"]
    write(path, [Chunk(1, 1002.0, 20, done[20:]), End(1, 1003.0, "client left")])
    assert [e.ended for e in recording.poll()] == [None]


# --- damaged ----------------------------------------------------------------------------------------------------------


def harm(path: Path, words: bytes) -> None:
    at = path.read_bytes().index(words)
    with path.open("r+b") as file:
        file.seek(at)
        file.write(b"#")


def in_the_middle(path: Path, events: list[Event]) -> Path:
    """A recording of these, a record each, far from where it is looked at to tell whether it is another one."""
    writer = Writer(path, META)
    for event in [request(8, os.urandom(3000)), *events, request(9, os.urandom(3000))]:
        writer.write(event)
        writer.flush()
    writer.close()
    return path


@pytest.mark.parametrize("encoding", ["", "gzip"])
def test_a_reply_that_changed_in_the_file_is_told_and_given_up_to_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, encoding: str
):
    monkeypatch.setattr(ctxrec_replies, "_KEPT_BYTES", 0)
    text = os.urandom(9000).hex().encode()
    sent = gzip.compress(text, mtime=0) if encoding else text
    third = len(sent) // 3
    parts = sent[:third], sent[third : 2 * third], sent[2 * third :]
    path = in_the_middle(tmp_path / "a.ctxrec", [request(1, b"{}"), *reply(1, *parts, encoding=encoding)])
    recording, found = read(path)
    assert isinstance(recording, CtxRec)
    assert recording.notices == ()
    harm(path, parts[1][500:600])
    given = found[1].response()
    assert len(given) > 4000 if encoding else given == parts[0]
    assert text.startswith(given)
    with pytest.raises(CtxscopeError, match="the reply to 1 cannot be had as it was sent: its bytes are not those"):
        recording.reply_as_sent(1)
    recording.poll()
    assert recording.notices == (
        f"{path}: the reply to 1 is damaged and given up to there: its bytes are not those that were stored",
    )


def test_a_message_that_changed_in_the_file_is_told(tmp_path: Path):
    asks = Message(5, 4, 1005.0, "client", "text", b'{"type":"response.create"}', PATH, UPSTREAM)
    says = [Message(5, 4, 1005.0 + n, "server", "text", b'{"said":%d}' % n) for n in (1, 2, 3)]
    path = in_the_middle(tmp_path / "a.ctxrec", [asks, *says])
    recording, found = read(path)
    assert isinstance(recording, CtxRec)
    harm(path, b'{"said":2}')
    assert found[5].response() == b'data: {"said":1}\n\n'
    with pytest.raises(CtxscopeError, match="the reply to 5 cannot be had"):
        recording.messages(5)
    recording.poll()
    assert "the reply to 5 is damaged" in recording.notices[0]


# --- where the log stood ----------------------------------------------------------------------------------------------


def places(tmp_path: Path, *noted: tuple[float, str]) -> tuple[tuple[str, str], ...]:
    path = tmp_path / "a.ctxrec"
    path.unlink(missing_ok=True)
    asked = request(1, b"{}")
    for time, entry in noted:  # a writer each: the one before died
        write(path, [asked, Places(1, time, (("/l", entry),))])
    recording = open_recording(path, 0)
    recording.poll()
    write(path, reply(1, b"{}", at=1002.0))
    (exchange,) = recording.poll()
    assert exchange.places == read(path)[1][1].places
    return exchange.places


def test_the_place_noted_first_is_the_one(tmp_path: Path):
    assert places(tmp_path, (1001.0, "line 4"), (1001.5, "line 9")) == (("/l", "line 4"),)
    assert places(tmp_path, (1001.0, "line 4"), (1005.0, "line 9")) == (("/l", "line 4"),)


def test_a_place_noted_once_the_reply_had_begun_is_not_believed(tmp_path: Path):
    assert places(tmp_path, (1002.0, "line 9")) == (("/l", "line 9"),)
    assert places(tmp_path, (1002.2, "line 9")) == ()
    assert places(tmp_path, (1005.0, "line 9"), (1006.0, "line 10")) == ()


def test_of_a_message_a_place_is_not_believed_either(tmp_path: Path):
    asks = Message(5, 4, 1005.0, "client", "text", b'{"type":"response.create"}', PATH, UPSTREAM)
    says = Message(5, 4, 1006.0, "server", "text", b"{}")
    for time, expected in ((1005.5, (("/l", "line 1"),)), (1006.5, ())):
        path = write(tmp_path / f"{time}.ctxrec", [asks, Places(5, time, (("/l", "line 1"),)), says])
        assert read(path)[1][5].places == expected
