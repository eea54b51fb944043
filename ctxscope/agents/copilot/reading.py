"""Markers, causes and notices that a Copilot CLI log gives (copilot.md §5)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ctxscope.agents import Log, shared_memo
from ctxscope.agents.copilot.body import size_words
from ctxscope.agents.copilot.events import DIALECT, payload
from ctxscope.agents.copilot.messages import SOURCE
from ctxscope.agents.copilot.story import Happening, call_of, first_after, story
from ctxscope.agents.reading import drift
from ctxscope.model import Body, CallKind, Config, Difference, Entry, Learned, Marker, Point, quoted
from ctxscope.wire.blocks import mapped, number, string

RESUME = (
    "a new run took the session up: earlier answers lose their opaque reasoning and are spelt anew, "
    "earlier tool results gain their source"
)
_SUMMARIZE = b"Please create a detailed summary of the conversation so far. The history is being compacted"
_LEAD = 400
"""Bytes of the last message that it begins in."""
_KINDS = {
    "session.resume": ("resume", RESUME),
    "session.compaction_complete": (
        "compaction",
        "the conversation was compacted: a summary stands for what came before",
    ),
    "session.truncation": ("prune", "messages were left out to fit the window; which ones is not logged"),
    "session.context_cleared": ("rewind", "the context was cleared"),
    "session.snapshot_rewind": ("rewind", "the session was taken back; later events were removed from the log"),
    "session.model_change": ("model_switch", "the model was changed"),
    "user.message": ("steer", "a message was put into the run under way"),
}
"""Marker and words by the event's kind."""


def markers(log: Log) -> Sequence[Marker]:
    """What rewrote or restored history, in order."""
    told = story(log)
    return [_marker(h, call.key if (call := first_after(told, h)) is not None else None) for h in told.happenings]


def _marker(happening: Happening, point: str | None) -> Marker:
    entry, told = happening.entry, payload(happening.entry)
    kind, words = _KINDS[entry.kind]
    if entry.kind == "session.model_change":
        words = _changed(told)
    return Marker(
        kind=kind,
        point=point,
        logged=True,
        where=words,
        place=entry.place,
        before_tokens=_first(told, "preCompactionTokens", "preTruncationTokensInMessages"),
        after_tokens=_first(told, "postCompactionTokens", "postTruncationTokensInMessages"),
    )


def _changed(told: Mapping[str, Any]) -> str:
    """What a change of the model changed: the model itself, or only how hard it is to think."""
    names = [quoted(string(told.get(k)) or "?") for k in ("previousModel", "newModel")]
    if names[0] != names[1]:
        return f"the model was changed: {names[0]} to {names[1]}"
    efforts = [quoted(string(told.get(k)) or "?") for k in ("previousReasoningEffort", "reasoningEffort")]
    return f"the effort of reasoning was changed: {efforts[0]} to {efforts[1]}"


def _first(told: dict[str, object] | object, *names: str) -> int | None:
    return next((n for name in names if (n := number(mapped(told), name)) is not None), None)


def config(log: Log) -> Config:
    """The version that wrote the log, and the prompt limit its last usage record names."""
    told = story(log)
    used = [c.usage for c in told.calls if c.usage is not None][-1:]
    window = number(mapped(payload(used[0]).get("usage")), "maxPromptTokens") if used else None
    return Config(agent_version=told.version, window=window, window_by=None if window is None else "log")


def classify(body: Body) -> CallKind | None:
    """``compaction`` by how its last message begins."""
    last = next((s for s in reversed(body.segments) if s.kind == "message"), None)
    if last is None or last.role != "user":
        return None
    return "compaction" if _SUMMARIZE in body.data[last.start : min(last.end, last.start + _LEAD)] else None


def explain(log: Log, point: Point, difference: Difference, learned: Learned) -> str | None:
    """Causes the Copilot CLI is known for; ``None`` where it is not."""
    if _is_of_failure(log, point, difference.path):
        return "of a failed tool the log keeps a shorter message than the run that called it tells the model"
    path, sizes = difference.path, learned.choice.get("sizes")
    if path.endswith(SOURCE) or f"{SOURCE}/" in path:
        return "tool results carry their source when they were found in the log, and not in the run that made them"
    top = "/" + path.partition("/")[2].partition("/")[0]
    if top in learned.values and learned.choice.get("told"):
        return f"{top[1:]} is not in the log, and the call answered at {learned.choice['told']} was sent with another value"
    return f"{difference.cause}; {size_words(*sizes)}" if sizes else None


def _is_of_failure(log: Log, point: Point, path: str) -> bool:
    """Whether a path leads to what a failed tool told in the run that called it."""
    call, parts = call_of(log, point.key), path.split("/")
    if call is None or parts[1:2] != ["messages"] or parts[3:4] != ["content"] or not parts[2].isdigit():
        return False
    at = int(parts[2]) - call.base
    item = call.trail.items[at] if 0 <= at < call.length else None
    return (
        item is not None
        and item.process == call.process
        and mapped(payload(item.entry).get("error")).get("code") == "failure"
    )


def notices(log: Log) -> tuple[str, ...]:
    """What could not be read, what is not known of this log, calls that failed, requests that are not rebuilt."""
    known = shared_memo(log, "copilot.notices")
    found: list[str] = []
    for entry in log.entries:
        if entry not in known:
            known[entry] = tuple(_of_entry(entry))
        found += known[entry]
    for trail in story(log).trails.values():
        if trail.rewritten is not None:
            what, entry = trail.rewritten
            found.append(f"requests after {what} at {entry.place} are not rebuilt: what is sent then is not logged")
    return (*found, *drift.notices(log, DIALECT))


def _of_entry(entry: Entry) -> Iterator[str]:
    if entry.kind == "unknown" and not entry.data:
        yield f"{entry.place}: not a JSON object"
    told = payload(entry)
    if entry.kind in {"session.error", "model.call_failure"}:
        yield f"{entry.place}: {quoted(string(told.get('message')) or string(told.get('errorMessage')) or entry.kind)}"
    if entry.kind == "session.compaction_complete" and told.get("success") is False:
        yield f"{entry.place}: a compaction failed: {quoted(string(told.get('error')))}"
