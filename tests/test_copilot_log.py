"""Copilot CLI logs by hand: points, forms of a run, rewrites of unknown effect, unknown and hostile lines, growth."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctxscope.agents import at_hand, copilot
from ctxscope.model import Config, CtxscopeError, Learned, Point
from tests.copilot_cases import (
    ANY,
    BASE,
    SAMPLE,
    answer,
    body,
    event,
    feed,
    live,
    log_file,
    log_of,
    made,
    result,
    start,
    tool,
    turn,
    used,
    user,
)


def told(points: list[Point]) -> list[tuple[Any, ...]]:
    return [
        (p.key, p.place.at, len(p.context), p.turn, p.kind, p.lineage, p.ids, p.stop, p.stored_usage) for p in points
    ]


def test_a_call_is_a_turn_that_started_and_holds_what_came_before():
    log = log_of([*BASE, result(7, "a"), result(8, "b"), turn(9)])
    first, second = copilot.requests(log)
    assert (first.key, first.place.at, first.turn, first.ids) == ("e6", "line 6", 1, {"c1", "a", "b"})
    assert [e.key for e in first.context] == ["e3", "e2"]
    assert (second.key, second.answer, [e.key for e in second.context]) == (
        "after:e9",
        None,
        ["e3", "e2", "e6", "e7", "e8"],
    )
    assert second.data.get("dead") is None


def test_a_turn_that_ended_without_an_answer_is_dead_and_its_error_is_told():
    lines = [
        *BASE,
        result(7, "a"),
        turn(8),
        event("session.error", 9, {"message": "no upstream"}),
        start(10, "session.resume"),
    ]
    log = log_of(lines)
    dead = copilot.requests(log)[-1]
    assert dead.data["dead"] is True
    assert copilot.error_line(log, dead) == "no upstream"


def test_live_and_resumed_messages_are_sent_in_their_forms():
    lines = [*BASE, result(7, "a"), result(8, "b"), turn(9), answer(10, "c2", "done")]
    lines += [start(11, "session.resume"), user(12, "more"), turn(13), answer(14, "c3", "yes")]
    asked = {"role": "user", "content": "<now>hi"}
    anew = live("", ("a", "b"))
    del anew["refusal"]
    for call in anew["tool_calls"]:
        call["function"]["arguments"] = json.dumps({"p": call["id"]}, separators=(",", ":"))
    sourced = [
        {**tool(u), "__copilotMessageSource": {"kind": "tool", "name": "read", "summary": f"read {u}"}} for u in "ab"
    ]
    more = {"role": "user", "content": "<now>more"}
    assert made(
        log_of(lines),
        body(asked),
        body(asked, live("", ("a", "b")), tool("a"), tool("b")),
        body(asked, anew, *sourced, {"role": "assistant", "content": "done"}, more),
    ) == [True, True, True]


def test_results_are_sent_in_the_order_of_the_calls_whenever_they_came():
    lines = [*BASE, result(7, "b"), result(8, "a"), turn(9), answer(10, "c2", "", ("d", "e")), result(11, "e")]
    lines += [result(12, "d"), turn(13), answer(14, "c3", "yes")]
    asked = {"role": "user", "content": "<now>hi"}
    first = [asked, live("", ("a", "b")), tool("a"), tool("b")]
    log = log_of(lines)
    assert made(log, body(asked), body(*first), body(*first, live("", ("d", "e")), tool("d"), tool("e"))) == [True] * 3
    assert made(log, body(asked), body(*first), body(*first, live("", ("d", "e")), tool("e"), tool("d"))) == [
        True,
        True,
        False,
    ]
    swapped = [asked, live("", ("a", "b")), tool("b"), tool("a")]
    assert made(log, body(asked), body(*swapped)) == [True, False]


def test_a_form_departing_from_the_known_one_is_a_hypothesis_of_its_run():
    lines = [*BASE, result(7, "a"), result(8, "b"), turn(9), answer(10, "c2", "done")]
    log = log_of(lines)
    asked = {"role": "user", "content": "<now>hi"}
    call = live("", ("a", "b"))
    del call["refusal"]
    served = body(asked, call, tool("a"), tool("b"))
    learned = copilot.learn(log, copilot.requests(log)[1], served, at_hand([(copilot.requests(log)[0], body(asked))]))
    assert learned.hypotheses == ("run 1: answers are sent back without the key refusal",)


def test_parameters_of_the_first_call_hold_and_another_value_is_told_with_its_place():
    lines = [*BASE, result(7, "a"), result(8, "b"), turn(9), answer(10, "c2", "done")]
    log = log_of(lines)
    asked = {"role": "user", "content": "<now>hi"}
    rest = (asked, live("", ("a", "b")), tool("a"), tool("b"))
    assert made(log, body(asked, top_p=0.9), body(*rest, top_p=0.8)) == [True, False]
    assert made(log, body(asked, top_p=0.9), body(*rest, top_p=0.9)) == [True, True]
    assert made(log, body(asked, unheard=1)) == [False]


def test_the_cap_is_the_logged_one_where_the_first_call_says_it_is():
    lines = [line if b"usage_record" not in line else used(5, "c1", maxOutputTokens=700) for line in BASE]
    log = log_of(lines)
    (point,) = copilot.requests(log)
    asked = {"role": "user", "content": "<now>hi"}
    logged = copilot.learn(log, point, body(asked, max_tokens=700), at_hand())
    assert "/max_tokens" not in logged.values
    rebuilt = copilot.rebuild(log, point, Config(), logged)
    assert [p.place.at for p in rebuilt.pieces if p.data == b"700"] == ["line 5"]
    assert copilot.learn(log, point, body(asked, max_tokens=800), at_hand()).values["/max_tokens"].data == b"800"


def test_a_subagent_has_a_lineage_of_its_own_and_leaves_the_main_one_alone():
    lines = [*BASE, user(7, "look"), event("user.message", 8, {"content": "sub"}, agentId="x1")]
    lines += [turn(9, agentId="x1"), answer(10, "s1", "found", agentId="x1"), turn(11), answer(12, "c2", "done")]
    log = log_of(lines)
    points = copilot.requests(log)
    assert [(p.kind, p.lineage) for p in points] == [("main", "main"), ("subagent", "sub:x1"), ("main", "main")]
    assert "e8" not in {e.key for e in points[-1].context}


def test_steering_and_a_model_change_are_markers():
    lines = [
        *BASE,
        user(7, "wait", delivery="steering"),
        event("session.model_change", 8, {"newModel": "oak"}),
        turn(9),
    ]
    log = log_of(lines)
    assert [(m.kind, m.point) for m in copilot.markers(log)] == [("steer", "after:e9"), ("model_switch", "after:e9")]
    assert copilot.requests(log)[-1].data["model"] == "oak"


def test_unknown_events_and_fields_are_counted_and_change_nothing():
    lines = log_file(SAMPLE).read_bytes().splitlines()
    clean = copilot.requests(log_of(lines))
    mixed: list[bytes] = []
    for number, line in enumerate(lines):
        row = json.loads(line)
        mixed.append(json.dumps({"quux": 1, **dict(reversed(row.items()))}, ensure_ascii=False).encode())
        mixed.append(event("session.brand_new", 90 + number, {"x": [1]}))
    log = log_of(mixed)
    assert [(p.key, p.turn, p.ids) for p in copilot.requests(log)] == [(p.key, p.turn, p.ids) for p in clean]
    assert {e.kind for e in log.entries if e.data["type"] == "session.brand_new"} == {"unknown"}
    told_ = [n for n in copilot.notices(log) if "not known" in n]
    assert [n.split()[0] for n in told_] == [str(len(lines)), str(len(lines))]


def test_a_newer_version_is_named():
    lines = [start(copilotVersion="2.3.0"), *BASE[1:]]
    assert any("2.3.0" in n and "1.0.102" in n for n in copilot.notices(log_of(lines)))


def test_a_log_read_line_by_line_says_what_it_says_read_at_once():
    lines = log_file(SAMPLE).read_bytes().splitlines()
    whole, grown = log_of(lines), log_of(())
    for number, line in enumerate(lines, 1):
        feed(grown, number, line)
        copilot.requests(grown)
        copilot.markers(grown)
        copilot.notices(grown)
    assert told(list(copilot.requests(grown))) == told(list(copilot.requests(whole)))
    for one, two in zip(copilot.requests(grown), copilot.requests(whole), strict=True):
        mine, theirs = (copilot.rebuild(log, p, Config(), Learned()) for log, p in ((grown, one), (whole, two)))
        assert mine.data == theirs.data
        assert copilot.naive(grown, one) == copilot.naive(whole, two)


def test_points_stay_the_same_objects_while_nothing_came_to_them():
    log = log_of(BASE)
    before = copilot.requests(log)
    feed(log, 7, result(7, "a"))
    feed(log, 8, turn(8))
    assert copilot.requests(log)[0] is before[0]


def test_pieces_of_messages_are_shared_between_calls():
    lines = [*BASE, result(7, "a"), result(8, "b"), turn(9), answer(10, "c2", "done")]
    log = log_of(lines)
    one, two = (copilot.rebuild(log, p, Config(), Learned()) for p in copilot.requests(log))
    assert {id(p) for p in one.pieces if b"<now>hi" in p.data} <= {id(p) for p in two.pieces}


def test_a_rewritten_line_is_told_anew():
    log = log_of(BASE)
    feed(log, 2, user(3, "other"))
    (point,) = copilot.requests(log)
    assert b"<now>other" in copilot.rebuild(log, point, Config(), Learned()).data


LINES = [json.loads(line) for line in log_file(SAMPLE).read_bytes().splitlines()]


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_wrong_values_in_any_field_raise_nothing(data: st.DataObject):
    rows = json.loads(json.dumps(LINES))
    for _ in range(data.draw(st.integers(1, 6))):
        row = data.draw(st.sampled_from(rows))
        while True:
            key = data.draw(st.sampled_from(sorted(row)))
            inner = row[key][0] if isinstance(row[key], list) and row[key] else row[key]
            if not isinstance(inner, dict) or not inner or data.draw(st.booleans()):
                row[key] = data.draw(ANY)
                break
            row = inner
    log = log_of(json.dumps(row).encode() for row in rows)
    served = body({"role": "user", "content": "x"})
    for point in copilot.requests(log):
        copilot.rebuild(log, point, Config(), Learned())
        learned = copilot.learn(log, point, served, at_hand())
        copilot.rebuild(log, point, copilot.config(log), learned)
        copilot.naive(log, point)
        copilot.sidecars(log, point)
        copilot.endpoint(log, point)
        copilot.error_line(log, point)
    copilot.markers(log)
    copilot.notices(log)


@given(st.binary(max_size=60))
def test_any_bytes_are_an_entry_or_none(line: bytes):
    for log in (log_of([line]), log_of([*BASE, line, turn(9)])):
        copilot.requests(log)
        copilot.notices(log)


def test_discovery_finds_the_sessions_of_the_home_alone(tmp_path: Path):
    found = list(copilot.discover(SAMPLE / "log"))
    assert [(r.id, r.directory, r.paths[0]) for r in found] == [(found[0].id, "/home/dev/harbour", log_file(SAMPLE))]
    assert list(copilot.discover(SAMPLE)) == []
    path = tmp_path / ".copilot/session-state/x/events.jsonl"
    path.parent.mkdir(parents=True)
    path.write_bytes(b'{"type":"user.message"}\n')
    assert list(copilot.discover(tmp_path)) == []
    assert copilot.claims(path, path.read_bytes()) == 0.0
    with pytest.raises(CtxscopeError, match="session"):
        copilot.refs(path, tmp_path)
    head = log_file(SAMPLE).read_bytes()
    assert copilot.claims(log_file(SAMPLE), head) > 0.9
