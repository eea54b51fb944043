"""Runs of the agent's process, and which rows a run had loaded instead of lived through (hermes.md §4.6).

A run can only begin at a user turn. ``agent.log`` says so where it is there: a client made at ``agent_init`` before the
turn, the call counter starting over after it. For turns it does not cover, served bytes may show it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import cast

from ctxscope.agents import Log
from ctxscope.agents.hermes.points import reading_of
from ctxscope.agents.hermes.turns import matched_turns, said_turns
from ctxscope.model import Entry, Point


@dataclass(frozen=True, slots=True, eq=False)
class Runs:
    """What agent.log says of each turn, by the id of the user row that starts it."""

    lines: Mapping[Entry, int]
    """The user row's id by the turn's line."""
    fresh: Mapping[int, bool]
    """Whether a new process took over there; turns it says nothing of are absent."""
    model: Mapping[int, str]
    provider: Mapping[int, str]
    errors: Mapping[int, str]
    """The first line at level ERROR, of turns that have one."""


def runs_of(log: Log) -> Runs:
    """agent.log's turns matched with the log's by time, in order."""
    reading = reading_of(log)
    known = log.memo.get("hermes.runs")
    if known is not None and known[0] is reading:
        return cast("Runs", known[1])
    matched = matched_turns(said_turns(log), reading.turns)
    runs = Runs(
        {t.line: row for row, t in matched.items()},
        {row: t.fresh for row, t in matched.items() if t.fresh is not None},
        {row: t.model for row, t in matched.items()},
        {row: t.provider for row, t in matched.items()},
        {row: t.error for row, t in matched.items() if t.error},
    )
    log.memo["hermes.runs"] = (reading, runs)
    return runs


def turn_of(point: Point) -> int | None:
    """Id of the user row that starts a point's turn, in the continued session if the turn began there."""
    start = point.data.get("turn_start")
    return start if isinstance(start, int) else None


def loaded_before(log: Log, point: Point, guessed: Mapping[int, bool]) -> int:
    """Rows whose origin's id is below this were loaded by the process that made the call.

    ``guessed`` says for turns agent.log does not cover whether a new process took over.
    """
    reading = reading_of(log)
    fresh = runs_of(log).fresh
    turn = turn_of(point)
    boundary = 0
    for row in reading.turns:
        if turn is None or row.id > turn:
            break
        if fresh.get(row.id, guessed.get(row.id, False)):
            boundary = row.id
    return boundary


def origins_of(log: Log) -> Mapping[int, int]:
    """Where a carried row was first said: its id by the carried row's; rows said where they stand are absent."""
    reading = reading_of(log)
    known = log.memo.get("hermes.origins")
    if known is not None and known[0] is reading:
        return cast("Mapping[int, int]", known[1])
    out: dict[int, int] = {}
    by_call: dict[tuple[str, str], int] = {}
    by_time: dict[tuple[str, float], int] = {}
    for row in (r for g in reading.generations for r in g.rows):
        keys = [(row.role, i) for i in row.tool_ids]
        if row.id in reading.carried:
            places = [by_call[k] for k in keys if k in by_call] or [by_time.get((row.role, row.ts), row.id)]
            out[row.id] = places[0]
        else:
            by_call.update(dict.fromkeys(keys, row.id))
            by_time[row.role, row.ts] = row.id
    log.memo["hermes.origins"] = (reading, out)
    return out


def is_loaded(origins: Mapping[int, int], entry: Entry, boundary: int) -> bool:
    """Whether a row is in loaded form for a process that loaded everything below ``boundary``."""
    number = entry.data["id"]
    return bool(origins.get(number, number) < boundary)


def rows_among(entries: Iterable[Entry]) -> list[Entry]:
    """The message rows of a context."""
    return [e for e in entries if e.kind in {"user", "assistant", "tool"}]
