"""Observations that were kept come back in their order, the file telling what it still holds."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from ctxscope.model import Place, Record
from ctxscope.sources.observed import Observation, Observations, spelled

TEXT = "a long text that the file holds as well " * 10
OTHER = "another long text, in its place later on " * 10


def row(key: int, version: int = 0, **cells: Any) -> Record:
    return Record(
        "messages", str(key), Place(0, f"row {key}"), {"id": key, "text": TEXT, "active": 1, **cells}, version
    )


def gone(record: Record) -> Record:
    return Record(record.source, record.key, record.place, None, record.version + 1)


def sight(record: Record) -> Observation:
    return (record.source, record.key)


def kept(*batches: Sequence[Observation]) -> Observations:
    """What is read back, each batch through JSON as the data folder holds it."""
    found = Observations()
    for batch in batches:
        found.add(json.loads(json.dumps(list(spelled(batch)))))
    return found


def test_a_version_stands_where_it_was_observed():
    one, two, three = row(1), row(2), row(3)
    archived = row(1, 1, active=0)
    found = kept([sight(one), sight(two), one, archived, sight(three)])
    known, added = found.replay([archived, two, three, row(4)])
    assert known == [one, two, archived, three]
    # What the file holds of a rewritten unit is given once more: only the agent can say whether it says the same.
    assert added == [archived, row(4)]


def test_what_the_file_holds_is_not_kept_twice():
    one, archived = row(1), row(1, 1, active=0)
    assert TEXT not in json.dumps(list(spelled([sight(one), one, archived])))
    rewritten = row(1, 1, text=OTHER)
    told = json.dumps(list(spelled([sight(one), one, rewritten])))
    assert TEXT in told
    assert OTHER not in told


def test_a_text_left_to_the_file_is_kept_when_it_goes():
    one, archived, rewritten = row(1), row(1, 1, active=0), row(1, 2, text=OTHER)
    found = kept([sight(one), one, archived], [archived, rewritten])
    assert found.replay([rewritten])[0] == [one, archived, rewritten]
    deleted = kept([sight(one), one, archived], [archived, gone(archived)])
    assert deleted.replay([]) == ([one, archived, gone(archived)], [])


def test_a_version_lost_while_nobody_looked_is_stood_in_for_by_the_next():
    one, two, archived = row(1), row(2), row(1, 1, active=0)
    found = kept([sight(one), one, archived, sight(two)])
    now = row(1, text=OTHER)
    known, added = found.replay([now, row(2, text=OTHER)])
    assert [r.value["text"] for r in known] == [OTHER] * 3
    assert added == [now]


def test_what_left_unseen_is_told_last():
    one, two, archived = row(1), row(2), row(1, 1, active=0, text="short")
    one = row(1, text="short")
    known, added = kept([sight(one), sight(two), one, archived]).replay([])
    assert known == [one, archived]  # of the other row nothing is left that could be told
    assert added == [gone(archived)]


def test_what_a_slower_follower_kept_adds_nothing():
    first, second, third = row(1, text="1"), row(1, 1, text="2"), row(1, 2, text="3")
    quick = [sight(first), first, second, second, third]
    slow = [sight(first), first, row(1, 1, text="3")]
    assert kept(quick, slow).replay([third])[0] == [first, second, third]
    assert kept(slow, quick).replay([third])[0] == [
        first,
        row(1, 1, text="3"),
        row(1, 2, text="2"),
        row(1, 3, text="3"),
    ]


def test_a_version_that_comes_back_is_another_observation():
    first, second = row(1, text="1"), row(1, 1, text="2")
    third = row(1, 2, text="1")
    found = kept([sight(first), first, second], [second, third])
    assert found.replay([third])[0] == [first, second, third]


def test_what_dropped_lines_placed_comes_before_what_is_still_placed():
    rows = [row(n) for n in range(1, 5)]
    archived = row(3, 1, active=0)
    found = kept([sight(rows[2]), rows[2], archived])
    known, added = found.replay([rows[0], rows[1], archived, rows[3]])
    assert known == [rows[0], rows[1], rows[2], archived]
    assert added == [archived, rows[3]]


def test_bytes_and_odd_texts_come_back_as_they_were():
    first = row(1, text="a\udcff\u2028", blob=b"\0" * 300, none=None, real=1.5)
    second = row(1, 1, text="b", blob=b"", none=None, real=2.5)
    line = Record("session", "3", Place(1, "line 3"), b"\xff\x00 not text", 0)
    found = kept([sight(first), first, second, sight(line), line, gone(line)])
    assert found.replay([second])[0] == [first, second, line, gone(line)]


def test_damaged_items_are_passed_over():
    one, archived = row(1), row(1, 1, active=0)
    good = list(spelled([sight(one), one, archived]))
    for bad in (
        [],
        [1],
        7,
        None,
        "x",
        {},
        {"source": "messages"},
        {**good[1], "place": 3},
        {**good[1], "version": "x"},
    ):
        found = Observations()
        found.add([bad, *good])
        assert found.replay([archived])[0] == [one, archived]
    for value in (3, {"row": 3}, {"bytes": "%"}, {}):
        found = Observations()
        found.add([*good, {**good[1], "key": "9", "value": value}])
        assert found.replay([archived])[0] == [one, archived]
    found.add("nothing of the kind")
