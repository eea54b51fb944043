"""What real runs of the Copilot CLI showed beside plain turns: failures, interruptions, cuts, compactions, subagents."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ctxscope.agents import copilot
from ctxscope.agents.copilot.spelling import spelled
from ctxscope.model import Config, Difference, Learned
from ctxscope.wire import json_text
from tests.copilot_cases import (
    BASE,
    HI,
    SOURCE,
    anew,
    answer,
    body,
    event,
    live,
    log_of,
    made,
    result,
    sourced,
    start,
    tool,
    turn,
    used,
    user,
)

HERE = {"context": {"cwd": "/home/dev/harbour"}}


def asked(number: int, call: str, *uses: tuple[str, str, dict[str, Any]]) -> bytes:
    requests = [{"toolCallId": i, "name": name, "arguments": told} for i, name, told in uses]
    said = {"content": "", "toolRequests": requests, "apiCallId": call, "model": "fern"}
    return event("assistant.message", number, said)


def calls(*uses: tuple[str, str, dict[str, Any]], is_live: bool = True) -> dict[str, Any]:
    spelt = [
        {"id": i, "type": "function", "function": {"name": name, "arguments": spelled(told)}} for i, name, told in uses
    ]
    refusal = {"refusal": None} if is_live else {}
    return {"role": "assistant", "content": None, **refusal, "tool_calls": spelt}


def failed(number: int, use: str, words: str, length: int | None = None, **properties: str) -> bytes:
    metrics = {} if length is None else {"resultForLlmLength": length}
    told = {"properties": {"command": "x", **properties}, "metrics": metrics} if properties is not None else {}
    error = {"message": words, "code": "failure"}
    return event(
        "tool.execution_complete",
        number,
        {"toolCallId": use, "success": False, "error": error, "toolTelemetry": told},
    )


GONE = "Path /home/dev/harbour/quay.txt does not exist. Please provide a valid path."


def failing(words: str) -> list[bytes]:
    use = ("a", "view", {"path": "dock/../quay.txt"})
    lines = [start(**HERE), user(3, "hi"), event("system.message", 2, {"content": "Be brief."}), turn(4)]
    lines += [asked(6, "c1", use), failed(7, "a", words, len(GONE)), turn(8), answer(9, "c2", "gone")]
    return [*lines, start(10, "session.resume"), user(11, "well"), turn(12), answer(13, "c3", "yes")]


def failing_bodies() -> list[Any]:
    use = ("a", "view", {"path": "dock/../quay.txt"})
    again = [HI, calls(use, is_live=False), sourced(tool("a", "Path does not exist"), "view")]
    last = [*again, {"role": "assistant", "content": "gone"}, {"role": "user", "content": "<now>well"}]
    return [body(HI), body(HI, calls(use), tool("a", GONE)), body(*last)]


def test_a_failed_tool_tells_more_in_its_own_run_than_the_log_keeps():
    assert made(log_of(failing("Path does not exist")), *failing_bodies()) == [True, True, True]


def test_another_message_in_the_log_is_another_request_live_and_later():
    assert made(log_of(failing("Path does not exisT")), *failing_bodies()) == [True, False, False]


def test_a_longer_text_than_is_known_is_explained():
    log = log_of(failing("Path is odd"))
    point = copilot.requests(log)[1]
    told, result_of_it, question = (
        copilot.explain(log, point, Difference(0, 0, 0, path, "content", "they part", "", ""), Learned())
        for path in ("/messages/2/content", "/messages/3/content", "/messages/1/content")
    )
    assert (told, question) == (None, None)
    assert result_of_it is not None
    assert "shorter message" in result_of_it


@pytest.mark.parametrize(
    ("name", "told", "words", "length", "sent"),
    [
        ("grep", {"pattern": "("}, "unclosed", None, "Error: unclosed"),
        ("sql", {"query": "x"}, "near x", None, "SQL Error: near x"),
        (
            "create",
            {"path": "a/b.txt"},
            "Parent directory does not exist",
            99,
            "Parent directory /home/dev/harbour/a does",
        ),
        ("create", {"path": "b"}, "Path already exists", 98, "Path /home/dev/harbour/b already exists as a directory."),
        ("edit", {"path": "b"}, "Path not absolute", 62, 'Path "b" is not absolute. Please'),
        ("bash", {"command": "x"}, "denied by a hook", None, "denied by a hook"),
    ],
)
def test_texts_of_failures_are_put_together_from_the_log(
    name: str, told: dict[str, Any], words: str, length: int | None, sent: str
):
    lines = [start(**HERE), user(3, "hi"), turn(4), asked(6, "c1", ("a", name, told)), failed(7, "a", words, length)]
    log = log_of([*lines, turn(8)])
    rebuilt = copilot.rebuild(log, copilot.requests(log)[1], Config(), Learned())
    messages = json.loads(rebuilt.data)["messages"]
    assert messages[-1]["content"].startswith(sent)
    assert {p.provenance for p in rebuilt.pieces} <= {"logged", "derived"}


def partly(sent: str, length: int) -> list[bool]:
    use = ("a", "edit", {"path": "/q/a.txt", "old_str": "x", "new_str": "y"})
    lines = [*BASE[:4], asked(6, "c1", use), failed(7, "a", "Multiple matches found", length), turn(8)]
    lines += [
        answer(9, "c2", "so"),
        event("system.notification", 10, {"content": "tide"}),
        turn(11),
        answer(12, "c3", "x"),
    ]
    head = [HI, calls(use), tool("a", sent)]
    more = [{"content": "so", "role": "assistant", "refusal": None}, {"role": "user", "content": "tide"}]
    return made(log_of(lines), body(HI), body(*head), body(*head, *more))


def test_a_failure_of_which_only_the_beginning_is_known_is_taken_if_it_fits_what_the_log_says():
    sent = "Ambiguous match for old_str in /q/a.txt: at lines 1, 2."
    assert partly(sent, len(sent)) == [True, True, True]
    assert partly(sent, len(sent) + 1) == [True, False, False]
    assert partly("Match for old_str in /q/a.txt: at lines 1, 2.", 45) == [True, False, False]


def test_arguments_that_cannot_be_read_are_told_with_the_message_logged():
    def lines(words: str) -> list[bytes]:
        return [*BASE[:4], asked(6, "c1", ("a", "bash", {})), failed(7, "a", words, wasSyntaxError="true"), turn(8)]

    lead = "The arguments for the tool call 'bash' were not valid JSON. The arguments have been cleared. Arguments: "
    sent = body(HI, calls(("a", "bash", {})), tool("a", lead + '{"x. JSON parse error: cut off'))
    assert made(log_of(lines("cut off")), body(HI), sent) == [True, True]
    assert made(log_of(lines("cut ofF")), body(HI), sent) == [True, False]


LOST = "The execution of this tool, or a previous tool was interrupted."


def test_a_result_that_never_came_is_stood_for_in_the_order_of_the_calls():
    lines = [*BASE, result(7, "b"), start(8, "session.resume"), user(9, "well"), turn(10), answer(11, "c2", "yes")]
    read = sourced(tool("b"), "read", summary="read b")
    sent = body(HI, anew("a", "b"), tool("a", LOST), read, {"role": "user", "content": "<now>well"})
    assert made(log_of(lines), body(HI), sent) == [True, True]


def test_an_interruption_is_told_as_logged_in_the_run_that_logs_it_and_as_lost_later():
    words = {"message": "was interrupted", "code": "interrupted"}
    lines = [*BASE, result(7, "a"), start(8, "session.resume")]
    lines.append(event("tool.execution_complete", 9, {"toolCallId": "b", "success": False, "error": words}))
    lines += [
        user(10, "well"),
        turn(11),
        answer(12, "c2", "yes"),
        start(13, "session.resume"),
        user(14, "so"),
        turn(15),
    ]
    head = [HI, anew("a", "b"), sourced(tool("a"), "read", summary="read a")]
    said = {"role": "user", "content": "<now>well"}
    second = body(*head, sourced(tool("b", "was interrupted"), "read", summary="read b"), said)
    rest = [said, {"role": "assistant", "content": "yes"}, {"role": "user", "content": "<now>so"}]
    assert made(log_of(lines), body(HI), second, body(*head, tool("b", LOST), *rest)) == [True, True, True]


ONWARD = {"role": "user", "content": "Please continue from where you left off."}


def test_an_answer_cut_at_its_limit_is_taken_from_the_wire_until_the_run_ends():
    lines = [*BASE[:4], used(5, "c1", finishReason="length"), event("assistant.turn_end", 6, {}), turn(7)]
    lines += [answer(8, "c2", "", ("a",)), result(9, "a"), turn(10), answer(11, "c3", "whole")]
    lines += [start(12, "session.resume"), user(13, "well"), turn(14), answer(15, "c4", "x")]
    cut = {"content": "the tide ro", "role": "assistant", "refusal": None}
    second = [HI, cut, ONWARD]
    third = [*second, live("", ("a",)), tool("a")]
    later = [HI, anew("a"), sourced(tool("a"), "read", summary="read a"), {"role": "assistant", "content": "whole"}]
    bodies = [body(HI), body(*second), body(*third), body(*later, {"role": "user", "content": "<now>well"})]
    assert made(log_of(lines), *bodies) == [True] * 4
    other = [HI, {**cut, "content": "the tide rose"}, ONWARD, *third[3:]]
    assert made(log_of(lines), bodies[0], bodies[1], body(*other)) == [True, True, False]


def test_a_subagent_is_rebuilt_and_its_answer_has_it_as_its_source_later():
    task = ("t", "task", {"agent_type": "scout", "prompt": "look"})
    sub = {"agentId": "x1"}
    lines = [*BASE[:4], asked(5, "c1", task), event("user.message", 6, {"content": "look"}, **sub)]
    lines += [event("system.message", 7, {"content": "Look."}, **sub), turn(8, **sub), answer(9, "s1", "found", **sub)]
    lines += [event("session.model_change", 10, {"newModel": "oak"}, agentId="x2"), result(11, "t", "found"), turn(12)]
    lines += [answer(13, "c2", "done"), start(14, "session.resume"), user(15, "on"), turn(16), answer(17, "c3", "x")]
    log = log_of(lines)
    assert [p.lineage for p in copilot.requests(log)] == ["main", "sub:x1", "main", "main"]
    inner = json.loads(copilot.rebuild(log, copilot.requests(log)[1], Config(), Learned()).data)["messages"]
    assert inner == [{"role": "system", "content": "Look."}, {"role": "user", "content": "look"}]
    last = json.loads(copilot.rebuild(log, copilot.requests(log)[3], Config(), Learned()).data)["messages"]
    assert last[3][SOURCE] == {"kind": "subagent", "name": "scout", "summary": ""}
    assert [m.kind for m in copilot.markers(log)] == ["resume"]  # the subagent's own model is no switch
    assert copilot.requests(log)[2].data["model"] == "fern"


def test_what_the_program_says_in_the_models_place_is_no_call():
    own = {"content": "", "toolRequests": [{"toolCallId": "r", "name": "read_agent", "arguments": {"since": 0.0}}]}
    lines = [*BASE[:4], answer(5, "c1", "so"), event("system.notification", 6, {"content": "idle"})]
    lines += [event("assistant.message", 7, own), result(8, "r"), turn(9), answer(10, "c2", "x")]
    call = {"id": "r", "type": "function", "function": {"name": "read_agent", "arguments": '{"since":0.0}'}}
    sent = [HI, {"content": "so", "role": "assistant", "refusal": None}, {"role": "user", "content": "idle"}]
    sent += [{"role": "assistant", "content": None, "tool_calls": [call]}, sourced(tool("r"), "read_agent")]
    assert made(log_of(lines), body(HI), body(*sent)) == [True, True]


def test_an_attached_image_is_sent_as_logged():
    asset = {"assetId": "sha256:1", "mimeType": "image/png", "data": "iVBORw0KGgo="}
    file = [{"type": "file", "path": "/q/x.png", "assetId": "sha256:1"}]
    lines = [start(), event("session.binary_asset", 30, asset), user(3, "hi", attachments=file), *BASE[2:4]]
    texts = [{"type": "text", "text": "<now>hi"}, {"type": "text", "text": "Image file at path /q/x.png"}]
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}
    assert made(log_of(lines), body({"role": "user", "content": [*texts, image]})) == [True]
    lines[1] = event("session.binary_asset", 30, {**asset, "data": "iVBORw0KGgp="})
    assert made(log_of(lines), body({"role": "user", "content": [*texts, image]})) == [False]


def test_the_effort_is_the_logged_one():
    change = {"previousModel": "fern", "newModel": "fern", "previousReasoningEffort": "high", "reasoningEffort": "low"}
    lines = [start(reasoningEffort="high"), *BASE[1:5], answer(6, "c1", "so"), event("session.model_change", 7, change)]
    log = log_of([*lines, user(8, "on"), turn(9), answer(10, "c2", "x")])
    said = [HI, {"content": "so", "role": "assistant", "refusal": None}, {"role": "user", "content": "<now>on"}]
    assert made(log, body(HI, reasoning_effort="high"), body(*said, reasoning_effort="low")) == [True, True]
    assert made(log, body(HI, reasoning_effort="high"), body(*said, reasoning_effort="high")) == [True, False]
    (marker,) = copilot.markers(log)
    assert marker.where == "the effort of reasoning was changed: «high» to «low»"


@pytest.mark.parametrize(
    ("read", "written"),
    [
        ("1.0", "1.0"),
        ("-0.0", "-0.0"),
        ("1e5", "100000.0"),
        ("1e-5", "0.00001"),
        ("1.5e-5", "0.000015"),
        ("1e-6", "1e-6"),
        ("1e16", "1e+16"),
        ("18446744073709551615", "18446744073709551615"),
        ("18446744073709551616", "1.8446744073709552e+19"),
        ('{"b":1,"10":2,"2":"é\\u2028\\u0007/"}', '{"b":1,"10":2,"2":"é\u2028\\u0007/"}'),
    ],
)
def test_values_are_spelt_as_the_program_spells_them(read: str, written: str):
    assert spelled(json_text.loads(read)) == written
