"""What became of the parent's prefix: each cause by its name, and nothing called a break that is none."""

from __future__ import annotations

import copy

import pytest

from ctxscope.analysis.providers import UNKNOWN
from ctxscope.analysis.volatile import only_volatile
from ctxscope.model import Body, Segment, Usage
from tests.analysis_bodies import body
from tests.analysis_judging import judge_cache
from tests.analysis_requests import (
    KEYS,
    MARK,
    MESSAGES,
    NOTE,
    PARENT,
    PIC2,
    READ,
    TOLD,
    WRITE,
    blocks,
    inserted,
    messages,
    request,
    result,
    without,
)

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
    ("history_rewritten", "/messages/1/content/0", blocks(1, TOLD[0] | {"signature": "Qother"}, *TOLD[1:])),
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


def test_of_a_provider_nobody_knows_a_read_confirms_no_more_than_its_tokens():
    """How much of an intact prompt could have been read is not known there, so a part of it proves nothing."""
    usage = {"usage": Usage(3500, 1500, None, 5), "parent_usage": Usage(5000, 0, None, 5)}
    told = judge_cache(body(request()), body(PARENT), provider=UNKNOWN, **usage)
    assert (told.verdict, told.confidence, told.expected_read) == ("warm", "consistent", None)
    assert "1,500 tokens were read" in told.why


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
    call = request(verbosity="low", reasoning_effort="low")
    verdict = judge_cache(body(call, "openai-chat"), body(PARENT, "openai-chat"))
    assert verdict.confidence == "ambiguous"
    assert verdict.candidates == ("param_changed:reasoning_effort", "param_changed:verbosity")


def test_a_logged_compaction_is_named_whatever_the_bytes_look_like():
    call = messages(3, content="It says nothing at all.")
    verdict = judge_cache(body(call), body(PARENT), markers=("micro",))
    assert (verdict.verdict, verdict.cause) == ("break", "compaction")
    alone = judge_cache(body(request(messages=[NOTE])), body(PARENT), markers=("compaction",))
    assert (alone.verdict, alone.cause) == ("break", "compaction")


def test_a_question_kept_without_the_replies_to_it_was_summed_up():
    """Who goes back to a message takes it back, and leaves no question unanswered before the next."""
    call = request(messages=[MESSAGES[0], {"role": "user", "content": "What was said so far, in short."}])
    usage, kept = Usage(input=50, cache_read=100, cache_write=60), Usage(input=10, cache_read=0, cache_write=1000)
    verdict = judge_cache(body(call), body(PARENT), usage=usage, parent_usage=kept)
    assert (verdict.verdict, verdict.lost_tokens) == ("break", 900)
    back = request(messages=[*MESSAGES[:4], {"role": "user", "content": "No, ask another thing."}])
    verdict = judge_cache(body(back), body(request()), usage=usage, parent_usage=kept)
    assert (verdict.confidence, verdict.lost_tokens) == ("ambiguous", None)


def test_a_branch_left_on_purpose_costs_nothing():
    call = messages(3, content="Another answer.")
    verdict = judge_cache(body(call), body(PARENT), branched=True)
    assert (verdict.verdict, verdict.lost_tokens, verdict.cause) == ("warm", 0, None)


def test_another_task_that_shares_the_head_is_no_break():
    call = request(messages=[{"role": "user", "content": "Give this a title."}])
    assert judge_cache(body(call), body(PARENT)).verdict == "warm"
    verdict = judge_cache(body(call), body(PARENT), usage=Usage(input=50, cache_read=0))
    assert (verdict.verdict, verdict.lost_tokens, verdict.confidence) == ("cold", 0, "confirmed")


def test_that_two_calls_are_of_two_tasks_is_sure_only_when_the_log_says_so():
    call = request(messages=[{"role": "user", "content": "Give this a title."}])
    usage = Usage(input=50, cache_read=40)
    assert judge_cache(body(call), body(PARENT), usage=usage).confidence == "consistent"
    assert judge_cache(body(call), body(PARENT), usage=usage, foreign=True).confidence == "confirmed"


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
        ("Working directory: /srv/a", "Working directory: /srv/b", True),
        ("git status: branch main, 3 files modified", "git status: branch main, 4 files modified, clean", True),
        (" M src/a.py\n?? b.txt\n", "M  src/c.py\n", True),
        ("Tokens used so far: 18432 of 200000", "Tokens used so far: 23917 of 200000", True),
        ("git status: clean when done. Then stop.", "git status: clean when done. Then go on.", False),
        ("A dog.\n", "A cat.\n", False),
        ("keep it under 2000 tokens", "keep it under 1000 tokens", False),
        ("when 80% of tokens", "when 90% of tokens", False),
        ("deploy on Friday", "deploy on Monday", False),
        ("Timeout is 10:00", "Timeout is 20:00", False),
        ("in #ff0000", "in #00ff00", False),
        ("M " + "." * 20_000 + " x", "M " + "." * 20_000 + " y", False),
    ],
)
def test_only_clocks_and_ids_are_volatile(first, second, volatile):
    assert only_volatile(first, second) is volatile
