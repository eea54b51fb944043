"""Replies of a ``.ctxrec``: the bytes that were sent, and what they hold."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from ctxscope.capture import encodings, websocket
from ctxscope.capture.ctxrec_index import Recorded
from ctxscope.capture.record import Payload

_KEPT_BYTES = 16 * 1024 * 1024
"""Of decoded replies at hand: whoever learns of one's size reads it next."""
_DAMAGED = "its bytes are not those that were stored"


@dataclass(frozen=True, slots=True)
class Given:
    """What a reply holds, as far as it can be had."""

    data: bytes
    problem: str = ""
    """Why it is not decoded whole; empty when it is."""
    damage: str = ""
    """Why it ends early: what follows in the file is not what was stored."""


@dataclass(frozen=True, slots=True)
class Reply:
    """A reply as it was when its exchange was delivered; the bytes are read when asked for."""

    n: int
    pieces: tuple[tuple[Payload, int], ...] = ()
    """Each with how many of its bytes the one before holds."""
    size: int = 0
    """Bytes of these, as sent."""
    encoding: str = ""
    messages: tuple[tuple[str, Payload], ...] = ()
    """Of a server over WebSocket, each with its kind."""


def reply_of(found: Recorded) -> Reply:
    """The reply to an exchange, as far as it is recorded."""
    messages = tuple((said.kind, said.payload) for said in found.said)
    encoding = found.reply_header("content-encoding")
    return Reply(found.n, tuple(found.reply.whole), found.reply.size, encoding, messages)


class Replies:
    """The replies of one recording; safe to ask from several threads. All it does may raise ``OSError``."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._kept: OrderedDict[tuple[int, int], Given] = OrderedDict()
        """Decoded ones, by number and bytes as sent."""
        self._bytes = 0
        self._lock = threading.Lock()

    def as_sent(self, reply: Reply) -> Given:
        """The bytes that crossed the wire, of messages one behind the other."""
        parts, damage = self._read(reply.pieces)
        said, broken = self.messages(reply) if not damage else ([], "")
        return Given(b"".join((*parts, *said)), damage=damage or broken)

    def messages(self, reply: Reply) -> tuple[list[bytes], str]:
        """What a server said over WebSocket, up to a message that is damaged, and why it ends there."""
        return self._read((payload, 0) for _, payload in reply.messages)

    def body(self, reply: Reply) -> Given:
        """What they hold; as sent where that cannot be had."""
        if reply.messages:
            said, damage = self.messages(reply)
            events = (websocket.event(kind, data) for (kind, _), data in zip(reply.messages, said, strict=False))
            return Given(b"".join(events), damage=damage)
        if not encodings.layers(reply.encoding):
            return self.as_sent(reply)
        key = reply.n, reply.size
        with self._lock:
            found = self._kept.get(key)
            if found is None:
                found = self._decoded(reply)
                self._keep(key, found)
            return found

    def _decoded(self, reply: Reply) -> Given:
        sent = self.as_sent(reply)
        found = encodings.decode(sent.data, reply.encoding)
        hopeless = found.problem not in ("", encodings.TORN) and not found.data
        return Given(sent.data if hopeless else found.data, found.problem, sent.damage)

    def _keep(self, key: tuple[int, int], given: Given) -> None:
        self._kept[key] = given
        self._bytes += len(given.data)
        while self._bytes > _KEPT_BYTES:
            self._bytes -= len(self._kept.popitem(last=False)[1].data)

    def _read(self, pieces: Iterable[tuple[Payload, int]]) -> tuple[list[bytes], str]:
        found: list[bytes] = []
        with self._path.open("rb") as file:
            for payload, done in pieces:
                data = payload.read(file)
                if data is None:
                    return found, _DAMAGED
                found.append(data[done:])
        return found, ""
