from __future__ import annotations

import json

import pytest
from hypothesis import given

from ctxscope.model import Block, Message
from ctxscope.wire import by_name
from ctxscope.wire.body import make_body
from tests.wire_bodies import APIS, bodies

ANTHROPIC, CHAT, GEMINI, RESPONSES = (
    by_name(n) for n in ("anthropic-messages", "openai-chat", "gemini", "openai-responses")
)
THREAD_REPLY = json.dumps(
    {
        "id": "msg_1",
        "content": [
            {"type": "thinking", "thinking": "hm", "signature": "c2ln"},
            {"type": "text", "text": "Lookíng."},
            {"type": "tool_use", "id": "t1", "name": "look", "input": {"b": 1, "a": 2}},
        ],
        "stop_reason": "tool_use",
    }
).encode()


def body(api, value, parent=None):
    return make_body(json.dumps(value).encode(), api, parent)


def test_anthropic_messages():
    given_ = body(
        ANTHROPIC,
        {
            "system": [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}],
            "messages": [
                {"role": "user", "content": "hi"},
                {
                    "role": "assistant",
                    "content": [
                        {"type": "redacted_thinking", "data": "enc"},
                        {"type": "tool_use", "id": "t", "name": "look", "input": {"b": "é", "a": 1}},
                    ],
                },
                {
                    "role": "user",
                    "content": [
                        {"type": "tool_result", "tool_use_id": "t", "content": [{"type": "text", "text": "seen"}]},
                        {"type": "image", "source": {}},
                        {"type": "novel"},
                    ],
                },
            ],
        },
    )
    assert ANTHROPIC.system(given_) == "one\ntwo"
    assert ANTHROPIC.messages(given_) == (
        Message("user", (Block("text", "hi", path="/messages/0/content"),), "/messages/0"),
        Message(
            "assistant",
            (
                Block("thinking", envelope="enc", path="/messages/1/content/0"),
                Block("tool_call", '{"a":1,"b":"é"}', "t", "look", path="/messages/1/content/1"),
            ),
            "/messages/1",
        ),
        Message(
            "user",
            (
                Block("tool_result", "seen", "t", path="/messages/2/content/0"),
                Block("image", path="/messages/2/content/1"),
                Block("other", path="/messages/2/content/2"),
            ),
            "/messages/2",
        ),
    )


def test_chat_messages():
    call = {"id": "k", "type": "function", "function": {"name": "f", "arguments": '{"b": 1, "a": 2}'}}
    given_ = body(
        CHAT,
        {
            "messages": [
                {"role": "system", "content": "one"},
                {"role": "developer", "content": [{"type": "text", "text": "two"}]},
                {"role": "user", "content": [{"type": "text", "text": "hi"}, {"type": "image_url"}]},
                {"role": "assistant", "content": None, "reasoning": "hm", "tool_calls": [call]},
                {"role": "tool", "tool_call_id": "k", "content": "seen"},
                {"role": "system", "content": "late"},
                {"role": "assistant", "reasoning_details": [{"type": "reasoning.text", "text": "x", "signature": "s"}]},
            ]
        },
    )
    assert CHAT.system(given_) == "one\ntwo"
    assert [(m.role, m.path, m.blocks) for m in CHAT.messages(given_)] == [
        (
            "user",
            "/messages/2",
            (Block("text", "hi", path="/messages/2/content/0"), Block("image", path="/messages/2/content/1")),
        ),
        (
            "assistant",
            "/messages/3",
            (
                Block("thinking", "hm", path="/messages/3/reasoning"),
                Block("tool_call", '{"a":2,"b":1}', "k", "f", path="/messages/3/tool_calls/0"),
            ),
        ),
        ("tool", "/messages/4", (Block("tool_result", "seen", "k", path="/messages/4/content"),)),
        ("system", "/messages/5", (Block("text", "late", path="/messages/5/content"),)),
        (
            "assistant",
            "/messages/6",
            (Block("thinking", "x", envelope="s", path="/messages/6/reasoning_details/0"),),
        ),
    ]


def test_responses_messages_gather_what_the_model_wrote_in_a_row():
    given_ = body(
        RESPONSES,
        {
            "instructions": "one",
            "input": [
                {"role": "developer", "content": "two"},
                {"role": "user", "content": [{"type": "input_text", "text": "hi"}, {"type": "input_image"}]},
                {
                    "type": "reasoning",
                    "id": "rs",
                    "summary": [{"type": "summary_text", "text": "hm"}],
                    "encrypted_content": "e",
                },
                {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "yes"}]},
                {"type": "function_call", "call_id": "k", "name": "f", "arguments": "not json"},
                {"type": "function_call_output", "call_id": "k", "output": [{"type": "input_text", "text": "seen"}]},
            ],
        },
    )
    assert RESPONSES.system(given_) == "one\ntwo"
    assert [(m.role, m.path, [(b.kind, b.text) for b in m.blocks]) for m in RESPONSES.messages(given_)] == [
        ("user", "/input/1", [("text", "hi"), ("image", "")]),
        ("assistant", "/input/2", [("thinking", "hm"), ("text", "yes"), ("tool_call", "not json")]),
        ("tool", "/input/5", [("tool_result", "seen")]),
    ]
    assert RESPONSES.messages(given_)[1].blocks[0].envelope == "e"


def test_what_a_response_holds_carries_the_ids_of_its_items():
    output = [
        {"type": "reasoning", "id": "rs_1", "summary": []},
        {"type": "message", "id": "msg_1", "content": [{"type": "output_text", "text": t} for t in "ab"]},
        {"type": "function_call", "id": "fc_1", "call_id": "k", "name": "f", "arguments": "{}"},
        {"type": "web_search_call", "id": "ws_1", "action": {}},
        {"type": "message", "content": "c"},
    ]
    found = RESPONSES.reply(json.dumps({"id": "resp_1", "output": output}).encode(), {})
    assert [(b.kind, b.id, b.item_id) for b in found.blocks] == [
        ("thinking", "", "rs_1"),
        ("text", "", "msg_1"),
        ("text", "", "msg_1"),
        ("tool_call", "k", "fc_1"),
        ("tool_call", "ws_1", "ws_1"),
        ("text", "", ""),
    ]
    assert found.ids == {"resp_1", "k", "ws_1"}


def test_gemini_messages():
    given_ = body(
        GEMINI,
        {
            "systemInstruction": {"parts": [{"text": "one"}]},
            "contents": [
                {
                    "role": "model",
                    "parts": [
                        {"text": "hm", "thought": True},
                        {"functionCall": {"id": "k", "name": "f", "args": {"b": 1, "a": 2}}, "thoughtSignature": "s"},
                    ],
                },
                {"role": "user", "parts": [{"functionResponse": {"name": "f", "response": {"output": "seen"}}}]},
            ],
        },
    )
    assert GEMINI.system(given_) == "one"
    assert [b for m in GEMINI.messages(given_) for b in m.blocks] == [
        Block("thinking", "hm", path="/contents/0/parts/0"),
        Block("tool_call", '{"a":2,"b":1}', "k", "f", "s", "/contents/0/parts/1"),
        Block("tool_result", "seen", "", "f", path="/contents/1/parts/0"),
    ]


@given(bodies)
def test_messages_and_system_of_any_body_never_raise(data):
    for api in APIS:
        given_ = make_body(data, api)
        assert all(m.path for m in api.messages(given_))
        assert isinstance(api.system(given_), str)
        api.requested_max(given_)


def test_the_requested_output_cap():
    assert ANTHROPIC.requested_max(body(ANTHROPIC, {"max_tokens": 7})) == 7
    assert CHAT.requested_max(body(CHAT, {"max_tokens": 7, "max_completion_tokens": 9})) == 9
    assert RESPONSES.requested_max(body(RESPONSES, {"max_output_tokens": 7})) == 7
    assert GEMINI.requested_max(body(GEMINI, {"generationConfig": {"maxOutputTokens": 7}})) == 7
    for api in APIS:
        assert api.requested_max(body(api, {"max_tokens": "7", "max_output_tokens": True})) is None


def test_a_thread_continues_with_the_earlier_messages_and_the_answer():
    first = b'{"model": "m", "tools": [{"name":"look","x":1.0}],"system":"s\\u00e9", "messages": [ {"role":"user","content":"a"} ]}'
    earlier = make_body(first, ANTHROPIC)
    new = [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "seen"}]}]
    thread = {"type": "continue", "previous_message_id": "msg_1"}
    now = body(ANTHROPIC, {"model": "m2", "messages": new, "stream": True, "thread": thread})
    assert ANTHROPIC.is_continuation(now)
    assert not ANTHROPIC.is_continuation(earlier)
    reply = ANTHROPIC.reply(THREAD_REPLY, {})
    effective = ANTHROPIC.expand(now, earlier, reply, THREAD_REPLY)
    assert (
        effective.data
        == (
            '{"model":"m2","tools":[{"name":"look","x":1.0}],"system":"s\\u00e9","messages":[{"role":"user","content":"a"},'
            '{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"c2ln"},'
            '{"type":"text","text":"Lookíng."},'
            '{"type":"tool_use","id":"t1","name":"look","input":{"b":1,"a":2}}]},'
            '{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "seen"}]}],"stream":true}'
        ).encode()
    )
    head = [s.digest for s in earlier.segments if s.kind != "param"]
    assert [s.digest for s in effective.segments if s.kind != "param"][: len(head)] == head
    assert effective.model == "m2"


@pytest.mark.parametrize("named", ["msg_2", "", None])
def test_a_thread_with_another_answer_cannot_be_known(named):
    earlier = body(ANTHROPIC, {"messages": []})
    now = body(ANTHROPIC, {"messages": [], "thread": {"type": "continue", "previous_message_id": named}})
    reply = ANTHROPIC.reply(THREAD_REPLY, {})
    assert ANTHROPIC.expand(now, earlier, reply, THREAD_REPLY) is None


def test_a_thread_without_a_whole_answer_cannot_be_known():
    earlier = body(ANTHROPIC, {"messages": []})
    now = body(ANTHROPIC, {"messages": [], "thread": {"type": "continue", "previous_message_id": "msg_1"}})
    torn = f"data: {json.dumps({'type': 'message_start', 'message': {'id': 'msg_1'}})}\n\n".encode()
    assert ANTHROPIC.expand(now, earlier, ANTHROPIC.reply(torn, {}), torn) is None
    assert ANTHROPIC.expand(now, earlier, None, None) is None
    assert ANTHROPIC.expand(now, make_body(b"{", ANTHROPIC), ANTHROPIC.reply(THREAD_REPLY, {}), THREAD_REPLY) is None


def test_a_response_continues_with_the_earlier_input_and_the_output():
    earlier = body(RESPONSES, {"model": "m", "input": "hi", "instructions": "old", "tools": [{"name": "f"}]})
    output = [
        {"type": "reasoning", "encrypted_content": "e"},
        {"type": "function_call", "call_id": "k", "arguments": "{}"},
    ]
    data = json.dumps({"id": "resp_1", "status": "completed", "output": output}).encode()
    new = [{"type": "function_call_output", "call_id": "k", "output": "o"}]
    now = body(RESPONSES, {"model": "m", "previous_response_id": "resp_1", "input": new, "instructions": "new"})
    assert RESPONSES.is_continuation(now)
    reply = RESPONSES.reply(data, {})
    effective = RESPONSES.expand(now, earlier, reply, data)
    assert json.loads(effective.data) == {
        "model": "m",
        "instructions": "new",
        "input": [{"role": "user", "content": "hi"}, *output, *new],
    }
    other = body(RESPONSES, {"previous_response_id": "resp_2", "input": new})
    assert RESPONSES.expand(other, earlier, reply, data) is None


def test_stateless_apis_never_continue():
    for api in (CHAT, GEMINI):
        given_ = body(api, {"thread": {"type": "continue"}, "previous_response_id": "x"})
        assert not api.is_continuation(given_)
        assert api.expand(given_, given_, None, None) is None
