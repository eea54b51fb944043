"""Replies that come in pieces, and the ways in which one side leaves the other."""

from __future__ import annotations

import socket
import sys
import threading
import time
from contextlib import suppress

import pytest

from ctxscope.capture.events import Chunk, End, Head, Request
from ctxscope.capture.proxy import lines, serving
from tests.proxy_peers import CAP, OK, Server, answering, chunk, post, through, value

SSE = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
FRAMED = {
    "chunked": (SSE, chunk(b"data: 1\n\n")),
    "length": (b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n", b"data: 1\n\n"),
}


def event(n: int) -> bytes:
    return b"data: %d\n\n" % n


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


def test_a_request_that_does_not_come_whole_is_not_recorded():
    gone = threading.Event()

    def serve(peer):
        peer.until(b"half")
        half.set()
        if peer.gone():
            gone.set()

    half = threading.Event()
    with Server(serve) as server, through() as it:
        client = it.connect()
        client.send(post(it.path(server.origin)).replace(b"Length: 2", b"Length: 100") + b"half")
        assert half.wait(CAP)
        client.close()
        assert gone.wait(CAP)
        it.ask(server.origin).close()
    assert it.told.of(Request, 1) == []
    assert it.proxy.requests <= 1


@pytest.mark.parametrize("leave", ["close", "reset"])
@pytest.mark.parametrize("framing", FRAMED)
def test_a_reply_torn_by_the_upstream_does_not_end_in_order(framing, leave):
    def serve(peer):
        peer.message()
        peer.send(b"".join(FRAMED[framing]))
        assert passed.wait(CAP)
        getattr(peer, leave)()

    passed = threading.Event()
    with Server(serve) as server, through() as it:
        client = it.ask(server.origin)
        client.until(FRAMED[framing][1])
        passed.set()
        assert b"0\r\n" not in client.rest()
        end = it.told.end()
        assert end.how == "upstream reset"
        assert "127.0.0.1" not in end.detail
        assert it.told.body() == event(1)


@pytest.mark.parametrize("version", [b"1.0", b"1.1"])
def test_a_reply_without_length_that_is_reset_does_not_end_in_order(version):
    def serve(peer):
        peer.message()
        peer.send(b"HTTP/1.1 200 OK\r\n\r\nhalf")
        assert passed.wait(CAP)
        peer.reset()

    passed = threading.Event()
    with Server(serve) as server, through() as it:
        client = it.connect()
        client.send(post(it.path(server.origin)).replace(b"HTTP/1.1", b"HTTP/" + version))
        client.until(b"half")
        passed.set()
        if version == b"1.0":  # an orderly end would be the end of the body
            with pytest.raises(ConnectionResetError):
                client.rest()
        else:
            assert b"0\r\n" not in client.rest()
        assert it.told.end().how == "upstream reset"
        assert it.told.body() == b"half"


@pytest.mark.parametrize(
    ("sent", "how", "words"),
    [
        (b"", "upstream reset", "closed the connection without a reply"),
        (b"HTTP/1.1 20", "upstream reset", "reply"),
        (b"SSH-2.0-OpenSSH_9.2\r\n", "upstream reset", "no HTTP reply"),
        (b"HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n", "upstream reset", "nobody asked"),
    ],
)
def test_an_upstream_without_a_reply_is_an_honest_error_to_the_client(sent, how, words):
    def serve(peer):
        peer.message()
        peer.send(sent)

    with Server(serve) as server, through() as it:
        head, body = it.ask(server.origin).message()
        assert head.startswith(b"HTTP/1.1 502 Bad Gateway\r\n")
        assert b"ctxscope" in body
        assert words.encode() in body
        end = it.told.end()
        assert end.how == how
        assert words in end.detail
        assert end.detail.endswith("; answered 502")
        assert it.told.of(Head) == []


def test_an_upstream_that_is_not_there_is_an_honest_error_to_the_client():
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    with through() as it:
        client = it.ask(f"http://127.0.0.1:{port}", b"x" * 500_000)
        head, body = client.message()
        assert head.startswith(b"HTTP/1.1 502 ")
        assert value(head, b"content-type") == b"application/json"
        assert b"Connection refused" in body
        end = it.told.end()
        assert end.how == "upstream unreachable"
        assert end.detail == "Connection refused; answered 502"
        assert len(it.told.of(Request)[0].body) == 500_000
        client.send(post(it.path(f"http://127.0.0.1:{port}")))
        assert client.message()[0].startswith(b"HTTP/1.1 502 ")


def test_a_name_that_is_none_is_an_honest_error_to_the_client():
    with through() as it:
        assert b"cannot be resolved" in it.ask("http://nobody.invalid").message()[1]
        assert it.told.end().how == "upstream unreachable"


@pytest.mark.skipif(sys.platform != "linux", reason="fills a queue as Linux keeps it")
def test_an_upstream_that_does_not_take_the_connection_is_a_timeout(monkeypatch):
    monkeypatch.setattr(lines, "CONNECT_SECONDS", 0.05)
    with socket.create_server(("127.0.0.1", 0), backlog=0) as full, through() as it:
        crowd = []
        for _ in range(4):  # more than its queue holds; the rest hangs
            one = socket.socket()
            one.setblocking(False)
            one.connect_ex(full.getsockname())
            crowd.append(one)
        head, body = it.ask(f"http://127.0.0.1:{full.getsockname()[1]}").message()
        for one in crowd:
            one.close()
        assert head.startswith(b"HTTP/1.1 504 Gateway Timeout\r\n")
        assert b"ctxscope_upstream_timeout" in body
        assert it.told.end().how == "upstream timeout"


def test_an_upstream_that_answers_before_it_took_the_request_is_heard():
    reply = b"HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"

    def serve(peer):
        peer.until(b"\r\n\r\n")
        peer.send(reply)
        peer.gone()

    with Server(serve) as server, through() as it:
        client = it.ask(server.origin, b"x" * 8_000_000)
        assert client.message()[0].startswith(b"HTTP/1.1 413 Too Large")
        assert it.told.end().how == "complete"


def test_a_slow_client_gets_all_that_came_before_the_upstream_broke_off():
    def serve(peer):
        peer.message()
        peer.send(SSE + chunk(b"x" * size))

    size = 24 << 20
    with Server(serve) as server, through() as it:
        client = it.ask(server.origin)
        client.until(SSE)
        parts = [client.exactly(size // 2)]
        while sum(map(len, parts)) < size - 100_000 and not it.told.soon(lambda: it.told.of(End)):
            parts.append(client.exactly(1 << 15))
        parts.append(client.rest())
        assert it.told.end().how == "upstream reset"
        assert b"".join(parts).count(b"x") == len(it.told.body()) == size


# --- connections that are used again ---


def test_a_stale_connection_is_no_failure_of_the_request():
    served = []

    def serve(peer):
        peer.message()
        served.append(1)
        peer.send(OK)
        if len(served) == 1:
            peer.until(b"POST ")  # closes with the next request unread, as servers do whose patience just ended
            peer.reset()

    with Server(serve) as server, through() as it:
        client, path = it.connect(), it.path(server.origin)
        for n in (1, 2):
            client.send(post(path, b"x" * 300_000))
            assert client.message()[1] == b"ok"
            assert it.told.end(n).how == "complete"
        assert len(served) == 2


def test_a_connection_that_still_carries_a_request_is_not_used_for_another():
    served = []

    def serve(peer):
        served.append(peer)
        peer.until(b"\r\n\r\n")
        peer.send(OK)  # without having taken the body
        assert done.wait(CAP)

    done = threading.Event()
    with Server(serve) as server, through() as it:
        client, path = it.connect(), it.path(server.origin)
        for n in (1, 2):
            client.send(post(path, b"x" * 20_000_000))
            assert client.message()[1] == b"ok"
            assert it.told.end(n).how == "complete"
        done.set()
    assert len(served) == 2


def test_a_connection_that_breaks_at_its_first_request_is_not_tried_again():
    count = []

    def serve(peer):
        count.append(1)
        peer.message()

    with Server(serve) as server, through() as it:
        assert it.ask(server.origin).message()[0].startswith(b"HTTP/1.1 502")
        assert len(count) == 1


def test_a_used_connection_that_broke_after_a_byte_of_the_reply_is_not_tried_again():
    count = []

    def serve(peer):
        count.append(1)
        peer.message()
        peer.send(OK)
        peer.message()
        peer.send(b"HTTP/1.1 2")
        it.told.wait(lambda: len(it.told.of(Request)) == 2)
        peer.reset()

    with Server(serve) as server, through() as it:
        client, path = it.connect(), it.path(server.origin)
        client.send(post(path))
        client.message()
        it.told.end(1)
        client.send(post(path))
        assert client.message()[0].startswith(b"HTTP/1.1 502")
        assert len(count) == 1


def test_a_used_connection_that_broke_after_long_work_is_not_tried_again(monkeypatch):
    monkeypatch.setattr(lines, "STALE_SECONDS", 0.0)
    count = []

    def serve(peer):
        count.append(1)
        peer.message()
        peer.send(OK)
        peer.message()
        peer.reset()

    with Server(serve) as server, through() as it:
        client, path = it.connect(), it.path(server.origin)
        for status in (b"200", b"502"):
            client.send(post(path))
            assert client.message()[0].startswith(b"HTTP/1.1 " + status)
        assert len(count) == 1


# --- many at once, and the end ---


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
        client = it.ask(server.origin)
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


def test_stopping_lets_a_client_have_what_was_sent_to_it():
    size = 30 << 20

    def serve(peer):
        peer.message()
        peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size)
        for _ in range(size >> 20):
            peer.send(b"x" * (1 << 20))

    with Server(serve) as server, through() as it:
        client = it.ask(server.origin)
        client.until(b"\r\n\r\n")
        had = len(client.exactly(size // 2))
        while had < size - (1 << 20) and not it.told.soon(lambda: it.told.of(End)):
            had += len(client.exactly(1 << 15))
        assert it.told.end().how == "complete"  # as far as the proxy is concerned
        stop = threading.Thread(target=it.proxy.stop, args=(CAP,))
        stop.start()
        assert len(client.exactly(size - had)) == size - had
        stop.join(CAP)


def test_stopping_cuts_what_does_not_end():
    def serve(peer):
        peer.message()
        peer.send(SSE + chunk(event(1)))
        peer.gone()

    with Server(serve) as server, through() as it:
        client = it.ask(server.origin)
        client.until(event(1))
        began = time.monotonic()
        it.proxy.stop(0.05)
        assert time.monotonic() - began < CAP
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
