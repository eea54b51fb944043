"""What Qwen Code would send if it were started anew: the chat file read back behind words of its own."""

from __future__ import annotations

import json

from ctxscope.agents import Log, at_hand, qwen
from ctxscope.model import NEXT_INPUT, Body, Point
from tests.qwen_cases import (
    DATE,
    ENVIRONMENT,
    NEWEST,
    PLACE,
    SKILLS,
    SYSTEM,
    THANKS,
    Chat,
    body_of,
    call,
    content,
    reminded,
    replied,
    words,
)
from tests.resumed_logs import foretold, resumed

BREAK = "low\u2028water"


def joined(log: Log, *bodies: Body) -> list[tuple[Point, Body]]:
    return list(zip(qwen.requests(log), bodies, strict=True))


def talked(**more: str) -> Chat:
    chat = Chat(**more)
    chat.user("Look.")
    chat.answer("Seen.")
    return chat


def test_the_next_input_stands_behind_the_newest_line() -> None:
    log = talked().log()
    calls = joined(log, body_of([words("Look.")]))
    assert foretold(qwen, log, calls)["messages"] == [
        SYSTEM,
        *ENVIRONMENT,
        words("Look."),
        replied("Seen."),
        words(NEXT_INPUT),
    ]
    assert not resumed(qwen, log, calls).changes


def compressed() -> tuple[Log, list[tuple[Point, Body]]]:
    chat = talked()
    chat.compressed(content("user", "In short."), content("model", THANKS))
    chat.user("Next.")
    chat.answer("Well.")
    log = chat.log()
    own = body_of([words("In short."), replied(THANKS), words("Next.")], environment=False)
    first, _, last = qwen.requests(log)
    return log, [(first, body_of([words("Look.")])), (last, own)]


def test_a_new_process_begins_with_the_environment_again_behind_a_compression() -> None:
    log, calls = compressed()
    found = foretold(qwen, log, calls)["messages"]
    assert found[:4] == [SYSTEM, *ENVIRONMENT, words("In short.")]
    assert any("there again" in text for text in resumed(qwen, log, calls).changes)


def test_what_was_added_behind_a_compression_but_logged_before_it_is_lost() -> None:
    chat = Chat()
    chat.user("Look.")
    chat.answer("I look.", call("c1"))
    chat.result("c1")
    chat.compressed(content("user", "In short."), content("model", THANKS), content("model", "I look.", call("c1")))
    chat.answer("Seen.")
    log = chat.log()
    found = foretold(qwen, log)["messages"]
    assert found[-1] == words(NEXT_INPUT)
    assert not [m for m in found if m["role"] == "tool" or "tool_calls" in m]
    assert any("is lost" in text for text in resumed(qwen, log).changes)


def test_a_cut_answer_is_read_back_with_the_one_that_took_its_place() -> None:
    chat = Chat()
    chat.user("Look.")
    chat.answer("the ti")
    chat.answer("the tide")
    log = chat.log()
    assert foretold(qwen, log)["messages"][1:] == [replied("the tithe tide"), words(NEXT_INPUT)]
    assert any("together" in text for text in resumed(qwen, log).changes)


def test_a_tool_call_nobody_answered_is_left_out() -> None:
    chat = Chat()
    chat.user("Look.")
    chat.answer("I look.", call("c1"))
    assert foretold(qwen, chat.log())["messages"] == [words("Look."), replied("I look."), words(NEXT_INPUT)]


def test_reminders_move_to_where_the_new_process_begins() -> None:
    log = talked(version=NEWEST).log()
    calls = joined(log, reminded(words(SKILLS, PLACE, DATE, "Look.")))
    found = foretold(qwen, log, calls)["messages"]
    assert found[1:] == [words(SKILLS, PLACE, "Look."), replied("Seen."), words(DATE, NEXT_INPUT)]
    told = resumed(qwen, log, calls)
    assert any("reminders of the process before" in text for text in told.changes)
    assert any("date" in text and "anew" in text for text in told.unknown)


def test_the_newest_process_tells_what_the_next_begins_with() -> None:
    chat = talked(version=NEWEST)
    chat.user("Again.")
    chat.answer("Yes.")
    monday, other = DATE.replace("Sunday", "Monday"), SKILLS.replace("sluices", "weirs")
    log = chat.log()
    calls = joined(
        log,
        reminded(words(SKILLS, PLACE, DATE, "Look.")),
        reminded(words(other, PLACE, "Look."), replied("Seen."), words(monday, "Again.")),
    )
    found = foretold(qwen, log, calls)["messages"]
    assert found[1:] == [
        words(other, PLACE, "Look."),
        replied("Seen."),
        words("Again."),
        replied("Yes."),
        words(monday, NEXT_INPUT),
    ]


def test_a_line_that_is_two_to_some_versions_of_node_is_said() -> None:
    chat = Chat()
    chat.user("Look.")
    chat.answer(BREAK)
    assert foretold(qwen, chat.log())["messages"][-2]["content"] == BREAK
    assert any("U+2028" in text for text in resumed(qwen, chat.log()).unknown)
    assert not any("U+2028" in text for text in resumed(qwen, talked().log()).unknown)


def test_nothing_is_foretold_of_a_newest_line_that_this_sessions_processes_lose() -> None:
    chat = Chat()
    first = chat.user("Look.")
    chat.answer(BREAK)
    chat.user("Again.", after=first)
    chat.answer("Seen.")
    assert resumed(qwen, chat.log())
    chat.user("More.")
    chat.answer(BREAK)
    assert qwen.resume(chat.log(), at_hand()) is None


def test_nothing_is_foretold_of_an_empty_chat() -> None:
    assert qwen.resume(Chat().log(), at_hand()) is None
    line = json.loads(resumed(qwen, talked().log()).records[0].value)
    assert line["parentUuid"] == "l2"
