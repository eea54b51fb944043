"""Lines in a file of zstd frames, one behind the other: a frame a batch, or one for the whole log."""

from __future__ import annotations

import importlib
import io
import sys
from typing import Any

from ctxscope.model import Record, SourceSpec
from ctxscope.sources.jsonl import CHUNK, POLL_BYTES, WINDOW, LineReader, window

LONGEST_LINE = 256 * 1024 * 1024
"""Bytes of a line; a few bytes of a frame may unpack to any number."""
MOST_AT_ONCE = 1024 * 1024
"""Bytes unpacked in one step: a small frame may hold very much."""


class FrameReader(LineReader):
    """Follows a file of frames as if it were what they hold.

    Offsets and rewrites are those of the file. Text of a frame that is not finished is taken as far as it can be read;
    where bytes are no frame, reading ends with a notice until the file is another one.
    """

    holds_from = None

    def __init__(self, spec: SourceSpec) -> None:
        super().__init__(spec)
        self._zstd: Any = importlib.import_module(
            "compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd"
        )
        self._frame: Any = None
        self._packed = b""
        """Read and not unpacked yet."""
        self._rest: list[bytes] = []
        """Unpacked text behind the last newline, in pieces."""
        self._held = 0
        """Its length."""
        self._broken: str | None = None

    @property
    def notices(self) -> tuple[str, ...]:
        """Those of every line reader, and where the frames end."""
        return (*super().notices, *([self._broken] if self._broken else []))

    def _advance(self, file: io.FileIO, size: int) -> list[Record]:
        if self._offset == 0:
            self._frame, self._packed, self._rest, self._held, self._broken = None, b"", [], 0, None
        records: list[Record] = []
        taken = 0
        while taken < POLL_BYTES and (text := self._unpack(file, size)) is not None:
            taken += len(text)
            first, *others = text.split(b"\n")
            self._rest.append(first)
            self._held += len(first)
            for piece in others:
                self._take(b"".join(self._rest), records)
                self._rest, self._held = [piece], len(piece)
            if self._held > LONGEST_LINE:
                self._broken = (
                    f"{self.spec.path.name}: a line of more than {LONGEST_LINE:,} bytes; what follows is not read"
                )
        self.more = taken >= POLL_BYTES
        self._head = window(file, 0, min(WINDOW, self._offset))
        self._tail = window(file, self._offset, -min(WINDOW, self._offset))
        return records

    def _unpack(self, file: io.FileIO, size: int) -> bytes | None:
        """The next text; ``None`` when there is nothing left that can be unpacked."""
        if self._broken is not None:
            return None
        if not self._packed and (self._frame is None or self._frame.needs_input):
            file.seek(self._offset)
            self._packed = file.read(min(CHUNK, size - self._offset))
            self._offset += len(self._packed)
            if not self._packed:
                return None
        frame = self._frame or self._zstd.ZstdDecompressor()
        try:
            text: bytes = frame.decompress(self._packed, MOST_AT_ONCE)
        except self._zstd.ZstdError:
            at = self._offset - len(self._packed)
            self._broken = f"{self.spec.path.name}: found no zstd frame behind byte {at:,}; what follows is not read"
            return None
        self._packed = frame.unused_data if frame.eof else b""
        self._frame = None if frame.eof else frame
        return text

    def _take_unended(self, file: io.FileIO, size: int, records: list[Record]) -> None:
        """Nothing: what follows may stand in the next frame."""

    def _held_back(self, size: int) -> bool:
        return self._held > 0 or self._frame is not None or self._offset < size
