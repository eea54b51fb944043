"""pydantic-ai histories by hand: what each part is sent as, forms, files of one conversation, hostile input."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctxscope.agents import at_hand, pydantic_ai
from ctxscope.model import Config, CtxscopeError, Learned, Stop, Usage
from tests.pydantic_ai_cases import (
    SAMPLE,
    alone,
    asked,
    body,
    call,
    feed,
    log_of,
    prompt,
    rebuilt,
    returned,
    said,
    stored,
    text,
)

END = asked(prompt("end"))


def sent(*messages: dict[str, Any], api: str = "openai-chat") -> list[dict[str, Any]]:
    """The messages of the last request of a history."""
    log = log_of(stored(*messages))
    found = alone(log, pydantic_ai.requests(log)[-1], api)["messages"]
    assert isinstance(found, list)
    return found


def test_a_point_stands_before_each_response_and_one_waits_at_the_end():
    log = log_of(
        stored(asked(prompt("a")), said("r1", call("t1", {})), asked(returned("t1", 1)), said("r2", text("b")), END)
    )
    points = pydantic_ai.requests(log)
    assert [(p.key, p.place.at, len(p.context), p.turn) for p in points] == [
        ("history#2", "message 2", 1, 1),
        ("history#4", "message 4", 3, 1),
        ("after:history#5", "message 5", 5, 2),
    ]
    assert [p.ids for p in points] == [{"r1", "t1"}, {"r2"}, set()]


def test_instructions_are_those_of_the_newest_request_and_sent_first():
    messages = [asked(prompt("a"), instructions="old"), said("r1", text("b")), asked(prompt("c"), instructions="new")]
    assert [m["content"] for m in sent(*messages)] == ["new", "a", "b", "c"]
    none = [asked(prompt("a"), instructions="old"), said("r1", text("b")), asked(prompt("c"), instructions=None)]
    assert [m["content"] for m in sent(*none)] == ["a", "b", "c"]


def test_results_alone_are_sent_with_the_instructions_before_them():
    messages = [asked(prompt("a")), said("r1", call("t", {})), asked(returned("t", "x"), instructions=None)]
    assert sent(*messages)[0] == {"role": "system", "content": "Be brief."}


def test_system_prompts_stand_before_the_instructions():
    log = log_of(stored(asked({"part_kind": "system-prompt", "content": "S"}, prompt("a"))))
    (point,) = pydantic_ai.requests(log)
    chat, anthropic = (alone(log, point, api) for api in ("openai-chat", "anthropic-messages"))
    assert [m["content"] for m in chat["messages"]] == ["S", "Be brief.", "a"]
    assert anthropic["system"] == [{"type": "text", "text": t} for t in ("S", "Be brief.")]
    plain = log_of(stored(asked({"part_kind": "system-prompt", "content": "S"}, prompt("a"), instructions=None)))
    assert alone(plain, pydantic_ai.requests(plain)[0], "anthropic-messages")["system"] == "S"


@pytest.mark.parametrize(
    ("content", "more", "chat", "anthropic"),
    [
        ("x", {}, "x", ["x"]),
        (None, {}, "", ["null"]),
        ({"b": 1.0, "a": "é"}, {}, '{"b":1.0,"a":"é"}', ['{"b":1.0,"a":"é"}']),
        (["x", {"a": 1}], {}, '["x",{"a":1}]', ["x", '{"a":1}']),
        ("no", {"outcome": "failed"}, '{"error":"no"}', ["no"]),
        ([{"loc": 1}], {"outcome": "retried"}, '{"error":[{"loc":1}]}', ['[{"loc":1}]']),
    ],
)
def test_a_result_is_sent_as_text(content: Any, more: dict[str, Any], chat: str, anthropic: list[str]):
    messages = [asked(prompt("a")), said("r1", call("t", {})), asked(returned("t", content, **more))]
    assert sent(*messages)[-1] == {"role": "tool", "tool_call_id": "t", "content": chat}
    (block,) = sent(*messages, api="anthropic-messages")[-1]["content"]
    assert [b["text"] for b in block["content"]] == anthropic
    assert block["is_error"] is ("outcome" in more)


def test_a_retry_of_an_older_version_is_sent_with_its_fixed_words():
    retry = {"part_kind": "retry-prompt", "content": "bad", "tool_name": "look", "tool_call_id": "t"}
    messages = [asked(prompt("a")), said("r1", call("t", {})), asked(retry)]
    assert sent(*messages)[-1]["content"] == "bad\n\nFix the errors and try again."
    loose = {"part_kind": "retry-prompt", "content": [{"type": "x", "loc": [], "input": 1, "ctx": {}}]}
    content = sent(asked(prompt("a")), said("r1", text("b")), asked(loose))[-1]["content"]
    assert content.startswith('1 validation error:\n```json\n[\n  {\n    "type": "x",\n    "loc": []\n  }\n]\n```')


def test_requests_in_a_row_are_sent_as_one_with_results_first():
    messages = [asked(prompt("a")), said("r1", call("t", {})), asked(prompt("b")), asked(returned("t", "x"))]
    assert [m["role"] for m in sent(*messages)] == ["system", "user", "assistant", "tool", "user"]
    turns = sent(*messages, api="anthropic-messages")
    assert [b["type"] for b in turns[-1]["content"]] == ["tool_result", "text"]


def test_an_answer_in_chat_has_its_thinking_under_the_name_it_came_by():
    thought = {"part_kind": "thinking", "content": "t", "id": "reasoning", "provider_name": "openai"}
    foreign = {**thought, "provider_name": "other"}
    answer = said("r1", thought, thought, text("a"), text("b"), call("c", '{"k": "\\u00fc"}'), provider="openai")
    message = sent(asked(prompt("a")), answer, END)[2]
    assert list(message) == ["role", "reasoning", "content", "tool_calls"]
    assert (message["reasoning"], message["content"]) == ("t\n\nt", "a\n\nb")
    assert message["tool_calls"][0]["function"]["arguments"] == '{"k":"ü"}'
    assert sent(asked(prompt("a")), said("r1", foreign, provider="openai"), END)[2]["content"] == "<think>\nt\n</think>"
    assert [m["role"] for m in sent(asked(prompt("a")), said("r1"), END)] == ["system", "user", "user"]


def test_an_answer_to_anthropic_has_blocks_and_unsigned_thinking_as_text():
    signed = {"part_kind": "thinking", "content": "t", "signature": "s", "provider_name": "anthropic"}
    parts = (signed, {**signed, "signature": None}, {**signed, "id": "redacted_thinking"}, text(""), call("c", "{}"))
    (blocks,) = [m["content"] for m in sent(asked(prompt("a")), said("r1", *parts), END, api="anthropic-messages")][1:2]
    assert blocks == [
        {"thinking": "t", "signature": "s", "type": "thinking"},
        {"text": "<thinking>\nt\n</thinking>", "type": "text"},
        {"data": "s", "type": "redacted_thinking"},
        {"id": "c", "type": "tool_use", "name": "look", "input": {}},
    ]


def test_arguments_that_are_no_object_are_sent_as_such():
    answer = said("r1", call("c", "[1"), call("d", ""), provider="openai")
    calls = sent(asked(prompt("a")), answer, END)[2]["tool_calls"]
    assert [c["function"]["arguments"] for c in calls] == ['{"INVALID_JSON":"[1"}', "{}"]


def test_arguments_as_the_model_wrote_them_are_a_form_held_for_the_session():
    messages = [asked(prompt("a")), said("r1", call("c", '{"k": 1}'), provider="openai"), asked(returned("c", "x"))]
    messages += [said("r2", call("d", '{"k": 2}'), provider="openai"), asked(returned("d", "y"))]
    log = log_of(stored(*messages))
    head = {"model": "fern", "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "a"}]}

    def grown(*spelt: str) -> dict[str, Any]:
        turns = list(head["messages"])
        for name, arguments, result in zip("cd", spelt, "xy", strict=False):
            function = {"name": "look", "arguments": arguments}
            turns.append(
                {
                    "role": "assistant",
                    "content": None,
                    "tool_calls": [{"id": name, "type": "function", "function": function}],
                }
            )
            turns.append({"role": "tool", "tool_call_id": name, "content": result})
        return {**head, "messages": turns}

    served = [body(head), body(grown('{"k": 1}')), body(grown('{"k": 1}', '{"k":2}'))]
    assert [r.data == b.data for r, b in zip(rebuilt(log, *served), served, strict=True)] == [True, True, False]
    served[2] = body(grown('{"k": 1}', '{"k": 2}'))
    assert [r.data == b.data for r, b in zip(rebuilt(log, *served), served, strict=True)] == [True, True, True]


def test_instructions_split_by_the_body_are_still_those_of_the_history():
    log = log_of(stored(asked(prompt("a"), instructions="One.\n\nTwo.")))
    served = {
        "max_tokens": 9,
        "messages": [{"role": "user", "content": [{"text": "a", "type": "text"}]}],
        "model": None,
    }
    split = body({**served, "system": [{"type": "text", "text": t} for t in ("One.", "Two.")]}, "anthropic-messages")
    (made,) = rebuilt(log, split)
    assert made.data == split.data
    other = body({**served, "system": [{"type": "text", "text": t} for t in ("One.", "Too.")]}, "anthropic-messages")
    assert rebuilt(log, other)[0].data != other.data


def test_parameters_and_tools_of_the_first_request_hold():
    messages = [asked(prompt("a")), said("r1", text("b"), provider="openai"), asked(prompt("c"))]
    log = log_of(stored(*messages, said("r2", text("d"), provider="openai")))
    turns = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "a"}]
    more = [*turns, {"role": "assistant", "content": "b"}, {"role": "user", "content": "c"}]
    one = body({"model": "fern", "messages": turns, "temperature": 0.5})
    same = body({"model": "fern", "messages": more, "temperature": 0.5})
    two = body({"model": "fern", "messages": more, "temperature": 0.7})
    assert [r.data == b.data for r, b in zip(rebuilt(log, one, same), (one, same), strict=True)] == [True, True]
    first, second = rebuilt(log, one, two)
    assert first.data == one.data
    assert second.data == same.data
    assert {p.provenance for p in first.pieces if p.path} == {"echoed"}
    assert {p.provenance for p in second.pieces if p.path} == {"learned"}


def test_the_model_asked_for_is_learned_only_where_the_history_has_another_name():
    turns = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "a"}]
    log = log_of(stored(asked(prompt("a")), said("r1", text("b"), provider="openai", model_id="openai:fern-latest")))
    for model, path in (("fern", None), ("fern-latest", None), ("oak", "/model")):
        served = body({"model": model, "messages": turns})
        (made,) = rebuilt(log, served)
        assert made.data == served.data
        assert {p.path for p in made.pieces if p.provenance == "echoed"} == ({path} if path else set())


def test_an_answer_with_all_the_tokens_allowed_may_have_been_cut():
    log = log_of(stored(asked(prompt("a")), said("r1", text("b"), usage={"input_tokens": 9, "output_tokens": 77})))
    served = body(
        {"max_tokens": 77, "messages": [{"role": "user", "content": [{"text": "a", "type": "text"}]}], "model": "fern"},
        "anthropic-messages",
    )
    (made,) = rebuilt(log, served)
    assert [n for n in made.notices if "77 tokens" in n and "may have been cut" in n]


@pytest.mark.parametrize(
    ("more", "stop"),
    [
        ({"finish_reason": "length"}, Stop("length", "truncated")),
        (
            {"finish_reason": "length", "provider_details": {"finish_reason": "max_tokens"}},
            Stop("max_tokens", "truncated"),
        ),
        ({"finish_reason": "stop", "vendor_details": {"finish_reason": "end_turn"}}, Stop("end_turn", "complete")),
        ({"finish_reason": None, "state": "complete"}, None),
        ({"finish_reason": "brand_new"}, Stop("brand_new", "unknown")),
    ],
)
def test_only_the_finish_reason_says_how_an_answer_ended(more: dict[str, Any], stop: Stop | None):
    log = log_of(stored(asked(prompt("a")), said("r1", text("b"), **more)))
    assert pydantic_ai.requests(log)[0].stop == stop


def test_usage_includes_what_was_cached():
    usage = {"input_tokens": 100, "cache_read_tokens": 60, "cache_write_tokens": 30, "output_tokens": 5}
    log = log_of(
        stored(
            asked(prompt("a")),
            said("r1", usage=usage),
            said("r2", provider="openai", usage={**usage, "cache_read_tokens": 0}),
        )
    )
    first, second = pydantic_ai.requests(log)
    assert first.stored_usage == Usage(10, 60, 30, 5)
    assert second.stored_usage == Usage(70, None, 30, 5)
    old = log_of(
        stored(asked(prompt("a")), said("r1", usage={"request_tokens": 7, "response_tokens": 2}, vendor_id="v"))
    )
    assert pydantic_ai.requests(old)[0].stored_usage == Usage(7, None, None, 2)


def test_a_part_without_a_rule_is_told_and_only_requests_that_hold_it_are_not_rebuilt():
    odd = {"part_kind": "brand-new", "content": "x"}
    log = log_of(stored(asked(prompt("a")), said("r1", text("b")), asked(odd), said("r2", text("c"))))
    made = [pydantic_ai.rebuild(log, p, Config(), Learned()) for p in pydantic_ai.requests(log)]
    assert [m is not None for m in made] == [True, False]
    assert any("message 3" in n and "brand-new" in n for n in pydantic_ai.notices(log))


def test_an_unknown_message_or_field_is_counted_and_earlier_calls_stand():
    odd = {"kind": "brand-new", "parts": []}
    first = asked(prompt("a"))
    log = log_of(stored({"quux": 1, **first}, said("r1", text("b")), odd, said("r2", text("c"))))
    made = [pydantic_ai.rebuild(log, p, Config(), Learned()) for p in pydantic_ai.requests(log)]
    assert [m is not None for m in made] == [True, False]
    assert sum("not known" in n for n in pydantic_ai.notices(log)) == 2


def test_a_file_that_breaks_off_gives_what_came_before():
    data = stored(asked(prompt("a")), said("r1", text("b")), END)
    log = log_of(data[:-20])
    assert [p.key for p in pydantic_ai.requests(log)] == ["history#2"]
    assert any("breaks off after 2 messages" in n for n in pydantic_ai.notices(log))
    feed(log, data)
    assert not any("breaks off" in n for n in pydantic_ai.notices(log))


def test_a_file_rewritten_with_fewer_messages_holds_the_fewer():
    log = log_of(stored(asked(prompt("a")), said("r1", text("b")), END, said("r2", text("c"))))
    feed(log, stored(asked(prompt("z")), said("r9", text("y"))))
    (point,) = pydantic_ai.requests(log)
    assert point.ids == {"r9"}


def test_points_stay_the_same_objects_while_their_messages_do():
    log = log_of(stored(asked(prompt("a")), said("r1", text("b"))))
    (before,) = pydantic_ai.requests(log)
    feed(log, stored(asked(prompt("a")), said("r1", text("b")), END))
    assert pydantic_ai.requests(log)[0] is before


def test_an_answer_that_only_another_file_of_the_conversation_holds_is_a_point_too():
    full = stored(asked(prompt("a")), said("r1", text("b")), END, said("r3", text("c")))
    other = stored(asked(prompt("a")), said("r1", text("b")), asked(prompt("lost")), said("r2", text("d")))
    log = log_of(full, other)
    assert sorted(next(iter(p.ids)) for p in pydantic_ai.requests(log)) == ["r1", "r2", "r3"]
    assert any("message 3" in n and "another message" in n for n in pydantic_ai.notices(log))


def test_runs_appended_as_lines_are_one_conversation(tmp_path: Path):
    one, two = [asked(prompt("a")), said("r1", text("b"))], [END, said("r2", text("c"))]
    path = tmp_path / "runs.jsonl"
    path.write_bytes(stored(*one) + b"\n" + stored(*two) + b"\n")
    (ref,) = pydantic_ai.refs(path, tmp_path)
    assert [s.kind for s in pydantic_ai.sources(ref)] == ["jsonl"]
    assert pydantic_ai.claims(path, path.read_bytes()) > 0.9


def test_discovery_groups_the_files_of_a_conversation(tmp_path: Path):
    first = {**asked(prompt("a")), "conversation_id": "c1"}
    (tmp_path / "h1.json").write_bytes(stored(first, said("r1", text("b"))))
    (tmp_path / "h2.json").write_bytes(stored(first, said("r1", text("b")), END))
    (tmp_path / "old.json").write_bytes(stored(asked(prompt("z"))))
    (tmp_path / "other.json").write_bytes(b'[{"role":"user","content":"x"}]')
    (tmp_path / "package.json").write_bytes(b"{}")
    (tmp_path / "empty.json").write_bytes(b"")
    found = {r.id: [p.name for p in r.paths] for r in pydantic_ai.discover(tmp_path)}
    assert found == {"c1": ["h2.json", "h1.json"], "old": ["old.json"]}
    with pytest.raises(CtxscopeError, match="message"):
        pydantic_ai.refs(tmp_path / "other.json", tmp_path)


def test_a_first_message_longer_than_the_head_is_still_told():
    long = {"parts": [{"content": "x" * 90_000, "part_kind": "user-prompt"}], "instructions": None, "kind": "request"}
    for first in (long, asked(prompt("a"), prompt("x" * 90_000))):
        assert pydantic_ai.claims(Path("h.json"), stored(first)[:65_536]) > 0.5
    contents = [{"parts": [{"text": "x" * 90_000}], "role": "user"}]
    assert pydantic_ai.claims(Path("h.json"), json.dumps(contents).encode()[:65_536]) == 0.0


ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)
FILE = {
    "kind": "binary",
    "data": "-_8=",
    "media_type": "image/png",
    "identifier": "f",
    "vendor_metadata": {"detail": 1},
}
ERROR = {"type": "missing", "loc": ["a"], "msg": "m", "input": {}}
HISTORY = [
    *json.loads((SAMPLE / "log/history.json").read_bytes()),
    asked(prompt(["see", FILE])),
    said(
        "chatcmpl-x", {"part_kind": "thinking", "content": "hm", "id": "reasoning", "provider_name": "openai"},
        call("x1", {}), provider="openai",
    ),
    asked(returned("x1", ["one", FILE]), {"part_kind": "system-prompt", "content": "s", "dynamic_ref": "d"}),
    said("chatcmpl-y", call("x2", '{"a": 1}'), provider="openai"),
    asked(
        {"part_kind": "retry-feedback", "content": [ERROR, ERROR], "retry": {"cause": "validation_error"}},
        returned("x2", "two"),
    ),
    said("chatcmpl-z", text("so"), provider="openai"),
]  # fmt: skip
SERVED = [
    body({"max_tokens": 4096, "messages": [], "model": "fern"}, "anthropic-messages"),
    body({"messages": [{"role": "system", "content": "s"}], "model": "fern"}),
]


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_wrong_values_in_any_field_raise_nothing(data: st.DataObject):
    rows = json.loads(json.dumps(HISTORY))
    for _ in range(data.draw(st.integers(1, 6))):
        row = data.draw(st.sampled_from(rows))
        while True:
            key = data.draw(st.sampled_from(sorted(row)))
            inner = row[key][0] if isinstance(row[key], list) and row[key] else row[key]
            if not isinstance(inner, dict) or not inner or data.draw(st.booleans()):
                row[key] = data.draw(ANY)
                break
            row = inner
    log = log_of(json.dumps(rows).encode())
    for point in pydantic_ai.requests(log):
        for api in ("openai-chat", "anthropic-messages"):
            pydantic_ai.rebuild(log, point, Config(), Learned(choice={"api": api}))
        for served in SERVED:
            learned = pydantic_ai.learn(log, point, served, at_hand())
            pydantic_ai.rebuild(log, point, Config(), learned)
        pydantic_ai.naive(log, point)
        pydantic_ai.endpoint(log, point)
    pydantic_ai.markers(log)
    pydantic_ai.notices(log)


@given(st.binary(max_size=60))
def test_any_bytes_are_read(data: bytes):
    log = log_of(data)
    pydantic_ai.requests(log)
    pydantic_ai.notices(log)
    pydantic_ai.claims(Path("h.json"), data)
