"""Turns as agent.log tells them, matched by time with the user rows that start them (hermes.md §2, §4.6)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ctxscope.agents import Log, shared_memo
from ctxscope.agents.hermes.log import agent_log
from ctxscope.agents.hermes.rows import Row
from ctxscope.model import Entry

ZONE = 900
"""Time zones lie a multiple of a quarter hour apart; agent.log names none."""
_NEAR = 1.0
"""Seconds between a user row and its line; 3 ms in recorded runs."""


@dataclass
class SaidTurn:
    """A turn of this session (or the one it continues) by the line that begins it."""

    line: Entry
    time: float
    fresh: bool | None
    """Whether a new process took over there; ``None`` where the log does not say."""
    model: str
    provider: str
    error: str | None = None
    """The first line at level ERROR before the next turn."""
    ended: bool = False


def said_turns(log: Log) -> Sequence[SaidTurn]:
    """Turns in the order told."""
    memo = shared_memo(log, "hermes.said_turns")
    lines = agent_log(log)
    if memo.get("lines") != len(lines):
        memo["turns"], memo["lines"] = _said_turns(log, lines), len(lines)
    found: Sequence[SaidTurn] = memo["turns"]
    return found


def _said_turns(log: Log, lines: Sequence[Entry]) -> list[SaidTurn]:
    ours = {log.ref.id, log.ref.parent}
    out: list[SaidTurn] = []
    begun = makes_clients = waits = within = False
    counted: int | None = None
    for entry in lines:
        event, session = entry.data["event"], entry.data.get("session")
        if event == "init":
            begun = makes_clients = True
        elif event == "turn":
            within = session in ours
            if within:
                fresh = True if begun else (False if makes_clients else None)
                data = entry.data
                out.append(SaidTurn(entry, data["time"], fresh, str(data["model"]), str(data["provider"])))
                waits = True
            begun = False
        elif event == "call" and out and session in ours:
            number = int(entry.data["n"])
            if waits and (number == 1 or counted is not None):
                out[-1].fresh = number == 1 or number <= (counted or 0)
            counted, waits = number, False
        elif event == "error" and out and (session in ours if session else within):
            out[-1].error = out[-1].error or str(entry.data["text"])
        elif event == "ended" and out and session in ours:
            out[-1].ended = True
    return out


def matched_turns(said: Sequence[SaidTurn], turns: Sequence[Row]) -> Mapping[int, SaidTurn]:
    """Turn lines by the id of the user row: nearest in time once the zone's offset is known, in order."""
    offsets: Counter[int] = Counter()
    for turn in said:
        gaps = ((turn.time - row.ts) / ZONE for row in turns)
        offsets.update({round(g) for g in gaps if abs(g - round(g)) * ZONE < _NEAR})
    if not offsets:
        return {}
    shift = offsets.most_common(1)[0][0] * ZONE
    out: dict[int, SaidTurn] = {}
    start = 0
    for turn in said:
        near = [(abs(turn.time - shift - turns[i].ts), i) for i in range(start, len(turns))]
        best = min(near, default=(_NEAR, 0))
        if best[0] < _NEAR:
            out[turns[best[1]].id] = turn
            start = best[1] + 1
    return out
