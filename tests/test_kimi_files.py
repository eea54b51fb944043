"""Kimi CLI's files beyond the recorded session: rotations while followed, messages to the past, subagents, damage."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ctxscope.agents import kimi
from ctxscope.model import Body, Config, CtxscopeError, Learned
from ctxscope.session.fold import SessionLog
from tests.kimi_cases import (
    FIRST,
    METADATA,
    NAME,
    SUMMARY,
    answered,
    assistant,
    checkpoint,
    event,
    folder_in,
    messages,
    put,
    read,
    system,
    told,
    tool,
    user,
)


def test_a_follower_of_rotations_ends_where_a_fresh_reader_does(tmp_path: Path):
    folder = folder_in(tmp_path)
    put(folder / "context.jsonl", FIRST[:5])
    put(folder / "wire.jsonl", [METADATA, *answered("m1", "a", "c1"), *answered("m2", "b")])
    session = read(tmp_path)
    keys = [p.key for p in kimi.requests(session.log)]
    put(folder / "context.jsonl", FIRST)
    session.poll()
    assert [p.key for p in kimi.requests(session.log)][: len(keys)] == keys
    before = told(session.log)
    (folder / "context.jsonl").rename(folder / "context_1.jsonl")
    put(folder / "context.jsonl", [system(), checkpoint(0), user(SUMMARY), FIRST[4], FIRST[5], FIRST[7]])
    session.poll()
    answers = [p for p in kimi.requests(session.log) if p.kind == "main" and p.answer]
    assert [t for t in told(session.log) if t[1] == "main" and not t[4]] == before
    assert {session.ref.paths[p.place.log].name for p in answers} == {"context_1.jsonl"}
    second = [checkpoint(1), user("two"), checkpoint(2), assistant("c")]
    put(folder / "context.jsonl", [system(), checkpoint(0), user(SUMMARY), FIRST[4], FIRST[5], FIRST[7], *second])
    session.poll()
    fresh = read(tmp_path)
    assert told(session.log) == told(fresh.log)
    assert [(m.kind, m.point, m.where) for m in kimi.markers(session.log)] == [
        (m.kind, m.point, m.where) for m in kimi.markers(fresh.log)
    ]
    assert [messages(session.log, p) for p in kimi.requests(session.log)] == [
        messages(fresh.log, p) for p in kimi.requests(fresh.log)
    ]


def test_answers_carried_over_a_compaction_are_no_calls(tmp_path: Path):
    folder = folder_in(tmp_path)
    put(folder / "context_1.jsonl", FIRST)
    carried = [user(SUMMARY), FIRST[4], FIRST[5], FIRST[7]]
    put(
        folder / "context_2.jsonl",
        [system(), checkpoint(0), *carried, checkpoint(1), user("two"), checkpoint(2), assistant("b")],
    )
    put(folder / "context.jsonl", [system(), checkpoint(0), user("two"), assistant("b")])
    log = read(tmp_path).log
    assert [(p.kind, p.turn) for p in kimi.requests(log)] == [("main", 1), ("main", 1), ("compaction", 1), ("main", 2)]
    assert len({p.key for p in kimi.requests(log)}) == 4
    first, second = kimi.markers(log)
    assert (first.kind, [str(p) for p in first.dropped]) == ("compaction", ["line 3"])
    assert (second.kind, second.where) == ("compaction", "wrote all messages anew")


def test_a_summary_asks_about_all_but_the_last_two_answers_and_inputs(tmp_path: Path):
    folder = folder_in(tmp_path)
    rows = [*FIRST, checkpoint(3), user("two"), checkpoint(4), assistant("c")]
    put(folder / "context_1.jsonl", rows)
    put(folder / "context.jsonl", [system(), checkpoint(0), user(SUMMARY), user("two"), assistant("c")])
    log = read(tmp_path).log
    (asked,) = [p for p in kimi.requests(log) if p.kind == "compaction"]
    assert asked.blocks is not None
    assert [b.text for b in asked.blocks] == ["S"]
    texts = [p["text"].splitlines()[-1] for p in messages(log, asked)[1]["content"]]
    assert texts == ["Content:", "one", "Content:", "a", "Content:", "r", "Content:", "b"]
    (marker,) = kimi.markers(log)
    assert [str(p) for p in marker.dropped] == ["line 3", "line 5", "line 6", "line 8"]


def test_a_message_to_the_past_goes_on_from_rows_that_count_once(tmp_path: Path):
    folder = folder_in(tmp_path)
    mail = user([{"type": "text", "text": "<system>You just got a D-Mail from your future self. Do not.</system>"}])
    put(folder / "context_1.jsonl", [*FIRST, checkpoint(3), assistant("wrong")])
    put(folder / "context.jsonl", [*FIRST[:6], checkpoint(2), mail, checkpoint(3), assistant("right")])
    log = read(tmp_path).log
    points = kimi.requests(log)
    assert [p.blocks[0].text for p in points if p.blocks] == ["a", "b", "wrong", "right"]
    assert [p.turn for p in points] == [1, 1, 1, 1]
    assert points[3].branched_from == points[0].key
    assert messages(log, points[3])[-1]["content"].startswith("<system>You just got")
    (marker,) = kimi.markers(log)
    assert (marker.kind, marker.point, len(marker.dropped)) == ("rewind", points[3].key, 2)


def test_a_cleared_context_begins_anew(tmp_path: Path):
    folder = folder_in(tmp_path)
    put(folder / "context_1.jsonl", FIRST)
    put(folder / "context.jsonl", [system(), checkpoint(0), user("other"), checkpoint(1), assistant("b")])
    log = read(tmp_path).log
    points = kimi.requests(log)
    assert [p.turn for p in points] == [1, 1, 2]
    assert [m["role"] for m in messages(log, points[2])] == ["system", "user"]
    assert [(m.kind, m.where) for m in kimi.markers(log)] == [("rewind", "the context was cleared of 4 messages")]


def test_rows_of_the_user_that_follow_one_another_are_sent_as_one(tmp_path: Path):
    note = user('<notification id="1">done</notification>')
    rows = [
        system(),
        checkpoint(0),
        user("a"),
        user([{"type": "text", "text": "<system-reminder>b"}]),
        note,
        user("c"),
        user("d"),
    ]
    put(folder_in(tmp_path) / "context.jsonl", [*rows, checkpoint(1), assistant("x")])
    log = read(tmp_path).log
    (point,) = kimi.requests(log)
    contents = [m["content"] for m in messages(log, point)[1:]]
    texts = [[p["text"] for p in c] if isinstance(c, list) else c for c in contents]
    assert texts == [["a", "<system-reminder>b"], note["content"], ["c", "d"]]
    rebuilt = kimi.rebuild(log, point, Config(), Learned())
    assert rebuilt is not None
    assert [str(p.place) for p in rebuilt.pieces if p.place] == [f"line {n}" for n in (1, 3, 4, 5, 6, 7)]


def test_thinking_is_sent_apart_and_a_call_without_text_has_no_content(tmp_path: Path):
    think = {"type": "think", "think": "hm", "encrypted": None}
    blank = {**assistant(" ", "c1"), "content": [think, {"type": "text", "text": " "}]}
    alone = {"role": "assistant", "content": [think]}
    rows = [system(), checkpoint(0), user("a"), checkpoint(1), blank, tool("c1", "r"), checkpoint(2), alone]
    put(folder_in(tmp_path) / "context.jsonl", [*rows, checkpoint(3), user(""), checkpoint(4)])
    log = read(tmp_path).log
    sent = messages(log, kimi.requests(log)[-1])
    assert list(sent[2]) == ["role", "tool_calls", "reasoning_content"]
    assert sent[4] == {"role": "assistant", "content": [], "reasoning_content": "hm"}
    assert sent[5] == {"role": "user", "content": ""}


def test_a_step_without_an_answer_is_a_dead_call_and_the_last_one_waits(tmp_path: Path):
    rows = [system(), checkpoint(0), user("a"), checkpoint(1), checkpoint(2), user("b"), checkpoint(3)]
    put(folder_in(tmp_path) / "context.jsonl", rows)
    log = read(tmp_path).log
    dead, waiting = kimi.requests(log)
    assert (dead.answer, dead.data.get("dead"), len(dead.context)) == (None, True, 2)
    assert (waiting.answer, waiting.data["dead"], len(waiting.context)) == (None, False, 3)
    assert dead.key != waiting.key


def test_a_steered_input_is_a_turn_with_a_marker(tmp_path: Path):
    rows = [*FIRST[:6], user("no, that"), checkpoint(2), assistant("x")]
    put(folder_in(tmp_path) / "context.jsonl", rows)
    log = read(tmp_path).log
    assert [p.turn for p in kimi.requests(log)] == [1, 2]
    (marker,) = kimi.markers(log)
    assert (marker.kind, marker.point, str(marker.place)) == ("steer", kimi.requests(log)[1].key, "line 7")


def test_an_answer_that_no_row_kept_leaves_the_events_in_step(tmp_path: Path):
    folder = folder_in(tmp_path)
    put(folder / "context.jsonl", [*FIRST, checkpoint(3), user("z"), checkpoint(4), assistant("b")])
    lost = answered("lost", "half", "c9")
    events = [METADATA, *answered("m1", "a", "c1"), *lost, *answered("m2", "b"), *answered("m3", "b")]
    put(folder / "wire.jsonl", events)
    log = read(tmp_path).log
    assert [sorted(p.ids) for p in kimi.requests(log)] == [["c1", "m1"], ["m2"], ["m3"]]
    assert [p.stored_usage.cache_read for p in kimi.requests(log) if p.stored_usage] == [4, 4, 4]


def test_subagents_are_lineages_behind_the_call_that_started_them(tmp_path: Path):
    folder = folder_in(tmp_path)
    put(folder / "context.jsonl", [*FIRST, checkpoint(3), user("two"), checkpoint(4), assistant("later")])
    caller = event("SubagentEvent", agent_id="ab12", parent_tool_call_id="c1", event={"type": "StepBegin"})
    put(folder / "wire.jsonl", [METADATA, caller])
    below = folder / "subagents" / "ab12"
    put(
        below / "context.jsonl",
        [
            system("You help."),
            checkpoint(0),
            user("look"),
            checkpoint(1),
            assistant("s1", "c7"),
            tool("c7", "x"),
            checkpoint(2),
            assistant("s2"),
        ],
    )
    put(below / "wire.jsonl", [METADATA, *answered("n1", "s1", "c7")])
    log = read(tmp_path).log
    points = kimi.requests(log)
    assert [(p.kind, p.lineage, p.turn) for p in points] == [
        ("main", "main", 1),
        ("subagent", "sub:ab12", 1),
        ("subagent", "sub:ab12", 1),
        ("main", "main", 1),
        ("main", "main", 2),
    ]
    assert points[1].ids == {"c7", "n1"}
    assert messages(log, points[2])[0]["content"] == "You help."
    assert log.ref.paths[points[1].place.log] == below / "context.jsonl"


def test_each_lineage_learns_from_its_own_first_call(tmp_path: Path):
    from ctxscope.agents import at_hand  # noqa: PLC0415 - here alone

    folder = folder_in(tmp_path)
    put(folder / "context.jsonl", FIRST)
    put(
        folder / "subagents" / "ab12" / "context.jsonl",
        [system(), checkpoint(0), user("look"), checkpoint(1), assistant("s")],
    )
    log = read(tmp_path).log
    main, again, sub = sorted(kimi.requests(log), key=lambda p: p.kind)

    def body(tools: str) -> Body:
        data = b'{"messages":[],"model":"k","tools":%s}' % tools.encode()
        return Body(data, "openai-chat", (), None, tools)

    torn = Body(b'{"messages":[', "openai-chat", (), None, "torn")
    before = at_hand([(main, torn), (main, body("[1]"))])
    assert kimi.learn(log, sub, body("[2]"), before).values["/tools"].data == b"[2]"
    held = kimi.learn(log, again, body("[3]"), before)
    assert (held.values["/tools"].data, held.values["/tools"].provenance) == (b"[1]", "learned")
    assert held.keys == ("messages", "model", "tools")
    assert kimi.learn(log, main, body("[3]"), at_hand()).values["/tools"].provenance == "echoed"


def test_a_copied_session_names_the_one_it_came_from(tmp_path: Path):
    for name, title in ((NAME, "Look"), ("5e551011-0000-4000-8000-000000000002", "Fork: Look"), ("other", "Else")):
        folder = folder_in(tmp_path, name)
        put(folder / "context.jsonl", FIRST)
        begun = [METADATA, event("TurnBegin", 2.0 if name == "other" else 1.0, user_input="one")]
        put(folder / "wire.jsonl", begun)
        put(folder / "state.json", [{"custom_title": title}])
    refs = {r.title: r for r in kimi.discover(tmp_path)}
    assert {t: r.parent for t, r in refs.items()} == {"Look": None, "Fork: Look": NAME, "Else": None}
    assert [r.title for r in kimi.family(refs["Fork: Look"])] == ["Look"]
    assert [r.title for r in kimi.family(refs["Look"])] == ["Fork: Look"]
    assert list(kimi.family(refs["Else"])) == []


def test_sessions_are_found_in_the_home_layout_only(tmp_path: Path):
    put(folder_in(tmp_path) / "context.jsonl", FIRST)
    put(folder_in(tmp_path, "empty") / "context.jsonl", [])
    put(folder_in(tmp_path, "rotated") / "context_1.jsonl", FIRST)
    put(tmp_path / "stray" / "context.jsonl", FIRST)
    assert [r.id for r in kimi.discover(tmp_path)] == [NAME, "rotated"]
    (alone,) = kimi.refs(tmp_path / "stray" / "context.jsonl", tmp_path)
    assert (alone.id, len(kimi.requests(_opened(alone).log))) == ("stray", 2)
    put(tmp_path / "renamed.jsonl", FIRST)
    (other,) = kimi.refs(tmp_path / "renamed.jsonl", tmp_path)
    assert (other.id, len(kimi.requests(_opened(other).log))) == ("renamed", 2)
    put(tmp_path / "no.jsonl", [{"role": "user", "content": "x"}])
    with pytest.raises(CtxscopeError, match="no row of Kimi CLI"):
        list(kimi.refs(tmp_path / "no.jsonl", tmp_path))
    with pytest.raises(CtxscopeError, match="cannot be read"):
        list(kimi.refs(tmp_path / "gone.jsonl", tmp_path))


def _opened(ref: Any) -> SessionLog:
    session = SessionLog.open(ref)
    session.poll()
    return session
