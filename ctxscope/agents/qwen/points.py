"""Where Qwen Code must have called a model: before each answer, and for each compression (qwen.md §4, §7)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ctxscope.agents import Log, shared_memo
from ctxscope.agents.qwen.contents import parts_of, turn_of, whole
from ctxscope.agents.qwen.lines import payload
from ctxscope.agents.qwen.replay import replay
from ctxscope.agents.qwen.state import Call
from ctxscope.model import Block, CallKind, Point, Usage
from ctxscope.wire.json_text import js

_WAITS = 0.5
"""Sorts a call without an answer behind the entry it waits at."""


def requests(log: Log) -> Sequence[Point]:
    """Points in file order."""
    found: Sequence[Point] | None = log.memo.get("points")
    if found is None:
        log.memo["points"] = found = list(_points(log))
    return found


def call_of(log: Log, point: Point) -> Call | None:
    """What a point's request was made of."""
    found = shared_memo(log, "qwen.calls").get(point)
    return found if isinstance(found, Call) else None


def kind_of(call: Call) -> tuple[str, str]:
    """What decides what the log does not hold: the model, and the kind of request."""
    return call.model or "", call.kind


def error_line(log: Log, point: Point) -> str | None:
    """The last error that the telemetry has of a call."""
    call = call_of(log, point)
    return call.errors[-1] if call is not None and call.errors else None


def _points(log: Log) -> Iterator[Point]:
    told = replay(log)
    made, calls = shared_memo(log, "qwen.points"), shared_memo(log, "qwen.calls")
    waiting = told.waiting
    for call in (*told.calls, waiting) if waiting is not None else told.calls:
        key = (call.answer or call.last, call.dead, len(call.errors) if call.answer is None else 0)
        if key not in made:
            made[key] = _point(call)
            calls[made[key]] = call
        yield made[key]


def _point(call: Call) -> Point:
    entry = call.answer or call.last
    stored = _blocks(call) if call.answer is not None else None
    response = call.told.get("response_id")
    ids = {b.id for b in stored or () if b.kind == "tool_call" and b.id}
    kind: CallKind = "compaction" if call.kind == "compaction" else "main"
    return Point(
        key=entry.key if call.answer else f"after:{entry.key}",
        place=entry.place,
        context=call.history.context(call.length),
        answer=call.answer,
        ids=frozenset(ids | ({response} if isinstance(response, str) and response else set())),
        turn=call.turn,
        order=(entry.place.number + (0 if call.answer else _WAITS), 0),
        time=entry.time,
        kind=kind,
        lineage="main" if kind == "main" else f"compaction:{call.segment.number + 1}",
        blocks=stored,
        api="openai-chat",
        data={"model": call.model, **({"dead": True} if call.dead else {})},
        stored_usage=_usage(call),
    )


def _blocks(call: Call) -> tuple[Block, ...]:
    """The answer as logged; of a compression the summary."""
    assert call.answer is not None
    if call.kind != "compaction":
        return blocks(parts_of(call.answer.data.get("message")))
    listed = payload(call.answer).get("compressedHistory")
    first = next((c for c in listed if isinstance(c, Mapping)), None) if isinstance(listed, list) else None
    return blocks(turn_of(first, call.answer).parts) if first is not None else ()


def blocks(parts: Sequence[Mapping[str, Any]]) -> tuple[Block, ...]:
    """Parts of an answer in the form common to all APIs."""
    found: list[Block] = []
    for part in parts:
        text, call = part.get("text"), part.get("functionCall")
        if isinstance(text, str) and text:
            found.append(Block("thinking" if part.get("thought") else "text", text))
        if isinstance(call, Mapping):
            name, identity = call.get("name"), call.get("id")
            known = (identity if isinstance(identity, str) else "", name if isinstance(name, str) else "")
            found.append(Block("tool_call", js(_sorted(call.get("args") or {})), *known))
    return tuple(found)


def _usage(call: Call) -> Usage | None:
    """Tokens of an answer, cached ones being part of the prompt; of a compression as the telemetry has them."""
    answer = call.answer
    if answer is None:
        return None
    if call.kind == "compaction":
        names = ("input_token_count", "cached_content_token_count", "output_token_count", "thoughts_token_count")
        told: Any = call.told
    else:
        names = ("promptTokenCount", "cachedContentTokenCount", "candidatesTokenCount", "thoughtsTokenCount")
        told = answer.data.get("usageMetadata")
    if not isinstance(told, Mapping) or not told:
        return None
    prompt, cached, output, thoughts = (whole(told.get(name)) for name in names)
    return Usage(None if prompt is None else max(0, prompt - (cached or 0)), cached, None, output, thoughts)


def _sorted(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {k: _sorted(value[k]) for k in sorted(value)}
    return [_sorted(v) for v in value] if isinstance(value, list) else value
