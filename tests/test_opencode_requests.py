"""What opencode's messages are sent as, by API, and what is learned beside them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ctxscope.agents import at_hand, opencode
from ctxscope.model import Body, Config, Difference, Learned, Value
from tests.opencode_cases import LOOK, SESSION, fresh, messages, read
from tests.samples.opencode_form import Use, text, thought, used

SIGNED = {"metadata": {"anthropic": {"signature": "c2ln"}}}
MARK = {"cache_control": {"type": "ephemeral"}}
ANTHROPIC, RESPONSES = "anthropic-messages", "openai-responses"


def test_anthropic_messages_of_one_role_are_one_and_the_last_two_are_marked(tmp_path: Path):
    rows = fresh()
    asked = rows.user(SESSION, 1, text("hi"))
    rows.answer(SESSION, 2, asked, thought("hm", **SIGNED), used(LOOK), text("between"), thought("unsigned"))
    more = rows.user(SESSION, 4, text("and"), text("this"))
    rows.answer(SESSION, 5, more, used(Use("call_2", "look", "{}")), text("late"))
    rows.answer(SESSION, 7, more, text("done"))
    rows.write(tmp_path)
    log = read(tmp_path).log
    first, second, third = opencode.requests(log)
    assert [b["type"] for b in messages(log, third, ANTHROPIC)[3]["content"]] == ["text", "tool_use"]
    assert messages(log, first, ANTHROPIC) == [{"role": "user", "content": [{"type": "text", "text": "hi", **MARK}]}]
    call = {"type": "tool_use", "id": "call_1", "name": "look", "input": {"b": 1, "a": "é"}}
    thinking = {"type": "thinking", "thinking": "hm", "signature": "c2ln"}
    result = {"type": "tool_result", "tool_use_id": "call_1", "content": "seen", **MARK}
    assert messages(log, second, ANTHROPIC) == [
        {"role": "user", "content": [{"type": "text", "text": "hi"}]},
        {"role": "assistant", "content": [thinking, {"type": "text", "text": "between"}, call]},
        {
            "role": "user",
            "content": [result, {"type": "text", "text": "and"}, {"type": "text", "text": "this", **MARK}],
        },
    ]


def test_two_forms_of_reasoning_in_chat_completions(tmp_path: Path):
    rows = fresh()
    asked = rows.user(SESSION, 1, text("hi"))
    rows.answer(SESSION, 2, asked, thought("hm"), text("a"), text("b"), used(LOOK))
    rows.answer(SESSION, 4, asked, text("c"))
    rows.answer(SESSION, 6, asked, text("d"))
    rows.write(tmp_path)
    log = read(tmp_path).log
    point = opencode.requests(log)[-1]
    late, apart = (messages(log, point, form=form) for form in ("interleaved", "apart"))
    assert [list(m) for m in late[1::2]] == [
        ["role", "content", "tool_calls", "reasoning_content"],
        ["role", "content", "reasoning_content"],
    ]
    assert [list(m) for m in apart[1::2]] == [
        ["role", "content", "reasoning_content", "tool_calls"],
        ["role", "content"],
    ]
    assert (late[1]["content"], late[1]["reasoning_content"], late[3]["reasoning_content"]) == ("ab", "hm", "")
    assert late[2] == {"role": "tool", "tool_call_id": "call_1", "content": "seen"}
    assert late[1]["tool_calls"][0]["function"]["arguments"] == '{"b":1,"a":"é"}'


def test_the_form_of_reasoning_and_the_head_are_those_of_the_first_call_of_a_kind(tmp_path: Path):
    rows = fresh()
    asked = rows.user(SESSION, 1, text("hi"))
    for n in range(3):
        rows.answer(SESSION, 2.0 + n, asked, text(f"{n}"))
    rows.answer(SESSION, 6, asked, text("other"), model="another")
    rows.write(tmp_path)
    log = read(tmp_path).log
    one, two, three, other = opencode.requests(log)

    def body(words: str, *said: Any, **more: Any) -> Body:
        data = {"model": "m", "messages": [{"role": "system", "content": words}, *said], "stream": True, **more}
        return Body(json.dumps(data).encode(), "openai-chat", (), "m", words)

    plain, torn = {"role": "assistant", "content": "0"}, Body(b'{"messages":[', "openai-chat", (), None, "torn")
    before = at_hand([(one, torn), (one, body("s1", tools=[1])), (two, body("s2", plain))])
    learned = opencode.learn(log, three, body("s3"), before)
    assert {p: (v.data, v.provenance) for p, v in learned.values.items()} == {
        "/tools": (b"[1]", "learned"),
        "/messages/0": (b'{"role": "system", "content": "s1"}', "learned"),
        "/model": (b'"m"', "learned"),
    }
    assert (learned.keys, learned.choice["form"]) == (("model", "messages", "stream", "tools"), "apart")
    assert opencode.learn(log, two, body("s2b"), at_hand(list(before)[:2])).choice["form"] == "interleaved"
    late = {"role": "assistant", "content": "0", "tool_calls": [1], "reasoning_content": "x"}
    longer = at_hand([*before, (three, body("s5", late))])
    assert opencode.learn(log, three, body("s4"), longer).choice["form"] == "apart"
    fresh_kind = opencode.learn(log, other, body("s4"), before)
    assert fresh_kind.values["/messages/0"].provenance == "echoed"
    assert opencode.learn(log, three, body("s3"), before).values == learned.values


def test_failed_waiting_and_interrupted_tools_have_results(tmp_path: Path):
    rows = fresh()
    asked = rows.user(SESSION, 1, text("hi"))
    states = [
        {"status": "error", "input": {}, "error": "no such file"},
        {"status": "error", "input": {}, "error": "x", "metadata": {"interrupted": True, "output": "half"}},
        {"status": "running", "input": {}},
    ]
    parts = [{**used(Use(f"call_{n}", "look", "{}")), "state": s} for n, s in enumerate(states)]
    rows.answer(SESSION, 2, asked, *parts)
    rows.answer(SESSION, 4, asked, text("done"))
    rows.write(tmp_path)
    log = read(tmp_path).log
    point = opencode.requests(log)[-1]
    words = ["no such file", "half", "[Tool execution was interrupted]"]
    assert [m["content"] for m in messages(log, point) if m["role"] == "tool"] == words
    blocks = messages(log, point, ANTHROPIC)[-1]["content"]
    assert [(b["content"], b.get("is_error")) for b in blocks] == list(zip(words, (True, None, True), strict=True))


def test_files_go_into_results_or_behind_them(tmp_path: Path):
    rows = fresh()
    picture = {"mime": "image/png", "url": "data:image/png;base64,QUJD", "type": "file", "filename": "a.png"}
    plain = {"mime": "text/plain", "url": "file:///x", "type": "file", "filename": "x"}
    asked = rows.user(SESSION, 1, text("see"), picture, plain)
    rows.answer(SESSION, 2, asked, used(LOOK, attachments=[picture]))
    rows.answer(SESSION, 4, asked, text("done"))
    rows.write(tmp_path)
    log = read(tmp_path).log
    point = opencode.requests(log)[-1]
    shown = {"type": "image_url", "image_url": {"url": picture["url"]}}
    sent = messages(log, point)
    assert sent[0]["content"] == [{"type": "text", "text": "see"}, shown]
    assert sent[-1] == {
        "role": "user",
        "content": [{"type": "text", "text": "Attached media from tool result:"}, shown],
    }
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "QUJD"}}
    claude = messages(log, point, ANTHROPIC)
    assert claude[0]["content"][1] == image
    assert claude[-1]["content"][0]["content"] == [{"type": "text", "text": "seen"}, image]


def test_what_is_left_out_of_a_request(tmp_path: Path):
    rows = fresh()
    asked = rows.user(SESSION, 1, text("hidden", ignored=True), text(""), text("shown"))
    rows.answer(SESSION, 2, asked, text("lost"), error={"name": "APIError", "data": {"message": "overloaded"}})
    aborted = {"name": "MessageAbortedError", "data": {"message": "stop"}}
    rows.answer(SESSION, 4, asked, text("kept"), error=aborted)
    failed = {"role": "assistant", "parentID": asked, "error": aborted}
    rows.message(SESSION, 6, failed, [{"type": "step-start"}, thought("only")])
    rows.answer(SESSION, 8, asked, text("done"))
    rows.write(tmp_path)
    log = read(tmp_path).log
    points = opencode.requests(log)
    assert [m["content"] for m in messages(log, points[-1])] == ["shown", "kept"]
    assert [opencode.error_line(log, p) for p in points] == ["overloaded", "stop", "stop", None]
    assert [p.stop.state for p in points if p.stop] == ["error", "incomplete", "incomplete", "complete"]


def test_another_model_reads_thoughts_as_text(tmp_path: Path):
    rows = fresh()
    asked = rows.user(SESSION, 1, text("hi"))
    rows.answer(SESSION, 2, asked, thought("hm", **SIGNED), text("a"))
    rows.answer(SESSION, 4, asked, text("b"), model="another")
    rows.write(tmp_path)
    log = read(tmp_path).log
    point = opencode.requests(log)[-1]
    assert [b["text"] for b in messages(log, point, ANTHROPIC)[1]["content"]] == ["hm", "a"]
    (marker,) = opencode.markers(log)
    assert (marker.kind, marker.where, marker.point) == (
        "model_switch",
        "harbour/buoy-chat to harbour/another",
        point.key,
    )


def test_models_of_anthropics_are_marked_in_chat_completions_too(tmp_path: Path):
    rows = fresh()
    asked = rows.user(SESSION, 1, text("hi"))
    rows.answer(SESSION, 2, asked, text("a"), used(LOOK), model="claude-z")
    rows.answer(SESSION, 4, asked, text("b"), model="claude-z")
    more = rows.user(SESSION, 6, text("c"), text("d"))
    rows.answer(SESSION, 7, more, text("e"), model="claude-z")
    rows.write(tmp_path)
    log = read(tmp_path).log
    first, second, third = (messages(log, p) for p in opencode.requests(log))
    assert first == [{"role": "user", "content": "hi", **MARK}]
    assert "cache_control" not in second[0]
    assert second[1]["tool_calls"][0]["cache_control"] == MARK["cache_control"]
    assert list(second[2]) == ["role", "tool_call_id", "content", "cache_control"]
    assert [("cache_control" in json.dumps(m)) for m in third] == [False] * 4 + [True]
    assert third[4]["content"][1] == {"type": "text", "text": "d", **MARK}


def planned(tmp_path: Path) -> Any:
    """Two answers in plan mode, two of the next turn without it, one of a last turn for another agent."""
    rows = fresh()
    plan = rows.user(SESSION, 1, text("hi"), agent="plan")
    rows.answer(SESSION, 2, plan, text("a"), used(LOOK), agent="plan")
    rows.answer(SESSION, 3, plan, text("b"), agent="plan")
    build = rows.user(SESSION, 4, text("do"))
    rows.answer(SESSION, 5, build, text("c"), used(Use("call_2", "look", "{}")))
    rows.answer(SESSION, 6, build, text("d"))
    other = rows.user(SESSION, 7, text("so"), agent="mine")
    rows.answer(SESSION, 8, other, text("e"), agent="mine")
    rows.write(tmp_path)
    return read(tmp_path).log


def reminded(log: Any, said: list[str], api: Any) -> list[tuple[bool, set[tuple[str, str]]]]:
    """Of each call whose newest input carries a text: whether it is equal, and where that text was taken from."""
    calls: list[tuple[Any, Body]] = []
    found = []
    for point, words in zip(opencode.requests(log), said, strict=True):
        sent = messages(log, point, api)
        newest = next(m for m in reversed(sent) if m.get("role") == "user" and "tool_result" not in json.dumps(m))
        if words:
            content = newest["content"]
            newest["content"] = [{"type": "text", "text": content}] if isinstance(content, str) else content
            mark = newest["content"][-1].pop("cache_control", None)
            kind = "input_text" if api == RESPONSES else "text"
            newest["content"].append({"type": kind, "text": words, **({"cache_control": mark} if mark else {})})
        key = "input" if api == RESPONSES else "messages"
        data = json.dumps({"model": "buoy-chat", key: sent}, ensure_ascii=False, separators=(",", ":"))
        body = Body(data.encode(), api, (), None, data)
        learned = opencode.learn(log, point, body, at_hand(calls))
        rebuilt = opencode.rebuild(log, point, Config(), learned)
        assert rebuilt is not None
        taken = {(p.path, p.provenance) for p in rebuilt.pieces if p.path.startswith(("/messages", "/input"))}
        found.append((rebuilt.data == body.data, taken))
        calls.append((point, body))
    return found


@pytest.mark.parametrize(
    ("api", "key", "at"), [("openai-chat", "messages", 4), (ANTHROPIC, "messages", 4), (RESPONSES, "input", 5)]
)
def test_reminders_of_plan_mode_are_taught_by_the_first_call_that_has_them(tmp_path: Path, api: str, key: str, at: int):
    log = planned(tmp_path)
    first, second = f"/{key}/0/content/1/text", f"/{key}/{at}/content/1/text"
    found = reminded(log, ["P", "P", "B", "B", ""], api)
    assert [equal for equal, _ in found] == [True] * 5
    assert [taken for _, taken in found] == [
        {(first, "echoed")},
        {(first, "learned")},
        {(second, "echoed")},
        {(second, "learned")},
        set(),
    ]
    assert [equal for equal, _ in reminded(log, ["P", "Q", "B", "", "B"], api)] == [True, False, True, False, False]


def test_what_is_learned_and_differs_is_told_with_the_call_that_taught_it(tmp_path: Path):
    log = planned(tmp_path)
    extra = Difference(0, 0, 0, "/messages/1/content", "form", "", "", "")
    told = [opencode.explain(log, p, extra, Learned()) for p in opencode.requests(log)]
    assert [t is not None for t in told] == [True, True, True, True, False]
    value = Learned({"/tools": Value(b"[]", "learned")}, choice={"taught": "row msg_1"})
    words = opencode.explain(log, opencode.requests(log)[2], replace(extra, path="/tools/0"), value)
    assert words == "tools is not in the log, and the call answered at row msg_1 was sent another value"


def test_a_model_goes_by_one_name_whoever_asks_it(tmp_path: Path):
    rows = fresh()
    asked = rows.user(SESSION, 1, text("hi"))
    rows.answer(SESSION, 2, asked, text("a"))
    rows.answer(SESSION, 3, asked, text("b"), agent="mine")
    rows.write(tmp_path)
    log = read(tmp_path).log
    first, second = opencode.requests(log)

    def sent(model: str) -> Body:
        return Body(b'{"model":"%s","messages":[]}' % model.encode(), "openai-chat", (), None, model)

    learned = opencode.learn(log, first, sent("other"), at_hand())
    assert (learned.values["/model"].data, learned.values["/model"].provenance) == (b'"other"', "echoed")
    again = opencode.learn(log, second, sent("other"), at_hand([(first, sent("other"))]))
    assert again.values["/model"].provenance == "learned"
    for taught in ("buoy-chat", "else"):
        values = opencode.learn(log, second, sent("other"), at_hand([(first, sent(taught))])).values
        assert values.get("/model", Value(None, "learned")).data == {"else": b'"else"'}.get(taught)


def test_items_of_the_responses_api(tmp_path: Path):
    def proved(item: str, words: str) -> dict[str, Any]:
        return thought(words, metadata={"openai": {"itemId": item, "reasoningEncryptedContent": f"secret {item}"}})

    picture = {"type": "file", "mime": "image/png", "filename": "p.png", "url": "data:image/png;base64,AA=="}
    rows = fresh()
    asked = rows.user(SESSION, 1, text("hi"), picture)
    parts = (proved("rs_1", "one"), proved("rs_1", "two"), proved("rs_2", ""), thought("bare"), text("a"), text("b"))
    rows.answer(SESSION, 2, asked, *parts, used(LOOK), used(Use("call_2", "look", "{}")))
    rows.answer(SESSION, 4, asked, text("c"))
    rows.write(tmp_path)
    log = read(tmp_path).log
    point = opencode.requests(log)[1]
    rebuilt = opencode.rebuild(log, point, Config(), Learned(choice={"api": "openai-responses"}))
    assert rebuilt is not None
    hi = {"type": "input_text", "text": "hi"}
    summary = [{"type": "summary_text", "text": words} for words in ("one", "two")]
    call = {"type": "function_call", "call_id": "call_1", "name": "look", "arguments": '{"b":1,"a":"é"}'}
    result = {"type": "function_call_output", "call_id": "call_1", "output": "seen"}
    assert json.loads(rebuilt.data)["input"] == [
        {"role": "user", "content": [hi, {"type": "input_image", "image_url": "data:image/png;base64,AA=="}]},
        {"type": "reasoning", "encrypted_content": "secret rs_1", "summary": summary},
        {"type": "reasoning", "encrypted_content": "secret rs_2", "summary": []},
        *({"role": "assistant", "content": [{"type": "output_text", "text": words}]} for words in ("a", "b")),
        call,
        {**call, "call_id": "call_2", "arguments": "{}"},
        result,
        {**result, "call_id": "call_2", "output": ""},
    ]
