"""The same said in another way: ids of tool calls made anew, numbers, nulls, what only routes (reference §6, §12 C09, C19, C23).

Where §6 says "?", a server that shows the difference and one that does not are planted: usage decides.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from dataclasses import replace

from tests.planted.chat_api import ChatApi
from tests.planted.dialects import JSON, dumps
from tests.planted.families import anthropic, gpt54_chat, gpt56_responses, kimi, openrouter, stranger_chat, vllm
from tests.planted.shapes import ANY, LIKELY, SURE, UNSURE, Transition

ECHO = "assistant_echo_mismatch"
_IDS = "§6 tool-call ids; §12 C19: id change"


def transitions() -> Iterator[Transition]:
    yield from _ids()
    yield from _numbers()
    yield from _nulls()
    yield from _routes()


def new_ids(body: JSON, rename: Callable[[str], str] = lambda name: f"{name[:-4]}beef") -> JSON:
    """A body whose tool calls, and the results that name them, have other ids."""
    keys = {"tool_call_id", "tool_use_id", "call_id"}

    def walk(value: object) -> object:
        if isinstance(value, list):
            return [walk(item) for item in value]
        if not isinstance(value, dict):
            return value
        calls = "function" in value or "input" in value
        return {k: rename(v) if k in keys or (k == "id" and calls) else walk(v) for k, v in value.items()}

    return {key: walk(value) if key == "messages" else value for key, value in body.items()}


def _ids() -> Iterator[Transition]:
    tape = kimi()
    assert isinstance(tape.dialect, ChatApi)
    tape.dialect.shows_ids = True
    body = tape.begin()
    call = tape.ask(new_ids(body))
    tape.note(tape.broken(call, ECHO, "/messages/2"))
    yield tape.done("kimi/tool_call_ids", f"{_IDS}; Kimi K2's template renders ids")
    tape = gpt54_chat()
    body = tape.begin()
    call = tape.ask(new_ids(body))
    tape.note(tape.warm(call, 3))
    yield tape.done("gpt-5.4/chat/tool_call_ids_unseen", f"{_IDS}; harmony does not render them")
    for shown in (True, False):
        tape = anthropic()
        body = tape.begin()
        changed = new_ids(body)
        call = tape.ask(changed, rendered=changed if shown else body)
        told = tape.broken(call, ECHO, "/messages/1", confidence=UNSURE) if shown else tape.warm(call, 3)
        tape.note(told)
        yield tape.done(f"anthropic/tool_call_ids_{'seen' if shown else 'unseen'}", f"{_IDS}: not known of Anthropic")
    tape = vllm(silent=True)
    body = tape.begin()
    call = tape.ask(new_ids(body))
    told = tape.broken(call, ECHO, "/messages/2", confidence=UNSURE)
    tape.note(replace(told, verdict="unknown", expected_read=None, lost=None))
    yield tape.done("vllm/tool_call_ids_not_reported", f"{_IDS}: template-dependent, and nothing reported tells")
    tape = anthropic()
    body = tape.begin()
    changed = new_ids(body)
    tape.dialect.set_text(changed["messages"][4], "Something else entirely, and much shorter.")
    call = tape.ask(changed, rendered=changed)
    told = tape.broken(call, None, None, ECHO, "history_rewritten", confidence=UNSURE)
    tape.note(replace(told, expected_read=None))
    yield tape.done("anthropic/tool_call_ids_and_rewritten", "§12: when two causes fit, both are given")


def _numbers() -> Iterator[Transition]:
    tape = vllm()
    body = tape.begin()
    function = body["messages"][2]["tool_calls"][0]["function"]
    function["arguments"] = function["arguments"].replace("40", "40.0")
    call = tape.ask(body)
    tape.note(tape.broken(call, ECHO, "/messages/2"))
    yield tape.done("vllm/arguments_number", "§6: parsed to dict: 1 against 1.0 is visible")
    tape = vllm()
    assert isinstance(tape.dialect, ChatApi)
    body = tape.opening()
    for turn in range(4):
        spelled = copy.deepcopy(body)
        for message in spelled["messages"]:
            for call_ in message.get("tool_calls", ()):
                text = call_["function"]["arguments"]
                call_["function"]["arguments"] = text.replace("40", "4e1" if turn == 3 else "40.0")
        call = tape.ask(spelled)
        tape.note(tape.cold(call) if turn == 0 else tape.warm(call, turn))
        body = tape.dialect.grow(body, call.answer, f"word {turn} " * 300)
    yield tape.done("vllm/arguments_float", "§6: parsed to dict: 1e3 and 1000.0 are one")
    for shown in (True, False):
        tape = anthropic()
        opening = tape.opening()
        tape.dialect.schema_of(opening["tools"][2])["properties"]["limit"]["maximum"] = 40
        body = tape.begin(body=opening)
        changed = copy.deepcopy(body)
        tape.dialect.schema_of(changed["tools"][2])["properties"]["limit"]["maximum"] = 40.0
        call = tape.ask(changed, rendered=changed if shown else body)
        told = tape.broken(call, "tool_schema_changed", "/tools/2", confidence=UNSURE) if shown else tape.warm(call, 3)
        tape.note(told)
        name = f"anthropic/schema_number_{'seen' if shown else 'unseen'}"
        yield tape.done(name, "§6: 1 against 1.0 in schema or input: ? v")


def _nulls() -> Iterator[Transition]:
    tape = gpt54_chat()
    body = tape.begin()
    body["messages"][2]["refusal"] = None
    call = tape.ask(body)
    tape.note(tape.warm(call, 3))
    yield tape.done("gpt-5.4/chat/null_member_unseen", "§6 has no row for it; a read of all shows it is not seen")
    tape = stranger_chat(silent=True)
    body = tape.begin()
    body["messages"][2]["refusal"] = None
    call = tape.ask(body)
    told = tape.broken(call, ECHO, "/messages/2", confidence=UNSURE)
    tape.note(replace(told, verdict="unknown", expected_read=None, lost=None))
    yield tape.done("third_party_chat/null_member_not_reported", "§6 has no row for it, and nothing reported tells")


def _spaced(body: JSON) -> bytes:
    kept = {k: v for k, v in body.items() if k != "model" and (v or k != "stream")}
    return dumps(kept | {"anthropic_version": "vertex-2023-10-16"})


def _routes() -> Iterator[Transition]:
    model = "claude-opus-5"
    tape = anthropic(model)
    tape.provider, tape.host = "anthropic_vertex", "us-east5-aiplatform.googleapis.com"
    tape.dialect.path = f"/v1/projects/p-17/locations/us-east5/publishers/anthropic/models/{model}:streamRawPredict"
    tape.spell = lambda n, body: _spaced(body).replace(b'":', b'": ') if n == 4 else _spaced(body)
    body = tape.begin()
    tape.rules.forget()
    call = tape.ask(body)
    tape.note(tape.missed(call, "routing_changed"))
    assert json.loads(tape.exchanges[-1].request)["messages"] == body["messages"]
    yield tape.done("vertex/whitespace", "§6: white space in the hashed head of the body may route elsewhere [I]")
    for make, prefix in ((openrouter, "openrouter"), (gpt54_chat, "gpt-5.4/chat")):
        tape = make()
        body = tape.begin(3, tape.opening() | {"user": "one"})
        tape.rules.forget()
        call = tape.ask(body | {"user": "two"})
        tape.note(tape.missed(call, "routing_changed", "unexplained_miss", confidence=SURE | LIKELY))
        yield tape.done(f"{prefix}/user_changed", "§6: user ids are benign, or route")
    tape = gpt56_responses()
    body = tape.begin(3, tape.opening() | {"safety_identifier": "one"})
    call = tape.ask(body | {"safety_identifier": "two"})
    tape.note(replace(tape.warm(call, 3), confidence=ANY))
    yield tape.done("gpt-5.6/responses/user_id_benign", "§3.1: safety_identifier is not prefix-visible")
