"""Upstreams that break, refuse, hang or are not there."""

from __future__ import annotations

import socket
import sys
import threading

import pytest

from ctxscope.capture.events import End, Head, Request
from ctxscope.capture.proxy import lines, replies
from tests.proxy_peers import CAP, OK, SSE, Server, answering, chunk, event, post, through, value

FRAMED = {
    "chunked": (SSE, chunk(b"data: 1\n\n")),
    "length": (b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n", b"data: 1\n\n"),
}


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


def test_an_upstream_that_speaks_no_tls_is_an_honest_error():
    def serve(peer):
        peer.sock.recv(10)
        peer.send(b"SSH-2.0-OpenSSH_9.2\r\n")
        peer.gone()

    with Server(serve) as server, through() as it:
        head, body = it.ask(f"https://127.0.0.1:{server.port}").message()
        assert head.startswith(b"HTTP/1.1 502 ")
        assert b"TLS failed" in body
        assert it.told.end().how == "upstream unreachable"


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


def test_a_request_that_breaks_off_to_an_upstream_that_is_not_there_says_both():
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    with through() as it:
        client = it.connect()
        client.send(post(it.path(f"http://127.0.0.1:{port}"), b"half").replace(b"Length: 4", b"Length: 100"))
        assert it.ask(f"http://127.0.0.1:{port}").message()[0].startswith(b"HTTP/1.1 502 ")  # so is the first by now
        client.close()
        end = it.told.end()
        assert end.how == "upstream unreachable"
        assert end.detail == "Connection refused; the request's body is torn: 4 of 100 bytes came"


@pytest.mark.parametrize(
    ("error", "how", "words"),
    [
        (RuntimeError("of /home/me"), "upstream reset", "the proxy failed: RuntimeError"),
        (ConnectionResetError(), "client left", ""),
    ],
)
def test_an_exchange_has_an_end_whatever_breaks_it(monkeypatch, error, how, words):
    def framing(*_):
        raise error

    monkeypatch.setattr(replies, "framing", framing)
    with answering(lambda *_: OK) as server, through() as it:
        it.ask(server.origin).gone()
        end = it.told.end()
        assert (end.how, end.detail) == (how, words)
        assert [type(e) for e in it.told.events] == [Request, Head, End]


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


def test_a_silent_connection_is_kept_known_to_the_networks_on_its_way():
    with lines.alive((socket.AF_INET, socket.SOCK_STREAM, 0, "", ("127.0.0.1", 1))) as sock:
        assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        if hasattr(socket, "TCP_KEEPIDLE"):
            assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) == lines.KEEPALIVE_SECONDS
