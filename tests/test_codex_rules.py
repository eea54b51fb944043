"""Which calls a rollout implies where the recorded cases do not show it: retries, rollbacks, compactions, usage."""

from __future__ import annotations

import json

import pytest

from ctxscope.agents import codex
from ctxscope.agents.codex.usage import Counter
from tests.codex_cases import log_of
from tests.codex_lines import (
    Row,
    call,
    context,
    count,
    items_of,
    message,
    old,
    output,
    texts,
)


def test_an_answer_that_broke_off_is_asked_for_again_with_the_same_body():
    """0.98 logs what came of both attempts; nothing that was never sent is predicted."""
    rows = [message("user", "ask"), context(), count(5), message("assistant", "par"), context(), count(5)]
    lines = old(*rows, message("assistant", "whole"), count(30, 25), message("user", "more"), message("assistant", "b"))
    points = codex.requests(log_of(lines))
    assert [p.blocks[0].text for p in points] == ["par", "whole", "b"]
    assert [len(p.context) for p in points] == [1, 1, 4]
    assert points[0].stop.state == "incomplete"
    assert [p.stored_usage and p.stored_usage.reported for p in points] == [None, 25, None]
    assert texts(items_of(lines, points[1].key)) == ["ask"]
    assert texts(items_of(lines, points[2].key)) == ["ask", "par", "whole", "more"]


def test_an_input_nobody_answered_is_a_place_a_request_may_have_gone_out_from():
    lines = old(message("user", "ask"), context(), message("user", "again"), message("assistant", "b"), count(9))
    points = codex.requests(log_of(lines))
    assert [(p.key, bool(p.data.get("dead"))) for p in points] == [("after:line:2", True), ("line:5", False)]
    assert points[-1].turn == 2


def test_inputs_given_together_are_one_request():
    lines = old(message("user", "ask"), message("user", "and this"), message("assistant", "b"))
    lines[2] = lines[2].replace(b"09:00:02", b"09:00:01")
    assert [p.key for p in codex.requests(log_of(lines))] == ["line:4"]


def test_a_turn_that_failed_keeps_codexs_words():
    over = ("event_msg", {"type": "turn_aborted", "reason": "interrupted"})
    log = log_of(old(message("user", "ask"), context(), over))
    (point,) = codex.requests(log)
    assert point.data["dead"]
    assert codex.error_line(log, point) == "turn aborted: interrupted"


def test_what_waits_is_the_last_point_until_its_tools_are_done():
    rows = [message("user", "ask"), call("c1"), call("c2"), count(9), output("c1")]
    assert [p.key for p in codex.requests(log_of(old(*rows)))] == ["line:3"]
    assert [p.key for p in codex.requests(log_of(old(*rows, output("c2"))))] == ["line:3", "after:line:7"]
    assert not codex.requests(log_of(old(*rows, output("c2"))))[-1].data.get("dead")


def test_a_call_without_output_is_told_to_be_aborted_and_an_output_without_call_is_left_out():
    rows = [
        message("user", "ask"),
        call("c1"),
        count(9),
        output("lost"),
        message("user", "go on"),
        message("assistant", "b"),
    ]
    items = items_of(old(*rows), "line:7")
    assert [i.get("output") for i in items] == [None, None, "aborted", None]
    assert items[2] == {"type": "function_call_output", "call_id": "c1", "output": "aborted"}


def test_the_id_of_what_stands_for_a_missing_output_is_always_the_same():
    own = ("response_item", {**call("c1")[1], "id": "fc_1"})
    lines = old(message("user", "ask"), own, count(9), message("user", "go on"), message("assistant", "b"))
    assert items_of(lines, "line:6")[2]["id"].startswith("fco_")
    assert items_of(lines, "line:6") == items_of(lines, "line:6")


def test_messages_between_agents_are_no_answers():
    told = json.dumps({"author": "lead", "recipient": "lead/mole", "content": "dig"})
    lines = old(message("assistant", told), message("assistant", "done"), count(9))
    (point,) = codex.requests(log_of(lines))
    assert [b.text for b in point.blocks] == ["done"]


def test_a_rollback_drops_inputs_with_the_context_before_them():
    rows = [
        message("user", "one"),
        message("assistant", "a"),
        count(5),
        message("developer", "<permissions instructions>x"),
    ]
    rows += [message("user", "two"), message("assistant", "b"), count(9)]
    back = ("event_msg", {"type": "thread_rolled_back", "num_turns": 1})
    lines = old(*rows, back, message("user", "three"), message("assistant", "c"))
    assert texts(items_of(lines, "line:11")) == ["one", "a", "three"]
    log = log_of(lines)
    assert codex.requests(log)[-1].branched_from == "line:3"
    (marker,) = codex.markers(log)
    assert (marker.kind, marker.point) == ("rewind", "line:11")
    assert [p.number for p in marker.dropped] == [5, 6, 7]


def test_a_local_compaction_of_the_old_kind_keeps_what_was_asked():
    rows = [message("developer", "<permissions instructions>x"), message("user", "<environment_context>y")]
    rows += [
        message("user", "one"),
        message("assistant", "a"),
        count(5),
        message("user", "two"),
        message("assistant", "b"),
    ]
    rows += [count(9), count(20, 11), ("compacted", {"message": "Another language model started it.\nIn short."})]
    lines = old(*rows, message("user", "three"), message("assistant", "c"))
    context, asked, last = ["<permissions instructions>x", "<environment_context>y"], ["one", "two"], ["three"]
    assert texts(items_of(lines, "line:13")) == [
        *context,
        *asked,
        "Another language model started it.\nIn short.",
        *last,
    ]
    compaction = next(p for p in codex.requests(log_of(lines)) if p.kind == "compaction")
    assert [b.text for b in compaction.blocks] == ["In short."]
    assert compaction.stored_usage.reported == 11


def test_a_summary_logged_as_a_message_is_the_compactions_answer_and_no_history():
    rows = [
        message("user", "one"),
        message("assistant", "a"),
        count(5),
        message("assistant", "In short."),
        count(20, 15),
    ]
    kept = [message("user", "one")[1], message("user", "Another language model started it.\nIn short.")[1]]
    told = {"message": "Another language model started it.\nIn short.", "replacement_history": kept}
    lines = old(*rows, ("compacted", told), message("user", "two"), message("assistant", "b"))
    points = codex.requests(log_of(lines))
    assert [(p.key, p.kind) for p in points] == [("line:3", "main"), ("line:5", "compaction"), ("line:9", "main")]
    assert [len(p.context) for p in points] == [1, 2, 2]
    (marker,) = codex.markers(log_of(lines))
    assert ([p.number for p in marker.dropped], marker.point) == ([3], "line:9")


def test_what_a_local_compaction_keeps_is_limited_newest_first():
    long = "word " * 20_000
    rows = [
        message("user", long),
        message("assistant", "a"),
        count(5),
        message("user", "two"),
        message("assistant", "b"),
    ]
    lines = old(
        *rows, count(9), ("compacted", {"message": "Short."}), message("user", "three"), message("assistant", "c")
    )
    first, second, *_ = texts(items_of(lines, "line:10"))
    assert "tokens truncated" in first
    assert len(first) < 20_000 * 4 + 40
    assert second == "two"


def test_model_and_effort_switches_are_marked():
    lines = old(
        context("m", "low"), message("user", "one"), message("assistant", "a"), context("m", "high"), context("n")
    )
    assert [m.where for m in codex.markers(log_of(lines))] == ["m low to m high", "m high to n"]


def info(total: int, last: int) -> Row:
    return count(total, last)[1]["info"]


@pytest.mark.parametrize(
    ("counts", "costs"),
    [
        ([(10, 10), (10, 10), (25, 15)], [10, None, 15]),  # a count repeats
        ([(100, 10), (115, 15)], [10, 15]),  # a fork goes on with its parent's total
        ([(100, 100), (8, 8)], [100, 8]),  # another starts at zero
        ([(10, 10), (25, 900)], [10, 15]),  # a last count that cannot be
        ([(10, 10), (10, 0)], [10, None]),  # an estimate after a compaction
    ],
)
def test_only_a_total_that_changed_tells_of_a_call(counts: list[tuple[int, int]], costs: list[int | None]):
    counter = Counter()
    found = [counter.take(info(*numbers)) for numbers in counts]
    assert [f and f["input_tokens"] for f in found] == costs
