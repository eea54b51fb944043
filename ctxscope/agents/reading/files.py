"""The files of a session: their first bytes, and the numbers that places in them carry."""

from __future__ import annotations

import importlib
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from ctxscope.model import SessionRef

HEAD_BYTES = 65_536
RACY_NS = 50_000_000
"""Clocks of file systems tick every 4 to 10 ms (the kernel's timer)."""
ZSTD = (".zst", ".zstd")
"""Names of files of zstd frames end so."""


def head(path: Path) -> bytes:
    """The first 64 KB of a file; of zstd frames what they hold, as far as it can be read. Raises ``OSError``."""
    with path.open("rb") as file:
        data = file.read(HEAD_BYTES)
    return _unpacked(data) if path.suffix in ZSTD else data


def racy(changed: int) -> bool:
    """Whether a file or folder changed (ns) so lately that it may change again without its time of change moving."""
    return changed > time.time_ns() - RACY_NS


def numbered(ref: SessionRef, found: Iterable[Path]) -> Iterator[tuple[int, Path]]:
    """The files of a session beside its log, each with the number its places carry (``SourceSpec.log``).

    Those the reference names already keep their number, others follow in the order found.
    """
    known = {path: number for number, path in enumerate(ref.paths)}
    for path in found:
        yield known.setdefault(path, len(known)), path


def _unpacked(data: bytes) -> bytes:
    zstd = importlib.import_module("compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd")
    found = b""
    try:
        while data and len(found) < HEAD_BYTES:
            frame = zstd.ZstdDecompressor()
            found += frame.decompress(data, HEAD_BYTES)
            data = frame.unused_data if frame.eof else b""
    except zstd.ZstdError:
        pass
    return found[:HEAD_BYTES]
