"""A trail rendered for one target, message by message, so that each call costs what it adds.

The fold keeps the pieces of every message that is final and a small state after each item; the end of a request (open
tool results, the moving cache mark) is rendered on top of that.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from ctxscope.agents.pi import transform
from ctxscope.agents.pi.trail import Trail
from ctxscope.agents.pi.transform import Msg, Open, Target
from ctxscope.model import Piece

Rendered = list[tuple[Piece, ...]]
"""Wire messages, each as its pieces without a comma."""


class Renderer(Protocol):
    """One API's way to write a message, or a run of tool results."""

    def render(self, group: tuple[Msg, ...], form: Form, index: int, *, mark: bool) -> Rendered:
        """The wire messages of one group, ``mark`` with the cache mark of a request's last message."""


@dataclass(frozen=True, slots=True)
class Form:
    """Choices that change how messages are written."""

    target: Target
    cache: str | None = None
    """The cache mark as JSON, where the API has one."""
    native: bool = False
    """Later system messages stay where they are."""
    images: bool = True


@dataclass(frozen=True, slots=True)
class State:
    """Where the fold stands after an item."""

    messages: int = 0
    """Final wire messages so far."""
    index: int = 0
    """Messages so far as the agent counts them, answers that gave nothing left out."""
    open: Open = field(default_factory=Open)
    results: tuple[Msg, ...] = ()
    """A run of tool results not yet closed."""
    held: tuple[Msg, ...] = ()
    """Native system messages that wait for the next answer."""
    last: tuple[Msg, ...] = ()
    """The group of the last wire message."""
    started: bool = False
    """Whether the first system message, which is the head, has passed."""


@dataclass(eq=False, slots=True, repr=False)
class Fold:
    """The rendered prefix of a trail."""

    trail: Trail
    form: Form
    renderer: Renderer
    cache: dict[Any, tuple[Rendered, tuple[Msg, ...]]]
    """Rendered groups, shared between the trails of a session; the messages keep what the keys name alive."""
    pieces: list[Piece] = field(default_factory=list)
    """Every final message, each led by its comma."""
    starts: list[int] = field(default_factory=list)
    """Index in ``pieces`` at which each final wire message starts."""
    states: list[State] = field(default_factory=lambda: [State()])

    def state(self, length: int) -> State:
        """The state after ``length`` items."""
        while len(self.states) <= length:
            self.states.append(self._step(len(self.states) - 1))
        return self.states[length]

    def request(self, length: int, first: int = 0) -> tuple[Piece, ...]:
        """Pieces of the wire messages ``first`` and on of a request made after ``length`` items."""
        state, tail = self._end(length)
        end = self.starts[state.messages] if state.messages < len(self.starts) else len(self.pieces)
        if first < state.messages:
            out = [*self.pieces[self.starts[first] : end], *_commas(tail)]
        else:
            out = _commas(tail[first - state.messages :])
        if out:
            out[0] = replace(out[0], data=out[0].data[1:])
        return tuple(out)

    def count(self, length: int) -> int:
        """Wire messages of a request made after ``length`` items."""
        state, tail = self._end(length)
        return state.messages + len(tail)

    def _end(self, length: int) -> tuple[State, Rendered]:
        """The state behind which a request's own end starts, and that end."""
        state = self.state(length)
        results = (*state.results, *transform.fill(state.open)[0])
        tail: Rendered = []
        if results:
            tail = self.renderer.render(results, self.form, state.index, mark=not state.held)
        elif not state.held and self.form.cache and state.last and state.last[0].role in {"user", "toolResult"}:
            tail = self.renderer.render(state.last, self.form, state.index, mark=True)
            state = replace(state, messages=state.messages - len(tail))
        for i, msg in enumerate(state.held):
            tail += self.renderer.render((msg,), self.form, state.index, mark=i == len(state.held) - 1)
        return state, tail

    def _step(self, at: int) -> State:
        state = self.states[at]
        new, opened = transform.step(self.trail.items[at], state.open, self.form.target)
        state = replace(state, open=opened)
        for msg in new:
            state = self._take(msg, state)
        return state

    def _take(self, msg: Msg, state: State) -> State:
        if msg.role == "system":
            if not self.form.native:
                return state
            return replace(state, held=(*state.held, msg)) if state.started else replace(state, started=True)
        if msg.role == "toolResult":
            return replace(state, results=(*state.results, msg))
        state = self._close(state)
        if msg.role == "assistant":
            for held in state.held:
                state = self._emit((held,), state)
            state = replace(state, held=())
        return self._emit((msg,), state)

    def _close(self, state: State) -> State:
        return replace(self._emit(state.results, state), results=()) if state.results else state

    def _emit(self, group: tuple[Msg, ...], state: State) -> State:
        key = (tuple(m.key for m in group), state.index if self.form.target.api == "openai-responses" else 0)
        if key not in self.cache:
            self.cache[key] = self.renderer.render(group, self.form, state.index, mark=False), group
        rendered = self.cache[key][0]
        for pieces in rendered:
            self.starts.append(len(self.pieces))
            self.pieces += _commas([pieces])
        silent = group[0].role == "assistant" and not rendered
        counted = 0 if silent or group[0].role == "system" else len(group)
        return replace(
            state,
            messages=len(self.starts),
            index=state.index + counted,
            last=group if rendered else state.last,
        )


def _commas(messages: Rendered) -> list[Piece]:
    return [replace(p, data=b"," + p.data) if i == 0 else p for m in messages for i, p in enumerate(m)]


def fold(trail: Trail, form: Form, renderer: Renderer, shared: dict[Any, Any]) -> Fold:
    """The fold of a trail in one form, kept with the trail; groups rendered once a form for the whole session."""
    found: Fold | None = trail.folds.get(form)
    if found is None:
        trail.folds[form] = found = Fold(trail, form, renderer, shared.setdefault(form, {}))
    return found


def mark_of(choice: Mapping[str, Any]) -> str | None:
    """The cache mark a retention stands for: ``short``, ``long`` or ``none`` (pi.md §4.5)."""
    retention = choice.get("cache", "short")
    if retention == "none":
        return None
    return '{"type":"ephemeral","ttl":"1h"}' if retention == "long" else '{"type":"ephemeral"}'
