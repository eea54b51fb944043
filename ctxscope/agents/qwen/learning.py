"""What the log of Qwen Code does not hold, taken from served bodies (qwen.md §4).

System prompt, tools and parameters are those of the first call of a kind that can be read, the environment message that
of the first call with one. After a compression the process that made it goes on without that message; one that starts
anew begins with it again. Which it is the log does not tell. Of 0.21.2 and later each process teaches anew (``processes``).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Literal

from ctxscope.agents import Before, Log, shared_memo
from ctxscope.agents.qwen.joined import WORDS, WORDS_IN_TEXT, Unlogged, Word
from ctxscope.agents.qwen.messages import UNREAD
from ctxscope.agents.qwen.points import call_of, kind_of
from ctxscope.agents.qwen.processes import Process, Processes, last_item
from ctxscope.agents.qwen.replay import replay
from ctxscope.agents.qwen.state import Call, Segment
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
    "chat_template_kwargs",
)
MODEL, SYSTEM, ENVIRONMENT = "/model", "/messages/0", "/messages/1"
_WORDS = (
    "only reminders that a process puts before what the user says (skills, environment, tools to search for, memories, the "
    "date) and the words that ask for a summary; no log holds them"
)
LEARNABLE = (
    *(Learnable(f"/{name}", "tools and parameters are not logged") for name in PARAMS),
    *(Learnable(f"/{name}", "whether an answer is streamed is not logged") for name in ("stream", "stream_options")),
    Learnable(MODEL, "the model of a call that failed before any answer is not logged"),
    Learnable(SYSTEM, "the system prompt is not logged"),
    Learnable(ENVIRONMENT, "the message about date, system and folder that a process begins with is not logged"),
    Learnable(WORDS, _WORDS),
    Learnable(WORDS_IN_TEXT, f"the same where a content is one string: {_WORDS}"),
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
    heads: dict[Hashable, Head] = field(default_factory=dict)
    processes: Processes = field(default_factory=Processes)
    """Those of versions that write reminders."""
    shown: dict[tuple[str, bytes], int] = field(default_factory=dict)
    """The first call of such a version with a value at a path."""
    shared: Held | None = None
    """The first request for a summary that may have had the conversation's head; its last item where it had."""
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
        if call.rules.reminds:
            self._reminded(log, call, at, point, own, load)
        else:
            if kind_of(call) not in self.heads:
                self.heads[kind_of(call)] = _head(at, point, own, load())
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

    def _reminded(self, log: Log, call: Call, at: int, point: Point, own: Facts, load: Callable[[], Body]) -> None:
        """A call of a version that writes reminders."""
        process = self.processes.take(at, point, call, load, replay(log).reread)
        if self.shared is None and may_share(call):
            self.shared = Held(at, point, last_item(load()) if "tools" in own.values else b"")
        key = self.key(call, process)
        if key not in self.heads:
            head = self.heads[key] = _head(at, point, own, load())
            for name, value in (*own.values.items(), (SYSTEM, head.system)):
                self.shown.setdefault((name, value), at)

    def key(self, call: Call, process: Process) -> Hashable:
        """What decides the head: also the process, whether a summary is asked for with tools, and a compression before it.

        Behind that the program does not know how much room there is, and asks for a shorter answer.
        """
        return (*kind_of(call), process.number, self.shares(call), call.fresh)

    def shares(self, call: Call) -> bool:
        """Whether a summary is asked for with the conversation's own head: as the first that may be shows, and all are."""
        return may_share(call) and (self.shared is None or bool(self.shared.value))

    def forget(self, start: int) -> None:
        """Take the calls from ``start`` on out again."""
        self.processes.forget(start)
        self.shown = {k: at for k, at in self.shown.items() if at < start}
        self.shared = self.shared if self.shared and self.shared.at < start else None
        del self.calls[start:]
        self.heads = {k: h for k, h in self.heads.items() if h.at < start}
        self.loaded = {k: h for k, h in self.loaded.items() if h.at < start}
        self.seen = {k: at for k, at in self.seen.items() if at < start}
        self.environment = self.environment if self.environment and self.environment.at < start else None
        self.unread = self.unread if self.unread and self.unread.at < start else None


def may_share(call: Call) -> bool:
    """Whether a compression asked once and was answered: with the conversation's head, where the provider is known to cache."""
    return call.kind == "compaction" and call.rules.shares and call.tries <= 1 and not call.errors


def _head(at: int, point: Point, own: Facts, body: Body) -> Head:
    first = own.first_message(body)
    return Head(at, point, own, first if first.startswith(b'{"role":"system"') else b"")


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


def known_of(log: Log, before: Before) -> Taught | None:
    """What all joined calls taught; ``None`` where there is none."""
    if not before:
        return None
    point, body = before[-1]
    return taught(log, point, body, replace(before, upto=before.upto - 1))


def _load(before: Before, at: int) -> Body:
    return before[at][1]


def learn(log: Log, point: Point, body: Body, before: Before) -> Learned:
    """Head, and whether the process had begun anew, for one call."""
    at, known, call = len(before), taught(log, point, body, before), call_of(log, point)
    if call is None:
        return Learned()
    if call.rules.reminds:
        return _learn(log, call, point, body, at, known)
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


def _learn(log: Log, call: Call, point: Point, body: Body, at: int, known: Taught) -> Learned:
    """The same for a call of a version that writes reminders: what its process showed first."""
    process = known.processes.of(call, at)
    head = known.heads.get(known.key(call, process)) if process is not None else None
    if process is None or head is None or head.at > at:
        own = facts(log, body.sha256, lambda: body)
        head = Head(at, point, own, own.first_message(body) if own.bulk else b"")

    def value(name: str, data: bytes) -> Value:
        return Value(data, "learned" if known.shown.get((name, data), at) < at else "echoed")

    names = [name for name in PARAMS if name in head.facts.values]
    values = {f"/{name}": value(name, head.facts.values[name]) for name in names}
    if not call.model and "model" in head.facts.values:
        values[MODEL] = value("model", head.facts.values["model"])
    if head.system:
        values[SYSTEM] = value(SYSTEM, head.system)
    asked: Word | None = None
    if known.shared is not None and known.shared.at <= at and known.shared.value and known.shares(call):
        asked = (known.shared.value, "learned" if known.shared.at < at else "echoed")
    choice = {
        "anew": process is not None and _began_behind(process, call),
        "media": known.unread is None or known.unread.at > at,
        "taught": head.point.place.at if head.at < at else None,
        "shares": known.shares(call),
        "asked": asked,
        "began": process.follows if process is not None else None,
        "unlogged": known.processes.unlogged(process, call, at) if process is not None else Unlogged(),
    }
    return Learned(values, head.facts.keys, tuple(_words(process, call, head, known, at)), choice)


def _began_behind(process: Process, call: Call) -> bool:
    """Whether a process began behind the compression that a call's history begins with."""
    entry = call.segment.entry
    return entry is not None and process.point.place.number > entry.place.number


def _words(process: Process | None, call: Call, head: Head, known: Taught, at: int) -> Iterator[str]:
    """What is assumed of a process that is not the first one of the recording, as shown up to a call."""
    if process is None or not process.number:
        return
    text = (
        f"the calls from {process.point.place} on are taken for those of a process of their own: its reminders stand in its "
        "requests, those of the processes before it do not"
    )
    alike = (*kind_of(call), 0, known.shares(call), call.fresh)
    first = known.heads.get(alike, head)
    changed = [f"/{name}" for name in PARAMS if head.facts.values.get(name) != first.facts.values.get(name)]
    changed += [SYSTEM] if head.system != first.system else []
    changed += [WORDS] if known.processes.is_other(process, at) else []
    yield f"{text}; {', '.join(changed)} changed with it" if changed else text
