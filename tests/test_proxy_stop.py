"""Many exchanges at once, and what becomes of them when the proxy stops."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress

import pytest

from ctxscope.capture.events import End, Request
from ctxscope.capture.proxy import serving
from tests.proxy_peers import CAP, END, OK, SSE, Server, answering, chunk, event, post, through, value
from tests.proxy_tls import HOST, company, connect, credentials, secure, tls

FIXTURES = (company, secure)
"""Used by their names."""


def test_a_hundred_streams_at_once():
    begun = threading.Barrier(101)

    def serve(peer):
        _, body = peer.message()
        peer.send(SSE + chunk(b"data: " + body + b"\n\n"))
        begun.wait(CAP)
        for n in range(20):
            peer.send(chunk(event(n)))
        peer.send(b"0\r\n\r\n")

    with Server(serve) as server, through() as it:
        clients = [it.ask(server.origin, b"%d" % n) for n in range(100)]
        for n, client in enumerate(clients):
            client.until(b"data: %d\n\n" % n)
        begun.wait(CAP)  # all of them stream now
        for client in clients:
            client.until(b"0\r\n\r\n")
        it.told.wait(lambda: len(it.told.of(End)) == 100)
        assert {end.how for end in it.told.of(End)} == {"complete"}
        rest = b"".join(map(event, range(20)))
        assert all(it.told.body(r.n) == b"data: " + r.body + b"\n\n" + rest for r in it.told.of(Request))


def test_a_slow_client_does_not_make_the_proxy_hold_the_reply():
    """Where the proxy held it, the upstream would get rid of all of it at once."""
    size = 64 << 20

    def serve(peer):
        peer.message()
        peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size)
        peer.sock.settimeout(1)
        sent = 0
        with suppress(TimeoutError):
            while sent < size:
                sent += peer.sock.send(b"x" * min(1 << 20, size - sent))
        blocked.append(sent)
        stuck.set()
        peer.sock.settimeout(CAP)
        peer.send(b"x" * (size - sent))

    blocked, stuck = [], threading.Event()
    with Server(serve) as server, through() as it:
        client = it.ask(server.origin, room=1 << 20)
        client.until(b"\r\n\r\n")
        assert stuck.wait(CAP)
        assert blocked[0] < size // 2
        assert len(client.exactly(size)) == size
        assert it.told.end().how == "complete"


def test_stopping_lets_a_reply_end():
    def serve(peer):
        peer.message()
        peer.send(SSE + chunk(event(1)))
        assert stopping.wait(CAP)
        peer.send(chunk(event(2)) + b"0\r\n\r\n")

    stopping = threading.Event()
    with Server(serve) as server, through() as it:
        client = it.ask(server.origin)
        client.until(event(1))
        stop = threading.Thread(target=it.proxy.stop, args=(CAP,))
        stop.start()
        stopping.set()
        client.until(b"0\r\n\r\n")
        stop.join(CAP)
        assert it.told.of(End)[0].how == "complete"


@pytest.mark.parametrize("then", ["keeps", "closes"])
def test_stopping_lets_a_client_have_what_was_sent_to_it(then):
    """An upstream that closes behind its reply has the proxy close the client's connection, once all is sent."""
    size = 30 << 20

    def serve(peer):
        peer.message()
        peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size + b"x" * size)
        if then == "closes":
            peer.sock.shutdown(socket.SHUT_WR)
        peer.gone()
        closed.set()

    closed = threading.Event()
    with Server(serve) as server, through() as it:
        client = it.ask(server.origin, room=1 << 20)
        client.until(b"\r\n\r\n")
        left = size - it.slowly(client, size)
        if then == "closes":
            assert closed.wait(CAP)
        stop = threading.Thread(target=it.proxy.stop, args=(CAP,))
        stop.start()
        assert len(client.exactly(left)) == left
        assert client.rest() == b""
        stop.join(CAP)


def test_stopping_cuts_what_does_not_end():
    def serve(peer):
        peer.message()
        peer.send(SSE + chunk(event(1)))
        peer.gone()

    with Server(serve) as server, through() as it:
        client = it.ask(server.origin)
        client.until(event(1))
        it.proxy.stop(0.05)
        assert it.told.of(End)[0].how == "stopped"
        assert b"0\r\n" not in client.rest()
        it.proxy.stop(0)
        with pytest.raises(ConnectionError):
            it.connect()


def test_stopping_does_not_wait_for_connections_that_nobody_uses(monkeypatch):
    monkeypatch.setattr(serving, "_CUT_SECONDS", 10 * CAP)
    with answering(lambda *_: OK) as server, through() as it:
        it.ask(server.origin).message()
        it.told.end()
        stop = threading.Thread(target=it.proxy.stop, args=(10 * CAP,))
        stop.start()
        stop.join(CAP)
        assert not stop.is_alive()


def test_a_stopped_proxy_leaves_no_thread():
    with through():
        pass
    assert not [t for t in threading.enumerate() if t.name == "ctxscope proxy"]


def test_every_connection_to_an_upstream_is_closed_at_the_end():
    gone = threading.Event()

    def serve(peer):
        peer.message()
        peer.send(OK)
        if peer.gone():
            gone.set()

    with Server(serve) as server:
        with through() as it:
            it.ask(server.origin).message()
        assert gone.wait(CAP)


def test_an_answer_of_the_upstream_to_one_is_not_delayed_by_another():
    def serve(peer):
        _, body = peer.message()
        if body == b"slow":
            assert fast_done.wait(CAP)
        peer.send(OK)

    fast_done = threading.Event()
    with Server(serve) as server, through() as it:
        slow = it.ask(server.origin, b"slow")
        it.ask(server.origin, b"fast").message()
        fast_done.set()
        assert slow.message()[1] == b"ok"


def test_requests_are_numbered_as_they_arrive():
    def serve(peer):
        head = peer.until(b"\r\n\r\n")
        begun.set()
        peer.exactly(int(value(head, b"content-length")))
        peer.send(OK)

    begun = threading.Event()
    with Server(serve) as server, through() as it:
        first = it.connect()
        first.send(post(it.path(server.origin), b"first")[:-1])
        assert begun.wait(CAP)
        it.ask(server.origin, b"second").message()
        first.send(b"t")
        first.message()
        assert {r.body: r.n for r in it.told.of(Request)} == {b"second": 2, b"first": 1}


def test_stopping_lets_a_client_have_what_was_sent_to_it_inside_tls(secure, tmp_path):
    """TLS counts nothing of what it has handed down: of some sizes the proxy lost as much when it stopped then."""

    def serve(peer):
        _, body = peer.message()
        size = int(body)
        peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size + b"x" * size)
        peer.gone()

    with secure(Server(serve)) as server:
        for size in range(5_000_000, 6_500_000, 150_000):
            with through(forward=True) as it:
                it.proxy.through(f"https://{HOST}:{server.port}")
                client = connect(it, HOST, server.port, credentials(it), room=1 << 20)
                client.until(END)
                client = tls(it, client, it.proxy.write_ca(tmp_path)[0])
                client.send(post(b"/v1", b"%d" % size))
                client.until(END)
                it.told.soon(lambda: it.told.of(End))  # where the system takes all of it
                stop = threading.Thread(target=it.proxy.stop, args=(CAP,))
                stop.start()
                for _ in range(4):  # so long that the proxy looks again and again
                    it.told.soon(lambda: False)
                assert len(client.exactly(size)) == size
                stop.join(CAP)
