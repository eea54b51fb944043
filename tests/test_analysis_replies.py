"""What the log kept of a reply, and what the next request repeats of it."""

from __future__ import annotations

import pytest

from ctxscope.analysis.replies import compare_echo, compare_reply
from ctxscope.model import Block


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
