"""What goes through the proxy comes out of it as it was, both ways, and stands so in the record."""

from __future__ import annotations

import base64
import gzip
import json
import random
import zlib

import brotli
import pytest
from backports import zstd

from ctxscope.capture.events import Chunk, Head, Request
from tests.proxy_peers import END, OK, Server, answering, chunk, post, through, value

_RANDOM = random.Random(5)
_IMAGE = base64.b64encode(_RANDOM.randbytes(5 << 20)).decode()
_JSON = b'{"model":"m","messages":[{"role":"user","content":"hello"}]}'
BODIES: dict[str, bytes] = {
    "key order": b'{"messages":[],"model":"m","a":1}',
    "escapes": rb'{"t":"\u00e9\ud83d\ude00\/\u0000\ud800"}',
    "spaces": b' {\t"a" :\r\n 1 , "b":[ ] }\n\n',
    "duplicate keys": b'{"a":1,"a":2,"a":{"b":1,"b":1}}',
    "numbers": b'{"a":1e3,"b":1.0,"c":-0,"d":123456789012345678901234567890}',
    "20 MB of images": json.dumps({"messages": [{"image": _IMAGE}] * 3}).encode(),
    "empty": b"",
    "not JSON": bytes(range(256)) * 3,
    "half JSON": b'{"messages":[{"role":',
    "gzip": gzip.compress(_JSON),
    "deflate": zlib.compress(_JSON),
    "br": brotli.compress(_JSON),
    "zstd": zstd.compress(_JSON),
    "UTF-8 with a mark": b"\xef\xbb\xbf" + '{"t":"日本語 ñ"}'.encode(),
}
ENCODED = ("gzip", "deflate", "br", "zstd")


def echo(head: bytes, body: bytes) -> bytes:
    encoding = value(head, b"content-encoding")
    more = b"Content-Encoding: %b\r\n" % encoding if encoding else b""
    return b"HTTP/1.1 200 OK\r\n%bContent-Length: %d\r\n\r\n" % (more, len(body)) + body


def echo_chunked(_: bytes, body: bytes) -> bytes:
    pieces = [body[i : i + 70_000] for i in range(0, len(body), 70_000)]
    return b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b"".join(map(chunk, pieces)) + b"0\r\n\r\n"


@pytest.mark.parametrize("chunked", [False, True], ids=["length", "chunked"])
@pytest.mark.parametrize("name", BODIES)
def test_a_body_is_the_same_at_both_ends_and_in_the_record(name, chunked):
    body = BODIES[name]
    encoding = [b"Content-Encoding: %b" % name.encode()] if name in ENCODED else []
    with answering(echo_chunked if chunked else echo) as server, through() as it:
        client, path = it.connect(), it.path(server.origin)
        if chunked:
            lines = [b"POST %b HTTP/1.1" % path, b"Host: proxy", *encoding, b"Transfer-Encoding: chunked"]
            halves = body[: len(body) // 2], body[len(body) // 2 :]
            client.send(b"\r\n".join(lines) + END + b"".join(chunk(half) for half in halves if half) + b"0\r\n\r\n")
        else:
            client.send(post(path, body, *encoding))
        head, came = client.message()
        assert server.seen[0][1] == body
        assert came == body
        assert it.told.of(Request)[0].body == body
        assert it.told.body() == body
        assert (value(server.seen[0][0], b"transfer-encoding") == b"chunked") == chunked
        assert (value(head, b"transfer-encoding") == b"chunked") == chunked
        if encoding:
            assert value(server.seen[0][0], b"content-encoding") == name.encode()


HEADERS = [
    *(b"accept: */*", b"X-Odd-CASE: kept", b"x-api-key: secret", b"Cookie: a=1; b=2", b"anthropic-beta: one"),
    *(b"anthropic-beta: two", b"Accept-Encoding: br, gzip", b"X-Empty: ", b"X-Bytes: caf\xe9 \xff"),
]
DROPPED = [b"Connection: keep-alive, X-Mine", b"Keep-Alive: timeout=5", b"X-Mine: 1", b"TE: trailers"]


def test_headers_keep_their_order_case_and_bytes_and_get_no_company():
    with answering(lambda *_: OK) as server, through() as it:
        client = it.connect()
        lines = [b"POST %b HTTP/1.1" % it.path(server.origin), *HEADERS[:4], b"hOsT: proxy", *HEADERS[4:]]
        client.send(b"\r\n".join([*lines, *DROPPED, b"Content-Length: 2"]) + END + b"{}")
        client.message()
        host = b"hOsT: 127.0.0.1:%d" % server.port
        want = [b"POST /v1/messages HTTP/1.1", *HEADERS[:4], host, *HEADERS[4:], b"Content-Length: 2", b"", b""]
        assert server.seen[0][0].split(b"\r\n") == want
        recorded = it.told.of(Request)[0].headers
        assert [f"{k}: {v}".encode("latin-1") for k, v in recorded] == [*lines[1:], *DROPPED, b"Content-Length: 2"]


def test_a_reply_has_the_headers_of_the_upstream_and_no_others():
    lines = [
        *(b"HTTP/1.1 429 Slow  Down", b"set-cookie: a=1", b"Retry-After: 5", b"Set-Cookie: b=\xe9", b"x-ODD: 1"),
        *(b"request-id: r", b"Content-Length: 2"),
    ]
    with (
        answering(lambda *_: b"\r\n".join([*lines, b"Keep-Alive: timeout=5"]) + END + b"no") as server,
        through() as it,
    ):
        client = it.ask(server.origin)
        head, body = client.message()
        assert head.split(b"\r\n") == [*lines, b"", b""]
        assert body == b"no"
        told = it.told.of(Head)[0]
        assert (told.status, told.reason) == (429, "Slow  Down")
        assert told.headers[2] == ("Set-Cookie", "b=\xe9")
        assert told.headers[-1] == ("Keep-Alive", "timeout=5")


@pytest.mark.parametrize("method", ["GET", "DELETE", "OPTIONS", "PUT", "PATCH", "HEAD"])
def test_any_method_passes_without_a_body(method):
    def serve(peer):
        head, _ = peer.message()
        server.seen.append((head, b""))
        peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n" + (b"" if method == "HEAD" else b"0123456789"))

    with Server(serve) as server, through() as it:
        client = it.connect()
        client.send(method.encode() + b" %b HTTP/1.1\r\nHost: p\r\n\r\n" % it.path(server.origin, "/v1/models"))
        head, body = client.message(bodiless=method == "HEAD")
        assert server.seen[0][0].split(b"\r\n")[0] == method.encode() + b" /v1/models HTTP/1.1"
        assert server.seen[0][0].count(b"\r\n") == 3
        assert value(head, b"content-length") == b"10"
        assert body == (b"" if method == "HEAD" else b"0123456789")
        assert it.told.end().how == "complete"
        assert it.told.of(Request)[0].method == method


@pytest.mark.parametrize("status", [204, 304])
def test_a_reply_without_a_body_ends_with_its_head(status):
    with answering(lambda *_: b"HTTP/1.1 %d Nothing\r\nETag: x\r\n\r\n" % status) as server, through() as it:
        client = it.ask(server.origin)
        assert client.message(bodiless=True)[0] == b"HTTP/1.1 %d Nothing\r\nETag: x\r\n\r\n" % status
        client.send(post(it.path(server.origin)))
        client.message(bodiless=True)
        assert it.told.end(2).how == "complete"


@pytest.mark.parametrize(
    "path",
    [
        *(
            "/v1/a%2Fb/%C3%A9%c3%a9?x=%20+&y=[a]|b&z",
            "//double//slash/../up/./?",
            "/v1/models/gemini:stream?alt=sse&key=K",
        ),
        *("?query-only", "", "/a;b=c,d@e:f!$'()*", "/%00%7F%zz"),
    ],
)
def test_path_and_query_go_upstream_verbatim(path):
    with answering(lambda *_: OK) as server, through() as it:
        it.ask(server.origin, path=path).message()
        want = path if path.startswith("/") else "/" + path
        assert server.seen[0][0].split(b" ")[1].decode() == want
        assert it.told.of(Request)[0].target == want


def test_the_path_of_the_base_url_stays_in_place():
    with answering(lambda *_: OK) as server, through() as it:
        it.ask(server.origin + "/Base%20Path/v1", path="/x").message()
        assert server.seen[0][0].startswith(b"POST /Base%20Path/v1/x HTTP/1.1\r\n")


def test_long_headers_pass_both_ways():
    long = b"x" * 300_000
    many = b"".join(b"X-%d: y\r\n" % i for i in range(500))
    reply = b"HTTP/1.1 200 OK\r\nX-Long: " + long + b"\r\n" + many + b"Content-Length: 2\r\n\r\nok"
    with answering(lambda *_: reply) as server, through() as it:
        client = it.connect()
        client.send(post(it.path(server.origin, "/" + "p" * 100_000), b"{}", b"X-Long: " + long, many.rstrip()))
        assert client.message()[0] + b"ok" == reply
        assert value(server.seen[0][0], b"x-long") == long
        assert b"X-499: y" in server.seen[0][0]


def test_a_client_that_waits_to_be_told_to_go_on_is_told():
    with answering(lambda *_: OK) as server, through() as it:
        client = it.connect()
        client.send(post(it.path(server.origin), b"", b"Expect: 100-continue").replace(b"Length: 0", b"Length: 5"))
        assert client.until(END) == b"HTTP/1.1 100 Continue\r\n\r\n"
        client.send(b"hello")
        assert client.message()[1] == b"ok"
        assert server.seen[0][1] == b"hello"
        assert b"xpect" not in server.seen[0][0]
        assert ("Expect", "100-continue") in it.told.of(Request)[0].headers


def test_interim_replies_are_no_replies():
    reply = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" + OK
    with answering(lambda *_: reply) as server, through() as it:
        assert it.ask(server.origin).message()[0].startswith(b"HTTP/1.1 200 OK")
        assert it.told.end().how == "complete"


def test_a_redirect_is_the_clients_to_follow():
    reply = b"HTTP/1.1 307 Temporary Redirect\r\nLocation: https://elsewhere.invalid/x\r\nContent-Length: 0\r\n\r\n"
    with answering(lambda *_: reply) as server, through() as it:
        assert it.ask(server.origin).message()[0] == reply
        assert len(server.seen) == 1


def test_cookies_of_a_reply_are_not_sent_with_the_next_request():
    reply = b"HTTP/1.1 200 OK\r\nSet-Cookie: a=1\r\nContent-Length: 0\r\n\r\n"
    with answering(lambda *_: reply) as server, through() as it:
        for _ in range(2):
            it.ask(server.origin).message()
        assert not any(b"ookie" in head for head, _ in server.seen)


def test_a_client_of_http_1_0_gets_a_body_that_ends_with_the_connection():
    with answering(echo_chunked) as server, through() as it:
        client = it.connect()
        client.send(b"POST %b HTTP/1.0\r\nContent-Length: 5\r\n\r\nhello" % it.path(server.origin))
        assert client.rest() == b"HTTP/1.0 200 OK\r\n\r\nhello"
        assert server.seen[0][0].startswith(b"POST /v1/messages HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n" % server.port)


def test_a_client_that_wants_its_connection_closed_gets_it_closed():
    with answering(lambda *_: OK) as server, through() as it:
        client = it.connect()
        client.send(post(it.path(server.origin), b"{}", b"Connection: close"))
        assert client.rest() == OK.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")
        assert b"onnection" not in server.seen[0][0]


def test_a_client_of_http_1_0_may_keep_its_connection():
    with answering(lambda *_: OK) as server, through() as it:
        client, path = it.connect(), it.path(server.origin)
        for _ in range(2):
            client.send(post(path, b"{}", b"Connection: keep-alive").replace(b"HTTP/1.1", b"HTTP/1.0"))
            head, body = client.message()
            assert head == b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\nConnection: keep-alive\r\n\r\n"
            assert body == b"ok"


def test_a_reply_that_ends_with_the_upstreams_connection_gets_an_end_of_its_own():
    def serve(peer):
        peer.message()
        peer.send(b"HTTP/1.1 200 OK\r\n\r\nall of it")

    with Server(serve) as server, through() as it:
        client = it.ask(server.origin)
        head, body = client.message()
        assert head == b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
        assert body == b"all of it"
        assert client.rest() == b""
        assert it.told.end().how == "complete"
        assert it.told.of(Head)[0].headers == ()


def test_one_connection_carries_many_exchanges_and_connections_to_the_upstream_are_kept():
    peers = []

    def serve(peer):
        peers.append(peer)
        while True:
            peer.message()
            peer.send(OK)

    with Server(serve) as server, through() as it:
        client, path = it.connect(), it.path(server.origin)
        for n in range(1, 6):
            client.send(post(path, b"%d" % n))
            client.message()
            it.told.end(n)
        client.send(post(path, b"6") + post(path, b"7"))  # not waiting for the first reply
        assert [client.message()[1] for _ in range(2)] == [b"ok", b"ok"]
        it.told.end(7)
        assert len(peers) == 1
        assert [r.body for r in it.told.of(Request)] == [b"%d" % n for n in range(1, 8)]
        assert it.proxy.requests == 7


def test_a_body_is_on_its_way_before_the_client_has_sent_it_all():
    def serve(peer):
        peer.until(b"first half")
        half_there.send(b"second half")
        peer.until(b"second half")
        peer.send(OK)

    with Server(serve) as server, through() as it:
        half_there = it.connect()
        path = it.path(server.origin)
        half_there.send(post(path, b"", b"X: 1").replace(b"Length: 0", b"Length: 21") + b"first half")
        assert half_there.message()[1] == b"ok"
        assert it.told.of(Request)[0].body == b"first halfsecond half"


def test_the_offsets_of_chunks_tile_the_body():
    with answering(echo) as server, through() as it:
        it.ask(server.origin, b"x" * 1_000_000).message()
        it.told.end()
        at = 0
        for piece in it.told.of(Chunk):
            assert piece.offset == at
            at += len(piece.data)
        assert at == 1_000_000
