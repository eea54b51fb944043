"""A request as its provider renders it, cut where a cache may end; tokens are a quarter of the rendered bytes."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from typing import Any

BYTES_PER_TOKEN = 4


@dataclass(frozen=True, slots=True)
class Piece:
    """One block of the rendered prompt."""

    text: bytes
    level: int = 2
    """0 tools, 1 system, 2 messages (§2.1)."""
    mark: int | None = None
    """Seconds a cache mark on it asks for."""
    end: bool = False
    """A message ends here at which a cache without marks may end (§3.2)."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """What the rules of a provider look at."""

    pieces: tuple[Piece, ...]
    settings: tuple[str, str, str] = ("", "", "")
    """What else must be equal for a cached prefix to count, by the level from which it does (§2.2)."""
    isolation: str = ""
    """Organisation, workspace, salt: nothing is shared across it."""
    explicit: bool = False
    """Only marks end a cache."""
    body: bytes = b""
    """The rendered text."""
    ends: tuple[int, ...] = field(default=(), compare=False)
    """Byte offsets of the pieces' ends."""

    @property
    def tokens(self) -> int:
        return len(self.body) // BYTES_PER_TOKEN

    def at(self, index: int) -> int:
        """Tokens through a piece."""
        return self.ends[index] // BYTES_PER_TOKEN

    def key(self, index: int) -> tuple[str, ...]:
        """What two requests have in common that share everything through a piece."""
        level = max(p.level for p in self.pieces[: index + 1])
        digest = hashlib.sha256(self.body[: self.ends[index]]).hexdigest()
        return (self.isolation, *self.settings[: level + 1], digest)


def prompt(pieces: list[Piece], settings: tuple[str, str, str], isolation: str = "", explicit: bool = False) -> Prompt:
    """Pieces put together."""
    ends, length = [], 0
    for piece in pieces:
        length += len(piece.text)
        ends.append(length)
    return Prompt(tuple(pieces), settings, isolation, explicit, b"".join(p.text for p in pieces), tuple(ends))


def shared(one: bytes, other: bytes) -> int:
    """Length of the common prefix."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[:middle] == other[:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def plain(value: Any) -> bytes:
    """A JSON value as a template prints it: order kept, spelling of the body gone."""
    return json.dumps(value, ensure_ascii=False, separators=(", ", ": ")).encode()


@dataclass(frozen=True, slots=True)
class Counted:
    """Usage in one form: ``total`` is the whole prompt, read and written tokens are parts of it."""

    total: int
    read: int = 0
    write: int = 0
    long: int = 0
    """Part of ``write`` with the longer life (1 h)."""
    out: int = 0
    silent: bool = False
    """The server does not report what it read."""

    @property
    def kept(self) -> int:
        """Tokens that an entry of this call holds, where writes are reported (§0.1)."""
        return self.read + self.write
