"""What the app paints bytes from: the gate, the rows, the alignment, the lines."""

from __future__ import annotations

import json
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from ctxscope.tui import byte_rows
from ctxscope.tui.align import Alignment, align, alone, common_prefix, emphasis
from ctxscope.tui.comparison import Comparison, Side
from ctxscope.tui.rows import LONGEST_ROW, split
from ctxscope.tui.sheet import Sheet, lay_out
from ctxscope.tui.visible import visible, widths
from ctxscope.tui.wrapping import Layout
from tests.tui_session import HOSTILE

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=25,
)
BODIES = st.binary(max_size=300) | JSON.map(
    lambda v: json.dumps(v, ensure_ascii=False).encode("utf-8", "surrogatepass")
)
TEXTS = st.text(st.characters(), max_size=60) | st.sampled_from(HOSTILE)
FORMS = st.sampled_from(["raw", "pretty", "hex"])


def obeyed(text: str) -> list[str]:
    """Characters of a text that a terminal would act on, or that it may lose."""
    return [c for c in text if unicodedata.category(c) in {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}]


@given(TEXTS | st.binary(max_size=60), st.booleans())
def test_nothing_a_terminal_obeys_passes_the_gate(data, pictures):
    assert obeyed(visible(data, pictures=pictures)) == []


@given(TEXTS, st.booleans())
def test_the_gate_loses_no_character(text, pictures):
    shown = visible(text, pictures=pictures)
    for character in text:
        assert visible(character, pictures=pictures) in shown or character in shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain [bold]text[/]", "plain [bold]text[/]"),
        ("\x1b[2J", "␛[2J"),
        ("a\r\nb\tc", "a␍␊b␉c"),
        ("\x9b1m\x7f", "\\x9b1m␡"),
        ("\u202e", "\\u{202e}"),
        ("e\u0301", "e\u0301"),
        ("1\u0301", "1\\u{301}"),
        ("\u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35", "\u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35"),
        ("\u2764\ufe0f", "\u2764\\u{fe0f}"),
        ("\ud83d", "\\u{d83d}"),
        ("a\u00a0b", "a\\u{a0}b"),
    ],
)
def test_what_the_gate_shows(text, shown):
    assert visible(text) == shown


def test_control_characters_can_be_escapes_instead_of_pictures():
    assert visible("\x1b\n\x7f", pictures=False) == "\\x1b\\x0a\\x7f"


def test_bytes_that_are_no_utf8_are_shown_one_by_one():
    assert visible(b"ok\xff\xc3") == "ok\\xff\\xc3"


@given(BODIES, FORMS)
def test_rows_tile_the_bytes(data, form):
    rows = split(data, form)
    assert b"".join(data[a:b] for a, b in zip(rows.starts, rows.starts[1:], strict=False)) == data
    assert rows.depths is None or len(rows.depths) == len(rows)


def test_a_row_is_never_longer_than_its_cap_nor_cuts_a_character():
    data = ("漢" * 5_000).encode()
    rows = split(data, "raw")
    pieces = [data[a:b] for a, b in zip(rows.starts, rows.starts[1:], strict=False)]
    assert len(pieces) > 1
    assert all(len(p) <= LONGEST_ROW for p in pieces)
    assert "".join(p.decode() for p in pieces) == data.decode()


def test_pretty_rows_hold_one_member_each_and_know_their_depth():
    data = b'{"a":[1,{"b":"x\\ny"}],"c":{}}'
    rows = split(data, "pretty")
    pieces = [data[a:b] for a, b in zip(rows.starts, rows.starts[1:], strict=False)]
    assert pieces == [b"{", b'"a":[', b"1,", b"{", b'"b":"x\\n', b'y"', b"}", b"],", b'"c":{}', b"}"]
    assert rows.depths == [0, 1, 2, 2, 3, 4, 2, 1, 1, 0]


def test_an_escaped_backslash_before_an_n_ends_no_row():
    for form in ("raw", "pretty"):
        data = rb'"C:\\new\\\nline"'
        rows = split(data, form)
        pieces = [data[a:b] for a, b in zip(rows.starts, rows.starts[1:], strict=False)]
        assert pieces == [rb'"C:\\new\\\n', b'line"']


def aligned(left: bytes, right: bytes, form: str = "raw", *, thorough: bool = True) -> Alignment:
    return align(left, right, (split(left, form), split(right, form)), thorough=thorough)


@given(BODIES, BODIES, FORMS, st.booleans())
def test_pairs_reassemble_both_sides(left, right, form, thorough):
    pairs = aligned(left, right, form, thorough=thorough).pairs
    assert b"".join(left[slice(*p.left)] for p in pairs if p.left) == left
    assert b"".join(right[slice(*p.right)] for p in pairs if p.right) == right
    assert all((left[slice(*p.left)] == right[slice(*p.right)]) == (p.kind == "=") for p in pairs if p.left and p.right)


@given(BODIES, BODIES, FORMS)
def test_hunks_are_the_runs_of_pairs_that_differ(left, right, form):
    alignment = aligned(left, right, form)
    differing = [i for i, pair in enumerate(alignment.pairs) if pair.kind != "="]
    spans = zip(alignment.hunks, alignment.hunk_ends, strict=True)
    assert [i for first, end in spans for i in range(first, end)] == differing
    assert all(alignment.hunk_ends[i] < first for i, first in enumerate(alignment.hunks[1:]))


@given(BODIES, BODIES, FORMS, st.booleans())
def test_every_byte_finds_its_pair_and_every_pair_where_it_stands(left, right, form, thorough):
    alignment = aligned(left, right, form, thorough=thorough)
    for side, data in enumerate((left, right)):
        for i, pair in enumerate(alignment.pairs):
            span = (pair.left, pair.right)[side]
            start = alignment.start_of(i, right=bool(side))
            assert 0 <= start <= len(data)
            if span is not None:
                assert span[0] == start
                assert alignment.pair_of(span[0], right=bool(side)) == i
                assert alignment.pair_of(span[1] - 1, right=bool(side)) == i


@given(BODIES, st.integers(0, 300), st.binary(max_size=6))
def test_a_change_inside_a_row_is_what_is_emphasised(data, at, insert):
    at = min(at, len(data))
    other = data[:at] + insert + data[at:]
    one, two = emphasis(data, other, (0, len(data)), (0, len(other)))
    assert data[: one[0]] == other[: two[0]]
    assert data[one[1] :] == other[two[1] :]


@given(st.binary(max_size=50), st.binary(max_size=50))
def test_common_prefix(a, b):
    n = common_prefix(a, b)
    assert a[:n] == b[:n]
    assert n == min(len(a), len(b)) or a[n] != b[n]


def sheet_of(left: bytes, right: bytes | None, layout: Layout) -> Sheet:
    comparison = Comparison(
        "rebuilt", Side("served", "S", "served", left), right if right is None else Side("rebuilt", "R", "log", right)
    )
    rows = split(left, layout.form)
    return lay_out(comparison, alone(left, rows) if right is None else aligned(left, right, layout.form), layout)


@settings(deadline=None)
@given(BODIES, BODIES | st.none(), FORMS, st.booleans(), st.booleans(), st.integers(8, 60))
def test_lines_and_folds_hold_every_byte_of_both_sides(left, right, form, beside, wrap, width):
    sheet = sheet_of(left, right, Layout(width, beside, form, wrap, hex_bytes=4))
    shown = [[], []]
    for line in sheet.lines:
        pairs = sheet.alignment.pairs[line.pair : line.pair + line.folded] if line.folded else [line]
        for side, data in enumerate((left, right or b"")):
            spans = [(p.left, p.right)[side] for p in pairs]
            shown[side] += [data[slice(*span)] for span in spans if span]
    assert b"".join(shown[0]) == left
    assert b"".join(shown[1]) == (right or b"")


ALPHABETS = ('ab "\\', "é«»—≈", "漢字かな한", "a\u0301e\u0308", "\x00\x1b\t", "👩\u200d🇩🇪", "\u200b\u202e", "xé漢\x7f")


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from(ALPHABETS), st.integers(0, 90), st.booleans()), max_size=5),
    FORMS,
    st.booleans(),
    st.booleans(),
    st.booleans(),
    st.integers(8, 40),
)
def test_lines_are_counted_as_they_are_cut_and_are_no_wider_than_they_may_be(
    texts, form, beside, wrap, pictures, width
):
    values = [["".join(a[i % len(a)] for i in range(n)), escaped] for a, n, escaped in texts]
    left = b",".join(json.dumps(text, ensure_ascii=escaped).encode() for text, escaped in values)
    sheet = sheet_of(left, left[::2] + b"\xff" * (width % 3), Layout(width, beside, form, wrap, pictures, hex_bytes=4))
    at = 0
    for pair in range(len(sheet.alignment.pairs)):
        lines = sheet.lines.of_pair(pair)
        if not any(line.folded for line in sheet.lines):
            assert sheet.lines.first_of(pair) == at
        at += len(lines)
        for data, spans in (
            (left, [line.left for line in lines]),
            (sheet.comparison.right.data, [x.right for x in lines]),
        ):
            for a, b in (span for span in spans if span) if wrap and form == "raw" else ():
                assert sum(widths(data[a:b].decode("utf-8", "surrogateescape"), pictures=pictures)) <= max(width, 12)
    assert any(line.folded for line in sheet.lines) or len(sheet.lines) == at


@settings(deadline=None)
@given(TEXTS, st.booleans(), st.integers(20, 60))
def test_a_painted_line_is_cells_that_fit_and_hold_no_control(text, beside, width):
    data = json.dumps({"text": text}, ensure_ascii=False).encode("utf-8", "surrogatepass")
    sheet = sheet_of(data, data + b"x", Layout(byte_rows.text_width(width, beside=beside), beside))
    for i in range(len(sheet.lines)):
        painted = byte_rows.paint(sheet, i, width, b"", selected=False)
        assert obeyed("".join(piece for piece, _ in painted)) == []
        assert not beside or sum(cell_len(piece) for piece, _ in painted) == width


def test_the_changed_letters_alone_are_emphasised():
    sheet = sheet_of(b'{"text":"one cat sat"}', b'{"text":"one dog sat"}', Layout(60, beside=True))
    painted = byte_rows.paint(sheet, 0, 140, b"", selected=False)
    assert [p for p in painted if p[1].endswith("-emph")] == [("cat", "served-emph"), ("dog", "log-emph")]


def test_a_search_hit_is_marked_wherever_it_stands():
    sheet = sheet_of(b"abc needle def", None, Layout(60, beside=False))
    assert ("needle", "hit") in byte_rows.paint(sheet, 0, 80, b"needle", selected=False)


def test_an_offset_finds_its_line_even_deep_in_a_long_row():
    data = b'{"a":"' + b"x" * 1_000 + b'END"}'
    sheet = sheet_of(data, None, Layout(40, beside=False))
    line = sheet.lines[sheet.line_of(data.index(b"END"), right=False)]
    assert line.left is not None
    assert line.left[0] <= data.index(b"END") < line.left[1]


def test_equal_runs_fold_and_differences_keep_their_context():
    rows = [b"row %d\n" % i for i in range(100)]
    other = [*rows[:50], b"changed\n", *rows[51:]]
    sheet = sheet_of(b"".join(rows), b"".join(other), Layout(40, beside=True))
    assert [line.folded for line in sheet.lines if line.folded] == [47, 46]
    assert len(sheet.lines) == 2 + 3 + 1 + 3
