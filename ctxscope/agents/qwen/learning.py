"""What the log of Qwen Code does not hold, taken from served bodies (qwen.md §4).

System prompt, tools and parameters are those of the first call of a kind that can be read, the environment message that
of the first call with one. After a compression the process that made it goes on without that message; one that starts
anew begins with it again. Which it is the log does not tell.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Literal

from ctxscope.agents import Before, Log, shared_memo
from ctxscope.agents.qwen.messages import UNREAD
from ctxscope.agents.qwen.points import call_of, kind_of
from ctxscope.agents.qwen.replay import Call, Segment
from ctxscope.agents.reading.served import Facts, facts
from ctxscope.model import Body, Learnable, Learned, Point, Value
from ctxscope.wire.spans import value_end

PARAMS = (
    "stream",
    "stream_options",
    "tools",
    "max_tokens",
    "temperature",
    "top_p",
    "top_k",
    "repetition_penalty",
    "presence_penalty",
    "frequency_penalty",
    "reasoning",
    "reasoning_effort",
    "thinking",
    "enable_thinking",
    "metadata",
    "vl_high_resolution_images",
    "prompt_cache_key",
)
MODEL, SYSTEM, ENVIRONMENT = "/model", "/messages/0", "/messages/1"
LEARNABLE = (
    *(Learnable(f"/{name}", "tools and parameters are not logged") for name in PARAMS),
    *(Learnable(f"/{name}", "whether an answer is streamed is not logged") for name in ("stream", "stream_options")),
    Learnable(MODEL, "the model of a call that failed before any answer is not logged"),
    Learnable(SYSTEM, "the system prompt is not logged"),
    Learnable(ENVIRONMENT, "the message about date, system and folder that a process begins with is not logged"),
)
_ENVIRONMENT = b"This is the Qwen Code. We are setting up the context for our chat."
_LEADS = (b'{"role":"user","content":[{"type":"text","text":"', b'{"role":"user","content":"')
_UNREAD = UNREAD.partition("{")[0].encode()
Provenance = Literal["learned", "echoed"]


@dataclass(frozen=True, slots=True, eq=False)
class Held:
    """A thing and the joined call that showed it first."""

    at: int
    point: Point
    value: bytes = b""


@dataclass(frozen=True, slots=True, eq=False)
class Head:
    """The first call of a kind and what it showed outside the conversation."""

    at: int
    point: Point
    facts: Facts
    system: bytes
    """Its first message, where that is the system prompt."""


@dataclass(eq=False, slots=True, repr=False)
class Taught:
    """What a row of joined calls taught. Of a shorter row that it begins with all that was held by then."""

    calls: list[tuple[Point, str]] = field(default_factory=list)
    heads: dict[tuple[str, str], Head] = field(default_factory=dict)
    environment: Held | None = None
    loaded: dict[Segment, Held] = field(default_factory=dict)
    """By segment the first call of a process that took it over."""
    seen: dict[Segment, int] = field(default_factory=dict)
    """Number of the first call in each segment."""
    unread: Held | None = None
    """The first call whose model got a text instead of a file."""

    def take(self, log: Log, point: Point, digest: str, load: Callable[[], Body]) -> None:
        """Add the next call."""
        at = len(self.calls)
        self.calls.append((point, digest))
        call = call_of(log, point)
        own = facts(log, digest, load)
        if call is None or own.bulk != "messages":
            return
        if kind_of(call) not in self.heads:
            first = own.first_message(load())
            system = first if first.startswith(b'{"role":"system"') else b""
            self.heads[kind_of(call)] = Head(at, point, own, system)
        self._process(call, at, point, own, load)
        if self.unread is None and _holds_files(call) and _UNREAD in load().data:
            self.unread = Held(at, point)

    def _process(self, call: Call, at: int, point: Point, own: Facts, load: Callable[[], Body]) -> None:
        """Whether the process that made a call began with the environment message."""
        fresh = call.segment not in self.seen
        self.seen.setdefault(call.segment, at)
        asked = fresh or (call.first and call.segment.number and call.segment not in self.loaded)
        shown = _environment(own, load()) if asked else b""
        if not shown:
            return
        if call.segment.number:
            self.loaded[call.segment] = Held(at, point)
        self.environment = self.environment or Held(at, point, shown)

    def forget(self, start: int) -> None:
        """Take the calls from ``start`` on out again."""
        del self.calls[start:]
        self.heads = {k: h for k, h in self.heads.items() if h.at < start}
        self.loaded = {k: h for k, h in self.loaded.items() if h.at < start}
        self.seen = {k: at for k, at in self.seen.items() if at < start}
        self.environment = self.environment if self.environment and self.environment.at < start else None
        self.unread = self.unread if self.unread and self.unread.at < start else None


def _environment(own: Facts, body: Body) -> bytes:
    """The second message, where it is the one about the environment."""
    text, start = body.data.decode("latin-1"), own.start
    try:
        start = value_end(text, start)
        end = value_end(text, start + 1) if text[start : start + 1] == "," else start
    except ValueError:
        return b""
    found = body.data[start + 1 : end]
    return found if any(found.startswith(lead + _ENVIRONMENT) for lead in _LEADS) else b""


def _holds_files(call: Call) -> bool:
    parts = (p for turn in call.history.turns[: call.length] if turn.role == "user" for p in turn.parts)
    return any(
        "inlineData" in p or (isinstance(p.get("functionResponse"), dict) and "parts" in p["functionResponse"])
        for p in parts
    )


def taught(log: Log, point: Point, body: Body, before: Before) -> Taught:
    """What the joined calls up to this one taught, this one included; continued from what was asked before."""
    calls = [*before.told, (point, body.sha256)]
    memo = shared_memo(log, "qwen.taught")
    kept: Taught | None = memo.get("kept")
    found = kept if kept is not None else Taught()
    same = min(len(found.calls), len(calls))
    if found.calls[:same] != calls[:same]:
        if len(calls) == 1:
            found = Taught()  # a question about one call alone must not cost what is known of them all
        else:
            found.forget(next(i for i in range(same) if found.calls[i] != calls[i]))
    if found is kept or len(calls) > 1 or kept is None:
        memo["kept"] = found
    for at in range(len(found.calls), len(calls)):
        load = partial(_load, before, at) if at < len(before) else lambda: body
        found.take(log, *calls[at], load)
    return found


def _load(before: Before, at: int) -> Body:
    return before[at][1]


def learn(log: Log, point: Point, body: Body, before: Before) -> Learned:
    """Head, and whether the process had begun anew, for one call."""
    at, known, call = len(before), taught(log, point, body, before), call_of(log, point)
    if call is None:
        return Learned()
    head = known.heads.get(kind_of(call))
    if head is None or head.at > at:
        own = facts(log, body.sha256, lambda: body)
        head = Head(at, point, own, own.first_message(body) if own.bulk else b"")
    provenance: Provenance = "learned" if head.at < at else "echoed"
    values = {f"/{name}": Value(head.facts.values[name], provenance) for name in PARAMS if name in head.facts.values}
    if not call.model and "model" in head.facts.values:
        values[MODEL] = Value(head.facts.values["model"], provenance)
    if head.system:
        values[SYSTEM] = Value(head.system, provenance)
    loaded, words = known.loaded.get(call.segment), ""
    anew = call.segment.number == 0 or (loaded is not None and loaded.at <= at)
    if known.environment is not None and known.environment.at <= at and anew:
        told: Provenance = "learned" if known.environment.at < at else "echoed"
        values[ENVIRONMENT] = Value(known.environment.value, told)
    if call.segment.entry is not None and loaded is not None and anew:
        words = (
            f"a process that began after the compression at {call.segment.entry.place} made the calls from "
            f"{loaded.point.place} on: they begin with the message about the environment again"
        )
    choice = {
        "anew": anew,
        "media": known.unread is None or known.unread.at > at,
        "taught": head.point.place.at if head.at < at else None,
    }
    return Learned(values, head.facts.keys, (words,) if words else (), choice)
