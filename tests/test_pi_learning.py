"""What pi's served bodies teach: the first readable one of a kind holds, also for what it lacks; where the log tells, it wins."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest

from ctxscope.agents import at_hand, pi
from ctxscope.analysis.divergence import first_difference
from ctxscope.model import Body, Learned, Point, Rebuilt
from ctxscope.wire import by_name, detect
from ctxscope.wire.body import make_body
from tests.pi_sessions import ANTHROPIC, CHAT, GOOGLE, RESPONSES, Script, log_of, text

PATHS = {ANTHROPIC: "/v1/messages", CHAT: "/v1/chat/completions", RESPONSES: "/v1/responses"}
EFFORT = {CHAT: b'"reasoning_effort":"medium"', RESPONSES: b'"effort":"medium"'}
BEFORE = {ANTHROPIC: b'"stream":true', CHAT: b'"stream":true', RESPONSES: b'"stream":true'}


class Session:
    """Calls of one session, their bodies as pi sends them until a test changes one."""

    def __init__(
        self,
        target: tuple[str, str, str],
        *,
        calls: int = 3,
        old: bool = False,
        level: str = "medium",
        models: object = None,
    ) -> None:
        script = Script(target).begin(level)
        if not old:
            script.system(preamble="help")
        for i in range(calls):
            script.user(f"ask {i}")
            script.assistant(text(f"answer {i}"), total=10)
        for row in script.rows if old else ():
            row.get("message", {}).pop("rawStopReason", None)
        self.target = target
        self.log = log_of(script.bytes(), side={"models": json.dumps(models).encode()} if models else None)
        self.points: Sequence[Point] = pi.requests(self.log)
        self.sent = [self._plain(p) for p in self.points]

    def _plain(self, point: Point) -> bytes:
        made = pi.rebuild(self.log, point, pi.config(self.log), Learned())
        assert made is not None
        return made.data

    def put(self, inside: bytes, *calls: int) -> None:
        """A key more in some calls, or in all."""
        mark = BEFORE[self.target]
        self.change(mark, mark + b"," + inside, *calls)

    def change(self, old: bytes, new: bytes, *calls: int) -> None:
        for i in calls or range(len(self.sent)):
            assert old in self.sent[i]
            self.sent[i] = self.sent[i].replace(old, new, 1)

    def tear(self, call: int) -> None:
        self.sent[call] = self.sent[call][:-1]

    def body(self, call: int) -> Body:
        data = self.sent[call]
        return make_body(data, detect(PATHS[self.target], {}, data))

    def made(self, call: int) -> tuple[Learned, Rebuilt]:
        bodies = [(p, self.body(i)) for i, p in enumerate(self.points)]
        learned = pi.learn(self.log, self.points[call], bodies[call][1], at_hand(bodies[:call]))
        made = pi.rebuild(self.log, self.points[call], pi.config(self.log), learned)
        assert made is not None
        return learned, made

    @property
    def equal(self) -> list[bool]:
        return [self.made(i)[1].data == self.sent[i] for i in range(len(self.sent))]

    def cause(self, call: int) -> tuple[str, str | None]:
        """Path of the first difference of a call, and why as pi's module says."""
        learned, made = self.made(call)
        body = self.body(call)
        found = first_difference(body, make_body(made.data, by_name(body.api or ""), body))
        assert found is not None
        return found.path, pi.explain(self.log, self.points[call], found, learned)

    def borrowed(self, call: int) -> dict[str, str]:
        return {p.path: p.provenance for p in self.made(call)[1].pieces if p.provenance in {"learned", "echoed"}}


@pytest.mark.parametrize(
    "option",
    [
        b'"tool_choice":{"type":"any"}',
        b'"output_config":{"effort":"low"}',
        b'"temperature":0.2',
        b'"service_tier":"auto"',
        b'"metadata":{"user_id":"x"}',
        b'"prompt_cache_retention":"24h"',
    ],
)
def test_an_option_that_only_a_later_call_carries_is_no_option_of_the_session(option: bytes) -> None:
    session = Session(ANTHROPIC)
    session.put(option, 1)
    assert session.equal == [True, False, True]
    name = option[1:].partition(b'"')[0].decode()
    assert session.cause(1) == (
        f"/{name}",
        f"{name} is not in the log, and the call answered at line 6 was sent without it",
    )


def test_an_option_of_the_first_call_holds_for_the_others_which_say_who_taught_it() -> None:
    session = Session(ANTHROPIC)
    session.put(b'"temperature":0.2', 0, 2)
    assert session.equal == [True, False, True]
    assert [session.borrowed(i).get("/temperature") for i in range(3)] == ["echoed", "learned", "learned"]
    assert session.cause(1)[1] == "temperature is not in the log, and the call answered at line 6 was sent with it"
    session.change(b"0.2", b"0.3", 2)
    path, why = session.cause(2)
    assert (path, "another value" in str(why)) == ("/temperature", True)


def test_adaptive_thinking_and_its_effort_are_held_by_level() -> None:
    session = Session(ANTHROPIC)
    plain = b'"thinking":{"type":"enabled","budget_tokens":8192,"display":"summarized"}'
    adaptive = b'"thinking":{"type":"adaptive"},"output_config":{"effort":"medium"}'
    session.change(plain, adaptive)
    assert session.equal == [True] * 3
    session.change(adaptive, plain, 1)
    session.change(b'"effort":"medium"', b'"effort":"low"', 2)
    assert session.equal == [True, False, False]
    session = Session(ANTHROPIC)
    session.change(plain, adaptive, 1)
    assert session.equal == [True, False, True]


@pytest.mark.parametrize("target", [CHAT, RESPONSES])
@pytest.mark.parametrize("calls", [(0,), (1,), (0, 1, 2)])
def test_the_level_in_the_log_outweighs_a_word_no_table_of_pi_has(
    target: tuple[str, str, str], calls: tuple[int, ...]
) -> None:
    session = Session(target)
    assert session.equal == [True] * 3
    session.change(EFFORT[target], EFFORT[target].replace(b"medium", b"medium7"), *calls)
    assert session.equal == [i not in calls for i in range(3)]
    assert session.borrowed(0) == {}


@pytest.mark.parametrize(("target", "path"), [(CHAT, "/reasoning_effort"), (RESPONSES, "/reasoning/effort")])
def test_another_word_for_the_level_is_learned_as_such_unless_models_json_tells(
    target: tuple[str, str, str], path: str
) -> None:
    session = Session(target)
    session.change(EFFORT[target], EFFORT[target].replace(b"medium", b"high"))
    assert session.equal == [True] * 3
    assert [session.borrowed(i).get(path) for i in range(3)] == ["echoed", "learned", "learned"]
    assert "thinking level medium is sent as effort high" in session.made(1)[0].hypotheses
    assert path in {item.path for item in pi.learnable}
    model = {"id": target[2], "reasoning": True}
    listed = Session(target, models={"providers": {target[1]: {"models": [model]}}})
    assert listed.equal == [True] * 3
    listed.change(EFFORT[target], EFFORT[target].replace(b"medium", b"high"), 0)
    assert listed.equal == [False, True, True]
    model |= {"thinkingLevelMap": {"medium": "high", "off": None}}
    mapped = Session(target, models={"providers": {target[1]: {"models": [model]}}})
    assert EFFORT[target].replace(b"medium", b"high") in mapped.sent[0]
    assert mapped.equal == [True] * 3
    assert mapped.borrowed(0) == {}


def test_the_level_is_logged_where_the_log_sets_it() -> None:
    session = Session(CHAT)
    (piece,) = [p for p in session.made(0)[1].pieces if p.data == b'"medium"']
    assert (piece.provenance, str(piece.place)) == ("logged", "line 3")


def test_thinking_off_is_sent_as_none_or_left_out_as_the_first_call_shows() -> None:
    session = Session(RESPONSES, level="off")
    assert b'"reasoning":{"effort":"none"}' in session.sent[0]
    assert session.equal == [True] * 3
    session.change(b',"reasoning":{"effort":"none"}', b"")
    assert session.equal == [True] * 3
    assert session.made(1)[0].hypotheses == ("thinking level off is sent as no effort",)


@pytest.mark.parametrize("target", [ANTHROPIC, CHAT, RESPONSES])
@pytest.mark.parametrize("old", [False, True])
def test_a_torn_body_teaches_nothing_and_differs_where_it_is_torn(target: tuple[str, str, str], old: bool) -> None:
    session = Session(target, old=old)
    session.put(b'"temperature":0.2')
    session.tear(0)
    assert session.equal == [False, True, True]
    assert session.made(0)[1].data.startswith(session.sent[0])
    assert session.made(1)[0].hypotheses == ()
    assert session.borrowed(1)["/temperature"] == "echoed"
    session = Session(target, old=old)
    session.put(b'"temperature":0.2')
    session.tear(1)
    assert session.equal == [True, False, True]
    assert session.made(1)[1].data.startswith(session.sent[1])


@pytest.mark.parametrize(
    "odd",
    [
        b'"max_tokens":5',
        b'"prompt_cache_key":"not the session"',
        b'"extra":1',
    ],
)
def test_an_odd_key_in_the_first_call_shows_there_and_nowhere_else(odd: bytes) -> None:
    session = Session(CHAT)
    session.change(b'"store":false', b'"store":false,"max_completion_tokens":900')
    session.put(odd, 0)
    assert session.equal == [False, True, True]
    assert session.made(1)[0].hypotheses == ()


def test_a_cap_is_a_number_as_pi_writes_it_and_its_absence_is_held() -> None:
    plain, capped = b',"stream":true', b',"max_tokens":900,"stream":true'
    session = Session(ANTHROPIC, level="off")
    session.change(plain, capped)
    session.change(b":900", b":900.0", 1)
    assert session.equal == [True, False, True]
    assert session.made(1)[1].data.startswith(session.sent[1].partition(b".0")[0])
    session = Session(ANTHROPIC, level="off")
    session.change(plain, capped, 1)
    assert session.equal == [True, False, True]
    session = Session(ANTHROPIC, level="off")
    session.change(plain, capped, 0, 2)
    assert session.equal == [True, False, True]
    assert session.cause(1) == (
        "/max_tokens",
        "max_tokens is not in the log, and the call answered at line 6 was sent with it",
    )


def test_calls_are_asked_about_in_any_order_with_the_same_answer() -> None:
    session = Session(CHAT, calls=5)
    session.put(b'"temperature":0.2', 2)
    session.change(EFFORT[CHAT], EFFORT[CHAT].replace(b"medium", b"high"), 1)
    asked = {i: session.made(i)[0] for i in (3, 0, 4, 1, 3, 2)}
    fresh = Session(CHAT, calls=5)
    fresh.sent = session.sent
    alone = fresh.made(2)[0]
    assert (alone.values, alone.hypotheses) == (asked[2].values, asked[2].hypotheses)
    single = pi.learn(session.log, session.points[2], session.body(2), at_hand())
    assert single.values["/temperature"].provenance == "echoed"
    assert "/temperature" not in session.made(2)[0].values


def test_what_was_taught_by_a_call_that_is_joined_no_more_is_forgotten() -> None:
    session = Session(CHAT)
    session.put(b'"temperature":0.2', 1)
    bodies = [(p, session.body(i)) for i, p in enumerate(session.points)]
    learned = [
        pi.learn(session.log, session.points[2], bodies[2][1], at_hand(before))
        for before in (bodies[:2], bodies[1:2], bodies[:2], bodies[:1])
    ]
    assert ["/temperature" in each.values for each in learned] == [False, True, False, False]


def test_generation_set_up_of_a_google_model_is_held_by_level() -> None:
    script = Script(GOOGLE).begin()
    script.system(preamble="help")
    for i in range(2):
        script.user(f"ask {i}")
        script.assistant(text("ok"))
    log = script.log()
    points = pi.requests(log)
    path = "/v1beta/models/gemini-x:streamGenerateContent"
    bodies = []
    for point, setup in zip(points, (b'{"maxOutputTokens":5}', b'{"maxOutputTokens":6}'), strict=True):
        made = pi.rebuild(log, point, pi.config(log), Learned())
        assert made is not None
        data = made.data[:-1] + b',"generationConfig":' + setup + b"}"
        bodies.append((point, make_body(data, detect(path, {}, data), None, path)))
    learned = pi.learn(log, points[1], bodies[1][1], at_hand(bodies[:1]))
    assert learned.values["/generationConfig"].data == b'{"maxOutputTokens":5}'
