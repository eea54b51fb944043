"""Compactions and truncations of the Copilot CLI: what they leave, who asked, what is not told; broken fields, growth."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from ctxscope.agents import at_hand, copilot
from ctxscope.model import Config, Learned
from tests.copilot_cases import (
    ANY,
    BASE,
    HI,
    anew,
    answer,
    body,
    event,
    feed,
    live,
    log_of,
    made,
    result,
    sourced,
    start,
    tool,
    turn,
    used,
    user,
)

SUMMED = (
    "Some of the conversation history has been summarized to free up context.\n\nYou were originally given instructions "
    "from a user over one or more turns. Here were the user messages:\n<user_message>\nhi\n</user_message>\n\n"
    "Here is a summary of the prior context:\n<summary>\nthe tide\n</summary>\n"
)


def compacted(summary: str = "the tide") -> list[bytes]:
    spent = {"inputTokens": 70, "outputTokens": 7, "cacheReadTokens": 20}
    done = {"success": True, "summaryContent": summary, "preCompactionTokens": 900, "postCompactionTokens": 90}
    lines = [*BASE, result(7, "a"), result(8, "b"), turn(9), event("session.compaction_start", 10, {})]
    lines += [answer(11, "c2", "", ("d",)), result(12, "d"), turn(13)]
    lines.append(event("session.compaction_complete", 14, {**done, "compactionTokensUsed": spent}))
    lines += [used(15, "c3"), answer(16, "c3", "low water"), start(17, "session.resume"), user(18, "and"), turn(19)]
    return lines


def compacted_bodies() -> list[Any]:
    first = [HI, live("", ("a", "b")), tool("a"), tool("b")]
    summed = {"role": "user", "content": SUMMED}
    ask = {"role": "user", "content": "Please sum it up."}
    after = [
        summed,
        anew("d"),
        sourced(tool("d"), "read", summary="read d"),
        {"role": "assistant", "content": "low water"},
    ]
    return [
        body(HI),
        body(*first),
        body(*first, ask, tool_choice="none"),
        body(summed, live("", ("d",)), tool("d")),
        body(*after, {"role": "user", "content": "<now>and"}),
    ]


def test_after_a_compaction_the_summary_stands_for_what_came_before_it_began():
    log = log_of(compacted())
    points = copilot.requests(log)
    assert [p.kind for p in points] == ["main", "main", "compaction", "main", "main"]
    assert made(log, *compacted_bodies()) == [True] * 5
    aside = points[2]
    assert [b.text for b in aside.blocks] == ["the tide"]
    assert (aside.stored_usage.reported, aside.stored_usage.output) == (70, 7)
    (marker,) = [m for m in copilot.markers(log) if m.kind == "compaction"]
    assert (marker.point, marker.before_tokens, marker.after_tokens) == (points[3].key, 900, 90)


def test_another_summary_in_the_log_shows_where_it_is_sent():
    assert made(log_of(compacted("the tidE")), *compacted_bodies()) == [True, True, True, False, False]


def test_words_that_ask_for_a_summary_are_held():
    lines = [*BASE, result(7, "a"), result(8, "b"), turn(9)]
    for number in (10, 20):
        lines += [
            event("session.compaction_start", number, {}),
            event("session.compaction_complete", number + 1, {"success": False}),
        ]
    log = log_of(lines)
    first = [HI, live("", ("a", "b")), tool("a"), tool("b")]
    asks = [body(*first, {"role": "user", "content": text}) for text in ("Sum up.", "Sum it up.")]
    assert made(log, body(HI), body(*first), asks[0], asks[0]) == [True] * 4
    assert made(log, body(HI), body(*first), asks[0], asks[1]) == [True, True, True, False]


def test_a_compaction_that_failed_took_nothing_away():
    lines = [*BASE, result(7, "a"), result(8, "b"), event("session.compaction_start", 9, {})]
    failure = {"success": False, "error": "no room"}
    log = log_of([*lines, event("session.compaction_complete", 10, failure), turn(11)])
    first = [HI, live("", ("a", "b")), tool("a"), tool("b")]
    assert made(log, body(HI), body(*first, {"role": "user", "content": "Sum up."}), body(*first)) == [True] * 3
    assert not copilot.markers(log)
    assert copilot.error_line(log, copilot.requests(log)[1]) == "no room"


def test_a_compaction_whose_beginning_is_not_logged_leaves_what_follows_unclaimed():
    log = log_of([*BASE, event("session.compaction_complete", 7, {"success": True}), user(8, "on"), turn(9)])
    first, second = copilot.requests(log)
    assert copilot.rebuild(log, first, Config(), Learned()) is not None
    assert copilot.rebuild(log, second, Config(), Learned()) is None
    assert any("after the compaction at line 7" in n for n in copilot.notices(log))


def test_what_was_left_out_to_fit_the_window_comes_back_with_the_next_run():
    lines = [
        *BASE,
        result(7, "a"),
        result(8, "b"),
        turn(9),
        event("session.truncation", 10, {}),
        answer(11, "c2", "so"),
    ]
    log = log_of([*lines, start(12, "session.resume"), user(13, "on"), turn(14)])
    points = copilot.requests(log)
    states = [copilot.rebuild(log, p, Config(), Learned()) is not None for p in points]
    assert states == [True, False, True]
    assert [m.point for m in copilot.markers(log) if m.kind == "prune"] == [points[1].key]


def test_a_compaction_read_line_by_line_says_what_it_says_read_at_once():
    lines, grown = compacted(), log_of(())
    for number, line in enumerate(lines, 1):
        feed(grown, number, line)
        for point in copilot.requests(grown):
            copilot.rebuild(grown, point, Config(), Learned())
        copilot.markers(grown)
    whole = log_of(lines)
    for one, two in zip(copilot.requests(grown), copilot.requests(whole), strict=True):
        assert (one.key, one.kind, len(one.context), one.stored_usage) == (
            two.key,
            two.kind,
            len(two.context),
            two.stored_usage,
        )
        mine, theirs = (copilot.rebuild(log, p, Config(), Learned()) for log, p in ((grown, one), (whole, two)))
        assert mine.data == theirs.data


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_wrong_values_in_any_field_raise_nothing(data: st.DataObject):
    rows = [json.loads(line) for line in compacted()]
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
    before: list[Any] = []
    for point, served in zip(copilot.requests(log), compacted_bodies(), strict=False):
        copilot.rebuild(log, point, Config(), copilot.learn(log, point, served, at_hand(before)))
        before.append((point, served))
    copilot.markers(log)
    copilot.notices(log)
