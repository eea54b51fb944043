"""Where the Copilot CLI must have called a model, and what its log keeps of each answer (copilot.md §4, §6, §7)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ctxscope.agents import Log
from ctxscope.agents.copilot.events import payload
from ctxscope.agents.copilot.spelling import canonical
from ctxscope.agents.copilot.story import Story, story
from ctxscope.agents.copilot.trail import Call, View
from ctxscope.model import ApiName, Block, Endpoint, Point, Stop, StopState, Usage
from ctxscope.wire.blocks import listed, mapped, number, string

_STOPS: Mapping[str, StopState] = {
    "stop": "complete",
    "end_turn": "complete",
    "tool_calls": "complete",
    "tool_use": "complete",
    "length": "truncated",
    "max_tokens": "truncated",
    "content_filter": "blocked",
    "refusal": "blocked",
}
_ENDPOINTS: Mapping[str, ApiName] = {
    "/chat/completions": "openai-chat",
    "/responses": "openai-responses",
    "/v1/messages": "anthropic-messages",
}


def requests(log: Log) -> Sequence[Point]:
    """A point for each call, in the order they began."""
    found: Sequence[Point] | None = log.memo.get("points")
    if found is None:
        told = story(log)
        log.memo["points"] = found = [_kept(told, call) for call in told.calls]
    return found


def endpoint(log: Log, point: Point) -> Endpoint:  # noqa: ARG001 - the face's signature
    """API and provider as the usage record says, the model as the answer does."""
    return Endpoint(point.api, point.data["provider"], point.data["model"])


def _kept(told: Story, call: Call) -> Point:
    """The point of a call: the one made before while nothing came to it."""
    made_from = (call.answer, call.usage, call.api_id, call.trail, call.rewritten, call.over and call.answer is None)
    known = told.points.get(call.number)
    if known is None or known[0] != made_from:
        told.points[call.number] = known = (made_from, _point(call))
    point: Point = known[1]
    return point


def _point(call: Call) -> Point:
    answer, used = call.answer, mapped(payload(call.usage).get("usage")) if call.usage else {}
    said = payload(answer) if answer is not None else {}
    stored = (_summary(said) if call.is_compaction else _blocks(said)) if answer is not None else None
    names = {call.api_id, string(said.get("apiCallId")), string(used.get("apiCallId")), *(b.id for b in stored or ())}
    place = answer or (call.trail.entries[call.entries - 1] if call.entries else call.start)
    model, where = call.model
    effort, chosen = call.effort
    return Point(
        key=call.key,
        place=place.place,
        context=View(call.trail.entries, call.entries),
        answer=answer,
        ids=frozenset(names - {""}),
        turn=call.turn,
        order=(float(call.number), 0),
        time=(answer or call.start).time,
        kind="compaction" if call.is_compaction else "main" if call.trail.lineage == "main" else "subagent",
        lineage="compaction" if call.is_compaction else call.trail.lineage,
        blocks=stored,
        stop=_stop(used) if answer is not None else None,
        api=_ENDPOINTS.get(string(used.get("apiEndpoint"))),
        data={
            "model": model or None,
            "model_place": where.place if where is not None else None,
            "provider": string(used.get("modelProvider")) or None,
            "bytes": number(used, "requestBodyBytes"),
            "cap": number(used, "maxOutputTokens"),
            "cap_place": call.usage.place if call.usage is not None else None,
            "effort": effort or None,
            "effort_place": chosen.place if chosen is not None else None,
            **({"dead": True} if answer is None and call.over else {}),
        },
        stored_usage=_usage(mapped(said.get("compactionTokensUsed")) if call.is_compaction else used),
    )


def _stop(used: Mapping[str, Any]) -> Stop | None:
    reason = string(used.get("finishReason"))
    return Stop(reason, _STOPS.get(reason, "unknown")) if reason else None


def _usage(used: Mapping[str, Any]) -> Usage | None:
    """Tokens as recorded, the cached ones taken out of the prompt; a written zero is no report (the API has no such field)."""
    told, output = number(used, "inputTokens"), number(used, "outputTokens")
    if told is None and output is None:
        return None
    read, written = number(used, "cacheReadTokens"), number(used, "cacheWriteTokens") or None
    if used.get("cacheDetailsReported") is False:
        read = None
    fresh = max(told - (read or 0) - (written or 0), 0) if told is not None else None
    return Usage(fresh, read, written, output, number(used, "reasoningTokens"))


def _summary(said: Mapping[str, Any]) -> tuple[Block, ...]:
    """What a compaction was answered with."""
    return (Block("text", string(said.get("summaryContent"))),) if string(said.get("summaryContent")) else ()


def _blocks(said: Mapping[str, Any]) -> tuple[Block, ...]:
    """An answer as stored, in the form common to all APIs."""
    found = [Block("thinking", string(said.get("reasoningText")))] if string(said.get("reasoningText")) else []
    if string(said.get("content")):
        found.append(Block("text", string(said.get("content"))))
    calls = [mapped(r) for r in listed(said.get("toolRequests"))]
    named = ((c, string(c.get("toolCallId")), string(c.get("name"))) for c in calls)
    return (*found, *(Block("tool_call", canonical(c.get("arguments")), i, name) for c, i, name in named))


def error_line(log: Log, point: Point) -> str | None:
    """What the log says went wrong while the call was under way."""
    call = story(log).keys.get(point.key)
    return call.error if call is not None else None
