"""Properties of Hermes' estimators as reproduced: what moves a figure, what must not, and what each part holds."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctxscope.agents import hermes
from ctxscope.agents.hermes.estimate import list_tokens
from ctxscope.agents.hermes.estimators import RULES, Rule, tool_tokens
from ctxscope.agents.reading.charges import Charge, Charges, added
from tests.estimating import envelopes, shuffled, texts, without
from tests.hermes_rows import Written

leaves = st.recursive(
    st.none() | st.booleans() | st.integers() | texts, lambda c: st.lists(c, max_size=3), max_leaves=4
)
parts = st.fixed_dictionaries({"type": st.sampled_from(["text", "image", "image_url", "input_image"]), "text": texts})
contents = (
    texts | st.lists(parts, max_size=3) | st.fixed_dictionaries({"_multimodal": st.just(True), "text_summary": texts})
)
details = st.lists(
    st.fixed_dictionaries({"type": st.just("reasoning.text"), "text": texts, "signature": envelopes}), max_size=2
)
items = st.lists(
    st.fixed_dictionaries({"type": st.just("reasoning"), "summary": details, "encrypted_content": envelopes})
)
calls = st.lists(
    st.fixed_dictionaries({"id": texts, "function": st.fixed_dictionaries({"name": texts, "arguments": texts})})
)
memories = st.fixed_dictionaries(
    {"role": st.sampled_from(["user", "assistant", "tool"]), "content": contents},
    optional={
        "api_content": leaves,
        "reasoning": texts,
        "reasoning_content": texts,
        "reasoning_details": details,
        "codex_reasoning_items": items,
        "codex_message_items": items,
        "tool_calls": calls,
        "timestamp": st.floats(allow_nan=False),
        "_row_id": st.integers(),
        "_db_persisted": st.booleans(),
    },
)
few = settings(max_examples=40)
"""Messages are dear to draw: each is given to the rules of all versions."""


def charged(rule: Rule, *messages: Mapping[str, Any]) -> Charge:
    return rule.whole(added(map(rule.message, messages)))


def with_envelopes(value: Any, replacement: str) -> Any:
    if isinstance(value, list):
        return [with_envelopes(v, replacement) for v in value]
    if isinstance(value, dict):
        opaque = ("signature", "encrypted_content")
        return {k: replacement if k in opaque else with_envelopes(v, replacement) for k, v in value.items()}
    return value


@few
@given(st.lists(memories, max_size=2))
def test_0_19_divides_the_characters_of_all_messages_at_once(messages):
    def shown(content: Any) -> Any:
        if isinstance(content, list):
            return [{"type": p["type"], "image": "[stripped]"} if p["type"] != "text" else p for p in content]
        return content["text_summary"] if isinstance(content, dict) else content

    characters = sum(len(str({**m, "content": shown(m["content"])})) for m in messages)
    images = sum(p["type"] != "text" for m in messages if isinstance(m["content"], list) for p in m["content"])
    assert sum(charged(RULES["0.19"], *messages).values()) == math.ceil(characters / 4) + 1500 * images


@few
@given(st.lists(memories, max_size=2), envelopes)
def test_another_envelope_leaves_all_other_parts_as_they_were(messages, envelope):
    other = [with_envelopes(m, envelope) for m in messages]
    for rule in RULES.values():
        assert without(charged(rule, *messages), "envelope") == without(charged(rule, *other), "envelope")


@few
@given(memories, st.none() | st.just("") | st.integers() | st.lists(texts | parts, max_size=2))
def test_a_sidecar_that_is_not_sent_changes_nothing(memory, sidecar):
    plain = {k: v for k, v in memory.items() if k != "api_content"}
    tool = {**plain, "role": "tool"}
    for version in ("0.20", "0.21"):
        rule = RULES[version]
        assert charged(rule, {**plain, "api_content": sidecar}) == charged(rule, plain)
        assert charged(rule, {**tool, "api_content": "sent by no one"}) == charged(rule, tool)


@few
@given(memories, st.text("sent ", min_size=8))
def test_a_sidecar_that_is_sent_is_charged_apart_and_by_0_19_beside_the_content(memory, sidecar):
    said = {**memory, "role": "user", "content": "clean words", "api_content": sidecar}
    longer = " and many more of them" * 9
    for rule in RULES.values():
        one, other = charged(rule, said), charged(rule, {**said, "content": f"clean words{longer}"})
        assert one["sidecar"] >= math.floor(len(sidecar) / 4)
        if rule.name == "Hermes 0.19":
            assert other["text"] - one["text"] == pytest.approx(len(longer) / 4, abs=1)
            assert other["sidecar"] == pytest.approx(one["sidecar"], abs=1)
        else:
            assert (one, one.get("text", 0)) == (other, 0)


@few
@given(memories, texts, envelopes, st.none() | texts)
def test_an_image_costs_its_flat_rate_and_its_base64_nothing_beside_a_sidecar_too(memory, said, data, sidecar):
    def holding(rule: Rule, picture: str) -> Charge:
        content = [{"type": "text", "text": said}, {"type": "image_url", "image_url": {"url": picture}}]
        return charged(rule, {**memory, "role": "user", "content": content, "api_content": sidecar})

    for rule in RULES.values():
        assert holding(rule, data)["images"] == 1500
        assert holding(rule, data) == holding(rule, "")


@few
@given(st.lists(memories, max_size=2), st.randoms(use_true_random=False))
def test_the_order_of_keys_changes_no_part(messages, order):
    others = [shuffled(m, order) for m in messages]
    for rule in RULES.values():
        assert charged(rule, *others) == charged(rule, *messages)


def test_thinking_in_two_fields_is_charged_twice_until_0_21():
    memory = {"role": "assistant", "content": "", "reasoning": "x" * 400, "reasoning_content": "x" * 400}
    assert [charged(RULES[v], memory)["thinking"] for v in ("0.19", "0.20", "0.21")] == [200, 200, 100]


def test_an_encrypted_item_is_charged_whole_until_0_21():
    memory = {"role": "assistant", "content": "", "codex_reasoning_items": [{"encrypted_content": "A" * 4000}]}
    assert [charged(RULES[v], memory).get("envelope", 0) for v in ("0.19", "0.20", "0.21")] == [1000, 1000, 0]


def test_letters_of_two_bytes_count_twice_in_0_21_and_wide_ones_once_from_0_20():
    assert [RULES[v].tokens("ж" * 400) for v in ("0.19", "0.20", "0.21")] == [100, 100, 200]
    assert [RULES[v].tokens("字" * 400) for v in ("0.19", "0.20", "0.21")] == [100, 400, 400]


def test_tools_without_a_function_are_counted_by_their_own_members():
    tool = {"name": "dig", "description": "digs", "parameters": {"type": "object"}}
    assert tool_tokens([tool]) == tool_tokens([{"type": "function", "function": tool}, "no tool"]) == 6
    assert tool_tokens(None) == 0


def test_pictures_of_a_tool_count_as_its_summary_and_by_their_kinds():
    pictures = [{"type": kind, "data": "A" * 900} for kind in ("image", "image_url", "input_image", "text")]
    content = {"_multimodal": True, "content": pictures, "text_summary": "a plum, seen twice"}
    for rule in RULES.values():
        found = charged(rule, {"role": "tool", "content": content})
        assert (found["images"], found["tool_results"]) == (3000, 5)


def test_a_column_nested_deep_is_walked():
    nested: Any = "thought"
    for _ in range(300):
        nested = [nested]
    assert charged(RULES["0.19"], {"role": "assistant", "content": "", "reasoning_details": nested})["thinking"] == 2


def test_the_estimator_of_the_version_that_wrote_the_log_comes_first():
    for schema, names in (
        (22, ["0.19", "0.20", "0.21"]),
        (26, ["0.20", "0.19", "0.21"]),
        (30, ["0.21", "0.20", "0.19"]),
    ):
        log = Written()
        log.schema(schema)
        log.user("one")
        found = hermes.estimates(log.log, log.points[-1])
        assert [e.estimator for e in found] == [f"Hermes {name}" for name in names]


def test_a_growing_history_charges_each_message_once_by_each_rule(monkeypatch):
    log, seen = Written(), []
    message = Rule.message
    monkeypatch.setattr(Rule, "message", lambda rule, memory: seen.append(rule.name) or message(rule, memory))
    summed: list[int] = []
    append = Charges._append
    monkeypatch.setattr(Charges, "_append", lambda known, one: summed.append(1) or append(known, one))
    for n in range(30):
        log.user(f"question {n}")
        log.says(f"answer {n}")
        hermes.estimates(log.log, log.points[-1])
    for point in log.points:
        hermes.estimates(log.log, point)
    rows = len(log.points[-1].context) - 1
    assert len(seen) == len(summed) == 3 * rows


@pytest.mark.parametrize("turns", [20, 40])
def test_a_history_that_thinks_is_charged_once_by_each_rule_and_by_that_for_stale_thinking(monkeypatch, turns):
    log, summed = Written(billing_provider="deepseek"), []
    log.schema(26)
    append = Charges._append
    monkeypatch.setattr(Charges, "_append", lambda known, one: summed.append(1) or append(known, one))
    for n in range(turns):
        log.user(f"question {n}")
        log.says(f"answer {n}", reasoning="why", reasoning_content="why")
        point = log.points[-1]
        assert len(hermes.estimates(log.log, point)) == 3
        list_tokens(log.log, point.context[-1:], 0)  # as of what came after the last answer before a compaction
    for point in log.points:
        hermes.estimates(log.log, point)
    assert len(summed) <= 4 * (2 * turns) + turns


def test_what_is_asked_of_a_history_that_was_left_and_gone_on_with_is_what_a_fresh_reader_says(monkeypatch):
    def written() -> Written:
        log = Written()
        for n in range(6):
            log.user(f"question {n}" * 9)
            log.says(f"answer {n}" * 9)
        log.update(9, 10, 11, 12, active=0)
        for n in range(3):
            log.user(f"other {n}")
            log.says(f"reply {n}")
        return log

    log, fresh = written(), {p.key: hermes.estimates(written().log, p) for p in written().points}
    summed: list[int] = []
    append = Charges._append
    monkeypatch.setattr(Charges, "_append", lambda known, one: summed.append(1) or append(known, one))
    order = [*log.points, *reversed(log.points), *log.points[::2]]
    assert [hermes.estimates(log.log, p) for p in order] == [fresh[p.key] for p in order]
    assert len(summed) == 3 * (11 + 5)  # the rows before the first's last answer, and those of the other way


def thinking(schema: int, settings: str = "", **session: Any) -> Written:
    """Two answers, each with its thinking, and a question."""
    log = Written(**session)
    log.schema(schema)
    log.config(settings or "model:\n  api_mode: chat_completions\n")
    for n in range(2):
        log.user(f"question {n}")
        log.says(f"answer {n}", reasoning="why " * 100, reasoning_content="why " * 100)
    log.user("and now?")
    return log


def thought(log: Written) -> dict[str, int]:
    return {e.estimator: e.charged["thinking"] for e in hermes.estimates(log.log, log.points[-1])}


def test_0_21_leaves_stale_thinking_out_where_no_release_of_it_sends_it_and_is_silent_where_some_do():
    whole = {"Hermes 0.20": 400, "Hermes 0.19": 400}
    assert thought(thinking(26, billing_provider="deepseek")) == {**whole, "Hermes 0.21": 200}
    assert thought(thinking(26, "model:\n  api_mode: codex_responses\n")) == {**whole, "Hermes 0.21": 100}
    assert thought(thinking(26, billing_provider="openrouter")) == whole
    assert thought(thinking(30, billing_provider="openrouter")) == {}
    newest = Written()
    newest.schema(30)
    newest.user("question")
    newest.says("answer", reasoning="why " * 100)
    newest.user("and now?")
    assert thought(newest) == {"Hermes 0.21": 100, "Hermes 0.20": 100, "Hermes 0.19": 100}


def test_0_21_says_nothing_of_images_whose_price_it_learned():
    for schema, known in ((26, ["Hermes 0.20", "Hermes 0.19"]), (30, [])):
        log = Written()
        log.schema(schema)
        log.user('\x00json:[{"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}]')
        found = hermes.estimates(log.log, log.points[-1])
        assert [(e.estimator, e.charged["images"]) for e in found] == [(name, 1500) for name in known]


def test_an_image_that_the_log_holds_as_a_word_leaves_the_estimate_unknown_while_its_process_lives():
    log = Written()
    log.schema(26)
    log.user("What is this?\n[screenshot]")
    assert hermes.estimates(log.log, log.points[-1]) == ()
    log.says("A bench.")
    log.user("And this?")
    assert hermes.estimates(log.log, log.points[-1]) == ()
    plain = Written()
    plain.schema(26)
    plain.user("What is this?")
    assert hermes.estimates(plain.log, plain.points[-1])
