"""What a proxy or an importer tells of traffic, in the order it happened; the one language of writers of recordings."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from ctxscope.model import Fidelity

Headers = tuple[tuple[str, str], ...]
"""Names and values as sent, in order, duplicates too."""
How = Literal["complete", "client left", "upstream unreachable", "upstream reset", "upstream timeout", "stopped"]
"""How an exchange ended. ``stopped``: the proxy itself was ended while the reply was coming."""


@dataclass(frozen=True, slots=True)
class Request:
    """A request, told once its body is whole, or was broken off (which the ``detail`` of its ``End`` says)."""

    n: int
    """Number of the exchange, from 1, in order of arrival."""
    time: float
    """When its first byte arrived (seconds since the epoch)."""
    method: str
    target: str
    """Path and query as they go upstream, verbatim."""
    upstream: str
    """Origin it goes to (``https://api.anthropic.com``)."""
    headers: Headers = ()
    """As the client sent them; what must not reach disk is cut by the writer."""
    body: bytes = b""
    """As sent, in whatever encoding."""
    fidelity: Fidelity = "bytes"


@dataclass(frozen=True, slots=True)
class Head:
    """The first line and headers of a reply."""

    n: int
    time: float
    status: int
    reason: str = ""
    headers: Headers = ()


@dataclass(frozen=True, slots=True)
class Chunk:
    """A piece of a reply's body as it arrived, encoded as sent."""

    n: int
    time: float
    offset: int
    """Bytes of the body before it."""
    data: bytes


@dataclass(frozen=True, slots=True)
class End:
    """The last of an exchange."""

    n: int
    time: float
    how: How = "complete"
    detail: str = ""
    """What the failure was, in words without addresses or secrets."""


@dataclass(frozen=True, slots=True)
class Message:
    """One WebSocket message."""

    n: int
    """Number of its own, of the same counter as exchanges; for one of the server the number of the client message it
    followed last, or of the upgrade."""
    connection: int
    """Number of the request that was upgraded."""
    time: float
    sender: Literal["client", "server"]
    kind: Literal["text", "binary", "close"]
    data: bytes
    target: str = ""
    """Of the upgraded request."""
    upstream: str = ""


@dataclass(frozen=True, slots=True)
class Places:
    """Where the agent's logs stood when a request arrived."""

    n: int
    time: float
    logs: tuple[tuple[str, str], ...]
    """A log's path and its last entry (``line 41``, ``row 17``)."""


@dataclass(frozen=True, slots=True)
class Loss:
    """Events that could not be stored."""

    time: float
    events: int
    why: str


Event = Request | Head | Chunk | End | Message | Places | Loss


@dataclass(frozen=True, slots=True)
class Meta:
    """What a recording says of itself, once, at its beginning."""

    time: float
    agent: str = ""
    command: tuple[str, ...] = ()
    """The program and its options; values are never kept."""
    override: tuple[str, ...] = ()
    """What pointed the agent at the proxy."""
    changes: tuple[str, ...] = ()
    """What the agent does otherwise under it."""
    upstreams: tuple[str, ...] = ()
    home: str = ""
    """The home folder whose logs belong to it."""
    side: Literal["", "in", "out"] = ""
    pair: str = ""
    config_id: str = ""
    source: str = ""
    """For an import: the format it came from."""
    notes: tuple[str, ...] = field(default=())
    """For an import: what that format does not keep, a sentence each."""
