"""Which form Qwen Code's versions write, and compressions of 0.21.2 and later."""

from __future__ import annotations

import json

import pytest

from ctxscope.agents import qwen
from ctxscope.agents.qwen.joined import WORDS
from ctxscope.agents.qwen.versions import VERSIONS, rules_of
from ctxscope.model import CallKind, Place, Record
from tests.qwen_cases import (
    DATE,
    NEWEST,
    PLACE,
    SKILLS,
    THANKS,
    Chat,
    aside,
    call,
    content,
    datas,
    found,
    rebuilt,
    reminded,
    replied,
    words,
)
from tests.test_qwen_reminders import provenances

DIRECTIVE = "First, reason in your <analysis> block. Then, produce the <state_snapshot> XML."
ASKED = words(f"Sum up what was said about the weir. {DIRECTIVE}")
SUMMARY = "<state_snapshot>A weir.</state_snapshot>"


@pytest.mark.parametrize(
    ("version", "reminds", "shares"),
    [
        (None, False, False),
        ("0.12.0", False, False),
        ("0.15.10", False, False),
        ("0.21.2", True, False),
        ("0.21.10", True, True),
        ("0.23.5-preview.0", True, True),
        ("0.24.4", True, True),
        ("2.0.0", True, True),
    ],
)
def test_a_version_has_the_rules_of_the_nearest_before_it(version: str | None, reminds: bool, shares: bool) -> None:
    rules = rules_of(version)
    assert (rules.reminds, rules.shares) == (reminds, shares)


@pytest.mark.parametrize(
    ("version", "told"),
    [
        ("0.15.10", ""),
        ("0.18.1", "written by Qwen Code 0.18.1, older than 0.21.2 and not known here; read like 0.15.10"),
        ("0.22.0", ""),
        ("0.24.4", ""),
        ("0.25.0", "written by Qwen Code «0.25.0», newer than any known here; read like 0.24.4"),
    ],
)
def test_a_version_that_was_not_run_is_told_where_that_may_matter(version: str, told: str) -> None:
    chat = Chat(version=version)
    chat.user("Look.")
    chat.answer("Seen.")
    assert list(qwen.notices(chat.log())) == ([told] if told else [])
    assert VERSIONS[-1] == NEWEST


def test_the_version_of_its_own_line_decides_a_call_s_form() -> None:
    chat = Chat()
    chat.user("Look.")
    chat.event("api_error", error_message="no")
    chat.user("Again.")
    chat.answer("Seen.")
    chat.version = NEWEST
    chat.user("More.")
    chat.answer("Yes.")
    bodies = [reminded(words("Look.")), reminded(words("Look."), words("Again."))]
    last = reminded(words(SKILLS, PLACE, "Look.", "Again."), replied("Seen."), words(DATE, "More."))
    made = rebuilt(chat, [*bodies, last])
    assert [m.data for _, m in made] == datas([*bodies, last])


def test_new_lines_and_fields_are_known() -> None:
    chat = Chat(version=NEWEST)
    chat.add("system", subtype="session_model", systemPayload={"model": "m"}, provenance="system")
    chat.user("Look.")
    chat.rows[-1]["provenance"] = "real_user"
    chat.answer("Seen.")
    assert list(qwen.notices(chat.log())) == []


def summed_up(replies: int = 1, version: str = NEWEST) -> Chat:
    """A turn, a compression by hand, another turn."""
    chat = Chat(version=version)
    chat.user("Look.")
    chat.answer("Seen.")
    for n in range(replies - 1):
        chat.event("api_response", response_id=f"r-{n}", prompt_id="compress-1")
    chat.event("api_response", response_id="r-9", prompt_id="compress-1")
    chat.compressed(content("user", SUMMARY), content("model", THANKS), content("user", "A file."))
    chat.user("More.")
    chat.answer("Yes.")
    return chat


BEFORE = (words(SKILLS, PLACE, DATE, "Look."), replied("Seen."))
BEHIND = (words(SKILLS, PLACE, SUMMARY), replied(THANKS), words("A file.", "More."))


def test_a_summary_is_asked_for_with_the_conversation_s_head_in_words_that_are_borrowed() -> None:
    bodies = [reminded(BEFORE[0]), reminded(*BEFORE, ASKED, max_tokens=20_000), reminded(*BEHIND)]
    made = rebuilt(summed_up(), bodies)
    assert [m.data for _, m in made] == datas(bodies)
    assert provenances(made[1][1]) == ["learned"] * 3 + ["echoed"]
    assert {p.path for p in made[1][1].pieces if p.provenance == "echoed"} == {WORDS, "/max_tokens"}
    point = qwen.requests(summed_up().log())[1]
    assert (point.kind, point.ids) == ("compaction", {"r-9"})


@pytest.mark.parametrize(("replies", "version"), [(2, NEWEST), (1, "0.21.2")])
def test_a_summary_that_was_asked_for_twice_or_by_an_older_version_has_a_head_of_its_own(
    replies: int, version: str
) -> None:
    bodies = [reminded(BEFORE[0]), aside("You sum up.", *BEFORE, words(DIRECTIVE)), reminded(*BEHIND)]
    made = rebuilt(summed_up(replies, version), bodies)
    assert [m.data for _, m in made] == datas(bodies)
    assert provenances(made[1][1]) == ["learned"] * 3


def test_a_summary_asked_for_anew_has_a_head_of_its_own_though_another_had_the_conversation_s() -> None:
    chat = summed_up()
    for name in ("r-3", "r-4"):
        chat.event("api_response", response_id=name, prompt_id="compress-2")
    chat.compressed(content("user", SUMMARY), content("model", THANKS))
    first = [reminded(BEFORE[0]), reminded(*BEFORE, ASKED, max_tokens=20_000), reminded(*BEHIND)]
    cold = aside("You sum up.", *BEHIND, replied("Yes."), words(DIRECTIVE))
    assert rebuilt(chat, [*first, cold])[3][1].data == cold.data
    chat.rows = [row for row in chat.rows if "r-3" not in json.dumps(row)]
    shared = reminded(*BEHIND, replied("Yes."), ASKED, max_tokens=20_000)
    made = rebuilt(chat, [*first, shared])[3][1]
    assert made.data == shared.data
    assert "echoed" not in {p.provenance for p in made.pieces}


def test_a_compression_on_the_way_goes_out_without_reminders_that_are_back_one_call_later() -> None:
    chat = Chat(version=NEWEST)
    chat.user("Look.")
    chat.answer("I look.", call("c1"))
    chat.result("c1")
    chat.event("api_response", response_id="r-9", prompt_id="p-1")
    kept = content("model", "I look.", call("c1"))
    chat.compressed(content("user", SUMMARY), content("model", THANKS), content("user", "A file."), kept)
    chat.answer(call("c2"))
    chat.result("c2")
    chat.answer("Seen.")
    looked = (replied("I look.", "c1"), found("c1", "seen"))
    more = (replied(None, "c2"), found("c2", "seen"))
    begun = (replied(THANKS), words("A file."), *looked)
    bodies = [
        reminded(BEFORE[0]),
        reminded(BEFORE[0], *looked, ASKED, max_tokens=20_000),
        reminded(words(SUMMARY), *begun, max_tokens=4_000),
        reminded(words(SKILLS, PLACE, SUMMARY), *begun, *more),
    ]
    made = rebuilt(chat, bodies)
    assert [m.data for _, m in made] == datas(bodies)
    (marker,) = qwen.markers(chat.log())
    assert [p.number for p in marker.dropped] == [1, 2, 3]


def test_an_answer_with_an_open_call_is_not_summed_up() -> None:
    chat = Chat(version=NEWEST)
    chat.user("Look.")
    chat.answer("Seen.")
    chat.user("Again.")
    chat.answer(call("c1"))
    chat.compressed(content("user", SUMMARY), content("model", THANKS, call("c1")))
    point = qwen.requests(chat.log())[-1]
    assert [e.key for e in point.context] == ["l1", "l2", "l3"]


@pytest.mark.parametrize(
    ("messages", "more", "kind"),
    [
        ((*BEFORE, ASKED), {}, "compaction"),
        ((words(DIRECTIVE), replied("What?"), words("More.")), {}, "main"),
        ((words("Managed memory has TWO directories. Choose."),), {}, "side"),
        ((words("Look."),), {}, "main"),
    ],
)
def test_requests_are_told_apart_by_their_last_message(messages: tuple, more: dict, kind: CallKind) -> None:
    assert qwen.classify(reminded(*messages, **more)) == kind


def test_the_threshold_keeps_room_for_an_answer() -> None:
    chat = summed_up()
    chat.rows[-1]["contextWindowSize"] = 100_000
    log = chat.log()
    assert qwen.config(log).threshold == 67_000
    own = json.dumps({"context": {"autoCompactThreshold": 0.5}}).encode()
    for entry in qwen.entries(Record("settings", "file", Place(0, "file"), own)):
        log.add(entry)
    assert qwen.config(log).threshold == 50_000
