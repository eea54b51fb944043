"""Hermes rows no request can carry, inputs without an answer, merged sidecars, old screenshots, branches and subagents."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ctxscope.agents import hermes
from ctxscope.analysis.findings import findings_of
from ctxscope.model import Learned
from tests.hermes_rows import START, Written, as_if, call

SUMMARY = "[CONTEXT COMPACTION — REFERENCE ONLY] Earlier turns were compacted. It was about digging."
TASKS = "[Your active task list was preserved across context compression]\n- dig"
APIS = ("openai-chat", "anthropic-messages", "openai-responses")


@pytest.mark.parametrize("role", ["user", "assistant", "tool"])
def test_a_blob_is_told_and_what_holds_it_is_not_rebuilt(role: str) -> None:
    log = Written()
    log.user(b"one" if role == "user" else "one")
    log.says(b"two \xff" if role == "assistant" else "two", tool_calls=call("a"))
    log.tool("a", b"three" if role == "tool" else "three")
    log.says("four")
    log.user("five")
    number = ["user", "assistant", "tool"].index(role) + 1
    (told,) = hermes.notices(log.log)
    assert told == f"row {number}: a BLOB in content, which no request can carry: no call with it is rebuilt"
    assert log.keys() == ["2", "4", "after:5"]
    for at, point in enumerate(log.points):
        holds = any(e.data.get("id") == number for e in point.context)
        for api in APIS:
            made = hermes.rebuild(log.log, point, hermes.config(log.log), Learned(choice={"api": api}))
            assert (made is None) is holds, at
        hermes.estimates(log.log, point), hermes.naive(log.log, point), hermes.sidecars(log.log, point)
    if role == "assistant":
        assert [b.text for b in log.points[0].blocks or () if b.kind == "text"] == ["two �"]
    hermes.markers(log.log)
    log.update(number, content="mended")
    assert hermes.notices(log.log) == ()
    assert log.rebuilt() is not None


def test_columns_read_as_json_may_be_blobs() -> None:
    log = Written()
    log.user("one")
    log.says("", tool_calls=call("a"))
    log.update(2, tool_calls=json.dumps(call("a")).encode())
    log.tool("a")
    assert hermes.notices(log.log) == ()
    assert log.messages()[1]["tool_calls"][0]["id"] == "a"


def test_users_are_merged_as_logged_and_lose_their_sidecars() -> None:
    log = Written()
    log.user("zero", api_content="zero\n\nRECALL")
    log.says("so")
    log.user("one", api_content="one\n\nRECALL")
    log.user("two")
    assert [m["content"] for m in log.messages()] == ["zero\n\nRECALL", "so", "one\n\ntwo"]
    log.says("", reasoning="hm")
    log.user("three", api_content="three\n\nRECALL")
    assert log.messages()[-1]["content"] == "one\n\ntwo\n\nthree\n\nRECALL"  # merged as sent, after the thinker went


def test_assistants_are_merged_as_logged_unless_the_second_says_nothing() -> None:
    log = Written()
    log.user("dig")
    log.says("first", api_content="FIRST")
    log.says("second", api_content="SECOND")
    log.user("more")
    log.says("third", api_content="THIRD")
    log.says("", tool_calls=call("a"))
    log.tool("a")
    assert [m["content"] for m in log.messages() if m["role"] == "assistant"] == ["first\nsecond", "THIRD"]


def picture(*texts: str, pictures: int = 1) -> list[dict[str, Any]]:
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}}
    return [*({"type": "text", "text": t} for t in texts), *[image] * pictures]


def test_only_the_newest_three_results_keep_their_pictures_on_anthropic() -> None:
    log = Written()
    log.user("look")
    for name in "abcde":
        log.says("", tool_calls=call(name))
        content = "plain" if name == "d" else picture(name, pictures=2)
        log.tool(name, content if isinstance(content, str) else "\x00json:" + json.dumps(content))
    found = [b for m in log.messages(as_if("anthropic-messages")) for b in m["content"] if isinstance(b, dict)]
    inner = {b["tool_use_id"]: b["content"] for b in found if b.get("type") == "tool_result"}
    removed = {"type": "text", "text": "[screenshot removed to save context]"}
    assert [[p["type"] for p in inner[n]] for n in "bce"] == [["text", "image", "image"]] * 3
    assert inner["a"] == [{"type": "text", "text": "a"}, removed, removed]
    assert inner["d"] == "plain"


def ended(log: Written, *, error: bool = True) -> None:
    if error:
        log.line("2023-11-14 22:13:22,000 ERROR [plot] agent.loop: the provider said 500")
        log.line("2023-11-14 22:13:23,000 ERROR agent.loop: giving up")
    log.line(
        "2023-11-14 22:13:24,000 INFO [plot] agent.loop: Turn ended: reason=error model=m last_msg_role=user "
        "response_len=0 session=plot"
    )


def test_an_input_at_the_end_is_dead_once_the_session_is_over_and_not_before() -> None:
    log = Written()
    log.user("one")
    assert [p.data["dead"] for p in log.points] == [False]
    log.session = {**log.session, "ended_at": START + 9}
    log.prompt("You help with gardens.")
    assert [(p.key, p.data["dead"]) for p in log.points] == [("after:messages:1", True)]
    assert hermes.error_line(log.log, log.points[0]) is None
    log.session = {**log.session, "ended_at": None}
    log.prompt("You help with gardens.")
    assert [p.data["dead"] for p in log.points] == [False]


def test_an_input_whose_turn_ended_in_an_error_is_dead_with_the_agents_own_line() -> None:
    log = Written()
    log.turn(fresh=True)
    log.user("one")
    ended(log, error=False)
    assert [p.data["dead"] for p in log.points] == [False]
    log = Written()
    log.turn(fresh=True)
    log.user("one")
    ended(log)
    (point,) = log.points
    assert point.data["dead"]
    assert hermes.error_line(log.log, point) == "the provider said 500"
    log.now += 9
    log.turn(fresh=False)
    log.user("two")
    log.says("done")
    log.line("2023-11-14 22:15:00,000 ERROR [other] agent.loop: not ours")
    dead, answered = log.points
    assert (dead.data["dead"], hermes.error_line(log.log, dead)) == (True, "the provider said 500")
    assert hermes.error_line(log.log, answered) is None
    (finding,) = findings_of([], [("plot", dead, hermes.error_line(log.log, dead))])
    assert (finding.code, finding.evidence) == ("CTX104", "session plot; the agent wrote «the provider said 500»")
    (finding,) = findings_of([], [("plot", dead, None)])
    assert finding.evidence == "session plot"


def test_a_task_list_put_back_is_a_restore_and_carried_on_it_is_none() -> None:
    log = Written()
    log.user("one")
    log.says("two")
    log.update(1, 2, active=0, compacted=1)
    log.row("user", SUMMARY)
    log.row("user", TASKS)
    log.row("user", "one", ts=START + 1)
    log.now = START + 9
    log.user("three")
    log.says("four")
    (compaction, restore) = hermes.markers(log.log)
    assert (compaction.kind, restore.kind, restore.point, str(restore.place)) == (
        "compaction",
        "restore",
        "messages:7",
        "row 4",
    )
    log.update(3, 4, 5, 6, 7, active=0, compacted=1)
    log.row("user", f"{SUMMARY} And more.")
    log.row("user", TASKS, ts=START + 4)
    log.user("five")
    assert [m.kind for m in hermes.markers(log.log)] == ["compaction", "restore", "compaction"]


def test_a_branch_left_the_last_answer_it_took_along() -> None:
    log = Written(parent="trunk", model_config='{"_branched_from": "trunk"}', started_at=START + 50)
    log.user("one", source="parent_messages")
    log.says("two", source="parent_messages")
    log.user("three", source="parent_messages")
    log.says("four", source="parent_messages")
    log.row("user", "one", ts=START + 1)
    log.row("assistant", "two", ts=START + 2)
    log.now = START + 60
    log.user("other")
    assert [(p.key, p.branched_from) for p in log.points] == [("after:messages:7", "messages:2")]
    log.says("done")
    log.user("more")
    assert [p.branched_from for p in log.points] == ["messages:2", None]


def test_a_rotated_session_is_no_branch() -> None:
    log = Written(parent="earlier", started_at=START + 9)
    log.user("one", source="parent_messages")
    log.says("two", source="parent_messages")
    log.row("assistant", "two", ts=START + 2)
    log.now = START + 20
    log.user("three")
    assert [p.branched_from for p in log.points] == [None]


def test_a_subagents_calls_are_a_lineage_of_their_own_whenever_its_notes_are_read() -> None:
    log = Written()
    log.user("one")
    log.says("two")
    assert [(p.kind, p.lineage) for p in log.points] == [("main", "main")]
    log.session = {**log.session, "model_config": '{"_delegate_from": "other"}'}
    log.prompt("You help with gardens.")
    assert [(p.kind, p.lineage) for p in log.points] == [("subagent", "sub:plot")]
