"""Hermes rows into Anthropic Messages and the Responses API."""

from __future__ import annotations

from typing import Any

import pytest

from ctxscope.agents import hermes
from tests.hermes_rows import PROMPT, Written, as_if, call, served

MARK = {"type": "ephemeral"}
SIGNED = [{"type": "thinking", "thinking": "hm", "signature": "sig"}]


def worked(**session: Any) -> Written:
    log = Written(**session)
    log.user("dig")
    log.says("Digging.", tool_calls=call("a", '{"z": 1, "b": 2}'), reasoning_details=SIGNED)
    log.tool("a", "")
    return log


def test_tool_results_are_user_blocks_and_inputs_sorted() -> None:
    log = worked()
    log.tool("a", "again")
    log.user("stop")
    user, said, results = log.messages(as_if("anthropic-messages"))
    assert user == {"role": "user", "content": "dig"}
    assert [b["type"] for b in said["content"]] == ["text", "tool_use"]
    assert list(said["content"][1]["input"]) == ["b", "z"]
    assert results["content"] == [
        {"type": "tool_result", "tool_use_id": "a", "content": "(no output)"},
        {"type": "text", "text": "stop"},
    ]


def test_a_leading_assistant_gets_an_empty_user_before_it() -> None:
    log = Written()
    log.says("hello")
    log.user("hi")
    assert log.messages(as_if("anthropic-messages"))[0] == {"role": "user", "content": "(empty)"}


@pytest.mark.parametrize(
    ("url", "kept"),
    [("https://api.anthropic.com", True), ("http://127.0.0.1:1/api.anthropic.com", True), ("https://x.y", False)],
)
def test_only_a_native_host_is_given_signed_thinking_and_only_the_latest(url: str, kept: bool) -> None:
    log = worked(billing_base_url=url)
    types = [b["type"] for b in log.messages(as_if("anthropic-messages"))[1]["content"]]
    assert ("thinking" in types) is kept
    log.says("Done.")
    log.user("more")
    assert "thinking" not in [b["type"] for b in log.messages(as_if("anthropic-messages"))[1]["content"]]


@pytest.mark.parametrize(
    ("loaded_before", "schema", "marked"), [(0, 26, "tool_use"), (9, 26, "text"), (0, 22, None), (9, 22, "text")]
)
def test_the_mark_of_a_thinking_turn_depends_on_form_and_version(
    loaded_before: int, schema: int, marked: str | None
) -> None:
    log = worked()
    log.schema(schema)
    learned = as_if("anthropic-messages", mark=MARK, split=7, loaded_before=loaded_before)
    body = log.body(learned)
    assert [b["text"] for b in body["system"]] == [PROMPT[:7], PROMPT[7:]]
    found = [b["type"] for m in body["messages"][1:2] for b in m["content"] if "cache_control" in b]
    assert found == ([marked] if marked else [])
    assert body["messages"][0]["content"] == "dig"  # two marks on the system leave two
    assert body["messages"][2]["content"][0]["cache_control"] == MARK


def test_the_static_block_is_held_for_a_run_and_learned_again_with_the_next() -> None:
    def body(*texts: str) -> Any:
        blocks = [{"type": "text", "text": t, "cache_control": MARK} for t in texts]
        return served({"messages": [], "system": blocks}, "anthropic-messages")

    log = Written()
    log.user("dig")
    first = body(PROMPT[:7], PROMPT[7:])
    assert log.learned(first).choice["split"] == 7
    before = [(log.points[-1], first)]
    log.says("", tool_calls=call("a"))
    log.tool("a")
    assert log.learned(body(PROMPT), before=before).choice["split"] == 7
    log.says("done")
    log.user("again")
    assert log.learned(body(PROMPT), before=before).choice["split"] is None


def test_responses_items_replay_each_reasoning_item_once_and_none_of_another_host() -> None:
    def item(name: str, host: str) -> dict[str, Any]:
        issuer = {"_issuer_kind": f"other:{host}", "id": name}
        return {"type": "reasoning", "encrypted_content": name, **issuer, "summary": []}

    said = {"type": "message", "role": "assistant", "status": "completed", "content": [], "id": "m1"}
    log = Written(billing_base_url="http://here/v1")
    log.user("dig")
    log.says(
        "",
        codex_reasoning_items=[item("r1", "http://here/v1"), item("r2", "http://there")],
        tool_calls=call("a", "{ }"),
    )
    log.tool("a")
    log.says("Done.", codex_reasoning_items=[item("r1", "http://here/v1")], codex_message_items=[said])
    log.user("more")
    log.says("plain")
    log.user("last")
    assert log.messages(as_if("openai-responses")) == [
        {"role": "user", "content": "dig"},
        {"type": "reasoning", "encrypted_content": "r1", "summary": []},
        {"role": "assistant", "content": ""},
        {"type": "function_call", "call_id": "a", "name": "dig", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "a", "output": "dug"},
        said,
        {"role": "user", "content": "more"},
        {"role": "assistant", "content": "plain"},
        {"role": "user", "content": "last"},
    ]


def test_the_cache_key_is_pinned_until_the_instructions_change() -> None:
    def body(key: str) -> Any:
        return served({"input": [], "instructions": PROMPT, "model": "m", "prompt_cache_key": key}, "openai-responses")

    log = Written()
    log.user("dig")
    first = body("one")
    before = [(log.points[-1], first)]
    log.says("done")
    log.user("again")
    assert log.learned(body("two"), before=before).values["/prompt_cache_key"].data == b'"one"'
    log.prompt("You help with ponds.")
    assert log.learned(body("two"), before=before).values["/prompt_cache_key"].data == b'"two"'


def test_side_calls_are_told_by_their_texts() -> None:
    def kind(**value: Any) -> str | None:
        return hermes.classify(served(value))

    title = [{"role": "system", "content": "You name chat sessions. Given a message"}]
    batch = [{"role": "user", "content": "You are a summarization agent creating a context checkpoint."}]
    micro = [{"role": "system", "content": "You are a conversation summarization assistant."}]
    assert kind(messages=title) == "side"
    assert kind(messages=batch) == kind(messages=micro) == "compaction"
    assert kind(messages=batch, tools=[{"type": "function", "function": {"name": "dig"}}]) == "main"
    assert kind(messages=[{"role": "user", "content": "dig"}]) is None
