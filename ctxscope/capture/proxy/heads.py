"""The first line and headers of a message, in raw bytes: spelling, order and duplicates survive (engineering §6.2)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from ctxscope.capture.events import Headers

Raw = Sequence[tuple[bytes, bytes]]

_HOP_BY_HOP = frozenset(
    {
        *(b"connection", b"keep-alive", b"proxy-connection", b"proxy-authenticate", b"proxy-authorization"),
        *(b"te", b"trailer", b"transfer-encoding", b"upgrade"),
    }
)
"""Meant for this connection only (RFC 9110 §7.6.1)."""
_NEVER_NAMED = frozenset({b"content-length", b"content-encoding", b"host"})
"""What a Connection header may not take away: the message would become another."""
UPGRADE = frozenset({b"connection", b"upgrade"})
CHUNKED = frozenset({b"transfer-encoding"})


def latin(text: str) -> str:
    """A line as aiohttp decoded it, for the record: each byte a character, whatever the sender's encoding."""
    return text if text.isascii() else raw(text).decode("latin-1")


def raw(text: str) -> bytes:
    """The bytes of a line that aiohttp decoded."""
    return text.encode("utf-8", "surrogateescape")


def text(pairs: Raw) -> Headers:
    """Headers for the record, each byte a character."""
    return tuple((name.decode("latin-1"), value.decode("latin-1")) for name, value in pairs)


def values(pairs: Raw, name: bytes) -> list[bytes]:
    """All values of a header, in order."""
    return [value for key, value in pairs if key.lower() == name]


def wants_websocket(pairs: Raw) -> bool:
    """Whether a request asks to speak WebSocket from then on."""
    return any(value.lower() == b"websocket" for value in values(pairs, b"upgrade"))


def end_to_end(pairs: Raw, kept: Collection[bytes] = ()) -> list[tuple[bytes, bytes]]:
    """The headers that travel on, without those of this connection; ``kept`` stay although they are."""
    named = {part.strip().lower() for value in values(pairs, b"connection") for part in value.split(b",")}
    dropped = (_HOP_BY_HOP | named - _NEVER_NAMED).difference(kept)
    return [pair for pair in pairs if pair[0].lower() not in dropped]


def request(
    method: bytes,
    target: bytes,
    pairs: Raw,
    host: bytes,
    extra: Raw = (),
    kept: Collection[bytes] = (),
    *,
    own_host: bool = False,
) -> bytes:
    """Head of a request to an upstream, whose ``host`` takes the place of the client's, unless that is its own already."""
    lines = [b"%b %b HTTP/1.1" % (method, target)]
    missing = True
    for name, value in end_to_end(pairs, kept):
        lower = name.lower()
        if lower == b"host":
            missing = False
            lines.append(b"%b: %b" % (name, value if own_host else host))
        elif lower != b"expect" or value.lower() != b"100-continue":
            lines.append(b"%b: %b" % (name, value))
    if missing:
        lines.insert(1, b"Host: " + host)
    return _joined([*lines, *(b"%b: %b" % pair for pair in extra)])


def reply(version: bytes, status: int, reason: bytes, pairs: Iterable[tuple[bytes, bytes]]) -> bytes:
    """Head of a reply."""
    return _joined([b"HTTP/%b %d %b" % (version, status, reason), *(b"%b: %b" % pair for pair in pairs)])


def _joined(lines: list[bytes]) -> bytes:
    return b"\r\n".join(lines) + b"\r\n\r\n"
