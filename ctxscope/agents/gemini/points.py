"""Where the Gemini CLI must have called a model: before each message of the model that an answer brought (gemini.md §4, §7)."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ctxscope.agents import Log, shared_memo
from ctxscope.agents.gemini.parts import without_prefix
from ctxscope.agents.gemini.replay import Call, Replay, replays, tool_calls, whole
from ctxscope.model import Block, CallKind, Point, Usage
from ctxscope.wire.json_text import js

_WAITS = 0.5
"""Sorts a call without an answer behind the entry it waits at."""


def requests(log: Log) -> Sequence[Point]:
    """Points in log order: those of subagents where they happened in the session's own chat."""
    found: Sequence[Point] | None = log.memo.get("points")
    if found is None:
        log.memo["points"] = found = _points(log)
    return found


def call_of(log: Log, point: Point) -> Call | None:
    """What a point's request was made of."""
    found = shared_memo(log, "gemini.calls").get(point)
    return found if isinstance(found, Call) else None


def kind_of(point: Point) -> tuple[str, str]:
    """What decides what the log does not hold: the model, and whose conversation it is."""
    return str(point.data.get("model") or ""), point.lineage


def _points(log: Log) -> Sequence[Point]:
    told = replays(log)
    main = told[0]
    found = list(_of(log, main, _Session(main)))
    for rank, replay in enumerate(told[1:]):
        found += _of(log, replay, _Session(main, replay, rank))
    return sorted(found, key=lambda p: p.order) if len(told) > 1 else found


class _Session:
    """Lineage, turn and order of the points of one chat file."""

    def __init__(self, main: Replay, agent: Replay | None = None, rank: int = 0) -> None:
        self._main, self._agent = main, agent
        self.kind: CallKind = "subagent" if agent else "main"
        self.lineage = f"sub:{agent.source.partition(':')[2]}" if agent else "main"
        self._times = [(c.answer or c.last).time or 0.0 for c in main.calls] if agent else []
        self._rank = rank

    def place(self, call: Call) -> tuple[int, tuple[float, int]]:
        """Number of the turn, and the sort key."""
        entry = call.answer or call.last
        if self._agent is None:
            return call.turn, (entry.place.number + (0 if call.answer else _WAITS), 0)
        at = bisect_right(self._times, entry.time or 0.0)
        before = self._main.calls[at - 1] if at else None
        line = (before.answer or before.last).place.number if before else 0
        return (before.turn if before else 1), (line + _WAITS, 1 + self._rank * 1_000_000 + entry.place.number)


def _of(log: Log, replay: Replay, session: _Session) -> Iterator[Point]:
    made, calls = shared_memo(log, "gemini.points"), shared_memo(log, "gemini.calls")
    waiting = replay.waiting
    for call in (*replay.calls, waiting) if waiting is not None else replay.calls:
        key = (call.answer or call.last, call.latest, call.dead)
        if key not in made:
            made[key] = _point(call, session)
            calls[made[key]] = call
        yield made[key]


def _point(call: Call, session: _Session) -> Point:
    turn, order = session.place(call)
    entry, latest = call.answer or call.last, call.latest
    stored = blocks(latest.data) if latest is not None else None
    return Point(
        key=entry.key if call.answer else f"after:{entry.key}",
        place=entry.place,
        context=call.history.context(call.length),
        answer=call.answer,
        ids=frozenset(b.id for b in stored or () if b.kind == "tool_call" and b.id),
        turn=turn,
        order=order,
        time=entry.time,
        kind=session.kind,
        lineage=session.lineage,
        blocks=stored,
        api="gemini",
        data={"model": call.model, **({"dead": True} if call.dead else {})},
        stored_usage=usage(latest.data) if latest is not None else None,
    )


def blocks(message: Mapping[str, Any]) -> tuple[Block, ...]:
    """An answer as logged: its thoughts, its text, its tool calls, with the ids the server gave these."""
    thoughts = message.get("thoughts")
    found = [
        Block("thinking", thought_text(t))
        for t in (thoughts if isinstance(thoughts, Sequence) and not isinstance(thoughts, str) else ())
        if isinstance(t, Mapping)
    ]
    content = message.get("content")
    listed = content if isinstance(content, Sequence) and not isinstance(content, str) else ()
    texts = [content] if isinstance(content, str) else [p.get("text") for p in listed if isinstance(p, Mapping)]
    found += [Block("text", text) for text in texts if isinstance(text, str) and text]
    for call in tool_calls(message):
        name = call.get("name")
        known = name if isinstance(name, str) else ""
        found.append(Block("tool_call", js(_sorted(call.get("args"))), without_prefix(name, call.get("id")), known))
    return tuple(found)


def thought_text(thought: Mapping[str, Any]) -> str:
    """A thought as the program puts it back together: it logs the bold words in front apart."""
    subject, text = thought.get("subject"), thought.get("description")
    text = text if isinstance(text, str) else ""
    return f"**{subject}** {text}" if isinstance(subject, str) and subject else text


def usage(message: Mapping[str, Any]) -> Usage | None:
    """Tokens of an answer: cached ones are part of the input, thoughts part of the output unless the total says otherwise."""
    tokens = message.get("tokens")
    if not isinstance(tokens, Mapping):
        return None
    told = {key: whole(tokens.get(key)) for key in ("input", "output", "cached", "thoughts", "tool", "total")}
    prompt, visible = told["input"], told["output"]
    cached, thoughts, tools = told["cached"] or 0, told["thoughts"] or 0, told["tool"] or 0
    output = None if visible is None else visible + thoughts
    if visible is not None and told["total"] == (prompt or 0) + tools + visible:
        output = visible
    return Usage(None if prompt is None else max(0, prompt + tools - cached), cached, None, output, told["thoughts"])


def _sorted(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {k: _sorted(value[k]) for k in sorted(value)}
    return [_sorted(v) for v in value] if isinstance(value, list) else value
