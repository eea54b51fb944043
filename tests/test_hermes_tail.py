"""Where Hermes' compactions cut: the rule against what was recorded, and what an envelope does to it in either version."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctxscope.agents import hermes
from ctxscope.agents.hermes.tail import TailRule, cut_of, without_envelope
from ctxscope.model import Compacted, Compaction, Marker, Place, TailCut
from tests.conftest import needs_captures
from tests.hermes_cases import Case, cold

TEXTS = st.integers(0, 3000).map(lambda n: "ab c" * (n // 4))


@cache
def told(name: str) -> tuple[Compacted, ...]:
    *_, (_, _, _, log, _, _) = cold(Case(name))
    return tuple(hermes.compactions(log))


@needs_captures
def test_the_rule_cuts_where_the_agent_cut():
    found = told("c_compact_inplace_N")
    assert [(len(c.messages), c.head, c.cut) for c in found] == [(19, 1, 3), (29, 0, 11)]
    for compaction in found:
        assert compaction.budget == 7500
        assert {rule.at for rule in compaction.rules if rule.own and rule.envelope} == {compaction.cut}
        assert Compaction(compaction).lost == ()  # these rows hold no envelope


@needs_captures
@pytest.mark.parametrize("name", ["c_compact_inplace_N", "d_micro_N"])
def test_the_telemetry_and_the_estimator_agree(name):
    found = told(name)
    assert [c.reckoned_after for c in found] == [c.marker.after_tokens for c in found]
    micro = [c for c in found if c.marker.kind != "compaction"]
    assert [c.reckoned_before for c in micro] == [c.marker.before_tokens for c in micro]
    assert all(c.seconds is not None for c in found)


@needs_captures
def test_a_micro_pass_has_two_ends_and_no_tail_budget():
    found = told("d_micro_N")
    assert {c.rules for c in found} == {()}
    assert [(c.head, c.cut) for c in found][:2] == [(1, 4), (1, 6)]
    assert found[0].seconds == pytest.approx(0.517)
    assert found[0].setting == "micro_compact_every_n_turns 1"


def exchange(n: int, output: str, signature: str) -> list[dict[str, Any]]:
    call = {"id": f"c{n}", "type": "function", "function": {"name": "terminal", "arguments": '{"command":"ls"}'}}
    details = [{"type": "thinking", "thinking": "so", "signature": signature}] if signature else None
    return [
        {"role": "user", "content": f"Question {n}"},
        {"role": "assistant", "content": "", "tool_calls": [call], "reasoning_details": details},
        {"role": "tool", "content": json.dumps({"output": output}), "tool_call_id": f"c{n}"},
        {"role": "assistant", "content": f"Answer {n}", "reasoning_details": details},
    ]


def test_an_envelope_shortens_the_tail_of_0_19_and_not_of_0_20():
    history = [m for n in range(12) for m in exchange(n, f"{n}," * 700, "S" * 4000)]
    clean = [without_envelope(m) for m in history]
    old, new = TailRule(old=True, budget=3000), TailRule(old=False, budget=3000)
    assert cut_of(history, 0, old) > cut_of(clean, 0, old)
    assert cut_of(history, 0, new) == cut_of(clean, 0, new)


def test_what_was_lost_to_an_envelope_lies_between_the_two_cuts():
    (first, *_) = told_of_nothing()
    rules = (TailCut("0.19", 6, own=True), TailCut("0.19", 2, envelope=False, own=True))
    lost = Compaction(replace(first, cut=6, rules=rules)).lost
    assert [place.at for place in lost] == ["row 2", "row 3", "row 4", "row 5"]
    assert Compaction(replace(first, cut=5, rules=rules)).lost == ()  # a rule that did not tell the cut tells nothing


def told_of_nothing() -> tuple[Compacted, ...]:
    marker = Marker("compaction", None, logged=True, where="")
    return (Compacted(marker, messages=tuple(Place(0, f"row {n}") for n in range(8)), head=0),)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(TEXTS, TEXTS), min_size=2, max_size=8), st.integers(50, 9000), st.integers(0, 20), st.booleans()
)
def test_a_cut_parts_no_call_from_its_result_and_knows_no_envelope_that_was_left_out(rounds, budget, last, old):
    rule = TailRule(old, budget, last)
    messages = [m for n, (output, signature) in enumerate(rounds) for m in exchange(n, output, signature)]
    at = cut_of(messages, 1, rule)
    assert 1 < at < len(messages)
    assert messages[at]["role"] != "tool"
    others = [
        m for n, (output, signature) in enumerate(rounds) for m in exchange(n, output, signature and "T" * 70 * (n + 1))
    ]
    clean, same = ([without_envelope(m) for m in some] for some in (messages, others))
    assert cut_of(clean, 1, rule) == cut_of(same, 1, rule)
    if not old:
        assert cut_of(messages, 1, rule) == cut_of(others, 1, rule)
