"""What a new process would add to a log, and send (dsh.md §5)."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import ctxscope
from ctxscope.agents import Log, at_hand, dsh
from ctxscope.model import NEXT_INPUT, NextRequest, Resume
from tests.dsh_cases import answer, begun, cut, log_of, read
from tests.samples.dsh_form import SessionLog, answered, body, compact, said
from tests.samples.dsh_texts import PACKAGES, SYSTEM, TOOLS
from tests.samples.pi_form import Say, Use

HEADER = "the session's header, sent with the log's new part, has the members it was read with from disk"
USE = Use("toolu_1", "sheet", '{"number": 1}')


def ended(version: int = 4, **more: Any) -> SessionLog:
    """A session of one whole turn."""
    log = begun(version, **more)
    log.accepted(1.1, len(log.records) - 1)
    answer(log)
    log.ended(3.0, 1, 1, whole=True)
    return log


def resumed(log: SessionLog) -> Resume | None:
    return dsh.resume(read(log), at_hand())


def gone_on(log: SessionLog) -> Log:
    """The log with the records of a new process behind its own."""
    found = resumed(log)
    assert found is not None
    return log_of([*log.lines(), *(r.value for r in found.records if isinstance(r.value, bytes))])


def recorded(log: SessionLog, last: str, folder: Path) -> NextRequest:
    """The next request of a session whose last one was recorded."""
    log.write(folder)
    wire = folder / "wire"
    wire.mkdir()
    (wire / "0001.req").write_text(last, encoding="utf-8")
    headers = {"x-deepseek-harness-session-id": log.id}
    row = {"n": 1, "t": 1.05, "method": "POST", "path": "/v1/messages", "headers": headers, "status": 200}
    (wire / "index.jsonl").write_text(json.dumps(row) + "\n", encoding="utf-8")
    with_it = ctxscope.open(folder, recording=str(wire))
    try:
        (found,) = with_it.next_requests()
        return found
    finally:
        with_it.close()


def first_request() -> str:
    log = begun()
    return body([said("look")], SYSTEM, log.along(-1, len(log.records) - 1), PACKAGES, tools=TOOLS)


def test_the_next_request_is_told_but_for_ids_and_times(tmp_path: Path) -> None:
    log = ended()
    found = recorded(ended(), first_request(), tmp_path)
    assert found.body is not None
    along = json.loads(found.body.data)["dsh_session_log"]["events"]
    log.records += [json.loads(r.value) for r in resumed(ended()).records]
    items = [said("look"), answered(Say("done")), said(NEXT_INPUT)]
    sent = body(items, SYSTEM, log.along(5, len(log.records) - 1, loaded=True), PACKAGES, tools=TOOLS)
    assert found.body.data.decode() == sent
    kinds = ["session/end-seed", "agent/inbox/spliced", "turn/start", "agent/inbox/spliced", "step/start"]
    assert [e["type"] for e in along][-7:] == [*kinds, "user/message", "request/header"]
    assert (found.changes, found.hypotheses) == ((HEADER,), ())
    assert "ids and times in the part of the log that is sent along" in found.unknown


def test_a_process_that_read_the_log_already_changes_nothing() -> None:
    log = ended()
    log.event(9.0, "session/end-seed", {})
    second = body([said("look")], SYSTEM, log.along(-1, 5, loaded=True), PACKAGES, tools=TOOLS)
    held = read(log)
    found = dsh.resume(held, at_hand([(dsh.requests(held)[-1], cut(second))]))
    assert found is not None
    assert found.changes == ()
    plain = json.loads(second)
    del plain["dsh_session_log"]
    without = dsh.resume(held, at_hand([(dsh.requests(held)[-1], cut(compact(plain)))]))
    assert without is not None
    assert not any("sent along" in word for word in without.unknown)


def test_what_is_added_is_the_same_each_time_and_counts_on() -> None:
    one, other = resumed(ended()), resumed(ended())
    assert one is not None and other is not None  # noqa: PT018
    assert one.records == other.records
    records = [json.loads(r.value) for r in one.records]
    number = len(ended().records)
    assert [r["seq"] for r in records] == list(range(number, number + 7))
    assert {r["time"] for r in records} == {ended().records[-1]["time"]}
    point = dsh.requests(gone_on(ended()))[-1]
    assert (point.answer, point.turn) == (None, 2)


def open_turn() -> SessionLog:
    log = begun()
    answer(log)
    return log


def open_call() -> SessionLog:
    log = begun()
    answer(log, USE)
    return log


def waiting() -> SessionLog:
    log = ended()
    log.turn(9.0, 2, "and now?")
    log.user(9.0, "and now?")
    return log


def compacting() -> SessionLog:
    log = ended()
    log.event(9.0, "compaction/start", {"compactionId": "c", "turn": None})
    return log


def refused() -> SessionLog:
    log = ended()
    log.event(9.0, "moon/phase", {})
    return log


def unasked() -> SessionLog:
    return SessionLog("session-x", "/home/ada")


CLOSED = {
    "an open turn": open_turn,
    "an open tool call": open_call,
    "an input that waits": waiting,
    "an open compaction": compacting,
    "a log that is refused": refused,
    "nothing asked yet": unasked,
    "v3, which was not seen to go on": lambda: ended(3),
    "v0": lambda: ended(0),
    "a subagent": lambda: ended(origin="subagent", delegationDepth=1, parentSession="p"),
}


@pytest.mark.parametrize("log", CLOSED.values(), ids=CLOSED)
def test_nothing_is_said_where_it_is_not_known(log: Any) -> None:
    assert resumed(log()) is None


def test_an_empty_log_says_nothing() -> None:
    assert dsh.resume(Log(replace(read(ended()).ref)), at_hand()) is None


def test_a_fork_goes_on_as_others_do() -> None:
    assert resumed(ended(parentSession="p", isSeeded=True)) is not None
