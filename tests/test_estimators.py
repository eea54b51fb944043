"""Properties of the agents' own estimators as reproduced: what moves a figure, what must not, and what each part holds."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxscope.agents import codex, dsh, hermes, kimi, omp, pi
from ctxscope.agents.codex.estimate import RULES as CODEX
from ctxscope.agents.codex.estimate import UNSIZED, rule_of
from ctxscope.agents.dsh import estimate as dsh_estimate
from ctxscope.agents.hermes.estimators import RULES
from ctxscope.agents.omp import estimate as omp_estimate
from ctxscope.agents.omp.items import Item
from ctxscope.agents.pi.estimate import COMPACTION, REQUEST, charge
from ctxscope.agents.pi.trail import Item as PiItem
from ctxscope.agents.pi.trail import Trail
from ctxscope.agents.reading.charges import Charge, Charges, added, estimated, rounded
from ctxscope.model import CHARGED, Entry, Place
from tests.estimating import envelopes, shuffled, texts, without

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
    "codex": codex.estimate.text_tokens,
    "codex 0.156": lambda t: CODEX[-2].item({"type": "message", "content": [{"text": t}]}).get("text", 0),
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
    decoded = max(0, len(envelope) * 3 // 4 - 650)
    for kind in ("reasoning", "compaction"):
        item = {"type": kind, "id": "rs_1", "summary": [{"text": "thought"}], "encrypted_content": envelope}
        told = [decoded, *[math.ceil(decoded / 4)] * (len(CODEX) - 1)]
        if kind == "compaction":
            told[-1] = math.ceil(len(envelope) / 12)
        assert [rule.item(item) for rule in CODEX] == [{"envelope": n} for n in told]


@given(envelopes)
def test_codex_counts_the_base64_of_an_image_until_0_105_and_from_there_a_flat_rate(data):
    url = f"data:image/png;base64,{data}"
    item = {"type": "message", "role": "user", "content": [{"type": "input_image", "image_url": url}]}
    assert abs(CODEX[1].item(item)["images"] - len(url) / 4) <= 1
    for rule in CODEX[2:5]:
        assert rule.item(item)["images"] in (math.ceil((22 + 7373) / 4), (22 + 7373) // 4)
    assert [rule.item(item) for rule in CODEX[5:]] == [{"images": math.ceil(7373 / 4)}] * 2


def test_codex_says_nothing_of_an_image_whose_pixels_it_would_have_to_count():
    def holding(url: str, detail: str | None) -> list[bool]:
        part = {"type": "input_image", "image_url": url, **({"detail": detail} if detail else {})}
        return [UNSIZED in rule.item({"type": "message", "role": "user", "content": [part]}) for rule in CODEX]

    assert holding("data:image/png;base64,AAAA", "high") == [False] * 7
    assert holding("data:image/png;base64,AAAA", "original") == [*[False] * 3, *[True] * 4]
    assert holding("https://example.org/plum.png", None) == [*[False] * 5, *[True] * 2]


@given(texts, arguments)
def test_codex_takes_tool_calls_and_outputs_for_what_they_are(text, given_arguments):
    call = {"type": "function_call", "name": "dig", "arguments": str(given_arguments), "call_id": "c"}
    output = {"type": "function_call_output", "call_id": "c", "output": [{"type": "input_text", "text": text}]}
    for rule in CODEX:
        assert set(without(rule.item(call))) <= {"tool_calls", "bookkeeping"}
        assert set(without(rule.item(output))) <= {"tool_results", "bookkeeping"}
    spelled = codex.items.spelled
    assert [sum(r.item(call).values()) for r in CODEX[:5]] == [math.ceil(len(spelled(call)) / 4)] * 5
    said = len("dig" + "functions" + str(given_arguments).encode().decode("latin-1"))
    assert [sum(r.item(call).values()) for r in CODEX[5:]] == [math.ceil(said / 4)] * 2


@given(envelopes, texts)
def test_codex_takes_an_encrypted_output_for_nine_sixteenths(envelope, text):
    parts = [{"type": "encrypted_content", "encrypted_content": envelope}, {"type": "input_text", "text": text}]
    found = CODEX[-1].item({"type": "function_call_output", "call_id": "c", "output": parts})
    assert sum(found.values()) == math.ceil((math.ceil(len(envelope) * 9 / 16) + len(text.encode()) + 1) / 4)
    other = CODEX[-1].item({"type": "function_call_output", "call_id": "c", "output": parts[1:]})
    assert without(found, "envelope") == without(other)


SAID = 'alpha beta "gamma"\nдельта ' * 20
QUERY = {"query": "q" * 200}
PLAIN = [{"type": "input_text", "text": SAID}]
THOUGHT = [{"type": "summary_text", "text": "thinking about it" * 20}]
ITEMS: Mapping[str, Mapping[str, Any]] = {
    "user": {"type": "message", "role": "user", "content": PLAIN},
    "two parts": {"type": "message", "role": "user", "content": [*PLAIN, {"type": "input_text", "text": SAID[:101]}]},
    "output": {"type": "function_call_output", "call_id": "call_1", "output": SAID},
    "output parts": {
        "type": "function_call_output",
        "call_id": "call_1",
        "output": [*PLAIN, {"type": "input_text", "text": SAID[:51]}],
    },
    "custom output": {"type": "custom_tool_call_output", "call_id": "call_1", "output": SAID},
    "encrypted output": {
        "type": "function_call_output",
        "call_id": "call_1",
        "output": [{"type": "encrypted_content", "encrypted_content": "Q" * 4001}],
    },
    "reasoning": {"type": "reasoning", "summary": THOUGHT, "content": None, "encrypted_content": "E" * 4005},
    "bare reasoning": {"type": "reasoning", "summary": THOUGHT, "content": None, "encrypted_content": None},
    "compaction": {"type": "compaction", "encrypted_content": "Q" * 4001},
    "web search": {"type": "web_search_call", "status": "completed", "action": {"type": "search", **QUERY}},
    "tool search": {
        "type": "tool_search_call",
        "call_id": "call_1",
        "status": "completed",
        "execution": "client",
        "arguments": QUERY,
    },
    "found tools": {
        "type": "tool_search_output",
        "call_id": "call_1",
        "status": "completed",
        "execution": "client",
        "tools": [{"type": "function", "name": "n" * 100, "description": "d" * 100}],
    },
    "between agents": {
        "type": "agent_message",
        "author": "/lead",
        "recipient": "/lead/a",
        "content": [*PLAIN, {"type": "encrypted_content", "encrypted_content": "Q" * 4001}],
    },
}
"""Made-up items that released versions were given in a history; the names of agents are others of the same length."""
TOLD: Mapping[str, Mapping[str, int]] = {
    "user": {"0.87": 194, "0.98": 194, "0.110": 194, "0.130": 194, "0.140": 194, "0.160": 160, "0.171": 160},
    "two parts": {"0.98": 236, "0.120": 236, "0.140": 236, "0.160": 191, "0.171": 191},
    "output": {"0.80": 191, "0.98": 191, "0.130": 191, "0.155": 191, "0.160": 162, "0.171": 162},
    "output parts": {"0.98": 224, "0.155": 224, "0.160": 178, "0.171": 178},
    "custom output": {"0.98": 192, "0.155": 192, "0.160": 162, "0.171": 162},
    "encrypted output": {"0.133": 591, "0.155": 591, "0.160": 565, "0.171": 565},
    "reasoning": {"0.80": 2353, "0.87": 589, "0.98": 589, "0.155": 589, "0.160": 589, "0.171": 589},
    "bare reasoning": {"0.80": 112, "0.98": 112, "0.155": 112, "0.160": 0, "0.171": 0},
    "compaction": {"0.80": 2350, "0.87": 588, "0.155": 588, "0.158": 588, "0.162": 588, "0.163": 334, "0.171": 334},
    "web search": {"0.98": 72, "0.155": 72, "0.160": 57, "0.171": 57},
    "tool search": {"0.120": 79, "0.155": 79},
    "found tools": {"0.115": 87, "0.155": 87, "0.160": 62, "0.171": 62},
    "between agents": {"0.140": 1215, "0.146": 1215, "0.147": 778, "0.155": 778, "0.160": 726, "0.171": 726},
}
"""By item and version, the tokens that Codex itself wrote down for it: what the figure of its history rose by."""


@pytest.mark.parametrize("name", TOLD)
def test_an_item_counts_what_each_measured_version_of_codex_counted(name):
    found = {v: sum(rule.item(ITEMS[name]).values()) for v in TOLD[name] if (rule := rule_of(f"{v}.0"))}
    assert found == TOLD[name]


def test_a_version_of_codex_counts_by_the_newest_rule_that_is_not_newer():
    told = {"0.53.0": None, "0.79.0": None, "0.80.0": "0.80", "0.84.0": None, "0.98.0": "0.87", "0.104.0": "0.87"}
    told |= {"0.105.0": "0.105", "0.121.2": "0.105", "0.146.0": "0.122", "0.155.1": "0.147", "0.156.0-alpha.3": "0.156"}
    told |= {"0.162.1": "0.156", "0.163.0": "0.163", "0.172.1": "0.163", "1.0.0": "0.163", "dev": None, "": None}
    assert {v: (rule := rule_of(v)) and rule.version for v in told} == told


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


def test_omp_charges_blocks_of_server_tools_as_their_json():
    block = {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "ü"}}
    found = omp_message({"role": "assistant", "content": [{"type": "anthropicServerTool", "block": block}]})
    assert found == {
        "envelope": math.ceil(len(json.dumps(block, ensure_ascii=False, separators=(",", ":")).encode()) / 4)
    }
    assert omp_message({"role": "assistant", "content": [{"type": "anthropicServerTool"}]}) == {"envelope": 1}


def test_every_agent_with_an_estimator_has_the_face():
    assert all(hasattr(agent, "estimates") for agent in (codex, dsh, hermes, kimi, omp, pi))
