"""Replies of a ``.ctxrec``: the bytes that were sent, and what they hold."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from ctxscope.capture import encodings, websocket
from ctxscope.capture.ctxrec_index import Recorded

Place = tuple[int, int]
"""Offset in the file and length."""


@dataclass(frozen=True, slots=True)
class Reply:
    """A reply as it was when its exchange was delivered; the bytes are read when asked for."""

    path: Path
    pieces: tuple[Place, ...] = ()
    encoding: str = ""
    messages: tuple[tuple[str, Place], ...] = ()
    """Of a server over WebSocket, each with its kind."""

    def as_sent(self) -> bytes:
        """The bytes that crossed the wire, of messages one behind the other; raises ``OSError``."""
        return b"".join(_read(self.path, (*self.pieces, *(place for _, place in self.messages))))

    def body(self) -> encodings.Decoded:
        """What they hold; as sent where that cannot be had. Raises ``OSError``."""
        if self.messages:
            kinds = (kind for kind, _ in self.messages)
            data = zip(kinds, _read(self.path, [place for _, place in self.messages]), strict=True)
            return encodings.Decoded(b"".join(websocket.event(kind, message) for kind, message in data))
        sent = self.as_sent()
        found = encodings.decode(sent, self.encoding)
        hopeless = found.problem not in ("", encodings.TORN) and not found.data
        return encodings.Decoded(sent, found.problem) if hopeless else found

    def load(self) -> bytes:
        """What they hold; nothing once the file is gone, which a notice tells."""
        try:
            return self.body().data
        except OSError:
            return b""


def reply_of(path: Path, found: Recorded) -> Reply:
    """The reply to an exchange, as far as it is recorded."""
    messages = tuple((said.kind, (said.place, said.size)) for said in found.said)
    return Reply(path, tuple(found.reply.whole), found.reply_header("content-encoding"), messages)


def _read(path: Path, places: Iterable[Place]) -> list[bytes]:
    found = []
    with path.open("rb") as file:
        for at, length in places:
            file.seek(at)
            found.append(file.read(length))
    return found
