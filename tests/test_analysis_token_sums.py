"""Summing a request's tokens from where the one before left off changes nothing, and costs what is new."""

from __future__ import annotations

import json
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from ctxscope import wire
from ctxscope.analysis.token_sums import VISIBLE
from ctxscope.analysis.tokens import Counter, ledger, visible
from ctxscope.model import Body, TokenLedger, TokenParts
from ctxscope.wire.body import make_body

BLOCKS = [
    {"type": "text", "text": "a few words"},
    {"type": "text", "text": "a few words", "cache_control": {"type": "ephemeral"}},
    {"type": "text", "text": "and others"},
    {"type": "thinking", "thinking": "hm", "signature": "c2ln"},
    {"type": "tool_result", "tool_use_id": "t", "content": "found it"},
    {"type": "image", "source": {"type": "url", "url": "https://example.org/x.png"}},
    {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0="}},
]
messages = st.lists(
    st.fixed_dictionaries(
        {"role": st.just("user"), "content": st.lists(st.sampled_from(BLOCKS), min_size=1, max_size=3)}
    ),
    max_size=5,
)
requests = st.fixed_dictionaries(
    {"model": st.sampled_from(["claude-opus-4-5", "gpt-4o"]), "messages": messages, "system": st.just("Be terse.")}
)


class Words(Counter):
    """Counts words, and how many texts it was given."""

    def __init__(self) -> None:
        super().__init__()
        self.given: list[str] = []

    def count(self, text: str, _: str | None = None) -> int:
        self.given.append(text)
        return len(text.split())


def made(value: dict[str, object], parent: Body | None = None) -> Body:
    return make_body(json.dumps(value).encode(), wire.by_name("anthropic-messages"), parent)


@given(st.lists(requests, min_size=1, max_size=7), st.lists(st.sampled_from(["a few words", "and others"]), max_size=2))
def test_parts_are_the_same_whatever_was_counted_before(values, sidecars):
    counter, before = Words(), None
    for value in values:
        before = made(value, before)
        assert counter.summed(before, sidecars) == Words().summed(before, sidecars)


def test_a_message_that_goes_on_in_the_next_request_still_counts_repeated_thinking_once():
    counter = Words()
    for blocks in ([BLOCKS[3]], [BLOCKS[3], BLOCKS[3]], [BLOCKS[3], BLOCKS[0], BLOCKS[3]]):
        parts = counter.parts(made({"model": "m", "messages": [{"role": "assistant", "content": blocks}]}))
        assert parts is not None
        assert parts.thinking == 1


def test_a_request_that_goes_on_looks_only_at_what_is_new():
    counter, before = Words(), None
    seen = []
    count = counter._counted
    counter._sums._count = lambda body, segment: seen.append(segment.path) or count(body, segment)
    told = [{"role": "user", "content": f"message {n}"} for n in range(40)]
    for n in range(1, 41):
        before = made({"model": "m", "messages": told[:n]}, before)
        seen.clear()
        assert counter.parts(before) == TokenParts(text=2 * n)
        assert len(set(seen)) <= 2
    assert sorted(counter.given) == sorted(m["content"] for m in told)


opaque = st.builds(lambda text, times: text * times, st.text("AZaz09+/=", min_size=1, max_size=9), st.integers(1, 300))


@given(requests, opaque, opaque)
def test_another_envelope_leaves_visible_and_all_other_parts_as_they_were(value, one, other):
    def counted(envelope: str) -> TokenLedger:
        thinking = {"type": "thinking", "thinking": "so it is", "signature": envelope}
        messages = [
            *value["messages"],
            {"role": "assistant", "content": [thinking, {"type": "redacted_thinking", "data": envelope}]},
        ]
        return ledger(Words(), made({**value, "messages": messages}))

    first, second = counted(one), counted(other)
    assert first.parts is not None
    assert second.parts is not None
    assert first.visible == second.visible
    assert replace(first.parts, envelope=0) == replace(second.parts, envelope=0)
    assert first.parts.envelope > 0
    assert first.envelope_bytes is not None
    assert second.envelope_bytes is not None
    assert second.envelope_bytes - first.envelope_bytes == 2 * (len(other) - len(one))  # it stands in two blocks


@given(st.lists(requests, min_size=1, max_size=4))
def test_the_parts_come_to_the_visible_total_and_each_text_is_counted_once(values):
    counter = Words()
    for value in values:
        served = made(value)
        found = ledger(counter, served)
        assert found.parts is not None
        assert found.visible == sum(getattr(found.parts, name) for name in VISIBLE) == visible(found.parts)
    before = list(counter.given)
    for value in values:
        ledger(counter, made(value))
    assert counter.given == before
