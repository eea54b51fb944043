"""Where the model was called, and what rewrote its context between two calls (kimi.md §4, §5)."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ctxscope.agents import Log, shared_memo
from ctxscope.agents.kimi.chapter import PAST, Chapter, Step, begins
from ctxscope.agents.kimi.events import NO_FOCUS, Compaction, Events, Focus, Told
from ctxscope.agents.kimi.rows import calls_of, function_of, parts, text_of
from ctxscope.agents.kimi.story import Story, story_of
from ctxscope.agents.reading.view import View
from ctxscope.model import Block, CallKind, Entry, Marker, Point
from ctxscope.wire.blocks import arguments

CARRIED = 2
"""User and assistant messages that a compaction leaves as they are, the last ones."""


class Call(NamedTuple):
    """What is known of a call beside the rows it was made of and its answer."""

    key: str
    kind: CallKind
    lineage: str
    turn: int
    told: Told = Told()
    left: str | None = None
    """Key of the call whose branch it left."""
    dead: bool = False
    """The agent went on without an answer."""
    untold: bool = False
    """No event tells of its answer."""
    focus: Focus = NO_FOCUS
    """Of a request for a summary."""


class Whole(NamedTuple):
    """What a log says as it stands."""

    points: Sequence[Point]
    markers: Sequence[Marker]


def requests(log: Log) -> Sequence[Point]:
    """A point per answer, in the order of the files; those of subagents behind the answer that called them."""
    return _whole(log).points


def markers(log: Log) -> Sequence[Marker]:
    """Compactions, cleared contexts, messages to the past, and inputs put into a turn under way."""
    return _whole(log).markers


def _whole(log: Log) -> Whole:
    found: Whole | None = log.memo.get("points")
    if found is None:
        log.memo["points"] = found = _told(story_of(log), shared_memo(log, "kimi.points"))
    return found


def _told(story: Story, made: dict[Any, Any]) -> Whole:
    own = Telling(story.order(), story.told(), made)
    own.tell()
    points, marks = own.points, own.marks
    callers = {agent: call for c in reversed(story.order()) for agent, call in c.callers.items()}
    for agent in story.agents():
        caller = callers.get(agent) or story.told().callers.get(agent)
        at = next((i for i, p in enumerate(points) if caller in p.ids), len(points) - 1)
        turn = points[at].turn if points else 1
        other = Telling(story.order(agent), story.told(agent), made, agent, turn)
        other.tell()
        points[at + 1 : at + 1] = other.points
        marks += other.marks
    return Whole(points, marks)


@dataclass(eq=False, repr=False)
class Telling:
    """The chapters of the session itself, or of a subagent, told one after the other."""

    chapters: Sequence[Chapter]
    events: Events
    made: dict[Hashable, Point]
    """Points by all they are made of: one of which nothing changed stays the same object."""
    agent: str = ""
    turn: int | None = None
    """Of a subagent, the turn of the session itself that it belongs to."""
    points: list[Point] = field(default_factory=list)
    marks: list[Marker] = field(default_factory=list)
    _answers: int = 0
    """Events of answers passed by."""
    _compactions: int = 0
    """Chapters that a compaction began."""
    _keys: set[str] = field(default_factory=set)

    def tell(self) -> None:
        """Fill ``points`` and ``marks``."""
        inputs, before = 0, None
        for number, chapter in enumerate(self.chapters):
            same = _shared(before, chapter)
            if before is not None:
                self._compaction(before, chapter, number, inputs)
            first = len(self.points)
            self._calls(chapter, number, same, inputs - chapter.turns[same])
            self._mark(before, chapter, same, self.points[first:])
            inputs += chapter.turns[-1] - chapter.turns[same]
            before = chapter

    def _calls(self, chapter: Chapter, number: int, same: int, inputs: int) -> None:
        """The calls of a chapter, but for those whose rows the chapter before has too."""
        steps, left = chapter.steps, None
        if number == len(self.chapters) - 1 and chapter.waits:
            steps = [*steps, Step(len(chapter.rows), len(chapter.messages), None, chapter.turns[-1])]
        kind: CallKind = "subagent" if self.agent else "main"
        lineage = f"sub:{self.agent}" if self.agent else "main"
        for row, length, answer, turn in steps:
            key = answer.key if answer else f"after:{chapter.messages[length - 1].key}"
            if row < same:
                left = key
                continue
            key = f"{key}#{number}" if key in self._keys else key
            self._keys.add(key)
            at = self.events.place_of(answer, self._answers) if answer else None
            told = Told() if at is None else self.events.told[at]
            self._answers = self._answers if at is None else at + 1
            dead, untold = answer is None and row < len(chapter.rows), answer is not None and at is None
            self._add(chapter, length, answer, Call(key, kind, lineage, inputs + turn, told, left, dead, untold))
            left = None

    def _compaction(self, before: Chapter, chapter: Chapter, number: int, inputs: int) -> None:
        """The call that asked for the summary a chapter begins with."""
        told = self.events.compactions[self._compactions : self._compactions + 1] if chapter.carried else []
        self._compactions += chapter.carried
        time, focus = told[0] if told else Compaction()
        if chapter.summary is not None and (length := _summarised(before)):
            key = f"{chapter.summary.key}#{number}"
            call = Call(key, "compaction", "compaction", inputs, Told(time=time), focus=focus)
            self._add(before, length, chapter.summary, call)

    def _add(self, chapter: Chapter, length: int, answer: Entry | None, call: Call) -> None:
        name = (chapter, length, answer, call, self.turn)
        if name not in self.made:
            blocks = _blocks(answer, skip=1 if call.kind == "compaction" else 0) if answer else None
            self.made[name] = Point(
                key=call.key,
                place=(answer or chapter.messages[length - 1]).place,
                context=View(chapter.messages, length),
                answer=answer,
                ids=frozenset({*(b.id for b in blocks or () if b.id), *([call.told.id] if call.told.id else ())}),
                turn=call.turn if self.turn is None else self.turn,
                time=call.told.time,
                kind=call.kind,
                lineage=call.lineage,
                branched_from=call.left,
                blocks=blocks,
                data={"chapter": chapter, "dead": call.dead, "untold": call.untold, "focus": call.focus},
                stored_usage=call.told.usage,
            )
        self.points.append(self.made[name])

    def _mark(self, before: Chapter | None, chapter: Chapter, same: int, points: Sequence[Point]) -> None:
        """What a chapter did to the one before it, and the inputs put into turns of its own."""
        if before is not None and chapter.rows:
            self.marks.append(_seam(before, chapter, same, points[0].key if points else None))
        for at in chapter.steered:
            point = next((p.key for p in points if len(p.context) > at), None)
            where = "an input of the user's was put into the turn under way"
            place = chapter.messages[at].place
            self.marks.append(Marker("steer", point, logged=True, where=where, place=place))


def _shared(before: Chapter | None, chapter: Chapter) -> int:
    """How many rows a chapter has from the one before it: a message to the past leaves all before it as it was."""
    if before is None:
        return 0
    pairs = zip(before.rows, chapter.rows, strict=False)
    shortest = min(len(before.rows), len(chapter.rows))
    same = next((i for i, (a, b) in enumerate(pairs) if a.key != b.key), shortest)
    return same if same == len(chapter.rows) or begins(chapter.rows[same], PAST) else 0


def _summarised(before: Chapter) -> int:
    """How many messages of a chapter its compaction read: all but the last user and assistant messages."""
    left = [i for i, m in enumerate(before.messages) if m.kind in ("user", "assistant")][-CARRIED:]
    return left[0] if len(left) == CARRIED and left[0] > 1 else 0


def _seam(before: Chapter, chapter: Chapter, same: int, point: str | None) -> Marker:
    if chapter.summary is not None:
        gone = before.messages[: _summarised(before)]
    else:
        kept = {row.raw for row in (*chapter.head, *chapter.rows[:same])}
        gone = [m for m in before.messages if m.raw not in kept]
    dropped = tuple(m.place for m in gone if m.kind != "prompt")
    place = next((row.place for row in (chapter.summary, *chapter.rows[same : same + 1]) if row), None)
    if chapter.carried:
        where = f"replaced {len(dropped)} messages by a summary" if chapter.summary else "wrote all messages anew"
        return Marker("compaction", point, True, where, place, before.tokens, chapter.left, dropped)
    if same and place is not None:
        where = f"the model sent a message back to {place}; {len(dropped)} messages were dropped"
    else:
        where = f"the context was cleared of {len(dropped)} messages"
    return Marker("rewind", point, logged=True, where=where, place=place, before_tokens=before.tokens, dropped=dropped)


def _blocks(answer: Entry, skip: int) -> tuple[Block, ...]:
    """An answer as stored; of a summary without the text the agent put before it."""
    found = []
    for part in parts(answer.data.get("content"))[skip:]:
        if part.get("type") == "think":
            envelope = part.get("encrypted")
            found.append(
                Block("thinking", text_of(part, "think"), envelope=envelope if isinstance(envelope, str) else "")
            )
        else:
            found.append(Block("text", text_of(part)) if part.get("type") == "text" else Block("other"))
    for call in calls_of(answer.data):
        function = function_of(call)
        name, called = str(function.get("name") or ""), str(call.get("id") or "")
        found.append(Block("tool_call", arguments(function.get("arguments")), called, name))
    return tuple(found)
