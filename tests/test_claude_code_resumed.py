"""What later processes make of calls that broke off, and what else 1.0 to 2.1 were measured to send or leave out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ctxscope.agents import claude_code
from ctxscope.agents.claude_code import kin
from ctxscope.agents.claude_code.records import digest
from ctxscope.model import Body
from ctxscope.wire import anthropic_messages
from ctxscope.wire.body import make_body
from tests.claude_code_cases import (
    SESSION,
    Lines,
    asked,
    beside,
    log_of,
    messages_of,
    reminder,
    said,
    served,
    spelled,
    text,
    use,
)

THOUGHT = {"type": "thinking", "thinking": "Seeds first.", "signature": "c2lnbg=="}


def implied(lines: Lines) -> list[Any]:
    """Messages of the last call, cache marks left out."""
    log = lines.log
    found = messages_of(log, claude_code.requests(log)[-1])
    for message in found:
        for block in message["content"] if isinstance(message["content"], list) else ():
            block.pop("cache_control", None)
    return found


def is_equal(lines: Lines, body: Body, at: int = -1) -> bool:
    log = lines.log
    return beside(log, claude_code.requests(log)[at], body).data == body.data


def synthetic(lines: Lines, words: str, **fields: Any) -> None:
    model, lines.model = lines.model, "<synthetic>"
    lines.answer(f"s{len(lines.rows)}", text(words), **fields)
    lines.model = model


def interrupted() -> Lines:
    """Two tool calls, one result, then the process ended and another went on."""
    lines = Lines()
    lines.user("Sort both trays.")
    _, two = lines.answer("m1", use("t1", tray=1), use("t2", tray=2))
    lines.result("t2", "rye", parent=two)
    lines.user([text("Continue from where you left off.")], isMeta=True)
    synthetic(lines, "No response requested.")
    lines.user("And now?")
    lines.answer("m2", text("Rye."))
    return lines


def test_a_tool_call_without_a_result_is_not_sent_by_a_later_process():
    result = {"tool_use_id": "t2", "type": "tool_result", "content": "rye"}
    assert implied(interrupted()) == [
        asked("Sort both trays."),
        said(use("t2", tray=2)),
        asked([result, text("Continue from where you left off.")]),
        said(text("No response requested.")),
        asked([text("And now?")]),
    ]


def test_a_result_that_comes_after_the_next_answer_does_not_count():
    lines = interrupted()
    before = implied(lines)
    late = {"tool_use_id": "t1", "type": "tool_result", "content": "oats"}
    row = {**lines.rows[3], "uuid": "c1a0de0b-0000-4000-8000-000000000002", "parentUuid": lines.rows[1]["uuid"]}
    log = log_of([*lines.lines, spelled({**row, "message": asked([late])})])
    answered = [p for p in claude_code.requests(log) if p.answer is not None]
    assert messages_of(log, answered[-1])[1] == before[1]


@pytest.mark.parametrize("block", [THOUGHT, text(" \n")])
def test_an_answer_of_thinking_or_white_space_alone_is_not_sent(block: dict[str, Any]):
    lines = Lines()
    lines.user("Sort.")
    lines.answer("m1", block)
    lines.user("Go on.")
    lines.answer("m2", text("Sorted."))
    assert implied(lines) == [asked([text("Sort.\n"), text("Go on.")])]


def test_what_is_left_out_far_back_stays_left_out():
    lines = Lines()
    lines.user("Sort.")
    lines.answer("m0", THOUGHT)
    lines.user("Go on.")
    for number in range(1, 6):
        lines.answer(f"m{number}", text(f"Tray {number}."))
        lines.user(f"And {number}?")
    lines.answer("m9", text("Done."))
    found, fresh = lines.log, lines.log
    for point in claude_code.requests(found):  # each call asked for on the way, or the last alone
        messages_of(found, point)
    last = messages_of(found, claude_code.requests(found)[-1])
    assert last == messages_of(fresh, claude_code.requests(fresh)[-1])
    assert last[0] == asked([text("Sort.\n"), text("Go on.")])
    assert [m["role"] for m in last] == ["user", "assistant"] * 5 + ["user"]


def failed(version: str) -> Lines:
    lines = Lines(version)
    lines.user("Sort.")
    lines.answer("m1", text("Half of"))
    synthetic(lines, "API Error: cut", isApiErrorMessage=True)
    lines.user("Again.")
    lines.answer("m2", text("Sorted."))
    return lines


@pytest.mark.parametrize("resent", [True, False])
def test_an_error_is_sent_up_to_2_0_by_a_later_process_alone(resent: bool):
    error = [said(text("API Error: cut"))] if resent else []
    messages = [asked("Sort."), said(text("Half of")), *error, asked("Again.")]
    assert is_equal(failed("2.0.30"), served(messages, marks=2))
    changed = [asked("Sort."), said(text("Half of")), said(text("API Error: cat")), asked("Again.")]
    assert not is_equal(failed("2.0.30"), served(changed, marks=2))
    assert is_equal(failed("2.1.112"), served(messages)) is not resent


def unstreamed_again() -> Lines:
    """An answer in one line; a later process of 2.0 writes it again, block by block."""
    lines = Lines("2.0.30")
    first = lines.user("Sort.")
    message = {"id": "m1", "type": "message", "role": "assistant", "model": lines.model, "stop_reason": "tool_use"}
    blocks = [text("Sorting."), use("t1", tray=1)]
    lines.add("assistant", message={**message, "content": blocks})
    lines.result("t1", "oats")
    lines.answer("m1", *blocks, parent=first)
    lines.result("t1", "oats")
    lines.user("And?")
    lines.answer("m2", text("Done."))
    return lines


def test_lines_of_an_answer_that_were_written_again_count_once():
    lines = unstreamed_again()
    result = {"tool_use_id": "t1", "type": "tool_result", "content": "oats"}
    assert implied(lines) == [asked("Sort."), said(text("Sorting."), use("t1", tray=1)), asked([result, text("And?")])]
    first = claude_code.requests(lines.log)[0]
    assert [b.kind for b in first.blocks or ()] == ["text", "tool_call"]
    assert first.what == 'Sift {"tray":1}'


def test_the_beginning_of_an_answer_that_was_asked_for_again_may_be_left_out():
    lines = Lines("2.0.30")
    lines.user("Sort.")
    message = {"id": "m0", "role": "assistant", "model": lines.model, "stop_reason": None, "content": [text("Ha")]}
    lines.add("assistant", message=message)
    lines.answer("m1", text("Sorted."))
    lines.user("And?")
    lines.answer("m2", text("Done."))
    for begun in ([], [said(text("Ha"))]):
        messages = [asked("Sort."), *begun, said(text("Sorted.")), asked("And?")]
        assert is_equal(lines, served(messages, marks=2))


def test_hidden_lines_are_sent():
    lines = Lines("1.0.103")
    lines.user("Sort.")
    lines.user("<user-prompt-submit-hook>Mind the oats.</user-prompt-submit-hook>", isVisibleInTranscriptOnly=True)
    lines.answer("m1", text("Sorted."))
    hook = text("<user-prompt-submit-hook>Mind the oats.</user-prompt-submit-hook>")
    assert implied(lines) == [asked([text("Sort."), hook])]
    assert [p.turn for p in claude_code.requests(lines.log)] == [1]


def test_calls_of_which_nothing_came_are_calls():
    found = [(p.turn, p.answer is None) for p in claude_code.requests(cut().log)]
    assert found == [(1, True), (1, False)]
    body = served([asked("Sort.")])
    assert is_equal(cut(), body, 0)


def cut() -> Lines:
    lines = Lines()
    lines.user("Sort.")
    synthetic(lines, "No response requested.")
    lines.user("Again.")
    lines.answer("m1", text("Sorted."))
    return lines


def test_a_refused_tool_asks_for_nothing():
    lines = Lines()
    lines.user("Sort.")
    lines.answer("m1", use("t1", tray=1))
    lines.result("t1", "The user does not want this.")
    lines.user([text("[Request interrupted by user for tool use]")])
    lines.user("Leave it.")
    lines.answer("m2", text("Left."))
    assert all(p.answer is not None for p in claude_code.requests(lines.log))


PICTURE = {"type": "image", "file": {"base64": "c2VlZA==", "type": "image/png"}}
SHOWN = {"type": "image", "source": {"type": "base64", "data": "c2VlZA==", "media_type": "image/png"}}


def test_a_named_image_is_sent_from_the_log():
    lines = Lines()
    lines.user("See @oat.png")
    lines.attach("file", filename="oat.png", content=PICTURE)
    lines.answer("m1", text("An oat."))
    named = asked(reminder('Called the Read tool with the following input: {"file_path":"oat.png"}')["text"])
    assert is_equal(lines, served([named, asked([SHOWN, text("See @oat.png")])]))
    other = {**SHOWN, "source": {**SHOWN["source"], "data": "b2F0"}}  # type: ignore[dict-item]
    assert not is_equal(lines, served([named, asked([other, text("See @oat.png")])]))
    assert not is_equal(lines, served([named, asked("See @oat.png")]))


def test_a_named_file_is_read_from_the_log():
    lines = Lines()
    lines.user("See @list")
    lines.attach("file", filename="list", content={"type": "text", "file": {"content": "oats\nrye\n", "startLine": 1}})
    lines.answer("m1", text("Two."))
    for words, equal in (("1\toats\n2\trye\n3\t", True), ("1\toats\n2\trice\n3\t", False)):
        read = reminder(f"Result of calling the Read tool:\n{words}")
        assert is_equal(lines, served([asked([read, text("See @list")])])) is equal


def test_a_plan_the_client_fills_in_is_not_sent():
    lines = Lines()
    lines.user("Plan.")
    stored = {"type": "tool_use", "id": "t1", "name": "ExitPlanMode", "input": {"plan": "Oats first.", "note": "n"}}
    lines.answer("m1", stored)
    lines.result("t1", "Yes.")
    lines.answer("m2", text("Planned."))
    result = {"tool_use_id": "t1", "type": "tool_result", "content": "Yes."}
    for arguments, equal in (({"note": "n"}, True), ({"plan": "Oats first.", "note": "n"}, True), ({}, False)):
        messages = [asked("Plan."), said({**stored, "input": arguments}), asked([result])]
        assert is_equal(lines, served(messages)) is equal


def test_an_unstreamed_request_has_limits_of_its_own():
    lines = Lines("2.0.30")
    lines.user("Sort.")
    lines.answer("m1", text("Sorted."))
    lines.user("And?")
    lines.answer("m2", text("Done."))
    log = lines.log
    one, two = claude_code.requests(log)
    first = json.loads(served([asked("Sort.")], marks=2).data)
    del first["stream"]
    body = make_body(spelled({**first, "max_tokens": 5, "temperature": 1}), anthropic_messages, None)
    messages = [asked("Sort."), said(text("Sorted.")), asked("And?")]
    before = [(one, body)]
    streamed = served(messages, marks=2)
    assert beside(log, two, streamed, before).data == streamed.data
    other = served(messages, marks=2, system=[text("You eat seeds.")])
    assert beside(log, two, other, before).data != other.data


def test_a_compaction_is_told_by_its_prompt_before_the_last_message():
    prompt = text("CRITICAL: Respond with TEXT ONLY. Sum it up.")
    result = {"tool_use_id": "t1", "type": "tool_result", "content": "oats"}
    body = served([asked("Sort."), said(use("t1")), asked([result, prompt]), {"role": "system", "content": "Mode."}])
    assert claude_code.classify(body) == "compaction"
    assert claude_code.classify(served([asked("Warmup")], tools=[])) is None
    assert claude_code.classify(served([asked("Title?")], tools=[])) == "side"


def transcript(folder: Path, name: str, began: str, *lines: bytes) -> Path:
    path = folder / f"{name}.jsonl"
    head = {"type": "queue-operation", "operation": "enqueue", "timestamp": began, "sessionId": name}
    path.write_bytes(b"\n".join([spelled(head), *lines, b""]))
    return path


def test_a_file_begun_before_its_first_line_continues_none(tmp_path: Path):
    """2.0 went on in the first file with the lines of the fork (measured)."""
    lines = Lines()
    lines.user("Sort.")
    lines.answer("m1", text("Sorted."))
    shared = lines.lines
    lines.user("Fork.")
    lines.answer("m2", text("Forked."))
    forked = lines.lines
    lines.user("On.")
    lines.answer("m3", text("Gone on."))
    first = transcript(tmp_path, SESSION, "2026-02-01T09:00:00.000Z", *lines.lines)
    fork = transcript(tmp_path, SESSION[:-1] + "f", "2026-02-01T09:30:00.000Z", *forked)
    assert shared[0] in forked
    assert kin.parent_of(first) is None
    assert kin.parent_of(fork) == SESSION


def test_a_fork_of_a_fork_continues_the_last_session_its_lines_name(tmp_path: Path):
    names = [SESSION[:-1] + digit for digit in "123"]
    lines = Lines()
    lines.user("Sort.")
    lines.answer("m1", text("Sorted."))
    rows = list(lines.rows)
    transcript(tmp_path, names[0], "2026-02-01T09:00:00.000Z", *map(spelled, rows))
    copied = [rows[0], {**rows[1], "requestSessionId": names[0]}]
    lines.user("Fork.")
    lines.answer("m2", text("Forked."))
    own = lines.rows[2:]
    transcript(tmp_path, names[1], "2026-02-01T09:30:00.000Z", *map(spelled, [*copied, *own]))
    again = [*copied, own[0], {**own[1], "requestSessionId": names[1]}]
    last = transcript(tmp_path, names[2], "2026-02-01T09:40:00.000Z", *map(spelled, again))
    assert kin.parent_of(last) == names[1]


IMAGE = {"type": "image", "source": {"type": "base64", "data": "c2VlZA==", "media_type": "image/png"}}
LEFT, MORE = reminder("<seeds>7 left</seeds>"), reminder("Sow some.")


def recorded(logged: Any, sent: Any) -> Lines:
    """A tool's result as its line has it, and a request's record that holds it as it was sent."""
    lines = Lines(version="2.1.332")
    lines.user("Sift.")
    lines.answer("m1", use("t1", tray=1))
    lines.result("t1", logged)
    lines.answer("m2", text("Sifted."), requestRef="r1")
    message = asked([{"tool_use_id": "t1", "type": "tool_result", "content": sent}])
    hashes = [digest(asked([text("Sift.")])), digest(said(use("t1", tray=1))), digest(message)]
    lines.rows += [
        {"type": "api-request-blob", "hash": hashes[-1], "message": message},
        {"type": "api-request", "id": "r1", "params": {"model": "m"}, "keep": 0, "tail": hashes},
    ]
    return lines


def last_result(lines: Lines) -> Any:
    return implied(lines)[-1]["content"][0]["content"]


@pytest.mark.parametrize(
    ("logged", "sent"),
    [
        ([IMAGE], [IMAGE, LEFT]),
        ([IMAGE, text("Rye.")], [IMAGE, text("Rye.\n"), LEFT]),
        (f"  Rye.\n\n{LEFT['text']}\n", f"Rye.\n\n{LEFT['text']}\n\n{MORE['text']}"),
        ("Rye \ud83d.", "Rye \ufffd."),
        ([text("\ud83d")], [text("\ufffd")]),
    ],
)
def test_a_result_is_sent_as_its_record_has_it(logged: Any, sent: Any):
    assert last_result(recorded(logged, sent)) == sent


def test_what_a_record_adds_to_a_result_is_no_more_than_reminders():
    other = {**IMAGE, "source": {**IMAGE["source"], "data": "c2VlZB=="}}
    assert last_result(recorded([other], [IMAGE, LEFT])) == [other, LEFT]
    assert last_result(recorded([IMAGE], [IMAGE, text("More.")])) == [IMAGE]
    assert last_result(recorded([text("Oat.")], [text("Rye.\n"), LEFT])) == [text("Oat.\n"), LEFT]
    changed, more = f"Oat.\n\n{LEFT['text']}", f"\n\n{MORE['text']}"
    assert last_result(recorded(changed, f"Rye.\n\n{LEFT['text']}{more}")) == changed + more


def test_reminders_behind_a_result_that_ends_in_one_itself_are_the_client_s():
    """As 2.0 ends what it read of a file; the text before is trimmed as a whole (measured)."""
    own, kept = f"  1 rye\n\n{LEFT['text']}\n", f"1 rye\n\n{LEFT['text']}"
    lines = Lines(version="2.0.30")
    lines.user("Read.")
    lines.answer("m1", use("t1", tray=1))
    lines.result("t1", own)
    lines.answer("m2", text("Rye."))

    def asking(content: str) -> Body:
        result = {"tool_use_id": "t1", "type": "tool_result", "content": content}
        return served([asked("Read."), said(use("t1", tray=1)), asked([result])])

    added = f"\n\n{MORE['text']}"
    assert is_equal(lines, asking(own))
    assert is_equal(lines, asking(kept + added))
    assert not is_equal(lines, asking(kept.replace("rye", "oat") + added))
    assert not is_equal(lines, asking(kept.replace("7 left", "8 left") + added))
    assert not is_equal(lines, asking(kept))
