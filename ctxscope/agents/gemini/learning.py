"""What the log of the Gemini CLI does not hold, taken from served bodies (gemini.md §4).

System prompt, tools and parameters are those of the first call to a model that can be read. A signature is the model's
own: the reply that delivered the part it stands in tells it. Where that one was not recorded the first request that
repeats the part shows it, and it holds from then on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Literal

from ctxscope.agents import Before, Log, shared_memo
from ctxscope.agents.gemini.delivered import Delivered, Replies, delivered
from ctxscope.agents.gemini.history import History, Placed
from ctxscope.agents.gemini.parts import SYNTHETIC
from ctxscope.agents.gemini.points import call_of, kind_of
from ctxscope.agents.reading.served import Facts, facts
from ctxscope.model import Body, Learnable, Learned, Point, Reply, Value
from ctxscope.wire.raw_object import member_texts

HEAD = ("systemInstruction", "tools", "toolConfig", "safetySettings", "generationConfig", "cachedContent", "labels")
SIGNATURE = "/contents/*/parts/*/thoughtSignature"
_REASON = "system prompt, tools and parameters are not logged"
LEARNABLE = (
    *(Learnable(f"/{name}", _REASON) for name in HEAD),
    Learnable(SIGNATURE, "signatures of answers are not logged; only a history that is rewritten shows them"),
)
Provenance = Literal["learned", "echoed"]


@dataclass(frozen=True, slots=True, eq=False)
class Held:
    """A signature and the joined call that showed it first, in its reply or in its own request."""

    at: int
    point: Point
    value: bytes | None
    seen: int
    """The joined call that sent it first: before that nothing is known of it."""


@dataclass(frozen=True, slots=True, eq=False)
class HeldHead:
    """The first call of a kind and what it showed outside the conversation."""

    at: int
    point: Point
    facts: Facts


@dataclass(eq=False, slots=True, repr=False)
class Taught:
    """What a row of joined calls taught. Of a shorter row that it begins with all that was held by then."""

    calls: list[tuple[Point, str]] = field(default_factory=list)
    replies: dict[int, Reply | None] = field(default_factory=dict)
    """What each of them is known to have been answered with; of the newest nobody asked yet."""
    same_as: Sequence[tuple[Point, str]] = ()
    """The list of calls it was last asked about, which only grows, so that each call is compared once."""
    same: int = 0
    """How many of its first calls are known to be these."""
    answers: dict[tuple[str, str], list[int]] = field(default_factory=dict)
    """By lineage and message, the calls it answers: several, where one was asked again."""
    heads: dict[tuple[str, str], HeldHead] = field(default_factory=dict)
    signatures: dict[tuple[str, str, int], Held] = field(default_factory=dict)
    """By lineage, message and number of its part; ``None``: it has none."""
    read: dict[History, list[tuple[int, int]]] = field(default_factory=dict)
    """By history the calls that showed its signatures, and up to which turn."""
    state: object = field(default_factory=object)
    """Another one once something was forgotten: what was made of that does not hold any more."""

    def parting(self, before: Before, replies: Replies) -> int | None:
        """The first call before one that is another than here, or was answered otherwise; ``None`` for none."""
        upto = min(len(before), len(self.calls))
        if self.same_as is not before.calls:
            self.same_as, self.same = before.calls, 0
        for at in range(self.same, upto):
            reply = replies(at)
            if self.calls[at] != before.calls[at] or self.replies.setdefault(at, reply) is not reply:
                self.same = at
                return at
        self.same = max(self.same, upto)
        return None

    def take(self, log: Log, point: Point, digest: str, load: Callable[[], Body], replies: Replies) -> None:
        """Add the next call."""
        at = len(self.calls)
        self.calls.append((point, digest))
        if point.answer is not None:
            self.answers.setdefault((point.lineage, str(point.answer.data.get("id"))), []).append(at)
        kind = kind_of(point)
        if kind not in self.heads:
            own = facts(log, digest, load)
            if own.bulk == "contents":
                self.heads[kind] = HeldHead(at, point, own)
        call = call_of(log, point)
        if call is None:
            return
        read = self.read.setdefault(call.history, [])
        start = read[-1][1] if read else 0
        new = [p for p in call.history.placed[start : call.length] if p is not None and p.turn.fresh]
        if new:
            missing = self._learn(new, at, point, load(), replies)
            read.append((at, call.length if missing is None else missing))

    def _learn(self, new: list[Placed], at: int, point: Point, body: Body, replies: Replies) -> int | None:
        """Signatures of parts no earlier call sent; the first turn that is not known in whole, if there is one."""
        shown = _Shown(body)
        for placed in new:
            by, told = self._told(placed, point.lineage, at, replies)
            for number, signature in told.calls.items() if told is not None else ():
                self._hold(placed, number, by, signature, at)
            for number, part in enumerate(placed.sent.parts):
                raw = shown.part(placed.content, placed.first + number)
                if raw is None or ("functionCall" in raw) != part.call:
                    return placed.index
                signature = raw.get("thoughtSignature")
                signature = None if signature == b'"%s"' % SYNTHETIC.encode() else signature
                if told is None or signature is None:
                    self._hold(placed, number, at, signature, at)
                elif signature in told.all:
                    self._hold(placed, number, by, signature, at)
                elif number not in told.calls:
                    return placed.index  # no text came with it: what it came with is not known from this request
        return None

    def _told(self, placed: Placed, lineage: str, at: int, replies: Replies) -> tuple[int, Delivered | None]:
        """The call whose reply delivered an answer, and what that one says; nothing where attempts at it do not agree."""
        earlier = [by for by in self.answers.get((lineage, placed.turn.id), ()) if by < at]
        found = [(by, told) for by in earlier if (told := delivered(placed, replies(by))) is not None]
        return found[-1] if found and all(told == found[0][1] for _, told in found) else (-1, None)

    def _hold(self, placed: Placed, number: int, by: int, signature: bytes | None, seen: int) -> None:
        point = self.calls[by][0]
        self.signatures.setdefault((point.lineage, placed.turn.id, number), Held(by, point, signature, seen))

    def forget(self, start: int) -> None:
        """Take the calls from ``start`` on out again."""
        del self.calls[start:]
        self.state = object()
        self.heads = {k: h for k, h in self.heads.items() if h.at < start}
        self.same = min(self.same, start)
        self.replies = {at: reply for at, reply in self.replies.items() if at < start}
        self.answers = {k: kept for k, calls in self.answers.items() if (kept := [by for by in calls if by < start])}
        self.signatures = {k: h for k, h in self.signatures.items() if h.seen < start}
        self.read = {k: left for k, r in self.read.items() if (left := [x for x in r if x[0] < start])}


class _Shown:
    """Parts of a served body by their place, found from its end, where the new ones stand."""

    def __init__(self, body: Body) -> None:
        self._body = body
        self._segments = iter(reversed(body.segments))
        self._found: dict[str, tuple[int, int]] = {}

    def part(self, content: int, number: int) -> Mapping[str, bytes] | None:
        """Members of one part as spelled; ``None`` where there is none."""
        path = f"/contents/{content}/parts/{number}"
        while path not in self._found:
            segment = next(self._segments, None)
            if segment is None:
                return None
            self._found[segment.path] = (segment.start, segment.end)
        start, end = self._found[path]
        try:
            return member_texts(self._body.data[start:end])
        except ValueError:
            return None


def taught(log: Log, point: Point, body: Body, before: Before) -> Taught:
    """What the joined calls up to this one taught, this one included; continued from what was asked before."""
    memo, replies = shared_memo(log, "gemini.taught"), before.reply
    kept: Taught | None = memo.get("kept")
    found = kept if kept is not None else Taught()
    own, upto = (point, body.sha256), len(before)
    other = found.parting(before, replies)
    if other is None and found.calls[upto : upto + 1] not in ([], [own]):
        other = upto
    if other is not None and not upto:
        found = Taught()  # a question about one call alone must not cost what is known of them all
    elif other is not None:
        found.forget(other)
    if found is kept or upto or kept is None:
        memo["kept"] = found
    for at in range(len(found.calls), upto):
        found.replies[at] = replies(at)
        found.take(log, *before.calls[at], partial(_load, before, at), replies)
    if len(found.calls) == upto:
        found.take(log, *own, lambda: body, replies)
    return found


def _load(before: Before, at: int) -> Body:
    return before[at][1]


@dataclass(frozen=True, slots=True, eq=False)
class Signatures:
    """Signatures as they are known at one call."""

    taught: Taught
    lineage: str
    at: int

    def held(self, message: str, number: int) -> Held | None:
        """What is known of a part's signature; ``None``: nothing."""
        found = self.taught.signatures.get((self.lineage, message, number))
        return found if found is not None and found.seen <= self.at else None

    def provenance(self, held: Held) -> Provenance:
        """Whether it is from an earlier call or from this very one."""
        return "learned" if held.at < self.at else "echoed"


def learn(log: Log, point: Point, body: Body, before: Before) -> Learned:
    """Head and signatures for one call."""
    at, known = len(before), taught(log, point, body, before)
    head = known.heads.get(kind_of(point))
    if head is None or head.at > at:
        head = HeldHead(at, point, facts(log, body.sha256, lambda: body))
    provenance: Provenance = "learned" if head.at < at else "echoed"
    values = {f"/{name}": Value(head.facts.values[name], provenance) for name in HEAD if name in head.facts.values}
    choice = {
        "signatures": Signatures(known, point.lineage, at),
        "taught": head.point.place.at if head.at < at else None,
    }
    return Learned(values | dict(_echoed(log, point, known, at)), head.facts.keys, (), choice)


def _echoed(log: Log, point: Point, known: Taught, at: int) -> Iterator[tuple[str, Value]]:
    """Signatures that this very call shows first."""
    call = call_of(log, point)
    read = known.read.get(call.history, []) if call is not None else []
    own = next((i for i in range(len(read) - 1, -1, -1) if read[i][0] == at), None)
    if call is None or own is None:
        return
    start = read[own - 1][1] if own else 0
    for placed in call.history.placed[start : read[own][1]]:
        for number in range(len(placed.sent.parts) if placed is not None and placed.turn.fresh else 0):
            assert placed is not None
            held = known.signatures.get((point.lineage, placed.turn.id, number))
            if held is not None and held.value is not None and held.at == at:
                path = f"/contents/{placed.content}/parts/{placed.first + number}/thoughtSignature"
                yield path, Value(held.value, "echoed")
