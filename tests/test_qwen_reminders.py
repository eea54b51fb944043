"""Qwen Code 0.21.2 and later: reminders before what the user says, one message a side, processes that the log does not tell."""

from __future__ import annotations

import json

import pytest

from ctxscope.agents import at_hand, qwen
from ctxscope.agents.qwen.joined import UNRECORDED, WORDS, WORDS_IN_TEXT
from ctxscope.model import Config, Learned, Rebuilt
from tests.qwen_cases import (
    DATE,
    NEWEST,
    PLACE,
    SKILLS,
    Chat,
    call,
    datas,
    found,
    log_of,
    messages,
    rebuilt,
    reminded,
    replied,
    said,
    thought,
    words,
)


def provenances(made: Rebuilt, path: str = WORDS) -> list[str]:
    return [p.provenance for p in made.pieces if p.path == path]


def gauge() -> Chat:
    """A turn with a tool call, and another."""
    chat = Chat(version=NEWEST)
    chat.user("Read the gauge.")
    chat.answer(thought("Upper first."), "I look.", call("c1"))
    chat.result("c1", "212 cm")
    chat.answer("It is 212 cm.")
    chat.user("And the lower one?")
    chat.answer("I cannot see it.")
    return chat


FIRST = words(SKILLS, PLACE, DATE, "Read the gauge.")
LOOKED = (replied("I look.", "c1", thought="Upper first."), found("c1", "212 cm"))
READ = (*LOOKED, replied("It is 212 cm."))
ALONE = words(SKILLS, PLACE, "Read the gauge.")


def test_reminders_are_echoed_once_and_learned_from_then_on() -> None:
    bodies = [reminded(FIRST), reminded(FIRST, *LOOKED), reminded(FIRST, *READ, words("And the lower one?"))]
    made = rebuilt(gauge(), bodies)
    assert [m.data for _, m in made] == datas(bodies)
    assert [provenances(m) for _, m in made] == [["echoed"] * 3, ["learned"] * 3, ["learned"] * 3]
    assert [learned.hypotheses for learned, _ in made] == [(), (), ()]


def test_a_process_of_its_own_has_its_own_reminders_and_says_so() -> None:
    other = PLACE.replace("A port.", "A harbour.")
    second = reminded(words(SKILLS, other, "Read the gauge."), *READ, words(DATE, "And the lower one?"))
    bodies = [reminded(FIRST), reminded(FIRST, *LOOKED), second]
    made = rebuilt(gauge(), bodies)
    assert [m.data for _, m in made] == datas(bodies)
    assert provenances(made[2][1]) == ["learned", "echoed", "learned"]
    (told,) = made[2][0].hypotheses
    assert "a process of their own" in told
    assert told.endswith(f"{WORDS} changed with it")


def test_a_process_with_the_same_reminders_is_told_without_a_change() -> None:
    last = reminded(ALONE, *READ, words(DATE, "And the lower one?"))
    made = rebuilt(gauge(), [reminded(FIRST), reminded(FIRST, *LOOKED), last])
    (told,) = made[2][0].hypotheses
    assert "changed" not in told
    assert made[2][1].data == last.data


def test_other_tools_of_another_process_are_told_and_within_a_process_they_are_a_difference() -> None:
    bodies = [reminded(FIRST), reminded(FIRST, *LOOKED, tools=[])]
    made = rebuilt(gauge(), [*bodies, reminded(ALONE, *READ, words(DATE, "And the lower one?"), tools=[])])
    assert made[1][1].data != bodies[1].data
    assert made[2][0].hypotheses[0].endswith("/tools changed with it")


def test_the_next_day_of_a_process_keeps_the_day_before() -> None:
    monday = DATE.replace("Sunday", "Monday")
    last = reminded(FIRST, *READ, words(monday, "And the lower one?"))
    made = rebuilt(gauge(), [reminded(FIRST), reminded(FIRST, *LOOKED), last])
    assert made[2][1].data == last.data
    assert made[2][0].hypotheses == ()


def test_what_a_turn_showed_holds_for_the_turn() -> None:
    """A later request of the turn without the date is no other process."""
    chat = gauge()
    bodies = [reminded(FIRST), reminded(ALONE, *LOOKED), reminded(FIRST, *READ, words("And the lower one?"))]
    made = rebuilt(chat, bodies)
    assert made[1][1].data == reminded(FIRST, *LOOKED).data != bodies[1].data


def test_words_that_failed_stand_with_the_next_in_one_message() -> None:
    chat = Chat(version=NEWEST)
    chat.user("This fails.")
    chat.event("api_error", error_message="400 no")
    chat.user("This works.")
    chat.answer("Yes.")
    bodies = [
        reminded(words(SKILLS, PLACE, DATE, "This fails.")),
        reminded(words(SKILLS, PLACE, "This fails.", DATE, "This works.")),
    ]
    made = rebuilt(chat, bodies)
    assert [m.data for _, m in made] == datas(bodies)


def test_a_rewind_to_the_start_keeps_what_the_process_began_with() -> None:
    chat = Chat(version=NEWEST)
    chat.user("Look.")
    chat.answer("Seen.")
    chat.user("Look elsewhere.", after=None)
    chat.answer("Yes.")
    bodies = [reminded(words(SKILLS, PLACE, DATE, "Look.")), reminded(words(SKILLS, PLACE, "Look elsewhere."))]
    made = rebuilt(chat, bodies)
    assert [m.data for _, m in made] == datas(bodies)
    assert made[1][0].hypotheses == ()


def test_what_a_log_holds_is_not_taken_for_a_reminder() -> None:
    chat = Chat(version=NEWEST)
    own = "<system-reminder>\nA helper is back.\n</system-reminder>"
    chat.user(own, "Go on.")
    chat.answer("Yes.")
    chat.user("And?")
    chat.answer("Done.")
    bodies = [
        reminded(words(SKILLS, PLACE, DATE, own, "Go on.")),
        reminded(words(SKILLS, PLACE, own, "Go on."), replied("Yes."), words(DATE, "And?")),
    ]
    made = rebuilt(chat, bodies)
    assert [m.data for _, m in made] == datas(bodies)
    assert own.encode() not in b"".join(p.data for p in made[1][1].pieces if p.path)


def test_without_a_recording_there_are_no_reminders() -> None:
    log = gauge().log()
    assert said(log, qwen.requests(log)[-1])[0] == "u:Read the gauge."


@pytest.mark.parametrize(("model", "mirrored"), [("qwen3-weir", True), ("weir-9", False)])
def test_reasoning_stands_under_two_keys_for_some_models(model: str, mirrored: bool) -> None:
    chat = Chat(version=NEWEST)
    chat.user("Think.")
    chat.answer(thought("Hm."), "So.", model=model)
    chat.user("More.")
    chat.answer("Yes.", model=model)
    log = chat.log()
    assert ("reasoning" in messages(log, qwen.requests(log)[-1])[1]) is mirrored
    old = log_of([{**row, "version": "0.15.10"} for row in chat.rows])
    assert "reasoning" not in messages(old, qwen.requests(old)[-1])[1]


def test_models_of_deepseek_get_reminders_in_one_string() -> None:
    chat = Chat(version=NEWEST)
    chat.user("Look.", "Twice.")
    chat.answer("Yes.", model="deepseek-weir")
    chat.user("Again.", "Really.")
    chat.answer("No.", model="deepseek-weir")
    first = f"{SKILLS}\n\n{PLACE}\n\n{DATE}\n\nLook.\n\nTwice."
    second = f"{SKILLS}\n\n{PLACE}\n\nLook.\n\nTwice."
    reply = {"role": "assistant", "content": "Yes.", "reasoning_content": ""}
    bodies = [
        reminded({"role": "user", "content": first}, model="deepseek-weir"),
        reminded(
            {"role": "user", "content": second},
            reply,
            {"role": "user", "content": f"{DATE}\n\nAgain.\n\nReally."},
            model="deepseek-weir",
        ),
    ]
    made = rebuilt(chat, bodies)
    assert [m.data for _, m in made] == datas(bodies)
    assert provenances(made[1][1], WORDS_IN_TEXT) == ["learned"] * 3


def test_a_call_without_a_result_gets_one_that_says_so() -> None:
    chat = Chat(version=NEWEST)
    chat.user("Look.")
    chat.answer("I look.", call("c1"), call("c2"))
    chat.result("c2")
    chat.user("Are you back?")
    chat.answer(call("c3"))
    chat.answer("I am.", prompt=91)
    chat.user("Good.")
    chat.answer("Yes.")
    log = chat.log()
    assert said(log, qwen.requests(log)[-1]) == [
        "u:Look.",
        "a:I look. call(c1) call(c2)",
        "t:seen (c2)",
        f"t:{UNRECORDED} (c1)",
        "u:Are you back?",
        "a:None call(c3)",
        f"t:{UNRECORDED} (c3)",
        "a:I am.",
        "u:Good.",
    ]


def test_what_the_user_says_while_tools_run_is_no_turn() -> None:
    chat = Chat(version=NEWEST)
    chat.user("Look.")
    chat.answer("I look.", call("c1"))
    chat.result("c1")
    chat.add("user", subtype="mid_turn_user_message", message={"role": "user", "parts": [{"text": "Hurry."}]})
    chat.answer("Seen.")
    log = chat.log()
    first, second = qwen.requests(log)
    assert (first.turn, second.turn) == (1, 1)
    assert said(log, second)[-2:] == ["t:seen (c1)", "u:Hurry."]


def test_replies_to_helpers_are_none_of_the_conversation_s() -> None:
    chat = Chat(version=NEWEST)
    chat.user("Look.")
    chat.event("api_response", response_id="r-1", input_token_count=90)
    chat.event("api_response", response_id="r-9", input_token_count=90, subagent_name="rememberer")
    chat.answer("Seen.")
    (point,) = qwen.requests(chat.log())
    assert point.ids == {"r-1"}


def test_a_new_process_reads_a_cut_answer_with_what_took_its_place() -> None:
    chat = Chat(version=NEWEST)
    chat.user("Write.")
    chat.answer("This is cu", prompt=70)
    chat.answer("This is cut too", prompt=70)
    chat.answer(" and goes on.")
    chat.user("More.")
    chat.answer("Yes.")
    first = words(SKILLS, PLACE, DATE, "Write.")
    log = chat.log()
    asked = messages(log, qwen.requests(log)[2])[-1]["content"][0]["text"]
    assert asked.endswith("<previous_response_suffix>\nThis is cut too\n</previous_response_suffix>")
    same = [reminded(first), reminded(first), reminded(first, replied("This is cut too"), words(asked))]
    own = reminded(first, replied("This is cut too and goes on."), words("More."))
    text = "This is cuThis is cut too and goes on."
    other = reminded(words(SKILLS, PLACE, "Write."), replied(text), words(DATE, "More."))
    for last in (own, other):
        assert [m.data for _, m in rebuilt(chat, [*same, last])] == datas([*same, last])


def test_a_session_asked_in_any_order_says_what_it_says_when_asked_once() -> None:
    chat = Chat(version=NEWEST)
    for n in range(6):
        chat.user(f"turn {n}")
        if n in {2, 4}:
            chat.event("api_error", error_message="no")
            chat.user(f"turn {n} again")
        chat.answer("I look.", call(f"c{n}"), call(f"d{n}"))
        chat.result(f"c{n}")
        if n != 3:
            chat.result(f"d{n}")
        chat.answer(f"answer {n}")
    kept = chat.log()
    for n in [*range(14), 11, 3, 7, 0, 9, 13, 5, 11, 6, 7]:
        alone = chat.log()
        made = [qwen.rebuild(log, qwen.requests(log)[n], Config(), Learned()) for log in (kept, alone)]
        assert made[0] is not None
        assert made[1] is not None
        assert made[0].data == made[1].data, n


def test_a_call_asked_about_alone_is_as_it_is_among_all() -> None:
    bodies = [
        reminded(FIRST),
        reminded(FIRST, *LOOKED),
        reminded(ALONE, *READ, words(DATE, "And the lower one?")),
    ]
    log = gauge().log()
    pairs = list(zip(qwen.requests(log), bodies, strict=True))
    for n in (3, 1, 2, 3, 2):
        learned = qwen.learn(log, *pairs[n - 1], at_hand(pairs[: n - 1]))
        one = qwen.rebuild(log, pairs[n - 1][0], Config(), learned)
        assert one is not None
        assert one.data == bodies[n - 1].data


TEXTS = ["Read the gauge.", "Upper first.", "I look.", "212 cm", "It is 212 cm.", "And the lower one?"]


@pytest.mark.parametrize("text", TEXTS)
def test_one_letter_shows_at_that_letter_in_exactly_the_calls_that_hold_it(text: str) -> None:
    bodies = [
        reminded(FIRST),
        reminded(FIRST, *LOOKED),
        reminded(ALONE, *READ, words(DATE, "And the lower one?")),
    ]
    at = max(i for i, c in enumerate(text) if c.isalpha())
    changed = f"{text[:at]}{'q' if text[at] != 'q' else 'z'}{text[at + 1 :]}"
    old, new = json.dumps(text), json.dumps(changed)
    chat = gauge()
    chat.rows = [json.loads(json.dumps(row).replace(old, new)) for row in chat.rows]
    for body, (_, made) in zip(bodies, rebuilt(chat, bodies), strict=True):
        start = body.data.find(old.encode())
        if start < 0:
            assert made.data == body.data
        else:
            differ = next(i for i, (a, b) in enumerate(zip(made.data, body.data, strict=True)) if a != b)
            assert differ == start + 1 + at
