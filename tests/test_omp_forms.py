"""What omp makes of entries for each API, where the recordings do not show it (omp.md §4; unrecorded rules by its source)."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from ctxscope.agents import omp
from ctxscope.agents.omp import checksum, wording
from ctxscope.model import Config, Learned, Value
from tests.omp_cases import ANTHROPIC, CHAT, GOOGLE, RESPONSES, Told, bare, messages, rebuilt
from tests.pi_sessions import call, text

PNG = b"\x89PNG not really" * 90
BLOB = "blob:sha256:" + "ab" * 32


def thinking(words: str, signature: str | None = None) -> dict[str, Any]:
    return {"type": "thinking", "thinking": words} | ({"thinkingSignature": signature} if signature else {})


def said(script: Told, **choice: Any) -> list[dict[str, Any]]:
    script.user("last")
    script.assistant(text("over"))
    found: list[dict[str, Any]] = bare(messages(script.log(), **choice))
    return found[:-1]


def test_a_message_that_came_in_between_is_wrapped_each_time() -> None:
    script = Told().begin()
    script.user("go")
    script.assistant(text("1"))
    script.user("now", steering=True)
    script.assistant(text("2"))
    assert said(script)[2] == {"role": "user", "content": [text(wording.STEERING + "now")]}
    assert bare(messages(script.log(), omp.requests(script.log())[1]))[2]["content"][0]["text"].endswith(
        "</system-notice>\nnow"
    )


@pytest.mark.parametrize(
    ("method", "start", "end"),
    [
        ("soft", "Prior model work/tool state available.\nMUST", "<summary>\nwe did\n</summary>"),
        ("handoff", "Context replaced. The <handoff> below", "<handoff>\nwe did\n</handoff>"),
    ],
)
def test_a_compaction_opens_with_its_summary_and_keeps_what_it_names(method: str, start: str, end: str) -> None:
    script = Told().begin()
    script.user("one")
    kept = script.assistant(text("kept"))
    script.add("compaction", summary="we did", firstKeptEntryId=kept, tokensBefore=10, method=method)
    found = said(script)
    assert found[0]["content"][0]["text"].startswith(start)
    assert found[0]["content"][0]["text"].endswith(end)
    assert found[1] == {"role": "assistant", "content": [text("kept")]}
    (marker,) = omp.markers(script.log())
    assert (marker.kind, marker.before_tokens, len(marker.dropped)) == ("compaction", 10, 1)
    assert marker.where.startswith(method)


def test_an_archive_puts_frames_between_its_texts() -> None:
    archive = {
        "frames": [{"data": BLOB, "mimeType": "image/png"}],
        "textHead": "¶user:a█\x0eb\x0f",
        "textTail": "c█d",
        "totalChars": 9,
        "truncatedChars": 0,
    }
    script = Told().begin()
    script.user("one")
    script.add(
        "compaction",
        summary="lead",
        firstKeptEntryId="no",
        tokensBefore=1,
        method="snapcompact",
        preserveData={"snapcompact": archive},
    )
    script.user("go on")
    script.assistant(text("ok"))
    log = script.log({"blob:" + "ab" * 32: PNG})
    content = bare(messages(log))[0]["content"]
    assert [b.get("text") for b in content] == [
        "lead",
        "¶user:a\nb\n-------------- imaged middle below\n",
        None,
        "-------------- imaged middle above\nc\nd",
    ]
    assert content[2]["source"]["data"] == base64.b64encode(PNG).decode()


def test_an_archive_without_frames_says_where_its_middle_is_gone() -> None:
    assert wording.archive_blocks({"textHead": "a", "textTail": "b", "truncatedChars": 3, "frames": []}) == [
        text("a\n-------------- middle history omitted above\nb")
    ]
    assert wording.archive_blocks({"textHead": "a", "textTail": "b", "truncatedChars": 0}) == [text("ab")]


def test_a_reset_behind_a_compaction_beats_it_and_one_before_does_not() -> None:
    script = Told().begin()
    script.user("old")
    script.assistant(text("1"))
    script.add("reset_boundary")
    script.user("middle")
    kept = script.assistant(text("2"))
    assert said(script)[0]["content"][0]["text"] == "middle"
    script.add("compaction", summary="s", firstKeptEntryId=kept, tokensBefore=1, method="soft")
    assert "<summary>" in said(script)[0]["content"][0]["text"]
    script.add("reset_boundary")
    assert said(script) == []
    assert [m.kind for m in omp.markers(script.log())] == ["rewind", "compaction", "rewind"]


def test_calls_without_results_go_and_take_what_is_signed_with_them() -> None:
    script = Told().begin()
    script.user("one")
    script.assistant(
        thinking("hm", "SIG"), {"type": "redactedThinking", "data": "R"}, text("look"), call("t1", p=1), stop="toolUse"
    )
    assert said(script)[1]["content"] == [{"type": "thinking", "thinking": "hm", "signature": ""}, text("look")]


def test_an_answer_that_failed_is_sent_with_its_results_until_the_context_is_read_from_the_log_again() -> None:
    script = Told().begin()
    script.user("one")
    script.assistant(text("half"), call("t1", p=1), stop="aborted")
    script.result("t1", "Command aborted")
    script.user("two")
    assert [m["role"] for m in messages(script.log())] == ["user", "assistant", "user", "user"]
    script.assistant(text("a"))
    script.add("custom", customType="session_exit", data={})
    script.user("three")
    script.assistant(text("b"))
    log = script.log()
    assert [len(messages(log, p)) for p in omp.requests(log)] == [1, 4, 4]
    assert [m["role"] for m in messages(log, omp.requests(log)[2])] == ["user", "user", "assistant", "user"]


def test_a_compaction_leaves_failed_answers_out_and_an_error_that_said_nothing_is_never_sent() -> None:
    script = Told().begin()
    kept = script.user("one")
    script.assistant(stop="error")
    script.user("two")
    script.assistant(thinking("hm"), stop="error")
    script.user("three")
    script.assistant(text("half"), stop="error")
    script.user("four")
    assert [m["role"] for m in messages(script.log())] == ["user", "user", "user", "assistant", "user"]
    script.add("compaction", summary="s", firstKeptEntryId=kept, tokensBefore=1, method="soft")
    script.user("five")
    assert [m["role"] for m in messages(script.log())] == ["user"] * 6


def test_an_interrupted_answer_with_its_note_is_sent_without_what_it_was_thinking() -> None:
    script = Told().begin()
    script.user("one")
    script.assistant(text("half"), thinking("and then"), stop="aborted")
    script.add("custom_message", customType="interrupted-thinking", content="it thought", display=False)
    assert said(script)[1:] == [
        {"role": "assistant", "content": [text("half")]},
        {"role": "user", "content": [text("it thought")]},
    ]


def test_a_cut_answer_that_only_thought_is_not_sent() -> None:
    script = Told().begin()
    script.user("one")
    script.assistant(thinking("endless", "SIG"), stop="length")
    assert [m["role"] for m in said(script)] == ["user"]


def test_an_abandoned_turn_keeps_its_signature_while_it_is_the_newest() -> None:
    script = Told().begin()
    script.user("one")
    script.assistant(thinking("hm", "SIG"), call("t1", p=1), stop="length")
    script.result("t1", "not executed")
    script.assistant(text("next"))
    log = script.log()
    points = omp.requests(log)
    assert messages(log, points[1])[1]["content"][0]["signature"] == "SIG"
    assert said(script)[1]["content"][0] == {"type": "thinking", "thinking": "hm", "signature": ""}


def test_results_follow_their_calls_in_the_order_they_came() -> None:
    script = Told().begin()
    script.user("one")
    script.assistant(call("t1", p=1), call("t2", p=2), stop="toolUse")
    script.result("t2", "second")
    script.user("wait", steering=True)
    script.result("t1", "first")
    found = said(script)
    assert [b["tool_use_id"] for b in found[2]["content"]] == ["t2", "t1"]
    assert found[3]["content"][0]["text"].endswith("wait")


def test_an_id_that_came_before_is_told_apart() -> None:
    script = Told().begin()
    for _ in range(3):
        script.user("again")
        script.assistant(call("call_1", p=1), stop="toolUse")
        script.result("call_1", "done")
    found = said(script)
    assert [b["id"] for m in found if m["role"] == "assistant" for b in m["content"]] == [
        "call_1",
        "call_1_dup1",
        "call_1_dup2",
    ]
    assert found[5]["content"][0]["tool_use_id"] == "call_1_dup1"


def test_a_result_whose_call_was_compacted_away_becomes_a_note() -> None:
    script = Told().begin()
    script.user("one")
    script.assistant(call("t1", p=1), stop="toolUse")
    kept = script.result("t1", "found it")
    script.add("compaction", summary="s", firstKeptEntryId=kept, tokensBefore=1, method="soft")
    assert said(script, cache="none")[1] == {
        "role": "user",
        "content": '<stale-tool-result tool="read" id="t1">\nfound it\n</stale-tool-result>',
    }


def test_two_answers_in_a_row_are_parted() -> None:
    script = Told().begin()
    script.user("one")
    script.assistant(text("a"))
    script.assistant(text("b"))
    log = script.log()
    points = omp.requests(log)
    assert messages(log, points[1])[-1] == {"role": "user", "content": "Continue."}  # without a mark: it is not kept
    assert "cache_control" in messages(log, points[1])[-2]["content"][-1]
    assert said(script)[2] == {"role": "user", "content": "Continue."}


def test_messages_of_extensions_are_a_users_where_they_are_blocks() -> None:
    picture = {"type": "image", "data": "QUJD", "mimeType": "image/png"}
    script = Told(CHAT).begin()
    script.user("one")
    script.assistant(text("1"))
    script.add("custom_message", customType="ext", content="note", display=True)
    script.add("custom_message", customType="prewalk-plan", content="hidden", display=True)
    script.add("custom_message", customType="shot", content=[text("see"), picture], display=True)
    found = said(script)[2:]
    assert [(m["role"], [p.get("text") for p in m["content"]]) for m in found] == [
        ("user", ["note"]),
        ("user", ["see"]),
        ("user", ["Images attached to shot.", None]),
    ]


@pytest.mark.parametrize(
    ("target", "shown"),
    [
        (ANTHROPIC, [{"type": "thinking", "thinking": "hm", "signature": ""}, text("so")]),
        (CHAT, "<thinking>\nhm\n</thinking>\nso"),
        ((*CHAT[:2], "deepseek-x"), "<think>\nhm\n</think>\nso"),
        (RESPONSES, ["<thinking>\nhm\n</thinking>", "so"]),
        (GOOGLE, [{"text": "```thinking\nhm\n```"}, {"text": "so"}]),
    ],
)
def test_thinking_of_another_api_is_carried_as_the_target_can_read_it(target: tuple[str, str, str], shown: Any) -> None:
    source = CHAT if target[0] != CHAT[0] else ANTHROPIC
    script = Told(target).begin()
    script.user("one")
    script.assistant(thinking("hm", "reasoning_content"), text("so"), target=source)
    script.user("two")
    script.assistant(text("end"))
    found = bare(messages(script.log()))
    if target is RESPONSES:
        items = [i for i in found if i.get("type") == "message"]
        assert [i["content"][0]["text"] for i in items] == shown
    else:
        assert (found[1].get("content") or found[1]["parts"]) == shown


def test_responses_replay_their_own_items_and_results_keep_images_in_their_places() -> None:
    script = Told(RESPONSES).begin()
    script.user("one")
    item = {"id": "fc_1", "type": "function_call", "call_id": "c1", "name": "read", "arguments": '{"p": 1}'}
    payload = {"type": "openaiResponsesHistory", "provider": RESPONSES[1], "dt": True, "items": [item]}
    script.assistant(call("c1|fc_1", p=1), call("c2|fc_2", p=1), stop="toolUse", providerPayload=payload)
    picture = {"type": "image", "data": "QUJD", "mimeType": "image/png"}
    script.result("c1|fc_1", content=[text("see"), picture])
    script.result("c2|fc_2", "two")
    found = said(script)
    assert found[1] == {"type": "function_call", "call_id": "c1", "name": "read", "arguments": '{"p": 1}'}
    shown = {"type": "input_image", "detail": "auto", "image_url": "data:image/png;base64,QUJD"}
    outputs = [i["output"] for i in found if i.get("type") == "function_call_output"]
    assert outputs == [[{"type": "input_text", "text": "see"}, shown], "two"]


def test_chat_answers_carry_an_empty_reasoning_field_where_the_model_wants_one() -> None:
    for target, wanted in (((CHAT[0], CHAT[1], "deepseek-x"), True), (CHAT, False)):
        script = Told(target).begin()
        script.user("one")
        script.assistant(text("so"))
        assert ("reasoning_content" in said(script)[1]) is wanted
        assert "reasoning_content" in said(script, reasoning=True)[1]


def test_an_anthropic_result_is_a_list_and_an_image_never_stands_alone() -> None:
    picture = {"type": "image", "data": "QUJD", "mimeType": "image/png"}
    script = Told().begin()
    script.user("one")
    script.assistant(call("t1", p=1), call("t2", p=1), stop="toolUse")
    script.result("t1", content=[picture])
    script.result("t2", content=[])
    blocks = said(script)[2]["content"]
    assert [b.get("text") for b in blocks[0]["content"]] == ["(see attached image)", None]
    assert blocks[1]["content"] == ""


def test_marks_stand_on_the_last_two_messages_and_never_on_thinking() -> None:
    script = Told().begin()
    script.user("one")
    script.assistant(text("a"), thinking("hm", "SIG"))
    script.user("two")
    script.assistant(text("b"))
    script.user("three")
    script.assistant(text("c"))
    log = script.log()
    points = omp.requests(log)
    marked = [
        (i, b["type"])
        for i, m in enumerate(rebuilt(log, points[1])["messages"])
        for b in m["content"]
        if "cache_control" in b
    ]
    assert marked == [(1, "text"), (2, "text")]
    assert [i for i, m in enumerate(rebuilt(log)["messages"]) if "cache_control" in m["content"][-1]] == [3, 4]
    assert "cache_control" not in str(rebuilt(log, cache="none"))


def test_only_a_provider_that_passes_as_claude_code_prefixes_tools() -> None:
    script = Told().begin()
    script.user("one")
    script.assistant(call("t1", p=1), {**call("t2", p=1), "name": "web_search"}, stop="toolUse")
    script.result("t1")
    script.result("t2")
    assert [b["name"] for b in said(script)[1]["content"]] == ["_read", "web_search"]
    assert [b["name"] for b in said(script, prefix=False)[1]["content"]] == ["read", "web_search"]


def test_without_a_recording_only_what_the_log_implies_is_there() -> None:
    script = Told().begin()
    script.user("one")
    script.assistant(text("1"))
    made = omp.rebuild(script.log(), omp.requests(script.log())[0], Config(), Learned())
    assert made is not None
    assert made.notices
    assert {p.provenance for p in made.pieces} == {"logged", "derived"}
    body = rebuilt(script.log())
    assert list(body) == ["model", "messages", "metadata", "stream"]
    assert body["metadata"] == {"user_id": '{"session_id":"0-session"}'}


def test_a_checksum_is_made_for_what_the_log_implies() -> None:
    system = b'[{"type":"text","text":"x-anthropic-billing-header: cc_version=1; cc_entrypoint=cli; cch=12345;"}]'
    learned = Learned(
        {"/system": Value(system, "learned")}, ("model", "messages", "system"), (), {"prefix": True, "checksum": True}
    )
    script = Told().begin()
    for words in ("one", "two", "three"):
        script.user(words)
        script.assistant(text(words))
    log = script.log()
    for point in [*omp.requests(log), *reversed(omp.requests(log))]:
        made = omp.rebuild(log, point, Config(), learned)
        assert made is not None
        assert checksum.verifies(made.data) is True
        assert b"cch=12345" not in made.data


def test_a_side_call_is_a_point_of_its_own_with_its_tokens() -> None:
    script = Told().begin()
    script.user("one")
    script.assistant(text("1"))
    usage = {"input": 30, "output": 4, "cacheRead": 0, "cacheWrite": 0, "reasoningTokens": 3}
    script.add("model_usage", purpose="title", role="small", api=CHAT[0], provider="q", model="s", usage=usage)
    log = script.log()
    side = omp.requests(log)[1]
    assert (side.kind, side.lineage, side.answer is not None) == ("side", "side", True)
    assert side.stored_usage is not None
    assert (side.stored_usage.input, side.stored_usage.output, side.stored_usage.reasoning) == (30, 4, 3)
    assert omp.rebuild(log, side, Config(), Learned()) is None
    assert omp.endpoint(log, side).provider == "q"
