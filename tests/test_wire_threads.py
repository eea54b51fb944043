"""The request a log implies for a thread: expanded as the served one is, from what the log keeps of the answers."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given

from ctxscope.model import Block, Body
from ctxscope.wire import by_name
from ctxscope.wire.anthropic_messages import as_stored
from ctxscope.wire.body import make_body
from ctxscope.wire.json_text import loads
from tests.wire_bodies import values

ANTHROPIC, RESPONSES = by_name("anthropic-messages"), by_name("openai-responses")
CONTENT: list[dict[str, Any]] = [
    {"type": "thinking", "thinking": "hm", "signature": "c2ln"},
    {"type": "text", "text": "Looking.", "citations": None},
    {"type": "server_tool_use", "id": "s1", "name": "search", "input": {"q": "x"}},
    {"type": "tool_use", "id": "t1", "name": "look", "input": {"z": [{"b": 1, "a": "é"}], "a": 2.0}},
    {"type": "redacted_thinking", "data": "AAAA"},
]
REPLY = json.dumps({"type": "message", "id": "msg_1", "role": "assistant", "content": CONTENT}).encode()
STORED = (
    Block("thinking", "hm", envelope="c2ln"),
    Block("text", "Looking."),
    Block("tool_call", '{"q":"x"}', id="s1", name="search"),
    Block("tool_call", '{"a":2,"z":[{"a":"é","b":1}]}', id="t1", name="look"),
    Block("thinking", "[redacted]", envelope="AAAA"),
)
FIRST = b'{"model":"m","system":"s","messages":[{"role":"user","content":"a"}],"thread":{"type":"create"}}'
NEXT = (
    b'{"model":"m","messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"seen"}]}],'
    b'"thread":{"type":"continue","previous_message_id":"msg_1"}}'
)


def expanded(stored: tuple[Block, ...] | None, first: bytes = FIRST, now: bytes = NEXT) -> Body:
    reply = ANTHROPIC.reply(REPLY, {})
    found = ANTHROPIC.expand(make_body(now, ANTHROPIC), make_body(first, ANTHROPIC), reply, REPLY, stored)
    assert found is not None
    return found


def changed(at: int, **parts: str) -> tuple[Block, ...]:
    return (*STORED[:at], replace(STORED[at], **parts), *STORED[at + 1 :])


def test_a_log_that_keeps_the_answer_implies_the_bytes_that_were_served():
    assert expanded(STORED).data == expanded(None).data
    without_thinking = tuple(b for b in STORED if b.kind != "thinking")
    assert expanded(without_thinking).data == expanded(None).data
    in_pieces = (STORED[0], Block("text", "Look"), Block("text", "ing."), *STORED[2:])
    assert expanded(in_pieces).data == expanded(None).data


@pytest.mark.parametrize(
    ("stored", "old", "new"),
    [
        (changed(1, text="Lookzng."), "Looking.", "Lookzng."),
        (changed(0, text="hq"), '"hm"', '"hq"'),
        (changed(0, envelope="c2lm"), "c2ln", "c2lm"),
        (changed(4, envelope="AAAB"), "AAAA", "AAAB"),
        (changed(3, text='{"a":2,"z":[{"a":"e","b":1}]}'), '"a":"é"', '"a":"e"'),
        (changed(3, name="lock"), '"look"', '"lock"'),
        (changed(3, id="t2"), '"id":"t1"', '"id":"t2"'),
        (changed(3, text="no json"), '{"z":[{"b":1,"a":"é"}],"a":2}', '"no json"'),
        (
            STORED[:3] + STORED[4:],
            '{"type":"tool_use","id":"t1","name":"look","input":{"z":[{"b":1,"a":"é"}],"a":2}},',
            "",
        ),
        ((*STORED, Block("text", "")), "", ""),
        (
            (*STORED, Block("tool_call", '{"b":1}', id="t3", name="f")),
            '"data":"AAAA"}',
            '"data":"AAAA"},{"type":"tool_use","id":"t3","name":"f","input":{"b":1}}',
        ),
    ],
)
def test_another_answer_in_the_log_differs_where_the_log_does(stored, old, new):
    served = expanded(None).data.decode()
    assert served.count(old) == 1 or not old
    assert expanded(stored).data.decode() == served.replace(old, new)


def test_what_came_before_is_as_rebuilt_and_may_differ():
    other = FIRST.replace(b'"a"', b'"b"')
    assert expanded(STORED, other).data == expanded(None).data.replace(b'"content":"a"', b'"content":"b"')
    earlier, name = expanded(STORED, other), b'"previous_message_id":"msg_1"'
    again = ANTHROPIC.expand(make_body(NEXT, ANTHROPIC), earlier, ANTHROPIC.reply(REPLY, {}), REPLY, STORED)
    assert again is not None
    assert again.data.count(b'"content":"b"') == 1
    assert len(ANTHROPIC.messages(again)) == 5
    unnamed = make_body(NEXT.replace(name, b'"previous_message_id":"msg_2"'), ANTHROPIC)
    assert ANTHROPIC.expand(unnamed, earlier, ANTHROPIC.reply(REPLY, {}), REPLY, STORED) is None


@given(values, values)
def test_a_call_stored_with_sorted_arguments_is_the_one_delivered(given_, other):
    def stored(value: object) -> list[Block]:
        text = json.dumps(value, sort_keys=True, ensure_ascii=False)
        return [Block("tool_call", text, id="t", name="f")]

    content = [{"type": "tool_use", "id": "t", "name": "f", "input": given_}]
    assert as_stored(content, stored(given_)) == content
    (found,) = as_stored(content, stored(other))
    # an integer of more than 64 bits is read as the clients read it: as the nearest double
    assert found["input"] == loads(json.dumps(other)) or found == content[0]


def test_a_response_that_goes_on_from_a_stored_answer_cannot_be_known():
    reply = json.dumps({"id": "resp_1", "status": "completed", "output": []}).encode()
    now, first = (make_body(d, RESPONSES) for d in (b'{"previous_response_id":"resp_1"}', b'{"input":"hi"}'))
    assert RESPONSES.expand(now, first, RESPONSES.reply(reply, {}), reply) is not None
    assert RESPONSES.expand(now, first, RESPONSES.reply(reply, {}), reply, ()) is None
