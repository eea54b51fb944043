"""Properties of the agents' own estimators as reproduced: what moves a figure, what must not, and what each part holds."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctxscope.agents import codex, dsh, hermes, kimi, omp, pi
from ctxscope.agents.codex.estimate import RULES as CODEX
from ctxscope.agents.dsh import estimate as dsh_estimate
from ctxscope.agents.hermes.estimators import RULES, Rule, tool_tokens
from ctxscope.agents.omp import estimate as omp_estimate
from ctxscope.agents.omp.items import Item
from ctxscope.agents.pi.estimate import COMPACTION, REQUEST, charge
from ctxscope.agents.pi.trail import Item as PiItem
from ctxscope.agents.pi.trail import Trail
from ctxscope.agents.reading.charges import Charge, Charges, added, estimated, rounded
from ctxscope.model import CHARGED, Entry, Place
from tests.hermes_rows import Written

texts = st.text(max_size=40)
envelopes = st.builds(
    lambda text, times: text * times, st.text("AZaz09+/=", min_size=1, max_size=9), st.integers(1, 500)
)
leaves = st.recursive(
    st.none() | st.booleans() | st.integers() | texts, lambda c: st.lists(c, max_size=3), max_leaves=4
)


def without(charges: Charge, *names: str) -> dict[str, int]:
    return {k: v for k, v in charges.items() if v and k not in names}


def shuffled(value: Any, order: random.Random) -> Any:
    """The same with the keys of every object in another order."""
    if isinstance(value, Mapping):
        pairs = [(k, shuffled(v, order)) for k, v in value.items()]
        order.shuffle(pairs)
        return dict(pairs)
    return [shuffled(v, order) for v in value] if isinstance(value, list) else value


# --- charging --------------------------------------------------------------------------------------------------------

units = st.dictionaries(st.sampled_from(CHARGED), st.integers(0, 10**6))


@given(units, st.sampled_from([4, 3.5]), st.sampled_from([math.ceil, math.floor]))
def test_what_is_charged_comes_to_the_rounded_whole_and_is_never_negative(counts, per, whole):
    charged = rounded(counts, per, whole)
    assert sum(charged.values()) == whole(sum(counts.values()) / per)
    assert all(n >= 0 for n in charged.values())
    assert all(abs(n - counts[name] / per) <= 1 for name, n in charged.items())


@given(units, st.integers(0, 10**6))
def test_units_of_an_envelope_move_no_other_part(counts, envelope):
    one, other = rounded({**counts, "envelope": 0}, 4), rounded({**counts, "envelope": envelope}, 4)
    assert without(one) == without(other, "envelope")


@given(units)
def test_an_estimate_comes_to_what_it_charges(counts):
    found = estimated("x", counts, frozenset(counts))
    assert found.tokens == sum(found.charged.values()) == sum(counts.values())
    assert tuple(found.charged) == CHARGED
    assert found.verified
    charged = [name for name, n in counts.items() if n]
    assert estimated("x", counts, frozenset(charged[1:])).verified is not bool(charged)


@given(st.lists(units, max_size=8), st.data())
def test_running_totals_are_those_of_each_item_however_they_were_asked_for(items, data):
    known = Charges()
    for _ in range(4):
        length = data.draw(st.integers(0, len(items)))
        since = data.draw(st.integers(0, length))
        wanted = without(added(items[since:length]))
        assert without(known.upto(items, length, lambda c: c, since)) == wanted
        assert without(known.cut(length).upto(items, length, lambda c: c, since)) == wanted


# --- Hermes ----------------------------------------------------------------------------------------------------------

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


# --- the others ------------------------------------------------------------------------------------------------------


def entry(kind: str, data: Mapping[str, Any]) -> Entry:
    return Entry(kind, Place(0, "line 1"), "1", data)


def omp_message(message: Mapping[str, Any]) -> Charge:
    return omp_estimate.of_item(Item(entry("message", {}), str(message.get("role")), message, 0.0))


def dsh_message(message: Mapping[str, Any]) -> Charge:
    return dsh_estimate.of_message(entry("assistant/message", {"data": {"message": message}}))


def spoken(text: str, thought: str, envelope: str, arguments: Any) -> dict[str, tuple[Callable[[Any], Charge], Any]]:
    """By estimator, how it charges one message and a message that says so much in its own form."""
    blocks = [
        {"type": "text", "text": text},
        {"type": "thinking", "thinking": thought, "thinkingSignature": envelope},
        {"type": "toolCall", "id": "1", "name": "dig", "arguments": arguments},
    ]
    message = {"role": "assistant", "content": blocks}
    said = {"type": "message", "id": "1", "role": "user", "content": [{"type": "input_text", "text": text}]}
    signed = {"source": {"replayState": {"blocks": [{"signature": envelope}]}}}
    plain = [{"type": "text", "text": text}, {"type": "reasoning", "text": thought}]
    return {
        "omp": (omp_message, message),
        "pi compaction": (lambda m: charge("assistant", m, COMPACTION), message),
        "pi request cap": (lambda m: charge("assistant", m, REQUEST), message),
        "dsh": (dsh_message, {"content": plain, **signed}),
        **{f"codex {rule.version}": (rule.item, said) for rule in CODEX},
    }


arguments = st.dictionaries(texts, texts | st.integers(), max_size=3)


@given(texts, texts, envelopes, envelopes, arguments)
def test_an_envelope_is_charged_apart_or_not_at_all(text, thought, one, other, given_arguments):
    first, second = (spoken(text, thought, envelope, given_arguments) for envelope in (one, other))
    for name, (of, message) in first.items():
        found = [of(message), of(second[name][1])]
        assert without(found[0], "envelope") == without(found[1], "envelope")
        wanted = [math.ceil(len(e) / 4) if name == "omp" else 0 for e in (one, other)]
        assert [f.get("envelope", 0) for f in found] == wanted


@given(texts, texts, arguments, st.randoms(use_true_random=False))
def test_the_order_of_keys_changes_no_count(text, thought, given_arguments, order):
    for of, message in spoken(text, thought, "c2ln", given_arguments).values():
        assert of(shuffled(message, order)) == of(message)


BY_TEXT: Mapping[str, Callable[[str], int]] = {
    "omp": omp_estimate.fragment,
    "codex 0.98": codex.estimate.text_tokens,
    "codex 0.171": lambda t: CODEX[1].item({"type": "message", "content": [{"text": t}]}).get("text", 0),
    "pi compaction": lambda t: charge("user", {"content": t}, COMPACTION).get("text", 0),
    "pi request cap": lambda t: charge("user", {"content": t}, REQUEST).get("text", 0),
    "dsh": lambda t: dsh_message({"content": [{"type": "text", "text": t}]})["text"],
    **{rule.name: rule.tokens for rule in RULES.values()},
}


@given(texts, st.lists(st.integers(0, 40), max_size=5))
def test_each_cut_of_a_text_adds_at_most_one(text, places):
    cuts = sorted({p for p in places if p <= len(text)})
    pieces = [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    for name, tokens in BY_TEXT.items():
        assert 0 <= sum(map(tokens, pieces)) - tokens(text) <= len(cuts), name


@given(envelopes)
def test_an_item_that_is_an_envelope_counts_as_nothing_else_by_codex(envelope):
    item = {"type": "reasoning", "id": "rs_1", "summary": [{"text": "thought"}], "encrypted_content": envelope}
    decoded = max(0, len(envelope) * 3 // 4 - 650)
    assert [rule.item(item) for rule in CODEX] == [{"envelope": math.ceil(decoded / 4)}] * 2


@given(envelopes)
def test_codex_counts_the_base64_of_an_image_in_0_98_and_a_flat_rate_in_0_171(data):
    url = f"data:image/png;base64,{data}"
    item = {"type": "message", "role": "user", "content": [{"type": "input_image", "image_url": url}]}
    old, new = (rule.item(item) for rule in CODEX)
    assert abs(old["images"] - len(url) / 4) <= 1
    assert new == {"images": math.ceil(7373 / 4)}


@given(texts, arguments)
def test_codex_takes_tool_calls_and_outputs_for_what_they_are(text, given_arguments):
    call = {"type": "function_call", "name": "dig", "arguments": str(given_arguments), "call_id": "c"}
    output = {"type": "function_call_output", "call_id": "c", "output": [{"type": "input_text", "text": text}]}
    for rule in CODEX:
        assert set(without(rule.item(call))) <= {"tool_calls", "bookkeeping"}
        assert set(without(rule.item(output))) <= {"tool_results", "bookkeeping"}
    assert sum(CODEX[0].item(call).values()) == math.ceil(len(codex.items.spelled(call)) / 4)


@given(envelopes, texts)
def test_codex_takes_an_encrypted_output_for_nine_sixteenths_in_0_171(envelope, text):
    parts = [{"type": "encrypted_content", "encrypted_content": envelope}, {"type": "input_text", "text": text}]
    found = CODEX[1].item({"type": "function_call_output", "call_id": "c", "output": parts})
    assert sum(found.values()) == math.ceil((math.ceil(len(envelope) * 9 / 16) + len(text.encode())) / 4)
    other = CODEX[1].item({"type": "function_call_output", "call_id": "c", "output": parts[1:]})
    assert without(found, "envelope") == without(other)


def test_versions_between_the_two_known_rules_of_codex_have_none():
    found = {v: codex.estimate.rule_of(v) for v in ("0.53.0", "0.98.0", "0.106.0", "0.146.0", "0.171.0", "0.172.1")}
    assert [r and r.version for r in found.values()] == ["0.98", "0.98", None, None, "0.171", "0.171"]


def test_pi_takes_over_the_usage_that_each_estimator_trusts():
    answer = {"role": "assistant", "content": "x" * 40, "usage": {"totalTokens": 900}}
    trail = Trail()
    trail.append(PiItem(entry("user", {}), "user", {"content": "y" * 40}, 1.0))
    trail.append(PiItem(entry("assistant", {}), "assistant", answer, 2.0), current=False)
    trail.append(PiItem(entry("user", {}), "user", {"content": "z" * 40}, 3.0))
    compaction, cap = (without(trail.charged(3, per)) for per in (COMPACTION, REQUEST))
    assert compaction == {"text": 30}  # the history was changed after the answer was given
    assert cap == {"text": 12, "reported": 900}
    assert without(trail.fork(1).charged(1, COMPACTION)) == {"text": 10}


def test_omp_charges_redacted_thinking_and_images_of_its_archives():
    blocks = [{"type": "redactedThinking", "data": "A" * 40}, {"type": "image", "data": "A" * 9000}]
    assert omp_message({"role": "assistant", "content": blocks}) == {"envelope": 10, "images": 1200}
    frames = Item(entry("compaction", {}), "user", {"content": blocks[1:]}, 0.0)
    assert omp_estimate.of_item(frames) == {"images": 5024}


def test_every_agent_with_an_estimator_has_the_face():
    assert all(hasattr(agent, "estimates") for agent in (codex, dsh, hermes, kimi, omp, pi))
