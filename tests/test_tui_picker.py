"""Picking a session: what is listed, how it is filtered, opened and left, and what happens while one is read."""

from __future__ import annotations

import json

import pytest
from rich.cells import cell_len

from ctxscope.cli import demo
from ctxscope.model import CtxscopeError
from ctxscope.tui.picker_rows import Cells, ago, cells, columns, matching, paint, short_path
from ctxscope.tui.source import Opening, PickerRow
from tests.tui_pilot import SIZES, User, play
from tests.tui_session import HOSTILE, FakeSource

NOW = 1_800_000_000.0
LONG = "a session whose title goes on and on until nobody wants to read the rest of it any more, and then some"
PICKED = (
    PickerRow("hermes", "Frost check", "/home/me/demo", "/h/state.db", NOW - 90, 1_200, 1_500, live=True, key="a"),
    PickerRow("pi", LONG, "/home/me/plums/deep/down/other", "/home/me/x.jsonl", key="b"),
    PickerRow("pi", "0f3c-77", "", "/home/me/y.jsonl", NOW - 400_000, 3, 214_000_000, key="c"),
)
at_both_sizes = pytest.mark.parametrize("size", SIZES, ids=["80x24", "160x45"])


def listed(width: int, rows=PICKED) -> list[str]:
    texts = [cells(row, NOW, "/home/me") for row in rows]
    wide = columns(texts, width)
    return ["".join(t for t, _ in paint(text, wide, live=False, selected=False)) for text in texts]


def pick(journey, *, size=(160, 45), rows=PICKED, opened=None, **more):
    """Someone at the picker; ``opened`` gathers the keys of what is opened."""

    def open_session(row):
        if opened is not None:
            opened.append(row.key)
        return FakeSource(title=f"opened {row.key}")

    more = {"list_sessions": lambda: rows, "open_session": open_session, **more}
    return play(journey, size=size, pick=True, **more)


@at_both_sizes
def test_open_filter_choose_and_come_back(size):
    opened = []

    async def journey(user: User) -> None:
        assert "Frost check" in user.screen
        assert "3 sessions" in user.screen
        assert "●" in user.line("│>")
        await user.press(*"y.js")
        assert "1 of 3 sessions" in user.screen
        assert "Frost check" not in user.screen
        await user.press("enter")
        assert "opened c" in user.screen
        await user.press("o")
        assert "Open session" in user.screen
        await user.press("down", "enter")
        assert "opened b" in user.screen
        assert len(user.app.screen_stack) == 2
        await user.press("o", "escape")
        assert "opened b" in user.screen
        await user.press("q")

    assert pick(journey, size=size, opened=opened).return_code == 0
    assert opened == ["c", "b"]


def test_escape_clears_the_filter_before_it_leaves():
    async def journey(user: User) -> None:
        await user.press(*"zzz")
        assert "nothing matches" in user.screen
        await user.press("enter")
        assert user.app.is_running
        await user.press("escape")
        assert "3 sessions" in user.screen
        await user.press("escape")
        assert not user.app.is_running

    pick(journey)


@at_both_sizes
def test_what_stands_under_the_cursor_is_told_in_full(size):
    async def journey(user: User) -> None:
        await user.press("down")
        told = "".join(line.strip() for line in user.screen.split("\n")[-3:-1])
        assert told.startswith(LONG[: size[0] - 2])
        assert "/home/me/x.jsonl" in told

    pick(journey, size=size)


def test_the_mouse_opens_with_a_second_click():
    opened = []

    async def journey(user: User) -> None:
        await user.pilot.click(user.app.screen.pane, offset=(10, 4), times=2)
        await user.settle()
        assert "opened c" in user.screen

    pick(journey, opened=opened)


@pytest.mark.parametrize("width", [60, 78, 118, 158])
def test_columns_line_up_and_fill_the_width(width):
    lines = listed(width)
    assert {cell_len(line) for line in lines} == {width - 1}
    assert len({line.index("min ago") + len("min ago") for line in lines[:1]}) == 1
    assert all(line.rstrip() == line for line in lines)
    assert "1,200" in lines[0]
    assert "1.5 KB" in lines[0]
    assert lines[1].split()[-3:] == ["–", "–", "–"]
    assert "–" in lines[2]


def test_a_title_takes_the_room_there_is_and_a_directory_keeps_its_end():
    assert LONG not in listed(158)[1]
    assert LONG in listed(220)[1]
    narrow = listed(78)[1]
    assert "…" in narrow
    assert "/down/other" in narrow


def test_rows_of_any_text_keep_their_width():
    rows = [PickerRow(text, text, text, text) for text in HOSTILE]
    assert {cell_len(line) for line in listed(78, rows)} == {77}


def test_words_match_in_any_text_whatever_the_case():
    assert [r.key for r in matching(PICKED, "HERMES frost")] == ["a"]
    assert [r.key for r in matching(PICKED, "pi home")] == ["b", "c"]
    assert matching(PICKED, "frost pi") == []


def test_age_is_told_in_one_unit_and_then_as_a_day_and_then_as_a_month():
    past = (None, 10, 1_000, 10_000, 100_000, 100 * 86_400, 300 * 86_400)
    told = [ago(None if p is None else NOW - p, NOW) for p in past]
    assert told[:-2] == ["–", "10 s ago", "16 min ago", "2 h ago", "1 d ago"]
    assert told[-2].split()[1] == "Oct"
    assert told[-1] == "Mar 2026"


def test_the_home_folder_is_a_tilde():
    assert [short_path(p, "/home/me") for p in ("/home/me", "/home/me/x", "/home/mex")] == ["~", "~/x", "/home/mex"]
    assert short_path("/x", "") == "/x"


def test_a_list_that_cannot_be_made_is_told():
    def broken():
        raise PermissionError(13, "no entry [/foo]")

    async def journey(user: User) -> None:
        assert "no entry [/foo]" in user.screen
        assert user.app.is_running

    pick(journey, list_sessions=broken)


def test_no_session_at_all_says_what_else_there_is():
    async def journey(user: User) -> None:
        assert "no session found" in user.screen

    pick(journey, rows=())


@pytest.mark.parametrize("error", [CtxscopeError("y.jsonl: torn [/foo]"), KeyError("what is this")])
def test_a_session_that_cannot_be_opened_is_told_and_the_list_is_back(error):
    def broken(_):
        raise error

    async def journey(user: User) -> None:
        await user.press("enter")
        assert str(error) in user.screen
        assert "Open session" in user.screen

    pick(journey, open_session=broken)


def test_samples_are_listed_with_all_that_is_known_of_them():
    rows = [demo.row(case) for case in demo.samples()]
    assert len(rows) >= 12
    for case, row in zip(demo.samples(), rows, strict=True):
        expected = json.loads((case / "expected.json").read_bytes())
        assert row.title == expected["title"]
        assert row.calls == len(expected["calls"])
        assert row.size
        assert row.updated
    narrow = listed(78, rows)
    assert {cell_len(line) for line in narrow} == {77}
    assert not any("–" in line.split()[-3:] for line in narrow)


def opening(result) -> Opening:
    def give():
        if isinstance(result, Exception):
            raise result
        return result

    return Opening("reading x.jsonl …", give)


def test_a_session_is_read_while_the_app_runs():
    async def journey(user: User) -> None:
        assert "read meanwhile" in user.screen
        assert user.call == 12

    pick(journey, opening=opening(FakeSource(title="read meanwhile")))


def test_with_nothing_to_read_there_is_the_list():
    async def journey(user: User) -> None:
        assert "Open session" in user.screen

    pick(journey, opening=opening(None))


def test_what_cannot_be_read_at_the_start_ends_the_app_with_the_reason():
    async def journey(user: User) -> None:
        assert not user.app.is_running

    error = CtxscopeError("x.jsonl: an empty file")
    assert pick(journey, opening=opening(error)).failure is error


def test_cells_are_printable():
    assert cells(PickerRow("pi", "\x1b[2J", "a\nb", ""), NOW, "") == Cells("pi", "␛[2J", "a␊b", "–", "–", "–")
