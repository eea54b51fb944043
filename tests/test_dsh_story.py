"""What an invented log of the harness implies: how a request is spelled, the surface, attempts."""

from __future__ import annotations

import json

import pytest

from ctxscope.agents import dsh
from ctxscope.model import Learned
from tests.dsh_cases import answer, begun, learned_from, read, rebuilt, sent, step, texts, three_turns
from tests.samples.dsh_form import SessionLog, body, said
from tests.samples.dsh_texts import PACKAGES, SYSTEM, TOOLS
from tests.samples.pi_form import Say, Think, Use

USE = Use("toolu_1", "sheet", '{"number": 1, "name": "caf\\u00e9"}')


def replace(log: SessionLog, first: int, last: int, text: str) -> int:
    return log.user(
        5.0, text, kind="compact-checkpoint", surfaceOp={"op": "replace", "startSeq": first, "endSeq": last}
    )


# --- requests --------------------------------------------------------------------------------------------------------


def test_a_body_is_spelled_as_the_harness_spells_it() -> None:
    log = begun()
    served = body([said("look")], SYSTEM, log.along(-1, 5), PACKAGES, tools=TOOLS)
    held = read(log)
    point = dsh.requests(held)[-1]
    made = rebuilt(held, point, learned_from(held, point, served))
    assert made.data.decode() == served
    assert (made.scope, made.notices) == ("body", ())
    borrowed = {(p.provenance, p.path) for p in made.pieces if p.provenance in ("learned", "echoed")}
    assert borrowed == {("echoed", "/dsh_plugin_packages")}


def test_arguments_are_parsed_and_spelled_anew_for_messages() -> None:
    log = begun()
    answer(log, Think("hm", "c2ln"), USE)
    log.tool(2.5, (1, 1), USE, "")
    step(log, 2)
    request = sent(read(log))
    assert request["messages"][1:] == [
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "hm", "signature": "c2ln"},
                {"type": "tool_use", "id": "toolu_1", "name": "sheet", "input": {"number": 1, "name": "café"}},
            ],
        },
        {
            "role": "user",
            "content": [
                {
                    "type": "tool_result",
                    "tool_use_id": "toolu_1",
                    "content": [{"type": "text", "text": ""}],
                    "is_error": False,
                }
            ],
        },
    ]


@pytest.mark.parametrize("version", [0, 3])
def test_chat_completions_carry_arguments_as_they_were_said(version: int) -> None:
    log = begun(version)
    answer(log, Think("hm", ""), USE)
    block = {"type": "tool-result", "toolCallId": "toolu_1", "content": [], "isError": False}
    message = {"role": "user", "source": {"kind": "tool"}, "content": [block], "id": "m"}
    log.event(2.5, "tool/result", {"turn": 1, "step": 1, "message": message}, surfaceOp="append")
    step(log, 2)
    request = sent(read(log))
    assert request["messages"][2:] == [
        {
            "role": "assistant",
            "content": "",
            "reasoning_content": "hm",
            "tool_calls": [
                {"id": "toolu_1", "type": "function", "function": {"name": "sheet", "arguments": USE.spelled}}
            ],
        },
        {"role": "tool", "tool_call_id": "toolu_1", "content": "(no output)"},
    ]
    names = "model messages stream stream_options thinking reasoning_effort tools max_tokens"
    assert list(request) == names.split()


def test_an_answer_without_content_is_logged_and_not_sent() -> None:
    log = begun(3)
    log.event(2.0, "assistant/message", {"message": {"role": "assistant", "content": []}}, surfaceOp="append")
    step(log, 2)
    assert [m["role"] for m in sent(read(log))["messages"]] == ["system", "user"]


def test_effort_off_says_so() -> None:
    for version in (3, 4):
        log = begun(version)
        log.records[-1]["data"]["header"]["config"]["reasoningEffort"] = "off"
        request = sent(read(log))
        assert "output_config" not in request
        assert "reasoning_effort" not in request
        assert request["thinking"] == {"type": "disabled"}


def test_a_later_prompt_stays_where_it_was_put() -> None:
    log = begun()
    log.system(1.1, "Now in Latin.")
    request = sent(read(log))
    assert request["system"] == SYSTEM
    assert texts(request) == ["u:look", "s:Now in Latin."]


# --- the surface -----------------------------------------------------------------------------------------------------


def test_what_is_replaced_is_found_by_position_not_by_number() -> None:
    log, (first, a, _) = three_turns()
    late = replace(log, first, first, "first, shortened")
    assert texts(sent(read(log))) == ["u:first, shortened", "a:one", "u:two"]
    replace(log, late, a, "both")  # from a higher number to a lower one: by position it is the first and the second
    assert late > a
    assert texts(sent(read(log))) == ["u:both|two"]


def test_v0_names_the_ends_of_a_replacement_otherwise() -> None:
    log, (first, a, _) = three_turns()
    log.user(5.0, "both", surfaceOp={"op": "replace", "start": first, "end": a})
    assert texts(sent(read(log))) == ["u:both|two"]


def test_a_replacement_of_what_is_not_there_voids_the_log() -> None:
    log, (first, a, _) = three_turns()
    replace(log, first, a, "both")
    replace(log, first, a, "again")
    held = read(log)
    assert dsh.rebuild(held, dsh.requests(held)[-1], dsh.config(held), Learned()) is None
    assert dsh.rebuild(held, dsh.requests(held)[0], dsh.config(held), Learned()) is not None
    assert any("replaces events that the model does not see there" in n for n in dsh.notices(held))


def test_earlier_requests_keep_what_they_saw() -> None:
    log, (first, a, _) = three_turns()
    before = rebuilt(read(log), dsh.requests(read(log))[0]).data
    replace(log, first, a, "both")
    held = read(log)
    assert rebuilt(held, dsh.requests(held)[0]).data == before


# --- attempts --------------------------------------------------------------------------------------------------------


def busy(log: SessionLog, number: int = 1, *, attempt: bool = True) -> int:
    """An attempt that failed, and the next one; gives where the log stands for it."""
    if attempt:
        finish = {"type": "chunk", "time": 0, "chunk": {"type": "finish", "reason": {"kind": "error"}}}
        log.event(1.5, "assistant/attempt", {"turn": 1, "step": 1, "stream": [finish]})
    failure = {"code": "overloaded_error", "status": 529, "requestId": "r"}
    data = {"retryId": "r", "retry": number, "maxRetries": 3, "delayMs": 1, "failure": failure}
    log.event(1.6, "llm/retry", data)
    return log.event(1.7, "llm/retry-started", {"retryId": "r", "retry": number})


def test_each_attempt_is_a_request_that_carries_more_of_the_log() -> None:
    log = begun()
    stood = [len(log.records) - 1, busy(log), busy(log, 2, attempt=False)]
    log.accepted(1.8, stood[2])
    answer(log)
    held = read(log)
    points = dsh.requests(held)
    assert [p.kind for p in points] == ["retry", "retry", "main"]
    assert [p.answer.kind for p in points] == ["assistant/attempt", "llm/retry", "assistant/message"]
    assert [f"seq:{n}" in p.ids for n, p in zip(stood, points, strict=True)] == [True, True, True]
    bodies = [json.loads(rebuilt(held, p).data) for p in points]
    carried = [b.pop("dsh_session_log") for b in bodies]
    assert [(c["afterSeq"], c["throughSeq"], len(c["events"])) for c in carried] == [(-1, n, n + 1) for n in stood]
    assert bodies[0] == bodies[1] == bodies[2]
    assert dsh.error_line(held, points[1]) == "overloaded_error 529"
    assert points[0].stop.state == "error"


def test_a_request_that_failed_for_good_keeps_its_last_attempt() -> None:
    log = begun()
    busy(log)
    finish = {"type": "chunk", "time": 0, "chunk": {"type": "finish", "reason": {"kind": "error"}}}
    log.event(1.8, "assistant/attempt", {"stream": [finish]})
    log.ended(1.9, 1, 1, whole=True)
    points = dsh.requests(read(log))
    assert [(p.kind, p.answer.kind, "dead" in p.data) for p in points] == [
        ("retry", "assistant/attempt", False),
        ("main", "assistant/attempt", False),
    ]


def test_a_step_that_ends_without_a_word_may_have_sent_nothing() -> None:
    log = begun()
    log.ended(1.9, 1, 1, whole=True)
    (point,) = dsh.requests(read(log))
    assert (point.answer, point.data["dead"]) == (None, True)


def test_a_request_under_way_waits_and_keeps_its_place_when_more_is_logged() -> None:
    log = begun()
    through = len(log.records) - 1
    (point,) = dsh.requests(read(log))
    assert (point.answer, point.blocks) == (None, None)
    assert f"seq:{through}" in point.ids
    log.accepted(1.2, through)
    log.event(1.3, "job/settled", {"jobId": "j"})
    (later,) = dsh.requests(read(log))
    assert (later.key, later.ids) == (point.key, point.ids)
    done = answer(log, Say("done"))
    (last,) = dsh.requests(read(log))
    assert last.ids == {*point.ids, log.records[done]["data"]["message"]["id"]}


def test_where_no_acceptance_says_where_the_log_stood_the_request_may() -> None:
    log = begun()
    log.event(1.2, "job/settled", {"jobId": "j"})  # came while the request was out
    served = body([said("look")], SYSTEM, log.along(-1, len(log.records) - 2), PACKAGES, tools=TOOLS)
    answer(log)
    held = read(log)
    (point,) = dsh.requests(held)
    learned = learned_from(held, point, served)
    made = rebuilt(held, point, learned)
    assert made.data.decode() == served
    assert learned.values["/dsh_session_log/throughSeq"].provenance == "echoed"
    nonsense = served.replace('"throughSeq":5', '"throughSeq":55')
    assert rebuilt(held, point, learned_from(held, point, nonsense)).data.decode() != nonsense


def test_a_place_an_acceptance_states_is_not_taken_from_the_wire() -> None:
    log = begun()
    through = len(log.records) - 1
    served = body([said("look")], SYSTEM, log.along(-1, through), PACKAGES, tools=TOOLS)
    log.accepted(1.2, through)
    answer(log)
    held = read(log)
    (point,) = dsh.requests(held)
    other = served.replace(f'"throughSeq":{through}', f'"throughSeq":{through - 1}')
    made = rebuilt(held, point, learned_from(held, point, other))
    assert made.data.decode() == served
    place = next(p for p in made.pieces if p.place and p.place.number == through + 3)
    assert (place.data, place.provenance) == (str(through).encode(), "logged")
