"""The tokens screen with real keys and the mouse."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ctxscope.analysis.sidecars import judged
from ctxscope.analysis.tokens import Counter
from ctxscope.cli import demo
from ctxscope.cli.source import InspectionSource
from ctxscope.cli.target import Target
from ctxscope.model import (
    Logged,
    Place,
    Sidecar,
    SidecarView,
    TokenLedger,
)
from ctxscope.tui.reading import Answered
from tests.tui_pilot import SIZES, User, play
from tests.tui_session import FakeSource
from tests.tui_tokens import LEDGER, PHANTOM

WORDS = "the stored words"


def with_sidecar(n: int) -> tuple[SidecarView, ...]:  # noqa: ARG001 - the face
    return (SidecarView(judged(Sidecar(Place(0, "row 7"), "user", WORDS, WORDS), Counter(), None, None), WORDS, WORDS),)


at_both_sizes = pytest.mark.parametrize("size", SIZES, ids=["80x24", "160x45"])


def compacted() -> FakeSource:
    source = FakeSource()
    calls = [replace(each, tokens=replace(LEDGER, reported=1_000 * each.n)) for each in source.snapshot.calls]
    source.story.calls = calls
    source.snapshot = replace(source.snapshot, calls=tuple(calls), compactions=(PHANTOM,))
    return source


@at_both_sizes
def test_from_the_ledger_over_the_history_to_what_was_dropped(size):
    async def journey(user: User) -> None:
        await user.press("K", "a")
        assert "Tokens · call 11 · turn 6 · main" in user.words
        assert "[1 ledger]" in user.screen
        assert "why they part reasoning envelope 72 %" in user.words
        await user.press("G")
        assert "in the bar: S system T tools M text C tool calls R tool results H thinking I images" in user.words
        await user.press("left")
        assert "call 10 · turn 5" in user.words
        await user.press("tab")
        assert "[2 history]" in user.screen
        assert "call 10 · reported 10,000 · visible ≈799 · agent ≈706 (Hermes 0.20)" in user.words
        assert "█ reported o visible x agent" in user.words
        await user.press("C")
        assert "call 8 · reported 8,000" in user.words
        await user.press("h")
        assert "call 6 · reported 6,000" in user.words  # 7 is another lineage's
        await user.press("G", "space", "pageup", "g")
        assert "call 1 · reported 1,000" in user.words
        await user.press("3")
        assert "ON PHANTOM BYTES" in user.screen
        await user.press("enter")
        assert "what the compaction before call 8 ON PHANTOM BYTES dropped" in user.words
        assert "words at row 1" in user.screen
        await user.press("j", "j")
        assert "row 3 words at row 3" in user.words
        await user.press("escape")
        assert "prompt 162,000 → 32,000 tokens" in user.words
        await user.press("enter", "enter")
        assert user.call == 8

    play(journey, size=size, source=compacted())


@at_both_sizes
def test_enter_goes_to_the_call_of_the_chart_and_esc_leaves_all_as_it_was(size):
    async def journey(user: User) -> None:
        await user.press("a", "escape")
        assert user.call == 12
        await user.press("a", "2", "left", "left", "enter")
        assert user.call == 10
        await user.press("a", "q")
        assert user.call == 10

    play(journey, size=size, source=compacted())


@at_both_sizes
def test_the_mouse_picks_parts_calls_and_messages(size):
    async def journey(user: User) -> None:
        await user.press("a")

        async def click(words: str, below: int = 0, times: int = 1) -> None:
            y, line = next((i, line) for i, line in enumerate(user.screen.split("\n")) if words in line)
            await user.pilot.click(offset=(line.index(words) + 1, y + below), times=times)
            await user.settle()

        await click("2 history")
        assert "[2 history]" in user.screen
        await click("C  ", below=-2)
        assert "call 8 · reported 8,000" in user.words
        await click("3 compactions")
        await click("compaction before call 8 ON", times=2)
        assert "words at row 1" in user.screen
        await click("row 5")
        assert "row 5 words at row 5" in user.words

    play(journey, size=size, source=compacted())


def test_counts_that_arrive_while_it_is_open_are_shown():
    source = compacted()
    counted = source.snapshot
    bare = [replace(each, tokens=TokenLedger(reported=each.tokens.reported)) for each in counted.calls]
    source.snapshot = replace(counted, calls=tuple(bare))

    async def journey(user: User) -> None:
        await user.press("a")
        assert "not counted yet" in user.words
        await user.press("2", "left")
        assert "11 of 11 calls not counted" in user.words
        source.publish(replace(counted, revision=2))
        await user.settle()
        assert "not counted" not in user.words
        assert "call 11 · reported 11,000 · visible ≈799" in user.words
        await user.press("1")
        assert "why they part" in user.words

    play(journey, source=source)


def test_messages_that_cannot_be_read_are_told():
    source = compacted()

    def broken(session: str | None, places: object) -> tuple[Logged, ...]:  # noqa: ARG001 - the face
        raise OSError("the disk is gone")

    source.messages = broken

    async def journey(user: User) -> None:
        await user.press("a", "3", "enter")
        assert "the disk is gone" in user.words
        assert user.app.is_running

    play(journey, source=source)


@at_both_sizes
def test_the_sidecars_of_a_call_beside_what_they_stand_for(size, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    source = InspectionSource.open(Target(next(path for path in demo.samples() if path.name == "sidecar_differs")))
    source.inspection.count()

    async def journey(user: User) -> None:
        await user.press("a", "4")
        assert "[4 sidecars]" in user.screen
        assert "Tokens · call 5 · turn 3 · main" in user.words
        assert "sidecars 1 equal · 1 longer · 2 not sent" in user.words
        assert "by the rule ≈46 tokens in place of ≈28: ≈+18" in user.words
        assert "+ row 1 user longer ≈8 ≈26 ≈+18 +53" in user.words
        assert "x row 3 tool shorter ≈88 ≈11 (≈-77) -105" in user.words
        assert "x row 5 user shorter ≈9 0 (≈-9) -39" in user.words
        assert "= row 6 assistant equal ≈20 ≈20 0 0" in user.words
        assert "row 1 part from character 35 on · clean …" in user.words
        await user.press("j")
        assert "row 3 not sent: its role sends none · part from character 1 on" in user.words
        await user.press("G")
        assert "row 6 equal It opens a quoted note" in user.words
        await user.press("left", "left", "left")
        assert "Tokens · call 2 · turn 1 · main" in user.words
        assert "row 3" not in user.words
        await user.press("shift+tab", "tab")
        assert "[4 sidecars]" in user.screen
        await user.press("enter")
        assert user.call == 2

    play(journey, size=size, source=source)


def test_a_call_without_sidecars_says_so_and_one_that_cannot_be_read_why():
    source = compacted()

    def broken(n: int) -> tuple[()]:
        if n == 11:
            raise OSError("the disk is gone")
        return ()

    source.sidecars = broken

    async def journey(user: User) -> None:
        await user.press("a", "4")
        assert "No message of this call's context has a sidecar." in user.words
        await user.press("left")
        assert "the disk is gone" in user.words
        assert "No message" not in user.words
        await user.press("left")
        assert "No message" in user.words
        assert "gone" not in user.words

    play(journey, source=source)


def test_what_cannot_be_read_of_one_part_hides_nothing_of_the_other():
    source = compacted()

    def broken(*_: object) -> tuple[()]:
        raise OSError("the disk is gone")

    source.messages = broken

    async def journey(user: User) -> None:
        await user.press("a", "4", "3", "enter")
        assert "the disk is gone" in user.words
        await user.press("4")
        assert "No message of this call's context has a sidecar." in user.words
        assert "gone" not in user.words
        source.sidecars, source.messages = broken, FakeSource().messages
        await user.press("left")
        assert "the disk is gone" in user.words
        await user.press("3", "enter")
        assert "words at row 1" in user.words
        assert "gone" not in user.words

    play(journey, source=source)


def test_sidecars_are_read_anew_for_a_newer_snapshot():
    source = compacted()

    async def journey(user: User) -> None:
        await user.press("a", "4")
        assert "No message" in user.words
        source.sidecars = with_sidecar
        source.publish(replace(source.snapshot, revision=2))
        await user.settle()
        assert "row 7 equal the stored words" in user.words

    play(journey, source=source)


def test_an_answer_that_comes_after_reopening_is_not_shown():
    source = compacted()
    source.sidecars = with_sidecar

    async def journey(user: User) -> None:
        await user.press("a", "4")
        assert "the stored words" in user.words
        box = user.app.screen
        late = Answered(box._beside, box._beside.known)
        await user.press("escape")
        source.sidecars = FakeSource().sidecars
        await user.press("a", "4")
        box.post_message(late)
        await user.settle()
        assert user.app.screen is box
        assert "No message" in user.words
        assert "the stored words" not in user.words

    play(journey, source=source)


@at_both_sizes
def test_without_colour_it_says_the_same(size, monkeypatch):
    texts: list[list[str]] = []

    async def journey(user: User) -> None:
        texts.append([])
        for key in ("a", "2", "3", "enter", "4"):
            await user.press(key)
            texts[-1].append(user.screen)

    play(journey, size=size, source=compacted())
    monkeypatch.setenv("NO_COLOR", "1")
    play(journey, size=size, source=compacted())
    assert texts[0] == texts[1]


@at_both_sizes
def test_a_real_compaction_from_its_ledger_to_its_messages(size, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    case = next(path for path in demo.samples() if path.name == "batch_compaction")
    source = InspectionSource.open(Target(case))
    source.inspection.count()

    async def journey(user: User) -> None:
        await user.press("a")
        assert "Hermes 0.19" in user.screen
        await user.press("G")
        assert "from the formula, not verified" in user.words
        await user.press("tab", "C")
        assert "call 7 · reported 886" in user.words
        await user.press("tab", "enter")
        assert "the cut it made" in user.words
        assert "- 1 row 1 user How was the night in the east?" in user.words
        assert "K 8 row 8 assistant Two degrees warmer than the east." in user.words

    play(journey, size=size, source=source)
