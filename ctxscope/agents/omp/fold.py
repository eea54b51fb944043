"""A trail rendered for one target, turn by turn, so that each call costs what it adds.

A turn is final once the next answer is there; the open one, and the cache marks of the last two messages, are rendered
on top of that for each request.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from ctxscope.agents.omp import wording
from ctxscope.agents.omp.checksum import Prefixes
from ctxscope.agents.omp.items import Item
from ctxscope.agents.omp.spelling import Lead, Wire, quoted
from ctxscope.agents.omp.store import Store
from ctxscope.agents.omp.trail import Trail
from ctxscope.agents.omp.turns import Msg, Turn, prepared
from ctxscope.agents.pi.texts import blocks, string
from ctxscope.agents.pi.transform import Target
from ctxscope.model import Piece

MARKED_MESSAGES = 2


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
    prefix: bool = False
    """Tool names are sent with Claude Code's prefix."""
    reasoning: bool = False
    """Every answer carries a reasoning field, an empty one too."""
    status: bool = True
    """Answers of other providers carry a status."""
    leads: tuple[tuple[int, Lead], ...] = ()
    """Reminders, by index of the item."""
    blobs: int = 0
    """Side files seen: an image that was missing is there now."""


@dataclass(frozen=True, slots=True)
class State:
    """Where the fold stands after an item."""

    start: int = 0
    """Index of the first item of the open turn."""
    wires: int = 0
    """Final messages so far."""


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
    pieces: list[Piece] = field(default_factory=list)
    """Of every final message, each led by its comma."""
    starts: list[int] = field(default_factory=lambda: [0])
    """Index in ``pieces`` at which each final message starts, and the end."""
    states: list[State] = field(default_factory=lambda: [State()])
    calls: dict[str, list[int]] = field(default_factory=dict)
    """By tool-call id, the items that made such a call, rising."""
    sums: Prefixes = field(default_factory=Prefixes)

    def state(self, length: int) -> State:
        """The state after ``length`` items."""
        while len(self.states) <= length:
            self.states.append(self._step(len(self.states) - 1))
        return self.states[length]

    def request(self, length: int) -> tuple[int, list[Piece]]:
        """Messages of a request made after ``length`` items: how many of ``pieces`` begin it, and what follows.

        The first piece of all is led by a comma, too.
        """
        state = self.state(length)
        tail = self._rendered(state.start, length, latest=True)
        last = self.wires[state.wires - 1].role if state.wires else ""
        tail = self._repaired(tail, last)
        if self.form.target.api == "anthropic-messages" and (tail[-1].role if tail else last) == "assistant":
            tail = [*tail, _continue()]
        kept = state.wires
        if self.form.cache:
            kept = max(0, min(kept, kept + len(tail) - MARKED_MESSAGES))
            tail = [*self.wires[kept : state.wires], *tail]
            at = max(0, len(tail) - MARKED_MESSAGES)
            tail[at:] = [w.marked(self.form.cache) for w in tail[at:]]
        return self.starts[kept], [p for wire in tail for p in _led(wire)]

    def seeded(self, other: Fold, length: int) -> Fold:
        """Take over all that another fold has of the first ``length`` items, which both share."""
        length = min(length, len(other.states) - 1)
        wires = other.states[length].wires
        self.states = other.states[: length + 1]
        self.wires, self.starts = other.wires[:wires], other.starts[: wires + 1]
        self.pieces = other.pieces[: self.starts[-1]]
        self.calls = {k: v[: bisect_left(v, length)] for k, v in other.calls.items()}
        return self

    def _step(self, at: int) -> State:
        state, items = self.states[at], self.trail.items
        item = items[at]
        begin = None
        if item.survives and not item.failed:
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
            self.wires.append(wire)
            self.pieces += _led(wire)
            self.starts.append(len(self.pieces))
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
