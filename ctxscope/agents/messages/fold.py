"""A team's log, entry by entry, into points: where a model must have been called, and with what.

A conversation implies a call for each answer in it, whose request was everything before; a logged request is one itself,
its answer kept beside it or found in the next request. Folding one by one or at once gives the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any

from ctxscope.agents import Log, shared_memo
from ctxscope.agents.messages import rewrites
from ctxscope.agents.messages.grouping import Grouper
from ctxscope.agents.messages.replies import NOT_KEPT, Answer, answer, of_span, said
from ctxscope.agents.messages.shapes import about, common_form
from ctxscope.agents.messages.state import State, time_of
from ctxscope.agents.messages.trail import Message, Prefix, Trail
from ctxscope.model import CallKind, Entry, Marker, Place, Point, SessionRef
from ctxscope.wire import json_text
from ctxscope.wire.blocks import mapped, string

SYNTHETIC = "m"
"""Marks the key of a message that is part of a bigger entry: ``file#m3``."""

NO_MESSAGE = ("unknown", "span", "gone")
"""Kinds of entries whose data is a record's own, whatever its members are called."""


@dataclass(frozen=True, slots=True)
class Request:
    """A request that was or will be made of the first messages of a trail."""

    trail: Trail
    length: int
    entry: Entry
    """What logged it."""
    state: State | None = None


_Stand = tuple[Trail, int, Request | None, int | None, Mapping[str, bytes]]
"""Where the calls of one agent stand: trail, length, what waits and its number, the members of its last request."""


@dataclass(eq=False)
class Fold:
    """What the entries so far tell."""

    ref: SessionRef
    grouper: Grouper
    upto: int = 0
    trail: Trail = field(default_factory=Trail)
    length: int = 0
    """Messages of the newest state; the trail may go on beyond it."""
    points: list[Point] = field(default_factory=list)
    markers: list[Marker] = field(default_factory=list)
    waiting: Request | None = None
    """A request whose answer is not known yet."""
    waits_at: int | None = None
    """Number of its point, where it is surely made and has one."""
    known: set[str] = field(default_factory=set)
    """Identities of the answers seen."""
    units: dict[str, Any] = field(default_factory=dict)
    """By entry key, what it said last."""
    top: Mapping[str, bytes] = field(default_factory=dict)
    asides: dict[str, _Stand] = field(default_factory=dict)
    """Where each lineage but the newest stands: of spans, several agents' calls come in turn."""
    agent: str = ""
    main_agent: str | None = None
    turn: int = 0
    counted: tuple[Trail, int] | None = None
    """Trail and length of the request that the turn was counted with."""
    single: bool = False
    """The log has a message an entry."""

    def take(self, entry: Entry) -> None:
        """Fold the next version of an entry in."""
        if self.grouper.name(entry) != self.ref.id:
            return
        if entry.kind == "request":
            state = entry.data["state"]
            if self.units.get(entry.key) != state:
                self.units[entry.key] = state
                self._request(entry, state)
        elif entry.kind == "gone" and entry.key in self.units:
            self.units.pop(entry.key)
            self._rewritten()
        elif entry.kind not in NO_MESSAGE and "message" in entry.data:
            self._message(entry)

    # --- a message an entry -------------------------------------------------------------------------------------------

    def _message(self, entry: Entry) -> None:
        self.single = True
        before = self.units.get(entry.key)
        message = Message(entry.data["message"], entry.place, entry)
        self.units[entry.key] = message
        if before is not None:
            if before.text != message.text:
                self._rewritten()
                self._restored(message)
            return
        self.trail.add(message)
        self.length += 1
        if message.about.sort == "output":
            self._answered_by(self.length - 1, message)

    def _rewritten(self) -> None:
        """Lines changed or left: what comes after them goes on from what is there now."""
        self.trail = Trail()
        for message in self.units.values():
            if isinstance(message, Message):
                self.trail.add(message)
        self.length = len(self.trail.messages)

    def _restored(self, message: Message) -> None:
        """An answer in another version: its call stays the one it was."""
        for at, point in enumerate(self.points):
            if point.key == message.entry.key:
                told = said((message.text,))
                self.points[at] = replace(point, answer=message.entry, blocks=told.blocks, ids=told.ids)

    # --- a request an entry -------------------------------------------------------------------------------------------

    def _request(self, entry: Entry, state: State) -> None:
        self._turn_to(string((state.span or {}).get("gen_ai.agent.name")))
        common = self._common(state)
        before = (self.trail, self.length)
        if common < len(self.trail.messages) and common < len(state.messages):
            self.trail = self.trail.branch(common)
        for at in range(len(self.trail.messages), len(state.messages)):
            self.trail.add(self._part(entry, state, at))
        self.length = len(state.messages)
        first_new = len(self.points)
        self._answers(state, common)
        request = Request(self.trail, self.length, entry, state)
        if state.made:
            self._made(request)
        else:
            self.waiting, self.waits_at = (request if self._is_due(request) else None), None
        news = rewrites.found(before, (self.trail, self.length), self.top, state, entry)
        key = self.points[first_new].key if first_new < len(self.points) else None
        self.markers += [replace(m, point=key or self._waiting_key()) for m in news]
        self.top = state.top or self.top

    def _turn_to(self, agent: str) -> None:
        """Go on where an agent's calls stand."""
        if agent != self.agent:
            self.asides[self.agent] = (self.trail, self.length, self.waiting, self.waits_at, self.top)
            self.agent = agent
            new: _Stand = (Trail(), 0, None, None, {})
            self.trail, self.length, self.waiting, self.waits_at, self.top = self.asides.pop(agent, new)

    def _common(self, state: State) -> int:
        """How many first messages are those of the trail."""
        for at, (mine, text) in enumerate(zip(self.trail.messages, state.messages, strict=False)):
            if mine.text is not text and mine.text != text:
                return at
        return min(len(self.trail.messages), len(state.messages))

    def _part(self, entry: Entry, state: State, at: int) -> Message:
        text, key = state.messages[at], f"{entry.key}#{SYNTHETIC}{at + 1}"
        place = Place(entry.place.log, f"message {at + 1}") if entry.data.get("whole") else entry.place
        role = about(text).role or "item"
        return Message(text, place, Entry(role, place, key, {"message": text}, None, entry.seq, entry.source, text))

    def _answers(self, state: State, common: int) -> None:
        """New answers among the messages from ``common`` on: those behind the last one that is known."""
        outputs = [i for i in range(common, len(state.messages)) if about(state.messages[i]).sort == "output"]
        after = max((i for i in outputs if about(state.messages[i]).identity in self.known), default=-1)
        for at in outputs:
            if at > after:
                self._answered_by(at, self.trail.messages[at])
            self.known.add(about(state.messages[at]).identity)

    def _answered_by(self, at: int, message: Message) -> None:
        """Message ``at`` of the trail is an answer: of the request that waits, else of one made of all before it."""
        if at and self._goes_on(at, message):
            return
        told = said((message.text,))
        waiting, self.waiting = self.waiting, None
        if waiting is not None and self.waits_at is not None:
            point = self.points[self.waits_at]
            if point.blocks is None:
                ids = point.ids | told.ids
                data = {**point.data, "run": (message.text,)}
                self.points[self.waits_at] = replace(point, blocks=told.blocks, ids=ids, stop=told.stop, data=data)
            return
        request = waiting or Request(self.trail, at, message.entry)
        if any(m.about.sort != "system" for m in islice(request.trail.messages, request.length)):
            self.points.append(self._point(request, message.entry, told))

    def _goes_on(self, at: int, message: Message) -> bool:
        """Whether an output item belongs to the answer before it: Responses write one answer as several items."""
        before = self.trail.messages[at - 1]
        items = common_form((before.text, message.text)) == "responses"
        if not (items and before.about.sort == "output" and self.points):
            return False
        last = self.points[-1]
        if last.data["run"][-1:] != (before.text,):
            return False
        run = (*last.data["run"], message.text)
        told = said(run)
        self.points[-1] = replace(last, blocks=told.blocks, ids=last.ids | told.ids, data={**last.data, "run": run})
        return True

    def _made(self, request: Request) -> None:
        """A request of its own: answered by what is kept beside it, or by what a later one shows."""
        state = request.state
        assert state is not None
        told = of_span(state.response, state.span) if state.span is not None else NOT_KEPT
        if state.span is None and state.response is not None:
            told = answer(state.response)
        if told.blocks is not None:
            self.known.add(" ".join(sorted(b.id for b in told.blocks if b.kind == "tool_call" and b.id)) or _text(told))
        self.waiting, self.waits_at = (request if told.blocks is None else None), len(self.points)
        self.points.append(self._point(request, request.entry, told))

    def _point(self, request: Request, entry: Entry, told: Answer) -> Point:
        state = request.state
        kind, lineage = self._lineage(state)
        time = entry.time if entry.time is not None else time_of(mapped(_loaded(entry.raw)))
        return Point(
            key=entry.key,
            place=entry.place,
            context=Prefix(request.trail, request.length),
            answer=entry,
            ids=told.ids,
            turn=self._turn(request),
            order=(float(len(self.points)), 0),
            time=time,
            kind=kind,
            lineage=lineage,
            blocks=told.blocks,
            stop=told.stop,
            data=self._notes(request, told, entry),
            stored_usage=told.usage,
        )

    def _notes(self, request: Request, told: Answer, entry: Entry) -> dict[str, Any]:
        state = request.state
        top = state.top if state is not None and (state.made or state.top) else self.top
        return {
            "trail": request.trail,
            "length": request.length,
            "top": top,
            "span": state.span if state is not None else None,
            "place": request.entry.place,
            "error": state.error if state is not None else None,
            "model": told.model,
            "run": (entry.data["message"],) if "message" in entry.data and told is not NOT_KEPT else (),
        }

    def _lineage(self, state: State | None) -> tuple[CallKind, str]:
        """Of spans, the agent that called first is the main one; others are called by it."""
        named = string((state.span or {}).get("gen_ai.agent.name")) if state is not None else ""
        if not named:
            return "main", "main"
        self.main_agent = self.main_agent or named
        return ("main", "main") if named == self.main_agent else ("subagent", f"sub:{named}")

    def _turn(self, request: Request) -> int:
        """The turn grows with each request that ends in an input of the user; one sent again is the same turn."""
        made_of = (request.trail, request.length)  # trails are told apart by identity
        if made_of != self.counted and _ends_in_input(request):
            self.turn += 1
        self.counted = made_of
        return max(self.turn, 1)

    # --- what waits ---------------------------------------------------------------------------------------------------

    def _is_due(self, request: Request) -> bool:
        """Whether a request is due after the last message: an input, or the results of all calls."""
        asked: set[str] = set()
        answered: set[str] = set()
        for at in range(request.length - 1, -1, -1):
            message = request.trail.messages[at]
            sort = message.about.sort
            if sort == "output":
                asked |= message.about.calls
            elif asked:
                break
            elif sort == "input":
                return True
            else:
                answered |= message.about.answers
            if sort == "output" and message.about.form != "responses":
                break
        last = request.trail.messages[request.length - 1].about.sort if request.length else "system"
        return last == "result" and asked <= answered

    def _waiting_key(self) -> str | None:
        if self.waiting is None or self.waits_at is not None:
            return None
        return f"after:{self.waiting.trail.messages[self.waiting.length - 1].entry.key}"

    def open_point(self) -> Point | None:
        """The point of the request that is out or due, while no answer is logged."""
        if self.single:
            request = Request(self.trail, self.length, self.trail.messages[-1].entry) if self.trail.messages else None
        else:
            request = self.waiting if self.waits_at is None else None
        if request is None or not self._is_due(request):
            return None
        last = request.trail.messages[request.length - 1].entry
        turn = self.turn + (1 if _ends_in_input(request) else 0)
        return Point(
            key=f"after:{last.key}",
            place=last.place,
            context=Prefix(request.trail, request.length),
            answer=None,
            turn=max(turn, 1),
            order=(float(len(self.points)), 1),
            time=last.time if last.time is not None else request.entry.time,
            data=self._notes(request, NOT_KEPT, last),
        )


def fold(log: Log) -> Fold:
    """The fold of a log, brought up to its newest entry."""
    memo = shared_memo(log, "messages")
    found: Fold | None = memo.get("fold")
    if found is None:
        memo["fold"] = found = Fold(log.ref, Grouper(Path(log.ref.paths[0]).stem))
    for entry in log.versions[found.upto :]:
        found.take(entry)
    found.upto = len(log.versions)
    return found


def points(log: Log) -> Sequence[Point]:
    """All points in order; the last may wait for its answer."""
    known: Sequence[Point] | None = log.memo.get("points")
    if known is None:
        grown = fold(log)
        memo = shared_memo(log, "messages")
        waiting, kept = grown.open_point(), memo.get("open")
        if waiting is not None and kept is not None and _same(waiting, kept):
            waiting = kept
        memo["open"] = waiting
        known = log.memo["points"] = (*grown.points, *((waiting,) if waiting else ()))
    return known


def _same(one: Point, other: Point) -> bool:
    return (one.key, one.turn, one.data["trail"], one.data["length"]) == (
        other.key,
        other.turn,
        other.data["trail"],
        other.data["length"],
    )


def _ends_in_input(request: Request) -> bool:
    for at in range(request.length - 1, -1, -1):
        sort = request.trail.messages[at].about.sort
        if sort in ("output", "input"):
            return sort == "input"
    return False


def _text(told: Answer) -> str:
    return "\n".join(b.text for b in told.blocks or () if b.kind in ("text", "tool_call"))


def _loaded(raw: bytes) -> Any:
    try:
        return json_text.loads_leniently(raw) if raw else None
    except ValueError:
        return None
