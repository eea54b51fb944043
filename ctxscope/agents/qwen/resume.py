"""What a new process makes of a chat file: it reads it back, and begins with words of its own (qwen.md §5; ``processes``).

What those say, a day and folders among others, no log holds: they are taken to say what the newest known ones did.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ctxscope.agents import Before, Log
from ctxscope.agents.qwen.joined import Unlogged, Word
from ctxscope.agents.qwen.learning import ENVIRONMENT, Taught, known_of
from ctxscope.agents.qwen.lines import SESSION
from ctxscope.agents.qwen.loaded import is_broken
from ctxscope.agents.qwen.messages import spelled
from ctxscope.agents.qwen.processes import Process, dates_of, is_lasting
from ctxscope.agents.qwen.replay import Replay, replay
from ctxscope.agents.qwen.versions import Rules, rules_of
from ctxscope.model import NEXT_INPUT, Entry, Place, Record, Resume, Value

_INPUT = "next input"
"""Id of the line that the input will be."""


def resume(log: Log, before: Before) -> Resume | None:
    """A further user line behind the newest one; see ``Agent.resume``.

    ``None`` without a call, and where the newest line is one that this session's processes do not read back.
    """
    chat = replay(log)
    newest, rules = chat.newest, rules_of(chat.version)
    if newest is None or not chat.calls or (chat.loses and is_broken(newest)):
        return None
    number = 1 + max(e.place.number for e in log.entries if e.source == SESSION)
    record = Record(SESSION, str(number), Place(newest.place.log, f"line {number}"), spelled(_line(newest)))
    known = known_of(log, before)
    choice: dict[str, Any] = {"anew": True}
    if chat.tip.changed:
        choice["began"] = (newest.key, _INPUT)
    values: dict[str, Value] = {}
    if rules.reminds and known is not None:
        choice["unlogged"] = _reminders(known)
    elif known is not None and known.environment is not None:
        values[ENVIRONMENT] = Value(known.environment.value, "learned")
    changes = tuple(_changes(chat, known, rules))
    return Resume((record,), choice, values, changes, tuple(_doubts(chat, rules)))


def _line(newest: Entry) -> Mapping[str, Any]:
    kept = {name: newest.data.get(name) for name in ("sessionId", "timestamp", "cwd", "version")}
    message = {"role": "user", "parts": [{"text": NEXT_INPUT}]}
    return {"uuid": _INPUT, "parentUuid": newest.key, **kept, "type": "user", "message": message}


def _reminders(known: Taught) -> Unlogged:
    """What the newest process that showed reminders began with, and the newest date, before the new words."""
    processes = known.processes.found
    first = next((items for p in reversed(processes) if (items := _first(p))), ())
    befores = (w.items for p in reversed(processes) for w in reversed(p.befores.values()))
    dates = next((found for items in befores if (found := dates_of(items))), ())
    return Unlogged(_learned(first), ((_INPUT, _learned(dates)),), len(processes))


def _first(process: Process) -> tuple[bytes, ...]:
    """What a process began with: that of the session's first one stands before the first words, with the date."""
    own = next((w.items for w in reversed(process.firsts.values()) if w.items), None)
    if own is not None:
        return own
    said = next(iter(process.befores.values()), None)
    return tuple(item for item in said.items if is_lasting(item)) if said is not None else ()


def _learned(items: tuple[bytes, ...]) -> tuple[Word, ...]:
    return tuple((item, "learned") for item in items)


def _changes(chat: Replay, known: Taught | None, rules: Rules) -> Iterator[str]:
    """What the process that ran last sent otherwise."""
    if rules.reminds and known is not None and any(p.befores or p.firsts for p in known.processes.found):
        yield "reminders of the process before (the date above all) are gone from where they stood, and stand where it begins"
    own = _compressed(chat, known, rules)
    if own and not rules.reminds and known is not None and known.environment is not None:
        yield "the message about the environment is there again, which the process that compressed goes on without"
    if own and chat.tip.segment.lost[1] > chat.tip.segment.lost[0]:
        yield "what was added behind the compression, but logged before it, is lost"
    if chat.tip.changed and not any(is_broken(e) for e in chat.tip.history.entries):
        yield "an answer that was asked for again is read back together with the one that took its place"


def _compressed(chat: Replay, known: Taught | None, rules: Rules) -> bool:
    """Whether the process that ran last is, for all that is known, the one that made the newest compression."""
    segment = chat.tip.segment
    if segment.entry is None or known is None:
        return segment.entry is not None
    if not rules.reminds:
        return segment not in known.loaded
    begun = known.processes.found[-1:]
    return not any(p.point.place.number > segment.entry.place.number for p in begun)


def _doubts(chat: Replay, rules: Rules) -> Iterator[str]:
    yield "the system prompt is written anew: it says how the program is started, and holds the memory files as they are then"
    if rules.reminds:
        yield "reminders (skills, environment, date, memories) are written anew, as things are when the process starts"
    else:
        yield "the message about the environment is written anew: it names the day, and the folder as it is then"
    if not chat.loses and any(is_broken(e) for e in chat.tip.history.entries):
        yield "a line that holds U+2028 or U+2029 is read back by some versions of Node, and lost to others"
