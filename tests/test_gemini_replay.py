"""The Gemini CLI's chat as it is read: which calls it tells of, what they were made of, and what rewrote it."""

from __future__ import annotations

import json

import pytest

from ctxscope.agents import gemini
from ctxscope.model import Config, Place, Record, Usage
from tests.gemini_cases import CONTEXT, Chat, call, contents, log_of, result, said, sent_result

SYNTHETIC = "skip_thought_signature_validator"
START = "u:<session_context>"


def looked() -> Chat:
    """A turn with a tool call and its answer."""
    chat = Chat().process()
    chat.user("u1", "look")
    chat.answer("g1", "I look.", ("c1", {"b": 1, "a": 2}))
    chat.result("r1", "c1")
    chat.answer("g2", "Seen.")
    return chat


def restored(*more: dict) -> list[dict]:
    """The same turn as a resumed process has it."""
    return [
        CONTEXT,
        {"id": "u1", "type": "user", "content": [{"text": "look"}]},
        {"id": "g1", "type": "gemini", "content": [{"text": "I look."}, call("c1")]},
        {"id": "g1_response", "type": "user", "content": [result("c1")]},
        {"id": "r1", "type": "user", "content": [result("c1")]},
        {"id": "g2", "type": "gemini", "content": [{"text": "Seen."}]},
        *more,
    ]


def test_each_new_answer_is_a_call_made_of_what_stood_before_it() -> None:
    log = looked().log()
    first, second = gemini.requests(log)
    assert said(log, first) == [f"{START} look"]
    assert said(log, second) == [f"{START} look", "m:I look. call(c1)", "u:result(c1)"]
    assert (first.ids, first.turn, first.kind, first.api) == ({"c1"}, 1, "main", "gemini")
    assert [(b.kind, b.text, b.id) for b in first.blocks] == [
        ("text", "I look.", ""),
        ("tool_call", '{"a":2,"b":1}', "c1"),
    ]
    assert first.stored_usage == Usage(60, 30, None, 9, 2)
    assert [e.place.number for e in second.context] == [2, 3, 5, 6]


def test_a_message_that_waits_is_an_open_call() -> None:
    chat = looked()
    chat.user("u2", "again")
    last = gemini.requests(chat.log())[-1]
    assert (last.answer, last.turn, last.key) == (None, 2, "after:session:8")
    assert gemini.endpoint(chat.log(), last).model == "m-1"


def test_neighbours_of_one_role_are_one_content() -> None:
    chat = Chat().process()
    chat.user("u1", "editor: a.py")
    chat.user("u2", "look")
    chat.answer("g1", "ok")
    log = chat.log()
    (point,) = gemini.requests(log)
    assert said(log, point) == [f"{START} editor: a.py look"]
    assert point.turn == 1


def test_a_resumed_history_is_sent_as_it_is_logged_with_results_twice() -> None:
    chat = looked()
    chat.resumed(restored())
    chat.user("u2", "again")
    chat.answer("g3", "Yes.")
    log = chat.log()
    last = gemini.requests(log)[-1]
    assert said(log, last) == [
        f"{START} look",
        "m:I look. call(c1)",
        "u:result(c1) result(c1)",
        "m:Seen.",
        "u:again",
    ]
    (marker,) = gemini.markers(log)
    assert (marker.kind, marker.point) == ("resume", last.key)
    assert "1 tool result is sent twice" in marker.where
    assert any("more than once" in notice for notice in gemini.notices(log))


def test_a_call_whose_thought_is_left_out_gets_the_stand_in_and_others_only_in_the_running_loop() -> None:
    chat = Chat().process()
    chat.resumed(
        [
            CONTEXT,
            {"id": "u1", "type": "user", "content": [{"text": "one"}]},
            {"id": "g1", "type": "gemini", "content": [{"text": "hm", "thought": True}, call("c1"), call("c2")]},
            {"id": "r1", "type": "user", "content": [result("c1"), result("c2")]},
            {"id": "g2", "type": "gemini", "content": [call("c3")]},
            {"id": "r2", "type": "user", "content": [result("c3")]},
        ]
    )
    chat.answer("g3", "done")
    chat.user("u2", "two")
    chat.answer("g4", "ok")
    log = chat.log()
    running, later = gemini.requests(log)
    signed = {
        p["functionCall"]["id"]: p.get("thoughtSignature")
        for _, parts in contents(log, running)
        for p in parts
        if "functionCall" in p
    }
    assert signed == {"c1": SYNTHETIC, "c2": None, "c3": SYNTHETIC}
    after = [p for _, parts in contents(log, later) for p in parts if "functionCall" in p]
    assert [p.get("thoughtSignature") for p in after] == [SYNTHETIC, None, None]


def test_a_rewritten_history_that_has_signatures_is_believed() -> None:
    chat = looked()
    chat.resumed(
        [
            CONTEXT,
            {"id": "n1", "type": "user", "content": [{"text": "<state_snapshot>short</state_snapshot>"}]},
            {"id": "n2", "type": "gemini", "content": [{"text": "Got it. Thanks for the additional context!"}]},
            {"id": "n3", "type": "user", "content": [{"text": "look"}]},
            {"id": "n4", "type": "gemini", "content": [call("c9", "c2ln")]},
        ]
    )
    chat.result("r9", "c9")
    chat.answer("g9", "ok")
    log = chat.log()
    last = gemini.requests(log)[-1]
    assert contents(log, last)[3][1][0]["thoughtSignature"] == "c2ln"
    (marker,) = gemini.markers(log)
    assert (marker.kind, marker.before_tokens, marker.point) == ("compaction", 90, last.key)
    assert [p.number for p in marker.dropped] == [3, 5]


def test_a_session_resumed_after_a_compression_is_no_second_one() -> None:
    chat = looked()
    summed = [
        CONTEXT,
        {"id": "n1", "type": "user", "content": [{"text": "<state_snapshot>short</state_snapshot>"}]},
        {"id": "n2", "type": "gemini", "content": [{"text": "Got it. Thanks for the additional context!"}]},
    ]
    chat.resumed(summed)
    chat.user("u2", "next")
    chat.answer("g3", "ok")
    chat.process()
    chat.resumed([*summed, {"id": "u2", "type": "user", "content": [{"text": "next"}]}])
    chat.user("u3", "more")
    chat.answer("g4", "ok")
    log = chat.log()
    assert [m.kind for m in gemini.markers(log)] == ["compaction", "resume"]
    assert said(log, gemini.requests(log)[-1])[-1] == "u:next more"


def test_a_failed_message_that_was_taken_back_is_a_dead_call() -> None:
    chat = looked()
    chat.user("u2", "fails")
    chat.messages([CONTEXT, *restored()[1:3], *restored()[4:]])
    chat.user("u3", "works")
    chat.answer("g3", "ok")
    log = chat.log()
    dead, last = gemini.requests(log)[-2:]
    assert (dead.data["dead"], dead.answer, dead.key) == (True, None, "after:session:8")
    assert "u:fails" in said(log, dead)[-1]
    assert said(log, last)[-1] == "u:works"
    assert [m.kind for m in gemini.markers(log)] == ["rewind"]


def test_a_rewind_drops_a_message_and_all_behind_it() -> None:
    chat = looked()
    chat.rows.append({"$rewindTo": "r1"})
    chat.user("u2", "else")
    chat.answer("g3", "ok")
    log = chat.log()
    last = gemini.requests(log)[-1]
    # What is left ends with a call that never got its result.
    assert said(log, last) == [f"{START} look", "m:I look. call(c1)", "u:else"]
    assert [(m.kind, [p.number for p in m.dropped]) for m in gemini.markers(log)] == [("rewind", [6, 7])]


def test_an_unanswered_tool_result_is_closed_before_the_user_goes_on() -> None:
    chat = Chat().process()
    chat.user("u1", "look")
    chat.answer("g1", "", ("c1", {}))
    chat.result("r1", "c1")
    chat.user("u2", "stop that")
    chat.answer("g2", "ok")
    log = chat.log()
    first, dead, last = gemini.requests(log)
    assert dead.data["dead"] is True
    assert said(log, last)[2:] == [
        "u:result(c1)",
        "m:[The previous response was interrupted before it completed.]",
        "u:stop that",
    ]
    assert (first.turn, last.turn) == (1, 2)


def test_files_that_a_tool_hands_over_follow_as_a_message() -> None:
    chat = Chat().process()
    chat.user("u1", "look")
    chat.answer("g1", "", ("c1", {}))
    handed = result("c1")
    handed["functionResponse"]["response"]["__binary_injection__"] = [{"text": "never sent"}]
    chat.user("r1", handed)
    thought = {"text": "Binary content received. Proceeding with analysis.", "thought": True}
    chat.add(id="b1", timestamp=chat.now(), type="gemini", content=[thought], thoughts=[], tokens=None)
    image = {"inlineData": {"mimeType": "image/png", "data": "aGk="}}
    chat.add(id="i1", timestamp=chat.now(), type="info", content=[image])
    chat.answer("g2", "a dot")
    log = chat.log()
    point = gemini.requests(log)[-1]
    assert len(gemini.requests(log)) == 2
    assert contents(log, point)[-1] == (
        "user",
        [sent_result("c1"), {"inlineData": {"data": "aGk=", "mimeType": "image/png"}}],
    )


def test_what_only_the_user_sees_is_not_sent() -> None:
    chat = Chat().process()
    for kind in ("info", "error", "warning"):
        chat.add(id=f"x-{kind}", timestamp=chat.now(), type=kind, content="only shown")
    chat.user("u1", "look")
    chat.answer("g1", "ok")
    log = chat.log()
    assert said(log, gemini.requests(log)[0]) == [f"{START} look"]


def test_a_history_written_anew_message_by_message_is_no_call() -> None:
    chat = looked()
    for n, message in enumerate(restored()[1:3]):
        chat.add(**{**message, "id": f"again{n}", "timestamp": chat.now()})
    chat.user("u2", "next")
    chat.answer("g3", "ok")
    points = gemini.requests(chat.log())
    assert [p.turn for p in points] == [1, 1, 2]
    assert all(p.answer is not None for p in points)


def test_a_model_switch_is_a_marker() -> None:
    chat = looked()
    chat.user("u2", "again")
    chat.answer("g3", "ok", model="m-2")
    (marker,) = gemini.markers(chat.log())
    assert (marker.kind, marker.where, marker.point) == (
        "model_switch",
        "m-1 to m-2",
        gemini.requests(chat.log())[-1].key,
    )


def test_subagents_are_lineages_of_the_turn_that_started_them() -> None:
    main = Chat().process()
    main.user("u1", "look")
    main.answer("g1", "", ("c1", {}))
    sub = Chat(seconds=main.seconds)
    sub.add(sessionId="a-1", projectHash="p", startTime=sub.now(), kind="subagent")
    sub.user("su1", "task")
    sub.answer("sg1", "", ("s1", {}))
    sub.result("sr1", "s1")
    sub.answer("sg2", "done")
    main.seconds = sub.seconds
    main.result("r1", "c1")
    main.answer("g2", "Seen.")
    log = log_of(main.rows, **{"a-1": sub.rows})
    points = gemini.requests(log)
    assert [(p.kind, p.lineage, p.turn) for p in points] == [
        ("main", "main", 1),
        ("subagent", "sub:a-1", 1),
        ("subagent", "sub:a-1", 1),
        ("main", "main", 1),
    ]
    assert said(log, points[2]) == ["u:task", "m:call(s1)", "u:result(s1)"]
    assert [p.order for p in points] == sorted(p.order for p in points)


def test_naive_counts_the_messages_as_logged() -> None:
    chat = Chat().process()
    chat.user("u1", "é" * 40)
    chat.answer("g1", "ok")
    log = chat.log()
    (point,) = gemini.requests(log)
    line = log.entries[2].raw.decode()
    assert gemini.naive(log, point) == -(-(len(line) + len(_spelled(CONTEXT))) // 4)


def _spelled(message: dict) -> str:
    return json.dumps(message, ensure_ascii=False, separators=(",", ":"))


def test_config_takes_the_threshold_of_the_settings() -> None:
    log = looked().log()
    assert gemini.config(log) == Config(window=1_048_576, threshold=524_288, window_by="rule", threshold_by="rule")
    for entry in gemini.entries(
        Record("settings", "file", Place(0, "file"), b'{"model":{"compressionThreshold":0.25}}')
    ):
        log.add(entry)
    assert gemini.config(log).threshold == 262_144


@pytest.mark.parametrize("identity", ["look__c1", "c1"])
def test_an_id_without_the_tool_s_name_keeps_the_response_as_it_is_logged(identity: str) -> None:
    chat = Chat().process()
    chat.user("u1", "look")
    chat.answer("g1", "", ("c1", {}))
    response = {"id": identity, "name": "look", "response": {"output": "x"}}
    chat.user("r1", {"functionResponse": response})
    chat.answer("g2", "ok")
    log = chat.log()
    (part,) = contents(log, gemini.requests(log)[-1])[-1][1]
    order = ["name", "response", "id"] if identity != "c1" else ["id", "name", "response"]
    assert list(part["functionResponse"]) == order
