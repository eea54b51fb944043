"""What served bodies teach that the log does not hold: the envelope, cache marks, where a new process took over.

Pinned from the first captured body of the session that can be read (hermes.md §4.12) and held; folded over the joined
calls in order, so that the same calls give the same values whatever was asked before. A body that cannot be read
teaches nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ctxscope.agents import Before, Log, shared_memo
from ctxscope.agents.hermes.envelope import ENVELOPE, KEYS, PROMPTS
from ctxscope.agents.hermes.log import prompt_text
from ctxscope.agents.hermes.points import reading_of
from ctxscope.agents.hermes.prompts import system_entry, tools_of
from ctxscope.agents.hermes.rows import tool_calls_of
from ctxscope.agents.hermes.runs import Runs, loaded_before, origins_of, rows_among, runs_of, turn_of
from ctxscope.agents.hermes.served import Shown, Top, shown_by, top_of
from ctxscope.model import Body, Entry, Learned, Point, Value
from ctxscope.wire.json_text import py


@dataclass(frozen=True, slots=True, eq=False)
class _Source:
    """A call's body, its point, and how many joined calls came before it."""

    body: Body
    point: Point
    at: int


@dataclass(frozen=True, slots=True, eq=False)
class _Pin:
    """What the first body of one API settled."""

    source: _Source
    top: Top
    shown: Shown
    prompt: Entry | None
    model: _Source
    """Where ``model`` was pinned from, again after a model switch."""
    cache_key: _Source
    system: _Source | None = None
    """Where an unknown system prompt was pinned from."""


@dataclass(frozen=True, slots=True, eq=False)
class _State:
    """All that the calls so far taught."""

    pins: Mapping[str, _Pin] = field(default_factory=dict)
    guessed: Mapping[int, bool] = field(default_factory=dict)
    """Turns agent.log does not cover: whether a new process took over."""
    split: int | None = None
    """Characters of the system prompt in its first, static block."""
    split_prompt: Entry | None = None
    seen: frozenset[int] = frozenset()
    """Turns of which a call was seen."""


@dataclass
class _Kept:
    """States after each call of the longest row of calls asked about."""

    calls: Sequence[tuple[Point, str]] = ()
    """Point and hash of the body of each."""
    states: list[_State] = field(default_factory=list)
    runs: Runs | None = None


def learn_from(log: Log, point: Point, body: Body, before: Before) -> Learned:
    """Envelope and hypotheses for one call; see ``Agent.learn``."""
    if body.api is None:
        return Learned()
    state = _folded(log, point, body, before)
    pin = state.pins.get(body.api)
    if pin is None:  # it cannot be read, and no other came before: what is whole in it holds for itself
        source, top = _Source(body, point, len(before)), top_of(body)
        keys = (*top.keys, *(k for k in KEYS.get(body.api, ()) if k not in top.values))
        pin = _Pin(source, Top(keys, top.values), shown_by(log, body), system_entry(log, point), source, source)
    found = {path: (data, source) for path, data, source in _values(log, point, pin)}
    values = {p: Value(data, "learned" if s.at < len(before) else "echoed") for p, (data, s) in found.items()}
    choice = {
        "api": body.api,
        "loaded_before": loaded_before(log, point, state.guessed),
        "split": state.split,
        "mark": pin.shown.mark,
        "blocks": pin.shown.blocks,
        "system_role": pin.shown.role,
        "taught": {p: s.point.place.at for p, (_, s) in found.items() if s.at < len(before)},
        "pinned": pin.source.point.place.at if pin.source.at < len(before) else None,
    }
    return Learned(values, pin.top.keys, _hypotheses(point, state, pin), choice)


def _values(log: Log, point: Point, pin: _Pin) -> Iterator[tuple[str, bytes | None, _Source]]:
    """What stands at each learnable path, with the call that showed it."""
    for name in pin.top.keys:
        if name in ENVELOPE:
            source = {"model": pin.model, "prompt_cache_key": pin.cache_key}.get(name, pin.source)
            top = pin.top if source is pin.source else top_of(source.body)
            yield f"/{name}", top.values.get(name), source
    if tools_of(log, point) is None and "tools" in pin.top.keys:
        yield "/tools", pin.top.values.get("tools"), pin.source
    api = pin.source.body.api
    if system_entry(log, point) is None and pin.system is not None and api is not None:
        text = "".join(shown_by(log, pin.system.body).system)
        value = {"role": pin.shown.role, "content": text} if api == "openai-chat" else text
        yield PROMPTS[api], py(value).encode("utf-8", "surrogatepass"), pin.system


def _folded(log: Log, point: Point, body: Body, before: Before) -> _State:
    """The state after some calls, continued from where an earlier question left off when it asked about the same.

    Of earlier calls only those not asked about before are loaded.
    """
    memo = shared_memo(log, "hermes.learned")
    kept: _Kept = memo.setdefault("kept", _Kept())
    calls = [*before.told, (point, body.sha256)]
    n = min(len(kept.states), len(calls))
    same = kept.calls[:n] == calls[:n]
    runs = runs_of(log)
    if n and not (same and _says_as_much(kept.runs, runs, kept.states[n - 1].seen)):
        n = 0
    states = kept.states[:n]
    state = states[-1] if states else _State()
    for at in range(n, len(calls)):
        then, served = before[at] if at < len(before) else (point, body)
        state = _fold(log, state, then, _Source(served, then, at))
        states.append(state)
    if (n < len(kept.states) and n == len(calls)) or (len(calls) == 1 and kept.states):
        return state  # a question about an earlier call, or one call alone, must not cost what is known of them all
    memo["kept"] = _Kept(calls, states, runs)
    return state


def _says_as_much(kept: Runs | None, runs: Runs, seen: frozenset[int]) -> bool:
    """Whether agent.log says nothing else of the turns seen."""
    if kept is None or kept is runs:
        return kept is not None
    changed = {t for t, _ in kept.fresh.items() ^ runs.fresh.items()}
    return not changed & seen and kept.model.items() <= runs.model.items()


def _fold(log: Log, state: _State, point: Point, source: _Source) -> _State:
    body = source.body
    if body.api is None or _is_opaque(body):
        return state
    turn = turn_of(point)
    prompt = system_entry(log, point)
    pin = state.pins.get(body.api)
    asks = pin is None or (turn is not None and turn not in state.seen) or not _same_prompt(prompt, state.split_prompt)
    if asks and not shown_by(log, body).readable:
        return state
    if pin is None:
        shown = shown_by(log, body)
        pin = _Pin(source, top_of(body), shown, prompt, source, source, source if prompt is None else None)
        state = replace(state, split=shown.split, split_prompt=prompt)
    else:
        pin = _repinned(log, pin, prompt, source)
    state = replace(state, pins={**state.pins, body.api: pin})
    if turn is not None and turn not in state.seen:
        state = _at_turn(log, state, point, turn, shown_by(log, body))
        state = replace(state, seen=state.seen | {turn})
    if not _same_prompt(prompt, state.split_prompt):
        state = replace(state, split=shown_by(log, body).split, split_prompt=prompt)
    return state


def _is_opaque(body: Body) -> bool:
    """Whether a body could not be cut: it is no JSON."""
    return all(s.kind == "opaque" for s in body.segments)


def _same_prompt(one: Entry | None, other: Entry | None) -> bool:
    if one is None or other is None:
        return one is other
    return one is other or prompt_text(one) == prompt_text(other)


def _repinned(log: Log, pin: _Pin, prompt: Entry | None, source: _Source) -> _Pin:
    """The pin with what a changed system prompt changes: the model named, the hash over the instructions."""
    changed = not _same_prompt(prompt, pin.prompt)
    body, known = source.body, pin.model.body
    if (changed or body.model != known.model) and not shown_by(log, body).readable:
        return pin
    if pin.system is None and prompt is None:
        pin = replace(pin, system=source)
    if body.model != known.model and (changed or _other_system(log, body, known)):
        system = source if prompt is None else pin.system
        return replace(pin, model=source, cache_key=source, prompt=prompt, system=system)
    if changed and body.api == "openai-responses":
        return replace(pin, cache_key=source, prompt=prompt)
    return pin


def _other_system(log: Log, one: Body, other: Body) -> bool:
    return "".join(shown_by(log, one).system) != "".join(shown_by(log, other).system)


def _at_turn(log: Log, state: _State, point: Point, turn: int, shown: Shown) -> _State:
    """What the first call of a turn shows of the process that made it."""
    fresh = runs_of(log).fresh.get(turn)
    if fresh is None:
        start = _reload(log, point, turn, state, shown)
        if start is None and state.seen and (shown.split is None) != (state.split is None):
            start = turn
        if start is not None:
            state = replace(state, guessed={**state.guessed, start: True})
        fresh = start is not None
    return replace(state, split=shown.split) if fresh else state


def _reload(log: Log, point: Point, turn: int, state: _State, shown: Shown) -> int | None:
    """The turn at which a new process took over, when the forms of earlier rows show one; ``None`` when they do not.

    Only a turn of which no call was seen before can be it, and the loaded rows must all come before the live ones.
    """
    boundary = loaded_before(log, point, state.guessed)
    origins = origins_of(log)
    loaded: list[int] = []
    live: list[int] = []
    for entry in rows_among(point.context):
        origin = origins.get(entry.data["id"], entry.data["id"])
        if boundary <= origin < turn:
            for key in _form_keys(entry):
                if key in shown.forms:
                    (loaded if shown.forms[key] else live).append(origin)
    if not loaded or (live and min(live) <= max(loaded)):
        return None
    told = runs_of(log).fresh
    after = max(*loaded, *state.seen, 0)
    turns = [t.id for t in reading_of(log).turns if after < t.id <= turn and told.get(t.id) is not False]
    return turns[0] if turns and (not live or turns[0] <= min(live)) else None


def _form_keys(entry: Entry) -> Sequence[str]:
    if entry.kind == "tool":
        return (str(entry.data.get("tool_call_id")),)
    if entry.kind == "assistant" and entry.data.get("tool_calls"):
        return tuple(f"assistant:{c.get('id')}" for c in tool_calls_of(entry.data))
    return ()


def _hypotheses(point: Point, state: _State, pin: _Pin) -> tuple[str, ...]:
    turn = turn_of(point)
    rows = [row for row in state.guessed if turn is None or row <= turn]
    out = [
        f"a new process took over at row {row}: rows before it are served in the form of loaded rows" for row in rows
    ]
    if pin.shown.mark is not None:
        where = "in one block" if state.split is None else f"split after {state.split} characters"
        out.append(f"cache marks are set on this route; the system prompt is sent {where}")
    return tuple(out)
