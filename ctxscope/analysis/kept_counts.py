"""What was counted of a segment as a few bytes, to be kept between launches: numbers and hashes, no text."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Protocol

import orjson

from ctxscope.analysis.token_sums import Counted

_ROOMS = ("agents", "analysis", "session", "sources", "wire")
"""What decides how much a segment or a call comes to; a list of single modules would miss the one that is added next."""
_DETAILS = frozenset({"", "auto", "low", "high", "original"})
"""How closely an image is to be looked at; any other word is a client's text."""


class Kept(Protocol):
    """Small values by name, kept between launches."""

    def load(self, names: Sequence[bytes]) -> Mapping[bytes, bytes]:
        """Those that are kept. Never raises."""

    def keep(self, values: Mapping[bytes, bytes]) -> None:
        """Keep more. Never raises."""


@lru_cache(1)
def rules() -> bytes | None:
    """Stands for the code that reads and counts: other code may count otherwise. ``None`` when it cannot be read."""
    made = hashlib.sha256()
    package = Path(__file__).parents[1]
    try:
        for path in sorted((package / "model.py", *(p for room in _ROOMS for p in (package / room).rglob("*.py")))):
            made.update(path.read_bytes())
    except OSError:
        return None
    return made.digest()


def name_of(key: bytes) -> bytes | None:
    """The name that a count is kept by; ``key``: vocabulary and content. ``None`` when nothing may be kept."""
    by = rules()
    return hashlib.blake2b(key, key=by, digest_size=16).digest() if by is not None else None


def packed(counted: Counted) -> bytes | None:
    """A count as bytes; ``None`` for one that cannot be told without a client's own words."""
    if any(detail not in _DETAILS for _, detail in counted.images):
        return None
    marks = (counted.thinking.hex(), counted.text.hex())
    return orjson.dumps((dict(counted.parts), *marks, counted.images, counted.documents, counted.envelope_bytes))


def unpacked(value: bytes) -> Counted | None:
    """What ``packed`` gave; ``None`` for anything else."""
    try:
        parts, thinking, text, images, documents, opaque = orjson.loads(value)
        return Counted(
            parts={str(name): int(n) for name, n in parts.items()},
            thinking=bytes.fromhex(thinking),
            text=bytes.fromhex(text),
            images=tuple((None if size is None else (size[0], size[1]), str(detail)) for size, detail in images),
            documents=tuple(None if pages is None else int(pages) for pages in documents),
            envelope_bytes=int(opaque),
        )
    except (ValueError, TypeError, AttributeError, IndexError):
        return None
