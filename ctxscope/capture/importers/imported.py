"""What a foreign capture gives: its exchanges, each read when it is its turn, and what of it could not be read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from ctxscope.capture.events import Headers, How
from ctxscope.capture.raw_index import listed
from ctxscope.model import Fidelity


class UnfitError(ValueError):
    """What stands there is no exchange; the message says what it is instead."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A reply as far as the capture keeps it."""

    time: float
    """Of its first byte (seconds since the epoch)."""
    status: int | None
    """``None``: not told."""
    reason: str = ""
    headers: Headers = ()
    body: bytes | None = b""
    """``None``: it was not kept."""


@dataclass(frozen=True, slots=True)
class Ending:
    """How an exchange ended, where the capture tells."""

    time: float
    how: How = "complete"
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Said:
    """One message of a WebSocket."""

    time: float
    sender: Literal["client", "server"]
    kind: Literal["text", "binary", "close"]
    data: bytes


@dataclass(frozen=True, slots=True)
class Imported:
    """One exchange; bodies in the encoding that its headers tell."""

    time: float
    """When the request was made (seconds since the epoch)."""
    method: str
    target: str
    """Path and query."""
    upstream: str
    """Origin it went to; ``""`` where the capture does not tell."""
    headers: Headers
    body: bytes
    fidelity: Fidelity
    answer: Answer | None = None
    ending: Ending | None = None
    messages: tuple[Said, ...] = ()
    """What was said after the upgrade, in order."""


@dataclass(frozen=True, slots=True)
class Item:
    """One exchange that can be read: what sorts it and sums it up. A capture may be far larger than memory."""

    time: float
    upstream: str
    fidelity: Fidelity
    answered: bool
    load: Callable[[], Imported]
    """Reads it again; raises ``OSError`` or ``ValueError`` when the file is no longer what it was."""
    path: Path
    """Of the capture."""
    n: int | None = None
    """The number it has in the capture, where that has numbers."""


def item(exchange: Imported, load: Callable[[], Imported], path: Path, n: int | None = None) -> Item:
    """An exchange that was read from ``path``, to be let go and read again by ``load``."""
    answered = exchange.answer is not None or any(said.sender == "server" for said in exchange.messages)
    return Item(exchange.time, exchange.upstream, exchange.fidelity, answered, load, path, n)


@dataclass(frozen=True, slots=True)
class Capture:
    """All that one file or folder holds."""

    items: tuple[Item, ...]
    problems: tuple[str, ...] = ()
    """What could not be read, a sentence for each kind."""


@dataclass(slots=True)
class Damage:
    """What of a capture cannot be read, told once for everything that fails alike."""

    path: Path
    unit: str
    """What is counted (``line``)."""
    expected: str
    _found: dict[str, list[int | str]] = field(default_factory=dict)

    def add(self, at: int | str, found: str) -> None:
        """Unit ``at`` is not what was expected."""
        self._found.setdefault(found, []).append(at)

    def sentences(self) -> Iterator[str]:
        """A sentence for each kind of failure."""
        for found, places in self._found.items():
            yield f"{self.path} {self.unit} {listed(places)}: found {found}, expected {self.expected}; left out"
