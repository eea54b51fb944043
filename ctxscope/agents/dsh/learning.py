"""What a log does not hold, taken from served bodies: the packages loaded, a constant text, a few places (dsh.md §8)."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

from ctxscope.agents import Before, Log, shared_memo
from ctxscope.agents.dsh import delivery
from ctxscope.agents.dsh import effort as efforts
from ctxscope.agents.dsh.ask import Request
from ctxscope.agents.dsh.folds import count_of, messages_of
from ctxscope.agents.dsh.points import request_of
from ctxscope.agents.dsh.story import Story, story
from ctxscope.agents.dsh.texts import COMPACTOR, TITLER
from ctxscope.model import Body, CallKind, Learnable, Learned, Point, Segment, Value, quoted
from ctxscope.wire.blocks import params

PACKAGES, CAP = "/dsh_plugin_packages", "/max_tokens"
INSTRUCTION, INSTRUCTION_IN_CHAT = "/messages/*/content/*/text", "/messages/*/content"
"""Under which the instruction is kept; where it stands depends on what comes before it."""
LEARNABLE = (
    Learnable(PACKAGES, "names and versions of the packages a process loaded are not logged"),
    Learnable(
        INSTRUCTION,
        f"only the instruction that closes a compaction's request, a constant of the version («{COMPACTOR} …»)",
    ),
    Learnable(INSTRUCTION_IN_CHAT, "the same where Chat Completions carry it"),
    Learnable(CAP, "only that of a compaction while none of the session has a summary, which tells it"),
    *(
        Learnable(path, "only of a compaction while no header of the log tells what the adapter asks for by itself")
        for path in (efforts.THINKING, efforts.IN_CHAT, efforts.IN_MESSAGES)
    ),
    Learnable(
        delivery.THROUGH,
        "where the log stood when a request was made, of those it may have stood at, unless an acceptance is logged",
    ),
    Learnable(delivery.AFTER, "what the server of a forked or continued session has, until an acceptance is logged"),
)


@dataclass(frozen=True, slots=True, eq=False)
class Held:
    """A value and the call that showed it first."""

    at: int
    """Place of the call among the joined ones."""
    point: Point
    value: Any


@dataclass(frozen=True, slots=True)
class Process:
    """What the first body of a process shows."""

    packages: bytes | None
    carries: bool
    """Whether the log is sent along."""
    session: tuple[str, ...]
    """Keys of the session header sent with it."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What the first compaction of a process shows."""

    instruction: bytes
    cap: bytes | None
    effort: str | None


@dataclass(eq=False, slots=True)
class Taught:
    """What a row of calls taught. Of a shorter row that it begins with all that was held by then."""

    calls: list[tuple[Point, str]] = field(default_factory=list)
    processes: dict[int, Held] = field(default_factory=dict)
    """``Process`` by number."""
    instructions: dict[int, Held] = field(default_factory=dict)
    """Instruction, output cap and effort of the first compaction of each process."""
    silences: dict[int, Held] = field(default_factory=dict)
    """Whether the first request of each process that is made without thinking says so."""

    def take(self, told: Story, point: Point, digest: str, load: Callable[[], Body]) -> None:
        """Add the next call; its body is looked at only where it can teach something."""
        at = len(self.calls)
        self.calls.append((point, digest))
        request = request_of(point)
        if request.run not in self.processes:
            shown = _process(load())
            if shown is not None:
                self.processes[request.run] = Held(at, point, shown)
        if request.kind == "compaction" and request.run not in self.instructions:
            body = load()
            found = _instruction(body)
            if found is not None:
                self.instructions[request.run] = Held(
                    at, point, Asked(found, delivery.value_of(body, CAP), efforts.shown(body))
                )
        if request.run not in self.silences and efforts.of(told, request).word == efforts.OFF:
            self.silences[request.run] = Held(at, point, delivery.segment(load(), efforts.THINKING) is not None)

    def forget(self, start: int) -> None:
        """Take the calls from ``start`` on out again."""
        del self.calls[start:]
        self.processes = {run: held for run, held in self.processes.items() if held.at < start}
        self.instructions = {run: held for run, held in self.instructions.items() if held.at < start}
        self.silences = {run: held for run, held in self.silences.items() if held.at < start}


def taught(log: Log, point: Point, body: Body, before: Before) -> Taught:
    """What the joined calls up to this one taught, this one included; continued from what was asked before."""
    calls = [*before.told, (point, body.sha256)]
    memo = shared_memo(log, "dsh.taught")
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
        found.take(story(log), *calls[at], load)
    return found


def _load(before: Before, at: int) -> Body:
    return before[at][1]


def learn(log: Log, point: Point, body: Body, before: Before) -> Learned:
    """Values and forms for one call: what the first of its process that can be read showed, holds."""
    lesson = Lesson(story(log), request_of(point), body, len(before), taught(log, point, body, before))
    lesson.process()
    if lesson.choice.get("carries", True):
        lesson.places()
    if lesson.request.kind == "compaction":
        lesson.compaction()
    return Learned(lesson.values, (), tuple(lesson.words), {**lesson.choice, "api": body.api, "taught": lesson.told_by})


@dataclass(slots=True, eq=False)
class Lesson:
    """What holds for one call."""

    told: Story
    request: Request
    body: Body
    at: int
    known: Taught
    values: dict[str, Value] = field(default_factory=dict)
    words: list[str] = field(default_factory=list)
    choice: dict[str, Any] = field(default_factory=dict)
    told_by: dict[str, str] = field(default_factory=dict)
    """By path, the place of the earlier call that a value was learned from."""

    def process(self) -> None:
        """The packages, and what of the log is sent along: constant while a process runs."""
        held = self.known.processes.get(self.request.run)
        if held is None or held.at > self.at:
            return
        shown: Process = held.value
        first = min(self.known.processes.values(), key=lambda h: h.at)
        if shown.packages == first.value.packages:
            held = first
        else:
            self.words.append("the process that went on with the session had other plugin packages loaded")
        if shown.packages is not None:
            self._hold(PACKAGES, held, shown.packages)
        if not shown.carries and not self.request.stated:
            self.choice["carries"] = False
            if self.told.carries:
                self.words.append("the process does not send its log along")
        silence = self.known.silences.get(self.request.run)
        if silence is not None and silence.at <= self.at and not silence.value:
            self.choice["says_off"] = False
            self.words.append("the process asks for no thinking by saying nothing of it")
        usual = delivery.usual_keys(self.told, self.request.run)
        own = shown.carries and not self._is_lent()
        if own and shown.session != usual and shown.session in delivery.known_keys(self.told):
            self.choice["session"] = shown.session
            names = ", ".join(map(quoted, shown.session))
            self.words.append(f"the process sends {names} of the session's header")

    def _is_lent(self) -> bool:
        """Whether the body is that of the call before, given for a request that was not made yet: none repeats another."""
        return self.at > 0 and self.known.calls[self.at - 1][1] == self.body.sha256

    def places(self) -> None:
        """Where the log stood, of the places it may have stood at, where no acceptance says."""
        served = delivery.stated(self.body)
        if served is None or served.through == self.request.through or not self.request.may_be(served.through):
            through = self.request.through
        else:
            through = served.through
            if not self.request.stated:
                self.values[delivery.THROUGH] = Value(str(through).encode(), "echoed")
        self.choice["through"] = through
        known = self.told.accepted_before(self.request, through)
        own = self.told.header is not None and bool(self.told.header.data.get("isSeeded"))
        if served is not None and known is None and own and -1 <= served.after < through and served.after != -1:
            self.values[delivery.AFTER] = Value(str(served.after).encode(), "echoed")
            self.choice["after"] = served.after

    def compaction(self) -> None:
        """The instruction; and how far a compaction went of which no summary says it."""
        held = self.known.instructions.get(self.request.run)
        if held is not None and held.at <= self.at:
            first = min(self.known.instructions.values(), key=lambda h: h.at)
            if first.value.instruction != held.value.instruction:
                self.words.append("the process that went on with the session asks for a compaction in other words")
            held = first if first.value == held.value else held
            asked: Asked = held.value
            self._hold(INSTRUCTION, held, asked.instruction)
            if asked.cap is not None and self.told.summary_of(self.request) is None:
                self._hold(CAP, held, asked.cap)
            self._effort(held, asked.effort)
        if self.request.region is None:
            self.choice["region"] = self._region()
            self.words.append(
                f"a compaction without a summary took the first {self.choice['region']} events of the context"
            )

    def _effort(self, held: Held, shown: str | None) -> None:
        """How much a compaction thinks, where a process shows another effort than the one by rule."""
        rule = efforts.of(self.told, self.request)
        first = efforts.of(self.told, request_of(held.point))
        if shown is None or shown == first.word:
            return
        if shown == efforts.of_conversation(self.told, request_of(held.point)).word:
            self.choice["effort"] = efforts.of_conversation(self.told, self.request)
            self.words.append("the process asks for a compaction with the effort of the conversation")
        elif not rule.told and not first.told:
            self._hold(efforts.THINKING, held, shown.encode())
            self.choice["effort"] = efforts.Effort(shown, told=False)
            self.words.append(f"the adapter asks for the effort {quoted(shown)} by itself")

    def _region(self) -> int:
        """How many events of the surface the body carries before the instruction, by the blocks there are."""
        surface = self.told.surface_of(self.request, self.choice.get("through"))
        blocks = sum(s.kind == "message" for s in self.body.segments) - 1
        fold = messages_of(surface, self.told)
        counts = [count_of(fold, n) for n in range(surface.length + 1)]
        return min(bisect_left(counts, blocks), surface.length)

    def _hold(self, path: str, held: Held, value: bytes) -> None:
        provenance: Literal["learned", "echoed"] = "learned" if held.at < self.at else "echoed"
        self.values[path] = Value(value, provenance)
        if held.at < self.at:
            self.told_by[path] = held.point.place.at


def classify(body: Body) -> CallKind | None:
    """By fixed texts: a compaction's instruction at the end, a title's at the start; ``main`` where there are tools."""
    last = _last(body)
    text = body.data[last.start : last.end] if last else b""
    if COMPACTOR.encode() in text[:_LEAD]:
        return "compaction"
    if any(s.kind == "tool" for s in reversed(body.segments)):
        return "main"
    return "side" if TITLER.encode() in text[:_LEAD] else None


_LEAD = 120
"""Bytes of a block within which its text begins."""


def _last(body: Body) -> Segment | None:
    return next((s for s in reversed(body.segments) if s.kind == "message"), None)


def _instruction(body: Body) -> bytes | None:
    """The instruction of a compaction's request as a JSON string; ``None`` where the body ends otherwise."""
    last = _last(body)
    if last is None:
        return None
    text = body.data[last.start : last.end]
    start = text.find(b'"%s' % COMPACTOR.encode(), 0, _LEAD)
    end = text.rfind(b'"')
    return text[start : end + 1] if 0 <= start < end else None


def _process(body: Body) -> Process | None:
    """What a body shows of the process that sent it; ``None`` for one that cannot be read."""
    if not params(body):
        return None
    served = delivery.stated(body)
    return Process(
        delivery.value_of(body, PACKAGES), delivery.segment(body) is not None, served.session if served else ()
    )


def learned_by(learned: Learned) -> Mapping[str, str]:
    """By path, the place of the earlier call a value was learned from."""
    found: Mapping[str, str] = learned.choice.get("taught", {})
    return found
