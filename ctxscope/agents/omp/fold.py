"""A trail rendered for one target, turn by turn, so that each call costs what it adds.

A turn is final once the next answer is there; the open one, and the cache marks of the last two messages, are rendered
on top of that for each request.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol

from ctxscope.agents.omp import wording
from ctxscope.agents.omp.checksum import Prefixes
from ctxscope.agents.omp.items import Item
from ctxscope.agents.omp.spelling import Lead, Wire, quoted
from ctxscope.agents.omp.store import Store
from ctxscope.agents.omp.trail import Trail
from ctxscope.agents.omp.turns import Msg, Turn, blinded, prepared
from ctxscope.agents.pi.texts import blocks, string
from ctxscope.agents.pi.transform import Target
from ctxscope.model import Piece

MOST_MARKS = 4
"""Cache marks that a request may carry, those of its head included."""
EVERY = 15
"""User messages after which one keeps a mark (``ANTHROPIC_DECIMATION_INTERVAL`` of 18.2.3)."""
_TRAILING = 2
"""Messages at the end that a mark may go to."""


Vision = Literal["images", "replaced", "omitted"]


class Renderer(Protocol):
    """One API's way to write the messages of a turn."""

    def render(self, messages: list[Msg], form: Form, held: Store) -> list[Wire]:
        """The messages as they are sent, without cache marks."""


@dataclass(frozen=True, slots=True)
class Form:
    """Choices that change how messages are written."""

    target: Target
    cache: str | None = None
    """The cache mark as JSON, where the API has one."""
    marks: int = MOST_MARKS - 2
    """Cache marks left for messages."""
    prefix: bool = False
    """Tool names are sent with Claude Code's prefix."""
    reasoning: bool = False
    """Every answer carries a reasoning field, an empty one too."""
    leads: tuple[tuple[int, Lead], ...] = ()
    """Reminders, by index of the item."""
    blobs: int = 0
    """Side files seen: an image that was missing is there now."""
    developer: bool = False
    """Chat Completions have a developer's role."""
    native: bool = True
    """Items of Responses are sent as they came, not made anew."""
    vision: Vision = "images"
    """What the model is given for images: them, a notice in their places, or one of the API's behind the text."""
    nested: bool = False
    """Google: images of a tool result stand inside its response."""
    part_ids: bool = False
    """Google: calls and responses carry ids."""
    sentinel: bool = False
    """Google: calls without a signature carry a fixed one."""


@dataclass(frozen=True, slots=True)
class State:
    """Where the fold stands after an item."""

    start: int = 0
    """Index of the first item of the open turn."""
    wires: int = 0
    """Final messages so far."""


@dataclass(eq=False, slots=True, repr=False)
class Line:
    """The pieces of all final messages, each led by its comma, some of them with a cache mark that stays."""

    marked: tuple[int, ...] = ()
    """Indices of those messages."""
    pieces: list[Piece] = field(default_factory=list)
    starts: list[int] = field(default_factory=lambda: [0])
    """Index in ``pieces`` at which each message starts, and the end."""
    sums: Prefixes = field(default_factory=Prefixes)

    def grown(self, wires: list[Wire], cache: str | None) -> Line:
        """Itself, with what was added to the final messages since."""
        for at in range(len(self.starts) - 1, len(wires)):
            wire = wires[at].marked(cache) if cache and at in self.marked else wires[at]
            self.pieces += _led(wire)
            self.starts.append(len(self.pieces))
        return self


@dataclass(eq=False, slots=True, repr=False)
class Fold:
    """The rendered prefix of a trail."""

    trail: Trail
    form: Form
    renderer: Renderer
    held: Store
    cache: dict[Any, tuple[list[Wire], Turn]]
    """Rendered turns, shared between the trails of a session; the turns keep what the keys name alive."""
    wires: list[Wire] = field(default_factory=list)
    users: list[int] = field(default_factory=list)
    """Indices of the user's own among the final messages."""
    lines: dict[tuple[int, ...], Line] = field(default_factory=dict)
    states: list[State] = field(default_factory=lambda: [State()])
    calls: dict[str, list[int]] = field(default_factory=dict)
    """By tool-call id, the items that made such a call, rising."""

    def state(self, length: int) -> State:
        """The state after ``length`` items."""
        while len(self.states) <= length:
            self.states.append(self._step(len(self.states) - 1))
        return self.states[length]

    def request(self, length: int) -> tuple[Line, int, list[Piece]]:
        """Messages of a request made after ``length`` items: how many pieces of which line begin it, and what follows.

        The first piece of all is led by a comma, too.
        """
        state = self.state(length)
        tail = self._rendered(state.start, length, latest=True)
        last = self.wires[state.wires - 1].role if state.wires else ""
        tail = self._repaired(tail, last)
        kept = state.wires
        old: tuple[int, ...] = ()
        if self.form.cache:
            kept, old, tail = self._marked(state.wires, tail, self.form.cache)
        if self.form.target.api == "anthropic-messages" and (tail[-1].role if tail else last) == "assistant":
            tail = [*tail, _continue()]  # no mark: the next request does not have it
        line = self.lines.setdefault(old, Line(old)).grown(self.wires, self.form.cache)
        return line, line.starts[kept], [p for wire in tail for p in _led(wire)]

    def _marked(self, final: int, tail: list[Wire], cache: str) -> tuple[int, tuple[int, ...], list[Wire]]:
        """How many final messages stay as they are, which of them bear a mark, and the rest with its marks.

        The newest message comes first, then the newest of the user's that keep theirs, then the last but one.
        """
        count = final + len(tail)
        kept = max(0, min(final, count - _TRAILING))
        rest = [*self.wires[kept:final], *tail]
        users = [*self.users[: bisect_left(self.users, kept)], *(kept + i for i, w in enumerate(rest) if w.own)]
        trailing = [i for i in (count - 1, count - 2) if i >= 0]
        chosen = dict.fromkeys([*trailing[:1], *reversed(users[EVERY - 1 :: EVERY]), *trailing])
        fit = [i for i in chosen if (rest[i - kept] if i >= kept else self.wires[i]).markable][: self.form.marks]
        rest = [w.marked(cache) if kept + i in fit else w for i, w in enumerate(rest)]
        return kept, tuple(sorted(i for i in fit if i < kept)), rest

    def seeded(self, other: Fold, length: int) -> Fold:
        """Take over all that another fold has of the first ``length`` items, which both share."""
        length = min(length, len(other.states) - 1)
        wires = other.states[length].wires
        self.states = other.states[: length + 1]
        self.wires, self.users = other.wires[:wires], other.users[: bisect_left(other.users, wires)]
        if () in other.lines:
            plain, end = other.lines[()], min(wires, len(other.lines[()].starts) - 1)
            self.lines[()] = Line((), plain.pieces[: plain.starts[end]], plain.starts[: end + 1])
        self.calls = {k: v[: bisect_left(v, length)] for k, v in other.calls.items()}
        return self

    def _step(self, at: int) -> State:
        state, items = self.states[at], self.trail.items
        item = items[at]
        begin = None
        if item.survives and not item.absent:
            begin = at
        elif item.note and at and items[at - 1].failed:
            begin = at - 1
        if begin == at:
            for block in _calls(item):
                self.calls.setdefault(string(block.get("id")), []).append(at)
        if begin is None or begin == state.start == 0:
            return state if begin is None else State(begin, state.wires)
        last = self.wires[-1].role if self.wires else ""
        for wire in self._repaired(self._rendered(state.start, begin, latest=False), last):
            self.users += [len(self.wires)] if wire.own else []
            self.wires.append(wire)
        return State(begin, len(self.wires))

    def _rendered(self, start: int, end: int, *, latest: bool) -> list[Wire]:
        """The messages of the turn between two items."""
        items = tuple(self.trail.items[start:end])
        if not items:
            return []
        leads = tuple((at - start, lead) for at, lead in self.form.leads if start <= at < end)
        turn = Turn(items, latest, self._repeats(items[0], start), self._known(items, start), leads)
        key = (items, latest, turn.repeats, turn.known, leads)
        if key not in self.cache:
            made = prepared(turn, self.form.target)
            made = made if self.form.vision != "replaced" else [blinded(m) for m in made]
            self.cache[key] = self.renderer.render(made, self.form, self.held), turn
        return self.cache[key][0]

    def _repeats(self, first: Item, at: int) -> tuple[int, ...]:
        if first.role != "assistant":
            return ()
        return tuple(bisect_left(self.calls.get(string(b.get("id")), ()), at) for b in _calls(first))

    def _known(self, items: tuple[Item, ...], start: int) -> frozenset[str]:
        names = (string(i.message.get("toolCallId")) for i in items if i.role == "toolResult")
        return frozenset(n for n in names if n in self.calls and self.calls[n] and self.calls[n][0] < start)

    def _repaired(self, wires: list[Wire], last: str) -> list[Wire]:
        """No answer directly behind another one, where the API refuses that."""
        if self.form.target.api != "anthropic-messages" or not wires or last != "assistant":
            return wires
        return [_continue(), *wires] if wires[0].role == "assistant" else wires


def _calls(item: Item) -> list[Mapping[str, Any]]:
    return [b for b in blocks(item.message.get("content")) if b.get("type") == "toolCall"]


def _continue() -> Wire:
    text = Piece(quoted(wording.CONTINUE))
    return Wire("user", (Piece(b'{"role":"user","content":'), text, Piece(b"}")), text=text)


def _led(wire: Wire) -> list[Piece]:
    first = wire.pieces[0]
    return [replace(first, data=b"," + first.data), *wire.pieces[1:]]


def fold(trail: Trail, form: Form, renderer: Renderer, held: Store, shared: dict[Any, Any]) -> Fold:
    """The fold of a trail in one form, kept with the trail; turns rendered once a form for the whole session."""
    found: Fold | None = trail.folds.get(form)
    if found is None:
        cache = shared.setdefault(replace(form, leads=()), {})
        found = Fold(trail, form, renderer, held, cache)
        if trail.origin is not None and form in trail.origin[0].folds:
            found.seeded(trail.origin[0].folds[form], trail.origin[1])
        trail.folds[form] = found
    return found
