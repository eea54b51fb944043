"""Logs nobody would write: no bytes and no values make the harness's module raise, or cost more than they are long."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctxscope.agents import Log, at_hand, dsh
from ctxscope.agents.dsh.body import ODD
from ctxscope.agents.dsh.lines import KNOWN, PACKED
from ctxscope.model import Learned, Place, Record
from tests.dsh_cases import answer, begun, cut, grow, log_of
from tests.samples.dsh_form import SessionLog
from tests.samples.dsh_texts import TOOLS
from tests.samples.pi_form import Say, Use

SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(-3, 40), st.integers(), st.floats(), st.text(max_size=5), st.just("append")
)
VALUES = st.recursive(
    SCALARS, lambda v: st.lists(v, max_size=3) | st.dictionaries(st.text(max_size=4), v, max_size=3), max_leaves=6
)
USE = Use("toolu_1", "sheet", "{")


def everything() -> list[dict[str, Any]]:
    """A record of every kind, as they stand in logs."""
    log = begun()
    first = log.records[-2]["seq"]
    log.event(1.1, "session/title-llm-request", {"route": {}, "messageSeqs": [4], "messages": [{"content": []}]})
    log.event(1.2, "assistant/attempt", {"stream": [{"chunk": {"type": "block-end", "block": {"type": "text"}}}]})
    log.event(1.3, "llm/retry", {"failure": {"status": 529}})
    log.event(1.4, "llm/retry-started", {})
    log.accepted(1.5, len(log.records) - 1)
    log.event(1.6, "session/title", {"title": "t", "messageSeqs": [4], "source": {"kind": "provider"}})
    mine = answer(log, Say("so"), USE)
    log.tool(2.0, (1, 1), USE, "1")
    log.event(2.1, "compaction/prune", {"shadowedSeqs": [first], "shadowedTokenCount": 3})
    log.user(2.2, "short", surfaceOp={"op": "replace", "startSeq": first, "endSeq": first})
    log.event(2.3, "compaction/start", {"compactionId": "c"})
    log.event(2.4, "compaction/summary", {"summary": [], "shadowedSeqs": [first, mine], "maxTokens": 5})
    log.event(2.5, "compaction/start", {"compactionId": "d"})
    log.event(2.6, "compaction/end", {"compactionId": "d", "error": "x"})
    log.event(2.7, "request/context", {"contextWindow": 10})
    log.ended(3.0, 1, 1, whole=True)
    log.event(4.0, "session/end-seed", {})
    log.turn(5.0, 2, "more")
    log.request(5.0, TOOLS[:1], "resume")
    return [log.header, *log.records]


ROWS = everything()


@st.composite
def broken(draw: st.DrawFn) -> list[bytes]:
    """The records with values of some members replaced, some left out, some twice."""
    rows = json.loads(json.dumps(ROWS))
    for _ in range(draw(st.integers(1, 4))):
        target: Any = draw(st.sampled_from(rows))
        while isinstance(target, dict | list) and target:
            keys = list(target) if isinstance(target, dict) else range(len(target))
            key = draw(st.sampled_from(keys))
            if not isinstance(target[key], dict | list) or not target[key] or draw(st.booleans()):
                target[key] = draw(VALUES)
                break
            target = target[key]
    if draw(st.booleans()):
        rows.insert(draw(st.integers(0, len(rows))), draw(st.sampled_from(rows)))
    if draw(st.booleans()):
        rows.pop(draw(st.integers(0, len(rows) - 1)))
    kinds = st.sampled_from(sorted({*KNOWN, *PACKED, "session", "x"}))
    rows.insert(draw(st.integers(0, len(rows))), {"type": draw(kinds), "seq": draw(SCALARS), "data": draw(VALUES)})
    return [json.dumps(row).encode() for row in rows]


def ask(log: Log) -> None:
    """Everything a session asks of an agent."""
    config = dsh.config(log)
    body = cut(b'{"model":"m","messages":[],"dsh_session_log":{"afterSeq":1,"throughSeq":2,"session":{},"events":[]}}')
    before = []
    for point in dsh.requests(log):
        learned = dsh.learn(log, point, body, at_hand(before))
        for given_learned in (learned, Learned()):
            dsh.rebuild(log, point, config, given_learned)
        dsh.endpoint(log, point)
        dsh.basis(log, point)
        dsh.error_line(log, point)
        dsh.estimates(log, point)
        dsh.naive(log, point)
        assert sum(1 for _ in point.context) == len(point.context)
        before.append((point, body))
    for marker in dsh.markers(log):
        assert marker.where
    dsh.notices(log)


@settings(max_examples=300, deadline=None)
@given(broken())
def test_no_values_make_it_raise(lines: list[bytes]) -> None:
    ask(log_of(lines))


@settings(max_examples=60, deadline=None)
@given(broken())
def test_line_by_line_says_what_at_once_says(lines: list[bytes]) -> None:
    grown = log_of(())
    for number, line in enumerate(lines, 1):
        grow(grown, line, number)
        dsh.requests(grown)
    whole = log_of(lines)
    assert [(p.key, p.kind, p.ids, p.place, p.order) for p in dsh.requests(grown)] == [
        (p.key, p.kind, p.ids, p.place, p.order) for p in dsh.requests(whole)
    ]
    assert dsh.markers(grown) == dsh.markers(whole)
    assert dsh.notices(grown) == dsh.notices(whole)
    for mine, other in zip(dsh.requests(grown), dsh.requests(whole), strict=True):
        made = [dsh.rebuild(log, p, dsh.config(log), Learned()) for log, p in ((grown, mine), (whole, other))]
        assert [m and m.data for m in made[:1]] == [m and m.data for m in made[1:]]


def test_a_request_keeps_its_place_in_the_row_whenever_it_is_asked_for() -> None:
    rows = [json.dumps(row).encode() for row in ROWS]
    grown, seen = log_of(()), {}
    for number, line in enumerate(rows, 1):
        grow(grown, line, number)
        for point in dsh.requests(grown):
            seen[point.key] = point.order
    points = dsh.requests(log_of(rows))
    assert len(points) > 2
    assert [p.order for p in points] == [seen[p.key] for p in points]
    assert [p.order[1] for p in points] == list(range(len(points)))


@pytest.mark.parametrize("kind", [["text"], {}, None, 1])
def test_a_block_of_a_kind_that_is_no_word_is_left_out_and_told(kind: Any) -> None:
    log = begun()
    user = next(r for r in log.records if r["type"] == "user/message")
    user["data"]["content"] = [{"type": kind, "text": "x"}]
    held = log_of(log.lines())
    made = dsh.rebuild(held, dsh.requests(held)[0], dsh.config(held), Learned())
    assert made is not None
    assert ODD in made.notices


@given(st.binary(max_size=200))
def test_no_bytes_make_an_entry_raise(line: bytes) -> None:
    for entry in dsh.entries(Record("session", "1", Place(0, "line 1"), line)):
        assert entry.kind


def test_a_log_that_was_written_anew_is_read_anew() -> None:
    """The harness never rewrites; a file that someone put back in its place says what it says, no more."""
    log = SessionLog("session-x", "/x")
    log.turn(1.0, 1, "a")
    first = log_of(log.lines())
    dsh.requests(first)
    for entry in dsh.entries(Record("session", "4", Place(0, "line 4"), None)):
        first.add(entry)
    assert dsh.requests(first) == []


def test_numbers_beyond_all_measure_cost_nothing() -> None:
    rows = [{**row, "seq": row["seq"] + 10**15} if "seq" in row and row["seq"] > 5 else row for row in ROWS]
    ask(log_of([json.dumps(row) for row in rows]))


def test_a_long_session_costs_what_each_call_adds() -> None:
    """Counted, not timed: each event is rendered once, however many requests carry it."""
    log = begun()
    for number in range(2, 120):
        answer(log, Say(f"answer {number}"))
        log.ended(3.0, number, 1, whole=True)
        log.turn(4.0, number, "on")
        log.user(4.0, f"question {number}")
    held = log_of(log.lines())
    config = dsh.config(held)
    shared: dict[int, int] = {}
    total = 0
    for point in dsh.requests(held):
        made = dsh.rebuild(held, point, config, Learned())
        assert made is not None
        for piece in made.pieces:
            if piece.provenance == "logged" and piece.data.startswith(b'"answer'):
                shared[id(piece)] = shared.get(id(piece), 0) + 1
                total += 1
    assert len(shared) < 120
    assert total > 5000
