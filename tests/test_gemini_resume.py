"""What the Gemini CLI would send if it were started anew: the chat file loaded, results twice, signatures lost."""

from __future__ import annotations

from ctxscope.agents import at_hand, gemini
from ctxscope.agents.gemini.parts import SYNTHETIC
from ctxscope.model import NEXT_INPUT
from tests.gemini_cases import CONTEXT, Chat, body_of, call, log_of, result, sent_call, sent_result
from tests.resumed_logs import foretold, gone_on, resumed

PLACE = {"parts": CONTEXT["content"], "role": "user"}
INPUT = {"text": NEXT_INPUT}


def used(output: str = "seen") -> dict[str, object]:
    """A tool call as it is logged once the tool ran."""
    return {"id": "look__c1", "name": "look", "args": {}, "result": [result("c1", output)]}


def looked() -> Chat:
    """A turn with a tool."""
    chat = Chat().process()
    chat.user("u1", "Look.")
    chat.answer("g1", "I look.", thoughts=[{"subject": "", "description": "hm"}], toolCalls=[used()])
    chat.result("r1", "c1")
    chat.answer("g2", "Seen.")
    return chat


def parts(chat: Chat) -> list[tuple[str, list[dict[str, object]]]]:
    return [(c["role"], c["parts"]) for c in foretold(gemini, chat.log())["contents"]]


def test_results_stand_there_twice_and_signatures_are_a_constant() -> None:
    call = sent_call("c1", signature=SYNTHETIC)
    assert parts(looked()) == [
        ("user", [*CONTEXT["content"], {"text": "Look."}]),
        ("model", [{"text": "I look."}, call]),
        ("user", [sent_result("c1"), sent_result("c1")]),
        ("model", [{"text": "Seen."}]),
        ("user", [INPUT]),
    ]


def test_what_a_process_before_had_loaded_is_not_doubled_again() -> None:
    chat = looked()
    grown = gone_on(gemini, chat.log(), resumed(gemini, chat.log()))
    rows = [dict(entry.data) for entry in grown.entries]
    rows[-1] |= {"id": "u2", "content": [{"text": "More."}]}
    chat = Chat(rows)
    chat.answer("g3", "So.", toolCalls=[{**used("anew"), "id": "look__c2", "result": [result("c2", "anew")]}])
    chat.result("r2", "c2", output="anew")
    chat.answer("g4", "Done.")
    found = parts(chat)
    assert found[2] == ("user", [sent_result("c1"), sent_result("c1")])
    assert found[-3] == ("user", [sent_result("c2", "anew")] * 2)
    assert any("one tool result more is sent twice" in words for words in resumed(gemini, chat.log()).changes)


def test_a_message_that_was_written_anew_with_its_parts_has_each_call_once() -> None:
    chat = looked()
    written = {**chat.rows[3], "content": [{"text": "I look."}, call("c1")]}
    chat.messages([CONTEXT, chat.rows[2], written, chat.rows[4], chat.rows[5]])
    assert parts(chat)[1] == ("model", [{"text": "I look."}, sent_call("c1")])
    assert parts(chat)[2] == ("user", [sent_result("c1"), sent_result("c1")])


def test_what_changes_is_counted() -> None:
    changes = resumed(gemini, looked().log()).changes
    assert any("signatures of one tool call are lost" in words for words in changes)
    assert any("one tool result more is sent twice" in words for words in changes)
    plain = Chat().process()
    plain.user("u1", "Hello.")
    plain.answer("g1", "Hello.")
    assert not resumed(gemini, plain.log()).changes


def test_what_begins_like_an_order_is_left_out() -> None:
    chat = looked()
    chat.user("u2", "/etc is full")
    chat.answer("g3", "It is.")
    found = parts(chat)
    assert found[-2] == ("model", [{"text": "Seen."}, {"text": "It is."}])
    assert any("one message" in words and "left out" in words for words in resumed(gemini, chat.log()).changes)


def test_a_message_in_a_newer_version_stands_where_the_first_did_and_what_was_taken_back_is_gone() -> None:
    chat = looked()
    chat.user("u2", "Wrong.")
    chat.add(**{"$rewindTo": "u2"})
    assert parts(chat)[-1] == ("user", [INPUT])
    chat.answer("g2", "Seen, twice.")
    assert parts(chat)[-2] == ("model", [{"text": "Seen, twice."}])


def test_an_input_nobody_answered_is_one_with_the_next() -> None:
    chat = looked()
    chat.user("u2", "And?")
    assert parts(chat)[-1] == ("user", [{"text": "And?"}, INPUT])


def test_head_and_keys_are_those_of_the_calls_before() -> None:
    chat = Chat().process()
    chat.user("u1", "Hello.")
    chat.answer("g1", "Hello.")
    log = chat.log()
    calls = [(gemini.requests(log)[0], body_of([{"parts": [*CONTEXT["content"], {"text": "Hello."}], "role": "user"}]))]
    found = foretold(gemini, log, calls)
    assert list(found) == ["contents", "systemInstruction", "tools", "generationConfig"]
    assert found["contents"][-1]["parts"] == [INPUT]
    assert any("names the day" in words for words in resumed(gemini, log, calls).unknown)


def test_nothing_is_foretold_behind_an_open_tool_call_of_a_subagent_or_of_an_empty_chat() -> None:
    chat = looked()
    chat.user("u2", "Again.")
    chat.answer("g3", "", ("c9", {}))
    assert gemini.resume(chat.log(), at_hand()) is None
    rows = looked().rows
    rows[0]["kind"] = "subagent"
    assert gemini.resume(log_of(rows), at_hand()) is None
    assert gemini.resume(Chat().process().log(), at_hand()) is None
    assert gemini.resume(log_of([]), at_hand()) is None
