"""What the events of a session tell of its answers: ids and usage, which the rows do not have (kimi.md §3, §7)."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ctxscope.agents.kimi.rows import calls_of, parts, payload_of, text_of
from ctxscope.model import Entry, Place, Usage
from ctxscope.wire.blocks import integer


class Told(NamedTuple):
    """What is told of one answer."""

    id: str = ""
    usage: Usage | None = None
    time: float | None = None


class Focus(NamedTuple):
    """The user's words on what a summary is to keep, and where they stand."""

    words: str = ""
    place: Place | None = None


NO_FOCUS = Focus()


class Compaction(NamedTuple):
    """What is told of one compaction."""

    time: float | None = None
    focus: Focus = NO_FOCUS


@dataclass(eq=False, repr=False)
class Events:
    """One file of events, taken in one by one."""

    told: list[Told] = field(default_factory=list)
    window: int | None = None
    callers: dict[str, str] = field(default_factory=dict)
    """By subagent, the tool call that runs it."""
    compactions: list[Compaction] = field(default_factory=list)
    _focus: Focus = NO_FOCUS
    """Of the turn so far."""
    _places: dict[Hashable, list[int]] = field(default_factory=dict)
    """Where in ``told`` answers of some content are."""
    _seen: list[Mapping[str, Any]] = field(default_factory=list)
    """Parts and tool calls of the step so far."""

    def take(self, event: Entry) -> None:
        """Add the next event."""
        kind, payload = payload_of(event)
        if kind == "StepBegin":
            self._seen = []
        elif kind in ("ContentPart", "ToolCall"):
            self._seen.append(payload)
        elif kind == "TurnBegin":
            texts = [text_of(part) for part in parts(payload.get("user_input")) if isinstance(part, dict)]
            said = " ".join(texts).strip()
            order, *words = said.split(maxsplit=1) or [""]
            self._focus = Focus(words[0], event.place) if order == "/compact" and words else NO_FOCUS
        elif kind == "CompactionEnd":
            self.compactions.append(Compaction(event.time, self._focus))
        elif kind == "SubagentEvent":
            self.callers.setdefault(str(payload.get("agent_id")), str(payload.get("parent_tool_call_id")))
        elif kind == "StatusUpdate":
            self.window = integer(payload.get("max_context_tokens")) or self.window
            name = payload.get("message_id")
            if isinstance(name, str) and name:
                calls = [part for part in self._seen if part.get("type") == "function"]
                for content in _contents(self._seen, calls):
                    self._places.setdefault(content, []).append(len(self.told))
                self.told.append(Told(name, _usage(payload.get("token_usage")), event.time))

    def place_of(self, answer: Entry, behind: int) -> int | None:
        """Which of ``told``, from ``behind`` on, an assistant row is; ``None`` where no event tells.

        A step that was interrupted leaves an event without a row, so that their order alone does not decide.
        """
        for content in _contents(parts(answer.data.get("content")), calls_of(answer.data)):
            places = self._places.get(content, [])
            at = bisect_left(places, behind)
            if at < len(places):
                return places[at]
        return None


def _contents(seen: Sequence[Mapping[str, Any]], calls: Sequence[Mapping[str, Any]]) -> Iterator[Hashable]:
    """What an answer is recognised by: all of its content; else its tool calls, where a repeated attempt added text."""
    ids = tuple(str(call.get("id")) for call in calls)
    yield "".join(text_of(p, "think") for p in seen), "".join(map(text_of, seen)), ids
    if ids:
        yield ids


def _usage(told: Any) -> Usage | None:
    """Usage as stored. Nothing tells a cache count of 0 from one the provider did not report: both are unknown."""
    if not isinstance(told, dict):
        return None
    read, written = integer(told.get("input_cache_read")), integer(told.get("input_cache_creation"))
    return Usage(integer(told.get("input_other")), read or None, written or None, integer(told.get("output")))
