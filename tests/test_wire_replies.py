from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxscope.model import Block, Reply, Stop, Usage
from ctxscope.wire import by_name
from ctxscope.wire.sse import events, is_stream
from tests.wire_bodies import APIS

ANTHROPIC, CHAT, GEMINI, RESPONSES = (
    by_name(n) for n in ("anthropic-messages", "openai-chat", "gemini", "openai-responses")
)


def stream(*values, end=""):
    return (
        "".join(f"event: {v.get('type', 'chunk')}\ndata: {json.dumps(v)}\n\n" for v in values).encode() + end.encode()
    )


def plain(api, value):
    return api.reply(json.dumps(value).encode(), {})


ANTHROPIC_STREAM = stream(
    {
        "type": "message_start",
        "message": {
            "id": "msg_1",
            "model": "m",
            "content": [],
            "usage": {
                "input_tokens": 4,
                "cache_read_input_tokens": 10,
                "cache_creation_input_tokens": 7,
                "output_tokens": 1,
            },
            "diagnostics": {"cache_miss_reason": {"type": "tools_changed", "cache_missed_input_tokens": 12}},
        },
    },
    {"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": "", "signature": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "so "}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "be it"}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "c2ln"}},
    {"type": "ping"},
    {"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "vèry\u2028wéll"}},
    {
        "type": "content_block_start",
        "index": 2,
        "content_block": {"type": "tool_use", "id": "t1", "name": "f", "input": {}},
    },
    {"type": "content_block_delta", "index": 2, "delta": {"type": "input_json_delta", "partial_json": '{"b": 1.0,'}},
    {"type": "content_block_delta", "index": 2, "delta": {"type": "input_json_delta", "partial_json": ' "a": [1]}'}},
    {
        "type": "message_delta",
        "delta": {"stop_reason": "tool_use"},
        "usage": {"input_tokens": 5, "cache_read_input_tokens": None, "output_tokens": 30},
    },
    {"type": "message_stop"},
)
CHAT_STREAM = stream(
    {"id": "c1", "model": "m", "choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}}]},
    {"id": "c1", "choices": [{"index": 0, "delta": {"reasoning_content": "hm"}}]},
    {"id": "c1", "choices": [{"index": 0, "delta": {"content": "Lo"}}, {"index": 1, "delta": {"content": "no"}}]},
    {"id": "c1", "choices": [{"index": 0, "delta": {"content": "ok"}}]},
    {
        "choices": [
            {"delta": {"tool_calls": [{"index": 0, "id": "k", "function": {"name": "f", "arguments": '{"b":'}}]}}
        ]
    },
    {"choices": [{"delta": {"tool_calls": [{"index": 0, "function": {"arguments": ' 2, "a": 1}'}}]}}]},
    {"choices": [{"delta": {"tool_calls": [{"index": 1, "id": "l", "function": {"name": "g", "arguments": "{"}}]}}]},
    {"choices": [{"delta": {}, "finish_reason": "tool_calls"}]},
    {
        "choices": [],
        "usage": {"prompt_tokens": 50, "completion_tokens": 9, "prompt_tokens_details": {"cached_tokens": 30}},
    },
    end="data: [DONE]\n\n",
)
RESPONSES_STREAM = stream(
    {"type": "response.created", "response": {"id": "resp_1", "status": "in_progress", "model": "m", "output": []}},
    {"type": "response.output_item.added", "output_index": 0, "item": {"type": "reasoning", "summary": []}},
    {"type": "response.reasoning_summary_text.delta", "output_index": 0, "summary_index": 0, "delta": "hm"},
    {"type": "response.output_item.added", "output_index": 1, "item": {"type": "message", "content": []}},
    {"type": "response.output_text.delta", "output_index": 1, "content_index": 0, "delta": "hel"},
    {"type": "response.output_text.delta", "output_index": 1, "content_index": 0, "delta": "lo"},
    {
        "type": "response.output_item.added",
        "output_index": 2,
        "item": {"type": "function_call", "call_id": "k", "name": "f"},
    },
    {"type": "response.function_call_arguments.delta", "output_index": 2, "delta": '{"b": 1, "a": 2}'},
    {
        "type": "response.completed",
        "response": {
            "status": "completed",
            "usage": {
                "input_tokens": 40,
                "input_tokens_details": {"cached_tokens": 30, "cache_write_tokens": 4},
                "output_tokens": 8,
                "output_tokens_details": {"reasoning_tokens": 3},
            },
            "prompt_cache_diagnostics": {"type": "cache_miss", "reason": "tools_changed", "cache_missed_tokens": 9},
        },
    },
)
GEMINI_STREAM = stream(
    {"candidates": [{"content": {"parts": [{"text": "hm", "thought": True}]}}], "responseId": "r", "modelVersion": "g"},
    {"candidates": [{"content": {"parts": [{"text": "hel"}]}}]},
    {"candidates": [{"content": {"parts": [{"text": "lo"}]}}], "usageMetadata": {"promptTokenCount": 1}},
    {
        "candidates": [
            {
                "content": {
                    "parts": [{"functionCall": {"name": "f", "args": {"b": 1, "a": 2}}, "thoughtSignature": "sig"}]
                },
                "finishReason": "STOP",
            }
        ],
        "usageMetadata": {
            "promptTokenCount": 20,
            "cachedContentTokenCount": 12,
            "candidatesTokenCount": 5,
            "thoughtsTokenCount": 3,
            "totalTokenCount": 28,
        },
    },
)
STREAMS = (
    (ANTHROPIC, ANTHROPIC_STREAM),
    (CHAT, CHAT_STREAM),
    (RESPONSES, RESPONSES_STREAM),
    (GEMINI, GEMINI_STREAM),
)
HELLO = (
    Block("thinking", "hm"),
    Block("text", "hello"),
)


def test_an_anthropic_stream():
    assert ANTHROPIC.reply(ANTHROPIC_STREAM, {}) == Reply(
        "msg_1",
        "m",
        (
            Block("thinking", "so be it", envelope="c2ln"),
            Block("text", "vèry\u2028wéll"),
            Block("tool_call", '{"a":[1],"b":1.0}', "t1", "f"),
        ),
        Usage(5, 10, 7, 30),
        Stop("tool_use", "complete"),
        diagnostics="tools_changed (12 tokens)",
    )


def test_a_chat_stream():
    assert CHAT.reply(CHAT_STREAM, {}) == Reply(
        "c1",
        "m",
        (
            Block("thinking", "hm"),
            Block("text", "Look"),
            Block("tool_call", '{"a":1,"b":2}', "k", "f"),
            Block("tool_call", "{", "l", "g"),
        ),
        Usage(20, 30, None, 9),
        Stop("tool_calls", "complete"),
    )


def test_a_responses_stream():
    assert RESPONSES.reply(RESPONSES_STREAM, {}) == Reply(
        "resp_1",
        "m",
        (*HELLO, Block("tool_call", '{"a":2,"b":1}', "k", "f")),
        Usage(6, 30, 4, 8, 3),
        Stop("completed", "complete"),
        diagnostics="cache_miss: tools_changed (9 tokens)",
    )


def test_a_gemini_stream():
    assert GEMINI.reply(GEMINI_STREAM, {}) == Reply(
        "r",
        "g",
        (*HELLO, Block("tool_call", '{"a":2,"b":1}', "", "f", "sig")),
        Usage(8, 12, None, 8, 3),
        Stop("STOP", "complete"),
    )


@pytest.mark.parametrize(("api", "data"), STREAMS, ids=lambda p: getattr(p, "name", ""))
def test_a_stream_cut_anywhere_before_its_end_is_incomplete(api, data):
    whole = api.reply(data, {})
    last = data.rindex(b"data:")
    for end in range(0, last + 5, 7):
        reply = api.reply(data[:end], {})
        assert not reply.complete
        assert reply.stop.state == "incomplete"
        assert whole.text.startswith(reply.text)
    assert api.reply(data.rstrip(b"\n"), {}) == whole


@pytest.mark.parametrize(("api", "data"), STREAMS, ids=lambda p: getattr(p, "name", ""))
@given(st.sampled_from([b"\r\n", b"\r", b"\n"]), st.booleans(), st.booleans())
def test_line_ends_comments_and_a_byte_order_mark_do_not_matter(api, data, newline, commented, marked):
    other = data.replace(b"\n\n", b"\n\n: keep-alive\n\nid: 7\nretry: 5\n") if commented else data
    other = (b"\xef\xbb\xbf" if marked else b"") + other.replace(b"\n", newline)
    assert api.reply(other, {}) == api.reply(data, {})


def test_data_lines_of_one_event_are_joined():
    (event,) = events(b'event:x\ndata: {"a":\ndata:1}\n\n')
    assert (event.name, event.value) == ("x", {"a": 1})
    assert [e.data for e in events(b"data: 1\n\ndata: {\n")] == [b"1"]
    assert [is_stream(d) for d in (b"data: 1", b": hi", b"\n\nevent: x", b"ev", b"{}", b"", b"<html>")] == (
        [True] * 4 + [False] * 3
    )


@pytest.mark.parametrize(
    ("api", "value", "expected"),
    [
        (ANTHROPIC, {"content": [], "stop_reason": "end_turn"}, "complete"),
        (ANTHROPIC, {"content": [], "stop_reason": "max_tokens"}, "truncated"),
        (ANTHROPIC, {"content": [], "stop_reason": "model_context_window_exceeded"}, "truncated"),
        (ANTHROPIC, {"content": [], "stop_reason": "pause_turn"}, "incomplete"),
        (ANTHROPIC, {"content": [], "stop_reason": "refusal"}, "blocked"),
        (ANTHROPIC, {"content": [], "stop_reason": "novel"}, "unknown"),
        (ANTHROPIC, {"content": [{"type": "server_tool_use", "id": "s"}], "stop_reason": "tool_use"}, "incomplete"),
        (CHAT, {"choices": [{"message": {"content": "x"}, "finish_reason": "stop"}]}, "complete"),
        (CHAT, {"choices": [{"message": {"content": "x"}, "finish_reason": "length"}]}, "truncated"),
        (CHAT, {"choices": [{"message": {"refusal": "x"}, "finish_reason": "stop"}]}, "blocked"),
        (CHAT, {"choices": [{"message": {"content": "x"}, "finish_reason": "content_filter"}]}, "blocked"),
        (RESPONSES, {"output": [], "status": "completed"}, "complete"),
        (
            RESPONSES,
            {"output": [], "status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}},
            "truncated",
        ),
        (
            RESPONSES,
            {"output": [], "status": "incomplete", "incomplete_details": {"reason": "content_filter"}},
            "blocked",
        ),
        (RESPONSES, {"output": [], "status": "cancelled"}, "incomplete"),
        (RESPONSES, {"output": [], "status": "failed", "error": {"message": "broke"}}, "error"),
        (GEMINI, {"candidates": [{"finishReason": "MAX_TOKENS"}]}, "truncated"),
        (GEMINI, {"candidates": [{"finishReason": "SAFETY"}]}, "blocked"),
        (GEMINI, {"candidates": [{"finishReason": "MALFORMED_FUNCTION_CALL"}]}, "incomplete"),
        (GEMINI, {"promptFeedback": {"blockReason": "OTHER"}}, "blocked"),
    ],
)
def test_what_a_stop_reason_means(api, value, expected):
    assert plain(api, value).stop.state == expected


@pytest.mark.parametrize("api", APIS, ids=lambda a: a.name)
def test_an_error_reply_gives_its_message(api):
    error = {"type": "error", "error": {"type": "overloaded_error", "message": "come back later"}}
    for value in (error, {"error": "come back later"}, {"error": {"code": 529, "message": "come back later"}}):
        reply = plain(api, value)
        assert (reply.error, reply.stop.state, reply.complete) == ("come back later", "error", True)
    broken = api.reply(stream(error), {})
    assert (broken.error, broken.stop.state) == ("come back later", "error")


@pytest.mark.parametrize("api", APIS, ids=lambda a: a.name)
@given(
    st.one_of(st.binary(max_size=60), st.sampled_from([b"", b"null", b"[]", b"[1]", b"{}", b"5", b'"x"', b"<html>"]))
)
def test_a_reply_of_any_bytes_never_raises(api, data):
    for head in (b"", b"data: ", b"event: message_start\ndata: "):
        assert not api.reply(head + data, {}).blocks


@pytest.mark.parametrize(("api", "data"), STREAMS, ids=lambda p: getattr(p, "name", ""))
@given(st.data())
def test_a_stream_whose_values_have_other_types_never_raises(api, data, draw):
    odd = draw.draw(
        st.sampled_from([b"null", b"5", b'"x"', b"[]", b"{}", b"[[]]", b"[null]", b"1e400", b"-1", b"true"])
    )
    colons = [i for i in range(len(data)) if data[i : i + 2] == b": "]
    at = draw.draw(st.sampled_from(colons)) + 2
    end = draw.draw(st.integers(at, data.index(b"\n", at)))
    api.reply(data[:at] + odd + data[end:], {})


def test_usage_of_servers_that_count_in_other_ways():
    def chat(usage):
        return plain(CHAT, {"choices": [{"message": {}, "finish_reason": "stop"}], "usage": usage}).usage

    hit = {"prompt_tokens": 10, "completion_tokens": 2, "prompt_cache_hit_tokens": 7, "prompt_cache_miss_tokens": 3}
    assert chat(hit) == Usage(3, 7, None, 2)
    assert chat({"prompt_tokens": 10, "completion_tokens": 2}) == Usage(10, None, None, 2)
    assert chat({"prompt_tokens": 10, "cached_tokens": 4}) == Usage(6, 4)
    apart = {"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 17, "completion_tokens_details": {}}
    apart["completion_tokens_details"]["reasoning_tokens"] = 5
    assert chat(apart) == Usage(10, None, None, 7, 5)
    assert chat({**apart, "completion_tokens": 7}) == Usage(10, None, None, 7, 5)
    assert chat(None) is None
    by_ttl = {"input_tokens": 1, "cache_creation": {"ephemeral_5m_input_tokens": 2, "ephemeral_1h_input_tokens": 3}}
    assert plain(ANTHROPIC, {"content": [], "usage": by_ttl}).usage == Usage(1, None, 5)
    inside = {"promptTokenCount": 10, "candidatesTokenCount": 6, "thoughtsTokenCount": 4, "totalTokenCount": 16}
    assert plain(GEMINI, {"candidates": [{"finishReason": "STOP"}], "usageMetadata": inside}).usage == Usage(
        10, 0, None, 6, 4
    )


def test_gemini_streams_without_sse_are_one_array():
    chunks = [
        {"candidates": [{"content": {"parts": [{"text": t}]}, **e}]}
        for t, e in (("a", {}), ("b", {"finishReason": "STOP"}))
    ]
    reply = plain(GEMINI, chunks)
    assert (reply.text, reply.complete) == ("ab", True)
    assert not plain(GEMINI, chunks[:1]).complete


def test_diagnostics_that_are_still_pending():
    assert plain(ANTHROPIC, {"content": [], "diagnostics": {"cache_miss_reason": None}}).diagnostics == "pending"
    assert plain(ANTHROPIC, {"content": [], "diagnostics": None}).diagnostics is None


def test_a_stream_that_starts_over_gives_its_last_message():
    twice = ANTHROPIC_STREAM.removesuffix(stream({"type": "message_stop"})) + ANTHROPIC_STREAM
    assert ANTHROPIC.reply(twice, {}) == ANTHROPIC.reply(ANTHROPIC_STREAM, {})


@pytest.mark.parametrize("depth", [300, 990, 5000])
def test_arguments_that_nest_deep_never_raise(depth):
    deep = "[" * depth + "]" * depth
    reply = ANTHROPIC.reply(f'{{"content":[{{"type":"tool_use","id":"t","input":{deep}}}]}}'.encode(), {})
    assert [b.id for b in reply.blocks] == ([] if depth == 5000 else ["t"])
    call = {"id": "k", "function": {"name": "f", "arguments": deep}}
    (block,) = plain(CHAT, {"choices": [{"message": {"tool_calls": [call]}}]}).blocks
    assert block.text in ("", deep)


def test_a_part_number_that_cannot_be_is_the_next_part():
    odd = RESPONSES_STREAM.replace(b'"content_index": 0', b'"content_index": -10')
    assert RESPONSES.reply(odd, {}).text == "hello"
