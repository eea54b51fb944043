"""Hermes rows into Chat Completions: what is sent of a row, in which form, after which repairs."""

from __future__ import annotations

import pytest

from ctxscope.agents import hermes
from ctxscope.model import Learned, Value
from tests.hermes_rows import PROMPT, Written, as_if, call, served

MARK = {"type": "ephemeral"}


def deepseek() -> Learned:
    return Learned({"/model": Value(b'"deepseek-chat"', "echoed")}, ("messages", "model"), (), {"api": "openai-chat"})


@pytest.mark.parametrize(
    ("role", "sidecar", "sent"),
    [
        ("user", "exact", "exact"),
        ("assistant", "exact", "exact"),
        ("user", "", "plain"),
        ("user", None, "plain"),
        ("user", 7, "plain"),
        ("user", b"exact", "plain"),
        ("tool", "exact", "plain"),
    ],
)
def test_a_sidecar_is_sent_only_when_a_user_or_assistant_row_has_text_in_it(
    role: str, sidecar: object, sent: str
) -> None:
    log = Written()
    log.user("dig")
    log.says("yes", tool_calls=call("a"))
    if role != "tool":
        log.tool("a")
    log.row(role, "plain", api_content=sidecar, **({"tool_call_id": "a", "tool_name": "dig"} if role == "tool" else {}))
    if role != "user":
        log.user("next")
    told = [each.stored for each in hermes.sidecars(log.log, log.points[-1]) if each.ignored is None]
    assert told == (["exact"] if sent == "exact" else [])
    found = [m["content"] for m in log.messages() if m["role"] == role]
    assert any(sent in text for text in found)
    assert sent == "exact" or not any("exact" in text for text in found)


def test_live_tool_rows_carry_a_name_and_loaded_ones_do_not() -> None:
    log = Written()
    log.turn(fresh=True)
    log.user("dig")
    log.says("", tool_calls=call("a"), reasoning_details=[{"type": "reasoning.text", "text": "hm"}])
    log.tool("a")
    live = log.messages()
    assert list(live[1]) == ["role", "content", "reasoning_details", "tool_calls"]
    assert list(live[2]) == ["role", "name", "content", "tool_call_id"]
    log.says("done")
    log.turn(fresh=True)
    log.user("again")
    loaded = log.messages()
    assert list(loaded[1]) == ["role", "content", "tool_calls", "reasoning_details"]
    assert list(loaded[2]) == ["role", "content", "tool_call_id"]


def test_without_agent_log_the_first_call_of_a_turn_shows_the_new_process_and_holds_for_the_turn() -> None:
    log = Written()
    log.user("dig")
    log.says("", tool_calls=call("a"))
    log.tool("a")
    log.says("done")
    log.user("again")
    unnamed = [{"role": "tool", "content": "dug", "tool_call_id": "a"}]
    named = [{"role": "tool", "name": "dig", "content": "dug", "tool_call_id": "a"}]
    loaded = log.learned(served({"messages": unnamed}))
    assert len(loaded.hypotheses) == 1
    assert "name" not in log.messages(loaded)[2]
    before = [(log.points[-1], served({"messages": unnamed}))]
    log.says("", tool_calls=call("b"))
    log.tool("b")
    later = log.learned(served({"messages": named}), before=before)
    assert "name" not in log.messages(later)[2]  # a process does not change in the middle of a turn
    assert "name" in log.messages(later)[6]


def test_a_call_counter_that_starts_over_tells_a_new_process_too() -> None:
    log = Written()
    log.user("dig")
    log.says("", tool_calls=call("a"))
    log.tool("a")
    log.says("done")
    log.turn(fresh=False)  # clients of other SDKs write no line when they are made
    log.line("2026-01-01 00:00:00,000 INFO [plot] agent.loop: API call #1: model=m provider=p in=1 out=1")
    log.user("again")
    assert "name" not in log.messages()[2]


def test_agent_log_outweighs_the_served_form() -> None:
    log = Written()
    log.turn(fresh=True)
    log.user("dig")
    log.says("", tool_calls=call("a"))
    log.tool("a")
    log.says("done")
    log.turn(fresh=False)
    log.user("again")
    learned = log.learned(served({"messages": [{"role": "tool", "content": "dug", "tool_call_id": "a"}]}))
    assert learned.hypotheses == ()
    assert "name" in log.messages(learned)[2]


def test_reloaded_text_loses_recalled_memory_unless_a_sidecar_keeps_it() -> None:
    log = Written()
    log.user("hi <memory-context>likes tea</memory-context> there")
    log.says("<memory-context>x</memory-context>", api_content="<memory-context>x</memory-context>")
    log.user("next")
    loaded = log.messages(as_if("openai-chat", loaded_before=3))
    assert [m["content"] for m in loaded] == ["hi  there", "<memory-context>x</memory-context>", "next"]
    live = log.messages(as_if("openai-chat", loaded_before=0))
    assert live[0]["content"] == "hi <memory-context>likes tea</memory-context> there"


def test_arguments_are_compact_sorted_and_ascii_and_contents_stripped() -> None:
    log = Written()
    log.user("  dig é \n")
    log.says("ok ", tool_calls=[*call("a", '{"z": 1, "a": "é"}', extra_content={}), *call("b", "not json")])
    log.tool("a")
    log.tool("b")
    sent = log.messages()
    assert sent[0]["content"] == "dig é"
    assert [c["function"]["arguments"] for c in sent[1]["tool_calls"]] == ['{"a":"\\u00e9","z":1}', "{}"]
    assert list(sent[1]["tool_calls"][0]) == ["id", "type", "function"]
    assert "é".encode() in log.rebuilt().data


def test_the_list_is_repaired_before_a_call() -> None:
    log = Written()
    log.user("one")
    log.user("two")
    log.says("first ", tool_calls=call("a"))
    log.says("second", tool_calls=call("b"))
    log.tool("b")
    log.tool("b", "twice")
    log.tool("stranger")
    log.user("three")
    log.says("")
    log.user("four")
    roles = [(m["role"], m["content"]) for m in log.messages()]
    assert roles == [
        ("user", "one\n\ntwo"),
        ("assistant", "first\nsecond"),
        ("tool", "dug"),
        ("tool", "[Result unavailable — see context summary above]"),
        ("user", "three"),
        ("assistant", "[response interrupted]"),
        ("user", "four"),
    ]


def test_an_assistant_that_only_thought_is_dropped_and_its_users_merged() -> None:
    log = Written()
    log.user("one")
    log.says("", reasoning="hm")
    log.user("two")
    assert log.messages() == [{"role": "user", "content": "one\n\ntwo"}]


def test_a_call_without_a_name_gets_one() -> None:
    log = Written()
    log.user("dig")
    log.says("", tool_calls=[{"id": "a", "type": "function", "function": {"name": " ", "arguments": "{}"}}])
    log.tool("a")
    assert log.messages()[1]["tool_calls"][0]["function"]["name"] == "invalid_tool_call"


def test_thinking_is_replayed_where_the_host_demands_it() -> None:
    log = Written()
    log.user("dig")
    log.says("a", reasoning_content="why", reasoning="why", tool_calls=call("a"))
    log.tool("a")
    log.says("b", reasoning="foreign", tool_calls=call("b"))
    log.tool("b")
    log.says("c", reasoning_content="")
    log.user("next")
    log.says("d", reasoning="own")
    log.user("last")
    said = [m for m in log.messages(deepseek()) if m["role"] == "assistant"]
    assert [m["reasoning_content"] for m in said] == ["why", " ", " ", "own"]
    assert list(said[0])[-2:] == ["reasoning_content", "tool_calls"]
    assert list(said[1])[-2:] == ["tool_calls", "reasoning_content"]
    assert not any("reasoning_content" in m for m in log.messages())


def test_envelope_marks_sit_on_the_system_blocks_and_the_last_messages_with_content() -> None:
    log = Written()
    log.user("dig")
    log.says("", tool_calls=call("a"))
    log.tool("a")
    split = [{"type": "text", "text": t, "cache_control": MARK} for t in (PROMPT[:8], PROMPT[8:])]
    body = served(
        {"model": "m", "messages": [{"role": "system", "content": split}, {"role": "user", "content": "dig"}]}
    )
    system, user, said, tool = log.body(log.learned(body))["messages"]
    assert system["content"] == split
    assert user["content"] == [{"type": "text", "text": "dig", "cache_control": MARK}]
    assert said["content"] == ""
    assert tool["content"] == [{"type": "text", "text": "dug", "cache_control": MARK}]


def test_one_system_block_leaves_three_marks() -> None:
    log = Written()
    for text in ("one", "two", "three"):
        log.user(text)
        log.says("so")
    log.user("last")
    block = [{"type": "text", "text": PROMPT, "cache_control": MARK}]
    body = log.body(log.learned(served({"messages": [{"role": "system", "content": block}]})))
    assert [isinstance(m["content"], list) for m in body["messages"]] == [True, *[False] * 4, True, True, True]


def test_the_envelope_is_pinned_from_the_first_body_and_a_changed_value_is_not_taken_over() -> None:
    log = Written()
    log.user("dig")
    first = served({"messages": [], "model": "m", "max_tokens": 9, "tools": [1], "session_id": "x"})
    learned = log.learned(first)
    assert {v.provenance for v in learned.values.values()} == {"echoed"}
    assert list(log.body(learned)) == ["messages", "model", "max_tokens", "tools", "session_id"]
    log.says("done")
    before = [(log.points[-1], first)]
    log.user("again")
    later = log.learned(served({"messages": [], "model": "m", "max_tokens": 10, "tools": [2]}), before=before)
    assert {v.provenance for v in later.values.values()} == {"learned"}
    assert (log.body(later)["max_tokens"], log.body(later)["tools"]) == (9, [1])


def test_tools_come_from_the_snapshot_where_there_is_one() -> None:
    log = Written()
    tools = [{"type": "function", "function": {"name": "dig", "description": "d", "parameters": {"b": 1, "a": 2}}}]
    log.snapshot(tools)
    log.user("dig")
    learned = log.learned(served({"messages": [], "tools": []}))
    assert "/tools" not in learned.values
    (piece,) = [p for p in log.rebuilt(learned).pieces if b'"parameters"' in p.data]
    assert piece.provenance == "logged"
    assert log.body(learned)["tools"] == tools


def test_a_model_switch_is_followed_by_its_prompt() -> None:
    log = Written()
    log.user("dig")
    first = served({"messages": [{"role": "system", "content": PROMPT}], "model": "m"})
    log.learned(first)
    log.says("done")
    before = [(log.points[-1], first)]
    log.prompt("You help with ponds.")
    log.user("again")
    second = served({"messages": [{"role": "system", "content": "You help with ponds."}], "model": "other"})
    learned = log.learned(second, before=before)
    assert learned.values["/model"] == Value(b'"other"', "echoed")
    assert log.body(learned)["messages"][0]["content"] == "You help with ponds."
    assert log.body(log.learned(first, at=0), at=0)["messages"][0]["content"] == PROMPT


def test_another_model_under_the_same_prompt_is_no_switch() -> None:
    log = Written()
    log.user("dig")
    system = {"role": "system", "content": PROMPT}
    first = served({"messages": [system], "model": "m"})
    log.says("done")
    before = [(log.points[-1], first)]
    log.user("again")
    learned = log.learned(served({"messages": [system], "model": "other"}), before=before)
    assert learned.values["/model"] == Value(b'"m"', "learned")


def test_a_prompt_deleted_at_a_model_switch_is_learned_not_taken_from_its_successor() -> None:
    log = Written()
    log.turn(fresh=True, model="m")
    log.user("dig")
    log.says("done")
    log.turn(fresh=False, model="other")
    log.user("again")
    old = served({"messages": [{"role": "system", "content": "You helped with bogs."}], "model": "m"})
    learned = log.learned(old, at=0)
    assert learned.values["/messages/0"].provenance == "echoed"
    assert log.body(learned, at=0)["messages"][0]["content"] == "You helped with bogs."
    assert "/messages/0" not in log.learned(old).values
