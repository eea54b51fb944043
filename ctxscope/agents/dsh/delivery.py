"""The part of the log a request carries with it: what the server has not accepted yet (v4; dsh.md §4.3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ctxscope.agents.dsh.story import Story
from ctxscope.agents.dsh.texts import array, derived, logged, members, spelled
from ctxscope.model import Body, Entry, Piece, Segment, Value
from ctxscope.wire import json_text
from ctxscope.wire.blocks import params

KEY, PATH = "dsh_session_log", "/dsh_session_log"
AFTER, THROUGH = f"{PATH}/afterSeq", f"{PATH}/throughSeq"
_ORDER = ("seq", "time", "data", "type", "surfaceOp", "sourceEventSeqs", "ignorable")
"""Keys of an event there; on disk they stand in another order."""
_NEW = ("version", "id", "createdAt", "cwd")
"""Keys of the session's header while the process that began it still runs."""
_LOADED = (*_NEW, "delegationDepth", "parentSession", "seedLength", "origin", "agentPreset")
"""The same in a process that read the header from disk."""

Pieces = tuple[Piece, ...]


@dataclass(frozen=True, slots=True)
class Stated:
    """What a served body says of the log it carries."""

    after: int
    through: int
    session: tuple[str, ...]
    """Keys of its session header."""
    values: str
    """That header, spelled."""


def segment(body: Body, path: str = PATH) -> Segment | None:
    """Where a body holds a parameter; ``None`` where it does not."""
    return next((s for s in params(body) if s.path == path), None)


def value_of(body: Body, path: str) -> bytes | None:
    """A parameter as it is spelled; ``None`` where a body has none."""
    found = segment(body, path)
    return None if found is None else body.data[found.start : found.end]


def stated(body: Body) -> Stated | None:
    """What a body says before the events; ``None`` where it carries no log, or none that can be read."""
    found = segment(body)
    if found is None:
        return None
    end = body.data.find(b',"events":[', found.start, found.end)
    try:
        head: Any = json_text.loads(body.data[found.start : end] + b"}")
        session = head["session"]
        return Stated(int(head["afterSeq"]), int(head["throughSeq"]), tuple(session), json_text.js(session))
    except (ValueError, TypeError, KeyError, OverflowError):
        return None


def known_keys(told: Story) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Keys of the session header a process may send: of one it began itself, of one it read; as the log's own has them."""
    header = told.header.data if told.header else {}
    new, loaded = (tuple(k for k in keys if k in header) for keys in (_NEW, _LOADED))
    return new, loaded


def usual_keys(told: Story, run: int) -> tuple[str, ...]:
    """Keys of the session header a process sends by rule: the one that began the session ran first."""
    return known_keys(told)[run > 0]


def carried(
    told: Story, after: Pieces, through: Pieces, span: tuple[int, int], keys: Sequence[str], memo: dict[Any, Any]
) -> Pieces:
    """The member: ``after`` and ``through`` as they are sent, the events between the numbers of ``span``."""
    header = told.header
    values = header.data if header else {}
    place = header.place if header else None
    return members(
        [
            ("version", b"1"),
            ("sessionFormatVersion", logged(told.format, place)),
            ("session", members([(k, logged(values[k], place)) for k in keys if k in values])),
            ("afterSeq", after),
            ("throughSeq", through),
            ("events", array(_event(e, memo) for e in told.between(*span))),
        ]
    )


def _event(entry: Entry, memo: dict[Any, Any]) -> Pieces:
    """An event as it is sent along; kept, for an attempt repeats what was not accepted."""
    found: Pieces | None = memo.get(entry)
    if found is None:
        fields = ((k, logged(entry.data[k], entry.place)) for k in _ORDER if k in entry.data)
        memo[entry] = found = members(fields)
    return found


def number(value: int, where: Entry | None, learned: Value | None, path: str) -> Pieces:
    """A place in the log: as an acceptance states it, as this request alone does, else by rule."""
    if learned is not None and learned.data is not None:
        return (Piece(learned.data, learned.provenance, path=path),)
    return (logged(value, where.place),) if where is not None else (derived(spelled(value)),)
