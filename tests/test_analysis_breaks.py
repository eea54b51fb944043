"""What became of the parent's prefix: each cause by its name, and nothing called a break that is none."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxscope.analysis.breaks import judge_cache
from ctxscope.analysis.parents import ParentIndex, prompt, shared
from ctxscope.analysis.volatile import only_volatile
from ctxscope.model import Body, Segment, Usage
from tests.analysis_bodies import body

MARK = {"cache_control": {"type": "ephemeral"}}
LONG = "What does the file say, and why does it say so? " * 6
READ = {"name": "read", "description": "Reads.", "input_schema": {"type": "object", "properties": {"p": {}, "q": {}}}}
KEYS = {"name": "read", "description": "Reads.", "input_schema": {"properties": {"p": {}, "q": {}}, "type": "object"}}
WRITE = {"name": "write", "description": "Writes.", "input_schema": {"type": "object"}}
PIC = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "QUJD"}}
PIC2 = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "QUJE"}}


def result(text: str) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": "c1", "content": text}


MESSAGES: list[dict[str, Any]] = [
    {"role": "user", "content": [{"type": "text", "text": LONG}, PIC]},
    {
        "role": "assistant",
        "content": [
            {"type": "thinking", "thinking": "hm", "signature": "c2ln"},
            {"type": "text", "text": "Looking."},
            {"type": "tool_use", "id": "c1", "name": "read", "input": {"p": "x"}},
        ],
    },
    {"role": "user", "content": [result("a long result " * 20)]},
    {"role": "assistant", "content": "It says a long result, over and over."},
    {"role": "user", "content": [{"type": "text", "text": "And why is that so?"} | MARK]},
]
PARENT: dict[str, Any] = {
    "model": "claude-opus-4-5",
    "max_tokens": 100,
    "tools": [READ, WRITE],
    "system": [{"type": "text", "text": "You are terse. It is 2026-11-28 10:15."} | MARK],
    "messages": MESSAGES,
}
MORE = [
    {"role": "assistant", "content": "Because."},
    {"role": "user", "content": [{"type": "text", "text": "Ok."} | MARK]},
]


def request(**changes: Any) -> dict[str, Any]:
    """The parent's request, appended to; its last breakpoint moved on."""
    value = copy.deepcopy(PARENT)
    value["messages"][4]["content"] = [{"type": "text", "text": "And why is that so?"}]
    value["messages"] += copy.deepcopy(MORE)
    return value | changes


def messages(at: int, **changes: Any) -> dict[str, Any]:
    value = request()
    value["messages"][at] |= changes
    return value


def blocks(at: int, *items: Any) -> dict[str, Any]:
    return messages(at, content=list(items))


def without(*places: int) -> dict[str, Any]:
    value = request()
    value["messages"] = [m for n, m in enumerate(value["messages"]) if n not in places]
    return value


def inserted(at: int, *new: Any) -> dict[str, Any]:
    value = request()
    value["messages"][at:at] = new
    return value


NOTE = {"role": "user", "content": "A note in between."}
TOLD = MESSAGES[1]["content"]

CASES = [
    ("model_changed", "/model", request(model="claude-opus-4-8")),
    ("tool_added", "/system/0", request(tools=[READ, WRITE, KEYS | {"name": "grep"}])),
    ("tool_removed", "/tools/1", request(tools=[READ])),
    ("tool_reordered", "/tools/0", request(tools=[WRITE, READ])),
    ("tool_schema_changed", "/tools/1", request(tools=[READ, WRITE | {"description": "Saves."}])),
    ("tool_key_order", "/tools/0", request(tools=[KEYS, WRITE])),
    ("param_changed:thinking", "/thinking", request(thinking={"type": "enabled", "budget_tokens": 2048})),
    ("param_changed:tool_choice", "/tool_choice", request(tool_choice={"type": "any"})),
    (
        "volatile_content",
        "/system/0",
        request(system=[{"type": "text", "text": "You are terse. It is 2026-11-29 10:16."}]),
    ),
    (
        "system_changed",
        "/system/0",
        request(system=[{"type": "text", "text": "You are kind. It is 2026-11-28 10:15."}]),
    ),
    ("history_rewritten", "/messages/3/content", messages(3, content="It says nothing at all.")),
    ("message_inserted", "/messages/3/content", inserted(3, NOTE)),
    ("message_removed", "/messages/3/content", without(3)),
    ("tool_result_pruned", "/messages/2/content/0", blocks(2, result("[cleared]"))),
    (
        "image_stripped",
        "/messages/0/content/1",
        blocks(0, MESSAGES[0]["content"][0], {"type": "text", "text": "[image]"}),
    ),
    ("media_changed", "/messages/0/content/1", blocks(0, MESSAGES[0]["content"][0], PIC2)),
    ("reasoning_stripped_client", "/messages/1/content/0", blocks(1, *TOLD[1:])),
    (
        "compaction",
        "/messages/0/content/0",
        request(messages=[{"role": "user", "content": "Summary: they talked."}, *request()["messages"][3:]]),
    ),
]


@pytest.mark.parametrize(("cause", "path", "call"), CASES, ids=[c[0] for c in CASES])
def test_a_break_has_the_cause_and_place_of_what_was_changed(cause, path, call):
    verdict = judge_cache(body(call), body(PARENT))
    assert (verdict.verdict, verdict.cause, verdict.path) == ("break", cause, path)
    assert verdict.candidates == (cause,)
    assert verdict.confidence == "consistent"


def test_an_appended_call_with_moved_breakpoints_is_warm():
    verdict = judge_cache(body(request()), body(PARENT))
    assert (verdict.verdict, verdict.cause, verdict.lost_tokens) == ("warm", None, 0)
    assert verdict.facts == ("a breakpoint moved",)


def test_text_behind_the_last_breakpoint_was_never_cached():
    parent = copy.deepcopy(PARENT)
    parent["messages"][4]["content"] = "Not marked."
    parent["messages"][2]["content"][0] |= MARK
    changed = messages(3, content="Another answer.")
    assert judge_cache(body(changed), body(parent)).verdict == "warm"
    assert judge_cache(body(changed), body(PARENT)).verdict == "break"


def test_a_mark_for_the_whole_request_reaches_its_end():
    parent = copy.deepcopy(PARENT) | MARK
    parent["messages"][4]["content"] = "Not marked."
    assert judge_cache(body(messages(3, content="Another answer.")), body(parent)).verdict == "break"


def test_parameters_the_prompt_never_shows_break_nothing():
    for change in ({"max_tokens": 7}, {"temperature": 1}, {"stream": True}, {"tool_choice": {"type": "auto"}}):
        assert judge_cache(body(request(**change)), body(PARENT)).verdict == "warm"


def test_only_what_is_shown_of_a_parameter_counts():
    thinking = {"type": "enabled", "budget_tokens": 2048}
    parent = body(PARENT | {"thinking": thinking})
    assert judge_cache(body(request(thinking=thinking | {"display": "omitted"})), parent).verdict == "warm"


def test_a_parameter_of_the_messages_keeps_the_head():
    verdict = judge_cache(body(request(tool_choice={"type": "any"})), body(PARENT))
    head = sum(s.prompt_bytes for s in body(PARENT).segments if s.kind in ("tool", "system"))
    assert verdict.prefix_offset == head


def test_the_first_change_in_cache_order_is_blamed_and_the_others_are_named():
    call = request(system=[{"type": "text", "text": "You are kind."}], tools=[READ])
    verdict = judge_cache(body(call), body(PARENT))
    assert (verdict.cause, verdict.confidence) == ("tool_removed", "consistent")
    assert "system_changed" in verdict.why


def test_two_changes_at_one_place_are_ambiguous():
    call = request(model="other", speed="fast")
    verdict = judge_cache(body(call), body(PARENT))
    assert verdict.confidence == "ambiguous"
    assert verdict.candidates == ("model_changed", "param_changed:speed")


def test_a_logged_compaction_is_named_whatever_the_bytes_look_like():
    call = messages(3, content="It says nothing at all.")
    verdict = judge_cache(body(call), body(PARENT), markers=("micro",))
    assert (verdict.verdict, verdict.cause) == ("break", "compaction")
    alone = judge_cache(body(request(messages=[NOTE])), body(PARENT), markers=("compaction",))
    assert (alone.verdict, alone.cause) == ("break", "compaction")


def test_a_branch_left_on_purpose_costs_nothing():
    call = messages(3, content="Another answer.")
    verdict = judge_cache(body(call), body(PARENT), branched=True)
    assert (verdict.verdict, verdict.lost_tokens, verdict.cause) == ("warm", 0, None)


def test_another_task_that_shares_the_head_is_no_break():
    call = request(messages=[{"role": "user", "content": "Give this a title."}])
    assert judge_cache(body(call), body(PARENT)).verdict == "warm"
    verdict = judge_cache(body(call), body(PARENT), usage=Usage(input=50, cache_read=0))
    assert (verdict.verdict, verdict.lost_tokens, verdict.confidence) == ("cold", 0, "confirmed")


def test_a_call_sent_again_loses_nothing():
    assert judge_cache(body(PARENT), body(PARENT)).verdict == "warm"
    assert judge_cache(body(PARENT), body(request())).verdict == "warm"


def test_a_first_call_is_cold_unless_something_was_read():
    assert judge_cache(body(PARENT), None).verdict == "cold"
    assert judge_cache(body(PARENT), None, usage=Usage(cache_read=0)).confidence == "confirmed"
    assert judge_cache(body(PARENT), None, usage=Usage(cache_read=900)).verdict == "warm"


def test_what_cannot_be_read_is_unknown():
    opaque = Body(b"{", "anthropic-messages", (Segment("", 0, 1, "opaque"),))
    assert judge_cache(None, body(PARENT)).verdict == "unknown"
    assert judge_cache(opaque, body(PARENT)).verdict == "unknown"
    assert judge_cache(body(PARENT), opaque).verdict == "unknown"
    assert judge_cache(Body(b"{}", None, ()), body(PARENT)).verdict == "unknown"


# --- what was reported -----------------------------------------------------------------------------------------------

WROTE = Usage(input=10, cache_read=400, cache_write=600, output=5)


@pytest.mark.parametrize(
    ("read", "verdict", "lost"), [(1000, "warm", 0), (0, "miss", 1000), (400, "miss", 600), (None, "warm", 0)]
)
def test_an_intact_prefix_must_be_read_as_far_as_it_was_kept(read, verdict, lost):
    usage = Usage(input=20, cache_read=read, cache_write=50)
    found = judge_cache(body(request()), body(PARENT), usage=usage, parent_usage=WROTE, gap_seconds=400)
    assert (found.verdict, found.lost_tokens, found.expected_read) == (verdict, lost, (1000, 1000))


def test_a_prefix_below_the_minimum_is_cold():
    found = judge_cache(
        body(request()), body(PARENT), usage=Usage(9, 0, 0), parent_usage=Usage(input=9, cache_read=0, cache_write=0)
    )
    assert (found.verdict, found.confidence) == ("cold", "confirmed")


def test_a_break_is_confirmed_when_less_was_read_than_was_kept():
    call = messages(3, content="It says nothing at all.")
    found = judge_cache(body(call), body(PARENT), usage=Usage(600, 0, 0), parent_usage=WROTE)
    assert found.confidence == "confirmed"
    parent = body(PARENT)
    from_break = sum(s.prompt_bytes for s in prompt(parent) if s.order >= (2, 6))
    whole = sum(s.prompt_bytes for s in prompt(parent))
    assert found.lost_tokens == round(from_break * 1010 / whole)


def test_a_break_that_usage_contradicts_is_not_confirmed():
    call = messages(3, content="It says nothing at all.")
    found = judge_cache(body(call), body(PARENT), usage=Usage(0, 1000, 0), parent_usage=WROTE)
    assert found.confidence == "ambiguous"


def test_lost_tokens_are_unknown_without_the_parents_usage():
    assert judge_cache(body(request(tools=[READ])), body(PARENT)).lost_tokens is None


CHAT = "openai-chat"


@pytest.mark.parametrize(("read", "verdict"), [(9856, "warm"), (0, "miss"), (None, "warm")])
def test_an_automatic_cache_is_judged_by_a_range(read, verdict):
    found = judge_cache(
        body(request(), CHAT), body(PARENT, CHAT), usage=Usage(100, read), parent_usage=Usage(10_000, 0)
    )
    assert found.verdict == verdict


def test_nothing_read_of_a_short_prompt_says_nothing():
    found = judge_cache(body(request(), CHAT), body(PARENT, CHAT), usage=Usage(100, 0), parent_usage=Usage(900, 0))
    assert (found.verdict, found.confidence, found.lost_tokens) == ("unknown", "ambiguous", None)


def test_a_last_message_that_goes_on_is_no_break_for_a_cache_of_tokens():
    parent = {"model": "m", "messages": [NOTE, {"role": "assistant", "content": "So it"}]}
    call = {"model": "m", "messages": [NOTE, {"role": "assistant", "content": "So it goes."}]}
    assert judge_cache(body(call, CHAT), body(parent, CHAT)).verdict == "warm"
    call["messages"][1]["content"] = "Thus it goes."
    assert judge_cache(body(call, CHAT), body(parent, CHAT)).verdict == "break"


def test_spelling_the_provider_cannot_see_is_a_fact():
    parent = body(PARENT)
    spelled = b'{"type": "text","text":"Looking."}'
    at = next(s for s in parent.segments if s.path == "/messages/1/content/1")
    data = parent.data[: at.start] + spelled + parent.data[at.end :]
    moved = tuple(
        Segment(
            **{n: getattr(s, n) for n in s.__dataclass_fields__}
            | {"start": s.start + (s.start > at.start), "end": s.end + (s.end >= at.end)}
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
    plain = [{"role": "user", "content": [{"type": "text", "text": t}]} for t in texts]
    assert judge_cache(body(PARENT | {"messages": plain}), parent).verdict == "warm"


# --- volatile text ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("first", "second", "volatile"),
    [
        ("Date: 2026-11-28", "Date: 2026-11-29", True),
        ("now 2026-11-28T10:15:00.123Z", "now 2026-11-28T10:15:07.9Z", True),
        ("Today is Sunday, November 29, 2026 (UTC)", "Today is Monday, November 30, 2026 (UTC)", True),
        ("at 9:05 pm", "at 11:40 AM", True),
        ("run 0f8fad5b-d9cb-469f-a165-70867728950e", "run 7c9e6679-7425-40de-944b-e07fc1f90ae7", True),
        ("cch=1a2b3;", "cch=99f01;", True),
        ("pid 12345678", "pid 12399999", True),
        ("use at most 3 tools", "use at most 5 tools", False),
        ("be kind", "be terse", False),
        ("Date: 2026-11-28, be kind", "Date: 2026-11-29, be terse", False),
        ("same", "same", False),
        ("a decade", "a facade", False),
        ("sunny 12", "money 12", False),
        ("marked 3", "decided 3", False),
    ],
)
def test_only_clocks_and_ids_are_volatile(first, second, volatile):
    assert only_volatile(first, second) is volatile


# --- parents ---------------------------------------------------------------------------------------------------------


def chain(*digests: int) -> list[Segment]:
    return [Segment(f"/messages/{n}", n, n + 1, "message", digest=bytes([d])) for n, d in enumerate(digests)]


def test_the_parent_shares_the_longest_prefix_and_of_equals_is_the_latest():
    index = ParentIndex()
    assert index.find(chain(1, 2)) == (None, 0)
    index.add(1, chain(1, 2, 3))
    index.add(2, chain(1, 2, 4))
    index.add(3, chain(9))
    assert index.find(chain(1, 2, 3, 5)) == (1, 3)
    assert index.find(chain(1, 2, 7)) == (2, 2)
    assert index.find(chain(1)) == (2, 1)
    assert index.find(chain(8, 2)) == (None, 0)


@given(st.lists(st.lists(st.integers(0, 2), max_size=6), max_size=14), st.lists(st.integers(0, 2), max_size=6))
def test_the_index_finds_what_a_search_through_all_calls_finds(earlier, call):
    index = ParentIndex()
    best: tuple[int | None, int] = (None, 0)
    for n, digests in enumerate(earlier, 1):
        index.add(n, chain(*digests))
        common = shared(digests, call)
        if common and common >= best[1]:
            best = (n, common)
    assert index.find(chain(*call)) == best


@given(st.lists(st.integers(0, 1)), st.lists(st.integers(0, 1)))
def test_shared_is_the_length_of_the_common_beginning(first, second):
    expected = next(
        (n for n, (a, b) in enumerate(zip(first, second, strict=False)) if a != b), min(len(first), len(second))
    )
    assert shared(first, second) == expected
