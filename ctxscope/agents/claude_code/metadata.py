"""The metadata of a request: ids the log does not hold around the session's own, which it does."""

from __future__ import annotations

import re

from ctxscope.agents import Log
from ctxscope.agents.claude_code.texts import string
from ctxscope.model import Learned, Piece, Point

_SESSION = re.compile(rb'(?:_session_|\\"session_id\\":\\")([0-9A-Za-z-]+)')
"""1.0 and 2.0 put it at the end of a name, 2.1 into JSON inside the string (claude_code.md §4.3)."""


def is_old(metadata: bytes) -> bool:
    """Whether a metadata value has the form of 1.0 and 2.0.

    There warm-up agents, which start before a session is resumed, name a session that never comes to be (measured in
    2.0.30).
    """
    return b"_session_" in metadata


def session_in(metadata: bytes) -> str | None:
    """The session that a metadata value names."""
    found = _SESSION.search(metadata)
    return found[1].decode() if found else None


def metadata(log: Log, point: Point, learned: Learned) -> list[Piece]:
    """The value as learned, with the session id the log has; empty where it is not known."""
    value = learned.values.get("/metadata")
    if value is None or value.data is None:
        return []
    found, own = _SESSION.search(value.data), session_of(log, point)
    if found is None or not own or (point.kind == "subagent" and is_old(value.data)):
        return [Piece(value.data, value.provenance, path="/metadata")]
    place = (point.answer.place if point.answer is not None else None) or point.place
    return [
        Piece(value.data[: found.start(1)], value.provenance, path="/metadata"),
        Piece(own.encode(), "logged", place),
        Piece(value.data[found.end(1) :], value.provenance, path="/metadata"),
    ]


def session_of(log: Log, point: Point) -> str:
    """Id of the session that made a call: a fork's copied answers name the one they come from."""
    entry = point.answer or (point.context[-1] if point.context else None)
    data = entry.data if entry is not None else {}
    return string(data.get("requestSessionId")) or string(data.get("sessionId")) or log.ref.id
