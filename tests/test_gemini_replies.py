"""Signatures as the reply delivered them: a request with another one is the one that differs, and no other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from ctxscope.agents import gemini
from ctxscope.model import Body, Config, Reply
from tests.gemini_cases import Chat, body_of, learned_for, reply_of, sent_call, sent_result

FIRST, SECOND, OTHER = "Zmlyc3Q=", "c2Vjb25k", "b3RoZXI="
CALLS = 5
THOUGHT = {"text": "Hm.", "thought": True}


def called(identity: str, signature: str = "") -> dict[str, Any]:
    return sent_call(identity, signature=signature)


def chat() -> Chat:
    """A turn of two tool calls and an answer, and two more of an answer each."""
    made = Chat().process()
    made.user("u1", "look")
    made.answer("g1", "I look.", ("c1", {}))
    made.result("r1", "c1")
    made.answer("g2", "", ("c2", {}))
    made.result("r2", "c2")
    made.answer("g3", "Seen.")
    made.user("u2", "again")
    made.answer("g4", "Yes.")
    made.user("u3", "more")
    made.answer("g5", "No more.")
    return made


def replies(first: str = FIRST, second: str = SECOND, *, said: str = "") -> list[Reply | None]:
    """What came back for each of the calls."""
    text = {"text": "Seen.", **({"thoughtSignature": said} if said else {})}
    return [
        reply_of(THOUGHT, {"text": "I look."}, called("c1", first)),
        reply_of(THOUGHT, called("c2", second)),
        reply_of(text),
        reply_of({"text": "Yes."}),
        reply_of({"text": "No more."}),
    ]


def bodies(change: Callable[[int, str], str] = lambda _, signature: signature, *, said: str = "") -> list[Body]:
    """What was sent for each of the calls; ``change`` by number of the call."""
    asked = {"parts": [{"text": "<session_context>\nA port.\n</session_context>"}, {"text": "look"}], "role": "user"}
    found = []
    for n in range(CALLS):
        text = change(n, said)
        sent = [
            {"parts": [{"text": "I look."}, called("c1", change(n, FIRST))], "role": "model"},
            {"parts": [sent_result("c1")], "role": "user"},
            {"parts": [called("c2", change(n, SECOND))], "role": "model"},
            {"parts": [sent_result("c2")], "role": "user"},
            {"parts": [{"text": "Seen.", **({"thoughtSignature": text} if text else {})}], "role": "model"},
            {"parts": [{"text": "again"}], "role": "user"},
            {"parts": [{"text": "Yes."}], "role": "model"},
            {"parts": [{"text": "more"}], "role": "user"},
        ]
        found.append(body_of([asked, *sent[: 2 * n]]))
    return found


def equal(
    served: Sequence[Body], came: Sequence[Reply | None] | None, order: Sequence[int] = range(CALLS)
) -> list[bool]:
    """Of each call whether the request is what log, replies and earlier requests imply."""
    log = chat().log()
    pairs = list(zip(gemini.requests(log), served, strict=True))
    found = {}
    for n in order:
        made = gemini.rebuild(log, pairs[n][0], Config(), learned_for(log, pairs[: n + 1], came))
        assert made is not None
        found[n] = made.data == served[n].data
    return [found[n] for n in sorted(found)]


def altered(at: int, what: str) -> Callable[[int, str], str]:
    """One signature changed in one request."""
    return lambda n, signature: OTHER if n == at and signature == what else signature


def test_what_a_reply_delivered_is_learned_from_it() -> None:
    log = chat().log()
    pairs = list(zip(gemini.requests(log), bodies(), strict=True))
    for n, places in enumerate(([], [1], [1, 3], [1, 3], [1, 3])):
        learned = learned_for(log, pairs[: n + 1], replies())
        made = gemini.rebuild(log, pairs[n][0], Config(), learned)
        assert made is not None
        assert made.data == pairs[n][1].data
        borrowed = [(p.path, p.provenance) for p in made.pieces if "thoughtSignature" in p.path]
        assert borrowed == [(f"/contents/{c}/parts/{int(c == 1)}/thoughtSignature", "learned") for c in places]
        assert not any("thoughtSignature" in path for path in learned.values)


@pytest.mark.parametrize(("at", "what"), [(1, FIRST), (2, FIRST), (2, SECOND), (3, FIRST), (3, SECOND)])
@pytest.mark.parametrize("order", [(0, 1, 2, 3, 4), (4, 3, 2, 1, 0), (2, 4, 3, 0, 1)])
def test_a_signature_changed_in_one_request_is_that_ones_difference(at: int, what: str, order: tuple[int, ...]) -> None:
    assert equal(bodies(altered(at, what)), replies(), order) == [n != at for n in range(CALLS)]


def test_without_the_reply_the_first_request_tells() -> None:
    came: list[Reply | None] = [None, *replies()[1:]]
    assert equal(bodies(), came) == [True] * CALLS
    assert equal(bodies(altered(1, FIRST)), came) == [True, True, False, False, False]
    assert equal(bodies(altered(2, SECOND)), came) == [True, True, False, True, True]


def test_a_reply_that_broke_off_tells_nothing() -> None:
    came = replies()
    came[0] = reply_of(THOUGHT, {"text": "I look."}, called("c1", OTHER), ended=False)
    assert equal(bodies(), came) == [True] * CALLS


def test_a_reply_with_another_call_tells_nothing() -> None:
    for strange in (called("c9", OTHER), sent_call("c1", signature=OTHER) | {"functionCall": {"name": "list"}}):
        came = replies()
        came[0] = reply_of({"text": "I look."}, strange)
        assert equal(bodies(), came) == [True] * CALLS


def test_a_call_that_came_without_an_id_is_known_by_its_name() -> None:
    came = replies()
    bare = {"functionCall": {"name": "look", "args": {}}, "thoughtSignature": FIRST}
    came[0] = reply_of({"text": "I look."}, bare)
    assert equal(bodies(altered(1, FIRST)), came) == [True, False, True, True, True]


def test_a_signature_that_no_reply_delivered_differs_wherever_it_stands() -> None:
    assert equal(bodies(altered(2, SECOND)), replies(second="")) == [True, True, False, False, False]


def test_the_signature_of_a_text_may_be_lost_but_is_no_other_than_was_delivered() -> None:
    came = replies(said="c2FpZA==")
    assert equal(bodies(said="c2FpZA=="), came) == [True] * CALLS
    assert equal(bodies(), came) == [True] * CALLS
    for order in ((0, 1, 2, 3, 4), (3, 4, 3), (4, 3)):
        found = equal(bodies(altered(3, "c2FpZA=="), said="c2FpZA=="), came, order)
        assert found == [n != 3 for n in sorted(set(order))]


def test_what_a_later_request_tells_of_a_text_is_not_put_into_an_earlier_one() -> None:
    log, served, came = chat().log(), bodies(altered(3, "c2FpZA=="), said="c2FpZA=="), replies(said="c2FpZA==")
    pairs = list(zip(gemini.requests(log), served, strict=True))
    made = []
    for n in (3, 4, 3):
        found = gemini.rebuild(log, pairs[n][0], Config(), learned_for(log, pairs[: n + 1], came))
        assert found is not None
        made.append(found.data)
    assert made[0] == made[2]
    assert made[1] == served[4].data


def test_a_reply_that_came_later_is_taken_in() -> None:
    """The same calls asked about twice: before their replies were read, and after."""
    log, served = chat().log(), bodies(altered(1, FIRST))
    pairs = list(zip(gemini.requests(log), served, strict=True))
    for came, expected in (
        ([None] * CALLS, [True, True, False, False, False]),
        (replies(), [True, False, True, True, True]),
    ):
        found = []
        for n in range(CALLS):
            made = gemini.rebuild(log, pairs[n][0], Config(), learned_for(log, pairs[: n + 1], came))
            assert made is not None
            found.append(made.data == served[n].data)
        assert found == expected


@pytest.mark.parametrize(
    ("first", "second", "agrees"), [(OTHER, FIRST, True), (FIRST, OTHER, True), (OTHER, OTHER, False)]
)
def test_two_attempts_that_do_not_agree_leave_it_to_the_request(first: str, second: str, agrees: bool) -> None:
    log, served = chat().log(), bodies()
    points = gemini.requests(log)
    pairs = [(points[0], served[0]), (points[0], served[0]), (points[1], served[1])]
    came = [reply_of({"text": "I look."}, called("c1", s)) for s in (first, second)]
    made = gemini.rebuild(log, points[1], Config(), learned_for(log, pairs, came))
    assert made is not None
    assert (made.data == served[1].data) is agrees
