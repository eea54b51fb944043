"""Connections to upstreams: aiohttp's pool, resolver, TLS and parser, with the request's bytes written by us.

``ClientSession`` would put the Host header first, drop bytes of a header that are not UTF-8, repeat requests by rules of
its own and take longer (read in aiohttp 3.14.5).
"""

from __future__ import annotations

import asyncio
import functools
import ssl
import time
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
STALE_SECONDS = 5.0
"""A connection the upstream had closed before shows it within a round trip; one that breaks later had been at work."""
SWITCHING = 101
FINAL = 200
_BUFFER = 1 << 18
"""Bytes of a reply that wait for a slow client; aiohttp lets it be twice as many."""


class Line(ResponseHandler):
    """A connection; remembers what aiohttp's own forgets."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(loop)
        self.used = False
        """Whether a request went over it before."""
        self.heard = False
        """Whether a byte came since the last request was written."""
        self.lost: BaseException | None = None
        """How it broke; ``None`` for a connection that was closed in order."""

    def data_received(self, data: bytes) -> None:
        """Bytes came."""
        self.heard = True
        super().data_received(data)

    def connection_lost(self, exc: BaseException | None) -> None:
        """It is closed or broken."""
        self.lost = exc
        super().connection_lost(exc)


class _Connector(aiohttp.TCPConnector):
    def __init__(self) -> None:
        super().__init__(limit=0)
        factory: Any = functools.partial(Line, loop=self._loop)
        self._factory = factory


class StaleError(Exception):
    """The upstream had closed the connection before the request came; it may be sent again over another."""


@dataclass(slots=True)
class Call:
    """A request going out over a connection, and its reply coming back."""

    connection: Connection
    line: Line
    again: bool
    """The connection served another request before."""
    begun: float = field(default_factory=time.monotonic)

    def write(self, data: bytes) -> None:
        """Send bytes, without waiting: the upstream may answer before it takes them all.

        Those for a broken connection are dropped; ``answer`` tells what broke it.
        """
        transport = self.line.transport
        if transport is not None and not transport.is_closing():
            transport.write(data)

    async def answer(self) -> tuple[RawResponseMessage, aiohttp.StreamReader]:
        """The head of the reply, once it came, and its body.

        Raises one of ``failures.EXPECTED``, or ``StaleError`` when a connection that was used before broke at once
        and no byte of a reply came.
        """
        try:
            message, body = await self.line.read()
            while message.code < SWITCHING or SWITCHING < message.code < FINAL:
                message, body = await self.line.read()
        except (aiohttp.ClientConnectionError, OSError) as error:
            if self.again and not self.line.heard and time.monotonic() - self.begun < STALE_SECONDS:
                raise StaleError from error
            raise
        return message, body

    def release(self) -> None:
        """Give the connection back, once the reply was read to its end."""
        transport = self.line.transport
        if transport is not None and transport.get_write_buffer_size():
            self.abort()  # it answered before it had taken the request
        else:
            self.connection.release()

    async def flushed(self) -> None:
        """Wait until all that was written is on its way, or nothing can be any more."""
        transport = self.line.transport
        if transport is not None:
            transport.set_write_buffer_limits(high=0)
            with suppress(ConnectionError):
                await StreamWriter(self.line, asyncio.get_running_loop()).drain()

    def abort(self) -> None:
        """Close the connection at once, unless it was given back."""
        transport = None if self.connection.protocol is None else self.line.transport
        self.connection.close()
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

    async def call(self, upstream: Upstream, *, bodiless: bool) -> Call:
        """A connection for one request; ``bodiless``: its reply has no body, whatever the headers say.

        Raises one of ``failures.EXPECTED``.
        """
        limit = aiohttp.ClientTimeout(sock_connect=CONNECT_SECONDS)
        connection = await self._connector.connect(self._request_to(upstream), [], limit)
        line = cast("Line", connection.protocol)
        call = Call(connection, line, again=line.used)
        line.used, line.heard = True, False
        line.set_response_params(
            skip_payload=bodiless,
            read_until_eof=True,
            auto_decompress=False,
            read_bufsize=_BUFFER,
            max_line_size=LONGEST,
            max_field_size=LONGEST,
            max_headers=MOST,
        )
        return call

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
