"""Processes that end without a word, go on, or are started otherwise: what requests held, what is told of it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ctxscope.agents import at_hand, codex
from ctxscope.agents.codex import options
from ctxscope.model import Learned
from tests.codex_cases import body_of, log_of, rebuilt
from tests.codex_lines import SMALL, Row, call, context, count, message, old, output, texts
from tests.samples.codex_form import Session, given, say, use, uuid7, uuid_of

PERMITTED, SURROUNDED = "<permissions instructions> all", "<environment_context> here"
OPENING = (message("developer", PERMITTED), message("user", SURROUNDED))


def asked(lines: list[bytes]) -> list[tuple[str, list[str], bool]]:
    """Of each point its key, the texts of its request, and whether it is known to have got no answer."""
    log = log_of(lines)
    made = []
    for point in codex.requests(log):
        found = codex.rebuild(log, point, codex.config(log), Learned())
        assert found is not None
        made.append((point.key, texts(json.loads(found.data)["input"]), bool(point.data.get("dead"))))
    return made


def resumes(lines: list[bytes]) -> list[str | None]:
    return [m.point for m in codex.markers(log_of(lines)) if m.kind == "resume"]


def test_a_request_nobody_answered_is_not_told_what_the_next_process_adds():
    first = (*OPENING, message("user", "one"), context(), message("assistant", "One."), count(9))
    second = (*OPENING, message("user", "two"), context())
    third = (*OPENING, message("user", "three"), context(), message("assistant", "Three."), count(20))
    lines = old(*first, *second, *third)
    start = [PERMITTED, SURROUNDED]
    before = [*start, "one", "One.", *start, "two"]
    assert asked(lines) == [
        ("line:6", [*start, "one"], False),
        ("after:line:10", before, True),
        ("line:16", [*before, *start, "three"], False),
    ]
    assert resumes(lines) == ["after:line:10", "line:16"]


def test_a_process_killed_in_an_answer_is_followed_by_another():
    first = (*OPENING, message("user", "one"), context(), message("assistant", "half an"))
    second = (*OPENING, message("user", "two"), context(), message("assistant", "Two."), count(9))
    lines = old(*first, *second)
    assert resumes(lines) == ["line:11"]
    assert [key for key, _, _ in asked(lines)] == ["line:6", "line:11"]


def test_what_tells_of_an_interruption_is_seen_by_the_next_request_alone():
    aborted = (
        message("user", "<turn_aborted> by hand"),
        ("event_msg", {"type": "turn_aborted", "reason": "interrupted"}),
    )
    lines = old(message("user", "one"), *aborted, message("user", "two"), message("assistant", "Two."))
    assert asked(lines) == [
        ("after:line:2", ["one"], True),
        ("line:6", ["one", "<turn_aborted> by hand", "two"], False),
    ]
    assert codex.error_line(log_of(lines), codex.requests(log_of(lines))[0]) == "turn aborted: interrupted"


@pytest.mark.parametrize(("said", "points"), [("aborted by user", 1), ("seen", 2)])
def test_after_a_tool_that_was_interrupted_nothing_was_asked(said: str, points: int):
    kind, row = output("a")
    aborted = ("event_msg", {"type": "turn_aborted", "reason": "interrupted"})
    lines = old(message("user", "one"), call("a"), (kind, {**row, "output": said}), aborted)
    assert len(codex.requests(log_of(lines))) == points


def test_each_attempt_at_an_answer_that_breaks_off_again_is_the_same_request():
    attempts = [row for text in ("a", "b", "c") for row in (context(), message("assistant", text))]
    lines = old(message("user", "one"), *attempts, count(9), message("user", "two"), message("assistant", "d"))
    assert [said for _, said, _ in asked(lines)] == [["one"], ["one"], ["one"], ["one", "a", "b", "c", "two"]]


def test_a_tool_that_an_answer_cut_short_called_ends_the_turn_with_it():
    session = Session(uuid7(0, 1))
    session.meta(0.0)
    session.begin(0.1, uuid7(0.1, 2))
    session.user(0.2, "one")
    used = use(1, "exec_command", "{}")
    session.answer(1.0, "resp_1", [used], SMALL)
    session.output(1.1, used, "seen")
    error = {"message": "Incomplete response returned, reason: max_output_tokens"}
    session.event(1.2, "task_complete", turn_id=session.turn, error=error)
    (point,) = codex.requests(log_of(line.encode() for line in session.lines))
    assert (point.stop.reason, point.stop.state) == ("max_output_tokens", "truncated")


def test_the_answer_of_a_reviewer_is_put_in_by_codex_and_no_call():
    review = (message("user", "<user_action> a review was made"), message("assistant", "All is well."))
    lines = old(*review, message("user", "one"), message("assistant", "One."), count(9))
    assert asked(lines) == [("line:5", ["<user_action> a review was made", "All is well.", "one"], False)]
    assert [p.turn for p in codex.requests(log_of(lines))] == [1]


def test_a_process_states_its_settings_again_after_a_compaction_and_is_the_same():
    session = Session(uuid7(0, 1))
    session.meta(0.0)
    session.begin(0.1, uuid7(0.1, 2))
    session.settings(0.2)
    session.user(0.3, "one")
    session.answer(1.0, "resp_1", [say(1, "One.")], SMALL)
    session.compacted(2.0, "", session.history[-1:], "resp_2")
    session.line(2.0, "turn_context", {"turn_id": session.turn, "model": "m"})
    session.settings(2.0)
    assert resumes([line.encode() for line in session.lines]) == []
    session.settings(9.0)
    assert resumes([line.encode() for line in session.lines]) == [None]


@pytest.mark.parametrize(
    ("version", "sent"), [("0.98.0", {"effort": "high"}), ("0.171.0", {"effort": "high", "summary": "auto"})]
)
def test_no_summary_is_left_out_where_the_log_says_so(version: str, sent: Row):
    """0.98 says in the turn context what it sends; newer ones say "none" there whatever they send."""
    first, *rest = old(
        ("turn_context", {"model": "m", "summary": "auto", "effort": "high"}),
        ("turn_context", {"model": "m", "summary": "none", "effort": "high"}),
        message("user", "one"),
    )
    log = log_of([first.replace(b"0.98.0", version.encode()), *rest])
    (point,) = codex.requests(log)
    assert json.loads(codex.rebuild(log, point, codex.config(log), Learned()).data)["reasoning"] == sent


def test_no_summary_is_left_out_where_the_threads_settings_say_so():
    session = Session(uuid7(0, 1))
    session.meta(0.0)
    session.begin(0.1, uuid7(0.1, 2))
    settings = {"model": "m", "reasoning_summary": "none"}
    session.event(0.2, "thread_settings_applied", thread_id=session.name, thread_settings=settings)
    session.user(0.3, "one")
    served = session.body().replace('"reasoning":{"summary":"detailed"}', '"reasoning":{}').encode()
    log = log_of(line.encode() for line in session.lines)
    (point,) = codex.requests(log)
    assert rebuilt(log, {point.key: served})[point.key][1] == served


# --- options ---------------------------------------------------------------------------------------------------------

WEB: Row = {"type": "web_search", "external_web_access": True}
LOOK: Row = {"type": "function", "name": "view_image", "parameters": {}}
OTHER: Row = {"type": "function", "name": "view_image", "parameters": {"type": "object"}}
EXTRA: Row = {"type": "function", "name": "of_nobody", "parameters": {}}
SCHEMA: Row = {"format": {"type": "json_schema", "schema": {"type": "object"}}}


def differing(*turns: Row, again: bool) -> tuple[list[bool], list[str]]:
    """Which of as many turns differ from what is rebuilt, and what is told; each with options of its own.

    ``again``: each in a process of its own.
    """
    session, served = Session(uuid7(0, 1)), {}
    session.meta(0.0)
    for n, own in enumerate(turns):
        at = 10.0 * n
        if again or not n:
            session.settings(at)
        session.begin(at + 0.1, uuid7(at, 2))
        session.user(at + 0.2, f"question {n}")
        body = json.loads(session.body())
        items = {k: v for k, v in {**body, **own}.items() if v is not None}
        served[f"line:{len(session.lines) + 1}"] = json.dumps(items, ensure_ascii=False, separators=(",", ":")).encode()
        session.answer(at + 1.0, f"resp_{n}", [say(n, f"answer {n}")], SMALL)
        session.end(at + 1.1, "")
    made = rebuilt(log_of(line.encode() for line in session.lines), served)
    log = log_of(line.encode() for line in session.lines)
    words: list[str] = []
    pairs: list[Any] = []
    for point in codex.requests(log):
        learned = codex.learn(log, point, body_of(served[point.key]), at_hand(pairs))
        words += [w for w in learned.hypotheses if "started" in w]
        pairs.append((point, body_of(served[point.key])))
    return [made[key][1] != served[key] for key in served], words


@pytest.mark.parametrize(
    ("first", "second", "again", "bad"),
    [
        ({"text": SCHEMA}, {}, True, False),
        ({}, {"text": SCHEMA}, False, False),
        ({}, {"text": {"verbosity": "low"}}, False, True),
        ({}, {"text": {"verbosity": "low"}}, True, False),
        ({"tools": [LOOK]}, {"tools": [LOOK, WEB]}, True, False),
        ({"tools": [LOOK, WEB]}, {"tools": [LOOK]}, True, False),
        ({"tools": [LOOK, WEB]}, {"tools": [LOOK]}, False, True),
        ({"tools": [LOOK, WEB]}, {"tools": [OTHER, WEB]}, True, True),
        ({"tools": [LOOK, WEB]}, {"tools": [WEB, LOOK]}, True, True),
        ({"tools": [LOOK]}, {"tools": [LOOK, EXTRA]}, True, True),
        ({"tools": [LOOK]}, {"tools": None}, True, True),
        ({"store": False}, {"store": True}, True, True),
    ],
)
def test_a_turn_or_a_process_may_be_started_with_others(first: Row, second: Row, again: bool, bad: bool):
    found, words = differing(first, second, second, again=again)
    assert found == [False, bad, bad]
    assert bool(words) == (not bad)


def test_what_a_process_was_started_with_holds_for_all_of_it():
    found, words = differing(
        {"tools": [LOOK]}, {"tools": [LOOK, WEB]}, {"tools": [LOOK]}, {"tools": [LOOK]}, again=True
    )
    assert found == [False, False, False, False]
    assert words == [
        "what asked for the answer at line 16 was started with tools more: web_search",
        "what asked for the answer at line 24 was started with tools less: web_search",
    ]


@pytest.mark.parametrize("own", [{"extra": 1}, {"stream": False}, {"tool_choice": "none"}, {"model": None}])
def test_what_no_setting_changes_differs_in_the_first_request_too(own: Row):
    assert differing(own, again=True)[0] == [True]


def test_a_request_that_lacks_what_all_carry_differs():
    assert differing({}, {"client_metadata": None}, {}, again=True)[0] == [False, True, False]


def test_other_ways_of_the_providers_own_tools_are_settings():
    told = options.more_and_less(
        json.dumps([WEB]).encode(), json.dumps([{**WEB, "external_web_access": False}]).encode()
    )
    assert told == "another setting of the provider's tools"


def test_the_tools_a_rollout_holds_are_known():
    session = Session(uuid7(0, 1))
    session.meta(0.0)
    session.begin(0.1, uuid7(0.1, 2))
    session.item(0.2, {"type": "additional_tools", "id": uuid_of("at", 0.2, 1), "role": "developer", "tools": [LOOK]})
    session.item(0.3, given(uuid_of("msg", 0.3, 1), "user", "one"))
    log = log_of(line.encode() for line in session.lines)
    assert codex.notices(log) == ()
    (point,) = codex.requests(log)
    assert b'"type":"additional_tools"' in codex.rebuild(log, point, codex.config(log), Learned()).data
