"""Rules of the chain on transcripts made line by line (claude_code.md §3, §4.2, §5)."""

from __future__ import annotations

import json

import pytest

from ctxscope.agents import claude_code
from ctxscope.model import Learned
from tests.claude_code_cases import (
    MARK,
    Lines,
    asked,
    beside,
    last_messages,
    log_of,
    messages_of,
    parallel,
    points,
    reminder,
    result,
    said,
    served,
    simple,
    spelled,
    text,
    use,
)


def test_results_of_parallel_calls_are_sent_in_the_order_they_came():
    lines = parallel()
    assert last_messages(lines) == [
        asked("Sort both trays."),
        said(text("Both at once."), use("t1", tray=1), use("t2", tray=2)),
        asked([result("t2", "rye"), result("t1", "oats")]),
    ]


def test_lines_of_one_answer_are_one_call_and_its_usage_counts_once():
    lines = parallel()
    lines.rows[1]["message"]["usage"]["output_tokens"] = 1
    found = points(lines)
    assert [p.ids for p in found] == [{"m1", "req_m1", "t1", "t2"}, {"m2", "req_m2"}]
    assert [p.stored_usage.output for p in found] == [9, 9]
    assert [b.kind for b in found[0].blocks] == ["text", "tool_call", "tool_call"]


def test_results_between_the_lines_of_an_answer_stay_behind_it():
    """Tools may run while the answer still streams."""
    lines = Lines()
    lines.user("Go.")
    (one,) = lines.answer("m1", use("t1"))
    lines.result("t1", "oats")
    (two,) = lines.answer("m1", use("t2"), parent=one)
    lines.result("t2", "rye", parent=two)
    lines.answer("m2", text("Done."))
    assert last_messages(lines)[1:] == [
        said(use("t1"), use("t2")),
        asked([result("t1", "oats"), result("t2", "rye")]),
    ]


def test_results_stand_before_what_else_a_user_line_holds():
    lines = Lines()
    lines.user("Go.")
    lines.answer("m1", use("t1"))
    lines.user([text("Stop soon."), result("t1", "oats")])
    lines.answer("m2", text("Done."))
    assert last_messages(lines)[2] == asked([result("t1", "oats"), text("Stop soon.")])


def test_no_call_is_out_while_a_result_is_missing():
    lines = Lines()
    lines.user("Go.")
    _, two = lines.answer("m1", use("t1"), use("t2"))
    lines.result("t2", "rye", parent=two)
    assert [p.answer is None for p in points(lines)] == [False]
    lines.result("t1", "oats", parent=lines.rows[1]["uuid"])
    assert [p.answer is None for p in points(lines)] == [False, True]


def test_errors_the_client_tells_of_are_no_calls_and_not_sent():
    lines = Lines()
    prompt = lines.user("Go.")
    failed = {"id": "x1", "role": "assistant", "model": "<synthetic>", "content": [text("API Error: 529")]}
    lines.add("assistant", message=failed, isApiErrorMessage=True)
    (waiting,) = points(lines)
    assert (waiting.key, waiting.data.get("dead")) == (f"after:{prompt}", True)
    assert claude_code.error_line(lines.log, waiting) == "API Error: 529"
    lines.user("Again.")
    lines.answer("m1", text("Here."))
    assert last_messages(lines) == [asked([text("Go.\n"), text("Again.")])]


@pytest.mark.parametrize(("version", "words"), [("2.1.112", "Go.\n"), ("2.0.30", "Go.")])
def test_texts_that_follow_one_another_are_set_apart_since_2_1(version: str, words: str):
    lines = Lines(version=version)
    lines.user("Go.")
    lines.user("And hurry.")
    lines.answer("m1", text("Yes."))
    assert last_messages(lines) == [asked([text(words), text("And hurry.")])]


def compacted() -> tuple[Lines, str]:
    lines = Lines()
    lines.user("One.")
    lines.answer("m1", text("First."))
    lines.user("Two.")
    (kept,) = lines.answer("m2", text("Second."))
    prompt = lines.user("Three.")
    lines.compact([kept, prompt])
    return lines, prompt


def test_preserved_lines_are_read_behind_the_summary():
    lines, _ = compacted()
    lines.attach("date", date="2026-02-01")
    lines.answer("m3", text("Third."))
    wanted = [asked("This session goes on."), said(text("Second.")), asked([text("Three.")])]
    assert last_messages(lines) == wanted


def test_a_line_that_goes_on_from_a_preserved_one_has_the_summary_before_it():
    """Its chain never meets the boundary."""
    lines, prompt = compacted()
    lines.answer("m3", text("Third."), parent=prompt)
    wanted = [asked("This session goes on."), said(text("Second.")), asked([text("Three.")])]
    assert last_messages(lines) == wanted
    assert [str(e.place) for e in points(lines)[-1].context] == ["line 6", "line 7", "line 4", "line 5"]


def test_a_compaction_is_marked_with_what_it_dropped_and_the_call_behind_it():
    lines, _ = compacted()
    (third,) = lines.answer("m3", text("Third."))
    log = lines.log
    (marker,) = claude_code.markers(log)
    assert (marker.kind, marker.point, marker.before_tokens, marker.after_tokens) == ("compaction", third, 900, 90)
    assert [str(p) for p in marker.dropped] == ["line 1", "line 2", "line 3"]
    assert marker.where == "auto compaction replaced 3 entries by a summary, 2 were kept"


def test_a_move_back_in_the_chain_is_a_branch():
    lines = Lines()
    lines.user("One.")
    (first,) = lines.answer("m1", text("First."))
    lines.user("Two.")
    lines.answer("m2", text("Second."))
    prompt = lines.user("Two again.", parent=first)
    (third,) = lines.answer("m3", text("Third."))
    log = lines.log
    assert [p.branched_from for p in claude_code.requests(log)] == [None, None, first]
    (marker,) = claude_code.markers(log)
    assert (marker.kind, marker.point, str(marker.place)) == ("rewind", third, "line 5")
    assert lines.rows[4]["uuid"] == prompt


def test_another_model_is_marked_and_its_thinking_is_not_demanded():
    lines = Lines()
    lines.user("One.")
    thought = {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}
    lines.answer("m1", thought, text("First."))
    lines.model = "claude-seed-2"
    lines.user("Two.")
    lines.answer("m2", text("Second."))
    log = lines.log
    point = claude_code.requests(log)[-1]
    assert [m.kind for m in claude_code.markers(log)] == ["model_switch"]
    for sent in (said(text("First.")), said(thought, text("First."))):
        body = served([asked("One."), sent, asked("Two.")], model="claude-seed-2")
        assert beside(log, point, body).data == body.data
    other = served([asked("One."), said(text("First!")), asked("Two.")], model="claude-seed-2")
    assert beside(log, point, other).data != other.data


def test_results_a_micro_compaction_cleared_are_sent_as_cleared():
    lines = simple()
    lines.add(
        "system",
        subtype="microcompact_boundary",
        microcompactMetadata={"compactedToolIds": ["t1"], "preTokens": 90, "tokensSaved": 30},
    )
    lines.user("Next.")
    lines.answer("m3", text("Yes."))
    log = lines.log
    point = claude_code.requests(log)[-1]
    cleared = result("t1", "[Old tool result content cleared]")
    body = served(
        [
            asked("Sort the tray."),
            said(use("t1", tray=1)),
            asked([cleared]),
            said(text("Oats and rye.")),
            asked("Next."),
        ]
    )
    assert beside(log, point, body).data == body.data
    (marker,) = claude_code.markers(log)
    assert (marker.kind, marker.before_tokens, marker.after_tokens, [str(p) for p in marker.dropped]) == (
        "micro",
        90,
        60,
        ["line 3"],
    )


def test_a_hook_context_behind_a_compaction_is_logged_and_from_outside():
    lines = parallel()
    lines.add("system", subtype="stop_hook_summary", hookCount=1)
    lines.compact()
    lines.attach(
        "hook_additional_context",
        hookName="SessionStart:compact",
        hookEvent="SessionStart",
        content=["Tray three is wet."],
    )
    lines.user("Next.")
    lines.answer("m3", text("Yes."))
    log = lines.log
    compaction, restore = claude_code.markers(log)
    assert "hooks around it: SessionStart:compact, Stop" in compaction.where
    assert (restore.kind, str(restore.place)) == ("restore", "line 11")
    told = reminder("SessionStart:compact hook additional context: Tray three is wet.")
    body = served([asked([text("This session goes on.\n"), told, text("Next.")])])
    made = beside(log, claude_code.requests(log)[-1], body)
    assert made.data == body.data
    assert [(p.data, p.provenance) for p in made.pieces if p.external] == [(b"Tray three is wet.", "logged")]


HOOKS = spelled({"hooks": {"PreCompact": [{"matcher": "auto", "hooks": [{"type": "command", "command": "x"}]}]}})


@pytest.mark.parametrize(
    ("trigger", "hooked", "told"), [("auto", False, True), ("manual", False, False), ("auto", True, False)]
)
def test_a_configured_hook_without_a_record_is_told(trigger: str, hooked: bool, told: bool):
    lines = parallel()
    if hooked:
        lines.attach("hook_success", hookName="PreCompact", hookEvent="PreCompact", content="")
    lines.compact(trigger=trigger)
    log = log_of(lines.lines, settings=HOOKS)
    assert any("no record that one ran" in n for n in claude_code.notices(log)) is told
    assert claude_code.config(log).values["hooks"] == ("PreCompact",)


def test_a_message_put_into_a_turn_is_a_steer():
    lines = simple(
        {
            "kind": "attachment",
            "attachment": {"type": "queued_command", "prompt": "Skip tray two.", "commandMode": "prompt"},
        }
    )
    assert [m.kind for m in claude_code.markers(lines.log)] == ["steer"]


def agent_lines(model: str = "claude-seed-1") -> Lines:
    own = Lines(tag="b", model=model)
    own.user("Count.", isSidechain=True, agentId="ab12")
    own.answer("s1", text("Seven."), isSidechain=True, agentId="ab12")
    return own


def test_a_subagent_is_a_lineage_in_the_turn_that_started_it():
    lines = Lines()
    lines.user("One.")
    lines.answer("m1", text("First."))
    lines.user("Count them.")
    lines.answer("m2", use("t9"))
    lines.user([result("t9", "Seven.")], toolUseResult={"agentId": "ab12"})
    lines.answer("m3", text("Seven."))
    log = log_of(lines.lines, {"agent:ab12": agent_lines().lines})
    found = {p.lineage: p for p in claude_code.requests(log)}
    sub = found["sub:ab12"]
    assert (sub.kind, sub.turn, sub.place.log, found["main"].turn) == ("subagent", 2, 1, 2)
    facts = {"meta:ab12": [spelled({"toolUseId": "t7"})], "agent:cd34": agent_lines().lines}
    outer = Lines(tag="c")
    outer.user("Hand on.", isSidechain=True, agentId="cd34")
    outer.answer("o1", use("t7"), isSidechain=True, agentId="cd34")
    facts = {"meta:ab12": [spelled({"toolUseId": "t7"})], "agent:cd34": outer.lines, "agent:ab12": agent_lines().lines}
    nested = claude_code.requests(log_of(lines.lines, facts))
    assert {p.lineage for p in nested} == {"main", "sub:cd34", "sub:cd34/ab12"}


def test_a_sidechain_inside_the_transcript_is_a_subagent_too():
    lines = Lines(version="1.0.98")
    lines.user("One.")
    (first,) = lines.answer("m1", use("t1"))
    root = lines.user("Count.", None, isSidechain=True)
    lines.answer("s1", text("Seven."), isSidechain=True)
    lines.result("t1", "Seven.", parent=first)
    lines.answer("m2", text("Seven."))
    log = lines.log
    assert [(p.lineage, p.turn) for p in claude_code.requests(log)] == [
        ("main", 1),
        (f"sub:{root[:8]}", 1),
        ("main", 1),
    ]
    assert messages_of(log, claude_code.requests(log)[1]) == [asked([{**text("Count."), "cache_control": MARK}])]


def test_versions_that_store_placeholders_leave_output_unknown():
    lines = Lines(version="2.1.12")
    lines.user("One.")
    lines.answer("m1", text("First."))
    lines.rows[1]["message"] |= {"stop_reason": None}
    (point,) = points(lines)
    assert (point.stored_usage.input, point.stored_usage.output) == (4, None)


def test_without_a_recording_the_rule_gives_the_conversation():
    lines = parallel()
    log = lines.log
    made = claude_code.rebuild(log, claude_code.requests(log)[-1], claude_code.config(log), Learned())
    assert made is not None
    assert list(json.loads(made.data)) == ["model", "messages", "stream"]
    assert made.notices
