"""Where opencode called a model: one point for each answer of a session (opencode.md §4, §6, §7)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from ctxscope.agents import Log, shared_memo
from ctxscope.agents.opencode.history import Asked, Said, history_of, mapped, number
from ctxscope.agents.opencode.speech import text_in
from ctxscope.model import Block, CallKind, Config, Endpoint, Entry, Point, Stop, StopState, Usage
from ctxscope.wire.blocks import arguments, integer

CHARACTERS = 4
_STOPS: Mapping[str, StopState] = {
    "stop": "complete",
    "tool-calls": "complete",
    "length": "truncated",
    "content-filter": "blocked",
    "error": "error",
}


def requests(log: Log) -> Sequence[Point]:
    """A point per answer a model was asked for, in the order of the messages; the last may still wait for it."""
    found: Sequence[Point] | None = log.memo.get("points")
    if found is None:
        made = shared_memo(log, "opencode.points")
        child = _parent(log)
        found = []
        begun = begun_at(log)
        for asked in history_of(log).asked():
            if asked.answer.created < begun:
                continue
            key = (asked.answer, asked.thread, asked.length, asked.turn, asked.reminder, child)
            if key not in made:
                made[key] = _point(asked, f"sub:{log.ref.id}" if child else "main")
            found.append(made[key])
        log.memo["points"] = found
    return found


def asked_at(point: Point) -> Asked:
    """The call a point is."""
    asked: Asked = point.data["asked"]
    return asked


def begun_at(log: Log) -> float:
    """When the session was made, in milliseconds: what is older was copied from the one it was forked from."""
    session = _session(log)
    return number(session.get("time_created")) or number(mapped(session.get("time")).get("created"))


def config(log: Log) -> Config:
    """The version that wrote the session; the windows of models stand in no file of the session's."""
    version = _session(log).get("version")
    return Config(agent_version=version if isinstance(version, str) else None)


def endpoint(log: Log, point: Point) -> Endpoint:  # noqa: ARG001 - the face's signature
    """Provider and model as the agent names them; the API is not told."""
    provider, model = asked_at(point).answer.model
    return Endpoint(None, provider, model)


def error_line(log: Log, point: Point) -> str | None:  # noqa: ARG001 - the face's signature
    """The message of the error an answer ended in."""
    error = mapped(asked_at(point).answer.entry.data.get("error"))
    words = mapped(error.get("data")).get("message") or error.get("name")
    return words if isinstance(words, str) and words else None


def naive(log: Log, point: Point) -> int | None:  # noqa: ARG001 - the face's signature
    """ceil(characters / 4) of the JSON of all messages and parts that were read."""
    asked = asked_at(point)
    return math.ceil(asked.thread.characters[asked.length] / CHARACTERS)


def _session(log: Log) -> Mapping[str, Any]:
    at = log.index.get(f"session:{log.ref.id}")
    return log.entries[at].data if at is not None else {}


def _parent(log: Log) -> bool:
    """Whether a session is a subagent's."""
    return bool(log.ref.parent or _session(log).get("parent_id"))


def _point(asked: Asked, lineage: str) -> Point:
    answer, context = asked.answer, asked.thread.context(asked.length)
    there = answer.is_answered
    stored = _blocks(answer) if there else None
    kind: CallKind = "compaction" if answer.is_summary else "main" if lineage == "main" else "subagent"
    return Point(
        key=answer.entry.key,
        place=answer.entry.place,
        context=context,
        answer=answer.entry if there else None,
        ids=frozenset(b.id for b in stored or () if b.id),
        turn=asked.turn,
        order=(answer.created, 0),
        time=_time(answer.entry),
        kind=kind,
        lineage="compaction" if kind == "compaction" else lineage,
        blocks=stored,
        stop=_stop(answer.entry) if there else None,
        data={"asked": asked},
        stored_usage=_usage(answer) if there else None,
    )


def _time(answer: Entry) -> float | None:
    """When an answer was complete, in seconds; else when it was begun."""
    completed = number(mapped(answer.data.get("time")).get("completed"))
    return completed / 1000 if completed else answer.time


def _stop(answer: Entry) -> Stop | None:
    if answer.data.get("error"):
        name = mapped(answer.data["error"]).get("name")
        return Stop(str(name), "incomplete" if name == "MessageAbortedError" else "error")
    reason = answer.data.get("finish")
    return Stop(reason, _STOPS.get(reason, "unknown")) if isinstance(reason, str) else None


def _usage(answer: Said) -> Usage | None:
    """Usage as stored; zeros alone say that none was reported, and a cache count of 0 that it was perhaps not."""
    tokens = mapped(answer.entry.data.get("tokens"))
    cache = mapped(tokens.get("cache"))
    counts = [integer(tokens.get(name)) for name in ("input", "output", "reasoning")]
    read, written = integer(cache.get("read")), integer(cache.get("write"))
    if not any((*counts, read, written)):
        return None
    said, output, thought = counts
    if answer.model[0] != "anthropic":
        read, written = read or None, written or None
    whole = output + (thought or 0) if output is not None else None
    return Usage(said, read, written, whole, thought or None)


def _blocks(answer: Said) -> tuple[Block, ...]:
    """An answer as stored, in the form common to all APIs."""
    found = []
    for part in answer.parts:
        if part.kind == "text":
            found.append(Block("text", text_in(part)))
        elif part.kind == "reasoning":
            left = mapped(part.data.get("metadata"))
            about = {**mapped(left.get("openai")), **mapped(left.get("anthropic"))}
            names = ("signature", "redactedData", "reasoningEncryptedContent")
            envelope = next((about[name] for name in names if about.get(name)), "")
            found.append(Block("thinking", text_in(part), envelope=envelope if isinstance(envelope, str) else ""))
        elif part.kind == "tool":
            given = mapped(part.data.get("state")).get("input")
            found.append(Block("tool_call", arguments(given), text_in(part, "callID"), text_in(part, "tool")))
    return tuple(found)
