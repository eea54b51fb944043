"""Qwen Code's chat as it is read: which calls it tells of, what they were made of, and what rewrote it."""

from __future__ import annotations

import json

import pytest

from ctxscope.agents import qwen
from ctxscope.agents.qwen.recovery import RECOVERY
from ctxscope.model import Config, Learned, Place, Record, Usage
from tests.qwen_cases import CONTINUE, THANKS, Chat, call, content, messages, result, said, thought


def looked() -> Chat:
    """A turn with a tool call and its answer."""
    chat = Chat()
    chat.user("look")
    chat.answer(thought("hm"), "I look.", call("c1", b=1, a=2), response="r-1")
    chat.result("c1")
    chat.answer("Seen.", response="r-2")
    return chat


def test_each_answer_is_a_call_made_of_the_lines_before_it() -> None:
    log = looked().log()
    first, second = qwen.requests(log)
    assert said(log, first) == ["u:look"]
    assert said(log, second) == ["u:look", "a:I look. call(c1)", "t:seen (c1)"]
    assert messages(log, second)[1]["reasoning_content"] == "hm"
    assert messages(log, second)[1]["tool_calls"][0]["function"]["arguments"] == '{"b":1,"a":2}'
    assert (first.ids, second.ids) == ({"r-1", "c1"}, {"r-2"})
    assert (first.turn, first.kind, first.api, first.key) == (1, "main", "openai-chat", "l3")
    assert first.stored_usage == Usage(60, 30, None, 9, 2)
    assert [(b.kind, b.text) for b in first.blocks] == [
        ("thinking", "hm"),
        ("text", "I look."),
        ("tool_call", '{"a":2,"b":1}'),
    ]
    assert [e.key for e in second.context] == ["l1", "l3", "l4"]


def test_a_message_that_waits_is_an_open_call() -> None:
    chat = looked()
    chat.user("again")
    last = qwen.requests(chat.log())[-1]
    assert (last.answer, last.turn, last.key) == (None, 2, "after:l7")


def test_an_answer_with_neither_text_nor_call_has_no_content() -> None:
    chat = Chat()
    chat.user("look")
    chat.answer(call("c1"))
    chat.result("c1")
    chat.answer(thought("only this"))
    chat.user("more")
    chat.answer("ok")
    log = chat.log()
    last = messages(log, qwen.requests(log)[-1])
    assert last[1]["content"] is None
    assert last[3] == {"role": "assistant", "content": "", "reasoning_content": "only this"}


def test_a_failed_call_is_dead_and_its_message_stays() -> None:
    chat = looked()
    chat.user("fails")
    chat.event("api_error", error_message="429 too many")
    chat.user("works")
    chat.answer("ok")
    log = chat.log()
    dead, last = qwen.requests(log)[-2:]
    assert (dead.data["dead"], dead.answer, qwen.error_line(log, dead)) == (True, None, "429 too many")
    assert said(log, last)[-2:] == ["u:fails", "u:works"]
    assert (dead.turn, last.turn) == (2, 3)


def test_a_call_without_a_result_and_a_result_without_its_call_are_left_out() -> None:
    chat = Chat()
    chat.user("look")
    chat.answer("I look.", call("c1"), call("c2"))
    chat.result("c2")
    chat.result("c9")
    chat.user("stop")
    chat.answer(call("c3"))
    chat.user("go on")
    chat.answer("ok")
    log = chat.log()
    assert said(log, qwen.requests(log)[-1]) == ["u:look", "a:I look. call(c2)", "t:seen (c2)", "u:stop", "u:go on"]


def test_a_result_that_came_later_is_none_for_the_requests_before_it() -> None:
    chat = Chat()
    chat.user("look")
    chat.answer("I look.", call("c1"))
    chat.user("hold on")
    chat.answer("ok")
    chat.result("c1")
    chat.answer("Seen.")
    log = chat.log()
    _, before, after = qwen.requests(log)
    assert said(log, after) == ["u:look", "a:I look. call(c1)", "u:hold on", "a:ok", "t:seen (c1)"]
    assert said(log, before) == ["u:look", "a:I look.", "u:hold on"]


def test_results_of_one_answer_are_one_content_and_each_stands_at_its_line() -> None:
    chat = Chat()
    chat.user("look")
    chat.answer(call("c1"), call("c2"))
    chat.result("c1")
    chat.event("tool_call")
    chat.result("c2", "more")
    chat.answer("ok")
    log = chat.log()
    point = qwen.requests(log)[-1]
    made = qwen.rebuild(log, point, Config(), Learned())
    places = {p.place.at: p.data for p in made.pieces if p.place and b'"tool_call_id"' in p.data}
    assert [(at, b"more" in data) for at, data in places.items()] == [("line 3", False), ("line 5", True)]
    assert [e.key for e in point.context] == ["l1", "l2", "l3", "l5"]


def test_a_rewind_goes_on_from_an_earlier_line() -> None:
    chat = looked()
    chat.user("wrong way")
    chat.answer("Gone.")
    chat.add("system", after="l6", subtype="rewind", systemPayload={"truncatedCount": 2})
    chat.user("right way")
    chat.answer("ok")
    log = chat.log()
    last = qwen.requests(log)[-1]
    assert said(log, last)[-2:] == ["a:Seen.", "u:right way"]
    (marker,) = qwen.markers(log)
    assert (marker.kind, marker.point, [p.number for p in marker.dropped]) == ("rewind", last.key, [7, 8])


def test_a_cut_answer_that_was_asked_for_again_is_left_out_and_one_gone_on_with_becomes_one() -> None:
    chat = Chat()
    chat.user("tell")
    chat.answer("cut sho", prompt=90)
    chat.answer("cut lon", prompt=90)
    chat.answer("ger.", prompt=110)
    chat.user("more")
    chat.answer("ok")
    log = chat.log()
    first, again, rest, last = qwen.requests(log)
    assert said(log, first) == said(log, again) == ["u:tell"]
    assert said(log, rest) == ["u:tell", "a:cut lon", f"u:{RECOVERY}"]
    assert said(log, last) == ["u:tell", "a:cut longer.", "u:more"]


def test_an_empty_answer_is_asked_for_again() -> None:
    chat = Chat()
    chat.user("tell")
    chat.answer(prompt=90)
    chat.answer("ok", prompt=90)
    chat.user("more")
    chat.answer("yes")
    log = chat.log()
    assert [said(log, p) for p in qwen.requests(log)] == [["u:tell"], ["u:tell"], ["u:tell", "a:ok", "u:more"]]


SNAPSHOT = content("user", "<state_snapshot>short</state_snapshot>")
SUMMED = [SNAPSHOT, content("model", THANKS)]


def test_a_compression_is_a_call_and_what_follows_begins_with_it() -> None:
    chat = looked()
    chat.user("more")
    chat.answer("Kept.")
    chat.compressed(*SUMMED, content("user", "more"), content("model", "Kept."), response="r-9")
    chat.user("next")
    chat.answer("ok")
    log = chat.log()
    point, last = qwen.requests(log)[-2:]
    assert (point.kind, point.ids, point.blocks[0].text) == (
        "compaction",
        {"r-9"},
        "<state_snapshot>short</state_snapshot>",
    )
    assert said(log, point)[:-1] == ["u:look", "a:I look. call(c1)", "t:seen (c1)", "a:Seen."]
    assert said(log, point)[-1].startswith("u:First, reason")
    assert said(log, last) == ["u:<state_snapshot>short</state_snapshot>", f"a:{THANKS}", "u:more", "a:Kept.", "u:next"]
    (marker,) = qwen.markers(log)
    assert (marker.kind, marker.before_tokens, marker.after_tokens, marker.point) == ("compaction", 900, 400, last.key)
    assert [p.number for p in marker.dropped] == [1, 3, 4, 6]


def test_a_compression_by_hand_leaves_out_an_answer_whose_call_is_open() -> None:
    chat = looked()
    chat.user("more")
    chat.answer(call("c2"))
    chat.compressed(*SUMMED, content("user", "more"))
    chat.user("next")
    chat.answer("ok")
    log = chat.log()
    point = qwen.requests(log)[-2]
    assert said(log, point)[:-1] == ["u:look", "a:I look. call(c1)", "t:seen (c1)", "a:Seen."]


def test_a_long_session_asked_in_any_order_says_what_it_says_when_asked_once() -> None:
    chat = Chat()
    for n in range(6):
        chat.user(f"turn {n}")
        chat.answer("I look.", call(f"c{n}"), call(f"d{n}"))
        chat.result(f"c{n}")
        if n != 3:
            chat.result(f"d{n}")
        chat.answer(f"answer {n}")
    kept = chat.log()
    for n in [*range(12), 11, 3, 7, 0, 9, 5, 11, 6, 7]:
        alone = chat.log()
        made = [qwen.rebuild(log, qwen.requests(log)[n], Config(), Learned()).pieces for log in (kept, alone)]
        assert made[0] == made[1], n
    log = chat.log()
    assert "a:I look. call(c3)" in said(log, qwen.requests(log)[-1])


@pytest.mark.parametrize("early", [0, 1, 2])
def test_what_waits_while_the_history_is_compressed_follows_once(early: int) -> None:
    """The compression's line may hold the message that waited, and what came after it, or neither."""
    chat = Chat()
    chat.user("look")
    chat.answer(call("c1"))
    chat.result("c1")
    more = [content("user", result("c1")), content("model", "Seen.")][:early]
    chat.compressed(*SUMMED, content("user", CONTINUE), content("model", call("c1")), *more)
    chat.answer("Seen.")
    chat.user("next")
    chat.answer("ok")
    log = chat.log()
    _, summary, seen, last = qwen.requests(log)
    kept = [
        "u:<state_snapshot>short</state_snapshot>",
        f"a:{THANKS}",
        f"u:{CONTINUE}",
        "a:None call(c1)",
        "t:seen (c1)",
    ]
    assert said(log, summary)[:-1] == ["u:look"]
    assert said(log, seen) == kept
    assert said(log, last) == [*kept, "a:Seen.", "u:next"]
    told = [n for n in qwen.notices(log) if "compression" in n]
    assert [("twice" in n, "lacks" in n) for n in told] == {0: [(False, True)], 1: [], 2: [(True, False)]}[early]


def test_results_of_one_answer_are_one_content_for_a_compression_too() -> None:
    chat = Chat()
    chat.user("look")
    chat.answer(call("c1"), call("c2"))
    chat.result("c1")
    chat.result("c2")
    chat.answer(call("c3"))
    chat.result("c3")
    kept = [
        content("model", call("c1"), call("c2")),
        content("user", result("c1"), result("c2")),
        content("model", call("c3")),
    ]
    chat.compressed(*SUMMED, *kept)
    chat.answer("Seen.")
    log = chat.log()
    point = qwen.requests(log)[-2]
    assert said(log, point)[:-1] == ["u:look"]
    assert [e.key for e in point.context] == ["l1"]


def test_a_branched_session_begins_with_copies() -> None:
    chat = looked()
    for row in chat.rows:
        row["forkedFrom"] = {"sessionId": "s-0", "messageUuid": row["uuid"]}
    chat.user("own")
    chat.answer("ok")
    log = chat.log()
    (marker,) = qwen.markers(log)
    assert (marker.kind, marker.point, "s-0" in marker.where) == ("resume", qwen.requests(log)[-1].key, True)


def test_a_model_switch_is_a_marker() -> None:
    chat = looked()
    chat.user("again")
    chat.answer("ok", model="m-2")
    (marker,) = qwen.markers(chat.log())
    assert (marker.kind, marker.where) == ("model_switch", "m-1 to m-2")


def test_models_of_deepseek_get_strings_and_every_answer_has_its_reasoning() -> None:
    chat = Chat()
    chat.user("look", "twice")
    chat.answer("I look.", call("c1"), model="DeepSeek-v9")
    chat.result("c1")
    chat.answer("ok", model="DeepSeek-v9")
    log = chat.log()
    user, answer, tool = messages(log, qwen.requests(log)[-1])
    assert (user["content"], tool["content"]) == ("look\n\ntwice", "seen")
    assert list(answer) == ["role", "content", "tool_calls", "reasoning_content"]


def test_config_takes_window_and_threshold_where_they_are_told() -> None:
    chat = looked()
    assert qwen.config(chat.log()) == Config("0.15.10")
    chat.rows[-1]["contextWindowSize"] = 1000
    log = chat.log()
    assert (qwen.config(log).window, qwen.config(log).threshold) == (1000, 700)
    own = json.dumps({"model": {"chatCompression": {"contextPercentageThreshold": 0.5}}}).encode()
    for entry in qwen.entries(Record("settings", "file", Place(0, "file"), own)):
        log.add(entry)
    assert qwen.config(log).threshold == 500
