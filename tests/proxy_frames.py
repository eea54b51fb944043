"""WebSocket frames spelt by hand (RFC 6455), as a client or a server would."""

from __future__ import annotations

import base64
import hashlib
import os
import struct
import zlib

from tests.proxy_peers import Peer, value

TEXT, BINARY, CLOSE, PING, PONG = 1, 2, 8, 9, 10
GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"


def frame(code: int, payload: bytes, *, mask: bytes = b"", final: bool = True, deflated: bool = False) -> bytes:
    first = code | (0x80 if final else 0) | (0x40 if deflated else 0)
    masked = 0x80 if mask else 0
    size = len(payload)
    if size < 126:
        head = struct.pack(">BB", first, masked | size)
    elif size < 1 << 16:
        head = struct.pack(">BBH", first, masked | 126, size)
    else:
        head = struct.pack(">BBQ", first, masked | 127, size)
    if mask:
        key = (mask * (size // 4 + 1))[:size]
        payload = (int.from_bytes(payload) ^ int.from_bytes(key)).to_bytes(size)
    return head + mask + payload


def sent(code: int, payload: bytes, **more) -> bytes:
    """A frame of a client."""
    return frame(code, payload, mask=os.urandom(4), **more)


class Deflater:
    """One side of permessage-deflate, which keeps its context from message to message."""

    def __init__(self) -> None:
        self._with = zlib.compressobj(wbits=-15)

    def __call__(self, data: bytes) -> bytes:
        return (self._with.compress(data) + self._with.flush(zlib.Z_SYNC_FLUSH)).removesuffix(b"\x00\x00\xff\xff")


def upgrade(path: bytes, *headers: bytes) -> bytes:
    lines = [
        *(b"GET %b HTTP/1.1" % path, b"Host: proxy", b"Connection: Upgrade", b"Upgrade: websocket"),
        *(b"Sec-WebSocket-Version: 13", b"Sec-WebSocket-Key: " + base64.b64encode(os.urandom(16)), *headers),
    ]
    return b"\r\n".join(lines) + b"\r\n\r\n"


def agreed(head: bytes, *headers: bytes) -> bytes:
    """A server's answer to the head of an upgrade."""
    accept = base64.b64encode(hashlib.sha1(value(head, b"sec-websocket-key") + GUID).digest())  # noqa: S324 - the RFC's
    lines = [
        *(b"HTTP/1.1 101 Switching Protocols", b"upgrade: WebSocket", b"connection: Upgrade"),
        *(b"Sec-WebSocket-Accept: " + accept, *headers),
    ]
    return b"\r\n".join(lines) + b"\r\n\r\n"


def received(peer: Peer) -> tuple[int, bytes]:
    """First byte and payload of the next frame."""
    first, second = peer.exactly(2)
    size = second & 0x7F
    if size > 125:
        size = int.from_bytes(peer.exactly(2 if size == 126 else 8))
    mask = peer.exactly(4) if second & 0x80 else bytes(4)
    payload = peer.exactly(size)
    key = (mask * (size // 4 + 1))[:size]
    return first, (int.from_bytes(payload) ^ int.from_bytes(key)).to_bytes(size)
