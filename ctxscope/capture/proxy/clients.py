"""Connections of clients, each with the connections to upstreams that were made for it.

As without a proxy, nobody else uses those: a pool that all clients share would send a request over a connection of which
its client knows nothing, and what to do when that has gone stale would be the proxy's to guess: to send a call again,
which the upstream may have taken, or to make up an error. So both ends are as old as each other, and the client's own
rules for a connection that was closed meanwhile hold.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Awaitable, Callable
from typing import Any, cast

from aiohttp import web
from aiohttp.connector import Connection
from aiohttp.web_protocol import RequestPayloadError, _ErrInfo

from ctxscope.capture.proxy.lines import Line, abort
from ctxscope.capture.proxy.upstreams import Upstream


class Client(web.RequestHandler):
    """A client's connection."""

    __slots__ = ("_kept", "_last", "over")

    def __init__(self, manager: web.Server, **options: Any) -> None:
        super().__init__(manager, **options)
        self._kept: dict[Upstream, Connection] = {}
        self._last: Upstream | None = None
        """Where its last request went."""
        self.over: Callable[[], None] = lambda: None
        """To be called when it is closed."""

    def take(self, upstream: Upstream) -> Connection | None:
        """The connection that served it before, unless that is known to be closed."""
        self._last = upstream
        connection = self._kept.pop(upstream, None)
        if connection is None:
            return None
        line = cast("Line", connection.protocol)
        line.unused = None
        if line.fit:
            return connection
        abort(connection)
        return None

    def keep(self, upstream: Upstream, connection: Connection) -> None:
        """Let a connection wait for the next request."""
        if self.transport is None:
            abort(connection)
            return
        self._kept[upstream] = connection
        cast("Line", connection.protocol).unused = functools.partial(self._closed, upstream)

    def data_received(self, data: bytes) -> None:
        """Bytes came; if they are no HTTP, a body that is being read ends with them.

        aiohttp's C parser puts an error in the queue of requests, and lets the one at work wait for ever (3.14.5).
        """
        super().data_received(data)
        if self._messages and self._current_request is not None and isinstance(self._messages[-1][0], _ErrInfo):
            content = self._current_request.content
            if not content.is_eof() and content.exception() is None:
                content.set_exception(RequestPayloadError("no HTTP"))

    def connection_lost(self, exc: BaseException | None) -> None:
        """The client left, and with it those who served it."""
        self.over()
        super().connection_lost(exc)
        for connection in self._kept.values():
            cast("Line", connection.protocol).unused = None
            abort(connection)
        self._kept.clear()

    def _closed(self, upstream: Upstream) -> None:
        """An upstream closed a connection that was not in use; it would have been this one, had it been asked directly."""
        self._kept.pop(upstream).close()
        if upstream != self._last or self._messages:  # elsewhere meanwhile; the next request gets another connection
            return
        if self._waiter is not None and not self._waiter.done():
            self.force_close()
        else:  # its last reply is just being finished
            self.close()


class Clients(web.Server):
    """Makes them."""

    def __init__(self, handler: Callable[[web.BaseRequest], Awaitable[web.StreamResponse]], **options: Any) -> None:
        super().__init__(handler, **options)
        self.transports: set[asyncio.Transport] = set()
        """Of connections that are not closed yet: a handler forgets its own when it begins to close it, and what a slow
        client has still to get waits there."""

    def connection_made(self, handler: web.RequestHandler, transport: asyncio.Transport) -> None:
        """Keep its transport."""
        super().connection_made(handler, transport)
        self.transports.add(transport)
        cast("Client", handler).over = functools.partial(self.transports.discard, transport)

    def __call__(self) -> Client:
        """One for a new connection."""
        return Client(self, loop=self._loop, **self._kwargs)
