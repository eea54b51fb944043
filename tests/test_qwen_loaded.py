"""A Qwen Code chat read back by a new process: lines Node takes for two, cut answers, calls that a kill left behind."""

from __future__ import annotations

import json

from ctxscope.agents import at_hand, qwen
from ctxscope.model import Config, Learned
from tests.qwen_cases import ENVIRONMENT, Chat, body_of, call, said

NEW, SAME = "c205f8ac98170", "s-1########2"
BREAK = "low\u2028water"


def broken(*, follows_it: bool, prompt: str = NEW, first: str = "look") -> Chat:
    """A turn answered with a line end inside, and the next turn, which goes on from that answer or from before it."""
    chat = Chat()
    chat.user(first)
    chat.answer(call("c1"))
    before = chat.result("c1")
    answer = chat.answer(BREAK)
    chat.user("more", after=answer if follows_it else before)
    chat.event("api_response", prompt_id=prompt, input_token_count=90)
    chat.answer("ok")
    return chat


def test_a_process_that_went_on_from_such_a_line_has_read_it():
    log = broken(follows_it=True).log()
    assert said(log, qwen.requests(log)[-1]) == ["u:look", "a:None call(c1)", "t:seen (c1)", f"a:{BREAK}", "u:more"]


def test_a_process_that_went_on_from_before_it_has_not():
    log = broken(follows_it=False).log()
    assert said(log, qwen.requests(log)[-1]) == ["u:look", "a:None call(c1)", "t:seen (c1)", "u:more"]


def test_what_stands_before_such_a_line_is_lost_with_it():
    log = broken(follows_it=False, first=f"look at {BREAK}").log()
    first, *_, last = qwen.requests(log)
    assert said(log, first) == [f"u:look at {BREAK}"]
    assert said(log, last) == ["a:None call(c1)", "t:seen (c1)", "u:more"]
    assert [e.key for e in last.context] == ["l2", "l3", "l5"]


def test_an_interactive_process_still_holds_it():
    log = broken(follows_it=False, prompt=SAME, first=f"look at {BREAK}").log()
    assert said(log, qwen.requests(log)[-1])[0] == f"u:look at {BREAK}"


def test_an_answer_read_back_first_is_one_with_the_thanks_for_the_environment():
    log = broken(follows_it=False, first=f"look at {BREAK}").log()
    thanks = {
        **ENVIRONMENT[1],
        "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}],
    }
    seen = {"role": "tool", "tool_call_id": "c1", "content": [{"type": "text", "text": "seen"}]}
    more = {"role": "user", "content": [{"type": "text", "text": "more"}]}
    first = body_of([{"role": "user", "content": [{"type": "text", "text": f"look at {BREAK}"}]}])
    last = body_of([ENVIRONMENT[0], thanks, seen, more], environment=False)
    points = qwen.requests(log)
    learned = qwen.learn(log, points[-1], last, at_hand([(points[0], first)]))
    assert qwen.rebuild(log, points[-1], Config(), learned).data == last.data


def cut(prompt: str) -> Chat:
    chat = Chat()
    chat.user("look")
    chat.answer("the ti")
    chat.answer("the tide")
    chat.user("more")
    chat.event("api_response", prompt_id=prompt, input_token_count=90)
    chat.answer("ok")
    return chat


def test_a_cut_answer_is_read_back_with_the_one_that_took_its_place():
    log = cut(NEW).log()
    assert said(log, qwen.requests(log)[-1]) == ["u:look", "a:the tithe tide", "u:more"]


def test_the_process_that_asked_again_goes_on_without_it():
    log = cut(SAME).log()
    assert said(log, qwen.requests(log)[-1]) == ["u:look", "a:the tide", "u:more"]


def killed() -> Chat:
    chat = Chat()
    chat.user("look")
    chat.answer(call("c1"))
    chat.result("c1")
    chat.user("more")
    chat.answer("ok")
    return chat


def test_results_that_no_answer_followed_were_sent_in_a_call_of_their_turn():
    log = killed().log()
    points = qwen.requests(log)
    assert [(p.turn, p.answer is None, bool(p.data.get("dead"))) for p in points] == [
        (1, False, False),
        (1, True, True),
        (2, False, False),
    ]
    assert said(log, points[1])[-1] == "t:seen (c1)"
    assert said(log, points[2])[-2:] == ["t:seen (c1)", "u:more"]


def test_a_message_known_to_be_sent_was_sent_in_a_call_of_its_own():
    chat = Chat()
    chat.user("look")
    chat.add("system", subtype="attribution_snapshot", systemPayload={})
    chat.user("more")
    chat.answer("ok")
    log = chat.log()
    first, second = qwen.requests(log)
    assert (first.answer, first.data["model"]) == (None, None)
    served = body_of([{"role": "user", "content": [{"type": "text", "text": "look"}]}])
    learned = qwen.learn(log, first, served, at_hand())
    assert qwen.rebuild(log, first, Config(), learned).data == served.data
    assert learned.values["/model"].data == b'"m-1"'
    assert "/model" not in qwen.learn(log, second, served, at_hand()).values
    assert "model" not in json.loads(qwen.rebuild(log, first, Config(), Learned()).data)
