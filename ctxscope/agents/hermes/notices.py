"""What the agent's own files say went wrong."""

from __future__ import annotations

from collections.abc import Sequence

from ctxscope.agents import Log, shared_memo
from ctxscope.agents.hermes.known import DIALECT
from ctxscope.agents.hermes.log import MESSAGE_SOURCES, agent_log, blobs_of, newest
from ctxscope.agents.hermes.points import reading_of
from ctxscope.agents.hermes.runs import runs_of, turn_of
from ctxscope.agents.reading import drift
from ctxscope.model import Entry, Point, quoted


def notices(log: Log) -> Sequence[str]:
    """Errors agent.log tells of this session, dead turns, and final texts that were delivered and then lost."""
    out = [f"agent.log {e.place}: {quoted(e.data['text'])}" for e in agent_log(log) if _is_error(log, e)]
    out += [
        f"{e.place}: a BLOB in {' and '.join(blobs_of(e.data))}, which no request can carry: no call with it is rebuilt"
        for e in _blobs(log)
    ]
    out += drift.notices(log, DIALECT)
    ends = _ends(log)
    last: dict[object, Point] = {}
    for point in reading_of(log).points:
        if point.data["dead"]:
            out.append(f"{point.place}: no answer to this {point.context[-1].kind} row was logged")
        elif point.answer is not None:
            last[point.data["turn_start"]] = point
    for turn, point in last.items():
        length = ends.get(turn)
        if length and point.answer is not None and not str(point.answer.data.get("content") or "").strip():
            out.append(f"{point.place}: the turn delivered {length} characters of text, the row keeps none")
    return tuple(out)


def error_line(log: Log, point: Point) -> str | None:
    """The first line at level ERROR that agent.log holds of a point's turn."""
    turn = turn_of(point)
    return runs_of(log).errors.get(turn) if turn is not None else None


def _blobs(log: Log) -> Sequence[Entry]:
    """Message rows with a BLOB where a request takes text."""
    kept = shared_memo(log, "hermes.blobs")
    found: dict[str, None] = kept.setdefault("keys", {})
    for entry in log.versions[kept.get("read", 0) :]:
        if entry.kind == "unknown" and entry.source in MESSAGE_SOURCES and blobs_of(entry.data):
            found[entry.key] = None
    kept["read"] = len(log.versions)
    now = (newest(log, key) for key in found)
    return [e for e in now if e is not None and e.kind == "unknown"]


def _is_error(log: Log, entry: Entry) -> bool:
    return entry.data.get("event") == "error" and entry.data.get("session") in {None, log.ref.id}


def _ends(log: Log) -> dict[object, int]:
    """Characters delivered at the end of each turn, by the id of the row that starts it."""
    lines = runs_of(log).lines
    out: dict[object, int] = {}
    turn: int | None = None
    for entry in agent_log(log):
        event = entry.data["event"]
        if event == "turn" and entry.data.get("session") == log.ref.id:
            turn = lines.get(entry)
        elif event == "ended" and entry.data.get("session") == log.ref.id and turn is not None:
            out[turn] = int(entry.data["response_len"])
    return out
