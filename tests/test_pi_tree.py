"""The tree of a pi session: contexts, branches, compactions, edits, and the markers they leave."""

from __future__ import annotations

from typing import Any

import pytest

from ctxscope.agents import Log, pi
from tests.pi_sessions import CHAT, Script, call, log_of, rebuilt, text


def kinds(log: Log) -> list[str]:
    return [m.kind for m in pi.markers(log)]


def said(body: dict[str, Any]) -> list[str]:
    """Role and text of each message, in short."""
    return [f"{m['role'][0]}:{' '.join(b.get('text', b['type']) for b in m['content'])}" for m in body["messages"]]


def begun() -> Script:
    script = Script().begin()
    script.system(preamble="help")
    return script


def test_each_answer_is_a_point_with_ids_usage_turn_and_stored_blocks() -> None:
    script = begun()
    script.user("look")
    script.assistant(
        {"type": "thinking", "thinking": "hm", "thinkingSignature": "sig"}, call("t1", b=1, a=2), stop="toolUse"
    )
    script.result("t1")
    script.assistant(text("done"), total=0)
    first, second = pi.requests(script.log())
    assert first.ids == {"r5", "t1"}
    assert [(b.kind, b.text, b.envelope, b.id) for b in first.blocks] == [
        ("thinking", "hm", "sig", ""),
        ("tool_call", '{"a":2,"b":1}', "", "t1"),
    ]
    assert (first.turn, first.lineage, first.stored_usage.input) == (1, "main", 100)
    assert (second.turn, second.stored_usage) == (1, None)
    assert [e.kind for e in second.context] == ["system", "user", "assistant", "toolResult"]


def test_a_message_still_waiting_is_an_open_point() -> None:
    script = begun()
    script.user("look")
    script.assistant(call("t1"), call("t2"), stop="toolUse")
    script.result("t1")
    assert pi.requests(script.log())[-1].answer is not None
    last = script.result("t2")
    point = pi.requests(script.log())[-1]
    assert (point.key, point.answer, point.turn, point.data["api"]) == (f"after:{last}", None, 1, "anthropic-messages")


def test_a_user_message_that_never_got_its_call_is_a_dead_point() -> None:
    script = begun()
    dead = script.user("lost")
    script.user("again")
    script.assistant(text("yes"))
    points = pi.requests(script.log())
    assert (points[0].key, points[0].data.get("dead")) == (f"after:{dead}", True)
    assert said(rebuilt(script.log())) == ["u:lost", "u:again"]


def test_user_messages_delivered_together_are_one_call() -> None:
    script = begun()
    script.user("one")
    script.seconds -= 2
    script.user("two")
    script.assistant(text("both"))
    assert [p.answer is None for p in pi.requests(script.log())] == [False]


def test_an_abort_before_the_request_is_no_point_and_one_after_it_is() -> None:
    script = begun()
    script.user("go")
    script.assistant(stop="aborted", responseId=None)
    script.user("on")
    script.assistant(text("half"), stop="aborted")
    script.user("more")
    script.assistant(text("ok"))
    log = script.log()
    assert [p.answer.data["message"]["stopReason"] for p in pi.requests(log) if p.answer] == ["aborted", "stop"]
    assert said(rebuilt(log)) == ["u:go", "u:on", "u:more"]


def test_branches_are_lineages_and_the_last_entry_is_on_main() -> None:
    script = begun()
    script.user("a")
    root = script.assistant(text("A"))
    script.user("b")
    script.assistant(text("B"))
    script.user("c", after=root)
    script.assistant(text("C"))
    script.add("branch_summary", after=root, fromId="x", summary="went\n")
    script.user("d")
    script.assistant(text("D"))
    script.add("label", targetId=root, label="here")
    log = script.log()
    assert [(p.lineage, p.branched_from) for p in pi.requests(log)] == [
        ("main", None),
        ("branch:1", None),
        ("branch:2", root),
        ("main", root),
    ]
    assert said(rebuilt(log)) == [
        "u:a",
        "a:A",
        "u:The following is a summary of a branch that this conversation came back from:\n\n<summary>\nwent\n</summary>",
        "u:d",
    ]
    assert kinds(log) == ["rewind", "rewind"]


def test_a_compaction_keeps_what_it_names_and_drops_the_rest() -> None:
    script = begun()
    script.user("old")
    script.assistant(text("Old"))
    kept = script.user("kept")
    script.assistant(text("Kept"))
    script.system((), preamble="patched")
    script.add(
        "compaction",
        summary="short",
        firstKeptEntryId=kept,
        tokensBefore=900,
        systemMessage={"role": "system", "content": "fresh"},
    )
    script.user("new")
    script.assistant(text("New"))
    log = script.log()
    body = rebuilt(log)
    assert said(body)[0].endswith("<summary>\nshort\n</summary>")
    assert said(body)[1:] == ["u:kept", "a:Kept", "u:new"]
    assert body["system"][0]["text"] == "fresh"
    (marker,) = pi.markers(log)
    assert (marker.kind, marker.before_tokens, [str(p) for p in marker.dropped]) == (
        "compaction",
        900,
        ["line 5", "line 6"],
    )
    assert marker.point == pi.requests(log)[-1].key
    assert [e.kind for e in pi.requests(log)[-1].context] == ["compaction", "user", "assistant", "user"]


def test_a_second_compaction_hides_the_first_and_may_keep_nothing() -> None:
    script = begun()
    first = script.user("old")
    script.assistant(text("Old"))
    script.add("compaction", summary="one", firstKeptEntryId=first, tokensBefore=1)
    script.user("mid")
    script.assistant(text("Mid"))
    own = f"{len(script.rows):08x}"
    script.add("compaction", summary="two", firstKeptEntryId=own, tokensBefore=2)
    script.user("new")
    script.assistant(text("New"))
    assert [m.rpartition("\n")[0].rpartition("\n")[2] or m for m in said(rebuilt(script.log()))] == ["two", "u:new"]


def test_a_context_edit_drops_or_replaces_and_the_last_one_wins() -> None:
    script = begun()
    script.user("a")
    cut = script.assistant(text("cut off"), stop="length")
    script.add("context_edit", targetId=cut, replacement={"content": [text("other")]})
    other = script.user("b")
    script.assistant(text("B"))
    script.add("context_edit", targetId=cut, replacement=None)
    script.add("context_edit", targetId=other, replacement={"content": "c"})
    script.user("d")
    script.assistant(text("D"))
    log = script.log()
    first, second, third = pi.requests(log)
    assert said(rebuilt(log, second)) == ["u:a", "a:other", "u:b"]
    third_body = rebuilt(log, third)
    assert third_body["messages"][1]["content"] == "c"
    assert [m["role"] for m in third_body["messages"]] == ["user", "user", "assistant", "user"]
    assert cut not in {e.key for e in third.context}
    assert kinds(log) == ["strip"] * 3
    assert first.key == cut


def test_a_fork_restores_and_its_copied_calls_belong_to_the_parent() -> None:
    script = Script(CHAT).begin()
    script.system(preamble="help")
    script.user("a")
    script.assistant(text("A"))
    script.rows[0] |= {"timestamp": script.now(), "parentSession": "/x/2026_parent-id.jsonl"}
    script.user("b")
    script.assistant(text("B"))
    log = script.log()
    copied, own = pi.requests(log)
    assert (copied.data["copied"], own.data["copied"]) == (True, False)
    assert rebuilt(log, copied, session=True)["prompt_cache_key"] == "parent-id"
    assert rebuilt(log, own, session=True)["prompt_cache_key"] == "0-session"
    (marker,) = pi.markers(log)
    assert (marker.kind, marker.point) == ("resume", own.key)
    assert "parent-id" in marker.where


def test_model_and_tool_changes_are_marked_but_not_the_first() -> None:
    script = begun()
    script.user("a")
    script.assistant(text("A"))
    script.add("model_change", provider="acme", modelId="sonnet-x")
    script.add("model_change", provider="acme", modelId="other")
    script.system(("grep",), ("read",), cwd=None)
    script.user("b")
    assert [(m.kind, m.where) for m in pi.markers(script.log())] == [
        ("model_switch", "acme/sonnet-x to acme/other"),
        ("tools_changed", "added grep; removed read"),
    ]


def test_system_sections_are_patched_and_tools_keep_their_order() -> None:
    script = begun()
    script.user("a")
    script.assistant(text("A"))
    script.system(("grep", "read"), ("read",), preamble="new", rules="be brief", cwd=None)
    script.system((), (), preamble=None, docs="see docs")
    script.user("b")
    script.assistant(text("B"))
    body = rebuilt(script.log())
    assert body["system"][0]["text"] == "be brief\n\nsee docs"
    assert [t["name"] for t in body["tools"]] == ["grep", "read"]
    assert ["cache_control" in t for t in body["tools"]] == [False, True]


def test_bash_runs_by_the_user_are_told_unless_excluded() -> None:
    script = begun()
    script.say(
        "bashExecution", command="ls", output="x", exitCode=2, cancelled=False, truncated=True, fullOutputPath="/t/o"
    )
    script.say("bashExecution", command="pwd", output="", exitCode=0, cancelled=True)
    script.say("bashExecution", command="env", output="secret", exitCode=0, excludeFromContext=True)
    script.user("go")
    script.assistant(text("ok"))
    assert said(rebuilt(script.log())) == [
        "u:Ran `ls`\n```\nx\n```\n\nCommand exited with code 2\n\n[Output truncated. Full output: /t/o]",
        "u:Ran `pwd`\n(no output)\n\n(command cancelled)",
        "u:go",
    ]


@pytest.mark.parametrize(
    "line", [b"{", b"[]", b"null", b"\xff\xfe", b'{"type":5,"id":"q"}', b'{"type":"message","id":"q","message":7}']
)
def test_lines_that_are_not_understood_break_nothing(line: bytes) -> None:
    script = begun()
    script.user("a")
    script.assistant(text("A"))
    log = log_of(script.bytes() + line + b"\n")
    assert len(pi.requests(log)) == 1
    assert [m["role"] for m in rebuilt(log)["messages"]] == ["user"]
    pi.markers(log), pi.notices(log), pi.config(log)


def test_blank_lines_and_lone_surrogates_are_passed_over() -> None:
    script = begun()
    script.user("aLONEb \U0001f642")
    script.assistant(text("A"))
    log = log_of(b"\n \n" + script.bytes().replace(b"LONE", b"\\ud83d"))
    assert said(rebuilt(log)) == ["u:ab \U0001f642"]
    assert not pi.notices(log)


def test_a_lost_parent_starts_a_path_and_is_said() -> None:
    script = begun()
    script.user("a")
    script.user("b", after="nowhere")
    script.assistant(text("B"))
    log = script.log()
    assert said(rebuilt(log)) == ["u:b"]
    assert "its parent entry is not in the file" in " ".join(pi.notices(log))


def test_old_files_without_ids_are_one_line_of_entries() -> None:
    script = Script().begin()
    script.say("hookMessage", content="hook")
    script.user("a")
    script.assistant(text("A"))
    for row in script.rows[1:]:
        del row["id"], row["parentId"]
    assert said(rebuilt(script.log())) == ["u:hook", "u:a"]


def test_naive_counts_the_lines_and_estimate_trusts_reported_usage() -> None:
    script = begun()
    script.user("a")
    script.assistant(text("A"), total=5000)
    script.user("four")
    script.assistant(text("B"))
    log = script.log()
    point = pi.requests(log)[-1]
    assert [e.tokens for e in pi.estimates(log, point)] == [5001, 5002]
    assert pi.naive(log, point) == -(-sum(len(e.raw) for e in point.context) // 4)
