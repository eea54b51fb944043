"""What a run is sent that goes on with a stored history: all of it, and a prompt behind it."""

from __future__ import annotations

import json

from ctxscope.agents import Log, at_hand, pydantic_ai
from ctxscope.model import NEXT_INPUT, Config, Learned, Place, Record
from tests.pydantic_ai_cases import REF, asked, body, call, log_of, prompt, returned, said, stored, text
from tests.resumed_logs import foretold, resumed

TALK = [asked(prompt("hi")), said("chatcmpl-1", text("Hello."), provider="openai")]
SENT = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "hi"},
    {"role": "assistant", "content": "Hello."},
    {"role": "user", "content": NEXT_INPUT},
]


def lines_of(*runs: bytes) -> Log:
    """A file with a line a run."""
    log = Log(REF)
    for number, line in enumerate(runs, 1):
        for entry in pydantic_ai.entries(Record("history", str(number), Place(0, f"line {number}"), line)):
            log.add(entry)
    return log


def test_the_next_prompt_stands_behind_the_history() -> None:
    assert foretold(pydantic_ai, log_of(stored(*TALK)))["messages"] == SENT


def test_it_is_a_line_more_where_each_run_is_a_line() -> None:
    log = lines_of(stored(*TALK))
    assert foretold(pydantic_ai, log)["messages"] == SENT
    (record,) = resumed(pydantic_ai, log).records
    assert (record.key, record.place.at) == ("2", "line 2")


def test_of_several_files_the_newest_goes_on() -> None:
    later = [asked(prompt("more")), said("chatcmpl-2", text("Yes."), provider="openai")]
    for message in later:
        message["timestamp"] = "2026-02-01T10:00:00Z"
    log = log_of(stored(*TALK, *later), stored(*TALK))
    found = foretold(pydantic_ai, log)["messages"]
    assert [m["content"] for m in found[-3:]] == ["more", "Yes.", NEXT_INPUT]


def test_parameters_are_those_of_the_calls_before() -> None:
    log = log_of(stored(*TALK))
    served = body({"model": "fern", "stream": False, "messages": SENT[:2], "temperature": 0})
    found = foretold(pydantic_ai, log, [(pydantic_ai.requests(log)[0], served)])
    assert list(found) == ["model", "stream", "messages", "temperature"]
    assert found["messages"] == SENT


def test_the_last_body_says_nothing_of_empty_reasoning_in_the_next() -> None:
    thought = {"part_kind": "thinking", "content": "hm", "id": "reasoning", "provider_name": "openai"}
    used = [asked(prompt("look")), said("chatcmpl-2", thought, call("c1", "{}"), provider="openai")]
    used += [asked(returned("c1", "1")), said("chatcmpl-3", call("c2", "{}"), provider="openai")]
    log = log_of(stored(*TALK, *used, asked(returned("c2", "2")), said("chatcmpl-4", text("So."), provider="openai")))
    made = [pydantic_ai.rebuild(log, p, Config(), Learned()) for p in pydantic_ai.requests(log)]
    bodies = [body(json.loads(one.data)) for one in made if one is not None]
    last = json.loads(bodies[-1].data)
    last["messages"][-2]["reasoning"] = ""  # where the user said nothing since
    calls = list(zip(pydantic_ai.requests(log), [*bodies[:-1], body(last)], strict=True))
    assert not any(m.get("reasoning") == "" for m in foretold(pydantic_ai, log, calls)["messages"])


def test_what_cannot_be_said_is_said() -> None:
    log = log_of(stored(*TALK))
    told = resumed(pydantic_ai, log).unknown
    assert any("trims" in words for words in told)
    assert any("instructions" in words for words in told)
    bare = log_of(stored(*({**m, "instructions": None} if m["kind"] == "request" else m for m in TALK)))
    assert not any("instructions" in words for words in resumed(pydantic_ai, bare).unknown)
    assert not resumed(pydantic_ai, log).changes


def test_nothing_is_foretold_where_no_run_could_go_on_or_which_history_is_not_known() -> None:
    open_call = [*TALK, asked(prompt("look")), said("chatcmpl-2", call("c1", "{}"), provider="openai")]
    assert pydantic_ai.resume(log_of(stored(*open_call)), at_hand()) is None
    assert pydantic_ai.resume(log_of(stored(*open_call, asked(returned("c1", "seen")))), at_hand()) is None
    assert pydantic_ai.resume(log_of(stored(*TALK)[:-1]), at_hand()) is None  # breaks off
    assert pydantic_ai.resume(log_of(stored(*TALK), stored(asked(prompt("ho")), TALK[1])), at_hand()) is None
    assert pydantic_ai.resume(log_of(b"[]"), at_hand()) is None
    assert json.loads(resumed(pydantic_ai, log_of(stored(*TALK))).records[0].value)[:2] == TALK
