"""Verdicts beside what was reported: exact numbers, a host's rounding, the provider's own word."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxscope.analysis.evidence import heeded
from ctxscope.analysis.prompts import prompt
from ctxscope.analysis.providers import UNKNOWN
from ctxscope.model import Body, CacheVerdict, Segment, Usage
from tests.analysis_bodies import body
from tests.analysis_judging import judge_cache
from tests.analysis_requests import MARK, NOTE, PARENT, READ, messages, request

CHAT = "openai-chat"
WROTE = Usage(input=10, cache_read=400, cache_write=600, output=5)


def plain(value: dict[str, Any]) -> dict[str, Any]:
    """A request without a cache mark."""
    value = copy.deepcopy(value)
    for holder in (*value["system"], *(b for m in value["messages"] for b in m["content"] if isinstance(b, dict))):
        holder.pop("cache_control", None)
    return value


EDITED = messages(3, content="It says nothing at all.")


@pytest.mark.parametrize(
    ("read", "verdict", "lost"), [(1000, "warm", 0), (0, "miss", 1000), (400, "miss", 600), (None, "warm", 0)]
)
def test_an_intact_prefix_must_be_read_as_far_as_it_was_kept(read, verdict, lost):
    usage = Usage(input=20, cache_read=read, cache_write=1050 - (read or 0))
    found = judge_cache(body(request()), body(PARENT), usage=usage, parent_usage=WROTE, gap=400)
    assert (found.verdict, found.lost_tokens, found.expected_read) == (verdict, lost, (1000, 1000))
    assert not found.lost_estimated


@pytest.mark.parametrize(("read", "verdict"), [(986, "warm"), (744, "warm"), (743, "miss"), (0, "miss")])
def test_a_read_that_ends_at_no_entry_is_a_matter_of_counting_up_to_one_unit(read, verdict):
    usage = Usage(input=20, cache_read=read, cache_write=1050 - read)
    found = judge_cache(body(request()), body(PARENT), usage=usage, parent_usage=WROTE, provider=UNKNOWN)
    assert (found.verdict, found.confidence) == (verdict, "consistent")


def test_a_read_that_ends_at_the_parents_own_entry_is_a_miss_however_short():
    wrote = Usage(input=10, cache_read=900, cache_write=100)
    found = judge_cache(body(request()), body(PARENT), usage=Usage(20, 900, 150), parent_usage=wrote)
    assert (found.verdict, found.lost_tokens) == ("miss", 100)


def test_no_more_can_be_read_than_is_sent():
    """A continued thread whose host counts only what is new."""
    found = judge_cache(
        body(request()), body(PARENT), usage=Usage(4, 754, 65), parent_usage=Usage(4, 0, 1453), provider=UNKNOWN
    )
    assert (found.verdict, found.expected_read) == ("warm", (823, 823))


def test_a_prefix_below_the_minimum_is_cold_whatever_changed():
    nothing = Usage(input=800, cache_read=0, cache_write=0)
    for call in (request(), EDITED, request(system=[{"type": "text", "text": "You are kind."}])):
        found = judge_cache(body(call), body(PARENT), usage=Usage(900, 0, 0), parent_usage=nothing)
        assert (found.verdict, found.confidence, found.cause) == ("cold", "confirmed", "below_minimum")
        assert found.lost_tokens == 0
    long = Usage(input=9000, cache_read=0, cache_write=0)
    assert judge_cache(body(request()), body(PARENT), usage=Usage(9100, 0, 0), parent_usage=long).cause is None


def test_without_a_mark_nothing_is_kept_and_nothing_missed():
    call, parent = body(plain(request())), body(plain(PARENT))
    found = judge_cache(call, parent, usage=Usage(9000, 0, 0), parent_usage=Usage(8000, 0, 0))
    assert (found.verdict, found.cause, found.confidence) == ("cold", "breakpoint_missing", "confirmed")
    edited = body(plain(EDITED))
    assert judge_cache(edited, parent, parent_usage=Usage(8000, 0, 0)).verdict == "cold"
    assert judge_cache(edited, parent, usage=Usage(8000, 0, 0)).verdict == "cold"
    assert judge_cache(edited, parent).cause == "breakpoint_missing"
    assert judge_cache(edited, parent, provider=UNKNOWN).cause == "history_rewritten"


def test_a_host_that_keeps_without_marks_shows_it_by_its_reads():
    call, parent = body(plain(request())), body(plain(PARENT))
    kept = Usage(input=1000, cache_read=7000, cache_write=0)

    def verdict(call: Body, usage: Usage) -> str:
        return judge_cache(call, parent, usage=usage, parent_usage=kept, provider=UNKNOWN).verdict

    assert verdict(call, Usage(1000, 8000, 0)) == "warm"
    assert verdict(call, Usage(9000, 0, 0)) == "miss"
    assert verdict(body(plain(EDITED)), Usage(9000, 0, 0)) == "break"


@pytest.mark.parametrize(("read", "verdict"), [(9856, "warm"), (0, "miss"), (None, "warm")])
def test_an_automatic_cache_is_judged_by_a_range(read, verdict):
    usage = Usage(10_100 - (read or 0), read)
    call, parent = (body(value | {"model": "gpt-4o"}, CHAT) for value in (request(), PARENT))
    found = judge_cache(call, parent, usage=usage, parent_usage=Usage(10_000, 0))
    assert found.verdict == verdict
    assert found.lost_estimated is (verdict == "miss")


def test_nothing_read_of_a_short_prompt_says_nothing():
    call, parent = body(request(), CHAT), body(PARENT, CHAT)
    found = judge_cache(call, parent, usage=Usage(1000, 0), parent_usage=Usage(900, 0), provider=UNKNOWN)
    assert (found.verdict, found.confidence, found.lost_tokens) == ("unknown", "ambiguous", None)


# --- breaks ----------------------------------------------------------------------------------------------------------

KIND = request(system=[{"type": "text", "text": "You are kind. It is 2026-11-28 10:15."}])


def test_a_break_is_confirmed_and_its_loss_exact_when_less_was_read_than_was_kept():
    found = judge_cache(body(KIND), body(PARENT), usage=Usage(600, 0, 500), parent_usage=WROTE)
    assert (found.cause, found.confidence) == ("system_changed", "confirmed")
    assert (found.lost_tokens, found.lost_estimated) == (1000, False)


def test_a_loss_nobody_reported_is_a_share_of_the_parent_by_bytes():
    found = judge_cache(body(EDITED, CHAT), body(PARENT, CHAT), parent_usage=Usage(1000, 0))
    parent = prompt(body(PARENT, CHAT))
    behind = sum(s.prompt_bytes for s in parent if s.order >= (2, 6))
    assert found.lost_tokens == round(1000 * behind / sum(s.prompt_bytes for s in parent))
    assert found.lost_estimated


def test_a_break_that_usage_contradicts_is_not_confirmed():
    found = judge_cache(body(EDITED), body(PARENT), usage=Usage(50, 1000, 0), parent_usage=WROTE)
    assert (found.confidence, found.lost_tokens) == ("ambiguous", 0)
    assert "yet all that was kept was read" in found.why


def test_more_read_than_lies_before_the_change_does_not_confirm_it():
    wrote = Usage(input=10, cache_read=0, cache_write=9000)
    found = judge_cache(body(KIND), body(PARENT), usage=Usage(10, 8000, 1000), parent_usage=wrote)
    assert (found.verdict, found.confidence) == ("break", "consistent")


def test_a_cause_the_bytes_leave_open_is_never_confirmed():
    usage = Usage(600, 0, 500)
    alone = judge_cache(body(EDITED), body(PARENT), usage=usage, parent_usage=WROTE)
    assert (alone.cause, alone.confidence) == ("history_rewritten", "confirmed")
    more = copy.deepcopy(EDITED)
    more["messages"][4]["content"] = "Why, though?"
    open_ = judge_cache(body(more), body(PARENT), usage=usage, parent_usage=WROTE)
    assert (open_.cause, open_.confidence) == ("history_rewritten", "consistent")


def test_a_parameter_of_which_the_sources_disagree_breaks_nothing_when_all_was_read():
    call = body(request(speed="fast"))
    broken = judge_cache(call, body(PARENT), usage=Usage(50, 400, 600), parent_usage=WROTE)
    assert (broken.verdict, broken.cause, broken.path) == ("break", "model_changed", "/speed")
    intact = judge_cache(call, body(PARENT), usage=Usage(50, 1000, 0), parent_usage=WROTE)
    assert (intact.verdict, intact.confidence) == ("warm", "confirmed")
    assert "the parameter speed changed, and all that was kept was read" in intact.facts


def test_lost_tokens_are_unknown_without_the_parents_usage():
    found = judge_cache(body(request(tools=[READ])), body(PARENT))
    assert (found.lost_tokens, found.lost_estimated) == (None, False)


# --- the provider's own word -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("says", "confidence", "candidates"),
    [
        ("system_changed (700 tokens)", "confirmed", ("system_changed",)),
        ("cache_miss: input_changed (700 tokens)", "confirmed", ("system_changed",)),
        ("messages_changed (700 tokens)", "ambiguous", ("system_changed", "history_rewritten")),
        ("cache_miss: context_compacted", "ambiguous", ("system_changed", "compaction")),
        ("cache_hit", "ambiguous", ("system_changed",)),
        ("unavailable", "consistent", ("system_changed",)),
        ("pending", "consistent", ("system_changed",)),
    ],
)
def test_the_providers_reason_counts(says, confidence, candidates):
    found = judge_cache(body(KIND), body(PARENT), provider_says=says)
    assert (found.verdict, found.cause) == ("break", "system_changed")
    assert (found.confidence, found.candidates, found.provider_says) == (confidence, candidates, says)
    assert ("the provider says otherwise" in found.why) is (confidence == "ambiguous")


def test_a_provider_that_sees_a_change_where_the_bytes_have_none_is_heard():
    found = judge_cache(body(request()), body(PARENT), provider_says="messages_changed (700 tokens)")
    assert (found.verdict, found.confidence) == ("warm", "ambiguous")
    assert "messages_changed" in found.why
    assert judge_cache(body(request()), body(PARENT), provider_says="cache_hit").confidence == "confirmed"


# --- what is no break ------------------------------------------------------------------------------------------------


def test_the_beginning_of_the_parents_prompt_alone_loses_nothing():
    short = copy.deepcopy(PARENT)
    short["messages"] = short["messages"][:3]
    short["messages"][2]["content"][0] |= MARK
    known = {"parent_usage": Usage(input=3, cache_read=2000, cache_write=500)}
    found = judge_cache(body(short), body(PARENT), usage=Usage(3, 2200, 0), **known)
    assert (found.verdict, found.lost_tokens, found.expected_read) == ("warm", 0, (2000, 2203))
    assert "the beginning of its parent's prompt, 2 segments less" in found.why
    missed = judge_cache(body(short), body(PARENT), usage=Usage(3, 0, 2200), **known)
    assert (missed.verdict, missed.lost_tokens) == ("miss", 2000)
    far = judge_cache(body(short), body(PARENT), usage=Usage(3, 0, 1500), **known)
    assert (far.verdict, far.expected_read) == ("unknown", (0, 1503))
    assert judge_cache(body(short, CHAT), body(PARENT, CHAT)).lost_tokens == 0


TOPICS = {"system": [{"type": "text", "text": "You find topics."}]}


@pytest.mark.parametrize("change", [{"model": "small", "tools": []}, {"tools": [READ]}])
def test_next_to_no_prefix_with_another_model_or_tools_on_one_side_is_another_task(change):
    call, parent = request(**TOPICS, **change), PARENT | {"tools": []}
    found = judge_cache(body(call), body(parent), usage=Usage(700, 0, 0), parent_usage=WROTE)
    assert (found.verdict, found.lost_tokens) == ("cold", 0)
    logged = judge_cache(body(call), body(parent), markers=("resume",))
    assert logged.verdict == "break"
    assert judge_cache(body(request(**TOPICS, tools=[])), body(parent)).cause == "system_changed"


def test_tokens_read_where_nothing_is_shared_come_from_another_call():
    other = {"model": PARENT["model"], "messages": [{"role": "user", "content": "Unlike anything before."}]}
    found = judge_cache(body(other, CHAT), body(PARENT, CHAT), usage=Usage(10, 5000))
    assert (found.verdict, found.reported_read) == ("warm", 5000)
    assert "5000 tokens were read" in found.why


def test_a_last_message_that_goes_on_is_no_break_for_a_cache_of_tokens():
    parent = {"model": "m", "messages": [NOTE, {"role": "assistant", "content": "So it"}]}
    call = {"model": "m", "messages": [NOTE, {"role": "assistant", "content": "So it goes."}]}
    assert judge_cache(body(call, CHAT), body(parent, CHAT)).verdict == "warm"
    call["messages"][1]["content"] = "Thus it goes."
    assert judge_cache(body(call, CHAT), body(parent, CHAT)).verdict == "break"


def test_what_was_reported_and_cannot_be_is_a_fact():
    found = judge_cache(body(request()), body(PARENT), doubts=("1800 of 1000 tokens",))
    assert "1800 of 1000 tokens" in found.facts


def test_spelling_the_provider_cannot_see_is_a_fact():
    parent = body(PARENT)
    spelled = b'{"type": "text","text":"Looking."}'
    at = next(s for s in parent.segments if s.path == "/messages/1/content/1")
    data = parent.data[: at.start] + spelled + parent.data[at.end :]
    moved = tuple(
        Segment(
            **{n: getattr(s, n) for n in s.__dataclass_fields__}
            | {"start": s.start + (s.start > at.start), "end": s.end + (s.end >= at.end)}
            | {"digest": bytes(bytearray(s.digest))}
        )
        for s in parent.segments
    )
    found = judge_cache(Body(data, parent.api, moved, parent.model), parent)
    assert (found.verdict, found.facts) == ("warm", ("json_serialisation_drift",))


@given(st.lists(st.sampled_from("abc"), max_size=6), st.integers(0, 6), st.integers(0, 3))
def test_a_prompt_that_begins_with_its_parents_is_never_a_break(texts, cut, mark):
    made = [
        {"role": "user", "content": [{"type": "text", "text": t} | (MARK if n == mark else {})]}
        for n, t in enumerate(texts)
    ]
    parent = body(PARENT | {"messages": made[:cut]})
    plain_ = [{"role": "user", "content": [{"type": "text", "text": t}]} for t in texts]
    assert judge_cache(body(PARENT | {"messages": plain_}), parent).verdict == "warm"


def test_a_change_before_all_that_was_read_is_doubted():
    """Usage contradicts the bytes: that is told, where a provider reports no writes too."""
    call, parent = body(plain(EDITED), CHAT), body(plain(PARENT), CHAT)
    kept = Usage(input=10_000, cache_read=0)
    found = judge_cache(call, parent, usage=Usage(100, 9984), parent_usage=kept)
    assert (found.verdict, found.confidence) == ("break", "ambiguous")
    assert "yet all that was kept was read" in found.why
    found = judge_cache(call, parent, usage=Usage(4100, 5984), parent_usage=kept)
    assert "yet all" not in found.why


@pytest.mark.parametrize(
    ("about", "cause"), [({"gap": 7200.0}, "ttl_expired"), ({"ready": False}, "concurrency_not_ready")]
)
def test_what_may_be_seen_is_not_blamed_alone_where_something_else_explains_the_loss(about, cause):
    call = request()
    for place, key in ((1, "id"), (2, "tool_use_id")):
        call["messages"][place] = copy.deepcopy(call["messages"][place])
        call["messages"][place]["content"][-1][key] = "c9"
    usage = Usage(input=20, cache_read=0, cache_write=1050)
    found = judge_cache(body(call), body(PARENT), usage=usage, parent_usage=WROTE, gap=20.0)
    assert found.candidates == ("assistant_echo_mismatch",)
    found = judge_cache(body(call), body(PARENT), usage=usage, parent_usage=WROTE, **about)
    assert found.candidates == ("assistant_echo_mismatch", cause)
    assert found.confidence == "ambiguous"


@pytest.mark.parametrize("cause", ["routing_changed", "isolation_changed"])
def test_a_miss_whose_cause_the_provider_gives_too_is_no_disagreement(cause):
    verdict = CacheVerdict("miss", cause, (cause,), "consistent", why="it looks elsewhere")
    found = heeded(verdict, "cache_miss: prompt_cache_key_changed (4990 tokens)")
    assert (found.confidence, found.candidates, found.why) == ("confirmed", (cause,), "it looks elsewhere")
    assert heeded(verdict, "tools_changed (700 tokens)").confidence == "ambiguous"
