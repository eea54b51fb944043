"""What served bodies teach of a Hermes session: the first readable one holds, torn ones teach nothing, causes name the teacher."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from ctxscope.agents import at_hand, hermes
from ctxscope.analysis.divergence import first_difference
from ctxscope.model import ApiName, Body, Learned, Point, Rebuilt
from ctxscope.wire import by_name
from ctxscope.wire.body import make_body
from tests.hermes_rows import PROMPT, Written, call, served

TOOLS = [{"type": "function", "function": {"name": "dig", "description": "d", "parameters": {}}}]
APIS: tuple[ApiName, ...] = ("openai-chat", "anthropic-messages", "openai-responses")


class Session:
    """Calls of one session and the bodies served for them."""

    def __init__(self, api: ApiName, calls: int = 3, **envelope: Any) -> None:
        self.log = Written()
        self.log.snapshot(TOOLS)
        for i in range(calls):
            self.log.user(f"ask {i}")
            self.log.says(f"answer {i}")
        self.api = api
        self.points: Sequence[Point] = self.log.points
        self.values: list[dict[str, Any]] = [{**self._plain(i), **envelope} for i in range(calls)]
        self.torn: dict[int, int] = {}

    def _plain(self, at: int) -> dict[str, Any]:
        keys = {
            "openai-chat": ("messages", "model", "max_tokens", "tools"),
            "anthropic-messages": ("max_tokens", "messages", "model", "system", "tools"),
            "openai-responses": ("include", "input", "instructions", "model", "tools"),
        }[self.api]
        body = self.log.body(Learned(keys=keys, choice={"api": self.api}), at)
        kept = {"max_tokens": 9, "include": ["x"]}
        return {k: kept[k] if k in kept else body[k] for k in keys}

    def body(self, call: int) -> Body:
        data = served(self.values[call], self.api).data
        return make_body(data[: self.torn.get(call)], by_name(self.api))

    def made(self, call: int) -> tuple[Learned, Rebuilt]:
        bodies = [(p, self.body(i)) for i, p in enumerate(self.points)]
        learned = hermes.learn(self.log.log, self.points[call], bodies[call][1], at_hand(bodies[:call]))
        return learned, self.log.rebuilt(learned, call)

    @property
    def equal(self) -> list[bool]:
        return [self.made(i)[1].data == self.body(i).data for i in range(len(self.points))]

    def cause(self, call: int) -> str | None:
        learned, made = self.made(call)
        body = self.body(call)
        found = first_difference(body, make_body(made.data, by_name(self.api), body))
        assert found is not None
        return hermes.explain(self.log.log, self.points[call], found, learned)


@pytest.mark.parametrize("api", APIS)
@pytest.mark.parametrize("share", [0.5, 0.99])
def test_a_torn_body_teaches_nothing_and_differs_where_it_is_torn(api: ApiName, share: float) -> None:
    session = Session(api)
    assert session.equal == [True] * 3
    for call_ in (0, 1):
        session.torn = {call_: int(len(served(session.values[call_], api).data) * share)}
        assert session.equal == [i != call_ for i in range(3)]
        assert session.made(call_)[1].data.startswith(session.body(call_).data)
    session.torn = {0: 3}
    first = "/include" if api == "openai-responses" else "/max_tokens"
    assert session.made(1)[0].values[first].provenance == "echoed"
    assert session.made(2)[0].values[first].provenance == "learned"


def test_a_torn_body_is_no_model_switch_and_no_new_process() -> None:
    session = Session("openai-chat")
    session.torn = {1: 60}
    for learned, _ in map(session.made, range(3)):
        assert learned.hypotheses == ()
    session.log.prompt("You help with ponds.")
    session.log.user("more")
    data = served({"messages": [{"role": "system", "content": "You help with ponds."}], "model": "other"}).data
    torn = make_body(data[:-1], by_name("openai-chat"))
    before = [(p, session.body(i)) for i, p in enumerate(session.points)]
    point = session.log.points[-1]
    learned = hermes.learn(session.log.log, point, torn, at_hand(before))
    assert learned.values["/model"].data == b'"m"'


@pytest.mark.parametrize("api", APIS)
def test_a_key_one_call_alone_carries_differs_there_and_is_told_as_the_others_not(api: ApiName) -> None:
    session = Session(api)
    session.values[1]["temperature"] = 0.5
    assert session.equal == [True, False, True]
    assert session.cause(1) == "temperature is not in the log, and the call answered at row 2 was sent without it"
    session = Session(api)
    session.values[0]["temperature"] = 0.5
    assert session.equal == [True, False, False]
    assert session.cause(2) == "temperature is not in the log, and the call answered at row 2 was sent with it"


@pytest.mark.parametrize(
    ("api", "path", "head"),
    [
        ("openai-chat", "/messages/0", {"messages": [{"role": "system", "content": "You helped with bogs."}]}),
        ("anthropic-messages", "/system", {"messages": [], "system": "You helped with bogs."}),
        ("openai-responses", "/instructions", {"input": [], "instructions": "You helped with bogs."}),
    ],
)
def test_a_prompt_the_log_lost_is_learned_where_the_api_has_it(
    api: ApiName, path: str, head: Mapping[str, Any]
) -> None:
    log = Written()
    log.turn(fresh=True, model="m")
    log.user("dig")
    log.says("done")
    log.turn(fresh=False, model="other")
    log.user("again")
    learned = log.learned(served({**head, "model": "m"}, api), at=0)
    made = log.rebuilt(learned, 0)
    assert b"You helped with bogs." in made.data
    assert PROMPT.encode() not in made.data
    (piece,) = [p for p in made.pieces if b"bogs" in p.data]
    assert (piece.path, piece.provenance) == (path, "echoed")
    assert path in {item.path for item in hermes.learnable}


def test_only_what_a_row_read_back_changes_is_called_a_form() -> None:
    log = Written()
    log.user("dig")
    log.says("", tool_calls=call("a"), reasoning_details=[{"type": "reasoning.text", "text": "hm"}])
    log.tool("a")
    log.user("more")
    learned = log.learned(served({"messages": [{"role": "system", "content": PROMPT}]}))

    def cause(change: Any) -> str | None:
        value = log.body(learned)
        change(value["messages"])
        body = served(value)
        made = make_body(log.rebuilt(learned).data, by_name("openai-chat"), body)
        found = first_difference(body, made)
        assert found is not None
        return hermes.explain(log.log, log.points[-1], found, learned)

    def unnamed(messages: list[Any]) -> None:
        del messages[3]["name"]

    def late(messages: list[Any]) -> None:
        messages[2]["reasoning_details"] = messages[2].pop("reasoning_details")

    def without_calls(messages: list[Any]) -> None:
        del messages[2]["tool_calls"]

    assert str(cause(unnamed)).startswith("live or loaded form")
    assert str(cause(late)).startswith("live or loaded form")
    assert cause(without_calls) is None
    assert cause(lambda messages: messages.pop(2)) is None
    assert cause(lambda messages: messages.insert(2, {"role": "assistant", "content": "x"})) is None


def test_a_request_that_goes_on_behind_its_rows_is_a_length_continuation() -> None:
    log = Written()
    log.user("dig")
    learned = log.learned(served({"messages": [{"role": "system", "content": PROMPT}]}))
    value = log.body(learned)
    value["messages"] += [{"role": "assistant", "content": "cut"}, {"role": "user", "content": "Go on."}]
    body = served(value)
    found = first_difference(body, make_body(log.rebuilt(learned).data, by_name("openai-chat"), body))
    assert found is not None
    assert str(hermes.explain(log.log, log.points[-1], found, learned)).startswith("length continuation")
