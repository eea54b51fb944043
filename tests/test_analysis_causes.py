"""Causes that stand apart from plain edits: presence of media, parameters, clocks in messages, what only looks compacted."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from ctxscope import wire
from ctxscope.analysis.prompts import prompt_of
from ctxscope.analysis.providers import UNKNOWN
from ctxscope.analysis.tokens import Counter
from ctxscope.model import CacheVerdict
from ctxscope.wire.body import make_body
from tests.analysis_bodies import body
from tests.analysis_judging import judge_cache
from tests.analysis_requests import MARK, MESSAGES, MORE, PARENT, PIC, READ, WRITE, messages, request, result

CHAT = "openai-chat"
HEAD = sum(s.prompt_bytes for s in body(PARENT).segments if s.kind in ("tool", "system"))
TOOLS = sum(s.prompt_bytes for s in body(PARENT).segments if s.kind == "tool")
BARE = copy.deepcopy(PARENT)
BARE["messages"][0]["content"] = BARE["messages"][0]["content"][:1]
"""The parent without its only image."""


def grown(parent: dict[str, Any], *new: dict[str, Any]) -> dict[str, Any]:
    """A request that appends to its parent, its last mark moved on."""
    value = copy.deepcopy(parent)
    value["messages"][-1]["content"] = [{"type": "text", "text": "And why is that so?"}]
    value["messages"] += copy.deepcopy([*new, *MORE])
    return value


def judged(call: dict[str, Any], parent: dict[str, Any] = PARENT, **more: Any) -> CacheVerdict:
    return judge_cache(body(call), body(parent), **more)


# --- parameters and what acts like one -------------------------------------------------------------------------------


@pytest.mark.parametrize("block", [PIC, result("")], ids=["image", "in a tool result"])
def test_the_first_image_loses_all_messages_and_keeps_the_head(block):
    holder = block if block is PIC else block | {"content": [PIC]}
    call = grown(BARE, {"role": "assistant", "content": "Look."}, {"role": "user", "content": [holder]})
    found = judged(call, BARE)
    assert (found.verdict, found.cause) == ("break", "param_changed:images")
    assert (found.path, found.prefix_offset) == ("/messages/6/content/0", HEAD)
    assert judged(grown(PARENT, {"role": "user", "content": [holder]})).verdict == "warm"
    assert judge_cache(body(call, CHAT), body(BARE, CHAT)).verdict == "warm"


def test_the_last_image_that_leaves_takes_all_messages_along():
    call = messages(0, content=[MESSAGES[0]["content"][0], {"type": "text", "text": "[image]"}])
    found = judged(call)
    assert (found.cause, found.prefix_offset) == ("image_stripped", HEAD)
    call["messages"].append({"role": "user", "content": [PIC]})
    kept = judged(call)
    assert kept.cause == "image_stripped"
    assert kept.prefix_offset is not None
    assert kept.prefix_offset > HEAD


def test_citations_switched_on_lose_the_system_text_too():
    document = {"type": "document", "source": {"type": "text", "data": "x"}, "citations": {"enabled": True}}
    found = judged(grown(PARENT, {"role": "user", "content": [document]}))
    assert (found.cause, found.prefix_offset) == ("param_changed:citations", TOOLS)
    off = document | {"citations": {"enabled": False}}
    assert judged(grown(PARENT, {"role": "user", "content": [off]})).verdict == "warm"


def test_a_web_tool_switched_on_keeps_the_tools():
    web = {"type": "web_search_20250305", "name": "web_search"}
    found = judged(request(tools=[READ, WRITE, web]))
    assert (found.cause, found.path, found.prefix_offset) == ("param_changed:web_tools", "/tools/2", TOOLS)
    off = judged(request(), PARENT | {"tools": [READ, WRITE, web]})
    assert (off.cause, off.path) == ("param_changed:web_tools", "/tools/2")
    both = judged(request(tools=[READ, WRITE | {"description": "Saves."}, web]))
    assert both.cause == "tool_schema_changed"


def test_speed_goes_by_the_name_of_the_model_and_keeps_the_tools():
    found = judged(request(speed="fast"))
    assert (found.cause, found.path, found.prefix_offset) == ("model_changed", "/speed", TOOLS)
    assert judged(request(speed="standard")).verdict == "warm"


def betas(now: str, before: str) -> dict[str, object]:
    return {"headers": ({"anthropic-beta": now}, {"anthropic-beta": before})}


def test_another_set_of_beta_features_loses_the_messages():
    found = judged(request(), **betas("a-2026,b-2026", "a-2026"))
    assert (found.cause, found.path, found.prefix_offset) == ("param_changed:betas", "anthropic-beta", HEAD)
    assert judged(request(), **betas("a-2026, b-2026", "b-2026,a-2026")).verdict == "warm"
    assert judge_cache(body(request(), CHAT), body(PARENT, CHAT), **betas("a", "b")).verdict == "warm"


def test_the_service_tier_separates_caches_at_openai_only():
    call = request(service_tier="priority")
    assert judge_cache(body(call, CHAT), body(PARENT, CHAT)).cause == "param_changed:service_tier"
    assert judge_cache(body(request(service_tier="auto"), CHAT), body(PARENT, CHAT)).verdict == "warm"
    assert judged(call).verdict == "warm"


# --- clocks ----------------------------------------------------------------------------------------------------------

LATE, LATER = "It is 2026-11-28 10:15:00. Go on.", "It is 2026-11-28 10:15:09. Go on."


def test_a_clock_in_a_message_is_volatile_content():
    parent = copy.deepcopy(PARENT)
    parent["messages"][3]["content"] = LATE
    ticked = messages(3, content=LATER)
    assert judged(ticked, parent).cause == "volatile_content"
    assert judged(messages(3, content=LATER + " Now."), parent).cause == "history_rewritten"


def test_a_billing_line_is_volatile_but_to_the_api_that_takes_it_out():
    from ctxscope.model import Usage  # noqa: PLC0415 - only here

    line = "x-anthropic-billing-header: cc_version=2.1.3.f; cc_entrypoint=cli; cch={};"
    parent = PARENT | {"system": [{"type": "text", "text": line.format("abcde")} | MARK]}
    call = request(system=[{"type": "text", "text": line.format("fbcda")}])
    wrote = Usage(input=10, cache_read=0, cache_write=1000)
    assert judged(call, parent).verdict == "warm"
    assert judged(call, parent, usage=Usage(50, 0, 1000), parent_usage=wrote).verdict == "miss"
    other = {"parent_usage": wrote, "provider": UNKNOWN}
    assert judged(call, parent, provider=UNKNOWN).cause == "volatile_content"
    assert judged(call, parent, usage=Usage(50, 1000, 0), **other).verdict == "warm"
    assert judged(call, parent, usage=Usage(50, 0, 1000), **other).confidence == "confirmed"
    clock = judged(
        request(system=[{"type": "text", "text": LATER}]),
        PARENT | {"system": [{"type": "text", "text": LATE} | MARK]},
        usage=Usage(50, 1000, 0),
        parent_usage=wrote,
    )
    assert (clock.verdict, clock.confidence) == ("break", "ambiguous")


# --- compaction ------------------------------------------------------------------------------------------------------


def chat(*texts: str) -> dict[str, Any]:
    roles = ("user", "assistant")
    return {"model": "m", "messages": [{"role": roles[n % 2], "content": t} for n, t in enumerate(texts)]}


LONG = "the quick brown fox " * 400


@pytest.mark.parametrize(
    ("before", "now", "cause"),
    [
        ((LONG + "a!", "ok", "go"), (LONG + "b", "ok", "go"), "history_rewritten"),
        ((LONG, "ok " * 50, "go"), ("fox", "ok " * 50, "go"), "history_rewritten"),
        (("one " * 60, "two " * 60, "three " * 60), ("one, " * 60, "two, " * 60, "three, " * 60), "history_rewritten"),
        ((LONG, "ok", LONG + "x", "so"), (LONG + ".", "ok", LONG + "x.", "so", "on"), "history_rewritten"),
        ((LONG, "so " * 90, "go " * 90, "x" * 300), ("A summary.", "x" * 300), "compaction"),
        ((LONG, "so " * 90, "go " * 90), ("A summary.", "And on."), "compaction"),
    ],
)
def test_only_several_messages_that_became_fewer_and_shorter_look_compacted(before, now, cause):
    found = judge_cache(body(chat(*now), CHAT), body(chat(*before), CHAT), markers=("resume",))
    assert (found.verdict, found.cause) == ("break", cause)


# --- through the real cutter -----------------------------------------------------------------------------------------


def served(text: str, name: str, parent: Any = None) -> Any:
    return make_body(text.encode(), wire.by_name(name), parent)


def test_a_tool_that_is_no_valid_text_is_told_by_its_definition():
    text = (
        '{"model":"m","tools":[{"type":"function","function":{"name":"a","description":"\\ud800 one"}}],'
        '"messages":[{"role":"user","content":"hi there"}]}'
    )
    parent, call = served(text, CHAT), served(text.replace("one", "two"), CHAT)
    assert judge_cache(call, parent).cause == "tool_schema_changed"


@pytest.mark.parametrize("depth", [300, 900, 990, 1010, 5000])
def test_messages_that_nest_too_deep_are_judged_all_the_same(depth):
    deep = '{"a":' * depth + "1" + "}" * depth
    text = (
        '{"model":"m","messages":[{"role":"user","content":"q"},{"role":"assistant","content":[{"type":"thinking",'
        '"thinking":"one","signature":"s"},{"type":"tool_use","id":"a","name":"n","input":'
        + deep
        + '}]},{"role":"user",'
        '"content":[{"type":"tool_result","tool_use_id":"a","content":"one"}]}]}'
    )
    for told in (text, text.replace('"type":"tool_use"', '"type":"unheard_of"')):
        parent, call = (served(told.replace("one", word), "anthropic-messages") for word in ("one", "two"))
        assert judge_cache(call, parent, provider=UNKNOWN).verdict in ("break", "unknown")
        assert Counter().segment_tokens(call) is not None


@pytest.mark.parametrize("depth", [300, 900, 1500])
def test_a_tool_that_nests_too_deep_is_told_by_its_definition(depth):
    schema = '{"a":' * depth + '{"x":%s}' + "}" * depth
    text = (
        '{"model":"m","tools":[{"name":"a","parameters":' + schema + '}],"messages":[{"role":"user","content":"hi"}]}'
    )
    found = judge_cache(served(text % 1, CHAT), served(text % 2, CHAT))
    assert found.cause in ("tool_schema_changed", None)


def test_a_tool_respelled_in_the_next_body_is_a_fact_also_when_it_was_cut_with_the_one_before():
    text = json.dumps({"model": "m", "tools": [{"name": "é", "parameters": {}}], "messages": []}, ensure_ascii=False)
    parent = served(text, CHAT)
    moved = served(text.replace("é", "\\u00e9"), CHAT, parent)
    assert judge_cache(moved, parent).facts == ("json_serialisation_drift",)
    same = served(text.replace('"messages": []', '"messages": [{"role": "user", "content": "x"}]'), CHAT, parent)
    assert judge_cache(prompt_of(same, prompt_of(parent)), prompt_of(parent)).facts == ()
