"""What runs in the proxy's event loop: who may pass, and where to."""

from __future__ import annotations

import asyncio
import base64
import functools
import hmac
import itertools
import logging
import socket
import ssl
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from aiohttp import web

from ctxscope.capture.events import Event
from ctxscope.capture.proxy import heads, replies, trust, tunnels
from ctxscope.capture.proxy.authority import Authority
from ctxscope.capture.proxy.clients import Clients
from ctxscope.capture.proxy.exchange import Exchange, Means
from ctxscope.capture.proxy.forward import CHALLENGE, Forward, Gate
from ctxscope.capture.proxy.lines import LONGEST, MOST, Lines
from ctxscope.capture.proxy.upstreams import Upstream, Upstreams, parse, route
from ctxscope.model import CtxscopeError

_BUFFER = 1 << 20
"""Bytes of a request that wait for their connection; aiohttp lets it be twice as many."""
_BACKLOG = 1024
_TURNS = 4
"""Turns of the loop after which a connection that was accepted has its protocol."""
_TICK_SECONDS = 0.01
_CUT_SECONDS = 2.0
"""For what is cut to be over."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What a proxy is to do."""

    upstreams: Upstreams
    user: str
    token: str
    """These two make the credentials of a forward proxy."""
    proxy_of: Callable[[Upstream], str | None]
    authority: Authority | None
    """Makes it a forward proxy too."""
    tunnelled: dict[str, int]
    """Counts connections that nobody looks into, by host."""
    tell: Callable[[Event], None]
    number: Callable[[], int]
    told: Callable[[str], None]


class Serving:
    """A proxy at work; made and used in its event loop."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._stopping = False
        self._running: set[asyncio.Task[Any]] = set()
        self._trust: ssl.SSLContext | None = None
        proxy_of = functools.cache(plan.proxy_of)
        self._lines = Lines(self._trusted, proxy_of)
        self._means = Means(self._lines, plan.tell, plan.number, lambda: self._stopping)
        self._unseen = Means(self._lines, lambda _: None, lambda: 0, lambda: self._stopping)
        self._servers: dict[Upstream | None, Clients] = {}
        self._listener: asyncio.Server | None = None
        self._forward: Forward | None = None
        if plan.authority is not None:
            self._forward = Forward(
                plan.upstreams, plan.authority, plan.tunnelled, self._authorized, self._within, self._dial, plan.told
            )

    async def listen(self, sock: socket.socket) -> None:
        """Take connections from now on."""
        loop = asyncio.get_running_loop()
        front: Callable[[], asyncio.Protocol] = self._server(None)
        forward = self._forward
        behind = front if forward is None else lambda: Gate(front, forward)
        self._listener = await loop.create_server(behind, sock=sock, backlog=_BACKLOG)

    async def stop(self, drain: float) -> None:
        """Take no more connections, let what runs end for ``drain`` seconds, then cut it."""
        await self._close_listener()
        await self._drained(drain)
        self._stopping = True
        forward = self._forward
        cut = [*self._running, *(forward.running if forward else ())]
        for task in cut:
            task.cancel()
        if cut:
            await asyncio.wait(cut, timeout=_CUT_SECONDS)
        left = [*self._clients(), *(forward.waiting if forward else ())]
        for server in tuple(self._servers.values()):
            server.pre_shutdown()  # else it waits for connections that nobody uses
            await server.shutdown(_CUT_SECONDS)
        for transport in left:
            transport.abort()
        await self._lines.close()

    async def _drained(self, seconds: float) -> None:
        """Wait until nothing runs and clients have what was sent to them."""
        loop = asyncio.get_running_loop()
        until = loop.time() + seconds
        while (left := until - loop.time()) > 0:
            if self._running:
                await asyncio.wait(self._running, timeout=left)
            elif any(transport.get_write_buffer_size() for transport in self._clients()):
                await asyncio.sleep(min(left, _TICK_SECONDS))
            else:
                return

    def _clients(self) -> list[asyncio.Transport]:
        """Their transports, those among them that close once all is sent."""
        beneath = self._forward.beneath if self._forward else ()
        return [*itertools.chain.from_iterable(server.transports for server in self._servers.values()), *beneath]

    async def _close_listener(self) -> None:
        """Take no more connections; those in between would be left open where it is closed at once (CPython 3.11)."""
        if self._listener is None:
            return
        for sock in self._listener.sockets:
            with suppress(NotImplementedError):
                asyncio.get_running_loop().remove_reader(sock.fileno())
        for _ in range(_TURNS):
            await asyncio.sleep(0)
        self._listener.close()

    # --- who may pass ---

    def _server(self, upstream: Upstream | None) -> Clients:
        """The HTTP server for connections to the proxy itself, or to one upstream by way of it."""
        if upstream not in self._servers:
            self._servers[upstream] = Clients(
                functools.partial(self._handle, upstream),
                handler_cancellation=True,
                access_log=None,
                logger=_silent(),
                auto_decompress=False,
                max_line_size=LONGEST,
                max_field_size=LONGEST,
                max_headers=MOST,
                read_bufsize=_BUFFER,
            )
        return self._servers[upstream]

    def _within(self, upstream: Upstream) -> asyncio.Protocol:
        return self._server(upstream)()

    async def _handle(self, upstream: Upstream | None, request: web.BaseRequest) -> web.StreamResponse:
        task = asyncio.current_task()
        assert task is not None
        self._running.add(task)
        try:
            if upstream is not None:
                return await self._exchange(request, upstream, request.raw_path, own_host=True)
            if request.raw_path.startswith("/"):
                return await self._reverse(request)
            return await self._absolute(request)
        except Exception as error:
            if not isinstance(error, ConnectionError):
                self._plan.told(f"proxy: a request failed: {type(error).__name__}: {error}")
            raise
        finally:
            self._running.discard(task)

    async def _reverse(self, request: web.BaseRequest) -> web.StreamResponse:
        """A request whose path names token and host."""
        token, label, target = route(request.raw_path)
        if not hmac.compare_digest(heads.raw(token), self._plan.token.encode()):
            return await replies.answer(request, 404)
        upstream = self._plan.upstreams.labelled(label)
        if upstream is None:
            body = replies.error("forbidden", "this proxy forwards only to the hosts it was started for")
            return await replies.answer(request, 403, body)
        return await self._exchange(request, upstream, target)

    async def _absolute(self, request: web.BaseRequest) -> web.StreamResponse:
        """A request whose path is a whole URL, as a forward proxy gets it."""
        if self._forward is None:
            return await replies.answer(request, 404)
        if not self._authorized(heads.raw(request.headers.get("Proxy-Authorization", ""))):
            return await replies.answer(request, 407, extra=[CHALLENGE])
        try:
            base = parse(request.raw_path)
        except CtxscopeError:
            return await replies.answer(request, 400)
        target = base.rest if base.rest.startswith("/") else f"/{base.rest}"
        known = self._plan.upstreams.at(base.upstream.host, base.upstream.port)
        if known is not None:
            return await self._exchange(request, known, target, own_host=True)
        try:
            self._lines.proxy_of(base.upstream)
        except CtxscopeError as error:
            return await replies.answer(request, 502, replies.error("upstream_unreachable", str(error)))
        self._forward.count(base.upstream.host)
        return await Exchange(self._unseen, 0, request, base.upstream, target, own_host=True).run()

    async def _exchange(
        self, request: web.BaseRequest, upstream: Upstream, target: str, *, own_host: bool = False
    ) -> web.StreamResponse:
        return await Exchange(self._means, self._plan.number(), request, upstream, target, own_host).run()

    def _authorized(self, header: bytes) -> bool:
        kind, _, value = header.partition(b" ")
        pair = base64.b64encode(f"{self._plan.user}:{self._plan.token}".encode())
        return kind.lower() == b"basic" and hmac.compare_digest(value.strip(), pair)

    # --- where to ---

    def _trusted(self) -> ssl.SSLContext:
        if self._trust is None:
            self._trust = trust.context(self._plan.told)
        return self._trust

    async def _dial(self, host: str, port: int) -> tunnels.Ends:
        proxy = self._plan.proxy_of(Upstream("https", host, port, ""))
        return await tunnels.dial(host, port, proxy, self._trusted)


def _silent() -> logging.Logger:
    """What aiohttp would log stands nowhere: the terminal is the agent's."""
    logger = logging.getLogger(__name__)
    logger.setLevel(logging.CRITICAL + 1)
    return logger
