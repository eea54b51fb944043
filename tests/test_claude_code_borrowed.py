"""What is borrowed from a served request beside a transcript made line by line, and what never is (claude_code.md §4.2, §4.3)."""

from __future__ import annotations

import json
from typing import Any

from ctxscope.agents import claude_code
from tests.claude_code_cases import (
    MARK,
    Lines,
    asked,
    beside,
    last_messages,
    parallel,
    reminder,
    result,
    said,
    served,
    simple,
    spelled,
    text,
    use,
)


def test_reminders_are_taken_from_the_request_and_nothing_else_of_it():
    log = simple().log
    point = claude_code.requests(log)[-1]
    trimmed = "oats\nrye\n\n<system-reminder>\nNo list is kept.\n</system-reminder>"
    body = served(
        [asked([reminder("Context."), text("Sort the tray.")]), said(use("t1", tray=1)), asked([result("t1", trimmed)])]
    )
    made = beside(log, point, body)
    assert made.data == body.data
    assert {p.path for p in made.pieces if p.provenance == "echoed" and p.path.startswith("/messages")} == {
        "/messages/0/content/0",
        "/messages/2/content/0/content",
    }
    for changed in (b"Sort the trap.", b'"tray":2', b"oaks"):
        old = {b"Sort the trap.": b"Sort the tray.", b'"tray":2': b'"tray":1', b"oaks": b"oats"}[changed]
        other = served(
            json.loads(body.data.replace(old, changed))["messages"][:2]
            + json.loads(body.data.replace(old, changed))["messages"][2:]
        )
        assert beside(log, point, other).data != other.data


def test_what_the_log_does_not_imply_is_not_borrowed():
    log = simple().log
    point = claude_code.requests(log)[-1]
    base = [asked("Sort the tray."), said(use("t1", tray=1)), asked([result("t1", "  oats\nrye\n")])]
    for messages in (
        [*base, said(text("Hm.")), asked("Go on.")],
        [asked([text("Be quick."), text("Sort the tray.")]), *base[1:]],
        [base[0], said(text("Sure."), use("t1", tray=1)), base[2]],
        [*base[:2], asked([result("t1", "  oats\nrye\n"), text("Hurry.")])],
    ):
        body = served(messages)
        assert beside(log, point, body).data != body.data
    body = served(base, extra_key=1)
    assert beside(log, point, body).data != body.data
    body = served(base)
    assert beside(log, point, body).data == body.data


def test_a_lone_text_may_be_sent_as_a_block_or_a_string():
    """2.0 sends prompts it loaded from disk as blocks, its own as strings."""
    lines = Lines(version="2.0.30")
    lines.user("One.")
    lines.answer("m1", text("First."))
    lines.user("Two.")
    lines.answer("m2", text("Second."))
    log = lines.log
    point = claude_code.requests(log)[-1]
    for first in ("One.", [text("One.")]):
        body = served([asked(first), said(text("First.")), asked("Two.")], marks=2)
        made = beside(log, point, body)
        assert made.data == body.data
        assert b'"One."' in b"".join(p.data for p in made.pieces if p.provenance == "logged")


def test_the_head_of_a_thread_is_held():
    log = parallel().log
    one, two = claude_code.requests(log)
    first = served([asked("Sort both trays.")])
    messages = [
        asked("Sort both trays."),
        said(text("Both at once."), use("t1", tray=1), use("t2", tray=2)),
        asked([result("t2", "rye"), result("t1", "oats")]),
    ]
    second = served(messages)
    made = beside(log, two, second, [(one, first)])
    assert made.data == second.data
    assert {p.provenance for p in made.pieces if p.path in ("/tools", "/system", "/max_tokens")} == {"learned"}
    for changed in (served(messages, max_tokens=10), served(messages, system=[{**text("Hm."), "cache_control": MARK}])):
        assert beside(log, two, changed, [(one, first)]).data != changed.data


def test_the_billing_text_holds_as_long_as_the_first_message_does():
    lines = parallel()
    lines.compact()
    lines.user("Next tray.")
    lines.answer("m3", text("Yes."))
    log = lines.log
    one, two, three = claude_code.requests(log)

    def billed(messages: list[Any], suffix: str, nonce: str) -> Any:
        line = text(f"x-anthropic-billing-header: cc_version=2.1.112.{suffix}; cch={nonce};")
        return served(messages, system=[line, {**text("You sort seeds."), "cache_control": MARK}])

    first = billed([asked("Sort both trays.")], "a1b", "01234")
    messages = json.loads(b"[" + b",".join(spelled(m) for m in last_messages(parallel())) + b"]")
    second = billed(messages, "a1b", "98765")
    made = beside(log, two, second, [(one, first)])
    assert made.data == second.data
    assert [p.data for p in made.pieces if p.provenance == "echoed"] == [b"98765"]
    other = billed(messages, "c3d", "98765")
    assert beside(log, two, other, [(one, first)]).data != other.data
    third = billed([asked([text("This session goes on.\n"), text("Next tray.")])], "c3d", "11111")
    assert beside(log, three, third, [(one, first), (two, second)]).data == third.data


def test_a_model_may_be_named_by_another_name_but_not_by_anothers():
    lines = Lines(model="claude-seed-1-20260101")
    lines.user("One.")
    lines.answer("m1", text("First."))
    log = lines.log
    (point,) = claude_code.requests(log)
    alias = served([asked("One.")], model="claude-seed-1")
    assert beside(log, point, alias).data == alias.data
    other = served([asked("One.")], model="claude-husk-9")
    assert beside(log, point, other).data != other.data
