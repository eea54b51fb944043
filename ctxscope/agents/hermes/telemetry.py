"""Lines of ``agent.log`` worth knowing: turns, calls, new processes, compactions, errors (hermes.md §2, §5)."""

from __future__ import annotations

import re
from calendar import timegm
from collections.abc import Mapping
from datetime import datetime
from typing import Any

import orjson

_LINE = re.compile(
    r"(?P<time>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d),(?P<ms>\d{3}) (?P<level>[A-Z]+) (?:\[(?P<sid>[^\]]*)\] )?(?P<where>[\w.]+): (?P<text>.*)",
    re.DOTALL,
)
_TURN = re.compile(
    r"conversation turn: session=(?P<session>\S+) model=(?P<model>\S*) provider=(?P<provider>\S*) .*?history=(?P<history>\d+) msg="
)
_CALL = re.compile(
    r"API call #(?P<n>\d+): model=(?P<model>\S+) provider=(?P<provider>\S+)"
    r"(?: in=(?P<prompt>\d+) out=(?P<output>\d+) total=(?P<total>\d+)(?: latency=\S+)?(?: cache=(?P<read>\d+)/(?P<of>\d+))?)?"
)
_INIT = re.compile(r"client created \(agent_init\b.*?provider=(?P<provider>\S+) base_url=(?P<base_url>\S+)")
_ENDED = re.compile(
    r"Turn ended: reason=(?P<reason>\S+) .*?response_len=(?P<response_len>\d+) session=(?P<session>\S+)"
)
_STARTED = re.compile(
    r"context compression started: session=(?P<session>\S+) messages=(?P<messages>\d+) tokens=~(?P<tokens>[\d,]+)"
)
_DONE = re.compile(
    r"context compression done: session=(?P<session>\S+) messages=(?P<before>\d+)->(?P<after>\d+) rough_tokens=~(?P<tokens>[\d,]+)"
)
_JSON = re.compile(r"(?P<name>micro compaction|context compression attempt) telemetry: (?P<json>\{.*\})")
_PATTERNS = (
    ("turn", _TURN),
    ("call", _CALL),
    ("init", _INIT),
    ("ended", _ENDED),
    ("compression_started", _STARTED),
    ("compression_done", _DONE),
)
_HINTS = (" turn: ", "API call #", "agent_init", "Turn ended", "compress", "compaction", " ERROR ", " CRITICAL ")
"""Most lines are start-up noise: a line without one of these is not looked at further."""


def parse(line: bytes) -> Mapping[str, Any] | None:
    """One line as ``{"event", "time", "session", …}``; ``None`` when it tells nothing of a conversation.

    ``time`` is seconds of the machine's own wall clock: the file names no time zone.
    """
    text = line.decode("utf-8", "replace").rstrip("\r\n")
    if not any(hint in text for hint in _HINTS):
        return None
    found = _LINE.match(text)
    if found is None:
        return None
    try:
        moment = timegm(datetime.strptime(found["time"], "%Y-%m-%d %H:%M:%S").timetuple())  # noqa: DTZ007 - no zone there
    except ValueError:
        return None
    base = {"time": moment + int(found["ms"]) / 1000, "session": found["sid"]}
    for event, pattern in _PATTERNS:
        if match := pattern.search(found["text"]):
            return {**base, "event": event, **_numbers(match.groupdict())}
    if match := _JSON.search(found["text"]):
        return {**base, **_telemetry(match["name"], match["json"])}
    if found["level"] in {"ERROR", "CRITICAL"}:
        return {**base, "event": "error", "text": found["text"], "where": found["where"]}
    return None


def _numbers(fields: Mapping[str, str | None]) -> dict[str, Any]:
    """Digits (with thousands commas) as integers, the rest as text; absent fields left out."""
    out: dict[str, Any] = {}
    for name, value in fields.items():
        if value is not None:
            plain = value.replace(",", "")
            out[name] = int(plain) if plain.isascii() and plain.isdigit() and name != "session" else value
    return out


def _telemetry(name: str, text: str) -> dict[str, Any]:
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        return {"event": "unknown"}
    if not isinstance(value, dict):
        return {"event": "unknown"}
    event = "micro" if name == "micro compaction" else "attempt"
    return {"session": value.get("session_id"), "event": event, "fields": value}
