"""Lines as numbers: a long log has too many of them to name each by words of its own."""

from __future__ import annotations

from dataclasses import replace

from ctxscope.model import Place
from ctxscope.sources.observed import Sights, spelled


def test_lines_seen_in_a_row_are_spelt_as_if_each_were_named():
    named = [*(("session", str(n)) for n in range(1, 5)), ("settings", "file"), ("session", "5")]
    run = Sights("session", 1, 1)
    assert all(run.goes_on(("session", str(n))) for n in (2, 3, 4))
    assert [*spelled([run, ("settings", "file"), ("session", "5")])] == [*spelled(named)]


def test_a_run_goes_on_with_the_next_line_of_its_source_alone():
    run = Sights("session", 1, 4)
    assert not any(map(run.goes_on, [("session", "6"), ("agent:a1", "5"), ("session", "05"), ("session", "4")]))
    assert run.names == ["session", "1", "2", "3", "4"]


def test_a_line_is_one_place_whether_given_by_number_or_in_words():
    line = Place(0, 41)
    assert line == Place(0, "line 41") != Place(1, "line 41")
    assert len({line, Place(0, "line 41")}) == 1
    assert (line.at, line.number, str(line)) == ("line 41", 41, "line 41")
    assert replace(line, at="item 2 of line 41").at == "item 2 of line 41"


def test_a_place_says_what_it_was_given():
    for at in ("row 17", "line 041", "line 0", "line", "line ", "", f"line {10**30}", "line x"):
        assert Place(0, at).at == at
