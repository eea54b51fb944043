"""What the records of a ``.ctxrec`` say, exchange by exchange, as they are read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from ctxscope.capture import meta_record, websocket
from ctxscope.capture.ctxrec_bodies import Bodies, stored_body
from ctxscope.capture.events import Headers, Meta
from ctxscope.capture.record import Header, Payload, Record
from ctxscope.capture.record_fields import Fields, MalformedError, count, is_count, pairs, text, texts, time

SOME_BODY = b"{}"
"""Stands for a request's: which API it speaks its path and headers tell, so that none need be loaded for that."""


@dataclass(slots=True)
class Stretches:
    """The bytes of a reply in the file, whatever the order and number of the pieces that were written of it."""

    whole: list[tuple[Payload, int]] = field(default_factory=list)
    """What, one behind the other, makes its beginning; of each, how many bytes were there already."""
    size: int = 0
    """Bytes of that."""
    ahead: list[tuple[int, Payload]] = field(default_factory=list)
    """What comes behind a gap, with its offset in the reply."""

    def add(self, at: int, piece: Payload) -> None:
        """Take a piece; what is there already is left out."""
        self.ahead.append((at, piece))
        self.ahead.sort(key=lambda one: (one[0], one[1].at))
        while self.ahead and self.ahead[0][0] <= self.size:
            at, piece = self.ahead.pop(0)
            done = self.size - at
            if piece.length > done:
                self.whole.append((piece, done))
                self.size = at + piece.length


@dataclass(frozen=True, slots=True)
class Said:
    """One WebSocket message of the server; what is alike and came at the same moment is the same one, told twice."""

    time: float
    kind: str
    crc: int
    """Of its record, line and bytes."""
    payload: Payload = field(compare=False)
    spelled: int = field(compare=False)
    """Bytes of it as an event of a stream; 0 when they were not read."""


@dataclass(slots=True, eq=False)
class Recorded:
    """One exchange: a request and its reply, or a client's WebSocket message and what the server said after it."""

    n: int
    time: float
    method: str
    target: str
    upstream: str
    headers: Headers
    fidelity: str = "bytes"
    undecoded: str = ""
    """Why the request stands as it was sent, encoded."""
    connection: int | None = None
    """Of a message: number of the request that was upgraded."""
    kind: str = ""
    """Of a message: ``text``, ``binary`` or ``close``."""
    head_time: float | None = None
    status: int | None = None
    reply_headers: Headers = ()
    reply: Stretches = field(default_factory=Stretches)
    first_byte: float | None = None
    last_byte: float | None = None
    times: dict[int, float] = field(default_factory=dict)
    """By offset in the reply, when the chunk came that begins there."""
    asks: bool = False
    """Of a message: it says that it wants a reply."""
    said: dict[Said, None] = field(default_factory=dict)
    """By the server, after it."""
    noted: tuple[float, tuple[tuple[str, str], ...]] | None = None
    """When it was noted where the agent's logs stood, and where."""
    end_time: float | None = None
    how: str = ""
    """How it ended; empty while it has not."""
    detail: str = ""
    length: int | None = None
    """Bytes of the whole reply, as told at its end."""

    def reply_header(self, name: str) -> str:
        """A header of the reply, by lower-case name; several are joined."""
        return ", ".join(value for key, value in self.reply_headers if key.lower() == name)

    @property
    def replied(self) -> float | None:
        """When the first byte of its reply came."""
        return next((said.time for said in self.said), self.first_byte)

    @property
    def places(self) -> tuple[tuple[str, str], ...]:
        """Where the agent's logs stood when it arrived.

        Noted once the reply had begun, by a writer that was behind, it may be where they stood after it: no evidence.
        """
        if self.noted is None or (self.replied is not None and self.noted[0] > self.replied):
            return ()
        return self.noted[1]


class Contents:
    """All exchanges of a recording, and what it says of itself."""

    def __init__(self, bodies: Bodies) -> None:
        self.bodies = bodies
        self.found: dict[int, Recorded] = {}
        self.metas: list[Meta] = []
        """One a run, in order."""
        self.losses: dict[tuple[float, int, str], None] = {}
        """Time, events and reason of each."""
        self.orphans: dict[int, None] = {}
        """Requests that build on one that is not here."""
        self.unasked: dict[int, None] = {}
        """Numbers that replies name and no request."""
        self.others: dict[int, None] = {}
        """Numbers that a second, other request came with."""
        self.unknown = 0
        """Records of a kind, or with fields, that this reader does not know."""
        self._last: dict[int, int] = {}
        """By connection, the client's last message."""

    def take(self, record: Header) -> tuple[int, ...]:
        """Take a record; the numbers of the exchanges that are new or changed by it.

        Its payload need not have been read: all is known without but how long what a server said over WebSocket is.
        """
        try:
            return self._take(record)
        except MalformedError:
            self.unknown += 1
            return ()

    def _take(self, record: Header) -> tuple[int, ...]:
        fields = record.fields
        if record.kind == meta_record.KIND:
            meta = meta_record.meta_of(fields)
            if meta not in self.metas:
                self.metas.append(meta)
            return ()
        if record.kind == "loss":
            self.losses[time(fields, "ts"), count(fields, "events"), text(fields, "why")] = None
            return ()
        n = count(fields, "id")
        if record.kind == "req" or (record.kind == "ws" and fields.get("from") == "client"):
            return self._request(n, record)
        take = _OF_A_REPLY.get(record.kind)
        if take is None:
            raise MalformedError("t")
        found = self.found.get(n)
        if found is None:
            if n not in self.orphans:
                self.unasked[n] = None
            return ()
        take(found, record)
        last = self._last.get(n) if record.kind == "end" else None
        return (n,) if last is None else (n, last)

    def _request(self, n: int, record: Header) -> tuple[int, ...]:
        fields = record.fields
        stored = stored_body(record)
        if n in self.found:
            known, when = self.bodies[n], self.found[n].time
            if (known.sha256, known.size, when) != (stored.sha256, stored.size, time(fields, "ts")):
                self.others[n] = None
            return ()
        if stored.parent is not None and stored.parent not in self.bodies:
            self.orphans[n] = None
            return ()
        found = _asked(n, fields)
        self.bodies.add(n, stored)
        self.orphans.pop(n, None)
        self.found[n] = found
        if found.connection is None:
            return (n,)
        before = self.found.get(self._last.get(found.connection, found.connection))
        self._last[found.connection] = n
        return (n,) if before is None or not before.said else (before.n, n)

    def is_exchange(self, found: Recorded) -> bool:
        """Whether it is one for readers: a client's message is, once it asks for a reply or got one."""
        return found.connection is None or (found.kind != "close" and (found.asks or bool(found.said)))

    def headers(self, found: Recorded) -> dict[str, str]:
        """Of the request, for a message of the upgraded one: by lower-case name, several of one name joined.

        ``host`` is where the request really went.
        """
        asked = found if found.connection is None else self.found.get(found.connection)
        joined: dict[str, str] = {}
        for name, value in asked.headers if asked else ():
            low = name.lower()
            joined[low] = f"{joined[low]}, {value}" if low in joined else value
        try:
            host = urlsplit(found.upstream).netloc.rpartition("@")[2]
        except ValueError:
            host = ""
        return {**joined, "host": host} if host else joined

    def is_over(self, found: Recorded) -> bool:
        """Whether nothing more can come to an exchange: it ended, or the client sent its next message."""
        upgraded = self.found.get(found.n if found.connection is None else found.connection)
        return not self.is_latest(found) or (upgraded is not None and upgraded.how != "")

    def is_latest(self, found: Recorded) -> bool:
        """Whether the client sent nothing after it on its connection."""
        connection = found.n if found.connection is None else found.connection
        return self._last.get(connection, connection) == found.n


def _asked(n: int, fields: Fields) -> Recorded:
    when, target, upstream = time(fields, "ts"), text(fields, "target"), text(fields, "upstream")
    if "conn" in fields:
        found = Recorded(n, when, "WEBSOCKET", target, upstream, ())
        found.connection, found.kind = count(fields, "conn"), text(fields, "kind")
        found.asks = fields.get("asks") is True
        return found
    found = Recorded(n, when, text(fields, "method"), target, upstream, texts(fields, "headers"))
    fidelity = fields.get("fidelity", "bytes")
    found.undecoded = text(fields, "undecoded")
    found.fidelity = fidelity if fidelity in ("bytes", "parsed") else "normalised"
    return found


def _head(found: Recorded, record: Header) -> None:
    found.head_time = time(record.fields, "ts")
    found.status = count(record.fields, "status")
    found.reply_headers = texts(record.fields, "headers")


def _piece(found: Recorded, record: Header) -> None:
    at = count(record.fields, "at")
    if at == 0 and found.first_byte is None:
        found.first_byte = time(record.fields, "ts")
    found.reply.add(at, record.payload)


def _chunks(found: Recorded, record: Header) -> None:
    start = time(record.fields, "ts")
    for offset, later in pairs(record.fields, "times"):
        if not is_count(offset) or isinstance(later, bool) or not isinstance(later, int | float):
            raise MalformedError("times")
        found.times.setdefault(offset, start + later)


def _end(found: Recorded, record: Header) -> None:
    fields = record.fields
    found.end_time, found.how, found.detail = time(fields, "ts"), text(fields, "how"), text(fields, "detail")
    found.first_byte = time(fields, "first") if "first" in fields else found.first_byte
    found.last_byte = time(fields, "last") if "last" in fields else max(found.times.values(), default=None)
    found.length = count(fields, "len") if "len" in fields else None


def _place(found: Recorded, record: Header) -> None:
    noted = time(record.fields, "ts"), texts(record.fields, "logs")
    found.noted = found.noted or noted  # what is noted again, by a writer that came later, is of a later moment


def _said(found: Recorded, record: Header) -> None:
    kind, payload = text(record.fields, "kind"), record.payload
    spelled = len(websocket.event(kind, record.data)) if isinstance(record, Record) else 0
    found.said.setdefault(Said(time(record.fields, "ts"), kind, payload.crc, payload, spelled))


_OF_A_REPLY: Mapping[str, Callable[[Recorded, Header], None]] = {
    "head": _head,
    "res": _piece,
    "chunks": _chunks,
    "end": _end,
    "place": _place,
    "ws": _said,
}
