"""pi's output caps: clamped to the window, told by models.json, or inferred from caps already sent."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxscope.agents import Log, at_hand, pi
from ctxscope.agents.pi.limits import BUDGETS, Limits, Sent, budget_within, cap, clamp, inferred
from ctxscope.agents.pi.points import node_of
from ctxscope.model import Body, Learned, Point
from ctxscope.wire import detect
from ctxscope.wire.body import make_body
from tests.pi_sessions import ANTHROPIC, Script, log_of, text

WINDOWS = st.integers(8, 512).map(lambda n: n * 1000)


def test_the_cap_leaves_a_margin_while_there_is_room() -> None:
    assert clamp(64000, 200000, 100000) == 64000
    assert clamp(64000, 200000, 130000) == 200000 - 130000 - 19500
    assert clamp(64000, 200000, 150000) == 32768
    assert clamp(64000, 200000, 199999) == 1


def test_the_budget_always_leaves_room_for_an_answer() -> None:
    assert budget_within(4096, 8192, old=False) == 3072
    assert budget_within(16000, 8192, old=False) == 8192
    assert budget_within(8500, 8192, old=False) == 7476
    assert budget_within(8500, 8192, old=True) == 8192
    assert budget_within(900, 8192, old=True) == 1024


@given(st.integers(16, 200000), WINDOWS, st.lists(st.integers(0, 300000), min_size=1, max_size=6))
def test_inferred_limits_give_every_cap_they_were_inferred_from(output: int, window: int, inputs: list[int]) -> None:
    sent = [Sent(clamp(output, window, i), i, 0) for i in inputs]
    found = inferred(sent, old=False)
    assert found is None or all(cap(found, s.input, 0, old=False) == s.cap for s in sent)


@given(st.integers(1024, 100000), st.lists(st.sampled_from(sorted(BUDGETS.values())), min_size=1, max_size=4))
def test_old_caps_bound_the_limit(output: int, budgets: list[int]) -> None:
    sent = [Sent(cap(Limits(output), 0, b, old=True), 0, b) for b in budgets]
    found = inferred(sent, old=True)
    assert found is not None
    assert found.output <= output
    assert found.at_least or found.output == output


def session(*totals: int) -> Script:
    script = Script().begin("off")
    script.system(preamble="help")
    for total in totals:
        script.user("go")
        script.assistant(text("ok"), total=total)
    return script


def body_of(point: Point, value: int, script: Script, side: dict[str, bytes] | None = None) -> Body:
    log = log_of(script.bytes(), side=side)
    made = pi.rebuild(log, point, pi.config(log), Learned())
    assert made is not None
    data = made.data.replace(b'"stream":true', b'"max_tokens":%d,"stream":true' % value)
    api = detect("/v1/messages", {}, data)
    return make_body(data, api)


def learned_caps(script: Script, caps: list[int]) -> list[tuple[bytes | None, str, tuple[str, ...]]]:
    log = script.log()
    before: list[tuple[Point, Body]] = []
    found = []
    for point, value in zip(pi.requests(log), caps, strict=True):
        body = body_of(point, value, script)
        learned = pi.learn(log, point, body, at_hand(before))
        before.append((point, body))
        kept = learned.values["/max_tokens"]
        found.append((kept.data, kept.provenance, learned.hypotheses))
    return found


def test_a_cap_is_echoed_once_and_learned_after() -> None:
    caps = learned_caps(session(100, 200, 300), [16000] * 3)
    assert [(c[0], c[1]) for c in caps] == [(b"16000", "echoed"), (b"16000", "learned"), (b"16000", "learned")]


def test_a_cap_another_call_contradicts_is_kept_as_it_was() -> None:
    assert learned_caps(session(100, 200), [16000, 17001])[1][:2] == (b"16000", "learned")


def test_a_clamp_that_one_window_explains_is_inferred_and_then_known() -> None:
    script = session(30000, 40000, 45000, 100)
    log = script.log()
    caps = [clamp(16000, 50000, _estimate(log, p)) for p in pi.requests(log)]
    assert len(set(caps)) == 4
    found = learned_caps(script, caps)
    assert [f[1] for f in found] == ["echoed", "echoed", "learned", "learned"]
    assert [f[0] for f in found] == [str(c).encode() for c in caps]
    assert "window of 50000" in found[1][2][0]


def test_a_smaller_cap_no_round_window_explains_is_echoed_and_said() -> None:
    data, provenance, words = learned_caps(session(30000, 100), [16000, 12345])[1]
    assert (data, provenance) == (b"12345", "echoed")
    assert "a window that is not known" in words[0]


def _estimate(log: Log, point: Point) -> int:
    node = node_of(log, point)
    assert node is not None
    return node.trail.estimates[node.length].request


def models(**model: object) -> dict[str, bytes]:
    _, provider, name = ANTHROPIC
    table = {"providers": {provider: {"api": ANTHROPIC[0], "models": [{"id": name, **model}]}}}
    settings = {"compaction": {"reserveTokens": 5000}, "thinkingBudgets": {"low": 3000}}
    return {"models": json.dumps(table).encode(), "settings": json.dumps(settings).encode()}


def test_models_json_makes_the_cap_known() -> None:
    script = session(100)
    log = log_of(script.bytes(), side=models(maxTokens=9000, contextWindow=64000))
    config = pi.config(log)
    assert (config.window, config.threshold, config.protect_tail, config.agent_version) == (64000, 59000, 20000, "1.x")
    made = pi.rebuild(log, pi.requests(log)[0], config, Learned())
    assert made is not None
    assert b'"max_tokens":9000' in made.data
    assert made.notices == ()


def test_without_models_json_or_a_recording_the_cap_is_left_out_and_said() -> None:
    log = session(100).log()
    made = pi.rebuild(log, pi.requests(log)[0], pi.config(log), Learned())
    assert made is not None
    assert b"max_tokens" not in made.data
    assert "not known" in made.notices[0]
    assert (pi.config(log).window, pi.config(log).threshold) == (None, None)


@pytest.mark.parametrize(
    "broken", [b"", b"[]", b"{", b'{"providers":[1]}', b'{"providers":{"a":{"models":[3,{"id":1}]}}}']
)
def test_a_broken_model_table_says_nothing(broken: bytes) -> None:
    log = log_of(session(100).bytes(), side={"models": broken})
    assert pi.config(log).values["limits"] == {}
