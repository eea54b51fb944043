"""Typed netstrings, as mitmproxy writes its flows: a length, a colon, that many bytes, one letter for the type.

The letters: ``,`` bytes, ``;`` text (mitmproxy's own addition), ``#`` integer, ``^`` float, ``!`` boolean, ``~`` null,
``]`` list, ``}`` dictionary (tnetstrings.info; mitmproxy's documentation; compared with flows of mitmproxy 11 and 12).
"""

from __future__ import annotations

import re
from typing import Any

_PREFIX = re.compile(rb"(0|[1-9][0-9]{0,11}):")
MOST_DEPTH = 32
"""Flows nest five deep."""


def parsed(data: bytes) -> Any:
    """The one value that ``data`` is. Raises ``ValueError`` for anything else, and for nesting too deep to be a flow."""
    value, end = _value(memoryview(data), 0, len(data), 0)
    if end != len(data):
        raise ValueError(f"{len(data) - end} bytes behind the value")
    return value


def extent(head: bytes) -> int:
    """Where the value that ``head`` begins with ends, its type letter included.

    Raises ``ValueError`` when it does not begin with a length.
    """
    prefix = _PREFIX.match(head)
    if prefix is None:
        raise ValueError("no length")
    return prefix.end() + int(prefix[1]) + 1


def _value(data: memoryview, at: int, end: int, depth: int) -> tuple[Any, int]:
    prefix = _PREFIX.match(data, at, end)
    if prefix is None:
        raise ValueError("no length")
    start = prefix.end()
    stop = start + int(prefix[1])
    if stop >= end:
        raise ValueError("a length beyond the end")
    kind = data[stop]
    if kind in b"]}":
        return _nested(data, start, stop, depth + 1), stop + 1
    return _plain(kind, bytes(data[start:stop])), stop + 1


def _nested(data: memoryview, start: int, stop: int, depth: int) -> Any:
    if depth > MOST_DEPTH:
        raise ValueError("nests too deep")
    found: list[Any] = []
    at = start
    while at < stop:
        value, at = _value(data, at, stop, depth)
        found.append(value)
    if data[stop] == ord("]"):
        return found
    if len(found) % 2 or not all(isinstance(key, str | bytes) for key in found[::2]):
        raise ValueError("a dictionary without whole pairs")
    # Versions before 0.18 of mitmproxy wrote the keys as bytes.
    keys = (key.decode("latin-1") if isinstance(key, bytes) else key for key in found[::2])
    return dict(zip(keys, found[1::2], strict=True))


def _plain(kind: int, raw: bytes) -> Any:
    match chr(kind):
        case ",":
            return raw
        case ";":
            return raw.decode("utf-8")
        case "#":
            return int(raw)
        case "^":
            return float(raw)
        case "!" if raw in (b"true", b"false"):
            return raw == b"true"
        case "~" if not raw:
            return None
    raise ValueError(f"type {chr(kind)!r} with {len(raw)} bytes")
