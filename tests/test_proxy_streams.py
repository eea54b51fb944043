"""Replies that come in pieces, and the ways in which one side leaves the other."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress

import pytest

from ctxscope.capture.events import Chunk, End, Head, Request
from tests.proxy_peers import CAP, OK, SSE, Closed, Peer, Server, chunk, event, post, through


def test_each_event_arrives_before_the_next_is_sent():
    arrived = [threading.Event() for _ in range(5)]

    def serve(peer):
        peer.message()
        peer.send(SSE)
        for n, gate in enumerate(arrived):
            peer.send(chunk(event(n)))
            assert gate.wait(CAP)
        peer.send(b"0\r\n\r\n")

    with Server(serve) as server, through() as it:
        client = it.ask(server.origin)
        assert client.until(b"\r\n\r\n") == SSE
        for n, gate in enumerate(arrived):
            assert client.until(event(n) + b"\r\n") == chunk(event(n))
            assert it.told.of(Chunk)[n].data == event(n)
            gate.set()
        assert client.until(b"0\r\n\r\n") == b"0\r\n\r\n"
        end = it.told.end()
        assert end.how == "complete"
        times = [it.told.of(Request)[0].time, it.told.of(Head)[0].time, *(c.time for c in it.told.of(Chunk)), end.time]
        assert times == sorted(times)
        assert [type(e) for e in it.told.events] == [Request, Head, *[Chunk] * 5, End]


def test_an_event_is_passed_on_though_its_line_is_not_whole():
    rest = threading.Event()

    def serve(peer):
        peer.message()
        peer.send(SSE + chunk(b"dat"))
        assert rest.wait(CAP)
        peer.send(chunk(b"a: 1\n\n") + b"0\r\n\r\n")

    with Server(serve) as server, through() as it:
        client = it.ask(server.origin)
        client.until(chunk(b"dat"))
        rest.set()
        client.until(b"0\r\n\r\n")
        assert it.told.body() == b"data: 1\n\n"


@pytest.mark.parametrize("leave", ["close", "reset"])
def test_a_client_that_leaves_before_the_first_byte_ends_the_upstream_call(leave):
    gone = threading.Event()

    def serve(peer):
        peer.message()
        asked.set()
        if peer.gone():
            gone.set()

    asked = threading.Event()
    with Server(serve) as server, through() as it:
        client = it.ask(server.origin)
        assert asked.wait(CAP)
        getattr(client, leave)()
        assert gone.wait(CAP)
        assert it.told.end().how == "client left"
        assert it.told.of(Head) == []


@pytest.mark.parametrize("leave", ["close", "reset"])
def test_a_client_that_leaves_in_the_middle_ends_the_upstream_call(leave):
    gone = threading.Event()

    def serve(peer):
        peer.message()
        peer.send(SSE + chunk(event(1)))
        if peer.gone():
            gone.set()

    with Server(serve) as server, through() as it:
        client = it.ask(server.origin)
        client.until(event(1))
        getattr(client, leave)()
        assert gone.wait(CAP)
        assert it.told.end().how == "client left"
        assert it.told.body() == event(1)


def test_a_client_that_leaves_while_it_does_not_read_ends_the_upstream_call():
    gone = threading.Event()

    def serve(peer):
        peer.message()
        peer.send(SSE)
        try:
            while True:
                peer.send(chunk(b"x" * 65_536))
        except OSError:
            gone.set()

    with Server(serve) as server, through() as it:
        client = it.ask(server.origin)
        client.until(SSE)
        it.told.wait(lambda: len(it.told.of(Chunk)) > 3)
        client.close()
        assert gone.wait(CAP)
        assert it.told.end().how == "client left"


def test_a_client_that_leaves_does_not_have_the_rest_of_its_request_sent():
    def serve(peer):
        peer.until(b"\r\n\r\n")
        it.told.end()
        with suppress(ConnectionError):
            got.append(len(peer.rest()))

    got = []
    with Server(serve) as server, through() as it:
        client = it.ask(server.origin, b"x" * 40_000_000)
        it.told.wait(lambda: it.told.of(Request))
        client.close()
        assert it.told.end().how == "client left"
    assert sum(got) < 40_000_000


def test_a_request_that_does_not_come_whole_is_recorded_as_torn():
    gone = threading.Event()

    def serve(peer):
        peer.until(b"half")
        half.set()
        if peer.gone():
            gone.set()

    half = threading.Event()
    with Server(serve) as server, through() as it:
        client = it.connect()
        client.send(post(it.path(server.origin), b"half").replace(b"Length: 4", b"Length: 100"))
        assert half.wait(CAP)
        client.close()
        assert gone.wait(CAP)
        end = it.told.end()
        assert (end.how, end.detail) == ("client left", "the request's body is torn: 4 of 100 bytes came")
        assert [r.body for r in it.told.of(Request)] == [b"half"]
        assert [type(e) for e in it.told.events] == [Request, End]


def test_a_request_whose_body_is_none_is_recorded_as_torn():
    def serve(peer):
        peer.until(b"half")
        half.set()
        peer.gone()

    half = threading.Event()
    with Server(serve) as server, through() as it:
        client = it.connect()
        head = post(it.path(server.origin), b"").replace(b"Content-Length: 0", b"Transfer-Encoding: chunked")
        client.send(head + chunk(b"half"))
        assert half.wait(CAP)
        client.send(b"nonsense\r\n")
        assert client.message()[0].startswith(b"HTTP/1.1 400 ")
        end = it.told.end()
        assert end.how == "client left"
        assert end.detail == "the request's body is torn: 4 bytes came; answered 400"
        assert [r.body for r in it.told.of(Request)] == [b"half"]


def test_a_client_that_leaves_while_the_upstream_is_still_dialled_is_recorded():
    """The upstream takes the connection and says nothing, as one does whose TLS is stuck."""
    with socket.create_server(("127.0.0.1", 0)) as silent, through() as it:
        client = it.ask(f"https://127.0.0.1:{silent.getsockname()[1]}", b"hello")
        asked = it.told.wait(lambda: it.told.of(Request))  # told though nobody could take it yet
        assert asked[0].body == b"hello"
        client.close()
        end = it.told.end()
        assert (end.how, end.detail) == ("client left", "the upstream had not taken the connection")


def test_a_torn_request_to_an_upstream_that_is_still_dialled_is_recorded():
    with socket.create_server(("127.0.0.1", 0)) as silent, through() as it:
        client = it.connect()
        path = it.path(f"https://127.0.0.1:{silent.getsockname()[1]}")
        client.send(post(path, b"half").replace(b"Length: 4", b"Length: 100"))
        with silent.accept()[0] as sock:
            assert sock.recv(1)  # of a TLS handshake
            client.close()
            end = it.told.end()
        assert end.how == "client left"
        assert end.detail.startswith("the upstream had not taken the connection; the request's body is torn: ")
        assert b"half".startswith(it.told.of(Request)[0].body)


def test_what_a_client_sends_meanwhile_waits_for_the_upstream():
    body = b"x" * 3_000_000
    with through() as it:
        listener = socket.create_server(("127.0.0.1", 0), backlog=0)
        crowd = [socket.socket() for _ in range(4)]  # more than its queue holds; the proxy's hangs
        for one in crowd:
            one.setblocking(False)
            one.connect_ex(listener.getsockname())
        client = it.ask(f"http://127.0.0.1:{listener.getsockname()[1]}", body)
        it.told.wait(lambda: it.told.of(Request))
        for one in crowd:
            one.close()
        listener.settimeout(CAP)
        peer = None
        with listener:
            while peer is None:
                peer = Peer(listener.accept()[0])
                try:
                    assert peer.message()[1] == body
                except (Closed, ConnectionError):  # one of the crowd
                    peer.close()
                    peer = None
        peer.send(OK)
        assert client.message()[1] == b"ok"
        assert it.told.end().how == "complete"
        peer.close()
