"""What a new process makes of a session's rows: it reads them all, as the one before did for each call (opencode.md §5).

System prompt and tools are made anew by each process; no row holds them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ctxscope.agents import Before, Log
from ctxscope.agents.opencode.history import Said, number
from ctxscope.agents.opencode.points import asked_at, requests
from ctxscope.model import NEXT_INPUT, Place, Point, Record, Resume
from ctxscope.wire.json_text import js

_KEPT = ("agent", "mode", "path", "modelID", "providerID", "variant")
"""Of the last answer's row, what the next one's has too."""
_LATER_MS = 1000
"""Time after the newest row at which the next one is taken to be made: only their order counts."""
_INPUT, _TEXT, _ANSWER = "msg_next_input", "prt_next_input", "msg_next_input_answer"


def resume(log: Log, before: Before) -> Resume | None:  # noqa: ARG001 - the face's signature
    """An input with its text, and the row of the answer that is due; see ``Agent.resume``.

    ``None`` for a subagent's session, for one nobody answered, and where messages were taken back: the next input deletes
    them.
    """
    at = log.index.get(f"session:{log.ref.id}")
    session = log.entries[at].data if at is not None else {}
    last = next((p for p in reversed(requests(log)) if p.kind == "main" and p.answer is not None), None)
    if last is None or session.get("revert"):
        return None
    answer = asked_at(last).answer
    rows = _rows(log, answer)
    records = tuple(Record(source, row["id"], Place(0, row["id"]), row) for source, row in rows)
    return Resume(records, unknown=tuple(_doubts(requests(log))))


def _rows(log: Log, answer: Said) -> list[tuple[str, dict[str, Any]]]:
    newest = max((number(e.data.get("time_created")) for e in log.entries if e.key.startswith("message:")), default=0)
    told = answer.entry.data
    provider, model = answer.model
    asked = {"agent": told.get("agent"), "model": {"providerID": provider, "modelID": model}}
    kept = {name: told[name] for name in _KEPT if name in told}
    made: list[tuple[str, str, Mapping[str, Any], Mapping[str, Any]]] = [
        ("message", _INPUT, {"role": "user", **asked}, {}),
        ("part", _TEXT, {"type": "text", "text": NEXT_INPUT}, {"message_id": _INPUT}),
        ("message", _ANSWER, {"role": "assistant", "parentID": _INPUT, **kept}, {}),
    ]
    return [
        (
            source,
            {
                "id": name,
                "session_id": log.ref.id,
                "time_created": newest + _LATER_MS * later,
                "time_updated": newest + _LATER_MS * later,
                **columns,
                "data": js(data),
            },
        )
        for later, (source, name, data, columns) in enumerate(made, 1)
    ]


def _doubts(points: Sequence[Point]) -> Iterator[str]:
    yield "the system prompt is made anew by each process: it names the day, and holds the instructions' files as they are then"
    agents = {asked_at(p).answer.entry.data.get("agent") for p in points if p.kind == "main"}
    if len(agents) > 1:
        yield "which agent the next input is for is not known: it is taken to be the one that answered last"
