"""Connections to upstreams: aiohttp's resolver, TLS and parser, with the request's bytes written by us.

``ClientSession`` would put the Host header first, drop bytes of a header that are not UTF-8, repeat requests by rules of
its own and take longer (read in aiohttp 3.14.5). Nothing goes back to aiohttp's pool: a connection stays with the client
it was made for (``clients``).
"""

from __future__ import annotations

import asyncio
import functools
import socket
import ssl
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, cast

import aiohttp
from aiohttp.client_proto import ResponseHandler
from aiohttp.connector import Connection
from aiohttp.http import RawResponseMessage, StreamWriter
from yarl import URL

from ctxscope.capture.proxy.upstreams import Upstream

CONNECT_SECONDS = 60.0
"""For a connection and its TLS handshake; an agent's own limit is shorter. Nothing else is limited."""
LONGEST = 1 << 24
"""Bytes of a header line, more than any server takes: aiohttp wants a limit."""
MOST = 1 << 16
"""Headers of a message; likewise."""
KEEPALIVE_SECONDS = 60
SWITCHING = 101
FINAL = 200
_BUFFER = 1 << 18
"""Bytes of a reply that wait for a slow client; aiohttp lets it be twice as many."""


class Line(ResponseHandler):
    """A connection; remembers what aiohttp's own forgets."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(loop)
        self.heard = False
        """Whether a byte came since the last request was written."""
        self.lost: BaseException | None = None
        """How it broke; ``None`` for a connection that was closed in order."""
        self.unused: Callable[[], None] | None = None
        """Called when it ends while no request is under way; set for as long as that is so."""

    def data_received(self, data: bytes) -> None:
        """Bytes came."""
        self.heard = True
        super().data_received(data)

    def connection_lost(self, exc: BaseException | None) -> None:
        """It is closed or broken."""
        self.lost = exc
        super().connection_lost(exc)
        if self.unused is not None:
            self.unused()

    @property
    def fit(self) -> bool:
        """Whether it can serve another request; one that is known to be closed can not."""
        return self.is_connected() and not self.should_close


def alive(address: aiohttp.AddrInfoType) -> socket.socket:
    """A socket that keeps a silent connection known to the networks on its way, as clients of model providers do.

    A model may think for minutes.
    """
    sock = socket.socket(*address[:3])
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name in ("TCP_KEEPIDLE", "TCP_KEEPALIVE", "TCP_KEEPINTVL"):
        if hasattr(socket, name):
            sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), KEEPALIVE_SECONDS)
    return sock


class _Connector(aiohttp.TCPConnector):
    def __init__(self) -> None:
        super().__init__(limit=0, socket_factory=alive)
        factory: Any = functools.partial(Line, loop=self._loop)
        self._factory = factory


@dataclass(slots=True)
class Call:
    """A request going out, over a connection that may still be made, and its reply coming back."""

    connection: Connection | None
    """``None`` while it is being made."""
    making: asyncio.Task[None] | None = None
    """``None`` for a connection that served the client before."""
    _held: list[bytes] = field(default_factory=list)
    """What was written before there was a connection."""

    @property
    def line(self) -> Line:
        """The connection, once there is one."""
        assert self.connection is not None
        return cast("Line", self.connection.protocol)

    @property
    def failed(self) -> BaseException | None:
        """Why there is no connection and will be none."""
        making = self.making
        return making.exception() if making is not None and making.done() and not making.cancelled() else None

    def begin(self, connection: Connection, *, bodiless: bool) -> None:
        """There is a connection: send what waits for it; ``bodiless``: the reply has no body, whatever it says."""
        self.connection = connection
        self.line.heard = False
        self.line.set_response_params(
            skip_payload=bodiless,
            read_until_eof=True,
            auto_decompress=False,
            read_bufsize=_BUFFER,
            max_line_size=LONGEST,
            max_field_size=LONGEST,
            max_headers=MOST,
        )
        held, self._held = self._held, []
        for data in held:
            self.write(data)

    def write(self, data: bytes) -> None:
        """Send bytes, without waiting: the upstream may answer before it takes them all.

        Those for a broken connection are dropped; ``answer`` tells what broke it.
        """
        if self.connection is None:
            self._held.append(data)
            return
        transport = self.line.transport
        if transport is not None and not transport.is_closing():
            transport.write(data)

    async def answer(self) -> tuple[RawResponseMessage, aiohttp.StreamReader]:
        """The head of the reply, once it came, and its body. Raises one of ``failures.EXPECTED``."""
        if self.making is not None:
            await self.making
        message, body = await self.line.read()
        while message.code < SWITCHING or SWITCHING < message.code < FINAL:
            message, body = await self.line.read()
        return message, body

    @property
    def unanswered(self) -> bool:
        """Whether the connection served the client before, and no byte came since."""
        return self.making is None and not self.line.heard

    def given_up(self) -> Connection | None:
        """The connection, once the reply was read to its end, if it took the whole request and can serve another."""
        transport, connection = self.line.transport, self.connection
        if transport is None or transport.get_write_buffer_size() or not self.line.fit:
            return None
        self.connection = None
        return connection

    async def flushed(self) -> None:
        """Wait until all that was written is on its way, or nothing can be any more."""
        transport = self.line.transport
        if transport is not None:
            transport.set_write_buffer_limits(high=0)
            with suppress(ConnectionError):
                await StreamWriter(self.line, asyncio.get_running_loop()).drain()

    def abort(self) -> None:
        """Close the connection at once, or make it no further, unless it was given up."""
        if self.making is not None:
            self.making.cancel()
        if self.connection is not None:
            abort(self.connection)


def abort(connection: Connection) -> None:
    """Close a connection at once: TLS would wait for the other side's farewell."""
    transport = connection.transport
    connection.close()
    if transport is not None:
        transport.abort()


@dataclass(slots=True)
class Lines:
    """All connections of a proxy; made and used in its event loop."""

    trust: Callable[[], ssl.SSLContext]
    proxy_of: Callable[[Upstream], str | None]
    """URL of the proxy on the way to an upstream."""
    _connector: _Connector = field(default_factory=_Connector)
    _to: dict[Upstream, aiohttp.ClientRequest] = field(default_factory=dict)
    """What aiohttp wants to know of an upstream before it connects."""

    def call(self, upstream: Upstream, kept: Connection | None, *, bodiless: bool) -> Call:
        """A way for one request: the connection ``kept`` from the client's last one, or one that is being made."""
        call = Call(None)
        if kept is not None:
            call.begin(kept, bodiless=bodiless)
        else:
            call.making = asyncio.ensure_future(self._made(call, upstream, bodiless=bodiless))
            call.making.add_done_callback(_heard_of)
        return call

    async def _made(self, call: Call, upstream: Upstream, *, bodiless: bool) -> None:
        limit = aiohttp.ClientTimeout(sock_connect=CONNECT_SECONDS)
        call.begin(await self._connector.connect(self._request_to(upstream), [], limit), bodiless=bodiless)

    def _request_to(self, upstream: Upstream) -> aiohttp.ClientRequest:
        to = self._to.get(upstream)
        if to is None:
            proxy = self.proxy_of(upstream)
            to = self._to[upstream] = aiohttp.ClientRequest(
                "GET",
                URL(upstream.origin),
                loop=asyncio.get_running_loop(),
                ssl=self.trust() if upstream.scheme == "https" else True,
                proxy=URL(proxy) if proxy else None,
            )
        return to

    async def close(self) -> None:
        """Close them all."""
        await self._connector.close()


def _heard_of(making: asyncio.Task[None]) -> None:
    """Nobody may be there any more to whom a failure matters."""
    if not making.cancelled():
        making.exception()
