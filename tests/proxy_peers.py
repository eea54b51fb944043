"""Both ends of a proxy as bare sockets, so that real bytes are compared, and a sink that can be waited for."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Self
from urllib.parse import urlsplit

from ctxscope.capture import events
from ctxscope.capture.proxy import Proxy

CAP = 30.0
"""Seconds after which a wait has failed; none is expected to come near."""
END = b"\r\n\r\n"
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
SSE = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"


class Closed(Exception):  # noqa: N818 - an ordinary thing for a peer to meet
    """The other side closed the connection in order."""


class Peer:
    """One side of a connection."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.sock.settimeout(CAP)
        self.held = b""

    def send(self, data: bytes) -> None:
        self.sock.sendall(data)

    def _more(self) -> None:
        data = self.sock.recv(1 << 18)
        if not data:
            raise Closed
        self.held += data

    def until(self, mark: bytes) -> bytes:
        """Bytes up to and with a mark."""
        while mark not in self.held:
            self._more()
        at = self.held.index(mark) + len(mark)
        found, self.held = self.held[:at], self.held[at:]
        return found

    def exactly(self, size: int) -> bytes:
        parts = [self.held]
        have = len(self.held)
        while have < size:
            data = self.sock.recv(1 << 18)
            if not data:
                raise Closed
            parts.append(data)
            have += len(data)
        whole = b"".join(parts)
        self.held = whole[size:]
        return whole[:size]

    def message(self, *, bodiless: bool = False) -> tuple[bytes, bytes]:
        """Head, and body without its framing, of the next request or reply."""
        head = self.until(END)
        lower = head.lower()
        if bodiless:
            return head, b""
        if b"\r\ntransfer-encoding: chunked" in lower:
            parts = []
            while size := int(self.until(b"\r\n"), 16):
                parts.append(self.exactly(size))
                self.exactly(2)
            self.until(b"\r\n")
            return head, b"".join(parts)
        return head, self.exactly(int(value(head, b"content-length") or 0))

    def rest(self) -> bytes:
        """Everything until the connection is closed; raises ``ConnectionError`` when it is reset."""
        with suppress(Closed):
            while True:
                self._more()
        found, self.held = self.held, b""
        return found

    def gone(self) -> bool:
        """Wait until the other side has closed or reset the connection."""
        with suppress(ConnectionError):
            self.rest()
        return True

    def reset(self) -> None:
        """Leave without a farewell."""
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.sock.close()

    def close(self) -> None:
        self.sock.close()


def value(head: bytes, name: bytes) -> bytes | None:
    """A header of a head, by its name in lower case."""
    found = [line for line in head.split(b"\r\n")[1:] if line.lower().startswith(name + b":")]
    return found[0].partition(b":")[2].strip() if found else None


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


def event(n: int) -> bytes:
    return b"data: %d\n\n" % n


@dataclass
class Server:
    """An upstream that does what a function says with each connection."""

    serve: Callable[[Peer], None]
    wrap: Callable[[socket.socket], socket.socket] = lambda sock: sock
    seen: list[tuple[bytes, bytes]] = field(default_factory=list)
    """Heads and bodies of all requests that ``Peer.message`` read in ``answering``."""
    faults: list[BaseException] = field(default_factory=list)
    _peers: list[Peer] = field(default_factory=list)
    _threads: list[threading.Thread] = field(default_factory=list)

    def __enter__(self) -> Self:
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=512)
        self.port = self._listener.getsockname()[1]
        self.origin = f"http://127.0.0.1:{self.port}"
        self._accepting = threading.Thread(target=self._accept)
        self._accepting.start()
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._accepting.join(CAP)
        for thread in self._threads:  # the proxy is stopped by now, so each finds its connection ended
            thread.join(CAP)
        for peer in self._peers:
            with suppress(OSError):
                peer.sock.shutdown(socket.SHUT_RDWR)
            peer.close()
        assert not any(thread.is_alive() for thread in self._threads)
        assert not self.faults, self.faults

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                sock, _ = self._listener.accept()
                thread = threading.Thread(target=self._run, args=(sock,))
                self._threads.append(thread)
                thread.start()

    def _run(self, sock: socket.socket) -> None:
        peer = None
        try:
            peer = Peer(self.wrap(sock))
            self._peers.append(peer)
            self.serve(peer)
        except (Closed, OSError):
            pass
        except BaseException as fault:  # noqa: BLE001 - shown by the test that started it
            self.faults.append(fault)
        finally:
            (peer or sock).close()


def answering(reply: Callable[[bytes, bytes], bytes]) -> Server:
    """An upstream that answers each request, on connections it keeps."""

    def serve(peer: Peer) -> None:
        while True:
            head, body = peer.message()
            server.seen.append((head, body))
            peer.send(reply(head, body))

    server = Server(serve)
    return server


class Told:
    """A sink that remembers, and can be waited for."""

    def __init__(self) -> None:
        self.events: list[Any] = []
        self._news = threading.Condition()

    def __call__(self, event: Any) -> None:
        with self._news:
            self.events.append(event)
            self._news.notify_all()

    def wait(self, ready: Callable[[], Any]) -> Any:
        """Wait until something is so, which only new events can change; its value."""
        with self._news:
            assert self._news.wait_for(ready, CAP), self.events
            return ready()

    def soon(self, ready: Callable[[], Any]) -> bool:
        """Whether something becomes so before a few milliseconds have passed."""
        with self._news:
            return bool(self._news.wait_for(ready, 0.005))

    def of(self, kind: type, n: int | None = None) -> list[Any]:
        return [e for e in tuple(self.events) if type(e) is kind and (n is None or e.n == n)]

    def end(self, n: int = 1) -> events.End:
        return self.wait(lambda: self.of(events.End, n))[0]

    def body(self, n: int = 1) -> bytes:
        """The recorded body of a reply, once it has ended."""
        self.end(n)
        return b"".join(c.data for c in self.of(events.Chunk, n))


@dataclass
class Through:
    """A proxy, its sink, and connections through it."""

    proxy: Proxy
    told: Told
    said: Told
    """Sentences."""
    _clients: list[Peer] = field(default_factory=list)

    def connect(self, room: int = 0) -> Peer:
        """A client's connection; ``room`` bounds the bytes that the system receives for it.

        A client that reads slowly needs one: a receive buffer that grows by itself (up to 32 MB here) fills, drops what
        comes then, and the repeated sends back off beyond ``CAP``.
        """
        host, _, port = self.proxy.address.rpartition(":")
        sock = socket.socket()
        peer = Peer(sock)
        self._clients.append(peer)
        if room:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, room)
        sock.connect((host, int(port)))
        return peer

    def path(self, base_url: str, path: str = "/v1/messages", shown: str = "") -> bytes:
        """The path that leads to an upstream, which is registered by it."""
        return (urlsplit(self.proxy.through(base_url, shown=shown)).path + path).encode()

    def ask(self, base_url: str, body: bytes = b"{}", path: str = "/v1/messages", room: int = 0) -> Peer:
        """A client that has sent a POST."""
        peer = self.connect(room)
        peer.send(post(self.path(base_url, path), body))
        return peer

    def slowly(self, client: Peer, size: int) -> int:
        """Let a client read a reply of so many bytes no faster than needed for it to be over for the proxy; those it had."""
        had = len(client.exactly(size // 2))
        while had < size - (1 << 20) and not self.told.soon(lambda: self.told.of(events.End)):
            had += len(client.exactly(1 << 15))
        assert self.told.end().how == "complete"
        return had


def post(path: bytes, body: bytes = b"{}", *headers: bytes) -> bytes:
    lines = [b"POST %b HTTP/1.1" % path, b"Host: proxy", *headers, b"Content-Length: %d" % len(body)]
    return b"\r\n".join(lines) + END + body


@contextmanager
def through(**options: Any) -> Iterator[Through]:
    """A proxy that is started, and stopped again."""
    told, said = Told(), Told()
    proxy = Proxy(told, told=said, **options)
    proxy.start()
    it = Through(proxy, told, said)
    try:
        yield it
    finally:
        for client in it._clients:
            client.close()
        proxy.stop(0)
