"""What goes back to the client: an upstream's reply as it came, or a few words of the proxy's own."""

from __future__ import annotations

import json
import socket
import struct
from dataclasses import dataclass

from aiohttp import web
from aiohttp.abc import AbstractStreamWriter
from aiohttp.http import HttpVersion10, RawResponseMessage

from ctxscope.capture.proxy import heads

_BODILESS = frozenset({204, 304})
_REASONS = {
    400: b"Bad Request",
    403: b"Forbidden",
    404: b"Not Found",
    407: b"Proxy Authentication Required",
    502: b"Bad Gateway",
    504: b"Gateway Timeout",
}


class Sent(web.StreamResponse):
    """A reply that was written already; aiohttp adds nothing to it."""

    def __init__(self, keep: bool) -> None:
        super().__init__()
        self._keep = keep

    @property
    def keep_alive(self) -> bool:
        """Whether the client's connection serves another request."""
        return self._keep

    async def prepare(self, request: web.BaseRequest) -> AbstractStreamWriter | None:  # noqa: ARG002 - aiohttp's face
        """There is nothing left to do."""
        return None

    async def write_eof(self, data: bytes = b"") -> None:
        """There is nothing left to do."""


@dataclass(frozen=True, slots=True)
class Framing:
    """How the client learns where a reply's body ends."""

    chunked: bool
    closed: bool
    """By the end of the connection: the client speaks HTTP/1.0."""
    keep: bool
    """Whether the client's connection serves another request."""
    open_ended: bool = False
    """The upstream ends it by the end of its connection."""

    def data(self, data: bytes, *, last: bool) -> bytes:
        """A piece of the body on the wire."""
        if not self.chunked:
            return data
        piece = b"%x\r\n%b\r\n" % (len(data), data) if data else b""
        return piece + b"0\r\n\r\n" if last else piece


def framing(request: web.BaseRequest, message: RawResponseMessage) -> Framing:
    """As the upstream framed it, where the client's version of HTTP has that."""
    keep = request.keep_alive and not message.should_close  # both connections end together
    if request.method == "HEAD" or message.code in _BODILESS:
        return Framing(chunked=False, closed=False, keep=keep)
    if not message.chunked and "Content-Length" in message.headers:
        return Framing(chunked=False, closed=False, keep=keep)
    closed = request.version == HttpVersion10
    keep = keep and not closed
    return Framing(chunked=not closed, closed=closed, keep=keep, open_ended=not message.chunked)


def head(request: web.BaseRequest, message: RawResponseMessage, framed: Framing) -> bytes:
    """First line and headers of an upstream's reply; its own but for what concerns only the connection."""
    kept = heads.CHUNKED if message.chunked and (framed.chunked or request.method == "HEAD") else ()
    pairs = list(heads.end_to_end(message.raw_headers, kept))
    if framed.chunked and not message.chunked:
        pairs.append((b"Transfer-Encoding", b"chunked"))
    if not framed.keep and request.version != HttpVersion10:
        pairs.append((b"Connection", b"close"))
    elif framed.keep and request.version == HttpVersion10:
        pairs.append((b"Connection", b"keep-alive"))
    return heads.reply(_version(request), message.code, _reason(message), pairs)


def upgraded(request: web.BaseRequest, message: RawResponseMessage) -> bytes:
    """Head of a reply after which the connection speaks another protocol."""
    return heads.reply(_version(request), message.code, _reason(message), message.raw_headers)


def tear(request: web.BaseRequest, framed: Framing) -> None:
    """End the client's connection so that half a reply cannot pass as a whole one."""
    hang_up(request, reset=framed.closed)  # an orderly end is the end of the body there


def hang_up(request: web.BaseRequest, *, reset: bool) -> None:
    """End the client's connection, in order or not."""
    transport = request.transport
    if transport is None:
        return
    if reset:
        sock = transport.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        transport.abort()
    else:
        transport.close()


async def answer(
    request: web.BaseRequest, status: int, body: bytes = b"", extra: heads.Raw = (), *, keep: bool = False
) -> Sent:
    """A reply of the proxy itself."""
    keep = keep and request.keep_alive
    pairs = [(b"Content-Type", b"application/json")] if body else []
    pairs += [(b"Content-Length", b"%d" % len(body)), *extra]
    if not keep:
        pairs.append((b"Connection", b"close"))
    shown = b"" if request.method == "HEAD" else body
    await request.writer.write(heads.reply(_version(request), status, _REASONS[status], pairs) + shown)
    return Sent(keep)


def error(kind: str, message: str) -> bytes:
    """A body in the shape of an error of Anthropic's API and of OpenAI's, which both clients show."""
    return json.dumps(
        {"type": "error", "error": {"type": f"ctxscope_{kind}", "message": f"ctxscope: {message}"}}
    ).encode()


def _version(request: web.BaseRequest) -> bytes:
    return b"1.0" if request.version == HttpVersion10 else b"1.1"


def _reason(message: RawResponseMessage) -> bytes:
    return message.reason.encode("utf-8", "surrogateescape")
