"""What served bodies teach that the log does not hold: the envelope, cache marks, where a new process took over.

Pinned from the first captured body of the session (hermes.md §4.12) and held; folded over the joined calls in order, so
that the same calls give the same values whatever was asked before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from ctxscope.agents import Log, shared_memo
from ctxscope.agents.hermes.points import reading_of
from ctxscope.agents.hermes.prompts import system_entry, tools_of
from ctxscope.agents.hermes.rows import tool_calls_of
from ctxscope.agents.hermes.runs import loaded_before, origins_of, rows_among, runs_of, turn_of
from ctxscope.agents.hermes.served import Top, parsed, system_parts, system_role, tool_forms, top_of
from ctxscope.model import Body, Entry, Learnable, Learned, Point, Value
from ctxscope.wire.json_text import py

ENVELOPE = {
    "model": "a model switch in the middle of a session is not written to it",
    "max_tokens": "the reply cap depends on the provider's tables",
    "max_completion_tokens": "the reply cap depends on the provider's tables",
    "max_output_tokens": "the reply cap depends on the provider's tables",
    "stream": "chosen by the front end that runs the agent",
    "stream_options": "chosen by the front end that runs the agent",
    "temperature": "chosen by provider",
    "top_p": "chosen by provider",
    "tool_choice": "chosen by transport",
    "parallel_tool_calls": "chosen by transport",
    "thinking": "derived from the reasoning setting and the provider",
    "output_config": "derived from the reasoning setting and the provider",
    "reasoning": "derived from the reasoning setting and the provider",
    "reasoning_effort": "derived from the reasoning setting and the provider",
    "text": "chosen by transport",
    "include": "chosen by transport",
    "store": "chosen by transport",
    "prompt_cache_key": "a hash over instructions, tools and a scope that is not stored",
    "service_tier": "provider setting",
    "metadata": "provider setting",
    "provider": "routing preferences of the provider's profile",
    "session_id": "sent on some routes only",
    "plugins": "provider setting",
    "extra_body": "provider setting",
    "user": "provider setting",
    "vl_high_resolution_images": "provider setting",
    "enable_thinking": "provider setting",
    "chat_template_kwargs": "provider setting",
    "think": "provider setting",
    "options": "provider setting",
}
LEARNABLE = (
    *(Learnable(f"/{name}", reason) for name, reason in ENVELOPE.items()),
    Learnable("/tools", "stored only in the JSON snapshot, which is off by default"),
    Learnable("/system", "a prompt no session refers to any more is deleted (after a model switch)"),
)


@dataclass(frozen=True, slots=True, eq=False)
class _Pin:
    """What the first body of one API settled."""

    body: Body
    top: Top
    mark: Mapping[str, Any] | None
    """The cache mark, where this route sets them."""
    blocks: bool
    """Whether the system prompt is a list of blocks."""
    role: str
    """Role of the system message: GPT-5 class models get ``developer``."""
    prompt: Entry | None
    model: Body
    """The body ``model`` was pinned from, again after a model switch."""
    cache_key: Body
    system: Body | None = None
    """The body an unknown system prompt was pinned from."""


@dataclass(frozen=True, slots=True, eq=False)
class _State:
    """All that the calls so far taught."""

    pins: Mapping[str, _Pin] = field(default_factory=dict)
    guessed: Mapping[int, bool] = field(default_factory=dict)
    """Turns agent.log does not cover: whether a new process took over."""
    split: int | None = None
    """Characters of the system prompt in its first, static block."""
    split_prompt: Entry | None = None
    seen: frozenset[int | None] = frozenset()
    """Turns of which a call was seen."""


def learn_from(log: Log, point: Point, body: Body, before: Sequence[tuple[Point, Body]]) -> Learned:
    """Envelope and hypotheses for one call; see ``Agent.learn``."""
    if body.api is None:
        return Learned()
    state = _folded(log, [*before, (point, body)])
    pin = state.pins[body.api]
    values: dict[str, Value] = {}
    for name in pin.top.keys:
        if name in ENVELOPE:
            source = {"model": pin.model, "prompt_cache_key": pin.cache_key}.get(name, pin.body)
            top = pin.top if source is pin.body else top_of(source)
            values[f"/{name}"] = Value(top.values.get(name), "echoed" if source is body else "learned")
    told: Literal["learned", "echoed"] = "echoed" if pin.body is body else "learned"
    if tools_of(log, point) is None and "tools" in pin.top.keys:
        values["/tools"] = Value(pin.top.values["tools"], told)
    if system_entry(log, point) is None and pin.system is not None:
        text = "".join(system_parts(parsed(pin.system))[0])
        values["/system"] = Value(py(text).encode(), "echoed" if pin.system is body else "learned")
    choice = {
        "api": body.api,
        "loaded_before": loaded_before(log, point, state.guessed),
        "split": state.split,
        "mark": pin.mark,
        "blocks": pin.blocks,
        "system_role": pin.role,
    }
    return Learned(values, pin.top.keys, _hypotheses(log, point, state, pin), choice)


def _folded(log: Log, calls: Sequence[tuple[Point, Body]]) -> _State:
    """The state after some calls, continued from where an earlier question left off."""
    memo = shared_memo(log, "hermes.learned")
    stamp = id(reading_of(log))
    ids = [id(body) for _, body in calls]
    known: list[int] = memo.get("ids", [])
    states: list[_State] = memo.get("states", [])
    n = min(len(known), len(ids))
    if memo.get("stamp") != stamp or known[:n] != ids[:n]:
        n, states = 0, []
    state = states[n - 1] if n else _State()
    states = states[:n]
    for point, body in calls[n:]:
        state = _fold(log, state, point, body)
        states.append(state)
    if len(ids) >= len(known) or n == 0:
        memo.update(stamp=stamp, ids=ids, states=states, calls=list(calls))
    return states[len(ids) - 1]


def _fold(log: Log, state: _State, point: Point, body: Body) -> _State:
    if body.api is None:
        return state
    turn = turn_of(reading_of(log), point)
    first = turn not in state.seen
    prompt = system_entry(log, point)
    pin = state.pins.get(body.api)
    value: Mapping[str, Any] = parsed(body) if first or pin is None or prompt is not state.split_prompt else {}
    if pin is None:
        parts, mark, _ = system_parts(value)
        blocks = not isinstance(value.get("system"), str) if "system" in value else mark is not None
        pin = _Pin(
            body, top_of(body), mark, blocks, system_role(value), prompt, body, body, body if prompt is None else None
        )
        split = len(parts[0]) if len(parts) > 1 else None
        state = replace(state, pins={**state.pins, body.api: pin}, split=split, split_prompt=prompt)
    else:
        pin = _repinned(pin, prompt, body)
        state = replace(state, pins={**state.pins, body.api: pin})
    if first and turn is not None:
        state = _at_turn(log, state, point, turn, value)
    elif prompt is not state.split_prompt and value:
        parts = system_parts(value)[0]
        state = replace(state, split=len(parts[0]) if len(parts) > 1 else None, split_prompt=prompt)
    return replace(state, seen=state.seen | {turn})


def _repinned(pin: _Pin, prompt: Entry | None, body: Body) -> _Pin:
    """The pin with what a changed system prompt changes: the model named, the hash over the instructions."""
    changed = prompt is not pin.prompt
    if pin.system is None and prompt is None:
        pin = replace(pin, system=body)
    if body.model != pin.model.model and (changed or _system_text(body) != _system_text(pin.model)):
        pin = replace(pin, model=body, cache_key=body, prompt=prompt)
        if prompt is None:
            pin = replace(pin, system=body)
    elif changed and body.api == "openai-responses":
        pin = replace(pin, cache_key=body, prompt=prompt)
    return pin


def _system_text(body: Body) -> str:
    return "".join(system_parts(parsed(body))[0])


def _at_turn(log: Log, state: _State, point: Point, turn: int, value: Mapping[str, Any]) -> _State:
    """What the first call of a turn shows of the process that made it."""
    told = runs_of(log).fresh.get(turn)
    parts = system_parts(value)[0]
    split = len(parts[0]) if len(parts) > 1 else None
    fresh = told
    if told is None:
        boundary = loaded_before(log, point, state.guessed)
        fresh = _shows_reload(log, point, turn, boundary, tool_forms(value)) or (split is None) != (state.split is None)
        fresh = fresh and bool(state.seen)
        state = replace(state, guessed={**state.guessed, turn: fresh})
    prompt = system_entry(log, point)
    if fresh or prompt is not state.split_prompt:
        state = replace(state, split=split, split_prompt=prompt)
    return state


def _shows_reload(log: Log, point: Point, turn: int, boundary: int, forms: Mapping[str, bool]) -> bool:
    """Whether every row the last process lived through is now served in loaded form."""
    origins = origins_of(log)
    seen: list[bool] = []
    for entry in rows_among(point.context):
        origin = origins.get(entry.data["id"], entry.data["id"])
        if boundary <= origin < turn:
            seen.extend(forms[key] for key in _form_keys(entry) if key in forms)
    return bool(seen) and all(seen)


def _form_keys(entry: Entry) -> Sequence[str]:
    if entry.kind == "tool":
        return (str(entry.data.get("tool_call_id")),)
    if entry.kind == "assistant" and entry.data.get("tool_calls"):
        return tuple(f"assistant:{c.get('id')}" for c in tool_calls_of(entry.data))
    return ()


def _hypotheses(log: Log, point: Point, state: _State, pin: _Pin) -> tuple[str, ...]:
    out: list[str] = []
    turn = turn_of(reading_of(log), point)
    for row, fresh in state.guessed.items():
        if fresh and (turn is None or row <= turn):
            out.append(f"a new process took over at row {row}: rows before it are served in the form of loaded rows")
    if pin.mark is not None:
        where = "in one block" if state.split is None else f"split after {state.split} characters"
        out.append(f"cache marks are set on this route; the system prompt is sent {where}")
    return tuple(out)
