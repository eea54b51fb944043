"""A session's events folded into what they tell: conversations, calls, usage, what rewrote history (copilot.md §4).

The fold only goes forward. An event of a kind that tells nothing of requests leaves all as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ctxscope.agents import Log, shared_memo
from ctxscope.agents.copilot.events import payload
from ctxscope.agents.copilot.trail import Call, Compaction, Item, Request, Trail
from ctxscope.model import Entry
from ctxscope.wire.blocks import listed, mapped, string

REWRITES: Mapping[str, str] = {
    "session.truncation": "the truncation",
    "session.context_cleared": "the clearing of the context",
}
"""Events after which the log does not tell what is sent."""
UNTIL_RESUME = "session.truncation"
"""Of these, the one whose effect ends with the run: the next one reads all messages from the log."""


@dataclass(eq=False, slots=True, repr=False)
class Happening:
    """An event that a marker tells of, and how many calls came before it."""

    entry: Entry
    calls: int
    call: Call | None = None
    """The call under way that it bore upon already."""


@dataclass(eq=False, slots=True, repr=False)
class Story:
    """All that the events so far tell."""

    rewrites: int
    upto: int = 0
    process: int = 0
    turn: int = 0
    directory: str = ""
    trails: dict[str, Trail] = field(default_factory=dict)
    """The last one of each lineage."""
    assets: dict[str, Entry] = field(default_factory=dict)
    """``session.binary_asset`` by id."""
    calls: list[Call] = field(default_factory=list)
    usages: dict[str, Entry] = field(default_factory=dict)
    """``session.usage_record`` by ``apiCallId``; the first one, should one be written again."""
    happenings: list[Happening] = field(default_factory=list)
    version: str | None = None
    points: dict[int, tuple[Any, Any]] = field(default_factory=dict)
    """By number of a call, its point and what that was made from."""
    keys: dict[str, Call] = field(default_factory=dict)
    agents: dict[str, str] = field(default_factory=dict)
    """Lineages of subagents by their ids."""


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
    """The first call that something bore upon; ``None`` while there is none."""
    if happening.call is not None:
        return happening.call
    later = found.calls[happening.calls :]
    if happening.entry.kind == "session.compaction_complete":
        return next((call for call in later if not call.is_compaction), None)
    return later[0] if later else None


def _trail(story: Story, entry: Entry, told: Mapping[str, Any]) -> Trail:
    agent, asked = string(entry.data.get("agentId")), string(told.get("parentToolCallId"))
    if not agent and not asked:
        return story.trails.setdefault("main", Trail("main"))
    known = story.agents.get(agent or asked)
    if known is None:
        outer = next((t for t in story.trails.values() if asked in t.requests), None) if asked else None
        before = f"{outer.lineage}/" if outer is not None and outer.lineage != "main" else "sub:"
        known = story.agents[agent or asked] = before + (agent or asked)
    if known not in story.trails:
        main = story.trails.get("main", Trail("main"))
        story.trails[known] = Trail(known, model=main.model)
    return story.trails[known]


def _happened(story: Story, entry: Entry, _: Mapping[str, Any], trail: Trail) -> None:
    call = trail.call if trail.call is not None and trail.call.is_under_way else None
    story.happenings.append(Happening(entry, len(story.calls), call))


def _started(story: Story, entry: Entry, told: Mapping[str, Any], main: Trail) -> None:
    story.process += 1
    for trail in story.trails.values():
        if trail.call is not None:
            trail.call.over = True
    story.version = string(told.get("copilotVersion")) or story.version
    story.directory = string(mapped(told.get("context")).get("cwd")) or story.directory
    if entry.kind == "session.resume":
        story.happenings.append(Happening(entry, len(story.calls)))
        main = _taken_up(story, main)
    _named(main, told.get("selectedModel"), entry)
    main.effort = (string(told.get("reasoningEffort")), entry)


def _taken_up(story: Story, main: Trail) -> Trail:
    """The conversation as a new run reads it from the log: without what is not logged, with what was cut to fit."""
    if main.passing or main.rewritten is not None:
        main = story.trails["main"] = main.anew([item for item in main.items if not item.is_passing])
        if main.rewritten is not None and main.rewritten[1].kind == UNTIL_RESUME:
            main.rewritten = None
    main.compaction = None
    return main


def _named(trail: Trail, model: Any, entry: Entry) -> None:
    if string(model):
        trail.model = (string(model), entry)


def _model_changed(story: Story, entry: Entry, told: Mapping[str, Any], trail: Trail) -> None:
    if trail.lineage == "main":
        _happened(story, entry, told, trail)
    _named(trail, told.get("newModel"), entry)
    if "reasoningEffort" in told:
        trail.effort = (string(told.get("reasoningEffort")), entry)


def _rewrote(story: Story, entry: Entry, told: Mapping[str, Any], trail: Trail) -> None:
    _happened(story, entry, told, trail)
    trail.rewritten = (REWRITES[entry.kind], entry)
    if trail.call is not None and trail.call.is_under_way:
        trail.call.rewritten = trail.rewritten
    if trail.compaction is not None:
        trail.compaction.call.rewritten = trail.rewritten


def _compacting(story: Story, entry: Entry, _: Mapping[str, Any], trail: Trail) -> None:
    call = _call(story, entry, trail)
    call.is_compaction = True
    trail.compaction = Compaction(call, len(trail.items), len(trail.said))


def _compacted(story: Story, entry: Entry, told: Mapping[str, Any], trail: Trail) -> None:
    done, trail.compaction = trail.compaction, None
    if told.get("success") is False:
        if done is not None:
            done.call.over, done.call.error = True, string(told.get("error")) or None
        return
    _happened(story, entry, told, trail)
    if done is None:
        trail.rewritten = ("the compaction", entry)
        return
    story.keys.pop(done.call.key, None)
    done.call.answer, done.call.over = entry, True
    story.keys[done.call.key] = done.call
    summary = Item(entry, "summary", story.process, beside=tuple(trail.said[: done.said]))
    story.trails[trail.lineage] = after = trail.anew([summary, *trail.items[done.upto :]])
    if trail.call is not None and trail.call.is_under_way:
        trail.call.see(after)


def _heard(_: Story, __: Entry, told: Mapping[str, Any], trail: Trail) -> None:
    """An event of a model call that stands for no message: of a compaction asked for by the user."""
    name = string(mapped(told.get("modelCall")).get("api_id"))
    if trail.compaction is not None and name:
        trail.compaction.call.api_id = name


def _shown(_: Story, entry: Entry, told: Mapping[str, Any], trail: Trail) -> None:
    """The messages of a compaction that the user asked for: the system prompt it was sent with is logged there alone."""
    first = mapped(next(iter(listed(told.get("messages"))), None))
    if trail.compaction is not None and first.get("role") == "system" and isinstance(first.get("content"), str):
        trail.compaction.call.system = trail.compaction.call.shown = entry


def _system(_story: Story, entry: Entry, _: Mapping[str, Any], trail: Trail) -> None:
    trail.system = entry
    trail.put(entry)


def _user(story: Story, entry: Entry, told: Mapping[str, Any], trail: Trail) -> None:
    if trail.lineage == "main":
        story.turn += 1
    if told.get("delivery") == "steering":
        story.happenings.append(Happening(entry, len(story.calls)))
    trail.said.append(entry)
    names = [string(mapped(a).get("assetId")) for a in listed(told.get("attachments"))]
    trail.add(Item(entry, "user", story.process, beside=tuple(story.assets[n] for n in names if n in story.assets)))


def _notified(story: Story, entry: Entry, _: Mapping[str, Any], trail: Trail) -> None:
    trail.add(Item(entry, "user", story.process))


def _brought(story: Story, entry: Entry, told: Mapping[str, Any], _: Trail) -> None:
    if string(told.get("assetId")):
        story.assets[string(told["assetId"])] = entry


def _began(story: Story, entry: Entry, _: Mapping[str, Any], trail: Trail) -> None:
    _begin(story, entry, trail)


def _begin(story: Story, entry: Entry, trail: Trail) -> Call:
    last = trail.call
    if last is not None:
        last.over = True
        if last.answer is None and last.usage is not None and last.process == story.process and _was_cut(last.usage):
            trail.add(Item(last.usage, "cut", story.process))
            trail.place(Item(last.usage, "onward", story.process))
    for request in list(trail.waiting.values()):
        trail.place(Item(request.answer, "lost", story.process, (request,)))
    trail.call = _call(story, entry, trail)
    return trail.call


def _was_cut(usage: Entry) -> bool:
    return mapped(payload(usage).get("usage")).get("finishReason") == "length"


def _call(story: Story, entry: Entry, trail: Trail) -> Call:
    call = Call(
        number=len(story.calls),
        trail=trail,
        start=entry,
        process=story.process,
        turn=story.turn,
        length=0,
        entries=0,
        system=None,
        model=trail.model,
        effort=trail.effort,
        rewritten=None,
    )
    call.see(trail)
    story.calls.append(call)
    story.keys[call.key] = call
    return call


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
    name, model = string(told.get("apiCallId")), string(told.get("model"))
    is_own = not name and not model
    if not is_own:
        _answer(story, entry, trail, name, model)
    requests = tuple(_requests(told, entry, story.directory))
    trail.requests.update((r.id, r) for r in requests)
    trail.waiting.update((r.id, r) for r in requests)
    trail.add(Item(entry, "assistant", 0 if is_own else story.process, requests))


def _answer(story: Story, entry: Entry, trail: Trail, name: str, model: str) -> None:
    """Take an event as the answer of the call under way, or of one whose beginning is not logged."""
    call = trail.call
    if call is None or call.answer is not None:
        last = payload(call.answer) if call is not None and call.answer is not None else {}
        # a second message of one reply is no second call
        call = None if name and name == last.get("apiCallId") else _begin(story, entry, trail)
    if call is not None:
        story.keys.pop(call.key, None)
        call.answer = entry
        call.usage = story.usages.get(name, call.usage)
        story.keys[call.key] = call
        if model:
            call.model = trail.model = (model, entry)


def _result(story: Story, entry: Entry, told: Mapping[str, Any], trail: Trail) -> None:
    request = trail.requests.get(string(told.get("toolCallId")))
    was_lost = mapped(told.get("error")).get("code") == "interrupted"
    own = (
        request is not None
        and not payload(request.answer).get("model")
        and not payload(request.answer).get("apiCallId")
    )
    known = (request,) if request is not None else ()
    trail.add(Item(entry, "lost" if was_lost else "tool", 0 if own else story.process, known))


def _ended(_story: Story, _: Entry, __: Mapping[str, Any], trail: Trail) -> None:
    if trail.call is not None:
        trail.call.over = True


def _failed(_story: Story, _: Entry, told: Mapping[str, Any], trail: Trail) -> None:
    words = string(told.get("message")) or string(told.get("errorMessage")) or string(told.get("reason"))
    if trail.call is not None and words:
        trail.call.error = words


def _requests(told: Mapping[str, Any], answer: Entry, directory: str) -> list[Request]:
    found = [mapped(r) for r in listed(told.get("toolRequests"))]
    return [
        Request(
            string(r.get("toolCallId")),
            string(r.get("name")),
            r.get("arguments"),
            string(r.get("intentionSummary")),
            i,
            answer,
            directory,
        )
        for i, r in enumerate(found)
    ]


_FOLDS: Mapping[str, Callable[[Story, Entry, Mapping[str, Any], Trail], None]] = {
    "session.start": _started,
    "session.resume": _started,
    "session.model_change": _model_changed,
    "session.snapshot_rewind": _happened,
    "session.compaction_start": _compacting,
    "session.compaction_complete": _compacted,
    "session.binary_asset": _brought,
    "system.notification": _notified,
    **dict.fromkeys(("model.model_call_success", "model.message", "model.response"), _heard),
    "model.messages_snapshot": _shown,
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
