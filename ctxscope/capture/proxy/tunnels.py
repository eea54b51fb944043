"""A way through the proxy that nobody looks into: bytes both ways, for hosts that are not recorded."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from urllib.parse import urlsplit

from ctxscope.capture.proxy import environment

_PIECE = 1 << 16
_PORTS = {"http": 80, "https": 443}

Ends = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def dial(host: str, port: int, proxy: str | None, trust: Callable[[], ssl.SSLContext]) -> Ends:
    """A connection to a host, by way of the environment's proxy where there is one. Raises ``OSError``."""
    if proxy is None:
        return await asyncio.open_connection(host, port)
    url = urlsplit(proxy)
    secure = trust() if url.scheme == "https" else None
    reader, writer = await asyncio.open_connection(url.hostname, url.port or _PORTS[url.scheme], ssl=secure)
    name = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    lines = [f"CONNECT {name} HTTP/1.1".encode(), f"Host: {name}".encode()]
    lines += [b"%b: %b" % pair for pair in environment.authorization(proxy)]
    writer.write(b"\r\n".join(lines) + b"\r\n\r\n")
    try:
        answer = await reader.readuntil(b"\r\n\r\n")
    except (asyncio.IncompleteReadError, asyncio.LimitOverrunError):
        answer = b""
    if answer.split(b" ", 2)[1:2] != [b"200"]:
        writer.close()
        raise ConnectionRefusedError
    return reader, writer


def taken(transport: asyncio.Transport, already: bytes) -> Ends:
    """A connection that another protocol had begun to read, with what it had read."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(loop=loop)
    protocol = asyncio.StreamReaderProtocol(reader, loop=loop)
    transport.set_protocol(protocol)
    protocol.connection_made(transport)
    if already:
        reader.feed_data(already)
    return reader, asyncio.StreamWriter(transport, protocol, reader, loop)


async def join(one: Ends, other: Ends) -> None:
    """Hand on the bytes of both until both have ended, or one broke."""
    ways = [asyncio.ensure_future(_pass(one[0], other[1])), asyncio.ensure_future(_pass(other[0], one[1]))]
    writers = one[1], other[1]
    try:
        await asyncio.wait(ways, return_when=asyncio.FIRST_EXCEPTION)
    except asyncio.CancelledError:
        for writer in writers:
            writer.transport.abort()
        raise
    finally:
        for way in ways:
            way.cancel()
        for writer in writers:
            writer.close()
        await asyncio.gather(*ways, return_exceptions=True)


async def _pass(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(_PIECE):
        writer.write(data)
        await writer.drain()
    if writer.can_write_eof():
        writer.write_eof()
