"""The messages in the bytes of one direction of a WebSocket (RFC 6455, permessage-deflate of RFC 7692)."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from aiohttp._websocket.helpers import websocket_mask

from ctxscope.capture.proxy import heads

Kind = Literal["text", "binary", "close"]

_FIN, _DEFLATED, _OTHER_BITS = 0x80, 0x40, 0x30
_CONTINUATION, _CLOSE = 0, 8
_KINDS: dict[int, Kind] = {1: "text", 2: "binary", _CLOSE: "close"}
_MASKED = 0x80
_TAIL = b"\x00\x00\xff\xff"
"""What a sender leaves out at the end of a deflated message (RFC 7692 §7.2.1)."""


class UnreadableError(ValueError):
    """Bytes that are no frames, or are coded in a way that was not agreed on in words known here."""


@dataclass(frozen=True, slots=True)
class _Frame:
    final: bool
    deflated: bool
    code: int
    payload: bytes


@dataclass(frozen=True, slots=True)
class _Head:
    begin: int
    """Bytes before the payload; the mask is the last four."""
    size: int
    """Bytes of the payload."""
    masked: bool


@dataclass(slots=True)
class Frames:
    """What one side says, read along while its bytes pass; the bytes themselves are somebody else's matter."""

    deflate: bool
    """Whether permessage-deflate was agreed on."""
    _pending: bytearray = field(default_factory=bytearray)
    _parts: list[_Frame] = field(default_factory=list)
    """Fragments of a message whose last is still to come."""
    _inflater: zlib._Decompress = field(default_factory=lambda: zlib.decompressobj(-zlib.MAX_WBITS))
    """Kept from message to message: where no context is taken over, none is referred to either."""
    _passing: int = 0
    """Bytes of a frame still to come that ``closes`` does not hold."""

    def feed(self, data: bytes) -> Iterator[tuple[Kind, bytes]]:
        """Messages that ``data`` completes; pings and pongs are none. Raises ``UnreadableError``."""
        self._pending += data
        while (frame := self._next()) is not None:
            if frame.code == _CLOSE:
                yield "close", frame.payload
            elif frame.code in _KINDS or frame.code == _CONTINUATION:
                self._parts.append(frame)
                if frame.final:
                    yield self._message()

    def closes(self, data: bytes) -> bool:
        """Whether one side closes in these bytes, where ``feed`` found something unreadable; nothing else is held of them."""
        held, found = self._pending, False
        held += data
        while True:
            passed = min(self._passing, len(held))
            del held[:passed]
            self._passing -= passed
            if self._passing or (head := self._head()) is None:
                return found
            found = found or held[0] & 0x0F == _CLOSE
            self._passing = head.begin + head.size

    def _head(self) -> _Head | None:
        """Of the next frame, once it is there."""
        held = self._pending
        if len(held) < 2:  # noqa: PLR2004 - the shortest head
            return None
        masked, size, at = held[1] & _MASKED, held[1] & ~_MASKED, 2
        wider = {126: ">H", 127: ">Q"}.get(size)
        if wider is not None:
            at += struct.calcsize(wider)
            if len(held) < at:
                return None
            (size,) = struct.unpack_from(wider, held, 2)
        return _Head(at + 4 if masked else at, size, bool(masked))

    def _next(self) -> _Frame | None:
        """The next frame, once it is there as a whole."""
        held, head = self._pending, self._head()
        if head is None or len(held) < head.begin + head.size:
            return None
        begin, end = head.begin, head.begin + head.size
        payload = held[begin:end]
        if head.masked:
            websocket_mask(bytes(held[begin - 4 : begin]), payload)
        first = held[0]
        del held[:end]
        if first & _OTHER_BITS or (first & _DEFLATED and not self.deflate):
            raise UnreadableError("an extension that is not known")
        return _Frame(bool(first & _FIN), bool(first & _DEFLATED), first & 0x0F, bytes(payload))

    def _message(self) -> tuple[Kind, bytes]:
        parts, self._parts = self._parts, []
        kind = _KINDS.get(parts[0].code)
        if kind is None:
            raise UnreadableError("a continuation of nothing")
        data = b"".join(part.payload for part in parts)
        return kind, self._inflated(data) if parts[0].deflated else data

    def _inflated(self, data: bytes) -> bytes:
        try:
            whole = self._inflater.decompress(data + _TAIL)
        except zlib.error as error:
            raise UnreadableError("deflated data that does not inflate") from error
        if self._inflater.eof:  # a final block, after which the sender begins anew
            self._inflater = zlib.decompressobj(-zlib.MAX_WBITS)
        return whole


def deflates(headers: heads.Raw) -> bool:
    """Whether the head of a reply agrees on permessage-deflate."""
    return any(b"permessage-deflate" in value.lower() for value in heads.values(headers, b"sec-websocket-extensions"))
