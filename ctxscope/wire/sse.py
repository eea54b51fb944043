"""Server-sent events out of the bytes of a stream, finished or torn."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from ctxscope.wire.json_text import loads

_LINE_END = re.compile(rb"\r\n|\n|\r")
_FIELDS = (b"data:", b"event:", b"id:", b"retry:", b":")
DONE = b"[DONE]"


@dataclass(frozen=True, slots=True)
class Event:
    """One event; ``value`` is its parsed data, ``None`` when that is not JSON."""

    name: str
    data: bytes
    value: Any = None

    @property
    def done(self) -> bool:
        """The end mark of OpenAI's streams."""
        return self.data.strip() == DONE


def is_stream(data: bytes) -> bool:
    """Whether the bytes are a stream of events and not one JSON value."""
    head = data.removeprefix(b"\xef\xbb\xbf").lstrip()[:8]
    return any(head.startswith(f) or (head and f.startswith(head)) for f in _FIELDS)


def events(data: bytes) -> list[Event]:
    """The events in order.

    A last one that the stream's end cut off counts when its data is whole: many servers leave out the final blank line.
    """
    found: list[Event] = []
    name, lines = "", list[bytes]()
    *whole, cut = _LINE_END.split(data.removeprefix(b"\xef\xbb\xbf"))
    # what follows the last line end is a line that is not whole: if empty, it is no blank line
    for line in [*whole, cut] if cut else whole:
        if not line:
            if lines:
                found.append(_event(name, lines))
            name, lines = "", []
        elif line.startswith(b"data:"):
            lines.append(line[5:].removeprefix(b" "))
        elif line.startswith(b"event:"):
            name = line[6:].strip().decode("utf-8", "replace")
    if lines:
        last = _event(name, lines)
        if last.done or last.value is not None:
            found.append(last)
    return found


def _event(name: str, lines: list[bytes]) -> Event:
    data = b"\n".join(lines)
    try:
        return Event(name, data, loads(data))
    except ValueError:
        return Event(name, data)
