"""Forms that a history does not tell: empty reasoning, frames, images, carried thinking, and files written again later."""

from __future__ import annotations

from typing import Any

import pytest

from ctxscope.agents import at_hand, pydantic_ai
from ctxscope.model import Config, Learned, Rebuilt
from tests.pydantic_ai_cases import alone, asked, body, call, log_of, prompt, rebuilt, returned, said, stored, text

DATA = {"kind": "binary", "data": "-_8=", "media_type": "image/png", "identifier": "f1", "vendor_metadata": None}
LINK = {"kind": "image-url", "url": "https://example.com/leaf.png", "media_type": "image/png", "identifier": "f2"}
NOTE = "When a user message, a file or a tool result looks odd, that is said in a note."
LEADING = "Mid-conversation system messages from the application arrive inside user turns."


def history(*messages: dict[str, Any]) -> Any:
    return log_of(stored(*messages))


def chat(name: str, *parts: dict[str, Any], **more: Any) -> dict[str, Any]:
    return said(f"chatcmpl-{name}", *parts, provider="openai", **more)


def thought(content: str, field: str = "reasoning") -> dict[str, Any]:
    return {"part_kind": "thinking", "content": content, "id": field, "provider_name": "openai"}


def last(log: Any, *served: dict[str, Any], api: Any = "openai-chat") -> Rebuilt:
    return rebuilt(log, *(body(value, api) for value in served))[-1]


# --- images ----------------------------------------------------------------------------------------------------------


def test_images_of_a_prompt_are_sent_in_the_plain_alphabet() -> None:
    log = history(asked(prompt(["see", DATA, LINK])), chat("a", text("ok")))
    (point,) = pydantic_ai.requests(log)
    assert alone(log, point, "openai-chat")["messages"][1]["content"] == [
        {"text": "see", "type": "text"},
        {"image_url": {"url": "data:image/png;base64,+/8="}, "type": "image_url"},
        {"image_url": {"url": "https://example.com/leaf.png"}, "type": "image_url"},
    ]
    assert alone(log, point, "anthropic-messages")["messages"][0]["content"] == [
        {"text": "see", "type": "text"},
        {"source": {"data": "+/8=", "media_type": "image/png", "type": "base64"}, "type": "image"},
        {"source": {"type": "url", "url": "https://example.com/leaf.png"}, "type": "image"},
    ]


def test_how_closely_an_image_is_looked_at_is_sent_in_chat() -> None:
    log = history(asked(prompt([{**LINK, "vendor_metadata": {"detail": "low"}}])), chat("a", text("ok")))
    content = alone(log, pydantic_ai.requests(log)[0], "openai-chat")["messages"][1]["content"]
    assert content[0]["image_url"] == {"url": "https://example.com/leaf.png", "detail": "low"}


@pytest.mark.parametrize("item", [{**DATA, "media_type": "audio/wav"}, {**LINK, "force_download": True}, {"kind": "x"}])
def test_other_files_are_not_rebuilt(item: dict[str, Any]) -> None:
    log = history(asked(prompt([item])), chat("a", text("ok")))
    made = pydantic_ai.rebuild(log, pydantic_ai.requests(log)[0], Config(), Learned(choice={"api": "openai-chat"}))
    assert made is None
    assert any("is not rebuilt" in notice for notice in pydantic_ai.notices(log))


def with_tool_image() -> Any:
    return history(
        asked(prompt("look")),
        chat("a", call("c1", {}), call("c2", {})),
        asked(returned("c1", ["one", DATA]), returned("c2", "two")),
        chat("b", text("ok")),
    )


def test_images_of_a_tool_follow_its_results_in_chat() -> None:
    log = with_tool_image()
    messages = alone(log, pydantic_ai.requests(log)[1], "openai-chat")["messages"]
    assert messages[3:] == [
        {"role": "tool", "tool_call_id": "c1", "content": '["one","See file f1."]'},
        {"role": "tool", "tool_call_id": "c2", "content": "two"},
        {
            "role": "user",
            "content": [
                {"text": '<tool_result tool_name="look" tool_call_id="c1" file_id="f1">', "type": "text"},
                {"image_url": {"url": "data:image/png;base64,+/8="}, "type": "image_url"},
                {"text": "</tool_result>", "type": "text"},
            ],
        },
    ]


def test_images_of_a_tool_stand_in_its_result_for_anthropic() -> None:
    log = with_tool_image()
    (result, _) = alone(log, pydantic_ai.requests(log)[1], "anthropic-messages")["messages"][2]["content"]
    assert [block["type"] for block in result["content"]] == ["text", "image"]


# --- frames ----------------------------------------------------------------------------------------------------------


def feedback(content: Any, cause: str = "validation_error") -> dict[str, Any]:
    return {"part_kind": "retry-feedback", "content": content, "retry": {"cause": cause, "attempt": 1}}


def refused(provider: str = "openai") -> Any:
    errors = [
        {"type": "missing", "loc": ["name"], "msg": "Field required", "input": {"n": 1}, "ctx": {"x": 1}},
        {"type": "missing", "loc": ["size"], "msg": "Field required", "input": {"n": 1}},
    ]
    first = "chatcmpl-" if provider == "openai" else ""
    return history(
        asked(prompt("look")),
        said(f"{first}a", text("plain"), provider=provider),
        asked(feedback(errors)),
        said(f"{first}b", text("again"), provider=provider),
        asked(feedback("say more", "model_retry")),
        said(f"{first}c", text("ok"), provider=provider),
    )


def test_feedback_is_fenced_and_says_what_failed_once() -> None:
    log = refused()
    messages = alone(log, pydantic_ai.requests(log)[2], "openai-chat")["messages"]
    first, second = (m["content"].split("\n") for m in (messages[3], messages[5]))
    assert first[0] == second[0]
    assert first[1:] == [
        "<pyai:validation_errors>",
        (
            '[{"type":"missing","loc":["name"],"msg":"Field required","input":{"n":1}},'
            '{"type":"missing","loc":["size"],"msg":"Field required"}]'
        ),
        "</pyai:validation_errors>",
    ]
    assert second[1:] == ["<pyai:retry_feedback>", "say more", "</pyai:retry_feedback>"]


def test_feedback_of_another_cause_is_not_rebuilt() -> None:
    log = history(asked(prompt("look")), chat("a", text("")), asked(feedback("nothing", "no_output")), chat("b"))
    assert pydantic_ai.rebuild(log, pydantic_ai.requests(log)[1], Config(), Learned()) is None


def test_what_frames_mean_is_learned_and_said_before_the_first() -> None:
    log = refused()
    points = pydantic_ai.requests(log)
    plain = [alone(log, p, "openai-chat") for p in points]
    note = {"role": "system", "content": NOTE}
    served = [plain[0], *({**v, "messages": [*v["messages"][:3], note, *v["messages"][3:]]} for v in plain[1:])]
    made = rebuilt(log, *(body(v) for v in served))
    assert [m.data for m in made] == [body(v).data for v in served]
    held = [[p.provenance for p in m.pieces if p.path == "/messages/*/content"] for m in made]
    assert held == [[], ["echoed"], ["learned"]]
    silent = rebuilt(log, *(body(v) for v in (served[0], served[1], plain[2])))[2]
    assert silent.data == body(served[2]).data  # it was said once: that it is not said again shows


def test_where_no_system_message_is_taken_later_it_stands_before_all() -> None:
    log = refused()
    plain = [alone(log, p, "openai-chat") for p in pydantic_ai.requests(log)]
    note = {"role": "system", "content": LEADING}
    served = [plain[0], *({**v, "messages": [note, *v["messages"]]} for v in plain[1:])]
    assert [m.data for m in rebuilt(log, *map(body, served))] == [body(v).data for v in served]


def test_anthropic_is_told_it_in_the_system_prompt() -> None:
    log = refused("anthropic")
    plain = [alone(log, p, "anthropic-messages") for p in pydantic_ai.requests(log)]
    note = {"type": "text", "text": LEADING}
    served = [plain[0], *({**v, "system": [note, *v["system"]]} for v in plain[1:])]
    bodies = [body(v, "anthropic-messages") for v in served]
    made = rebuilt(log, *bodies)
    assert [m.data for m in made] == [b.data for b in bodies]
    assert [p.provenance for p in made[2].pieces if p.path == "/system/*/text"] == ["learned"]


def test_the_names_of_frames_may_have_a_prefix() -> None:
    log = with_tool_image()
    served = alone(log, pydantic_ai.requests(log)[1], "openai-chat")
    for block in served["messages"][-1]["content"][::2]:
        block["text"] = block["text"].replace("tool_result", "pyai:tool_result", 1)
    first = alone(log, pydantic_ai.requests(log)[0], "openai-chat")
    assert last(log, first, served).data == body(served).data


# --- empty reasoning -------------------------------------------------------------------------------------------------


def reasoned() -> Any:
    """Two turns: a call without reasoning, one with it, and one without again, behind which the user spoke no more."""
    return history(
        asked(prompt("one")),
        chat("a", call("c1", {})),
        asked(returned("c1", "1")),
        chat("b", thought("hm"), call("c2", {})),
        asked(returned("c2", "2")),
        chat("c", text("so")),
        asked(prompt("two")),
        chat("d", call("c3", {})),
        asked(returned("c3", "3")),
        chat("e", text("done")),
    )


def filled(value: dict[str, Any], *calls: str) -> dict[str, Any]:
    """A body with an empty reasoning behind some calls."""
    found = []
    for message in value["messages"]:
        names = {c["id"] for c in message.get("tool_calls", ())}
        found.append({**message, "reasoning": ""} if names & set(calls) else message)
    return {**value, "messages": found}


@pytest.mark.parametrize(
    "rule",
    [
        {"c3": (4,)},  # tail: only behind the newest message of the user's
        {"c1": (2, 3, 4), "c3": (4,)},  # if there is any reasoning
        {"c1": (1, 2, 3, 4), "c3": (4,)},  # always
        {},
    ],
)
def test_each_rule_for_empty_reasoning_is_told_by_the_bodies_that_show_it(rule: dict[str, tuple[int, ...]]) -> None:
    log = reasoned()
    plain = [alone(log, p, "openai-chat") for p in pydantic_ai.requests(log)]
    served = [filled(v, *(c for c, at in rule.items() if n in at)) for n, v in enumerate(plain)]
    if "c1" not in rule and rule:
        served[2] = filled(plain[2], "c1")  # behind the newest message of the user's as well, then
    assert [m.data for m in rebuilt(log, *map(body, served))] == [body(v).data for v in served]


def test_a_rule_that_was_shown_is_held() -> None:
    log = reasoned()
    plain = [alone(log, p, "openai-chat") for p in pydantic_ai.requests(log)]
    served = [plain[0], plain[1], filled(plain[2], "c1"), plain[3], plain[4]]
    made = rebuilt(log, *map(body, served))
    assert made[4].data == body(filled(plain[4], "c3")).data
    before = list(zip(pydantic_ai.requests(log), map(body, served), strict=True))
    learned = pydantic_ai.learn(log, before[4][0], before[4][1], at_hand(before[:4]))
    assert any("behind the newest user message" in words for words in learned.hypotheses)


# --- other providers' thinking, arguments ----------------------------------------------------------------------------


def switched() -> Any:
    return history(
        asked(prompt("one")),
        chat("a", thought("hm"), call("c1", '{"q": "a"}')),
        asked(returned("c1", "1")),
        said("b", text("so")),
    )


def test_another_provider_s_thinking_may_go_in_a_message_of_the_user_s() -> None:
    log = switched()
    point = pydantic_ai.requests(log)[1]
    value = alone(log, point, "anthropic-messages")
    said_inside = value["messages"][1]["content"].pop(0)
    assert said_inside["text"] == "<thinking>\nhm\n</thinking>"
    away = {"text": "<assistant_thinking>\nhm\n</assistant_thinking>", "type": "text"}
    value["messages"].insert(1, {"role": "user", "content": [away]})
    served = body(value, "anthropic-messages")
    learned = pydantic_ai.learn(log, point, served, at_hand(()))
    made = pydantic_ai.rebuild(log, point, Config(), learned)
    assert made is not None
    assert made.data == served.data
    assert "thinking of another provider" in "".join(learned.hypotheses)


def test_arguments_as_they_were_written_are_told_though_others_are_written_anew() -> None:
    log = history(
        asked(prompt("one")),
        chat("a", call("c1", {"q": "a"}), call("c2", '{"q": "a"}')),
        asked(returned("c1", "1"), returned("c2", "2")),
        chat("b", text("so")),
    )
    plain = [alone(log, p, "openai-chat") for p in pydantic_ai.requests(log)]
    plain[1]["messages"][2]["tool_calls"][1]["function"]["arguments"] = '{"q": "a"}'
    assert last(log, *plain).data == body(plain[1]).data


# --- files written again later ---------------------------------------------------------------------------------------


def at(minute: int, message: dict[str, Any]) -> dict[str, Any]:
    return {**message, "timestamp": f"2026-02-01T09:{minute:02}:00Z"}


def test_a_history_that_was_trimmed_does_not_change_what_was_sent_before() -> None:
    one = [at(0, asked(prompt("one"))), at(1, chat("a", text("1")))]
    two = [at(2, asked(prompt("two"))), at(3, chat("b", text("2")))]
    three = [at(4, asked(prompt("three"))), at(5, chat("c", text("3 with many more words to it")))]
    log = log_of(stored(*two, *three), stored(*one), stored(*one, *two))
    points = pydantic_ai.requests(log)
    assert [len(p.context) for p in points] == [1, 3, 3]
    assert [p.turn for p in points] == [1, 2, 3]
    said_then = [m.get("content") for m in alone(log, points[1], "openai-chat")["messages"]]
    assert said_then == ["Be brief.", "one", "1", "two"]


def test_a_dynamic_prompt_is_what_it_was_when_a_file_was_written() -> None:
    def dynamic(words: str) -> dict[str, Any]:
        return {"part_kind": "system-prompt", "content": words, "dynamic_ref": "place"}

    first = at(1, chat("a", text("1")))
    log = log_of(
        stored(at(0, asked(dynamic("late"), prompt("one"))), first, at(2, asked(prompt("two"))), at(3, chat("b"))),
        stored(at(0, asked(dynamic("early"), prompt("one"))), first),
    )
    contents = [alone(log, p, "openai-chat")["messages"][0]["content"] for p in pydantic_ai.requests(log)]
    assert contents == ["early", "late"]


def test_of_files_that_only_disagree_in_their_words_the_fullest_counts() -> None:
    first = at(1, chat("a", text("1")))
    log = log_of(
        stored(at(0, asked(prompt("ome"))), first, at(2, asked(prompt("two"))), at(3, chat("b"))),
        stored(at(0, asked(prompt("one"))), first),
    )
    assert alone(log, pydantic_ai.requests(log)[0], "openai-chat")["messages"][1]["content"] == "ome"
