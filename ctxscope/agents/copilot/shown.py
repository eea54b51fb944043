"""What a served body shows of a call's messages that the log does not tell."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from ctxscope.agents.copilot import failures
from ctxscope.agents.copilot.events import payload
from ctxscope.agents.copilot.messages import ORDER, REASONING, SOURCE, SPOKEN
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
    """By name: ``source live``, ``source found``, ``refusal``, ``reasoning``, ``keys True``, ``keys False`` (of answers
    with and without tool calls)."""
    details: bytes | None = None
    arguments: Mapping[int, bytes] = field(default_factory=dict)
    members: Mapping[str, bytes] = field(default_factory=dict)
    content: bytes | None = None

    @property
    def has_more(self) -> bool:
        """Whether it shows more of the message than the log holds."""
        return self.details is not None or self.content is not None or bool(self.arguments or self.members)


def shown_by(body: Body, call: Call, start: int) -> Iterator[Shows]:
    """What the messages of a call from number ``start`` on show, those that can be read."""
    for at in range(start, call.length):
        members = _message(body, call.base + at)
        if members is None:
            return
        try:
            shows = _shows(members, call, at)
        except (ValueError, RecursionError):
            continue
        if shows is not None:
            yield shows


def last_words(body: Body, call: Call) -> bytes | None:
    """What the message behind those of a call says, as the JSON string sent: the words that ask for a summary."""
    members = _message(body, call.base + call.length)
    if members is None or members.get("role") != b'"user"' or not members.get("content", b"").startswith(b'"'):
        return None
    return members["content"]


def _message(body: Body, number: int) -> Mapping[str, bytes] | None:
    """The members of a message; ``None`` where the body has no such one, empty where it cannot be read."""
    first = next((i for i, s in enumerate(body.segments) if s.path.startswith("/messages/")), None)
    where = (first or 0) + number
    if first is None or where >= len(body.segments) or body.segments[where].path != f"/messages/{number}":
        return None
    try:
        return member_texts(body.data[body.segments[where].start : body.segments[where].end])
    except (ValueError, RecursionError):
        return {}


def _shows(members: Mapping[str, bytes], call: Call, at: int) -> Shows | None:
    item, role = call.trail.items[at], members.get("role")
    live = item.process == call.process
    if item.role == "tool" and role == b'"tool"':
        forms = {f"source {'live' if live else 'found'}": SOURCE in members} if item.process else {}
        return Shows(item, forms, content=_long(members, item) if live else None)
    if item.role == "assistant" and role == b'"assistant"' and live:
        return _of_answer(members, item)
    if item.role == "cut" and role == b'"assistant"' and live:
        return _of_cut(members, item)
    return None


def _long(members: Mapping[str, bytes], item: Item) -> bytes | None:
    """What a failed tool told, where the log says how that begins, and this may be it."""
    long = failures.told(payload(item.entry), item.requests[0]) if item.requests else None
    if long is None or long.is_whole:
        return None
    told = json_text.loads(members.get("content", b"null"))
    return spelled(told).encode("utf-8", "surrogatepass") if isinstance(told, str) and long.fits(told) else None


def _of_cut(members: Mapping[str, bytes], item: Item) -> Shows | None:
    """A cut answer, all of which is taken: text and reasoning, but no tool call."""
    known = {"role", "refusal", "content", "reasoning_details", *REASONING}
    if not {"role", "content"} <= members.keys() <= known or members.get("refusal", b"null") != b"null":
        return None
    return Shows(item, members=dict(members))


def _of_answer(members: Mapping[str, bytes], item: Item) -> Shows | None:
    """What a live answer carries, if it is the one the log has: its tool calls are those of the log."""
    calls = [mapped(c) for c in listed(json_text.loads(members.get("tool_calls", b"null")))]
    if [c.get("id") for c in calls] != [r.id for r in item.requests] or not members.keys() <= {*ORDER}:
        return None
    forms: dict[str, object] = {"refusal": "refusal" in members}
    if string(payload(item.entry).get("reasoningText")):
        forms["reasoning"] = next((name for name in REASONING if name in members), None)
    order = tuple(members)
    usual = ORDER if item.requests else SPOKEN
    if order != tuple(k for k in usual if k in members):
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
