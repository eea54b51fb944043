"""What the log kept of a reply, and what the next request repeats of it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxscope.analysis.findings import findings_of
from ctxscope.analysis.replies import compare_echo, compare_reply
from ctxscope.model import Block, ReplyVerdict
from tests.report_samples import unknown_call


def text(words: str) -> Block:
    return Block("text", words)


def call(arguments: str = '{"a":1,"b":2}', name: str = "read", ident: str = "c1") -> Block:
    return Block("tool_call", arguments, id=ident, name=name)


THOUGHT = Block("thinking", "hm", envelope="c2ln")
SAID = (THOUGHT, text("Here it is."), call())


@pytest.mark.parametrize(
    ("stored", "state", "cls"),
    [
        (SAID, "equal", None),
        ((THOUGHT, text("Here "), text("it is."), call()), "equal", None),
        ((text("Here it is."), call()), "equal", None),
        ((THOUGHT, text("Here it is."), call('{"b": 2, "a": 1}')), "equal", None),
        ((THOUGHT, text("Here it was."), call()), "differs", "content"),
        ((THOUGHT, text("Here it is. "), call()), "differs", "whitespace"),
        ((THOUGHT, text("Here it is."), call('{"a":1,"b":3}')), "differs", "content"),
        ((THOUGHT, text("Here it is."), call(name="write")), "differs", "content"),
        ((THOUGHT, text("Here it is."), call(ident="c2")), "differs", "id_regenerated"),
        ((THOUGHT, text("Here it is."), call(), call(ident="c2")), "differs", "extra"),
        ((Block("thinking", "ah", envelope="c2ln"), text("Here it is."), call()), "differs", "content"),
        ((Block("thinking", "hm", envelope="eHl6"), text("Here it is."), call()), "differs", "opaque"),
        ((THOUGHT, call()), "empty", "missing"),
        ((), "empty", "missing"),
        ((THOUGHT, text("Here it")), "prefix", "content"),
        ((THOUGHT, text("Here it is.")), "prefix", "missing"),
    ],
)
def test_a_stored_answer_is_judged_against_the_delivered_one(stored, state, cls):
    verdict = compare_reply(SAID, stored)
    assert verdict.state == state
    assert (verdict.first_difference.cls if verdict.first_difference else None) == cls


def test_a_trimmed_answer_differs_by_white_space_and_is_no_cut_one():
    verdict = compare_reply((text("done\n\n"),), (text("done"),))
    assert verdict.state == "differs"
    assert verdict.first_difference is not None
    assert verdict.first_difference.cls == "whitespace"
    assert verdict.first_difference.raw_offset == 4


def test_offsets_count_bytes():
    verdict = compare_reply((text("né a"),), (text("né b"),))
    assert verdict.first_difference is not None
    assert verdict.first_difference.raw_offset == 4


def test_what_is_not_there_is_said_and_not_guessed():
    assert compare_reply(None, SAID).state == "not_recorded"
    assert compare_reply(SAID, None).state == "missing"
    assert compare_reply(SAID, None, has_place=False).state == "not_logged"
    assert compare_reply(SAID, None, logged=False).state == "not_logged"


def test_arguments_that_are_no_json_are_compared_as_text():
    assert compare_reply((call('{"a":'),), (call('{"a":'),)).state == "equal"
    assert compare_reply((call('{"a":'),), (call('{"a":1'),)).state == "differs"


def test_true_is_not_one():
    assert compare_reply((call('{"a":true}'),), (call('{"a":1}'),)).state == "differs"


def test_an_echo_is_judged_only_where_both_sides_are_known():
    assert compare_echo(SAID, SAID) == "equal"
    assert compare_echo(SAID, (THOUGHT, text("Here it was."), call())) == "differs"
    assert compare_echo(None, SAID) is None
    assert compare_echo(SAID, None) is None


def test_arguments_spelled_alike_are_the_same_whatever_they_are():
    assert compare_reply((call('{"a":NaN}'),), (call('{"a":NaN}'),)).state == "equal"


# --- ids of items ----------------------------------------------------------------------------------------------------

ITEMS = (
    Block("thinking", "hm", envelope="c2ln", item_id="rs_1"),
    Block("text", "Here it is.", item_id="msg_1"),
    Block("text", " And more.", item_id="msg_1"),
    Block("tool_call", "{}", id="c1", name="read", item_id="fc_1"),
)


@pytest.mark.parametrize(
    ("at", "changed", "path"),
    [
        (0, "rs_2", "/thinking/item_id"),
        (1, "msg_2", "/text/item_id"),
        (2, "fc_2", "/tool_calls/0/item_id"),
        (0, "", None),
        (1, "", None),
        (2, "", None),
    ],
)
def test_the_id_of_an_item_is_compared_where_both_sides_have_one(at, changed, path):
    stored = [ITEMS[0], Block("text", "Here it is. And more.", item_id="msg_1"), ITEMS[3]]
    stored[at] = replace(stored[at], item_id=changed)
    verdict = compare_reply(ITEMS, tuple(stored))
    assert verdict.state == ("differs" if path else "equal")
    if path:
        found = verdict.first_difference
        assert found is not None
        assert (found.path, found.cls, found.raw_offset) == (path, "id_regenerated", len(changed) - 1)
        assert found.cause.endswith("is stored under another item id")


def test_items_of_another_number_have_no_ids_to_compare():
    assert compare_reply(ITEMS, (ITEMS[0], replace(ITEMS[0], text="", envelope="", item_id="rs_2"), *ITEMS[1:])) == (
        ReplyVerdict("equal")
    )


def test_an_echo_may_name_its_items_otherwise():
    assert compare_echo(ITEMS, tuple(replace(b, item_id="") for b in ITEMS)) == "equal"
    assert compare_echo(ITEMS, (replace(ITEMS[0], item_id="rs_2"), *ITEMS[1:])) == "equal"
    assert compare_echo(ITEMS, (*ITEMS[:3], replace(ITEMS[3], id="c2"))) == "differs"


# --- what is said first ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("stored", "cls"),
    [
        ((text("done"), call()), "whitespace"),
        ((text("done"), call(name="write")), "content"),
        ((text("done"),), "missing"),
        ((text("done"), call(ident="c2")), "id_regenerated"),
        ((text("done\n\n"), call(ident="c2"), call()), "extra"),
    ],
)
def test_white_space_and_ids_hide_no_graver_difference(stored, cls):
    verdict = compare_reply((text("done\n\n"), call()), stored)
    assert verdict.state == "differs"
    assert verdict.first_difference is not None
    assert verdict.first_difference.cls == cls


@pytest.mark.parametrize(
    ("reply", "severity"),
    [
        (compare_reply((text(" done\n\n"),), (text("done"),)), "info"),
        (compare_reply((text("a  b"),), (text("a b"),)), "info"),
        (compare_reply((text("done\n\n"), call()), (text("done"),)), "error"),
        (compare_reply((text("done"),), (text("gone"),)), "error"),
        (compare_reply((text("done"),), None), "warning"),
    ],
)
def test_white_space_that_an_agent_trims_is_worth_a_note_and_no_alarm(reply, severity):
    (finding,) = findings_of([replace(unknown_call(), reply=reply)], [])
    assert (finding.code, finding.severity) == ("CTX102", severity)


# --- a recording that broke off --------------------------------------------------------------------------------------

STORED = (THOUGHT, text("Here it is."), call(), call('{"path":"x"}', ident="c2"))
TORN = [
    ((), "/thinking", "before the thinking text"),
    ((Block("thinking", "h"),), "/thinking", "in the thinking text"),
    ((Block("thinking", "hm"),), "/text", "before the text"),
    ((Block("thinking", "hm", envelope="c2"),), "/text", "before the text"),
    ((THOUGHT, text("Here")), "/text", "in the text"),
    ((THOUGHT, text("Here it is.")), "/tool_calls/0", "before tool call 0"),
    ((THOUGHT, text("Here it is."), call("")), "/tool_calls/1", "before tool call 1"),
    ((*SAID[:2], STORED[2]), "/tool_calls/1", "before tool call 1"),
    ((*STORED[:3], call('{"pa', ident="c2")), "/tool_calls/1/arguments", "in the arguments of tool call 1"),
    ((*STORED[:3], call("{}", ident="c2")), "/tool_calls/1/arguments", "in the arguments of tool call 1"),
]


@pytest.mark.parametrize(("recorded", "path", "place"), TORN, ids=[t[2] for t in TORN])
def test_what_a_recording_lacks_is_not_recorded_and_no_difference(recorded, path, place):
    verdict = compare_reply(recorded, STORED, complete=False)
    assert verdict.state == "not_recorded"
    found = verdict.first_difference
    assert found is not None
    assert (found.path, found.cause) == (path, f"the recording of the reply breaks off {place}; the log goes on")
    assert findings_of([replace(unknown_call(), reply=verdict)], []) == []


@pytest.mark.parametrize(
    ("recorded", "state", "cls"),
    [
        (STORED, "equal", None),
        ((Block("thinking", "ah"),), "differs", "content"),
        ((THOUGHT, text("Where")), "differs", "content"),
        ((*SAID[:2], call(name="write")), "differs", "content"),
        ((*SAID[:2], call('{"pa', ident="c3")), "differs", "id_regenerated"),
        ((*SAID[:2], call('{"a":3}'), call("{}", ident="c2")), "differs", "content"),
        ((Block("thinking", "hm", envelope="eHl6"),), "differs", "opaque"),
        ((*SAID[:1], text("Here it is. And more")), "differs", "content"),
    ],
)
def test_what_was_recorded_of_a_torn_reply_is_compared(recorded, state, cls):
    verdict = compare_reply(recorded, STORED, complete=False)
    assert verdict.state == state
    assert (verdict.first_difference.cls if verdict.first_difference else None) == cls


def test_an_answer_cut_in_the_log_too_is_a_prefix_of_what_was_recorded():
    assert compare_reply((text("Here it"),), (text("Here"),), complete=False).state == "prefix"
    assert compare_reply((text("Here it"),), (text("Here it"),), complete=False).state == "equal"


@given(st.integers(0, 11), st.integers(0, 2))
def test_any_beginning_of_an_answer_agrees_with_the_whole(characters, calls):
    recorded = (THOUGHT, text("Here it is."[:characters]), *STORED[2 : 2 + (calls if characters == 11 else 0)])
    verdict = compare_reply(recorded, STORED, complete=False)
    assert verdict.state == ("equal" if recorded == STORED else "not_recorded")
