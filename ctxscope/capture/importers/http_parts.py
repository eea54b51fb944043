"""Addresses, times, headers and bodies as foreign captures write them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

import orjson

from ctxscope.capture.events import Headers, How
from ctxscope.capture.raw_index import seconds
from ctxscope.wire.json_text import py

_URL = re.compile(r"(?P<scheme>https?|wss?)://(?:[^/?#@]*@)?(?P<host>[^/?#]*)(?P<target>[^#]*)", re.IGNORECASE)
_PORTS = {"http": "80", "https": "443"}
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_OF_THE_ENCODING = frozenset({"content-encoding", "content-length", "transfer-encoding"})
_NO_WORDS = re.compile(r"\[[^\]]*\]|\([^)]*\)|'[^']*'|\"[^\"]*\"|\S*[@/:=0-9]\S*|\S+\.\S+")
"""Codes, addresses and values in an error message."""
_WORDS = re.compile(r"[A-Za-z][A-Za-z' ,_-]*[A-Za-z]")
_MOST_WORDS = 60
_HOW: tuple[tuple[How, tuple[str, ...]], ...] = (
    ("client left", ("client disconnect", "client closed", "client left", "aborted", "cancel", "killed")),
    ("upstream timeout", ("timed out", "timeout", "timed_out")),
    (
        "upstream unreachable",
        ("refused", "unreachable", "connect call failed", "name not resolved", "resolve", "establish", "apiconnection"),
    ),
)


def split_url(url: str) -> tuple[str, str]:
    """The origin of a URL (lower case, no user, no default port, ``https`` for ``wss``), and its path and query verbatim.

    Raises ``ValueError`` for what is no URL of HTTP or of a WebSocket.
    """
    found = _URL.match(url)
    if found is None or not found["host"]:
        raise ValueError("no http or https URL")
    target = found["target"]
    return origin(found["scheme"], found["host"]), target if target.startswith("/") else f"/{target}"


def origin(scheme: str, host: str) -> str:
    """An origin out of a scheme and a host, which may name a port."""
    scheme = scheme.lower().replace("ws", "http")
    return f"{scheme}://{host.lower().removesuffix(f':{_PORTS[scheme]}')}"


def moment(value: Any) -> float | None:
    """Seconds since the epoch out of a number or an ISO 8601 date; a date without a zone is in that of this machine."""
    found = seconds(value)
    if found is not None or not isinstance(value, str):
        return found
    try:
        return seconds(datetime.fromisoformat(value).timestamp())
    except (ValueError, OverflowError, OSError):
        return None


def headers(value: Any) -> Headers:
    """Headers out of an object (``{name: value}``) or a list (``[{name, value}]``, ``[[name, value]]``); else none."""
    pairs: Iterable[Any] = value.items() if isinstance(value, Mapping) else value if isinstance(value, list) else ()
    return tuple(header for pair in pairs if isinstance(pair, Mapping | list | tuple) for header in _header(pair))


def _header(pair: Any) -> Iterable[tuple[str, str]]:
    name, value, *_ = (pair.get("name"), pair.get("value")) if isinstance(pair, Mapping) else (*pair, None, None)
    for each in value if isinstance(value, list) else [value]:
        if isinstance(name, str) and isinstance(each, str | int | float):
            yield name, str(each)


def decoded(given: Headers) -> Headers:
    """Headers for a body that is kept decoded: those of its encoding would have it decoded again."""
    return tuple((name, value) for name, value in given if name.lower() not in _OF_THE_ENCODING)


def value_of(given: Headers, name: str) -> str:
    """The value of a header (lower-case name), the last one of several; ``""`` when there is none."""
    return next((value for key, value in reversed(given) if key.lower() == name), "")


def spelled(value: Any) -> bytes:
    """A body out of what a capture parsed: compact JSON in UTF-8, keys in their order; text as it is; nothing for null."""
    if value is None:
        return b""
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace")
    try:
        return orjson.dumps(value)
    except TypeError:  # lone surrogates, integers beyond 64 bits
        escaped = _LONE_SURROGATE.sub(lambda m: f"\\u{ord(m[0]):04x}", py(value))
        return escaped.encode()


def failure(message: Any) -> tuple[How, str]:
    """How an exchange failed, out of a tool's own words, and those words without numbers, addresses or values."""
    text = message if isinstance(message, str) else ""
    low = text.lower()
    how: How = next((how for how, marks in _HOW if any(mark in low for mark in marks)), "upstream reset")
    words = _WORDS.search(" ".join(_NO_WORDS.sub(" ", text).split()))
    return how, words[0][:_MOST_WORDS].strip() if words else ""
