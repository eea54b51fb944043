"""Ordinary conversations that grow, in every form that is no change of a prompt: none of them may be called a break."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

from tests.planted import families as at
from tests.planted.changes import Family
from tests.planted.dialects import JSON, Dialect, dumps, first_words, news
from tests.planted.messages_api import HOUR
from tests.planted.others import qwen_explicit
from tests.planted.shapes import Transition
from tests.planted.tape import START, Call, Tape
from tests.planted.texts import TOOLS, system_text

CALLS = 4
"""Of a conversation; all but the first are appends."""

Form = Callable[[Tape, random.Random], None]


# --- forms: what a client or a recorder does differently from call to call ---


def _plain(tape: Tape, chance: random.Random) -> None:
    """Nothing."""


def _escapes(tape: Tape, chance: random.Random) -> None:
    """Every other body escapes all that is not ASCII, and slashes (§6)."""
    tape.dialect.accents = True
    first = chance.randrange(2)
    tape.spell = lambda n, body: dumps(body, ensure_ascii=True).replace(b"/", b"\\/") if n % 2 == first else dumps(body)


def _whitespace(tape: Tape, chance: random.Random) -> None:
    """Every body has other whitespace between its JSON tokens (§6)."""
    ways: list[JSON] = [{"separators": (", ", ": ")}, {"indent": 2, "separators": (",", ": ")}, {}]
    chance.shuffle(ways)
    tape.spell = lambda n, body: dumps(body, **ways[n % 3])


def _key_order(tape: Tape, chance: random.Random) -> None:
    """The top level and the messages' own keys are shuffled in each body (§6)."""

    def spell(n: int, body: JSON) -> bytes:
        order = random.Random(f"{seed}{n}")
        mixed = _shuffled(body, order)
        for name in ("messages", "input", "contents"):
            if name in mixed:
                mixed[name] = [_shuffled(message, order) for message in mixed[name]]
        return dumps(mixed)

    seed = chance.random()
    tape.spell = spell


def _shuffled(value: JSON, order: random.Random) -> JSON:
    keys = list(value)
    order.shuffle(keys)
    return {key: value[key] for key in keys}


def _string_or_blocks(tape: Tape, chance: random.Random) -> None:
    """A message's text is a string in one body and a block in the next (§6)."""
    kind = "input_text" if tape.dialect.list_name == "input" else "text"
    first = chance.randrange(2)

    def spell(n: int, body: JSON) -> bytes:
        changed = copy.deepcopy(body)
        for index, message in enumerate(changed[tape.dialect.list_name]):
            if message.get("role") == "user" and (n + index) % 2 == first:
                _turned(message, kind)
        return dumps(changed)

    tape.spell = spell


def _turned(message: JSON, kind: str) -> None:
    content = message["content"]
    if isinstance(content, str):
        message["content"] = [{"type": kind, "text": content}]
    elif len(content) == 1 and content[0].keys() == {"type", "text"}:
        message["content"] = content[0]["text"]


def _equal_times(tape: Tape, chance: random.Random) -> None:  # noqa: ARG001 - the face of forms
    """A recorder that knows one time only."""
    tape.stamp = lambda n, t: START  # noqa: ARG005 - the face of stamps


def _backwards(tape: Tape, chance: random.Random) -> None:
    """A clock that is set back again and again."""
    step = chance.uniform(0.2, 4.0)
    tape.stamp = lambda n, t: START - step * n  # noqa: ARG005 - the face of stamps


def _many_tools(tape: Tape, chance: random.Random) -> None:
    """More tools, in an order of its own."""
    tape.tools = tuple(chance.sample([*TOOLS, "pier_plan", "fog_horn", "buoy_light", "dock_crane"], 8))


FORMS: dict[str, Form] = {
    "plain": _plain,
    "escapes": _escapes,
    "whitespace": _whitespace,
    "key_order": _key_order,
    "string_or_blocks": _string_or_blocks,
    "equal_times": _equal_times,
    "backwards_times": _backwards,
    "many_tools": _many_tools,
}
_HOURS = partial(at.anthropic, head=HOUR, tail=HOUR)
MAIN: dict[str, Family] = {
    "anthropic": at.anthropic,
    "anthropic-sonnet-4-6": partial(at.anthropic, "claude-sonnet-4-6", stream=False),
    "gpt-5.6-responses": at.gpt56_responses,
    "gpt-5.6-chat": at.gpt56_chat,
    "gpt-5.5": at.gpt55,
    "gpt-5.4-chat": at.gpt54_chat,
    "gpt-5.4-responses": at.gpt54_responses,
    "deepseek": at.deepseek,
    "llama_cpp": at.llama_cpp,
    "vllm": at.vllm,
}
OTHERS: dict[str, Family] = {
    "gemini": at.gemini,
    "openrouter": at.openrouter,
    "kimi": at.kimi,
    "qwen": at.qwen_implicit,
    "qwen-explicit": qwen_explicit,
    "xai": at.xai,
    "ollama": at.ollama,
    "third_party_messages": at.stranger_messages,
    "third_party_chat": at.stranger_chat,
    "third_party_silent": partial(at.stranger_chat, silent=True),
}
_TEMPLATES = frozenset({"llama_cpp", "vllm"})
"""Where string against block depends on the template (§6)."""

_UNTOLD = frozenset({"openrouter", "third_party_messages", "third_party_chat", "third_party_silent"})
"""Of hosts that nobody documents, whether a model sees escapes is not known (§6)."""


def appends() -> Iterator[Transition]:
    """All conversations."""
    for name, family in MAIN.items():
        for form in FORMS:
            if form != "string_or_blocks" or name not in _TEMPLATES:
                yield _conversation(name, family, form)
        yield _interleaved(name, family)
    for name, family in OTHERS.items():
        yield _conversation(name, family, "plain")
        yield _conversation(name, family, "whitespace" if name == "gemini" else "escapes")
    yield from _gaps()
    yield from _marks()


def _conversation(name: str, family: Family, form: str) -> Transition:
    seed = f"{name} {form}"
    chance = random.Random(seed)
    tape = family()
    FORMS[form](tape, chance)
    _grow(tape, seed, lambda: chance.uniform(2.0, 100.0), chance.randrange(2))
    made = tape.done(f"{name}/append_{form}", f"§6: {(FORMS[form].__doc__ or '').strip()}")
    if form != "escapes" or name not in _UNTOLD:
        return made
    return replace(made, expect=tuple(replace(e, also=frozenset({"unknown"})) for e in made.expect))


def _grow(tape: Tape, seed: str, pause: Callable[[], float], turn: int) -> Call:
    """A conversation's calls; the first answer is a call or a text."""
    body = tape.opening(seed)
    for number in range(CALLS):
        call = tape.ask(body, after=pause(), turn=turn + number, seed=seed)
        tape.note(tape.warm(call, call.n - 1) if number else tape.cold(call))
        body = tape.dialect.grow(body, call.answer, news(turn + number, seed, tape.dialect.accents))
    return call


def _interleaved(name: str, family: Family) -> Transition:
    """A conversation and two subagents of it, in turn; each extends its own last call."""
    tape = family()
    seeds = ("main", "sub one", "sub two")
    bodies = [tape.opening("main"), *(_sub(tape, seed, place) for place, seed in enumerate(seeds[1:]))]
    last: list[Call | None] = [None, None, None]
    for number in range(3):
        for who in (0, 1, 2) if number < 2 else (2, 0):
            call = tape.ask(bodies[who], after=7.0, turn=number, seed=seeds[who])
            before = last[who]
            cold = replace(tape.cold(call), also=frozenset({"warm"}) if who else frozenset())
            tape.note(tape.warm(call, before.n) if before else cold)
            bodies[who] = tape.dialect.grow(bodies[who], call.answer, news(number, seeds[who]))
            last[who] = call
    return tape.done(f"{name}/append_interleaved", "§12: always search all earlier calls, subagents interleave")


def _sub(tape: Tape, seed: str, place: int) -> JSON:
    dialect: Dialect = tape.dialect
    tools = (f"probe_{place}", *TOOLS[place + 1 :])
    return dialect.opening(tape.model, system_text(seed=seed), tools, first_words(seed))


def _gaps() -> Iterator[Transition]:
    """Silence that is shorter than what entries live."""
    for name, family, longest in (
        ("anthropic-1h", _HOURS, 3400.0),
        ("anthropic-5m", at.anthropic, 280.0),
        ("gpt-5.6-responses", at.gpt56_responses, 1700.0),
        ("gpt-5.6-chat", at.gpt56_chat, 1700.0),
        ("deepseek", at.deepseek, 7000.0),
        ("llama_cpp", at.llama_cpp, 30_000.0),
        ("vllm", at.vllm, 30_000.0),
    ):
        for part in (0.98, 0.6):
            tape = family()
            seed = f"{name} gap {part}"
            _grow(tape, seed, partial(float, longest * part), 0)
            yield tape.done(f"{name}/append_gap_{longest * part:.0f}s", "§1 ttl, refresh: a gap shorter than the life")


def _marks() -> Iterator[Transition]:
    """Marks that move with the end, as one or two, on the tools or not; only lookups depend on them (§2.1)."""
    for number in range(6):
        tape = at.anthropic(tail={"type": "ephemeral"})
        seed = f"marks {number}"
        body = tape.opening(seed)
        for turn in range(CALLS):
            sent = copy.deepcopy(body)
            if number % 2:
                sent["tools"][-1]["cache_control"] = {"type": "ephemeral"}
            if number % 3 and turn and len(sent["messages"]) > 2:
                sent["messages"][-3]["content"][-1]["cache_control"] = {"type": "ephemeral"}
            if number > 3 and turn % 2:
                del sent["system"][-1]["cache_control"]
            call = tape.ask(sent, after=15.0, turn=turn, seed=seed)
            tape.note(tape.warm(call, turn) if turn else tape.cold(call))
            body = tape.dialect.grow(body, call.answer, news(turn, seed))
        yield tape.done(f"anthropic/append_moving_marks_{number}", "§2.1, §6: a mark that moved is benign for the hash")
