"""DeepSeek: units on disk that a prompt must hold whole (reference §4, §8, §12)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tests.planted.changes import changed, tool_added, volatile
from tests.planted.changes_params import Setting, settings
from tests.planted.dialects import first_words
from tests.planted.families import deepseek
from tests.planted.shapes import ANY, LIKELY, SURE, UNSURE, Transition
from tests.planted.texts import TOOLS, prose, system_text

PARAMS: tuple[Setting, ...] = (
    Setting(
        "thinking",
        "param_changed:thinking",
        {"thinking": {"type": "enabled"}},
        {"thinking": {"type": "disabled"}},
        "§4: toggling thinking is prefix-visible [I]",
        confidence=ANY,
        also=frozenset({"miss"}),
    ),
    Setting(
        "benign",
        None,
        {"temperature": 1.0},
        {"temperature": 0.1, "max_tokens": 700, "top_p": 0.8},
        "§6 and §3.1: sampling is no part of a prompt",
    ),
)


def transitions() -> Iterator[Transition]:
    yield from changed("deepseek", deepseek, unsure=frozenset({"tool_key_order"}))
    yield from volatile("deepseek", deepseek, "clock", "uuid", "git_status")
    yield from settings("deepseek", deepseek, PARAMS)
    yield _first()
    yield from _gaps()
    yield _evicted()
    yield _user()
    yield _extended()
    yield _siblings()
    yield _reasoning_ignored()
    yield _echo()
    yield _retry()
    yield _subagent()
    yield _reads_too_much()
    yield _tiny()


def _first() -> Transition:
    tape = deepseek()
    tape.note(tape.cold(tape.ask(tape.opening())))
    return tape.done("deepseek/first_call_cold", "§12 C01: no earlier call")


def _gaps() -> Iterator[Transition]:
    tape = deepseek()
    body = tape.begin()
    tape.rules.forget()
    call = tape.ask(body, after=12 * 86_400.0)
    tape.note(tape.missed(call, "ttl_expired", "unexplained_miss", confidence=SURE | LIKELY))
    yield tape.done("deepseek/ttl_expired", "§1: hours to days, best effort; §12 C25: only likely")
    tape = deepseek()
    body = tape.begin()
    call = tape.ask(body, after=1800.0)
    tape.note(tape.warm(call, 3))
    yield tape.done("deepseek/ttl_alive", "§1: hours to days")


def _evicted() -> Transition:
    tape = deepseek()
    body = tape.begin()
    tape.rules.forget()
    call = tape.ask(body)
    tape.note(tape.missed(call, "unexplained_miss", confidence=SURE | LIKELY))
    return tape.done("deepseek/unexplained_miss", "§4: best effort; §12 C31")


def _user() -> Transition:
    tape = deepseek()
    body = tape.begin(3, tape.opening() | {"user_id": "crew-a"})
    call = tape.ask(body | {"user_id": "crew-b"})
    assert call.counted.read == 0
    tape.note(tape.missed(call, "isolation_changed", also=frozenset({"cold", "break"})))
    return tape.done("deepseek/isolation_changed", "§1, §6: user_id isolates, a full miss; §12 C29")


def _extended() -> Transition:
    """The last words of the user are sent again with more behind them: no unit ends there any more."""
    tape = deepseek()
    tape.begin()
    body = tape.calls[-1].body
    message = tape.dialect.messages(body)[tape.dialect.at(4)]
    tape.dialect.set_text(message, prose("main user 1", 1400) + " And look at the lanterns, too.")
    call = tape.ask(body, turn=3)
    assert 0 < call.counted.read < tape.calls[2].counted.total - 128
    tape.note(tape.missed(call, "boundary_not_preserved", also=frozenset({"break"})))
    return tape.done(
        "deepseek/boundary_not_preserved", "§1: must fully match a unit; §12 C28: DeepSeek unit not matched"
    )


def _siblings() -> Transition:
    """A+B, A+C, A+D: the second misses, the third reads what the first two had in common."""
    tape = deepseek()
    first = tape.ask(tape.opening("one"), turn=0)
    second = tape.ask(tape.opening("two"), turn=0, seed="two")
    third = tape.ask(tape.opening("three"), turn=0, seed="three")
    assert second.counted.read == 0 < third.counted.read
    tape.note(tape.cold(first), replace(tape.cold(second), also=frozenset({"warm"})), tape.warm(third))
    return tape.done(
        "deepseek/siblings", "§4: A+B then A+C misses, then A+D hits A; DESIGN 2: a shared head is no break"
    )


def _reasoning_ignored() -> Transition:
    """Reasoning of a turn without tools is not sent back: it is no part of the prompt in any case."""
    tape = deepseek()
    tape.thinking = True
    first = tape.ask(tape.opening(), turn=1)
    tape.note(tape.cold(first))
    body = tape.dialect.grow(first.body, replace(first.answer, thinking=""), prose("next words", 900))
    second = tape.ask(body, turn=3)
    tape.note(tape.warm(second, 1))
    body = tape.dialect.grow(second.body, replace(second.answer, thinking=""), prose("last words", 900))
    tape.note(tape.warm(tape.ask(body, turn=5), 2))
    return tape.done("deepseek/reasoning_ignored", "§8: turn without tools: optional, ignored, not concatenated")


def _echo() -> Transition:
    """The answer is echoed with its end cut off: the prompt before it was a unit, too."""
    tape = deepseek()
    first = tape.ask(tape.opening(), turn=1)
    tape.note(tape.cold(first))
    body = tape.dialect.grow(first.body, replace(first.answer, text=first.answer.text[:200]), prose("next words", 900))
    second = tape.ask(body, turn=3)
    told = tape.warm(second, 1)
    tape.note(told)
    return tape.done(
        "deepseek/echo_differs", "§4: if only the request prefix survives, about prompt_tokens(n); DESIGN 2"
    )


def _retry() -> Transition:
    tape = deepseek()
    body = tape.begin()
    call = tape.ask(body)
    again = tape.ask(body, after=8.0, turn=3)
    tape.note(tape.warm(call, 3), tape.warm(again, 4))
    return tape.done("deepseek/retry_equal_bytes", "§4: the whole prompt is a unit")


def _subagent() -> Transition:
    tape = deepseek()
    body = tape.begin(2)
    sub = tape.dialect.opening(tape.model, system_text(seed="subagent"), TOOLS[2:], first_words("sub"))
    side = tape.ask(sub, after=3.0, turn=1, seed="sub")
    main = tape.ask(body, after=2.0, turn=2)
    last = tape.ask(tape.grown(main, 2), turn=3)
    tape.note(tape.cold(side), tape.warm(main, 2), tape.warm(last, 4))
    return tape.done("deepseek/subagent_between", "§12: search all earlier calls, subagents interleave")


def _reads_too_much() -> Transition:
    tape = deepseek()
    body = tape.begin()
    tool_added(tape.dialect, body)
    whole = tape.calls[-1].counted.total // 64 * 64
    call = tape.ask(body, usage=lambda c: replace(c, read=whole))
    told = tape.broken(call, "tool_added", "/tools/2", confidence=LIKELY | UNSURE)
    tape.note(replace(told, expected_read=None, lost=0))
    return tape.done("deepseek/read_contradicts_bytes", "§12: got > exp: lower confidence")


def _tiny() -> Transition:
    tape = deepseek()
    body = tape.dialect.opening(tape.model, "Be brief.", (), "Is it tide?")
    del body["tools"]
    first = tape.ask(body, turn=1)
    assert first.counted.total < 64
    call = tape.ask(body, turn=1)
    assert call.counted.read == 0
    tape.note(tape.cold(call, "below_minimum"))
    return tape.done("deepseek/below_minimum", "§1: a unit is 64 tokens")
