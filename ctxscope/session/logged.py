"""Messages of a log by their places, as a list shows them: who spoke, and how it begins."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from ctxscope.model import Entry, Logged, Place
from ctxscope.session.fold import SessionLog

MOST_CHARACTERS = 400
"""As much of a message as a list and the lines below it can show."""
_INSIDE = ("data", "message", "payload", "item")
"""Where agents put a message into its line; one may lie in another."""
_TEXTS = ("content", "parts", "text", "thinking", "summary", "output", "result", "response")
_CALLS = ("tool_calls", "functionCall", "function", "input", "arguments", "args")
_LISTED = "\x00json:"
"""What Hermes puts before a column that holds a list."""
_DEEPEST = 8
_MOST_PIECES = 40


def logged_at(session: SessionLog, places: Sequence[Place]) -> tuple[Logged, ...]:
    """For each place the message there, in its last version that says something."""
    wanted = set(places)
    found: dict[Place, Logged] = {}
    by_id: dict[str, Place] = {}
    apart = len(session.conversation) > 1  # messages in one table, what they say in another
    for entry in session.log.entries:
        if entry.source not in session.conversation:
            continue
        if entry.place in wanted:
            told = _told(entry.place, _last_words(session.log.history(entry.key)))
            found[entry.place] = _joined(found.get(entry.place), told)
            by_id[str(entry.data.get("id"))] = entry.place
        elif apart and (whole := by_id.get(str(entry.data.get("message_id")))) is not None:
            found[whole] = _joined(found[whole], _told(whole, entry))
    return tuple(found.get(place) or Logged(place) for place in places)


def _last_words(versions: Sequence[Entry]) -> Entry:
    return next((e for e in reversed(versions) if e.data), versions[-1])


def _joined(one: Logged | None, other: Logged) -> Logged:
    """What several entries say of one message."""
    if one is None:
        return other
    return Logged(one.place, one.role or other.role, f"{one.text} {other.text}".strip()[:MOST_CHARACTERS])


def _told(place: Place, entry: Entry) -> Logged:
    data: Mapping[str, Any] = entry.data
    for name in _INSIDE:
        inner = data.get(name)
        data = inner if isinstance(inner, Mapping) else data
    role = data.get("role")
    pieces = islice(_pieces(data, 0), _MOST_PIECES)
    text = " ".join(piece[:MOST_CHARACTERS] for piece in pieces)
    return Logged(place, role if isinstance(role, str) else entry.kind, text[:MOST_CHARACTERS])


def _pieces(value: Any, depth: int) -> Iterator[str]:
    """Texts and tool calls of a message in the order a person reads them."""
    if depth > _DEEPEST:
        return
    if isinstance(value, str):
        if value.startswith(_LISTED):
            yield from _pieces(_parsed(value[len(_LISTED) :]), depth + 1)
        elif value:
            yield value
    elif isinstance(value, Mapping):
        yield from _of_object(value, depth)
    elif isinstance(value, Iterable):
        for each in value:
            yield from _pieces(each, depth + 1)


def _of_object(value: Mapping[str, Any], depth: int) -> Iterator[str]:
    name = value.get("name")
    if isinstance(name, str) and any(key in value for key in _CALLS):
        yield f"→ {name}"
    for key in _TEXTS:
        yield from _pieces(value.get(key), depth + 1)
    for key in _CALLS:
        held = value.get(key)
        if key == "tool_calls" or (isinstance(held, Mapping) and key in ("function", "functionCall")):
            yield from _pieces(_parsed(held), depth + 1)
        elif held:
            yield held if isinstance(held, str) else json.dumps(held, ensure_ascii=False, default=str)


def _parsed(value: Any) -> Any:
    """A column of JSON as its value; anything else as it is."""
    try:
        return json.loads(value) if isinstance(value, str | bytes) else value
    except (ValueError, RecursionError):
        return value
