"""The tokens screen: the ledger of a call, the history of its conversation, what a compaction dropped."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from ctxscope.analysis.sidecars import judged
from ctxscope.analysis.tokens import Counter
from ctxscope.model import (
    BreakRate,
    Call,
    Compacted,
    Compaction,
    Logged,
    Marker,
    Place,
    RebuiltVerdict,
    Sidecar,
    SidecarSum,
    SidecarView,
    Snapshot,
    TailCut,
    TokenLedger,
    Window,
)
from ctxscope.tui import compaction_rows, history_cells, ledger_rows, sidecar_rows, words
from ctxscope.tui.history_cells import GUTTER, History
from tests.tui_session import HOSTILE, call
from tests.tui_tokens import LEDGER, MARKER, NEW, OLD, PHANTOM, ROWS


def told(lines) -> list[str]:
    return ["".join(text for text, _ in line) for line in lines]


def row(lines, name: str, which: int = 0) -> list[str]:
    """The cells of the row of a count, in one of the blocks."""
    return [line for line in told(lines) if line.startswith(f" {name}")][which].removeprefix(f" {name}").split()


# --- sidecars --------------------------------------------------------------------------------------------------------


COUNTER = Counter()
"""Loads its vocabulary once."""


@given(st.sampled_from(HOSTILE), st.sampled_from(HOSTILE), st.sampled_from(HOSTILE), st.sampled_from([78, 147]))
def test_no_line_of_the_sidecars_is_wider_than_the_pane_and_both_texts_have_room_below(place, clean, stored, width):
    sidecar = Sidecar(Place(0, place * 4), place, clean * 400, stored * 400)
    each = judged(sidecar, COUNTER, None, None)
    lines, stops = sidecar_rows.lines_of([SidecarView(each, clean * 400, stored * 400)], SidecarSum(longer=1), width)
    assert len(stops) == 1
    assert all(cell_len(line) < width for line in told(lines))
    if each.relation != "equal":
        assert cell_len("".join(told([sidecar_rows.about(SidecarView(each, clean * 400, stored * 400), 156)]))) <= 156


def test_the_column_of_places_is_as_wide_as_their_cells():
    each = judged(Sidecar(Place(0, "漢字かなか"), "user", "clean", "stored"), Counter(), None, None)
    lines, (stop,) = sidecar_rows.lines_of([SidecarView(each, "clean", "stored")], SidecarSum(longer=1), 78)
    assert "漢字かなか " in told(lines)[stop]


# --- the ledger ------------------------------------------------------------------------------------------------------


def test_each_number_says_how_it_is_known():
    lines = ledger_rows.lines_of(call(3, tokens=LEDGER), (), 147)
    head = next(line for line in told(lines) if "÷rep." in line).split()
    assert head == [
        *(
            "tokens",
            "÷rep.",
            "system",
            "tools",
            "text",
            "calls",
            "results",
            "thinking",
            "images",
            "bookkeep",
            "envelope",
        )
    ]
    assert row(lines, "reported") == ["by", "the", "provider", "950", "1.00", *"–" * 9]
    seen = ["≈799", "0.84", "≈48", "≈80", "≈20", "≈28", "≈607", "≈16", "–", "(≈122)"]
    assert row(lines, "visible") == ["estimated", *seen]
    assert row(lines, "rebuilt") == ["estimated", *seen]
    assert row(lines, "naive")[-10:] == ["0.71", *"–" * 9]
    zeros = ["0", "0", "0", "0", "0"]
    assert row(lines, "Hermes 0.20") == ["verified", "≈706", "0.74", "≈51", "0", "≈400", *zeros[:4], "≈255", "0"]
    assert row(lines, "Hermes 0.19")[:4] == ["formula,", "not", "verified", "≈1,654"]
    assert "Hermes 0.19: from the formula, not verified" in " ".join(told(lines))


def test_a_rebuilt_request_that_differs_has_other_parts_than_the_served_one():
    one = call(3, tokens=LEDGER, rebuilt=RebuiltVerdict("differs", "body"))
    assert row(ledger_rows.lines_of(one, (), 147), "rebuilt")[2:] == ["0.84", *"–" * 9]
    alone = replace(LEDGER, visible=None, reported=None)
    lines = ledger_rows.lines_of(call(3, tokens=alone, usage=None), (), 147)
    assert row(lines, "rebuilt")[:4] == ["estimated", "≈799", "–", "≈48"]
    assert row(lines, "visible") == ["estimated", *"–" * 11]


def test_no_estimator_and_no_counts_are_unknown_not_nothing():
    lines = ledger_rows.lines_of(call(3, tokens=TokenLedger(), usage=None, window=Window()), (), 100)
    assert row(lines, "agent") == ["–", "–"]
    assert row(lines, "visible") == ["–", "–"]
    assert "not counted yet" in " ".join(told(lines))
    assert "window – · threshold –" in " ".join(told(lines))


def test_why_the_counts_part_is_told_in_the_order_given():
    lines = told(ledger_rows.lines_of(call(3, tokens=LEDGER), (), 147))
    at = next(i for i, line in enumerate(lines) if line.startswith(" why they part"))
    assert lines[at : at + 2] == [f" why they part {LEDGER.gap[0]}", f"   · {LEDGER.gap[1]}"]


@pytest.mark.parametrize("width", [58, 76, 100, 147])
def test_every_column_stands_in_some_block(width):
    lines = told(ledger_rows.lines_of(call(3, tokens=LEDGER), (), width))
    heads = [line.split()[2:] for line in lines if "÷rep." in line and "against" not in line]
    assert [name for head in heads for name in head] == [
        *("system", "tools", "text", "calls", "results", "thinking", "images", "bookkeep", "envelope")
    ]
    assert max(cell_len(line.rstrip()) for line in lines) <= width
    assert (len(heads) > 1) is (width < 147)


def test_a_turn_adds_up_and_one_unknown_makes_the_sum_unknown():
    calls = [call(3, tokens=LEDGER), call(4, tokens=LEDGER), call(5, tokens=LEDGER), call(4, lineage="side")]
    turn = ledger_rows.turn_of(calls[0], calls)
    assert [each.n for each in turn] == [3, 4]
    lines = ledger_rows.lines_of(calls[0], turn, 147)
    assert " turn 2: 2 calls of main, added up" in [line.rstrip() for line in told(lines)]
    assert row(lines, "reported", 1)[3:5] == ["1,900", "1.00"]
    assert row(lines, "visible", 1)[1:4] == ["≈1,598", "0.84", "≈96"]
    assert row(lines, "Hermes 0.19", 1)[3] == "≈3,308"
    uncounted = call(4, tokens=replace(LEDGER, visible=None, estimates=(NEW,)))
    lines = ledger_rows.lines_of(calls[0], [calls[0], uncounted], 147)
    assert row(lines, "visible", 1) == ["estimated", *"–" * 11]
    assert row(lines, "Hermes 0.19", 1)[3] == "–"
    assert row(lines, "Hermes 0.20", 1)[1] == "≈1,412"


def test_documents_overhead_and_the_bytes_of_envelopes_are_told_where_there_are_any():
    parts = replace(LEDGER.parts, documents=None, overhead=496)
    known = {"envelope_bytes": 1_234, "overhead_for": "the tools", "overhead_from": "a page, 2026-08-22"}
    calls = [call(n, tokens=replace(LEDGER, parts=parts, **known)) for n in (3, 4)]
    lines = ledger_rows.lines_of(calls[0], calls, 160)
    head = next(line for line in told(lines) if "÷rep." in line).split()
    assert head[-5:] == ["images", "docs", "overhead", "bookkeep", "envelope"]
    assert row(lines, "visible")[-4:] == ["–", "–", "(≈496)", "(≈122)"]
    assert row(lines, "visible", 1)[-3:] == ["–", "(≈992)", "(≈244)"]
    said = [line.strip() for line in told(lines)]
    assert "envelope 1,234 bytes of opaque reasoning" in said
    assert "envelope 2,468 bytes of opaque reasoning" in said  # of the turn
    assert "overhead what the provider says it adds for the tools; more is not told (a page, 2026-08-22)" in said
    assert ("", "documents (–)", "text") in words.by_part(calls[0])
    assert ("", "overhead (≈496)", "text") in words.by_part(calls[0])
    one_unknown = [calls[0], replace(calls[1], tokens=replace(calls[1].tokens, envelope_bytes=None))]
    assert "2,468" not in " ".join(told(ledger_rows.lines_of(calls[0], one_unknown, 160)))


def test_how_full_it_is_and_how_each_limit_is_known():
    one = call(3, tokens=LEDGER, window=Window(1_200, "user", 900, "rule"))
    assert ledger_rows.filling(one) == (
        "1,200 (as you say) · threshold 900 (by the agent's rule) · 950 used, 79% · 50 above the threshold"
    )
    counted = replace(one, tokens=replace(LEDGER, reported=None))
    assert ledger_rows.filling(counted).endswith("≈799 used, 67% · ≈101 below the threshold")


def test_the_bar_names_its_parts():
    assert words.by_part(call(3, tokens=LEDGER)) == [
        ("S", "system ≈48", "system"),
        ("T", "tools ≈80", "tools"),
        ("M", "text ≈20", "messages"),
        ("C", "tool calls ≈28", "tools"),
        ("R", "tool results ≈607", "results"),
        ("H", "thinking ≈16", "thinking"),
        ("", "envelope (≈122)", "text"),
        ("I", "images (–)", "new"),
    ]
    assert words.by_part(call(3)) == []


# --- the history -----------------------------------------------------------------------------------------------------


def many(count: int) -> list[Call]:
    """A conversation that grows by 100 tokens a call."""
    return [
        call(
            n, tokens=TokenLedger(reported=100 * n, visible=80 * n, agent=120 * n), window=Window(150 * count, "config")
        )
        for n in range(1, count + 1)
    ]


@settings(deadline=None, max_examples=60)
@given(count=st.integers(0, 400), width=st.integers(12, 150), height=st.integers(1, 40), at=st.floats(0, 1))
def test_every_call_stands_in_one_column_and_nothing_leaves_the_pane(count, width, height, at):
    history = History(many(count), frozenset({2, 7}), 0)
    drawn = history_cells.chart(history, width, height)
    columns = [range(a, b) for a, b in zip(drawn.starts, drawn.starts[1:], strict=False)]
    assert [i for column in columns for i in column] == list(range(count))
    index = int(at * (count - 1)) if count else 0
    lines = told(history_cells.lines_of(drawn, index))
    assert max(map(cell_len, lines)) <= width
    assert len(lines) == max(height - 3, 1) + 3
    if count:
        assert index in columns[drawn.column(index)]
        x = lines[-1].index("▲")
        assert index in columns[drawn.starts.index(drawn.call_under(x))]
        assert lines[-2].count("C") == sum(any(i + 1 in history.events for i in column) for column in columns)


def test_each_count_has_a_mark_of_its_own_between_floor_and_window():
    calls = many(12)
    lines = told(history_cells.lines_of(history_cells.chart(History(calls, frozenset({8}), 0), 120, 23), 5))
    rows = [[line[GUTTER + 8 * i + 3] for line in lines[:20]] for i in range(12)]
    bars = [[line[GUTTER + 8 * i] for line in lines[:20]] for i in range(12)]
    window = next(i for i, line in enumerate(lines) if "─" in line)
    for i, (one, column) in enumerate(zip(calls, rows, strict=True)):
        high = {mark: 20 - column.index(mark) for mark in "ox" if mark in column}
        top = 20 - next(line for line, mark in enumerate(bars[i]) if mark in "▁▂▃▄▅▆▇█")
        assert window < 20 - top
        if i > 4:
            assert high["o"] <= top <= high["x"]
            assert abs(high["x"] - one.tokens.agent / 1_800 * 20) <= 1
    assert lines[-2].index("C") == GUTTER + 8 * 7 + 3
    assert lines[-1].index("▲") == GUTTER + 8 * 5 + 3


def test_what_is_not_known_has_no_mark():
    calls = [call(n, tokens=TokenLedger(), usage=None, window=Window()) for n in (1, 2)]
    calls[0] = replace(calls[0], tokens=TokenLedger(reported=500))
    lines = told(history_cells.lines_of(history_cells.chart(History(calls, frozenset(), 0), 60, 12), 0))
    assert not any(mark in line[GUTTER:] for line in lines[:9] for mark in "ox*─┄")
    assert not any(line[GUTTER + 8 :].strip(" ") for line in lines[:9])


def test_a_window_far_above_is_told_instead_of_drawn():
    calls = [
        call(n, tokens=TokenLedger(reported=900), window=Window(200_000, "config", 150_000, "rule")) for n in (1, 2)
    ]
    lines = told(history_cells.lines_of(history_cells.chart(History(calls, frozenset(), 0), 60, 12), 0))
    assert lines[0][GUTTER:].strip() == "↑ window 200k, threshold 150k"
    assert not any(mark in line for line in lines[1:9] for mark in "─┄")


def test_a_shared_column_shows_the_highest_of_its_calls():
    calls = [call(n, tokens=TokenLedger(reported=1_000 if n == 150 else 10), window=Window()) for n in range(1, 301)]
    lines = told(history_cells.lines_of(history_cells.chart(History(calls, frozenset(), 0), GUTTER + 100, 13), 0))
    assert [line[GUTTER:].count("█") for line in lines[1:10]] == [1] * 9


def test_a_history_holds_one_lineage():
    marker = Marker("compaction", None, True, "", None, call=5)
    calls = (call(1), call(2, lineage="side"), call(5), call(6, session="s2"))
    found = history_cells.history_of(Snapshot(1, calls=calls, compactions=(Compaction(Compacted(marker)),)), calls[0])
    assert [each.n for each in found.calls] == [1, 5]
    assert found.events == {5}


def test_a_history_counts_its_calls_that_wait_once():
    uncounted = TokenLedger(reported=1_000)
    calls = (call(1), call(2, tokens=uncounted), call(3, lineage="side", tokens=uncounted), call(4, tokens=uncounted))
    assert history_cells.history_of(Snapshot(1, calls=calls), calls[0]).waiting == 2


# --- what a compaction dropped ---------------------------------------------------------------------------------------


def dropped(found: Compaction = PHANTOM, width: int = 76) -> list[str]:
    said = {place: Logged(place, "user", f"words at {place}") for place in ROWS[:-1]}
    return [line.strip() for line in told(compaction_rows.dropped_by(found, said, width)[0])]


def messages(found: Compaction = PHANTOM) -> list[str]:
    """The lines that are messages, and the rules between them."""
    return [line for line in dropped(found) if line[:1] in ("─", "┄", "━") or " row " in line]


def test_messages_are_kept_gone_or_lost_to_the_envelope():
    lines = [line.split()[:2] for line in messages() if " row " in line]
    assert lines == [[mark, str(i)] for i, mark in enumerate("KK---!!!KK", 1)]
    assert messages()[-1].split() == ["K", "10", "row", "10", "…"]
    assert [place.at for place in PHANTOM.lost] == ["row 6", "row 7", "row 8"]


def test_the_cuts_stand_between_the_messages_they_divide():
    order = [int(line.split()[1]) if " row " in line else line.strip("─┄━ ") for line in messages()]
    assert order == [
        *(1, 2, "end of the protected head", 3, 4, 5, "the cut of 0.20 without the envelope", 6),
        *("the cut of 0.19", 7, 8, "the cut it made", 9, 10),
    ]


def test_a_log_that_tells_less_is_shown_as_such():
    bare = Compaction(Compacted(replace(MARKER, dropped=ROWS[:2])))
    assert "2 messages dropped or rewritten" in dropped(bare)
    assert [line.split()[0] for line in messages(bare)] == ["-", "-"]
    assert "The log does not tell which messages it dropped." in dropped(Compaction(Compacted(MARKER)))


def test_the_list_tells_cost_and_break_even():
    lines, stops = compaction_rows.list_of(Snapshot(1, compactions=(PHANTOM, Compaction(Compacted(MARKER)))), 110)
    shown = told(lines)
    assert shown[stops[0]].rstrip() == "C compaction before call 8 ON PHANTOM BYTES  prompt 162,000 → 32,000 tokens"
    assert shown[stops[0] + 1] == (
        "   own request 160,000 + 900  held the user 12.2 s  billed again ≈30,000  pays after 14 calls"
    )
    assert shown[stops[1]].rstrip() == "C compaction before call 8  how much it left out is not known"
    assert shown[stops[1] + 1] == f"   · {MARKER.where}"
    assert told(compaction_rows.list_of(Snapshot(1), 76)[0]) == [" No event shortened the history."]


def test_how_often_they_broke_is_told_with_what_is_not_known():
    rates = (
        BreakRate("s1", "compaction", "every 4", 3, 1, 9, 40, estimated=True, unknown=1),
        BreakRate("s1", "strip", "", 1, 0, 3, None, unknown=1),
    )
    shown = told(compaction_rows.list_of(Snapshot(1, compactions=(PHANTOM,), break_rates=rates), 147)[0])
    wanted = [
        "compaction (every 4): 1 of 2 broke the cache, of 1 it is not known whether they broke the cache, in 9 calls; ",
        "strip: of 1 it is not known whether they broke the cache, in 3 calls",
    ]
    assert [line.strip() for line in shown[-2:]] == [wanted[0] + "≈40 tokens billed again", wanted[1]]


@pytest.mark.parametrize("width", [58, 76, 147])
@pytest.mark.parametrize("text", HOSTILE, ids=[ascii(t) for t in HOSTILE])
def test_any_text_keeps_to_the_width_and_passes_the_gate(width, text):
    place = Place(0, text * 9)
    marker = replace(MARKER, kind=text, where=text * 9, place=place)
    found = Compaction(Compacted(marker, (place, *ROWS[:2]), 0, 2, (TailCut(text * 9, 1),)), words=(text * 30,))
    ledger = replace(LEDGER, gap=(text * 30,), estimates=(replace(OLD, estimator=text),))
    one = call(1, lineage=text, tokens=ledger)
    said = {place: Logged(place, text * 9, text * 30)}
    snapshot = Snapshot(1, calls=(one,), compactions=(found,))
    lines = [
        *ledger_rows.lines_of(one, [one, one], width),
        *compaction_rows.list_of(snapshot, width)[0],
        *compaction_rows.dropped_by(found, said, width)[0],
    ]
    for line in told(lines):
        assert cell_len(line.rstrip()) <= width
        assert line.isprintable()
        assert "\u202e" not in line
