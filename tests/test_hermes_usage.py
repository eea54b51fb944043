"""Which line of agent.log is a call's own: the one between its answer and the row before it, and no other."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctxscope.model import Usage
from tests.hermes_rows import Written, call

FULL = "in=100 out=7 total=107 latency=0.1s"


def said(log: Written, text: str = f"{FULL} cache=60/100 (60%)", *, ago: float = 0.02, session: str = "plot") -> None:
    """A call's line shortly before the row that is written next."""
    when = datetime.fromtimestamp(log.now + 1 - ago, UTC)
    stamp = f"{when:%Y-%m-%d %H:%M:%S},{when.microsecond // 1000:03}"
    log.line(f"{stamp} INFO [{session}] agent.conversation_loop: API call #1: model=m provider=p {text}")


def told(log: Written) -> list[Usage | None]:
    return [point.stored_usage for point in log.points if point.answer is not None]


def started(**session: object) -> Written:
    log = Written(**{"cache_write_tokens": 0, **session})
    log.user("dig")
    return log


def test_a_line_right_before_an_answer_tells_its_usage_without_what_was_read():
    log = started()
    said(log, FULL)
    log.says("", tool_calls=call("a"))
    log.tool("a")
    said(log)
    log.says("done")
    log.user("more")
    said(log, FULL)
    log.says("done")
    assert told(log) == [Usage(100, 0, None, 7), Usage(40, 60, None, 7), Usage(100, 0, None, 7)]


def test_a_server_that_never_told_a_read_is_not_said_to_have_read_nothing():
    log = started()
    said(log, FULL)
    log.says("done")
    assert told(log) == [Usage(100, None, None, 7)]


@pytest.mark.parametrize(
    "text",
    [
        "in=100 out=7",
        "in=100 out=7 total=109 latency=0.1s",
        f"{FULL} cache=60/90 (60%)",
        f"{FULL} cache=160/100 (160%)",
    ],
)
def test_counts_that_are_not_there_or_contradict_each_other_tell_nothing(text):
    log = started()
    said(log, text)
    log.says("done")
    assert told(log) == [None]


def test_what_was_written_is_not_taken_for_plain_input():
    log = started(cache_write_tokens=5)
    said(log)
    log.says("done")
    assert told(log) == [None]
    unsaid = Written()
    unsaid.user("dig")
    said(unsaid)
    unsaid.says("done")
    assert told(unsaid) == [None]


@pytest.mark.parametrize("other", [f"{FULL} cache=60/100 (60%)", "in=? out=7"])
def test_two_lines_before_an_answer_are_nobodys(other):
    log = started()
    said(log, ago=0.5)
    said(log, other)
    log.says("done")
    log.user("more")
    said(log)
    log.says("done")
    log.user("more")
    said(log)
    log.says("done")
    assert told(log) == [None, Usage(40, 60, None, 7), Usage(40, 60, None, 7)]


def test_a_line_of_another_session_or_of_a_call_without_a_row_is_nobodys():
    log = started()
    said(log, session="other")
    log.says("one")
    said(log)  # what it bought left no row: the user row comes next
    log.user("more")
    log.says("two")
    log.user("more")
    said(log)
    log.says("cut", finish_reason="length")
    assert told(log) == [None, None, None]


@pytest.mark.parametrize("quarters", [-44, -1, 0, 23, 56])
def test_the_files_clock_may_be_of_any_zone(quarters):
    log = started()
    for _ in range(3):
        said(log, ago=0.02 - quarters * 900)
        log.says("done")
        log.user("more")
    assert told(log) == [Usage(40, 60, None, 7)] * 3


def test_lines_lost_in_a_rotation_leave_the_others_where_they_are():
    log = started()
    for kept in (False, True, False, True):
        if kept:
            said(log)
        log.says("done")
        log.user("more")
    assert told(log) == [None, Usage(40, 60, None, 7), None, Usage(40, 60, None, 7)]


def test_lines_told_after_their_rows_give_the_same_points():
    early, late = started(), started()
    for _ in range(3):
        said(early)
        early.says("done")
        early.user("more")
        late.says("done")
        late.user("more")
    assert told(late) == [None] * 3
    late.now -= 6
    for _ in range(3):
        said(late)
        late.now += 2
    assert told(late) == told(early) == [Usage(40, 60, None, 7)] * 3


STEPS = st.lists(st.sampled_from(["user", "says", "tool", "read", "bare", "old", "other", "wrote"]), max_size=16)


def write(log: Written, steps: Sequence[str]) -> None:
    for step in steps:
        if step in ("user", "says", "tool"):
            {"user": log.user, "says": log.says, "tool": log.tool}[step]("a")
        elif step == "wrote":
            log.session["cache_write_tokens"] = 1
            log.prompt("again")
        else:
            text = FULL if step == "bare" else f"{FULL} cache=60/100 (60%)"
            said(log, text, ago=3.0 if step == "old" else 0.02, session="other" if step == "other" else "plot")


@settings(max_examples=100, deadline=None)
@given(STEPS)
def test_usage_is_the_same_whether_it_was_asked_for_before_or_not(steps):
    grown, fresh = started(), started()
    for step in steps:
        write(grown, [step])
        told(grown)
    write(fresh, steps)
    assert told(grown) == told(fresh)
