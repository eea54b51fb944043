"""Where Hermes' compactions cut: the rule against what was recorded, and what an envelope does to it in either version."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ctxscope
from ctxscope.agents import hermes
from ctxscope.agents.hermes.budget import TailRule, without_envelope
from ctxscope.agents.hermes.tail import cut_of
from ctxscope.model import Compacted, Compaction, Marker, Place, TailCut
from tests.conftest import SAMPLES, needs_captures
from tests.hermes_cases import Case, cold
from tests.hermes_rows import Written, call

PHANTOM = SAMPLES / "hermes/compacted_on_phantom_bytes"
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


SUMMARY = "[CONTEXT COMPACTION — REFERENCE ONLY] Earlier turns were compacted.\n\nThe beds were dug."
SETTINGS = "model:\n  context_length: 80000\ncompression:\n  target_ratio: 0.1\n  protect_first_n: 0\n"


def compacted(schema: int, cut: int, signature: str) -> Compacted:
    """A session of twelve exchanges of which a version put a summary in place of the first ``cut`` rows."""
    log = Written()
    log.schema(schema)
    log.config(SETTINGS)
    details = [{"type": "thinking", "thinking": "so", "signature": signature}] if signature else None
    rows: list[int] = []
    for n in range(12):
        rows += [log.user(f"Question {n}"), log.says("", tool_calls=call(f"c{n}"), reasoning_details=details)]
        rows += [log.tool(f"c{n}", f"{n}," * 1000), log.says(f"Answer {n}", reasoning_details=details)]
    kept = [{k: v for k, v in log.rows[i].items() if k not in ("id", "active", "compacted")} for i in rows[cut:]]
    log.update(*rows, active=0, compacted=1)
    log.now += 1
    log.row("user", SUMMARY, ts=log.now)
    for step, row in enumerate(kept, 1):
        listed = {k: json.loads(row[k]) for k in ("tool_calls", "reasoning_details") if row.get(k)}
        stamp = log.now + step * 1e-6 if schema == 22 else row["timestamp"]  # 0.19 writes a new time
        log.row(**{**row, **listed, "ts": stamp, "timestamp": stamp})
    (found,) = hermes.compactions(log.log)
    return found


@pytest.mark.parametrize(("schema", "loses"), [(22, True), (26, False)])
def test_0_19_loses_messages_to_an_envelope_and_0_20_does_not(schema, loses):
    ruled = {rule.at for rule in compacted(schema, 30, "S" * 6000).rules if rule.own and rule.envelope}
    (cut,) = ruled
    found = compacted(schema, cut, "S" * 6000)
    assert (found.head, found.cut, found.budget) == (0, cut, 6400)
    lost = Compaction(found).lost
    assert bool(lost) is loses
    clean = next(rule.at for rule in found.rules if rule.own and not rule.envelope)
    assert [place.at for place in lost] == [f"row {n}" for n in range(clean + 1, cut + 1)]
    dropped = [f"row {n}" for n in range(1, cut + 1)]
    assert [
        place.at for place in found.marker.dropped
    ] == dropped  # what 0.19 kept has new times, and is kept all the same
    other = {rule.at for rule in found.rules if not rule.own and not rule.envelope}
    assert len(other) == 1
    bare = compacted(schema, cut, "")
    assert {rule.at for rule in bare.rules if rule.own} == {clean}  # no envelope, or none counted


def test_a_compaction_at_the_start_of_a_process_is_reckoned_as_that_process_holds_its_rows():
    """The sample spells 0.19's own arithmetic by hand: all rows are loaded ones but the input just typed."""
    inspection = ctxscope.open(PHANTOM)
    try:
        inspection.count()
        (found,), findings = inspection.snapshot.compactions, inspection.snapshot.findings
    finally:
        inspection.close()
    told = found.told
    assert (
        (told.reckoned_before, told.reckoned_after)
        == (told.marker.before_tokens, told.marker.after_tokens)
        == (2200, 758)
    )
    assert (told.head, told.cut, told.budget, found.phantom) == (1, 8, 266, True)
    assert [place.at for place in told.marker.dropped] == [f"row {n}" for n in range(2, 9)]
    assert [place.at for place in found.lost] == [f"row {n}" for n in range(4, 9)]
    (finding,) = (f for f in findings if f.code == "CTX401")
    assert finding.message.startswith("the compaction fired on phantom bytes: estimated 2,200, reported 640, visible ")
    assert finding.evidence.endswith(
        "; 5 of them by the envelope in its tail budget: row 4, row 5, row 6, row 7, row 8"
    )


def test_a_tool_result_that_no_call_was_billed_for_may_have_made_a_compaction_due():
    """Of the sample's 765 tokens, 602 were billed; the readings that came since are 117 by the estimator, and more."""
    inspection = ctxscope.open(PHANTOM.parent / "batch_marker_destroyed")
    try:
        inspection.count()
        found, findings = inspection.snapshot.compactions, inspection.snapshot.findings
    finally:
        inspection.close()
    assert [(c.told.marker.kind, c.phantom) for c in found] == [("compaction", False), ("micro", False)]
    assert not [f for f in findings if f.code == "CTX401"]
