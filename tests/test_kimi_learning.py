"""What no row of Kimi CLI's holds: taught by the first call with the same choice of the user's, never taken anew."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ctxscope.agents import at_hand, kimi
from ctxscope.agents.kimi.learning import SWITCHED
from ctxscope.model import Body, Config, Learned, Point
from tests.kimi_cases import (
    FIRST,
    METADATA,
    NAME,
    SUMMARY,
    assistant,
    checkpoint,
    event,
    folder_in,
    messages,
    put,
    read,
    system,
    user,
)

NEXT = [checkpoint(3), user("two"), checkpoint(4), assistant("c", "c2")]


def sent(log: Any, point: Point, **said: Any) -> Body:
    """The request for a point with other values beside its messages; one that is ``None`` is left out."""
    usual = {"prompt_cache_key": NAME, "model": "k", "thinking": {"type": "enabled"}, "max_tokens": 9, "tools": [1]}
    body = {"messages": messages(log, point), **usual, **said}
    text = json.dumps({k: v for k, v in body.items() if v is not None}, ensure_ascii=False, separators=(",", ":"))
    return Body(text.encode(), "openai-chat", (), None, text)


def judged(log: Any, calls: list[tuple[Point, Body]]) -> list[tuple[bool, set[str], bool]]:
    """Of each call in turn: whether it is equal, what is echoed in it, whether a switch is assumed."""
    found = []
    for at, (point, body) in enumerate(calls):
        learned = kimi.learn(log, point, body, at_hand(calls[:at]))
        rebuilt = kimi.rebuild(log, point, Config(), learned)
        assert rebuilt is not None
        echoed = {p.path for p in rebuilt.pieces if p.provenance == "echoed"}
        found.append((rebuilt.data == body.data, echoed, SWITCHED in learned.hypotheses))
    return found


ALL = {"/model", "/thinking", "/max_tokens", "/tools"}


@pytest.mark.parametrize("other", [{"model": "m"}, {"thinking": None, "max_tokens": 7}])
def test_another_model_or_way_of_thinking_may_be_chosen_between_turns_alone(tmp_path: Path, other: Any):
    put(folder_in(tmp_path) / "context.jsonl", [*FIRST, *NEXT])
    log = read(tmp_path).log
    one, two, three = kimi.requests(log)
    calls = [(p, sent(log, p, **o)) for p, o in ((one, {}), (two, {}), (three, other))]
    assert judged(log, calls) == [
        (True, ALL, False),
        (True, set(), False),
        (True, ALL - {f"/{k}" for k, v in other.items() if v is None}, True),
    ]
    calls = [(p, sent(log, p, **o)) for p, o in ((one, {}), (two, other), (three, other))]
    assert [equal for equal, _, _ in judged(log, calls)] == [True, False, True]


def test_other_values_are_never_taken_anew(tmp_path: Path):
    put(folder_in(tmp_path) / "context.jsonl", [*FIRST, *NEXT])
    log = read(tmp_path).log
    one, two, three = kimi.requests(log)
    for name, value in (("max_tokens", 8), ("tools", [2]), ("max_tokens", None)):
        calls = [(one, sent(log, one)), (two, sent(log, two)), (three, sent(log, three, **{name: value}))]
        assert [equal for equal, _, _ in judged(log, calls)] == [True, True, False]
        calls = [(one, sent(log, one, **{name: value})), (two, sent(log, two)), (three, sent(log, three))]
        assert [equal for equal, _, _ in judged(log, calls)] == [True, False, False]


def test_a_request_of_kimis_own_without_its_session_is_not_equal(tmp_path: Path):
    put(folder_in(tmp_path) / "context.jsonl", FIRST)
    log = read(tmp_path).log
    one, _ = kimi.requests(log)
    assert judged(log, [(one, sent(log, one, prompt_cache_key=None))])[0][0] is False
    assert judged(log, [(one, sent(log, one, prompt_cache_key=None, max_tokens=None))])[0][0] is True


def test_a_provider_of_another_kind_keeps_the_empty_content_of_a_tool_call(tmp_path: Path):
    silent = {**assistant("", "c1"), "content": []}
    put(folder_in(tmp_path) / "context.jsonl", [*FIRST[:4], silent, *FIRST[5:]])
    log = read(tmp_path).log
    point = kimi.requests(log)[1]
    own = kimi.rebuild(log, point, Config(), Learned(keys=("messages", "prompt_cache_key")))
    other = kimi.rebuild(log, point, Config(), Learned(keys=("messages", "stream")))
    assert own is not None
    assert other is not None
    assert "content" not in json.loads(own.data)["messages"][2]
    assert json.loads(other.data)["messages"][2]["content"] == []


def compacted(tmp_path: Path) -> Any:
    """Three compactions that came out the same, the last two by order of the user, the last with his words."""
    folder = folder_in(tmp_path)
    rest = [FIRST[4], FIRST[5], FIRST[7]]
    head = [system(), checkpoint(0), user(SUMMARY), *rest]
    left = {"role": "_usage", "token_count": 5}
    again = [system(), checkpoint(0), user(SUMMARY), *rest[:2], assistant("b"), left]
    put(folder / "context_1.jsonl", FIRST)
    put(folder / "context_2.jsonl", [*head, left])
    put(folder / "context_3.jsonl", again)
    put(folder / "context.jsonl", [*again, checkpoint(1), user("two"), checkpoint(2), assistant("c")])
    done = [event("CompactionBegin"), event("CompactionEnd", 2.0)]
    orders = [
        event("TurnBegin", user_input=[{"type": "text", "text": "/compact  keep é "}]),
        event("CompactionEnd", 4.0),
    ]
    put(folder / "wire.jsonl", [METADATA, *done, event("TurnBegin", user_input="/compact"), *done, *orders])
    return read(tmp_path).log


def test_summaries_that_are_the_same_are_calls_of_their_own(tmp_path: Path):
    log = compacted(tmp_path)
    asked = [p for p in kimi.requests(log) if p.kind == "compaction"]
    assert len({p.key for p in kimi.requests(log)}) == len(kimi.requests(log))
    assert [p.time for p in asked] == [2.0, 2.0, 4.0]
    assert [p.data["focus"].words for p in asked] == ["", "", "keep é"]
    assert [m.kind for m in kimi.markers(log)] == ["compaction"] * 3
    assert [[str(p) for p in m.dropped] for m in kimi.markers(log)] == [["line 3"]] * 3


def test_what_asks_for_a_summary_is_learned_and_the_users_words_on_it_are_logged(tmp_path: Path):
    log = compacted(tmp_path)
    asked = [p for p in kimi.requests(log) if p.kind == "compaction"]

    def body(point: Point, question: str) -> Body:
        said = messages(log, point)
        said[1]["content"].append({"type": "text", "text": question})
        return sent(log, point, messages=said)

    calls = [
        (asked[0], body(asked[0], "Sum up.")),
        (asked[1], body(asked[1], "Sum up.")),
        (asked[2], body(asked[2], "Sum up: keep é")),
    ]
    path = "/messages/1/content/2/text"
    echoed = [{p for p in echoed if p.startswith("/messages")} for _, echoed, _ in judged(log, calls)]
    assert [equal for equal, _, _ in judged(log, calls)] == [True, True, True]
    assert echoed == [{path}, set(), {"/messages/1/content/3/text"}]
    changed = [calls[0], (asked[1], body(asked[1], "Sum it up.")), (asked[2], body(asked[2], "Sum up: keep e"))]
    assert [equal for equal, _, _ in judged(log, changed)] == [True, False, False]


def test_a_compaction_that_asked_nobody_is_one_nevertheless(tmp_path: Path):
    folder = folder_in(tmp_path)
    put(
        folder / "context_1.jsonl",
        [system(), checkpoint(0), user("one"), checkpoint(1), checkpoint(2), user("two"), checkpoint(3)],
    )
    kept = [system(), checkpoint(0), user("one"), user("two"), {"role": "_usage", "token_count": 1}]
    put(folder / "context.jsonl", [*kept, checkpoint(1), user("three"), checkpoint(2), assistant("a")])
    log = read(tmp_path).log
    assert [(m.kind, m.where) for m in kimi.markers(log)] == [("compaction", "wrote all messages anew")]
    assert [p.turn for p in kimi.requests(log)] == [1, 3]


def test_a_subagent_in_the_background_belongs_to_the_turn_that_started_it(tmp_path: Path):
    folder = folder_in(tmp_path)
    started = {"role": "tool", "content": "task_id: t1\nagent_id: ab12\nstatus: starting", "tool_call_id": "c1"}
    put(folder / "context.jsonl", [*FIRST[:5], started, *FIRST[6:], *NEXT])
    below = [system(), checkpoint(0), user("look"), checkpoint(1), assistant("s")]
    put(folder / "subagents" / "ab12" / "context.jsonl", below)
    assert [(p.lineage, p.turn) for p in kimi.requests(read(tmp_path).log)] == [
        ("main", 1),
        ("sub:ab12", 1),
        ("main", 1),
        ("main", 2),
    ]
