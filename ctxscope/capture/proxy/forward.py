"""The way in of a forward proxy: CONNECT is served here, everything else by the HTTP server behind it."""

from __future__ import annotations

import asyncio
import ssl
import weakref
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, cast

from ctxscope.capture.proxy import tunnels
from ctxscope.capture.proxy.authority import Authority
from ctxscope.capture.proxy.upstreams import Upstream, Upstreams
from ctxscope.model import CtxscopeError

_CONNECT = b"CONNECT "
_END = b"\r\n\r\n"
_LONGEST = 1 << 16
"""Bytes of the head of a CONNECT."""
_ESTABLISHED = b"HTTP/1.1 200 Connection established\r\n\r\n"
_REFUSED = b"HTTP/1.1 %b\r\n%bContent-Length: 0\r\nConnection: close\r\n\r\n"
CHALLENGE = (b"Proxy-Authenticate", b'Basic realm="ctxscope"')


class Gate(asyncio.Protocol):
    """A new connection, until its first bytes tell what it is for."""

    def __init__(self, behind: Callable[[], asyncio.Protocol], forward: Forward) -> None:
        self._behind = behind
        self._forward = forward
        self._held = b""
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Somebody is there."""
        self._transport = cast("asyncio.Transport", transport)
        self._forward.waiting.add(self._transport)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's face
        """It left without a word."""
        self._decided()

    def data_received(self, data: bytes) -> None:
        """Bytes came."""
        transport = self._transport
        if transport is None:
            return
        self._held += data
        if not self._held.startswith(_CONNECT[: len(self._held)]):
            self._decided()
            hand_over(transport, self._behind(), self._held)
        elif (at := self._held.find(_END)) >= 0:
            self._decided()
            transport.pause_reading()
            head, rest = self._held[:at], self._held[at + len(_END) :]
            self._forward.begin(self._forward.connect(transport, head, rest))
        elif len(self._held) > _LONGEST:
            transport.abort()

    def _decided(self) -> None:
        if self._transport is not None:
            self._forward.waiting.discard(self._transport)
            self._transport = None


class _Early(asyncio.Protocol):
    """Keeps what comes before the protocol it is for is in place."""

    def __init__(self) -> None:
        self.data = b""

    def data_received(self, data: bytes) -> None:
        self.data += data


@dataclass(slots=True)
class Forward:
    """What a forward proxy does beyond a reverse one."""

    upstreams: Upstreams
    authority: Authority
    tunnelled: dict[str, int]
    """Connections that nobody looked into, by host."""
    authorized: Callable[[bytes], bool]
    """Whether the value of a Proxy-Authorization header is right."""
    within: Callable[[Upstream], asyncio.Protocol]
    """The HTTP server for a connection that was made to one upstream."""
    dial: Callable[[str, int], Coroutine[Any, Any, tunnels.Ends]]
    told: Callable[[str], None]
    waiting: set[asyncio.Transport] = field(default_factory=set)
    """Connections that did not say yet what they are for."""
    running: set[asyncio.Task[None]] = field(default_factory=set)
    beneath: weakref.WeakSet[asyncio.Transport] = field(default_factory=weakref.WeakSet)
    """What carries TLS, which does not count the bytes that it has handed down."""

    def begin(self, work: Coroutine[Any, Any, None]) -> None:
        """Serve a CONNECT."""
        task = asyncio.ensure_future(work)
        self.running.add(task)
        task.add_done_callback(self.running.discard)

    def count(self, host: str) -> None:
        """A connection that nobody looks into."""
        self.tunnelled[host] = self.tunnelled.get(host, 0) + 1

    async def connect(self, transport: asyncio.Transport, head: bytes, rest: bytes) -> None:
        """Lead a connection to the upstream it asks for, or past everybody to another host."""
        try:
            await self._connect(transport, head, rest)
        except BaseException:
            transport.abort()
            raise

    async def _connect(self, transport: asyncio.Transport, head: bytes, rest: bytes) -> None:
        fields = dict(_field(line) for line in head.split(b"\r\n")[1:])
        place = _place(head)
        if not self.authorized(fields.get(b"proxy-authorization", b"")):
            _refuse(transport, b"407 Proxy Authentication Required", b"%b: %b\r\n" % CHALLENGE)
        elif place is None:
            _refuse(transport, b"400 Bad Request")
        elif (upstream := self.upstreams.at(*place)) is None:
            await self._tunnel(transport, place, rest)
        else:
            transport.write(_ESTABLISHED)
            if upstream.scheme == "https":
                await self._terminate(transport, upstream)
            else:
                hand_over(transport, self.within(upstream), rest)

    async def _tunnel(self, transport: asyncio.Transport, place: tuple[str, int], rest: bytes) -> None:
        self.count(place[0])
        try:
            there = await self.dial(*place)
        except (OSError, CtxscopeError):
            _refuse(transport, b"502 Bad Gateway")
            return
        here = tunnels.taken(transport, rest)
        here[1].write(_ESTABLISHED)
        transport.resume_reading()
        await tunnels.join(here, there)

    async def _terminate(self, transport: asyncio.Transport, upstream: Upstream) -> None:
        """Speak TLS in the upstream's name."""
        early, context = _Early(), self.authority.context(upstream.host)
        self.beneath.add(transport)
        loop = asyncio.get_running_loop()
        try:
            secure = await loop.start_tls(transport, early, context, server_side=True)
        except OSError as error:
            if isinstance(error, ssl.SSLError):
                self.told(f"{upstream.host}: the program did not accept ctxscope's certificate ({error.reason})")
            return
        if secure is not None:
            hand_over(secure, self.within(upstream), early.data)


def hand_over(transport: asyncio.Transport, protocol: asyncio.Protocol, already: bytes) -> None:
    """Give a connection to another protocol, with the bytes that came for it."""
    protocol.connection_made(transport)
    transport.set_protocol(protocol)
    transport.resume_reading()
    if already:
        protocol.data_received(already)


def _refuse(transport: asyncio.Transport, status: bytes, extra: bytes = b"") -> None:
    transport.write(_REFUSED % (status, extra))
    transport.close()


def _field(line: bytes) -> tuple[bytes, bytes]:
    name, _, value = line.partition(b":")
    return name.strip().lower(), value.strip()


def _place(head: bytes) -> tuple[str, int] | None:
    """Host and port that a CONNECT names."""
    host, colon, port = head[len(_CONNECT) :].split(b" ", 1)[0].decode("latin-1").rpartition(":")
    return (host.strip("[]"), int(port)) if colon and host and port.isascii() and port.isdecimal() else None
