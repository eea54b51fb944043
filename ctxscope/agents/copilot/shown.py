"""What a served body shows of a call's messages that the log does not tell."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from ctxscope.agents.copilot.events import payload
from ctxscope.agents.copilot.messages import ORDER, REASONING, SOURCE
from ctxscope.agents.copilot.spelling import spelled
from ctxscope.agents.copilot.trail import Call, Item, Request
from ctxscope.model import Body
from ctxscope.wire import json_text
from ctxscope.wire.blocks import listed, mapped, string
from ctxscope.wire.raw_object import member_texts


@dataclass(frozen=True, slots=True, eq=False)
class Shows:
    """What one served message shows."""

    item: Item
    """The message of the log that stands at its place."""
    forms: Mapping[str, object] = field(default_factory=dict)
    """By name: ``source live``, ``source found``, ``called live``, ``called found``, ``refusal``, ``reasoning``,
    ``keys True``, ``keys False`` (of answers with and without tool calls)."""
    details: bytes | None = None
    arguments: Mapping[int, bytes] = field(default_factory=dict)


def shown_by(body: Body, call: Call, start: int) -> Iterator[Shows]:
    """What the messages of a call from number ``start`` on show, those that can be read."""
    first = next((i for i, s in enumerate(body.segments) if s.path.startswith("/messages/")), None)
    if first is None:
        return
    for at in range(start, call.length):
        path, where = f"/messages/{call.base + at}", first + call.base + at
        if where >= len(body.segments) or body.segments[where].path != path:
            return
        segment = body.segments[where]
        try:
            members = member_texts(body.data[segment.start : segment.end])
            shows = _shows(members, call, at)
        except (ValueError, RecursionError):
            continue
        if shows is not None:
            yield shows


def _shows(members: Mapping[str, bytes], call: Call, at: int) -> Shows | None:
    item, role = call.trail.items[at], members.get("role")
    live = item.process == call.process
    if item.role == "tool" and role == b'"tool"':
        return Shows(item, _of_result(members, call, at, "live" if live else "found"))
    if item.role == "assistant" and role == b'"assistant"' and live:
        return _of_answer(members, item)
    return None


def _of_result(members: Mapping[str, bytes], call: Call, at: int, side: str) -> dict[str, object]:
    found: dict[str, object] = {f"source {side}": SOURCE in members}
    name = json_text.loads(members.get("tool_call_id", b"null"))
    logged, called = (string(payload(x[at].entry).get("toolCallId")) for x in (call.trail.items, call.trail.called))
    if logged != called and name in (logged, called):
        found[f"called {side}"] = name == called
    return found


def _of_answer(members: Mapping[str, bytes], item: Item) -> Shows | None:
    """What a live answer carries, if it is the one the log has: its tool calls are those of the log."""
    calls = [mapped(c) for c in listed(json_text.loads(members.get("tool_calls", b"null")))]
    if [c.get("id") for c in calls] != [r.id for r in item.requests] or not members.keys() <= {*ORDER}:
        return None
    forms: dict[str, object] = {"refusal": "refusal" in members}
    if string(payload(item.entry).get("reasoningText")):
        forms["reasoning"] = next((name for name in REASONING if name in members), None)
    order = tuple(members)
    if order != tuple(k for k in ORDER if k in members):
        forms[f"keys {bool(item.requests)}"] = order
    taken = {r.number: text for r, c in zip(item.requests, calls, strict=True) if (text := _same(r, c))}
    return Shows(item, forms, members.get("reasoning_details"), taken)


def _same(request: Request, call: Mapping[str, object]) -> bytes | None:
    """A call's arguments as a JSON string, where they say what the log says, key for key."""
    sent = mapped(call.get("function")).get("arguments")
    if not isinstance(sent, str) or isinstance(request.arguments, str):
        return None
    try:
        value = json_text.loads(sent)
    except ValueError:
        return None
    return spelled(sent).encode("utf-8", "surrogatepass") if spelled(value) == spelled(request.arguments) else None
