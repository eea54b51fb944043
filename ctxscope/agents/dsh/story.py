"""A log followed record by record: what the model sees at each number, and which requests went out (dsh.md §4.1, §7).

Everything here is a function of the records up to one, so that reading in any batches tells the same.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from ctxscope.agents import Log, shared_memo
from ctxscope.agents.dsh import lines
from ctxscope.agents.dsh.ask import Ask, Delivery, Request, Stage
from ctxscope.agents.dsh.surface import Surface, replaced
from ctxscope.agents.dsh.texts import listed, mapped, string, whole
from ctxscope.model import Entry

Found = TypeVar("Found")
CARRIED_FROM = 4
"""The log format from which on requests carry the log, and speak Anthropic's Messages (dsh.md §1)."""


@dataclass(frozen=True, slots=True, eq=False)
class Told:
    """A request with what came of it."""

    request: Request
    answer: Entry | None
    turn: int
    retried: bool = False
    """Another attempt at it followed."""
    dead: bool = False
    """Its step ended without an answer."""


@dataclass(frozen=True, slots=True, eq=False)
class Event:
    """A record that rewrote or restored something, with the surface before and after it."""

    kind: str
    entry: Entry
    at: int
    """Number the log stood at with it."""
    before: Surface
    after: Surface
    cause: Entry | None = None
    """The record that says why (``compaction/summary``, ``compaction/prune``), or the header that was replaced."""


@dataclass(eq=False, repr=False)
class Story:
    """A log as far as it was read."""

    header: Entry | None = None
    """The first line."""
    at: int = -1
    """Number of the newest record."""
    before: int = -1
    """Number of the one before it."""
    run: int = 0
    turn: int = 0
    step: int = 0
    surface: Surface = field(default_factory=Surface)
    surfaces: list[tuple[int, Surface]] = field(default_factory=list)
    """Every surface with the number of the record that made it."""
    heads: list[tuple[int, Entry]] = field(default_factory=list)
    """Request headers with their numbers."""
    context: Entry | None = None
    numbered: dict[int, Entry] = field(default_factory=dict)
    """Records by number."""
    numbers: list[int] = field(default_factory=list)
    """Their numbers, rising."""
    accepted: list[tuple[int, Delivery]] = field(default_factory=list)
    """Acceptances of this session's log with their numbers."""
    told: list[Told] = field(default_factory=list)
    """Requests something came of, in the order in which it came."""
    step_ask: Ask | None = None
    compaction: Ask | None = None
    titles: list[Ask] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    void: Entry | None = None
    troubles: list[str] = field(default_factory=list)
    causes: dict[int, Entry] = field(default_factory=dict)
    """Records that announce a replacement, by the number of the event replaced first."""
    summaries: dict[str, Entry] = field(default_factory=dict)
    """Summaries by the key of the record that began their compaction."""
    given_up: list[Entry] = field(default_factory=list)
    """Compactions that failed."""
    rendered: dict[Any, Any] = field(default_factory=dict)
    """Rendered forms of single events; functions of these alone."""

    @property
    def format(self) -> int:
        """Version of the log's format; the newest known one where the log does not say."""
        found = whole(self.header.data.get("version")) if self.header else None
        return 4 if found is None else found

    @property
    def carries(self) -> bool:
        """Whether requests carry the log, as they do from format 4 on."""
        return self.format >= CARRIED_FROM

    def copied(self, entry: Entry) -> bool:
        """Whether a record was copied from the session that this one was forked from."""
        header, span = self.header.data if self.header else {}, lines.numbers(entry)
        seed = whole(header.get("seedLength")) if header.get("parentSession") is not None else None
        return seed is not None and span is not None and span[0] < seed

    @property
    def stage(self) -> Stage:
        """How much was read."""
        return Stage(len(self.surfaces), len(self.heads), len(self.accepted))

    def surface_of(self, request: Request, through: int | None = None) -> Surface:
        """What the model saw in a request; ``through``: where the log stood when it was made, if not where it says."""
        return _at(self.surfaces, request.stage.surfaces, _stood(request, through)) or Surface()

    def head_of(self, request: Request, through: int | None = None) -> Entry | None:
        """The request header that held then."""
        return _at(self.heads, request.stage.heads, _stood(request, through))

    def accepted_before(self, request: Request, through: int | None = None) -> Delivery | None:
        """The acceptance that had come last then."""
        return _at(self.accepted, request.stage.accepted, _stood(request, through))

    def between(self, after: int, through: int) -> Iterator[Entry]:
        """The records behind a number, up to another."""
        first, last = bisect_right(self.numbers, after), bisect_right(self.numbers, through)
        return (self.numbered[number] for number in self.numbers[first:last])

    def waiting(self) -> Iterator[Told]:
        """Requests nothing came of yet, as far as the log tells they are due."""
        for ask in (self.step_ask, self.compaction, *self.titles):
            if ask is not None:
                yield Told(ask.made(self.at, self.void, self.stage), None, self.turn)

    def take(self, entry: Entry) -> None:
        """Add the next record."""
        if entry.kind == "gone" or entry.source != lines.SESSION:
            return
        if entry.kind == lines.SESSION:
            self.header = self.header or entry
            return
        if entry.kind == "unknown":
            self._unknown(entry)
            return
        self._count(entry)
        if entry.kind == "request/context":
            self.context = entry
        elif entry.kind == "session/title-llm-request":
            self.titles.append(Ask("side", entry, self.at, self.run))
        elif entry.kind in _HANDLERS:
            _HANDLERS[entry.kind](self, entry)

    def _unknown(self, entry: Entry) -> None:
        """A record that may be passed over counts where it stands in the row; any other voids what comes after it."""
        span = lines.numbers(entry)
        if entry.data.get("ignorable") is not True:
            self.void = self.void or entry
        elif span is not None and span[0] == self.at + 1:
            self._count(entry)

    def _count(self, entry: Entry) -> None:
        span = lines.numbers(entry)
        self.before = self.at
        if span is None:
            return
        if span[0] > self.at + 1:
            lost = f"record {span[0]} follows record {self.at}; what lies between is lost"
            self.troubles.append(f"{entry.place}: {lost}")
        if span[0] > self.at:
            self.numbers.append(span[0])
            self.numbered[span[0]] = entry
        elif span[0] == self.at and (taken := self.numbered.get(self.at)) is not None and taken.kind == "unknown":
            self.numbered[self.at] = entry  # the number that a record to be passed over had taken
        self.at = max(self.at, span[1])

    def close(self, ask: Ask, answer: Entry | None, region: tuple[int, ...] | None = None) -> None:
        """Something came of a request: its answer, or that there will be none."""
        ask.out(self.at, self.before)
        answer = answer or ask.failed or ask.part
        request = ask.made(self.before, self.void, self.stage, region)
        self.told.append(Told(request, answer, self.turn, dead=answer is None))

    def end_step(self) -> None:
        """No answer comes to a step's request any more."""
        if self.step_ask is not None:
            self.close(self.step_ask, None)
            self.step_ask = None

    def chunk(self, entry: Entry) -> None:
        """A part of the answer to a step's request."""
        if self.step_ask is not None:
            self.step_ask.out(self.at, self.before)
            self.step_ask.part = entry

    def retried(self) -> None:
        """A request is attempted again."""
        ask = self.asking()
        if ask is not None:
            ask.again(self.at)

    def summary_of(self, request: Request) -> Entry | None:
        """The summary that came of a compaction, else of the last one before it; ``None`` where none is logged."""
        own = self.summaries.get(request.begun.key)
        before = (s for s in reversed(self.summaries.values()) if s.place.number < request.begun.place.number)
        return own or next(before, None)

    def asking(self) -> Ask | None:
        """The request a retry is about."""
        return self.compaction or self.step_ask


def story(log: Log) -> Story:
    """A log's story so far, continued from where it was left; told anew where a line was rewritten."""
    memo = shared_memo(log, "dsh.story")
    upto, rewrites = memo.get("read", (0, log.rewrites))
    found: Story = memo.get("story") or Story()
    if rewrites != log.rewrites:
        upto, found = 0, Story()
    for entry in log.entries[upto:]:
        found.take(entry)
    memo["story"], memo["read"] = found, (len(log.entries), log.rewrites)
    return found


def _stood(request: Request, through: int | None) -> int:
    return request.through if through is None else through


def _at(rows: Sequence[tuple[int, Found]], upto: int, number: int) -> Found | None:
    """The last of the first rows that a log held when it stood at a number."""
    at = bisect_right(rows, number, hi=upto, key=lambda row: row[0])
    return rows[at - 1][1] if at else None


def _data(entry: Entry) -> Mapping[str, object]:
    return mapped(entry.data.get("data"))


def _surface(told: Story, entry: Entry) -> None:
    answered = told.step_ask if entry.kind == "assistant/message" else None
    if answered is not None:
        told.close(answered, entry)
        told.step_ask = None
    old, new = told.surface, told.surface.after(entry)
    if new is None:
        told.void = told.void or entry
        told.troubles.append(f"{entry.place}: replaces events that the model does not see there")
        return
    if new is old:
        return
    told.surface = new
    told.surfaces.append((told.at, new))
    span = replaced(entry.data.get("surfaceOp"))
    if span is not None:
        told.events.append(Event("replace", entry, told.at, old, new, told.causes.get(span[0])))
    elif entry.kind == "user/message" and told.step > 1 and mapped(_data(entry).get("source")).get("kind") == "user":
        told.events.append(Event("steer", entry, told.at, old, new))


def _head(told: Story, entry: Entry) -> None:
    last = told.heads[-1][1] if told.heads else None
    told.heads.append((told.at, entry))
    if last is not None:
        told.events.append(Event("header", entry, told.at, told.surface, told.surface, last))


def _turn(told: Story, entry: Entry) -> None:
    told.end_step()
    told.turn = whole(_data(entry).get("turn")) or told.turn + 1
    told.step = 0


def _step(told: Story, entry: Entry) -> None:
    told.end_step()
    told.step += 1
    told.step_ask = Ask("main", entry, told.at, told.run)


def _reopened(told: Story, entry: Entry) -> None:
    told.end_step()
    if told.compaction is not None:
        told.close(told.compaction, None)
    told.compaction, told.titles = None, []
    told.run += 1
    told.events.append(Event("reopen", entry, told.at, told.surface, told.surface))


def _attempt(told: Story, entry: Entry) -> None:
    ask = told.asking()
    if ask is not None:
        ask.out(told.at, told.before)
        ask.failed = entry


def _retry(told: Story, entry: Entry) -> None:
    ask = told.asking()
    if ask is not None:
        ask.out(told.at, told.before)
        ask.failed = ask.failed or entry
        request = ask.made(told.before, told.void, told.stage)
        told.told.append(Told(request, ask.failed, told.turn, retried=True))
        ask.again(told.at)


def _delivery(told: Story, entry: Entry) -> None:
    data = _data(entry)
    through = whole(data.get("throughSeq"))
    owner = told.header.data.get("id") if told.header else None
    if through is None or data.get("sessionId", owner) != owner:
        return
    found = Delivery(entry, through)
    last = told.accepted[-1][1] if told.accepted else None
    told.accepted.append((told.at, found if last is None or last.through <= through else last))
    for ask in (told.step_ask, told.compaction, *told.titles):
        if ask is not None and ask.low <= through < told.at:
            ask.stated.append(found)


def _compaction(told: Story, entry: Entry) -> None:
    if told.compaction is not None:
        told.close(told.compaction, None)
    told.compaction = Ask("compaction", entry, told.at, told.run, string(_data(entry).get("compactionId")))


def _summary(told: Story, entry: Entry) -> None:
    numbers = [n for n in map(whole, listed(_data(entry).get("shadowedSeqs"))) if n is not None]
    if numbers:
        told.causes[numbers[0]] = entry
    if entry.kind == "compaction/summary" and told.compaction is not None:
        told.summaries[told.compaction.begun.key] = entry
        told.close(told.compaction, entry, tuple(numbers))
        told.compaction = None


def _compacted(told: Story, entry: Entry) -> None:
    if told.compaction is not None:
        told.close(told.compaction, entry)
        told.compaction = None
    if _data(entry).get("error") is not None:
        told.given_up.append(entry)


def _titled(told: Story, entry: Entry) -> None:
    data = _data(entry)
    if mapped(data.get("source")).get("kind") == "provider" and told.titles:
        same = [a for a in told.titles if _data(a.begun).get("messageSeqs") == data.get("messageSeqs")]
        ask = (same or told.titles)[0]
        told.titles.remove(ask)
        told.close(ask, entry)


_HANDLERS: Mapping[str, Callable[[Story, Entry], None]] = {
    **dict.fromkeys(lines.SURFACE, _surface),
    **dict.fromkeys((*lines.PACKED, "assistant/chunk"), lambda told, entry: told.chunk(entry)),
    "request/header": _head,
    "turn/start": _turn,
    "turn/end": lambda told, _: told.end_step(),
    "step/start": _step,
    "step/end": lambda told, _: told.end_step(),
    "session/end-seed": _reopened,
    "assistant/attempt": _attempt,
    "llm/retry": _retry,
    "llm/retry-started": lambda told, _: told.retried(),
    lines.DELIVERY: _delivery,
    "compaction/start": _compaction,
    "compaction/summary": _summary,
    "compaction/prune": _summary,
    "compaction/end": _compacted,
    "session/title": _titled,
}
