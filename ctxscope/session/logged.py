"""Messages of a log by their places, as a list shows them: who spoke, and how it begins."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from ctxscope.model import Entry, Logged, Place
from ctxscope.session.fold import SessionLog

MOST_CHARACTERS = 400
"""As much of a message as a list and the lines below it can show."""
_MOST_PIECES = 40


def logged_at(session: SessionLog, places: Sequence[Place]) -> tuple[Logged, ...]:
    """For each place the message there, in its last version that says something."""
    wanted = set(places)
    found: dict[Place, Logged] = {}
    for entry in session.log.entries:
        if entry.place in wanted and entry.source in session.conversation:
            told = _told(session, _last_words(session.log.history(entry.key)))
            found[told.place] = _joined(found.get(told.place), told)
    return tuple(found.get(place) or Logged(place) for place in places)


def _last_words(versions: Sequence[Entry]) -> Entry:
    return next((e for e in reversed(versions) if e.data), versions[-1])


def _joined(one: Logged | None, other: Logged) -> Logged:
    """What several entries of one line say."""
    if one is None:
        return other
    return Logged(one.place, one.role or other.role, f"{one.text} {other.text}".strip()[:MOST_CHARACTERS])


def _told(session: SessionLog, entry: Entry) -> Logged:
    role, texts = session.agent.spoken(session.log, entry)
    text = " ".join(text[:MOST_CHARACTERS] for text in islice(texts, _MOST_PIECES))
    return Logged(entry.place, role, text[:MOST_CHARACTERS])
