"""In which ways two segments differ that say the same, and that two that say two things are never taken for one."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxscope.analysis.likeness import classes, kinds_apart
from ctxscope.analysis.parting import parting
from ctxscope.analysis.providers.rules import DIFFERENCES
from ctxscope.model import Segment
from tests.analysis_bodies import body
from tests.analysis_judging import judge_cache
from tests.analysis_requests import PARENT, TOLD, blocks

MESSAGE = Segment("/messages/1", 0, 1, "message", "assistant")
TOOL = Segment("/tools/0", 0, 1, "tool")
CALL = '{"role":"assistant","content":"hi","tool_calls":[{"id":"call_1","type":"function","function":{"name":"f","arguments":"%s"}}]}'
KINDS = [
    (MESSAGE, '{"a": 1}', '{"a":1}', {"whitespace"}),
    (MESSAGE, '{"a":"é"}', '{"a":"\\u00e9"}', {"escape"}),
    (MESSAGE, '{"a":1,"b":2}', '{"b":2,"a":1}', {"message_key_order"}),
    (TOOL, '{"a":1,"b":2}', '{"b":2,"a":1}', {"tool_key_order"}),
    (TOOL, '{"input_schema":{"a":1,"b":2}}', '{"input_schema":{"b":2,"a":1}}', {"schema_key_order"}),
    (TOOL, '{"function":{"parameters":{"max":1}}}', '{"function":{"parameters":{"max":1.0}}}', {"number_spelling"}),
    (MESSAGE, '{"input":{"a":1,"b":2}}', '{"input":{"b":2,"a":1}}', {"arguments_key_order"}),
    (MESSAGE, '{"input":{"a":null}}', '{"input":{}}', None),
    (MESSAGE, '{"refusal":null}', "{}", {"null_member"}),
    (MESSAGE, '{"refusal":"no"}', "{}", None),
    (MESSAGE, '{"tool_use_id":"a","content":"x"}', '{"tool_use_id":"b","content":"x"}', {"tool_call_id"}),
    (MESSAGE, '{"id":"a","input":{}}', '{"id":"b","input":{}}', {"tool_call_id"}),
    (MESSAGE, '{"id":"a","text":"x"}', '{"id":"b","text":"x"}', None),
    (
        MESSAGE,
        '{"type":"message","id":"a","content":"x"}',
        '{"type":"message","id":"b","content":"x"}',
        {"tool_call_id"},
    ),
    (
        MESSAGE,
        '{"type":"function_call","id":"a","call_id":"c"}',
        '{"type":"function_call","call_id":"c"}',
        {"tool_call_id"},
    ),
    (MESSAGE, '{"type":"message","id":"a","content":"x"}', '{"type":"message","content":"y"}', None),
    (MESSAGE, '{"type":"item_reference","id":"a"}', '{"type":"item_reference","id":"b"}', None),
    (MESSAGE, '{"type":"image_generation_call","id":"a"}', '{"type":"image_generation_call"}', None),
    (MESSAGE, '{"type":["message"],"id":"a"}', '{"type":["message"],"id":"b"}', None),
    (MESSAGE, '{"input":{"type":"message","id":"a"}}', '{"input":{"type":"message","id":"b"}}', None),
    (MESSAGE, '{"content":"x"}', '{"content":[{"type":"text","text":"x"}]}', {"form"}),
    (MESSAGE, '{"content":"5"}', '{"content":5}', None),
    (MESSAGE, '{"a":true}', '{"a":1}', None),
    (MESSAGE, '{"a":"x","cache_control":{"type":"ephemeral"}}', '{ "a":"x"}', {"whitespace", "escape"}),
    (MESSAGE, CALL % '{\\"a\\":1,\\"b\\":2}', CALL % '{\\"b\\":2,\\"a\\":1}', {"arguments_key_order"}),
    (MESSAGE, CALL % '{\\"a\\":1}', CALL % '{\\"a\\": 1}', {"arguments_text"}),
    (MESSAGE, CALL % '{\\"a\\":1e3}', CALL % '{\\"a\\":1000.0}', {"arguments_text"}),
    (MESSAGE, CALL % '{\\"a\\":1000}', CALL % '{\\"a\\":1000.0}', {"number_spelling"}),
    (MESSAGE, CALL % '{\\"a\\":1', CALL % '{\\"a\\":2', None),
    (MESSAGE, '{"a":1e999999999999999999999}', '{"a":1}', None),
    (MESSAGE, '{"a":1,"a":2}', '{"a":2,"a":1}', None),
    (MESSAGE, "{", "[", None),
]


@pytest.mark.parametrize(("segment", "new", "old", "kinds"), KINDS)
def test_the_kinds_of_a_difference(segment: Segment, new: str, old: str, kinds: set[str] | None):
    found = kinds_apart(new.encode(), old.encode(), segment)
    assert (found is None and kinds is None) or (found is not None and kinds is not None and found <= kinds and found)
    assert found is None or found <= DIFFERENCES
    assert kinds_apart(old.encode(), new.encode(), segment) == found


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abcdef"), inner, max_size=4),
    max_leaves=12,
)


@given(VALUES, VALUES)
def test_two_values_are_alike_only_where_a_parser_makes_one_of_them_but_for_nulls_and_forms(one: Any, two: Any):
    found = kinds_apart(json.dumps(one).encode(), json.dumps(two).encode(), MESSAGE)
    if one == two and json.dumps(one) == json.dumps(two):
        assert found is not None
    if found is not None and not found & {"null_member", "form"}:
        assert one == two


@given(st.dictionaries(st.sampled_from("abcdef"), VALUES, max_size=5))
def test_an_object_written_anew_in_another_order_is_alike(value: dict[str, Any]):
    text, turned = json.dumps({"input": value}), json.dumps({"input": dict(reversed(value.items()))}, indent=1)
    found = kinds_apart(turned.encode(), text.encode(), MESSAGE)
    assert found is not None
    assert "arguments_key_order" in found or list(value) == list(reversed(value))


@pytest.mark.parametrize(
    ("one", "two"),
    [({"job": {"id": "job-1", "function": "f"}}, {"job": {"id": "job-2", "function": "f"}}), ({"a": None}, {})],
)
def test_what_a_tool_gave_back_as_an_object_is_no_part_of_the_api(one: Any, two: Any):
    texts = [json.dumps({"functionResponse": {"name": "f", "response": side}}).encode() for side in (one, two)]
    assert kinds_apart(texts[0], texts[1], MESSAGE) is None


def test_what_differs_is_told_by_the_classes_of_the_report():
    assert classes(["tool_call_id", "null_member", "whitespace"]) == ["id_regenerated", "null_vs_missing", "whitespace"]


def test_a_message_of_another_role_is_another_message():
    call = blocks(1, *TOLD[:2], TOLD[2] | {"id": "c9"})
    assert judge_cache(body(call), body(PARENT)).cause == "assistant_echo_mismatch"
    call["messages"][1]["role"] = "user"
    assert judge_cache(body(call), body(PARENT)).cause != "assistant_echo_mismatch"


def test_a_message_whose_members_turned_round_is_the_same_message():
    call = blocks(1, *TOLD[:2], TOLD[2] | {"id": "c9"})
    turned = blocks(1, *TOLD[:2], TOLD[2] | {"id": "c9"})
    turned["messages"][1] = dict(reversed(turned["messages"][1].items()))
    assert judge_cache(body(turned), body(PARENT)).cause == judge_cache(body(call), body(PARENT)).cause
    turned["messages"][1]["name"] = "Ann"
    assert judge_cache(body(turned), body(PARENT)).cause == "history_rewritten"


def test_the_parting_of_two_requests_has_the_class_of_its_difference():
    call = body(blocks(1, *TOLD[:2], TOLD[2] | {"id": "c9"}))
    found = parting(body(PARENT), call, "/messages/1/content/2")
    assert found is not None
    assert found.cls == "id_regenerated"
