"""WebSocket messages spelled as the events of a stream, which the readers of APIs understand."""

from __future__ import annotations

import re

_LINE_END = re.compile(rb"\r\n|\n|\r")


def event(kind: str, data: bytes) -> bytes:
    """A server's message as a server-sent event.

    Text becomes ``data:`` lines. A binary message is a comment that tells its length, a closing one is nothing: both
    have no place in a stream of events.
    """
    if kind == "text":
        return b"".join(b"data: %b\n" % line for line in _LINE_END.split(data)) + b"\n"
    return b": %d bytes, binary\n\n" % len(data) if kind == "binary" else b""
