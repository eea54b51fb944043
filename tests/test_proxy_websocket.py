"""WebSockets: the bytes of both sides pass untouched, the messages in them are told."""

from __future__ import annotations

import asyncio
import os
import threading

import pytest

from ctxscope.capture.events import End, Head, Message, Request
from ctxscope.capture.proxy import exchange, lines, websocket
from tests.proxy_frames import BINARY, CLOSE, PING, PONG, TEXT, Deflater, agreed, frame, received, sent, upgrade
from tests.proxy_peers import CAP, END, OK, Server, post, through, value

BETA = (b"openai-beta: responses_websockets=2026-02-06", b"Authorization: Bearer k")
OFFER = b"Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits"
DEFLATE = b"Sec-WebSocket-Extensions: permessage-deflate"


def messages(it, sender):
    return [(m.kind, m.data) for m in it.told.of(Message) if m.sender == sender]


def test_messages_pass_both_ways_and_are_numbered_with_the_requests():
    def serve(peer):
        head = peer.until(END)
        server.seen.append((head, b""))
        peer.send(agreed(head, b"Sec-WebSocket-Protocol: b", b"X-Odd: 1"))
        for n in range(2):
            assert received(peer) == (0x80 | TEXT, b'{"type":"response.create","n":%d}' % n)
            peer.send(frame(TEXT, b"created %d" % n) + frame(BINARY, b"\x00\xff"))
        assert received(peer) == (0x80 | CLOSE, b"\x03\xe8bye")
        peer.send(frame(CLOSE, b"\x03\xe8bye"))

    with Server(serve) as server, through() as it:
        client = it.connect()
        asked = upgrade(it.path(server.origin, "/v1/responses"), *BETA, b"Sec-WebSocket-Protocol: a, b")
        client.send(asked)
        head = client.until(END)
        seen = server.seen[0][0]
        host = b"Host: 127.0.0.1:%d" % server.port
        assert seen.split(b"\r\n")[1:] == asked.replace(b"Host: proxy", host).split(b"\r\n")[1:]
        assert head == agreed(seen, b"Sec-WebSocket-Protocol: b", b"X-Odd: 1")
        for n in range(2):
            client.send(sent(TEXT, b'{"type":"response.create","n":%d}' % n))
            assert received(client) == (0x80 | TEXT, b"created %d" % n)
            assert received(client) == (0x80 | BINARY, b"\x00\xff")
        client.send(sent(CLOSE, b"\x03\xe8bye"))
        assert received(client) == (0x80 | CLOSE, b"\x03\xe8bye")
        assert client.rest() == b""
        end = it.told.end()
        assert (end.how, end.detail) == ("complete", "")
        told = it.told.of(Message)
        assert [(m.n, m.sender, m.kind) for m in told] == [
            *((2, "client", "text"), (2, "server", "text"), (2, "server", "binary")),
            *((3, "client", "text"), (3, "server", "text"), (3, "server", "binary")),
            *((4, "client", "close"), (4, "server", "close")),
        ]
        assert {(m.connection, m.target, m.upstream) for m in told} == {(1, "/v1/responses", server.origin)}
        assert told[-1].data == b"\x03\xe8bye"
        assert [type(e) for e in it.told.events[:2]] == [Request, Head]
        assert it.told.of(Head)[0].status == 101
        assert it.proxy.requests == 1


def test_what_the_server_says_first_belongs_to_the_upgrade():
    def serve(peer):
        peer.send(agreed(peer.until(END)) + frame(TEXT, b"hello"))
        peer.gone()

    with Server(serve) as server, through() as it:
        client = it.connect()
        client.send(upgrade(it.path(server.origin)))
        client.until(END)
        assert received(client) == (0x80 | TEXT, b"hello")
        assert it.told.wait(lambda: it.told.of(Message))[0].n == 1


def test_deflated_messages_keep_their_bytes_and_are_told_inflated():
    raw = []

    def serve(peer):
        peer.send(agreed(peer.until(END), DEFLATE))
        deflate = Deflater()
        for _ in range(3):
            raw.append(received(peer))
            peer.send(frame(TEXT, deflate(said), deflated=True))

    said = b'{"type":"response.create","instructions":"' + b"you are helpful " * 50 + b'"}'
    with Server(serve) as server, through() as it:
        client = it.connect()
        client.send(upgrade(it.path(server.origin), OFFER))
        assert value(client.until(END), b"sec-websocket-extensions") == b"permessage-deflate"
        deflate, went, came = Deflater(), [], []
        for _ in range(3):
            went.append(deflate(said))
            client.send(sent(TEXT, went[-1], deflated=True))
            came.append(received(client))
        client.rest()
        it.told.end()
        assert raw == [(0xC0 | TEXT, data) for data in went]
        assert len(came[1][1]) < len(came[0][1]) < len(said)  # the context was kept
        assert messages(it, "client") == messages(it, "server") == [("text", said)] * 3


@pytest.mark.parametrize("size", [0, 125, 126, 65_535, 65_536, 5 << 20])
def test_a_message_of_any_size_passes(size):
    def serve(peer):
        peer.send(agreed(peer.until(END)))
        _, payload = received(peer)
        peer.send(frame(BINARY, payload))
        peer.gone()

    data = os.urandom(size)
    with Server(serve) as server, through() as it:
        client = it.connect()
        client.send(upgrade(it.path(server.origin)))
        client.until(END)
        client.send(sent(BINARY, data))
        assert received(client) == (0x80 | BINARY, data)
        it.told.wait(lambda: len(it.told.of(Message)) == 2)
        assert messages(it, "client") == messages(it, "server") == [("binary", data)]


def test_fragments_and_pings_pass_as_they_are_and_only_messages_are_told():
    wire = [
        *(sent(TEXT, b"one ", final=False), sent(PING, b"p"), sent(0, b"two ", final=False), sent(0, b"three")),
        *(sent(PONG, b"q"), sent(BINARY, b"")),
    ]

    def serve(peer):
        peer.send(agreed(peer.until(END)))
        got.append(peer.exactly(sum(map(len, wire))))
        peer.send(frame(PING, b"x") + frame(PONG, b"y") + frame(TEXT, b"done"))
        peer.gone()

    got = []
    with Server(serve) as server, through() as it:
        client = it.connect()
        client.send(upgrade(it.path(server.origin)))
        client.until(END)
        for piece in wire:
            client.send(piece)
        assert [received(client) for _ in range(3)] == [(0x89, b"x"), (0x8A, b"y"), (0x81, b"done")]
        assert got[0] == b"".join(wire)
        it.told.wait(lambda: len(it.told.of(Message)) == 3)
        assert messages(it, "client") == [("text", b"one two three"), ("binary", b"")]


@pytest.mark.parametrize("code", [1000, 1008, 1011, 4001, 1, 65_535])
@pytest.mark.parametrize("closer", ["client", "server"])
def test_close_codes_pass_both_ways(closer, code):
    payload = code.to_bytes(2) + "größe".encode()

    def serve(peer):
        peer.send(agreed(peer.until(END)))
        if closer == "server":
            peer.send(frame(CLOSE, payload))
        heard.append(received(peer))

    heard = []
    with Server(serve) as server, through() as it:
        client = it.connect()
        client.send(upgrade(it.path(server.origin)))
        client.until(END)
        if closer == "server":
            assert received(client) == (0x80 | CLOSE, payload)
        client.send(sent(CLOSE, payload))
        assert client.rest() == b""
        assert heard == [(0x80 | CLOSE, payload)]
        assert it.told.end().how == "complete"
        assert ("close", payload) in messages(it, closer)


def test_a_client_that_closes_and_is_gone_is_still_heard_to_the_end():
    def serve(peer):
        peer.send(agreed(peer.until(END)))
        heard.append(received(peer))
        heard.append(received(peer))

    heard = []
    with Server(serve) as server, through() as it:
        client = it.connect()
        client.send(upgrade(it.path(server.origin)))
        client.until(END)
        client.send(sent(TEXT, b"last words") + sent(CLOSE, b"\x03\xe8"))
        client.close()
        assert it.told.end().how == "complete"
    assert heard == [(0x81, b"last words"), (0x88, b"\x03\xe8")]


def test_a_slow_server_gets_all_that_a_client_sent_before_it_left():
    def serve(peer):
        peer.send(agreed(peer.until(END)))
        parts = [peer.exactly(1 << 20)]
        while sum(map(len, parts)) < len(said) - 200_000 and not it.told.soon(lambda: it.told.of(End)):
            parts.append(peer.exactly(1 << 17))
        heard.append(b"".join([*parts, peer.rest()]))

    heard = []
    said = b"".join(sent(BINARY, os.urandom(100_000)) for _ in range(300)) + sent(CLOSE, b"")
    with Server(serve) as server, through() as it:
        client = it.connect()
        client.send(upgrade(it.path(server.origin)))
        client.until(END)
        client.send(said)
        client.close()
        assert it.told.end().how == "complete"
        assert len(it.told.of(Message)) == 301
    assert heard == [said]


def test_a_client_that_leaves_without_a_word_ends_the_connection_to_the_upstream():
    def serve(peer):
        peer.send(agreed(peer.until(END)))
        if peer.gone():
            gone.set()

    gone = threading.Event()
    with Server(serve) as server, through() as it:
        client = it.connect()
        client.send(upgrade(it.path(server.origin)))
        client.until(END)
        client.close()
        assert gone.wait(CAP)
        assert it.told.end().how == "client left"


@pytest.mark.parametrize("leave", ["close", "reset"])
def test_an_upstream_that_leaves_without_a_word_ends_the_connection_to_the_client(leave):
    def serve(peer):
        peer.send(agreed(peer.until(END)) + frame(TEXT, b"x"))
        assert passed.wait(CAP)
        getattr(peer, leave)()

    passed = threading.Event()
    with Server(serve) as server, through() as it:
        client = it.connect()
        client.send(upgrade(it.path(server.origin)))
        client.until(END)
        received(client)
        passed.set()
        assert client.gone()
        assert it.told.end().how == "upstream reset"


def test_stopping_ends_a_websocket_as_stopped():
    def serve(peer):
        peer.send(agreed(peer.until(END)))
        peer.gone()

    with Server(serve) as server, through() as it:
        client = it.connect()
        client.send(upgrade(it.path(server.origin)))
        client.until(END)
        it.proxy.stop(0)
        assert client.gone()
        assert it.told.end().how == "stopped"


def test_an_upgrade_that_is_declined_is_an_ordinary_exchange():
    def serve(peer):
        peer.message()
        peer.send(b"HTTP/1.1 426 Upgrade Required\r\nContent-Length: 4\r\n\r\nhttp")
        peer.message()
        peer.send(OK)

    with Server(serve) as server, through() as it:
        client, path = it.connect(), it.path(server.origin)
        client.send(upgrade(path))
        assert client.message()[1] == b"http"
        client.send(post(path))
        assert client.message()[1] == b"ok"
        assert it.told.end(2).how == "complete"
        assert it.told.of(Head)[0].status == 426


def test_an_upgrade_to_another_protocol_is_not_passed_on():
    with Server(lambda peer: (server.seen.append(peer.message()), peer.send(OK))) as server, through() as it:
        client = it.connect()
        headers = b"Connection: Upgrade, HTTP2-Settings", b"Upgrade: h2c", b"HTTP2-Settings: AAMAAABkAAQCAAAAAAIAAAAA"
        client.send(post(it.path(server.origin), b"{}", *headers))
        assert client.message()[1] == b"ok"
        assert not any(word in server.seen[0][0].lower() for word in (b"upgrade", b"http2-settings"))


def test_messages_that_cannot_be_read_pass_all_the_same():
    odd = b"\xb1\x05hello" + frame(TEXT, b"after")

    def serve(peer):
        peer.send(agreed(peer.until(END)) + frame(TEXT, b"before") + odd)
        peer.gone()

    with Server(serve) as server, through() as it:
        client = it.connect()
        client.send(upgrade(it.path(server.origin)))
        client.until(END)
        assert received(client) == (0x81, b"before")
        assert client.exactly(len(odd)) == odd
        client.close()
        assert "not recorded" in it.told.end().detail
        assert messages(it, "server") == [("text", b"before")]


@pytest.mark.parametrize("closer", ["client", "server"])
def test_an_orderly_end_is_one_though_messages_could_not_be_read(closer):
    odd = b"\xb1\x05hello" + frame(PING, b"x" * 100)

    def serve(peer):
        peer.send(agreed(peer.until(END)) + odd)
        if closer == "server":
            peer.send(frame(CLOSE, b""))
        else:
            received(peer)

    with Server(serve) as server, through() as it:
        client = it.connect()
        client.send(upgrade(it.path(server.origin)))
        client.until(END)
        client.exactly(len(odd))
        if closer == "client":
            client.send(sent(CLOSE, b""))
        client.rest()
        end = it.told.end()
        assert end.how == "complete"
        assert "not recorded" in end.detail
        assert it.told.of(Message) == []


def test_an_upstream_that_takes_nothing_is_not_waited_for_when_the_client_left(monkeypatch):
    async def flushed(_):
        await asyncio.get_running_loop().create_future()

    def serve(peer):
        peer.send(agreed(peer.until(END)))
        peer.gone()

    monkeypatch.setattr(lines.Call, "flushed", flushed)
    monkeypatch.setattr(websocket, "_LAST_SECONDS", 0.05)
    with Server(serve) as server, through() as it:
        client = it.connect()
        client.send(upgrade(it.path(server.origin)))
        client.until(END)
        client.send(sent(CLOSE, b""))
        client.close()
        assert it.told.end().how == "complete"


def test_a_client_that_is_gone_when_the_upstream_agrees_is_recorded_as_such(monkeypatch):
    async def splice(*_):
        raise ConnectionResetError

    def serve(peer):
        peer.send(agreed(peer.until(END)))
        peer.gone()

    monkeypatch.setattr(exchange, "splice", splice)
    with Server(serve) as server, through() as it:
        client = it.connect()
        client.send(upgrade(it.path(server.origin)))
        assert it.told.end().how == "client left"
