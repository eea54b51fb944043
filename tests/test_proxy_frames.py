"""Messages in the bytes of a WebSocket, however these are cut."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxscope.capture.proxy.frames import Frames, UnreadableError
from tests.proxy_frames import BINARY, CLOSE, PING, TEXT, Deflater, frame, sent

CLOSE_LIKE = b"\x88"


@given(st.lists(st.tuples(st.sampled_from([TEXT, PING]), st.integers(0, 300)), max_size=5), st.integers(1, 40))
def test_a_closing_is_found_behind_what_cannot_be_read(others, step):
    before = b"".join(frame(code, CLOSE_LIKE * size) for code, size in others)
    for wire, closes in {before: False, before + sent(CLOSE, b"\x03\xe8") + before: True}.items():
        frames = Frames(deflate=False)
        with pytest.raises(UnreadableError):
            list(frames.feed(b"\xb1\x05hello"))
        found = [frames.closes(wire[i : i + step]) for i in range(0, len(wire), step)]
        assert any(found) == closes
        assert not frames._pending


@given(
    st.lists(st.tuples(st.sampled_from([TEXT, BINARY]), st.binary(max_size=300), st.integers(1, 4)), max_size=6),
    st.booleans(),
    st.booleans(),
    st.integers(1, 64),
)
def test_messages_are_found_however_their_bytes_are_cut(said, masked, deflated, step):
    deflate, wire = Deflater(), b""
    for code, data, parts in said:
        coded = deflate(data) if deflated else data
        size = max(1, -(-len(coded) // parts))
        pieces = [coded[i : i + size] for i in range(0, len(coded), size)] or [b""]
        for n, piece in enumerate(pieces):
            spell = sent if masked else frame
            last = n == len(pieces) - 1
            wire += spell(0 if n else code, piece, final=last, deflated=deflated and not n) + spell(PING, b"")
    frames = Frames(deflate=deflated)
    cuts = range(0, len(wire), step)
    found = list(itertools.chain.from_iterable(frames.feed(wire[i : i + step]) for i in cuts))
    assert found == [("text" if code == TEXT else "binary", data) for code, data, _ in said]


def test_a_deflated_message_that_ends_its_stream_is_followed_by_another():
    import zlib  # noqa: PLC0415 - one test's

    frames = Frames(deflate=True)
    for data in (b"one" * 50, b"two" * 50):
        packer = zlib.compressobj(wbits=-15)
        coded = packer.compress(data) + packer.flush(zlib.Z_FINISH)
        assert list(frames.feed(frame(TEXT, coded, deflated=True))) == [("text", data)]


@pytest.mark.parametrize(
    "wire",
    [frame(0, b"x"), b"\xa1\x01x", frame(TEXT, b"x", deflated=True), b"\x91\x00" + frame(TEXT, b"")],
)
def test_what_was_not_agreed_on_is_unreadable(wire):
    with pytest.raises(UnreadableError):
        list(Frames(deflate=False).feed(wire))


def test_deflated_data_that_is_none_is_unreadable():
    with pytest.raises(UnreadableError):
        list(Frames(deflate=True).feed(frame(TEXT, b"\xff\xff\xff", deflated=True)))
