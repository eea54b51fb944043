"""What pi writes for each API where its recorded sessions do not go: foreign models, images, native changes, threads."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ctxscope.agents import at_hand, pi
from ctxscope.agents.pi.transform import Target, normalised_id, short_hash
from ctxscope.model import Body, Learned, Point
from ctxscope.wire import detect
from ctxscope.wire.body import make_body
from tests.pi_sessions import ANTHROPIC, CHAT, GOOGLE, RESPONSES, Script, call, rebuilt, text

PICTURE = {"type": "image", "data": "aGk=", "mimeType": "image/png"}
THOUGHT = {"type": "thinking", "thinking": "hm", "thinkingSignature": "sig"}


def session(target: tuple[str, str, str], *, old: bool = False, level: str = "medium") -> Script:
    script = Script(target).begin(level)
    if not old:
        script.system(preamble="help")
    return script


def messages(script: Script, **choice: Any) -> list[Any]:
    body = rebuilt(script.log(), **choice)
    found = body.get("messages") or body.get("input") or body.get("contents")
    assert isinstance(found, list)
    return found[1:] if found[0].get("role") in {"system", "developer"} else found


def after_foreign(target: tuple[str, str, str], *, old: bool = False, name: str = "call_1|fc_2") -> list[Any]:
    """Messages after an answer by another model of another provider."""
    script = session(target, old=old)
    script.user("a")
    more = {"rawStopReason": None} if old else {}
    script.assistant(THOUGHT, text("A"), call(name), stop="toolUse", target=("elsewhere", "other", "m"), **more)
    script.result(name)
    script.assistant(text("B"))
    if old:
        for row in script.rows:
            row.get("message", {}).pop("rawStopReason", None)
    return messages(script)


def test_a_foreign_answer_loses_its_thinking_in_1x_and_turns_it_to_text_in_073() -> None:
    assert [b["type"] for b in after_foreign(ANTHROPIC)[1]["content"]] == ["text", "tool_use"]
    assert [b.get("text") for b in after_foreign(ANTHROPIC, old=True)[1]["content"]][:2] == ["hm", "A"]


def test_foreign_tool_ids_fit_the_target_and_their_results_follow() -> None:
    _, answer, result = after_foreign(ANTHROPIC)
    assert answer["content"][1]["id"] == result["content"][0]["tool_use_id"] == "call_1_fc_2"
    _, answer, result = after_foreign(CHAT)
    assert answer["tool_calls"][0]["id"] == result["tool_call_id"] == "call_1_fc_2"
    items = after_foreign(RESPONSES)
    assert (items[2]["call_id"], items[3]["call_id"], "id" in items[2]) == ("call_1_fc_2", "call_1_fc_2", False)
    assert items[1]["id"] == "msg_pi_1"


@pytest.mark.parametrize(
    ("target", "name", "fit"),
    [
        (Target(*ANTHROPIC), "a.b|c" + "x" * 70, ("a_b_c" + "x" * 70)[:64]),
        (Target(*RESPONSES), "a|" + "_" * 70, "a"),
        (Target(*CHAT), "plain" * 20, "plain" * 20),
        (Target("openai-completions", "openai", "m"), "p" * 50, "p" * 40),
        (Target(*CHAT, old=True), "c.1|" + "i" * 90, "c_1"),
        (Target(*CHAT), "c" * 35 + "|" + "i" * 30, "c" * 31 + "_" + short_hash("c" * 35 + "|" + "i" * 30)[:8]),
        (Target(*GOOGLE), "a|b", "a|b"),
        (Target("google-generative-ai", "acme", "gemini-3-pro"), "a|b", "a_b"),
    ],
)
def test_tool_ids_are_normalised_for_each_api(target: Target, name: str, fit: str) -> None:
    assert normalised_id(name, target) == fit


def test_only_the_model_differing_drops_the_item_id() -> None:
    script = session(RESPONSES)
    script.user("a")
    script.assistant(call("c1|fc_1"), target=(*RESPONSES[:2], "older"), stop="toolUse")
    script.result("c1|fc_1")
    script.assistant(call("c2|fc_2"), stop="toolUse")
    script.result("c2|fc_2")
    script.assistant(text("B"))
    calls = [m for m in messages(script) if m.get("type") == "function_call"]
    assert [(c.get("id"), c["call_id"]) for c in calls] == [(None, "c1_fc_1"), ("fc_2", "c2")]


def test_texts_without_an_id_are_numbered_by_message_and_text() -> None:
    script = session(RESPONSES)
    script.user("a")
    script.assistant(
        text("A"), text("AA"), {"type": "text", "text": "AAA", "textSignature": '{"v":1,"id":"msg_x","phase":"final"}'}
    )
    script.user("b")
    script.assistant({"type": "thinking", "thinking": ""})
    script.user("c")
    script.assistant({"type": "text", "text": "C", "textSignature": "y" * 65})
    script.user("d")
    script.assistant(text("D"))
    script.user("e")
    script.assistant(text("E"))
    items = [m for m in messages(script) if m.get("type") == "message"]
    long = f"msg_{short_hash('y' * 65)}"
    assert [(m["id"], m.get("phase")) for m in items] == [
        ("msg_pi_1", None),
        ("msg_pi_1_1", None),
        ("msg_x", "final"),
        (long, None),
        ("msg_pi_6", None),
    ]


def test_missing_results_are_made_up_before_what_follows() -> None:
    script = session(ANTHROPIC)
    script.user("a")
    script.assistant(call("t1"), call("t2"), stop="toolUse")
    script.result("t2")
    script.user("b")
    script.assistant(text("B"))
    log = script.log()
    results = messages(script)[2]["content"]
    assert [(r["tool_use_id"], r["content"], r["is_error"]) for r in results] == [
        ("t2", "done", False),
        ("t1", "No result provided", True),
    ]
    made = pi.rebuild(log, pi.requests(log)[-1], pi.config(log), Learned())
    assert made is not None
    assert next(p for p in made.pieces if b"No result" in p.data).provenance == "derived"


def test_redacted_unsigned_and_blank_thinking() -> None:
    script = session(ANTHROPIC)
    script.user("a")
    redacted = {"type": "thinking", "thinking": "", "thinkingSignature": "opaque", "redacted": True}
    script.assistant(
        redacted, {"type": "thinking", "thinking": "bare"}, {"type": "thinking", "thinking": " "}, text(" "), text("A")
    )
    script.user("b")
    script.assistant(text("B"))
    assert messages(script)[1]["content"] == [{"type": "redacted_thinking", "data": "opaque"}, text("bare"), text("A")]


def with_images(target: tuple[str, str, str]) -> Script:
    script = session(target)
    script.say("user", content=[text("see"), PICTURE])
    script.assistant(call("t1"), call("t2"), stop="toolUse")
    script.result("t1", content=[PICTURE])
    script.result("t2", content=[])
    script.assistant(text("B"))
    return script


def test_images_go_as_each_api_takes_them() -> None:
    anthropic = messages(with_images(ANTHROPIC))
    assert anthropic[0]["content"][1]["source"] == {"type": "base64", "media_type": "image/png", "data": "aGk="}
    assert [b["type"] for b in anthropic[2]["content"][0]["content"]] == ["text", "image"]
    chat = messages(with_images(CHAT))
    assert [m["content"] for m in chat[2:4]] == ["(see attached image)", "(no tool output)"]
    assert chat[4]["content"][1]["image_url"] == {"url": "data:image/png;base64,aGk="}
    assert messages(with_images(RESPONSES))[3]["output"] == [
        {"type": "input_image", "detail": "auto", "image_url": "data:image/png;base64,aGk="}
    ]
    assert messages(with_images(GOOGLE))[0]["parts"][1] == {"inlineData": {"data": "aGk=", "mimeType": "image/png"}}


def test_a_model_without_images_reads_a_note() -> None:
    shown = messages(with_images(ANTHROPIC), images=False)
    assert (
        shown[0]["content"][1]["text"]
        == shown[2]["content"][0]["content"]
        == "(image omitted: model does not support images)"
    )


def test_native_changes_stay_in_place_before_the_next_answer() -> None:
    script = session(ANTHROPIC)
    script.user("a")
    script.assistant(text("A"))
    script.system(("grep",), ("read",), rules="be brief", cwd=None)
    script.user("b")
    middle = rebuilt(script.log(), native=True)["messages"]
    assert [m["role"] for m in middle] == ["user", "assistant", "user", "system"]
    script.assistant(text("B"))
    script.user("c")
    body = rebuilt(script.log(), native=True)
    assert [m["role"] for m in body["messages"]] == ["user", "assistant", "user", "system", "assistant", "user"]
    words, removal, addition = body["messages"][3]["content"]
    assert words["text"] == 'Updated system prompt section "rules":\n\nbe brief\n\nRemoved system prompt section "cwd".'
    assert removal == {"type": "tool_removal", "tool": {"type": "tool_reference", "name": "read"}}
    assert addition["tool"]["definition"]["name"] == "grep"
    assert "cache_control" in middle[3]["content"][-1]
    assert [t["name"] for t in body["tools"]] == ["read"]
    assert body["system"][0]["text"] == "help"


def test_reasoning_details_and_reasoning_fields_of_chat() -> None:
    script = session(CHAT)
    script.user("a")
    script.assistant({"type": "thinking", "thinking": "x", "thinkingSignature": '[{"type":"d"}]'}, text("A"))
    script.user("b")
    script.assistant(
        {"type": "thinking", "thinking": "y", "thinkingSignature": "reasoning"},
        call("t", **{"2": 1, "a": 1e21}),
        stop="toolUse",
    )
    script.result("t")
    script.assistant(text("C"))
    first, second = (m for m in messages(script) if m["role"] == "assistant")
    assert (list(first), first["reasoning_details"]) == (["role", "content", "reasoning_details"], [{"type": "d"}])
    assert (list(second), second["content"], second["reasoning"]) == (
        ["role", "content", "reasoning", "tool_calls"],
        None,
        "y",
    )
    assert second["tool_calls"][0]["function"]["arguments"] == '{"2":1,"a":1e+21}'


def test_google_signatures_are_sent_only_when_whole() -> None:
    script = session(GOOGLE)
    script.user("a")
    script.assistant(
        {**call("t"), "thoughtSignature": "abcd"}, {**call("u"), "thoughtSignature": "abc"}, stop="toolUse"
    )
    script.result("t")
    script.result("u")
    script.assistant(text("B"))
    parts = messages(script)[1]["parts"]
    assert ["thoughtSignature" in p for p in parts] == [True, False]


def test_thinking_off_is_said_unless_the_model_cannot_think() -> None:
    script = session(ANTHROPIC, level="off")
    script.user("a")
    script.assistant(text("A"))
    assert rebuilt(script.log())["thinking"] == {"type": "disabled"}
    assert "thinking" not in rebuilt(script.log(), reasoning=False)


def threaded() -> Script:
    script = session(ANTHROPIC)
    script.user("a")
    script.assistant(call("t1"), stop="toolUse", responseId="msg_1")
    script.result("t1")
    script.assistant(text("A"), responseId="msg_2")
    return script


def test_a_thread_is_created_then_continued_with_what_is_new() -> None:
    log = threaded().log()
    first, second = (rebuilt(log, p, threads=True) for p in pi.requests(log))
    assert first["thread"] == {"type": "create"}
    assert second["thread"] == {"type": "continue", "previous_message_id": "msg_1"}
    assert [b["type"] for m in second["messages"] for b in m["content"]] == ["tool_result"]
    assert "system" not in second
    assert "tools" not in second


def test_a_thread_starts_anew_where_history_or_head_changed() -> None:
    edited = threaded()
    edited.add("context_edit", targetId=edited.last, replacement=None)
    edited.user("b")
    earlier = threaded()
    earlier.add("context_edit", targetId=earlier.rows[4]["id"], replacement={"content": "A"})
    earlier.user("b")
    changed = threaded()
    changed.system(("grep",))
    changed.user("b")
    compacted = threaded()
    compacted.add("compaction", summary="s", firstKeptEntryId=compacted.last, tokensBefore=1)
    compacted.user("b")
    for script in (changed, compacted, earlier):
        assert rebuilt(script.log(), threads=True)["thread"] == {"type": "create"}
    assert rebuilt(edited.log(), threads=True)["thread"]["type"] == "create"


def test_a_thread_continued_from_an_earlier_answer_is_taken_as_served() -> None:
    script = threaded()
    script.add("context_edit", targetId=script.last, replacement=None)
    script.user("b")
    log = script.log()
    first, _, point = pi.requests(log)
    other = rebuilt(log, first, threads=True)
    assert other["thread"] == {"type": "create"}
    thread = {"type": "continue", "previous_message_id": "msg_1"}
    mark = {"cache_control": {"type": "ephemeral"}}
    new = [
        {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "done", "is_error": False}],
        }
    ]
    new.append({"role": "user", "content": [{**text("b"), **mark}]})
    value = {"model": "sonnet-x", "messages": new, "stream": True, "thinking": other["thinking"], "thread": thread}
    data = json.dumps(value, separators=(",", ":")).encode()
    body = make_body(data, detect("/v1/messages", {}, data))
    learned = pi.learn(log, point, body, at_hand())
    made = pi.rebuild(log, point, pi.config(log), learned)
    assert made is not None
    assert made.data == data
    assert learned.values["/thread"].provenance == "echoed"


def served(script: Script, point: Point, old: bytes, new: bytes) -> Body:
    log = script.log()
    made = pi.rebuild(log, point, pi.config(log), Learned())
    assert made is not None
    assert old in made.data
    data = made.data.replace(old, new)
    return make_body(data, detect("/v1/messages", {}, data))


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (b'"ephemeral"', b'"ephemeral","ttl":"1h"', "cache retention is long"),
        (b'"eager_input_streaming":true,', b"", "without eager input streaming"),
        (
            b',"thinking":{"type":"enabled","budget_tokens":8192,"display":"summarized"}',
            b"",
            "not set up as a reasoning model",
        ),
    ],
)
def test_a_form_is_a_hypothesis_held_for_the_session(old: bytes, new: bytes, words: str) -> None:
    script = threaded()
    log = script.log()
    first, second = pi.requests(log)
    bodies = [served(script, p, old, new) for p in (first, second)]
    plain = served(script, second, b"", b"")
    before = [(first, bodies[0])]
    for body, equal in ((bodies[1], True), (plain, False)):
        learned = pi.learn(log, second, body, at_hand(before))
        made = pi.rebuild(log, second, pi.config(log), learned)
        assert made is not None
        assert (made.data == body.data) is equal
        assert any(words in h for h in learned.hypotheses)


def test_request_options_are_learned_where_they_stand() -> None:
    script = threaded()
    log = script.log()
    first, second = pi.requests(log)
    old, new = b',"tools":', b',"temperature":0.2,"tools":'
    bodies = [served(script, p, old, new) for p in (first, second)]
    learned = pi.learn(log, second, bodies[1], at_hand([(first, bodies[0])]))
    made = pi.rebuild(log, second, pi.config(log), learned)
    assert made is not None
    assert made.data == bodies[1].data
    assert learned.values["/temperature"].provenance == "learned"
    other = served(script, second, old, new.replace(b"0.2", b"0.3"))
    assert pi.learn(log, second, other, at_hand([(first, bodies[0])])).values["/temperature"].data == b"0.2"


def test_073_takes_its_head_from_the_first_call_and_shows_a_changed_one() -> None:
    script = session(ANTHROPIC, old=True)
    for words in "ab":
        script.user(words)
        script.assistant(text(words.upper()), total=10)
    for row in script.rows:
        row.get("message", {}).pop("rawStopReason", None)
    log = script.log()
    first, second = pi.requests(log)
    head = b',"stream":true,"system":[{"type":"text","text":"%s","cache_control":{"type":"ephemeral"}}],"tools":[{"name":"x"}]'
    bodies = [
        served(script, p, b',"stream":true', head % w) for p, w in ((first, b"one"), (second, b"one"), (second, b"two"))
    ]
    for body, equal in ((bodies[1], True), (bodies[2], False)):
        learned = pi.learn(log, second, body, at_hand([(first, bodies[0])]))
        made = pi.rebuild(log, second, pi.config(log), learned)
        assert made is not None
        assert (made.data == body.data) is equal
        assert learned.values["/system"].provenance == "learned"
    assert pi.learn(log, first, bodies[0], at_hand()).values["/tools"].provenance == "echoed"


def test_summary_requests_are_told_by_their_fixed_text() -> None:
    prompt = b'{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"x"}]}],"system":[{"type":"text","text":"%s"}]%s}'
    bodies = [
        prompt % (b"You are a context summarization assistant. Do.", b""),
        prompt % (b"hello", b',"tools":[{"name":"x","input_schema":{}}]'),
        prompt % (b"hello", b""),
    ]
    found = [pi.classify(make_body(b, detect("/v1/messages", {}, b))) for b in bodies]
    assert found == ["compaction", "main", None]


def test_an_api_that_is_not_rebuilt_says_so() -> None:
    script = session(("bedrock-converse-stream", "aws", "m"))
    script.user("a")
    script.assistant(text("A"))
    log = script.log()
    assert pi.rebuild(log, pi.requests(log)[0], pi.config(log), Learned()) is None
