"""Bodies out of the encodings they travel in, and back into the very bytes that travelled.

Bounded: what grows beyond ``MOST`` is not decoded further, whatever it claims to be. What was torn gives what it holds.
"""

from __future__ import annotations

import importlib
import sys
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Protocol

MOST = 256 * 1024 * 1024
"""Bytes of a decoded body; far more than any provider takes."""
_STEP = 1024 * 1024
TORN = "it is torn"
"""The problem of a body that ends too early; what it holds is right as far as it goes."""
GZIP_HEAD = 10
_GZIP, _DEFLATE, _BROTLI, _ZSTD = "gzip", "deflate", "br", "zstd"
_SAME = {"x-gzip": _GZIP, "identity": "", "none": ""}
_MOST_LAYERS = 4


@dataclass(frozen=True, slots=True)
class Decoded:
    """What an encoded body holds."""

    data: bytes
    problem: str = ""
    """Why that is not all of it, in words; empty when it is."""


class _Stream(Protocol):
    """A decoder of one stream."""

    def some(self, data: bytes) -> bytes:
        """At most about ``_STEP`` bytes more; ``data`` is given once, then nothing until it gives nothing."""

    @property
    def ended(self) -> bool:
        """The stream's own end was met."""

    @property
    def rest(self) -> bytes:
        """What follows it."""


class _Zlib:
    def __init__(self, wbits: int) -> None:
        self._stream = zlib.decompressobj(wbits)

    def some(self, data: bytes) -> bytes:
        return self._stream.decompress(data or self._stream.unconsumed_tail, _STEP)

    @property
    def ended(self) -> bool:
        return self._stream.eof

    @property
    def rest(self) -> bytes:
        return self._stream.unused_data


class _Brotli:
    rest = b""

    def __init__(self) -> None:
        self._stream: Any = importlib.import_module("brotli").Decompressor()

    def some(self, data: bytes) -> bytes:
        found: bytes = self._stream.process(data, output_buffer_limit=_STEP)
        return found

    @property
    def ended(self) -> bool:
        return bool(self._stream.is_finished())


class _Zstd:
    def __init__(self) -> None:
        self._stream: Any = _zstd().ZstdDecompressor()

    def some(self, data: bytes) -> bytes:
        if self._stream.eof:
            return b""
        found: bytes = self._stream.decompress(data, _STEP)
        return found

    @property
    def ended(self) -> bool:
        return bool(self._stream.eof)

    @property
    def rest(self) -> bytes:
        found: bytes = self._stream.unused_data
        return found


def decode(data: bytes, encoding: str, most: int = MOST) -> Decoded:
    """A body out of its ``Content-Encoding``, which may name several, the last applied last. Never raises.

    Members that follow one another (gzip, zstd frames) are all read. Of an encoding unknown here, nothing is.
    """
    names = layers(encoding)
    problem = ""
    if len(names) > _MOST_LAYERS:
        return Decoded(b"", f"{len(names)} encodings on one another")
    for name in reversed(names):
        found = _decode_one(data, name, most)
        data, problem = found.data, problem or found.problem
    return Decoded(data, problem)


def decoded(data: bytes, encoding: str) -> bytes | None:
    """The whole body out of its ``Content-Encoding``; ``None`` when it cannot be had."""
    found = decode(data, encoding)
    return None if found.problem else found.data


def layers(encoding: str) -> list[str]:
    """The encodings a header names, in the order they were applied; none for a body sent as it is."""
    names = (name.strip().lower() for name in encoding.split(","))
    return [name for name in (_SAME.get(name, name) for name in names) if name]


def _decode_one(data: bytes, encoding: str, most: int) -> Decoded:
    if not data:
        return Decoded(b"")
    openers = _OPENERS.get(encoding)
    if openers is None:
        return Decoded(b"", f"its encoding {encoding!r} is none known here")
    found = [_read(data, openers[0], most)]
    found += [_read(data, opener, most) for opener in openers[1:] if found[0].problem]
    return next((one for one in found if not one.problem), max(found, key=lambda one: len(one.data)))


def _read(data: bytes, opener: Callable[[], _Stream], most: int) -> Decoded:
    """All members, one behind the other."""
    parts: list[bytes] = []
    size, members = 0, 0
    while data:
        try:
            stream = opener()
            for part in _parts(stream, data):
                parts.append(part)
                size += len(part)
                if size > most:
                    return Decoded(b"".join(parts)[:most], f"it is more than {most} bytes decoded")
        except Exception as error:  # noqa: BLE001 - each library has errors of its own
            told = "what follows its end is none of it" if members else f"it does not decode ({error})"
            return Decoded(b"".join(parts), told)
        if not stream.ended:
            return Decoded(b"".join(parts), TORN)
        members += 1
        data = stream.rest
    return Decoded(b"".join(parts))


def _parts(stream: _Stream, data: bytes) -> Iterator[bytes]:
    part = stream.some(data)
    while part:
        yield part
        part = b"" if stream.ended else stream.some(b"")


_OPENERS: dict[str, tuple[Callable[[], _Stream], ...]] = {
    _GZIP: (lambda: _Zlib(16 + zlib.MAX_WBITS),),
    _DEFLATE: (lambda: _Zlib(zlib.MAX_WBITS), lambda: _Zlib(-zlib.MAX_WBITS)),  # HTTP means zlib, some send it bare
    _BROTLI: (_Brotli,),
    _ZSTD: (_Zstd,),
}


def _zstd() -> ModuleType:
    return importlib.import_module("compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd")


# --- and back --------------------------------------------------------------------------------------------------------


def recipes(encoding: str) -> tuple[str, ...]:
    """Names of the ways a client may have encoded a body, the likeliest first (engineering §8.1).

    None for brotli: its usual quality takes seconds for a body of some megabytes.
    """
    names = layers(encoding)
    return _RECIPES.get(names[0], ()) if len(names) == 1 else ()


_RECIPES = {
    _ZSTD: ("zstd-3", "zstd-stream-3", "zstd-1", "zstd-stream-1"),
    _GZIP: ("gzip-6", "gzip-9", "gzip-1"),
    _DEFLATE: ("deflate-6", "deflate-9", "deflate-1"),
}


def encode(data: bytes, recipe: str, begins: bytes = b"") -> bytes:
    """A body encoded by a recipe; ``begins``: the first bytes of the encoded one, where gzip's system and time stand.

    The same bytes come out only where the library is the same: whoever asks compares the hash.
    """
    name, _, level = recipe.rpartition("-")
    if name == _ZSTD:
        packed: bytes = _zstd().compress(data, level=int(level))
        return packed
    if name == "zstd-stream":
        stream = _zstd().ZstdCompressor(level=int(level))
        parts: bytes = stream.compress(data) + stream.flush()
        return parts
    if name == _DEFLATE:
        return zlib.compress(data, int(level))
    raw = zlib.compressobj(int(level), zlib.DEFLATED, -zlib.MAX_WBITS)
    end = zlib.crc32(data).to_bytes(4, "little") + (len(data) & 0xFFFFFFFF).to_bytes(4, "little")
    return begins[:GZIP_HEAD] + raw.compress(data) + raw.flush() + end
