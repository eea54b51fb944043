"""What the Copilot CLI would send if it were started anew: its messages as the log has them."""

from __future__ import annotations

from ctxscope.agents import Log, at_hand, copilot
from ctxscope.model import NEXT_INPUT, Body, Point
from tests.copilot_cases import (
    BASE,
    HI,
    anew,
    answer,
    body,
    event,
    live,
    log_of,
    result,
    sourced,
    start,
    tool,
    turn,
    used,
)
from tests.resumed_logs import foretold, resumed

DETAILS = [{"type": "reasoning.encrypted", "data": "x1"}]
LOOKED = [*BASE, result(7, "a"), result(8, "b"), turn(9), used(10, "c2"), answer(11, "c2", "Done.")]
NEXT = {"role": "user", "content": f"<now>{NEXT_INPUT}"}
LIVE = live("", ("a", "b"), reasoning_details=DETAILS)


def calls_of(log: Log) -> list[tuple[Point, Body]]:
    bodies = (body(HI, temperature=1), body(HI, LIVE, tool("a"), tool("b"), temperature=1))
    return list(zip(copilot.requests(log), bodies, strict=True))


def test_messages_of_the_run_before_are_sent_as_the_log_has_them() -> None:
    log = log_of(LOOKED)
    found = foretold(copilot, log, calls_of(log))
    assert found["messages"][1:] == [
        HI,
        anew("a", "b"),
        sourced(tool("a"), "read", summary="read a"),
        sourced(tool("b"), "read", summary="read b"),
        {"role": "assistant", "content": "Done."},
        NEXT,
    ]
    assert found["temperature"] == 1


def test_what_the_next_run_does_otherwise_is_counted() -> None:
    log = log_of(LOOKED)
    first, second, third = resumed(copilot, log, calls_of(log)).changes
    assert first.startswith("2 tool results are sent with")
    assert second.startswith("one answer loses the reasoning")
    assert third == "the arguments of 2 tool calls are spelt anew from the log"


def test_nothing_changes_for_what_was_read_from_the_log_already() -> None:
    again = [*LOOKED, start(12, "session.resume"), turn(13), used(14, "c3"), answer(15, "c3", "So.")]
    log = log_of(again)
    spelt = [HI, anew("a", "b"), *(sourced(tool(n), "read", summary=f"read {n}") for n in "ab")]
    own = body(*spelt, {"role": "assistant", "content": "Done."}, temperature=1)
    calls = [*zip(copilot.requests(log), (b for _, b in calls_of(log_of(LOOKED))), strict=False)]
    calls.append((copilot.requests(log)[-1], own))
    assert not resumed(copilot, log, calls).changes
    assert foretold(copilot, log, calls)["messages"][-1] == NEXT


def test_a_tool_that_never_came_back_is_told_to_be_interrupted() -> None:
    log = log_of([*BASE, result(7, "a")])
    found = foretold(copilot, log)["messages"]
    assert found[-2]["tool_call_id"] == "b"
    assert found[-2]["content"].endswith("was interrupted.")


def test_what_cannot_be_said_is_said() -> None:
    log = log_of(LOOKED)
    assert any("time" in words for words in resumed(copilot, log, calls_of(log)).unknown)
    assert any("system prompt" in words for words in resumed(copilot, log).unknown)


def test_nothing_is_foretold_of_a_log_without_calls_or_of_a_context_that_was_cleared() -> None:
    assert copilot.resume(log_of([start()]), at_hand()) is None
    assert copilot.resume(log_of([]), at_hand()) is None
    cleared = event("session.context_cleared", 12, {})
    assert copilot.resume(log_of([*LOOKED, cleared]), at_hand()) is None
