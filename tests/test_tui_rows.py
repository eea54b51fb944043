"""Rows of the calls and context panes, the token bar, the words."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from rich.cells import cell_len

from ctxscope.model import (
    CacheVerdict,
    Config,
    Coverage,
    Finding,
    Marker,
    RebuiltVerdict,
    ReplyVerdict,
    SessionInfo,
    Snapshot,
    Stop,
    TokenLedger,
    Usage,
)
from ctxscope.tui import bar_cells, call_rows, context_rows, words
from ctxscope.tui.call_rows import CallRows, flags
from ctxscope.tui.comparison import available, best
from ctxscope.tui.context_rows import Item, Mark
from ctxscope.tui.paint import bar, fit, number, short, size
from tests.tui_pilot import User, play
from tests.tui_session import FakeSource, Story, call

UNKNOWN = TokenLedger()


def painted(spans) -> str:
    return "".join(text for text, _ in spans)


def row(of, width=80, previous=None) -> str:
    return painted(call_rows.paint(of, previous, width, selected=False))


def test_flags_are_a_column_of_letters():
    assert flags(call(1)) == "...."
    broken = call(
        1,
        rebuilt=RebuiltVerdict("differs"),
        cache=CacheVerdict("break"),
        markers=("micro",),
        stop=Stop("length", "truncated"),
    )
    assert flags(broken) == "DBCT"


def test_tokens_are_reported_or_marked_as_an_estimate_or_unknown():
    assert " 1,000 " in row(call(1))
    assert " ≈990 " in row(call(1, usage=None, tokens=TokenLedger(visible=990)))
    unknown = row(call(1, usage=None, tokens=UNKNOWN))
    assert " 0 " not in unknown
    assert "–" in unknown


def test_cache_share_is_what_the_provider_reports():
    assert "  90% " in row(call(1))
    assert "   0% " in row(call(1, usage=Usage(input=10, cache_read=0)))
    assert "%" not in row(call(1, usage=Usage(input=10)))


@pytest.mark.parametrize(("state", "letter"), call_rows.STATE_LETTER.items())
def test_a_call_has_a_letter_for_what_is_known_of_it(state, letter):
    assert f".... {letter} " in row(call(1, rebuilt=RebuiltVerdict(state))).replace("D", ".")


def test_a_side_call_is_set_apart_and_a_turn_is_named_once():
    assert "↳ side:2" in row(call(1, kind="side", lineage="side:2")) or "↳ side" in row(call(1, kind="side"))
    assert "t1" in row(call(1))
    assert "t1" not in row(call(2), previous=call(1))


def test_a_marker_is_a_rule_that_says_whether_it_was_logged():
    silent = row(Marker("prune", None, False, "cut tool results", None, 9_000, 4_000))
    assert silent.startswith("┄┄ prune 9k→4k (not logged): cut tool results ┄")
    assert cell_len(silent) == 80


@pytest.mark.parametrize("seed", range(30))
def test_rows_grown_snapshot_by_snapshot_are_the_rows_of_the_last_one(seed):
    rng = random.Random(seed)
    calls, markers, grown = [], [], CallRows()
    for revision in range(15):
        for _ in range(rng.randint(0, 3)):
            n = len(calls) + 1
            calls.append(call(n, rebuilt=RebuiltVerdict(rng.choice(("equal", "differs", "pending")))))
        if calls and rng.random() < 0.4:
            at = rng.randrange(len(calls))
            calls[at] = replace(calls[at], rebuilt=RebuiltVerdict("differs"))
        if rng.random() < 0.2:
            markers.append(Marker("compaction", None, True, "x", call=rng.choice([None, *(c.n for c in calls)])))
        snapshot = Snapshot(revision, calls=tuple(calls), markers=tuple(markers))
        grown.update(snapshot)
        fresh = CallRows()
        fresh.update(snapshot)
        assert grown.rows == fresh.rows
        assert grown.row_of_call == fresh.row_of_call
        assert grown.flagged == fresh.flagged


def test_a_newer_snapshot_costs_what_changed():
    rows = CallRows()
    calls = tuple(call(n) for n in range(1, 1_000))
    rows.update(Snapshot(1, calls=calls))
    kept = rows.rows
    first = kept[0]
    rows.update(Snapshot(2, calls=(*calls, call(1_000))))
    assert rows.rows is kept
    assert rows.rows[0] is first
    assert len(rows.rows) == 1_000


def context_of(n: int, **changes):
    view = Story().view(n)
    return context_rows.build(replace(view, **changes))


def test_segments_stand_in_cache_order_with_breakpoint_and_break():
    context = context_of(6)
    groups = list(dict.fromkeys(i.group for i in context.items))
    assert groups == ["tools", "system", "messages", "parameters"]
    marks = [r for r in context.rows if isinstance(r, Mark)]
    assert [m.words for m in marks] == ["break: system_changed", "breakpoint"]
    at = context.rows.index(marks[0])
    assert isinstance(context.rows[at + 1], Item)
    assert context.rows[at + 1].segment.path == "/system"


def test_a_segment_is_equal_different_or_not_on_the_other_side():
    context = context_of(4)
    beside = {i.segment.path: i.beside for i in context.items}
    assert beside["/max_tokens"] == "≠"
    assert beside["/system"] == "="
    view = Story().view(4)
    shorter = replace(view.rebuilt, segments=view.rebuilt.segments[:-1])
    assert context_of(4, rebuilt=shorter).items[-3].beside == "+"


def test_without_a_recording_segments_are_compared_with_the_previous_call():
    context = context_of(3, served=None, effective=None)
    assert context.against == "call 2"
    assert [i.new for i in context.items if i.group == "messages"] == [False] * 3 + [True] * 2


def test_a_row_of_the_context_names_tokens_provenance_hash_and_age():
    context = context_of(3)
    item = next(i for i in context.items if i.segment.path == "/tools/0")
    shown = painted(context_rows.paint(item, 80, selected=True, closed=False, estimated=True))
    assert shown.startswith(">   0 read_file")
    assert "≈13" in shown
    assert item.segment.digest.hex()[:4] in shown
    assert shown.rstrip().endswith("@1")
    unknown = replace(item, tokens=None)
    assert " – " in painted(context_rows.paint(unknown, 80, selected=False, closed=False, estimated=True))


def test_a_segment_tells_the_bytes_of_opaque_reasoning_in_it():
    paths = [item.segment.path for item in context_of(6).items if item.group == "messages"]
    labels = {i.segment.path: i.label for i in context_of(6, segment_envelopes={paths[1]: 1_200}).items}
    assert labels[paths[1]].endswith(" +1,200 B opaque")
    assert not any("opaque" in label for path, label in labels.items() if path != paths[1])


@pytest.mark.parametrize("width", [40, 47, 59, 77])
def test_every_row_of_the_context_fills_the_pane_and_no_more(width):
    for n in (1, 6, 12):
        context = context_of(n)
        for row in context.rows:
            shown = painted(context_rows.paint(row, width, selected=True, closed=False, estimated=True))
            assert cell_len(shown.rstrip()) <= width
            assert not isinstance(row, Item) or cell_len(shown) == width


def test_an_image_weighs_what_it_costs_and_one_of_unknown_size_is_unknown():
    view = Story().view(3)
    last = max((s for s in view.served.segments if s.kind == "message"), key=lambda s: s.order)
    segments = tuple(replace(s, block="image") if s is last else s for s in view.served.segments)
    served = replace(view.served, segments=segments)
    text = {s.path: 0 if s.path == last.path else 10 for s in segments}

    def shown(media: int | None) -> tuple[int | None, str]:
        pictured = replace(view, served=served, effective=served, segment_tokens=text, segment_media={last.path: media})
        context = context_rows.build(pictured)
        tokens = {row.segment.path: row.tokens for row in context.rows if isinstance(row, Item)}
        return tokens[last.path], painted(bar_cells.build(context, 60_000, 100_000, 40).spans)

    tokens, cells = shown(1296)
    assert tokens == 1296
    assert cells.lower().count("i") > 10
    tokens, cells = shown(None)
    assert tokens is None
    assert "S" in cells  # the others still weigh what they cost


def test_the_bar_has_its_width_and_every_cell_a_segment():
    context = context_of(6)
    for width in (5, 17, 60, 133):
        built = bar_cells.build(context, 60_000, 100_000, width)
        text = painted(built.spans)
        assert cell_len(text) == width == len(built.paths)
        assert text.count("░") == sum(path == "" for path in built.paths)
    assert "╳" in text
    assert "┊" in text
    assert {"T", "M", "S"} & set(text)


def test_a_window_nobody_knows_is_not_filled_to_a_share():
    before, after = bar_cells.words(5_000, None, estimated=True)
    assert before == " ctx ≈5k/– │"
    assert "–" in after
    assert "░" not in painted(bar_cells.build(context_of(3), 5_000, None, 40).spans)


def test_numbers_say_how_they_are_known():
    ledger = told(call(1, tokens=TokenLedger(visible=10, estimated=True), usage=None))
    assert ledger["reported"] == ledger["rebuilt"] == ledger["agent"] == "–"
    assert ledger["visible"] == "≈10"
    assert told(call(1))["visible"] == "990"


def told(of, width=150) -> dict[str, str]:
    return {name: number for number, name in words.ledger(of, width)}


def test_numbers_that_have_no_room_are_left_out_whole():
    assert list(told(call(1), 70)) == ["reported", "cached", "visible", "rebuilt", "naive"]
    assert list(told(call(1, usage=None), 40)) == ["reported", "visible"]


def test_the_why_tells_the_verdict_of_what_is_shown():
    assert "bytes 900 logged, 100 derived" in words.why(call(1), "rebuilt")
    assert "log only" in words.why(call(1, rebuilt=RebuiltVerdict("not_served")), "rebuilt")
    assert "the messages alone compared" in words.why(
        call(1, rebuilt=RebuiltVerdict("equal", "messages", None, Coverage())), "rebuilt"
    )
    ambiguous = CacheVerdict("break", "a", ("a", "b"), "ambiguous")
    assert "candidates a, b" in words.why(call(1, cache=ambiguous), "previous")
    assert "tokens lost" not in words.why(call(1, cache=ambiguous), "previous")
    assert words.why(call(1, reply=ReplyVerdict("prefix")), "stored").startswith("stored is only the beginning")


def test_lost_tokens_that_are_estimated_say_so():
    lost = CacheVerdict("break", "a", lost_tokens=1_234)
    assert "· 1,234 tokens lost" in words.why(call(1, cache=lost), "previous")
    assert "· ≈1,234 tokens lost" in words.why(call(1, cache=replace(lost, lost_estimated=True)), "previous")


def test_a_finding_that_repeats_the_verdict_shown_is_its_code_alone():
    broken = call(1, cache=CacheVerdict("break", "a"))
    found = Finding("CTX201", "warning", (1,), None, "cache break: a", "")
    assert words.why(broken, "previous", [found]).endswith("· CTX201")
    assert words.why(broken, "rebuilt", [found]).endswith("CTX201 warning: cache break: a")


def test_what_a_call_offers_to_look_at():
    view = Story().view(3)
    assert available(view) == ("rebuilt", "previous", "stored", "echoed", "wire")
    assert available(
        replace(view, rebuilt=None, previous=None, stored_blocks=None, delivered_blocks=None, delivered=None)
    ) == ("rebuilt",)
    assert best(replace(view, rebuilt=None), "rebuilt") == "previous"
    assert best(replace(view, stored_blocks=None, delivered_blocks=None), "stored") == "rebuilt"


def test_numbers_for_people():
    assert [short(v) for v in (None, 0, 999, 34_518, 200_000, 1_250_000)] == ["–", "0", "999", "34.5k", "200k", "1.2M"]
    assert [size(v) for v in (None, 12, 1_500, 214 * 1024 * 1024)] == ["–", "12 B", "1.5 KB", "214 MB"]
    assert number(None) == "–"
    assert fit("漢字漢字", 5) == "漢字…"
    assert bar(0, 4) == "    "
    assert bar(1, 4) == "████"
    assert bar(0.001, 4).strip() != ""


def test_the_window_of_the_calls_own_session_is_the_measure():
    source = FakeSource()
    other = SessionInfo("s0", "pi", None, None, (), (), "none", (), Config(window=50))
    source.snapshot = replace(source.snapshot, sessions=(other, *source.snapshot.sessions))

    async def journey(user: User) -> None:
        assert "ctx 12k/200k" in user.screen

    play(journey, source=source)
