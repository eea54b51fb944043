"""Markers, causes and notices that a Copilot CLI log gives (copilot.md §5)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ctxscope.agents import Log, shared_memo
from ctxscope.agents.copilot.body import size_words
from ctxscope.agents.copilot.events import DIALECT, payload
from ctxscope.agents.copilot.messages import SOURCE
from ctxscope.agents.copilot.story import Happening, first_after, story
from ctxscope.agents.reading import drift
from ctxscope.model import Config, Difference, Entry, Learned, Marker, quoted
from ctxscope.wire.blocks import mapped, number, string

RESUME = (
    "a new run took the session up: earlier answers lose their opaque reasoning and are spelt anew, "
    "earlier tool results gain their source"
)
_KINDS = {
    "session.resume": ("resume", RESUME),
    "session.compaction_complete": ("compaction", "the conversation was compacted; what is sent since is not logged"),
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
        names = [quoted(string(told.get(k)) or "?") for k in ("previousModel", "newModel")]
        words = f"{words}: {names[0]} to {names[1]}"
    return Marker(
        kind=kind,
        point=point,
        logged=True,
        where=words,
        place=entry.place,
        before_tokens=_first(told, "preCompactionTokens", "preTruncationTokensInMessages"),
        after_tokens=_first(told, "postCompactionTokens", "postTruncationTokensInMessages"),
    )


def _first(told: dict[str, object] | object, *names: str) -> int | None:
    return next((n for name in names if (n := number(mapped(told), name)) is not None), None)


def config(log: Log) -> Config:
    """The version that wrote the log, and the prompt limit its last usage record names."""
    told = story(log)
    used = [c.usage for c in told.calls if c.usage is not None][-1:]
    window = number(mapped(payload(used[0]).get("usage")), "maxPromptTokens") if used else None
    return Config(agent_version=told.version, window=window)


def explain(difference: Difference, learned: Learned) -> str | None:
    """Causes the Copilot CLI is known for; ``None`` where it is not."""
    path, sizes = difference.path, learned.choice.get("sizes")
    if path.endswith(SOURCE) or f"{SOURCE}/" in path:
        return "tool results carry their source when they were found in the log, and not in the run that made them"
    top = "/" + path.partition("/")[2].partition("/")[0]
    if top in learned.values and learned.choice.get("told"):
        return f"{top[1:]} is not in the log, and the call answered at {learned.choice['told']} was sent with another value"
    return f"{difference.cause}; {size_words(*sizes)}" if sizes else None


def notices(log: Log) -> tuple[str, ...]:
    """What could not be read, what is not known of this log, calls that failed, requests that are not rebuilt."""
    known = shared_memo(log, "copilot.notices")
    found: list[str] = []
    for entry in log.entries:
        if entry not in known:
            known[entry] = tuple(_of_entry(entry))
        found += known[entry]
    for trail in story(log).trails.values():
        if trail.rewritten is not None and trail.lineage == "main":
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
