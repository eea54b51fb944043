"""A session's events folded into what they tell: conversations, calls, usage, what rewrote history (copilot.md §4).

The fold only goes forward. An event of a kind that tells nothing of requests leaves all as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ctxscope.agents import Log, shared_memo
from ctxscope.agents.copilot.events import payload
from ctxscope.agents.copilot.trail import Call, Item, Request, Trail
from ctxscope.model import Entry
from ctxscope.wire.blocks import listed, mapped, string

REWRITES: Mapping[str, str] = {
    "session.compaction_complete": "the compaction",
    "session.truncation": "the truncation",
    "session.context_cleared": "the clearing of the context",
}
"""Events after which the log does not tell what is sent."""


@dataclass(eq=False, slots=True, repr=False)
class Happening:
    """An event that a marker tells of, and how many calls came before it."""

    entry: Entry
    calls: int
    process: int


@dataclass(eq=False, slots=True, repr=False)
class Story:
    """All that the events so far tell."""

    rewrites: int
    upto: int = 0
    process: int = 0
    turn: int = 0
    model: tuple[str, Entry | None] = ("", None)
    trails: dict[str, Trail] = field(default_factory=dict)
    calls: list[Call] = field(default_factory=list)
    usages: dict[str, Entry] = field(default_factory=dict)
    """``session.usage_record`` by ``apiCallId``; the first one, should one be written again."""
    happenings: list[Happening] = field(default_factory=list)
    version: str | None = None
    points: dict[int, tuple[Any, Any]] = field(default_factory=dict)
    """By number of a call, its point and what that was made from."""
    keys: dict[str, Call] = field(default_factory=dict)


def story(log: Log) -> Story:
    """What the events so far tell, continued from the last question; told anew where a line was rewritten."""
    memo = shared_memo(log, "copilot.story")
    found: Story | None = memo.get("story")
    if found is None or found.rewrites != log.rewrites:
        memo["story"] = found = Story(log.rewrites)
    for entry in log.entries[found.upto :]:
        fold = _FOLDS.get(entry.kind)
        if fold is not None:
            told = payload(entry)
            fold(found, entry, told, _trail(found, entry, told))
    found.upto = len(log.entries)
    return found


def call_of(log: Log, key: str) -> Call | None:
    """The call that a point stands for, by the point's key."""
    return story(log).keys.get(key)


def first_after(found: Story, happening: Happening) -> Call | None:
    """The first call after something happened; ``None`` while there is none."""
    return found.calls[happening.calls] if happening.calls < len(found.calls) else None


def _trail(story: Story, entry: Entry, told: Mapping[str, Any]) -> Trail:
    agent = string(entry.data.get("agentId")) or string(told.get("parentToolCallId"))
    lineage = f"subagent:{agent}" if agent else "main"
    if lineage not in story.trails:
        story.trails[lineage] = Trail(lineage)
    return story.trails[lineage]


def _happened(story: Story, entry: Entry, *_: object) -> None:
    story.happenings.append(Happening(entry, len(story.calls), story.process))


def _started(story: Story, entry: Entry, told: Mapping[str, Any], _: Trail) -> None:
    story.process += 1
    for trail in story.trails.values():
        if trail.call is not None:
            trail.call.over = True
    story.version = string(told.get("copilotVersion")) or story.version
    if entry.kind == "session.resume":
        _happened(story, entry)
    _named(story, told.get("selectedModel"), entry)


def _named(story: Story, model: Any, entry: Entry) -> None:
    if string(model):
        story.model = (string(model), entry)


def _model_changed(story: Story, entry: Entry, told: Mapping[str, Any], _: Trail) -> None:
    _happened(story, entry)
    _named(story, told.get("newModel"), entry)


def _rewrote(story: Story, entry: Entry, told: Mapping[str, Any], trail: Trail) -> None:
    if told.get("success") is not False:
        _happened(story, entry)
        trail.rewritten = (REWRITES[entry.kind], entry)


def _system(_story: Story, entry: Entry, _: Mapping[str, Any], trail: Trail) -> None:
    trail.system = entry
    trail.put(entry)


def _user(story: Story, entry: Entry, told: Mapping[str, Any], trail: Trail) -> None:
    if trail.lineage == "main":
        story.turn += 1
    if told.get("delivery") == "steering":
        _happened(story, entry)
    trail.add(Item(entry, "user", story.process))


def _began(story: Story, entry: Entry, _: Mapping[str, Any], trail: Trail) -> None:
    _begin(story, entry, trail)


def _begin(story: Story, entry: Entry, trail: Trail) -> Call:
    if trail.call is not None:
        trail.call.over = True
    trail.call = Call(
        number=len(story.calls),
        trail=trail,
        start=entry,
        process=story.process,
        turn=story.turn,
        length=len(trail.items),
        entries=len(trail.entries),
        system=trail.system,
        model=story.model,
        rewritten=trail.rewritten,
    )
    story.calls.append(trail.call)
    story.keys[trail.call.key] = trail.call
    return trail.call


def _used(story: Story, entry: Entry, told: Mapping[str, Any], trail: Trail) -> None:
    name = string(mapped(told.get("usage")).get("apiCallId"))
    if name:
        story.usages.setdefault(name, entry)
    call = trail.call
    if call is not None and call.usage is None:
        written = call.answer is not None and payload(call.answer).get("apiCallId")
        if written in (False, name):
            call.usage = entry


def _answered(story: Story, entry: Entry, told: Mapping[str, Any], trail: Trail) -> None:
    name, call = string(told.get("apiCallId")), trail.call
    if call is None or call.answer is not None:
        last = payload(call.answer) if call is not None and call.answer is not None else {}
        # a second message of one reply is no second call
        call = None if name and name == last.get("apiCallId") else _begin(story, entry, trail)
    if call is not None:
        story.keys.pop(call.key, None)
        call.answer = entry
        call.usage = story.usages.get(name, call.usage)
        story.keys[call.key] = call
        if string(told.get("model")):
            call.model = story.model = (string(told["model"]), entry)
    requests = tuple(_requests(told))
    trail.requests.update((r.id, r) for r in requests)
    trail.add(Item(entry, "assistant", story.process, requests))


def _result(story: Story, entry: Entry, told: Mapping[str, Any], trail: Trail) -> None:
    request = trail.requests.get(string(told.get("toolCallId")))
    trail.add(Item(entry, "tool", story.process, (request,) if request is not None else ()))


def _ended(_story: Story, _: Entry, __: Mapping[str, Any], trail: Trail) -> None:
    if trail.call is not None:
        trail.call.over = True


def _failed(_story: Story, _: Entry, told: Mapping[str, Any], trail: Trail) -> None:
    words = string(told.get("message")) or string(told.get("errorMessage")) or string(told.get("reason"))
    if trail.call is not None and words:
        trail.call.error = words


def _requests(told: Mapping[str, Any]) -> list[Request]:
    found = [mapped(r) for r in listed(told.get("toolRequests"))]
    return [
        Request(
            string(r.get("toolCallId")), string(r.get("name")), r.get("arguments"), string(r.get("intentionSummary")), i
        )
        for i, r in enumerate(found)
    ]


_FOLDS: Mapping[str, Callable[[Story, Entry, Mapping[str, Any], Trail], None]] = {
    "session.start": _started,
    "session.resume": _started,
    "session.model_change": _model_changed,
    "session.snapshot_rewind": _happened,
    **dict.fromkeys(REWRITES, _rewrote),
    "system.message": _system,
    "user.message": _user,
    "assistant.turn_start": _began,
    "session.usage_record": _used,
    "assistant.message": _answered,
    "tool.execution_complete": _result,
    "assistant.turn_end": _ended,
    "session.error": _failed,
    "model.call_failure": _failed,
    "abort": _failed,
}
"""What an event does to the story, by its kind."""
