"""What recorded runs of omp 18.2.3 showed beside its reference: processes, providers, images, subagents, long histories."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ctxscope import wire
from ctxscope.agents import Log, at_hand, omp
from ctxscope.agents.omp.tree import tree
from ctxscope.model import Body, Config, Difference, Learned, Point, SessionRef
from ctxscope.wire.body import make_body
from tests.omp_cases import Told, bare, log_of, messages
from tests.pi_sessions import ANTHROPIC, CHAT, GOOGLE, RESPONSES, call, text

PICTURE = {"type": "image", "data": "QUJD", "mimeType": "image/png"}
EXIT = {"customType": "session_exit", "data": {}}


def thinking(words: str) -> dict[str, Any]:
    return {"type": "thinking", "thinking": words}


def answered(script: Told, say: str = "so", **more: Any) -> None:
    """An answer of Responses with the items it came as."""
    content = [{"type": "output_text", "text": say, "annotations": []}]
    item = {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed", "content": content}
    reasoning = {"id": "rs_1", "type": "reasoning", "summary": [], "encrypted_content": "E", "status": "completed"}
    script.assistant(thinking("hm"), text(say), providerPayload=payload(reasoning, item), **more)


def payload(*items: Any) -> dict[str, Any]:
    return {"type": "openaiResponsesHistory", "provider": RESPONSES[1], "dt": True, "items": list(items)}


def kinds(log: Log, point: Point, **choice: Any) -> list[str]:
    """The items of an answer's first replay: their types, with a mark for those made anew."""
    found = messages(log, point, **choice)
    return [i["type"] + ("+" if "status" in i else "") for i in found if i.get("role", "assistant") == "assistant"]


def last(script: Told) -> tuple[Log, Point]:
    log = script.log()
    return log, omp.requests(log)[-1]


@pytest.mark.parametrize("before", ["session_exit", "model_change", "reset"])
def test_responses_are_made_anew_until_the_provider_answers_again(before: str) -> None:
    script = Told(RESPONSES).begin()
    script.user("one")
    answered(script)
    script.user("two")
    assert kinds(*last(script)) == ["reasoning", "message"]
    answered(script)
    if before == "session_exit":
        script.add("custom", **EXIT)
    elif before == "model_change":
        script.add("model_change", model=f"{CHAT[1]}/{CHAT[2]}")
        script.add("model_change", model=f"{RESPONSES[1]}/{RESPONSES[2]}")
    else:
        script.add("reset_boundary")
    script.user("three")
    anew = ["message+", "message+"] if before != "reset" else []
    assert kinds(*last(script)) == anew
    answered(script)
    script.user("four")
    assert kinds(*last(script)) == ["reasoning", "message"] * (len(anew) + 1)


def test_a_process_that_died_in_a_tool_or_before_its_answer_is_seen_by_what_lacks() -> None:
    script = Told(RESPONSES).begin()
    script.user("one")
    answered(script)
    script.user("never answered")
    script.user("two")
    assert [n.run for n in tree(script.log()).order][-2:] == [0, 1]
    answered(script)
    item = {"id": "fc_1", "type": "function_call", "call_id": "c1", "name": "bash", "arguments": '{"a": 1}'}
    script.assistant(text("run"), call("c1|fc_1", a=1), stop="toolUse", providerPayload=payload(item))
    script.user("three")
    log, point = last(script)
    assert tree(log).order[-1].run == 2
    assert [m.kind for m in omp.markers(log)] == ["resume", "resume"]
    assert kinds(log, point) == ["message+"] * 3
    answered(script)
    script.user("four")
    replayed = messages(*last(script))
    at = next(i for i, item in enumerate(replayed) if item.get("type") == "function_call")
    assert replayed[at + 1]["call_id"] == "c1"
    assert replayed[at + 1]["output"].startswith("[No tool output recorded")


def test_queued_messages_are_no_sign_of_a_new_process() -> None:
    script = Told().begin()
    script.user("one")
    script.rows[-1]["timestamp"] = "2026-01-01T10:00:00.100Z"
    script.user("queued with it")
    script.rows[-1]["timestamp"] = "2026-01-01T10:00:00.200Z"
    assert {n.run for n in tree(script.log()).order} == {0}


def served(log: Log, point: Point, **choice: Any) -> Body:
    made = omp.rebuild(log, point, Config(), Learned(choice=choice))
    assert made is not None
    api = wire.detect("/v1/responses", {}, made.data)
    assert api is not None
    return make_body(made.data, api, None, "/v1/responses")


def test_a_new_process_that_the_log_does_not_show_is_a_hypothesis() -> None:
    script = Told(RESPONSES).begin()
    script.user("one")
    answered(script)
    script.user("two")
    log, point = last(script)
    body = served(log, point, native=False)
    learned = omp.learn(log, point, body, at_hand([]))
    assert learned.choice["native"] is False
    assert any("anew" in words for words in learned.hypotheses)
    rebuilt = omp.rebuild(log, point, Config(), learned)
    assert rebuilt is not None
    assert rebuilt.data == body.data
    usual = omp.learn(log, point, served(log, point), at_hand([]))
    assert "native" not in usual.choice


def test_items_are_replayed_without_what_only_an_output_has() -> None:
    blank = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": " "}]}
    said = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "so"}], "phase": "x"}
    reasoning = {"encrypted_content": "E", "type": "reasoning", "id": "r", "summary": [], "extra": 1}
    broken = {"type": "function_call", "call_id": "c9", "name": "n", "arguments": "{"}
    script = Told(RESPONSES).begin()
    script.user("one")
    script.assistant(text("so"), providerPayload=payload(reasoning, said, broken, reasoning, blank))
    script.user("two")
    script.assistant(text("never replayed"), providerPayload=payload(reasoning, blank))
    script.user("three")
    found = messages(*last(script))[1:4]
    assert list(found[0]) == ["type", "summary", "encrypted_content"]
    assert found[1] == said
    assert found[2]["role"] == "user"
    assert messages(*last(script))[4]["content"][0]["text"] == "never replayed"


def test_what_was_said_between_calls_and_their_outputs_stands_before_the_calls() -> None:
    for target, name in ((RESPONSES, "type"), (ANTHROPIC, "content")):
        script = Told(target).begin()
        script.user("one")
        script.assistant(call("t1", p=1), text("meanwhile"), stop="toolUse")
        script.result("t1", "done")
        found = messages(*last(script), native=False)[1:]
        kinds = [i[name] for i in found] if name == "type" else [b["type"] for b in found[0][name]]
        assert kinds[:2] == (["message", "function_call"] if name == "type" else ["text", "tool_use"])


def test_every_fifteenth_message_of_the_user_keeps_a_mark_and_omps_own_do_not_count() -> None:
    script = Told().begin()
    for i in range(31):
        script.user(f"q{i}")
        script.add("custom_message", customType="ext", content="note", display=True)
        script.assistant(text(f"a{i}"))
    log = script.log()
    points = omp.requests(log)

    def marked(at: int) -> list[str]:
        found = messages(log, points[at])
        return [m["content"][-1]["text"] for m in found if isinstance(m["content"], list) and _is_marked(m)]

    assert marked(13) == ["q13", "note"]
    assert marked(14) == ["q14", "note"]
    assert marked(20) == ["q14", "note"]
    assert marked(30) == ["q29", "note"]
    assert [len(messages(log, p)) for p in points[28:]] == [28 * 3 + 2, 29 * 3 + 2, 30 * 3 + 2]


def _is_marked(message: dict[str, Any]) -> bool:
    return any("cache_control" in block for block in message["content"])


def test_a_failed_result_may_hold_no_image_and_is_never_empty() -> None:
    script = Told().begin()
    script.user("one")
    script.assistant(call("t1", p=1), call("t2", p=1), stop="toolUse")
    script.say("toolResult", toolCallId="t1", content=[text("no"), PICTURE], isError=True)
    script.say("toolResult", toolCallId="t2", content=[], isError=True)
    blocks = bare(messages(*last(script)))[2]["content"]
    assert [b["type"] for b in blocks] == ["tool_result", "tool_result", "text", "image"]
    assert blocks[1]["content"] == "Tool failed with no output."


def test_google_takes_images_of_results_apart_or_inside() -> None:
    script = Told(GOOGLE).begin()
    script.user("one")
    script.assistant(call("f1", p=1), call("f2", p=2), stop="toolUse")
    script.result("f1", content=[text("see"), PICTURE])
    script.result("f2", "two")
    apart, inside = messages(*last(script))[2:], messages(*last(script), nested=True, part_ids=True)[2:]
    assert [list(p) for p in apart[0]["parts"]] == [["functionResponse"]] * 2
    assert apart[1]["parts"] == [
        {"text": "Tool result image:"},
        {"inlineData": {"mimeType": "image/png", "data": "QUJD"}},
    ]
    (content,) = inside
    assert list(content["parts"][0]["functionResponse"]) == ["name", "response", "parts", "id"]


def test_a_model_that_takes_no_images_is_given_a_notice() -> None:
    script = Told(CHAT).begin()
    script.say("user", content=[text("see"), PICTURE, PICTURE])
    script.assistant(text("a"))
    replaced, omitted = (messages(*last(script), vision=v)[0]["content"] for v in ("replaced", "omitted"))
    assert [p["text"] for p in replaced][-2:] == [
        "see",
        "[image omitted: the active model does not support image input]",
    ]
    assert [p["text"] for p in omitted][-2:] == ["see", "[image omitted: model does not support vision]"]


def test_a_string_of_a_developer_keeps_its_role_where_the_api_has_one() -> None:
    script = Told(CHAT).begin()
    script.user("one")
    script.say("developer", content="do so")
    script.assistant(text("a"))
    assert messages(*last(script))[1] == {"role": "user", "content": "do so"}
    assert messages(*last(script), developer=True)[1] == {"role": "developer", "content": "do so"}


def test_an_answer_without_a_responses_id_persisted_again_is_one_answer() -> None:
    script = Told(GOOGLE).begin()
    user = script.user("one")
    script.assistant(text("cut"), stop="length", responseId=None)
    again = json.loads(json.dumps(script.rows[-1]))
    script.rows.append({**again, "id": "again", "parentId": user})
    assert len(omp.requests(script.log())) == 1


def test_a_subagents_calls_are_its_lineage_and_its_prompt_is_logged(tmp_path: Path) -> None:
    script = Told().begin()
    script.add("session_init", systemPrompt="be a scout\n\nand brief", task="t", tools=[])
    script.user("go")
    script.assistant(text("went"))
    path = tmp_path / "2026-01-02T03-04-05-006Z_own" / "Outer" / "Outer.Inner.jsonl"
    log = Log(SessionRef("omp", "x", (path,), tmp_path))
    for entry in log_of(script.bytes()).entries:
        log.add(entry)
    (point,) = omp.requests(log)
    assert (point.kind, point.lineage) == ("subagent", "sub:Outer/Inner")
    assert omp.markers(log) == []
    for parts, equal in ((["be a scout", "and brief"], True), (["be a spy", "and brief"], False)):
        blocks = [{"type": "text", "text": t} for t in ("you are", *parts)]
        data = json.dumps({"model": "m", "messages": [], "system": blocks}, separators=(",", ":")).encode()
        api = wire.detect("/v1/messages", {}, data)
        assert api is not None
        learned = omp.learn(log, point, make_body(data, api, None, "/v1/messages"), at_hand([]))
        made = omp.rebuild(log, point, Config(), learned)
        assert made is not None
        logged = [p.data for p in made.pieces if p.provenance == "logged"]
        assert (b'"be a scout"' in logged) is equal
        assert (json.loads(made.data)["system"] == blocks) is equal


@pytest.mark.parametrize(
    ("path", "served", "rebuilt", "words"),
    [
        ("/system/0/text", "cch=1", "cch=2", "covers the whole body"),
        ("/messages/0/content/1", '{"type":"image","source"', '"}]', "an image was sent"),
        ("/messages/1/content/0/type", '"type":"thinking","th', '"type":"text"', "thinking was sent"),
    ],
)
def test_a_difference_that_omp_is_known_for_is_told(path: str, served: str, rebuilt: str, words: str) -> None:
    script = Told().begin()
    script.user("one")
    log, point = last(script)
    difference = Difference(1, 1, None, path, "content", "", served, rebuilt)
    told = omp.explain(log, point, difference, Learned(choice={"checksum": True}))
    assert told is not None
    assert words in told


def test_requests_for_handoffs_and_about_images_are_told_from_main_ones() -> None:
    asked = "<critical>\nWrite a handoff document for another instance of yourself.\nMore."
    handoff = {"messages": [{"role": "user", "content": [{"type": "text", "text": t}]} for t in ("hello", asked)]}
    image = {"system": [{"type": "text", "text": "Image-analysis assistant. Say."}], **handoff}
    image["messages"] = handoff["messages"][:1]
    found = []
    for value in (handoff, image, {"messages": handoff["messages"][:1]}):
        data = json.dumps({"model": "m", **value}, separators=(",", ":")).encode()
        api = wire.detect("/v1/messages", {}, data)
        assert api is not None
        found.append(omp.classify(make_body(data, api, None, "/v1/messages")))
    assert found == ["compaction", "side", None]
