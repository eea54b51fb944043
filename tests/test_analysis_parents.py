"""The parent by its definition: most segments, then most bytes of the next one, of equals the latest."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxscope import wire
from ctxscope.analysis.parents import TELLING, TICK, Found, ParentIndex
from ctxscope.analysis.prefixes import common_prefix
from ctxscope.analysis.prompts import Prompt, prompt_of, settings_of, shared
from ctxscope.model import Body, Segment
from ctxscope.wire.body import make_body

TEXTS = ("a", "b", "x" * TELLING + "1", "x" * TELLING + "2", "x" * 30 + "3", "x" * 30 + "4", "x" * 40)


def chain(*texts: str) -> Prompt:
    """A prompt whose segments are short texts."""
    data, segments = b"", []
    for n, text in enumerate(texts):
        spelled = text.encode()
        segments.append(
            Segment(f"/messages/{n}", len(data), len(data) + len(spelled), "message", order=(2, n), digest=spelled)
        )
        data += spelled
    return prompt_of(Body(data, "openai-chat", tuple(segments)))


class Calls:
    """An index and the prompts it was given."""

    def __init__(self) -> None:
        self.prompts: list[Prompt] = []
        self.index = ParentIndex(lambda call: self.prompts[call - 1])

    def take(self, prompt: Prompt, near: tuple[int, int] | None = None) -> Found:
        self.prompts.append(prompt)
        return self.index.take(len(self.prompts), prompt, near)

    def drop(self) -> None:
        self.index.drop(len(self.prompts))
        self.prompts.pop()


def searched(earlier: list[Prompt], mine: Prompt) -> Found:
    """The parent by looking at all earlier calls."""
    depths = [shared(p.digests, mine.digests) for p in earlier]
    depth = max(depths, default=0)
    equals = [n for n, d in enumerate(depths, 1) if d == depth]
    if depth == len(mine.segments):
        return Found(max(equals, default=0) if depth else None, depth)
    going_on = {
        n: common_prefix(earlier[n - 1].sent(depth), mine.sent(depth))
        for n in equals
        if depth < len(earlier[n - 1].segments)
    }
    ended = max((n for n in equals if n not in going_on), default=0)
    longest = max(going_on.values(), default=0)
    call, common = max(((n, c) for n, c in going_on.items() if c > longest - TICK), default=(0, 0))
    if ended > call and common < TELLING:
        call = ended
    return Found(call or None if depth or common >= TELLING else None, depth)


prompts = st.lists(st.sampled_from(TEXTS), max_size=5).map(lambda texts: chain(*texts))


@given(st.lists(prompts, max_size=12))
def test_the_index_finds_what_a_search_through_all_calls_finds(given_):
    calls = Calls()
    for prompt in given_:
        expected = searched(calls.prompts, prompt)
        assert calls.take(prompt) == expected


@given(st.lists(prompts, max_size=12), st.data())
def test_neither_a_hint_nor_calls_taken_out_again_change_the_answer(given_, data):
    calls = Calls()
    for prompt in given_:
        for _ in range(data.draw(st.integers(0, min(2, len(calls.prompts))))):
            calls.drop()
        expected = searched(calls.prompts, prompt)
        near = None
        if calls.prompts and data.draw(st.booleans()):
            call = data.draw(st.integers(1, len(calls.prompts)))
            most = shared(calls.prompts[call - 1].digests, prompt.digests)
            near = (call, data.draw(st.integers(0, most)))
        assert calls.take(prompt, near) == expected


def test_of_calls_that_share_as_many_segments_the_bytes_of_the_next_decide():
    """A main agent with a clock in its system prompt, and a subagent with the same tools in between."""
    api = wire.by_name("openai-chat")

    def made(system: str, *texts: str) -> Prompt:
        tools = [{"type": "function", "function": {"name": "read", "parameters": {}}}]
        told = [{"role": "system", "content": system}, *({"role": "user", "content": t} for t in texts)]
        return prompt_of(make_body(json.dumps({"model": "m", "tools": tools, "messages": told}).encode(), api))

    calls = Calls()
    assert calls.take(made("You are the main agent. It is 10:00.", "q")).call is None
    calls.take(made("You are a helper of the main agent.", "task"))
    assert calls.take(made("You are the main agent. It is 10:05.", "q", "r")) == Found(1, 1)
    assert calls.take(made("You are a helper of the main agent.", "task", "on")) == Found(2, 3)
    assert calls.take(made("You are the main agent. It is 10:09.", "q", "r")) == Found(3, 1)
    assert calls.take(made("You are the main agent. It is 10:00.", "s")) == Found(1, 2)
    assert calls.take(made("You are the main agent. It is 10:01.", "t")) == Found(6, 1)


def test_an_answer_asked_for_again_goes_on_from_the_second_asking():
    calls = Calls()
    calls.take(chain("q"))
    calls.take(chain("q", "x" * 30 + "3"))
    calls.take(chain("q"))
    assert calls.take(chain("q", "x" * 30 + "4")) == Found(3, 1)


@pytest.mark.parametrize(("text", "call"), [("x" * TELLING + "2", 1), ("x" * 30 + "4", None)])
def test_a_first_segment_that_differs_has_a_parent_only_when_much_of_it_is_shared(text, call):
    calls = Calls()
    calls.take(chain("x" * TELLING + "1"))
    assert calls.take(chain(text, "a")) == Found(call, 0)


def test_a_new_clock_with_each_call_costs_no_more_than_the_latest_branches():
    compared = []

    class Counted(Calls):
        def __init__(self) -> None:
            super().__init__()
            self.index = ParentIndex(lambda call: compared.append(call) or self.prompts[call - 1])

    calls = Counted()
    for n in range(100):
        found = calls.take(chain("tools", f"{'x' * 50} {n:03d}", f"message {n}"))
        assert found.call == (n or None)
    assert len(compared) <= 100 + 1


def test_a_branch_taken_again_counts_among_the_latest():
    calls = Calls()
    calls.take(chain("tools", "x" * 90 + "1"))
    for n in range(50):
        calls.take(chain("tools", f"other {n:03d}"))
    calls.take(chain("tools", "x" * 90 + "1", "on"))
    assert calls.take(chain("tools", "x" * 90 + "2")) == Found(52, 1)


# --- prompts made from prompts ---------------------------------------------------------------------------------------

BLOCKS = [
    {"type": "text", "text": "one"},
    {"type": "text", "text": "two", "cache_control": {"type": "ephemeral"}},
    {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "QUJD"}},
    {"type": "tool_result", "tool_use_id": "t", "content": [{"type": "image", "source": {}}]},
    {"type": "document", "source": {}, "citations": {"enabled": True}},
]
requests = st.fixed_dictionaries(
    {
        "model": st.sampled_from(["m", "n"]),
        "messages": st.lists(
            st.fixed_dictionaries(
                {"role": st.just("user"), "content": st.lists(st.sampled_from(BLOCKS), min_size=1, max_size=3)}
            ),
            max_size=6,
        ),
        "system": st.lists(st.sampled_from(BLOCKS[:2]), max_size=2),
        "tools": st.lists(
            st.sampled_from([{"name": "a", "input_schema": {}}, {"name": "b", "input_schema": {}}]), max_size=2
        ),
    },
    optional={"cache_control": st.just({"type": "ephemeral"}), "thinking": st.just({"type": "disabled"})},
)


@given(st.lists(requests, min_size=1, max_size=5), st.permutations(["model", "messages", "system", "tools"]))
def test_a_prompt_is_the_same_made_from_nothing_or_from_the_one_before(values, order):
    api = wire.by_name("anthropic-messages")
    body, before = None, None
    for value in values:
        ordered = {k: value[k] for k in order} | value
        body = make_body(json.dumps(ordered).encode(), api, body)
        alone, grown = prompt_of(body), prompt_of(body, before)
        names = ("api", "settings", "listed", "segments", "digests", "head", "marks", "marked_whole", "first")
        assert [getattr(alone, n) for n in names] == [getattr(grown, n) for n in names]
        if before is not None:
            assert grown.digests[: grown.common] == before.digests[: grown.common]
        before = grown


def test_settings_that_say_the_same_are_one_object():
    api = wire.by_name("anthropic-messages")
    first = make_body(b'{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"a"}]}', api)
    known = settings_of(first)
    second = make_body(first.data.replace(b'"a"', b'"ab"'), api, first)
    assert settings_of(second, (first.segments, known)) is known


def test_a_body_without_a_segment_has_settings_and_a_prompt_too():
    api = wire.by_name("anthropic-messages")
    before = prompt_of(make_body(b'{"model":"m","messages":[]}', api))
    for data in (b"{}", b"[]", b""):
        made = prompt_of(make_body(data, api), before)
        assert (made.segments, made.settings.image) == ((), -1)
