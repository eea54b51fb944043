"""A connection that became a WebSocket: its bytes go on as they are, both ways, and its messages are told on the side.

Nothing of it is decoded and coded again, so masks, fragments, pings, compression and close codes stay the agent's and
the upstream's own.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal

from aiohttp import StreamReader, web
from aiohttp.base_protocol import BaseProtocol
from aiohttp.http import StreamWriter

from ctxscope.capture.events import Event, Message
from ctxscope.capture.proxy.frames import Frames, UnreadableError
from ctxscope.capture.proxy.lines import Call

_BUFFER = 1 << 18
"""Bytes that wait for a slow receiver; aiohttp lets it be twice as many."""
_LAST_SECONDS = 3.0
"""For the last words of a client that left, to an upstream that may take nothing any more."""


@dataclass(slots=True)
class Tap:
    """Tells the messages of both sides."""

    connection: int
    """Number of the request that was upgraded."""
    target: str
    upstream: str
    tell: Callable[[Event], None]
    number: Callable[[], int]
    client: Frames
    server: Frames
    last: int
    """Number of the client's last message, or of the upgrade."""
    closing: bool = False
    """A side said that it closes."""
    trouble: str = ""
    """Why messages are not told any more."""

    def client_said(self, data: bytes) -> None:
        """Bytes of the client passed."""
        self._read("client", self.client, data)

    def server_said(self, data: bytes) -> None:
        """Bytes of the upstream passed."""
        self._read("server", self.server, data)

    def _read(self, sender: Literal["client", "server"], frames: Frames, data: bytes) -> None:
        if self.trouble:
            self.closing = frames.closes(data) or self.closing
            return
        now = time.time()
        try:
            for kind, payload in frames.feed(data):
                if sender == "client":
                    self.last = self.number()
                self.closing = self.closing or kind == "close"
                args = (self.last, self.connection, now, sender, kind, payload, self.target, self.upstream)
                self.tell(Message(*args))
        except UnreadableError as error:
            self.trouble = f"its messages are not recorded from a point on: {error}"
            self.closing = frames.closes(b"") or self.closing


class _Incoming:
    """Takes the raw bytes of a side where aiohttp would put its parser of frames."""

    def __init__(self, protocol: BaseProtocol) -> None:
        self.bytes = StreamReader(protocol, _BUFFER, loop=asyncio.get_running_loop())

    def feed_data(self, data: bytes) -> tuple[bool, bytes]:
        """Bytes came; the pair says that there is more to come, and nothing left of these."""
        self.bytes.feed_data(data)
        return False, b""

    def feed_eof(self) -> None:
        """The side is gone."""
        self.bytes.feed_eof()


async def splice(request: web.BaseRequest, call: Call, head: bytes, tap: Tap) -> None:
    """Join both connections until one ends, when the other is closed after it got all there was.

    ``head`` is the upstream's agreement. A client that leaves cancels this.
    """
    client, server = _Incoming(request.protocol), _Incoming(call.line)
    to_server = StreamWriter(call.line, asyncio.get_running_loop())
    await request.writer.write(head)
    client_face: Any = client
    request.protocol.set_parser(client_face)
    call.line.set_parser(server, None)
    up = asyncio.ensure_future(_pass(client.bytes, to_server.write, tap.client_said))
    down = asyncio.ensure_future(_pass(server.bytes, request.writer.write, tap.server_said))
    try:
        await asyncio.wait((up, down), return_when=asyncio.FIRST_COMPLETED)
    except asyncio.CancelledError:
        if client.bytes.is_eof():  # it left, and its last words are still to be handed on
            with suppress(TimeoutError):
                async with asyncio.timeout(_LAST_SECONDS):
                    await asyncio.wait((up,))
                    await call.flushed()
        raise
    finally:
        up.cancel()
        down.cancel()
        await asyncio.gather(up, down, return_exceptions=True)


async def _pass(
    incoming: StreamReader, write: Callable[[bytes], Awaitable[None]], said: Callable[[bytes], None]
) -> None:
    while data := await incoming.readany():
        try:
            await write(data)
        finally:
            said(data)
