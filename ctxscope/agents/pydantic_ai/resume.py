"""What a new run is sent that goes on with the stored history (``message_history``): all of it, and a prompt behind it.

The library holds nothing between two runs, so that one in a new process is sent what one in the old would be.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ctxscope.agents import Before, Log
from ctxscope.agents.pydantic_ai.points import api_of, conversation, disagreements
from ctxscope.agents.pydantic_ai.transcript import Transcript
from ctxscope.agents.pydantic_ai.writing import spelled
from ctxscope.model import NEXT_INPUT, Entry, Place, Record, Resume
from ctxscope.wire.blocks import listed, mapped, string


def resume(log: Log, before: Before) -> Resume | None:
    """The newest file with one request more; see ``Agent.resume``.

    ``None`` where it cannot be read to its end, does not end in an answer, or ends in one whose tools were not run (the
    library refuses a prompt there), and where several files do not agree: which one is loaded is not known.
    """
    told = conversation(log)
    if not told.transcripts or told.torn or any(True for _ in disagreements(log)):
        return None
    source, newest = told.by_age()[-1]
    last = newest.entries[-1] if newest.entries else None
    if last is None or last.kind != "response" or _calls(last):
        return None
    # the request has no answer yet that would tell its API
    api = api_of(last.data) if not before else None
    choice = {"api": api} if api is not None else {}
    return Resume((_record(source, newest, last),), choice, unknown=tuple(_doubts(newest)))


def _calls(response: Entry) -> bool:
    return any(mapped(p).get("part_kind") == "tool-call" for p in listed(response.data.get("parts")))


def _record(source: str, newest: Transcript, last: Entry) -> Record:
    """The file written anew, or a line more of it."""
    message = spelled(_request(newest.entries, last))
    unit = last.key.rpartition("#")[2].rpartition(":")[0]
    if unit:
        number = str(int(unit) + 1) if unit.isdigit() else f"{unit}+"
        return Record(source, number, Place(last.place.log, f"line {number}"), message)
    whole = b"[" + b",".join((*(entry.raw for entry in newest.entries), message)) + b"]"
    return Record(source, "file", Place(last.place.log, "file"), whole)


def _request(entries: Sequence[Entry], last: Entry) -> dict[str, Any]:
    stamp = last.data.get("timestamp")
    asked = next((e.data for e in reversed(entries) if e.kind == "request"), {})
    part = {"part_kind": "user-prompt", "content": NEXT_INPUT, "timestamp": stamp}
    told = {"kind": "request", "parts": [part], "timestamp": stamp}
    return {**told, "instructions": asked["instructions"]} if string(asked.get("instructions")) else told


def _doubts(newest: Transcript) -> Iterator[str]:
    yield "this is a run that goes on with the whole stored history; whether the application trims it first is not logged"
    if any(string(e.data.get("instructions")) for e in newest.entries if e.kind == "request"):
        yield "instructions are made anew for each run: here they are those of the last"
