"""What a new process would add to a transcript, and send (claude_code.md §4, §5)."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import ctxscope
from ctxscope.agents import at_hand, claude_code
from ctxscope.model import NEXT_INPUT, Body, Config, Learned, Resume
from tests.claude_code_cases import (
    MARK,
    Lines,
    asked,
    log_of,
    reminder,
    result,
    said,
    served,
    simple,
    text,
    use,
)

SAMPLE = Path(__file__).parents[1] / "sample_sessions" / "claude_code" / "request_records"
CONTEXT = reminder("Trays are counted from the left.")
OTHERWISE = "inputs and tool results are sent as logged: without reminders added to them, their text not trimmed"
UNLOGGED = "messages the client added without logging them are left out"
INPUT = asked([{**text(NEXT_INPUT), "cache_control": MARK}])


def resumed(lines: Lines, body: Body | None = None) -> Resume | None:
    log = lines.log
    main = [p for p in claude_code.requests(log) if p.answer is not None]
    return claude_code.resume(log, at_hand([(main[-1], body)] if body is not None else ()))


def sent(lines: Lines, body: Body | None = None) -> list[Any]:
    """The messages of the next request; ``body``: the last one."""
    found = resumed(lines, body)
    assert found is not None
    log = log_of([*lines.lines, *(r.value for r in found.records if isinstance(r.value, bytes))])
    *before, point = [p for p in claude_code.requests(log) if p.lineage == "main"]
    assert point.answer is None
    learned = Learned()
    if body is not None:
        learned = claude_code.learn(log, point, body, at_hand([(before[-1], body)]))
    made = claude_code.rebuild(log, point, Config(), replace(learned, choice={**learned.choice, **found.choice}))
    assert made is not None
    messages: list[Any] = json.loads(made.data)["messages"]
    return messages


def of(version: str) -> Lines:
    lines = simple()
    for row in lines.rows:
        row["version"] = version
    lines.version = version
    return lines


def last_body(read: str, *more: dict[str, Any], marks: int = 1) -> Body:
    """The last request of ``simple``, the tool's result as it was sent."""
    messages = [asked([CONTEXT, text("Sort the tray.")]), said(use("t1", tray=1)), asked([result("t1", read)])]
    return served([*messages, *more], marks)


def test_what_no_line_holds_is_gone_but_for_what_every_process_adds():
    lines = of("2.0.30")
    body = last_body("oats\nrye\n\n<system-reminder>\nKeep a list.\n</system-reminder>", marks=2)
    answer = said({**text("Oats and rye."), "cache_control": MARK})
    assert sent(lines, body) == [
        asked([CONTEXT, text("Sort the tray.")]),
        said(use("t1", tray=1)),
        asked([result("t1", "  oats\nrye\n")]),
        answer,
        INPUT,
    ]
    found = resumed(lines, body)
    assert found is not None
    assert found.changes == (OTHERWISE,)


def test_a_process_that_read_the_log_changes_nothing():
    found = resumed(of("2.0.30"), last_body("  oats\nrye\n", marks=2))
    assert found is not None
    assert found.changes == ()


@pytest.mark.parametrize(
    ("version", "form"), [("1.0.103", [text("And the next?")]), ("2.0.30", [text("And the next?")]), ("2.1.112", None)]
)
def test_a_lone_text_that_was_read_is_a_block_up_to_2_0(version: str, form: Any):
    lines = of(version)
    lines.user("And the next?")
    lines.answer("m3", text("Empty."))
    lines.user("Really?")
    lines.answer("m4", text("Yes."))
    body = last_body("  oats\nrye\n", said(text("Oats and rye.")), asked("And the next?"), said(text("Empty.")))
    assert sent(lines, body)[4] == asked(form or "And the next?")


def test_what_a_line_does_not_hold_at_all_is_left_out():
    lines = Lines()
    lines.user("Sort the tray.")
    lines.answer("m1", text("Oats, r"))
    lines.answer("m2", text("ye."))
    hidden = asked("Go on where you stopped.")
    body = served([asked([CONTEXT, text("Sort the tray.")]), said(text("Oats, r")), hidden])
    found = resumed(lines, body)
    assert found is not None
    assert found.changes == (UNLOGGED,)
    first = asked([CONTEXT, text("Sort the tray.")])
    assert sent(lines, body) == [first, said(text("Oats, r")), said(text("ye.")), INPUT]


def test_what_a_logged_attachment_gave_stays():
    lines = Lines()
    lines.user("Sort the tray.")
    lines.answer("m1", use("t1", tray=1))
    lines.result("t1", "oats")
    lines.attach("todo_reminder", content=[], itemCount=0)
    lines.answer("m2", text("Oats."))
    told = asked([result("t1", "oats"), reminder("Keep a list.")])
    body = served([asked([CONTEXT, text("Sort the tray.")]), said(use("t1", tray=1)), told])
    assert sent(lines, body)[2] == told
    found = resumed(lines, body)
    assert found is not None
    assert found.changes == ()


def test_an_unlogged_compaction_is_undone():
    lines = of("1.0.103")
    summary = text("This session is being continued from before. Oats.")
    found = resumed(lines, served([asked([CONTEXT, summary]), said(text("Oats."))], 2))
    assert found is not None
    assert [c.partition(":")[0] for c in found.changes] == ["the whole conversation is sent again"]
    assert any("new file" in word for word in found.unknown)


def test_2_0_answers_what_asked_for_nothing():
    lines = of("2.0.30")
    lines.compact(trigger="manual")
    lines.user("<local-command-stdout>Compacted</local-command-stdout>")
    found = resumed(lines)
    assert found is not None
    assert [json.loads(r.value)["type"] for r in found.records] == ["assistant", "user"]
    assert [m["role"] for m in sent(lines)] == ["user", "assistant", "user"]
    assert sent(lines)[1]["content"][0]["text"] == "No response requested."
    assert any("answered by the client" in word for word in found.changes)


def test_a_record_is_made_for_the_next_request():
    inspection = ctxscope.open(SAMPLE)
    try:
        (found,) = inspection.next_requests()
    finally:
        inspection.close()
    assert found.body is not None
    last = json.loads((SAMPLE / "wire" / "0003.req").read_bytes())
    for message in last["messages"]:
        for block in message["content"] if isinstance(message["content"], list) else ():
            block.pop("cache_control", None)
    last["messages"][2]["content"][0]["content"] = "08:10 two teal\n08:40 one marsh harrier\n09:05 siskins, about forty"
    again = last["messages"][4]["content"][0]["text"]
    last["messages"][4]["content"] = again
    last["messages"] += [said(text("At 09:05.")), INPUT]
    for message in last["messages"][:-1]:
        if isinstance(message["content"], list) and message["content"][-1].get("cache_control"):
            del message["content"][-1]["cache_control"]
    assert json.loads(found.body.data) == last
    assert list(json.loads(found.body.data)) == list(last)
    assert (found.scope, found.hypotheses) == ("body", ())


def test_whether_it_compacts_first_is_not_known_unless_it_never_does():
    lines = of("2.1.112")
    told = "whether a compaction comes first: the last call used 11 tokens"
    for settings, expected in ((b"{}", True), (b'{"autoCompactEnabled": false}', False)):
        found = claude_code.resume(log_of(lines.lines, settings=settings), at_hand())
        assert found is not None
        assert any(w.startswith(told) for w in found.unknown) == expected


def test_what_is_added_is_the_same_each_time():
    one, other = resumed(of("2.1.112")), resumed(of("2.1.112"))
    assert one is not None and other is not None  # noqa: PT018
    assert one.records == other.records
    assert json.loads(one.records[0].value)["parentUuid"] == of("2.1.112").last


def test_a_checksum_of_each_request_is_not_known():
    billing = "x-anthropic-billing-header: cc_version=2.1.112.2cd; cch={};"
    for checksum, told in (("0000", False), ("a3f1", True)):
        body = served([asked([CONTEXT, text("Sort the tray.")])], system=[text(billing.format(checksum))])
        found = resumed(of("2.1.112"), body)
        assert found is not None
        assert any("cch" in word for word in found.unknown) == told


def waiting() -> Lines:
    lines = simple()
    lines.user("And now?")
    return lines


def open_call() -> Lines:
    lines = simple()
    lines.user("And now?")
    lines.answer("m3", use("t9", tray=9))
    return lines


def only_thoughts() -> Lines:
    lines = simple()
    lines.user("And now?")
    lines.answer("m3", {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"})
    return lines


def behind_a_command(version: str = "2.1.112") -> Lines:
    lines = of(version)
    lines.compact(trigger="manual")
    lines.user("<local-command-stdout>Compacted</local-command-stdout>")
    return lines


def failed() -> Lines:
    lines = simple()
    lines.user("And now?")
    lines.answer("m3", text("API Error: 529"), isApiErrorMessage=True)
    return lines


def waiting_in_2_0() -> Lines:
    lines = of("2.0.30")
    lines.user("And now?")
    return lines


CLOSED: dict[str, Callable[[], Lines]] = {
    "nothing": Lines,
    "an input that waits": waiting,
    "an input that waits in 2.0": waiting_in_2_0,
    "an open tool call": open_call,
    "an answer that stops at its thoughts": only_thoughts,
    "behind a local command": behind_a_command,
    "a call that failed": failed,
    "a newer version without records": lambda: of("2.1.332"),
}


@pytest.mark.parametrize("lines", CLOSED.values(), ids=CLOSED)
def test_nothing_is_said_where_it_is_not_known(lines: Callable[[], Lines]):
    assert claude_code.resume(lines().log, at_hand()) is None


def test_a_subagents_transcript_alone_says_nothing():
    lines = of("1.0.103")
    for row in lines.rows:
        row["isSidechain"] = True
    assert claude_code.resume(lines.log, at_hand()) is None
