"""Which connection a request goes over, and what becomes of one end when the other is closed."""

from __future__ import annotations

import threading

import pytest

from ctxscope.capture.events import End, Request
from tests.proxy_peers import CAP, OK, Server, answering, post, through

CLOSING = OK.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")


@pytest.mark.parametrize("leave", ["close", "reset"])
def test_a_request_of_which_a_byte_was_sent_is_never_sent_again(leave):
    """The upstream may have taken it: two calls would be paid for, and one be recorded."""
    taken = []

    def serve(peer):
        for reply in (OK, b""):
            taken.append(peer.message()[1])
            peer.send(reply)
        getattr(peer, leave)()

    with Server(serve) as server, through() as it:
        client, path = it.connect(), it.path(server.origin)
        client.send(post(path, b"one"))
        assert client.message()[1] == b"ok"
        client.send(post(path, b"two"))
        if leave == "reset":
            with pytest.raises(ConnectionResetError):
                client.rest()
        else:
            assert client.rest() == b""  # as its server would have left it; no word of ours
        end = it.told.end(2)
        assert end.how == "upstream reset"
        assert end.detail.endswith("; the client's connection was closed likewise")
        assert [type(e) for e in it.told.events if e.n == 2] == [Request, End]
    assert taken == [b"one", b"two"]


def test_a_used_connection_that_broke_after_a_byte_of_the_reply_is_an_honest_error():
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


def test_a_connection_that_breaks_at_its_first_request_is_not_tried_again():
    count = []

    def serve(peer):
        count.append(1)
        peer.message()

    with Server(serve) as server, through() as it:
        assert it.ask(server.origin).message()[0].startswith(b"HTTP/1.1 502")
        assert len(count) == 1


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


def test_clients_do_not_share_connections_to_an_upstream():
    peers, gone = [], threading.Event()

    def serve(peer):
        peers.append(peer)
        peer.message()
        peer.send(OK)
        if peer.gone():
            gone.set()

    with Server(serve) as server, through() as it:
        first = it.ask(server.origin)
        first.message()
        it.told.end(1)
        it.ask(server.origin).message()
        assert len(peers) == 2
        first.close()
        assert gone.wait(CAP)  # its connection leaves with it


@pytest.mark.parametrize("leave", ["close", "reset"])
def test_a_connection_that_the_upstream_closes_while_it_is_idle_is_closed_to_the_client_too(leave):
    def serve(peer):
        peer.message()
        peer.send(OK)
        assert idle.wait(CAP)
        getattr(peer, leave)()

    idle = threading.Event()
    with Server(serve) as server, through() as it:
        client = it.ask(server.origin)
        assert client.message()[1] == b"ok"
        it.told.end()
        idle.set()
        assert client.rest() == b""
        assert it.proxy.requests == 1


def test_a_connection_that_is_closed_right_behind_a_reply_is_closed_to_the_client_too():
    with Server(lambda peer: (peer.message(), peer.send(OK))) as server, through() as it:
        assert it.ask(server.origin).rest() == OK
        assert it.told.end().how == "complete"


def test_a_reply_that_ends_its_connection_ends_the_clients():
    with Server(lambda peer: (peer.message(), peer.send(CLOSING), peer.gone())) as server, through() as it:
        assert it.ask(server.origin).rest() == CLOSING


def test_a_connection_known_to_be_closed_before_a_byte_was_sent_is_made_anew():
    """Another upstream's was the last, so the client's own stays."""
    count = []

    def serve(peer):
        count.append(1)
        peer.message()
        peer.send(OK)
        if len(count) == 1:
            assert elsewhere.wait(CAP)
        else:
            peer.gone()

    elsewhere = threading.Event()
    with Server(serve) as server, answering(lambda *_: OK) as other, through() as it:
        client, there, here = it.connect(), it.path(other.origin), it.path(server.origin)
        for path in (here, there):
            client.send(post(path))
            assert client.message()[1] == b"ok"
        it.told.end(2)
        elsewhere.set()
        server._threads[0].join(CAP)  # closed by now
        client.send(post(there))
        assert client.message()[1] == b"ok"
        client.send(post(here))
        assert client.message()[1] == b"ok"
        assert it.told.end(4).how == "complete"
    assert len(count) == 2
