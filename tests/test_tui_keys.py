"""What keys do and say: jumps both ways, the key line, keys that could do nothing, words that have no room."""

from __future__ import annotations

from dataclasses import replace

import pytest
from rich.cells import cell_len

from ctxscope.model import CacheVerdict, RebuiltVerdict, Stop
from ctxscope.tui.widgets.lines import wrapped
from tests.tui_pilot import SIZES, User, play
from tests.tui_session import FakeSource, Story, call, with_bytes

at_both_sizes = pytest.mark.parametrize("size", SIZES, ids=["80x24", "160x45"])


def flagged() -> FakeSource:
    """Calls 2 and 9 diverge, 3 and 8 break, 4 and 7 follow a compaction, 5 and 6 were cut."""
    source = FakeSource()
    source.snapshot = replace(
        source.snapshot,
        markers=(),
        calls=tuple(
            call(
                n,
                rebuilt=RebuiltVerdict("differs" if n in (2, 9) else "equal", "body"),
                cache=CacheVerdict("break" if n in (3, 8) else "warm", path="/messages/2/content/0"),
                markers=("micro",) if n in (4, 7) else (),
                stop=Stop("length", "truncated") if n in (5, 6) else Stop("end_turn", "complete"),
            )
            for n in range(1, 13)
        ),
    )
    return source


@at_both_sizes
@pytest.mark.parametrize(
    ("key", "shown", "calls"),
    [
        ("d", "served │ rebuilt from the log", (2, 9)),
        ("b", "previous:", (3, 8)),
        ("c", "previous:", (4, 7)),
        ("t", "delivered │ stored in the log", (5, 6)),
    ],
)
def test_a_flag_is_reached_forwards_and_backwards_and_round_the_end(size, key, shown, calls):
    async def journey(user: User) -> None:
        walked = []
        await user.press("g")
        for each in (key, key, key, key.upper(), key.upper()):
            await user.press(each)
            walked.append(user.call)
            assert shown in user.screen
        assert walked == [calls[0], calls[1], calls[0], calls[1], calls[0]]

    play(journey, size=size, source=flagged())


@at_both_sizes
def test_a_break_is_shown_where_it_broke_not_where_bytes_first_differ(size):
    class Other(Story):
        def view(self, n, of=None):
            view = super().view(n, of)
            return replace(view, previous=with_bytes(view.previous, b"4096", b"8192") if view.previous else None)

    async def journey(user: User) -> None:
        await user.press("b")
        assert user.call == 6
        assert "difference 2/" in str(user.app.screen.bytes_pane.border_subtitle)
        assert "/system" in str(user.app.screen.bytes_pane.border_subtitle)
        await user.press("3", "D")
        assert "difference 1/" in str(user.app.screen.bytes_pane.border_subtitle)

    play(journey, size=size, source=FakeSource(Other()))


@at_both_sizes
def test_a_cut_reply_is_shown_at_its_end(size):
    class Long(Story):
        def view(self, n, of=None):
            view = super().view(n, of or call(n, stop=Stop("length", "truncated")))
            blocks = (replace(view.delivered_blocks[0], text="\n".join(f"line {i}" for i in range(500))),)
            return replace(view, delivered_blocks=blocks, stored_blocks=blocks)

    async def journey(user: User) -> None:
        await user.press("t")
        assert "line 499" in user.screen

    play(journey, size=size, source=FakeSource(Long()))


@at_both_sizes
def test_a_reply_stored_otherwise_is_marked_in_the_list(size):
    async def journey(user: User) -> None:
        await user.press(*"KKKKKKK")
        assert user.call == 5
        assert " =r answer number 5" in user.screen
        assert " =  answer number 4"[:4] in user.screen

    play(journey, size=size)


@pytest.mark.parametrize(
    ("key", "answer"),
    [("d", "no divergence"), ("B", "no cache break"), ("c", "no compaction"), ("T", "no reply that was cut")],
)
def test_a_key_that_could_do_nothing_says_why(key, answer):
    source = FakeSource()
    source.snapshot = replace(source.snapshot, calls=(call(1), call(2)), markers=())

    async def journey(user: User) -> None:
        await user.press(key)
        assert answer in user.screen
        assert user.call == 2

    play(journey, source=source)


def test_keys_that_could_do_nothing_are_not_in_the_key_line():
    source = FakeSource()
    source.snapshot = replace(source.snapshot, calls=(call(1), call(2)), markers=())

    async def journey(user: User) -> None:
        keys = user.screen.split("\n")[-1]
        assert "b/B Break" not in keys
        assert "? Help q Quit" in keys

    play(journey, source=source)


@at_both_sizes
def test_every_key_in_the_key_line_does_something(size):
    async def journey(user: User) -> None:
        screen = user.app.screen
        assert all(screen.applies(command) for _, command in screen.keys._places)
        assert screen.keys._places[-1][0] <= size[0]

    play(journey, size=size)


def test_where_context_and_bytes_share_a_place_a_view_key_brings_the_bytes():
    async def journey(user: User) -> None:
        for key in ("v", "x", "u", "w", "s"):
            await user.press("2")
            assert "3 Bytes" not in user.screen
            await user.press(key)
            assert "3 Bytes" in user.screen

    play(journey, size=(80, 24))


@at_both_sizes
def test_another_form_or_width_stays_at_the_same_byte(size):
    async def journey(user: User) -> None:
        pane = user.app.screen.bytes_pane
        await user.press("3", "/", *"message 5", "enter")
        at = pane._place()
        segment = pane.segment.path
        for key in ("x", "x", "x", "u", "u", "w", "w", "+", "-"):
            await user.press(key)
            assert pane.segment.path == segment, key
        assert abs(pane._place()[0] - at[0]) < 4_096

    play(journey, size=size)


def test_open_folds_stay_open_when_the_width_changes():
    async def journey(user: User) -> None:
        pane = user.app.screen.bytes_pane
        await user.press("g", "d", "3", "G", "enter")
        assert pane.folds.opened
        assert not any(line.folded for line in pane.sheet.lines)
        await user.pilot.resize_terminal(100, 24)
        await user.settle()
        assert pane.sheet.asked == pane.layout_now()
        assert not any(line.folded for line in pane.sheet.lines)

    play(journey, size=(80, 24))


def test_one_side_alone_has_the_whole_pane():
    class Served(Story):
        def view(self, n, of=None):
            return replace(super().view(n, of), rebuilt=None, pieces=(), previous=None, previous_n=None)

    async def journey(user: User) -> None:
        pane = user.app.screen.bytes_pane
        assert pane.sheet.comparison.right is None
        text = '"name":"read_file","input_schema":{"type":"object"}},'
        assert text in user.screen
        await user.press("x", "x")
        assert pane.sheet.layout.hex_bytes == 16
        assert "{" in user.screen

    play(journey, source=FakeSource(Served()))


def test_words_are_wrapped_between_words_and_cut_only_at_the_end():
    def lines(text, width, height, hang=0):
        return ["".join(t for t, _ in line) for line in wrapped([(text, "text")], width, height, hang)]

    assert lines("one two three", 80, 2) == ["one two three"]
    assert lines("one two three", 8, 2) == ["one two ", "three"]
    assert lines("one two three four five", 10, 2, hang=2) == ["one two ", "  three f…"]
    assert lines("abcdefghij klm", 4, 9) == ["abcd", "efgh", "ij ", "klm"]
    for width in range(3, 30):
        for line in lines("why served ≠ rebuilt · 漢字 and more of it, a long story", width, 3, hang=2):
            assert cell_len(line.rstrip()) <= width
