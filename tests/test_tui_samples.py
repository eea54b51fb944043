"""The bundled samples from the list to the report, with real key presses on real sessions."""

from __future__ import annotations

from pathlib import Path

import pytest

from ctxscope.cli import demo
from ctxscope.cli.source import InspectionSource
from ctxscope.cli.target import Target
from tests.tui_pilot import SIZES, User, play

at_both_sizes = pytest.mark.parametrize("size", SIZES, ids=["80x24", "160x45"])


@pytest.fixture(autouse=True)
def own_data_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))


def play_samples(journey, size):
    """The app as ``ctxscope demo`` runs it."""

    def open_sample(row):
        return InspectionSource.open(Target(Path(row.path)))

    rows = [demo.row(case) for case in demo.samples()]
    return play(journey, size=size, pick=True, list_sessions=lambda: rows, open_session=open_sample)


@at_both_sizes
def test_from_the_list_over_a_divergence_and_a_lost_reply_to_the_report(size, tmp_path, monkeypatch):
    reports = tmp_path / "reports"
    reports.mkdir()
    monkeypatch.chdir(reports)

    async def journey(user: User) -> None:
        await user.press(*"clock in", "enter")
        assert "3 calls" in user.screen
        await user.press("K", "K")
        assert user.call == 1
        await user.press("d")
        assert user.call == 2
        assert "served ≠ rebuilt" in user.line("why")
        assert "09:00:02" in user.screen
        assert "09:00:01" in user.screen
        await user.press("b")
        assert "cache break (volatile_content" in user.line("why")
        assert "/system/0" in str(user.app.screen.bytes_pane.border_subtitle)
        assert user.line("ctx ").count("╳") == 1
        await user.press("p")
        assert "B volatile_content 2 breaks 1,832 tokens lost" in user.words
        assert "move the clock, id or status behind the last breakpoint" in user.words
        await user.press("j", "enter")
        assert user.call == 3
        assert "/system/0" in str(user.app.screen.bytes_pane.border_subtitle)

        await user.press("o", *"never reached", "enter")
        assert "4 calls" in user.screen
        assert user.call == 4
        await user.press("v", "v")
        assert "delivered │ stored in the log" in user.screen
        assert "delivered text, stored none" in user.line("why")
        assert "Water the west side this evening" in user.screen
        await user.press("e", "enter")
        assert sorted(path.suffix for path in reports.iterdir()) == [".json", ".md"]
        assert "Divergence report" in next(reports.glob("*.md")).read_text("utf-8")
        await user.press("q")

    assert play_samples(journey, size).return_code == 0


@pytest.mark.parametrize("case", demo.samples(), ids=lambda case: case.name)
def test_every_sample_can_be_walked_through(case):
    """Every call in every comparison and form, at one size each; nothing is unreadable and nothing crashes."""
    size = SIZES[len(case.name) % 2]
    source = InspectionSource.open(Target(case))

    async def journey(user: User) -> None:
        await user.press("g")
        for call in source.snapshot.calls:
            assert user.call == call.n
            for _ in user.app.screen.shown.offered:
                await user.press("v")
                assert "cannot be read" not in user.screen
            await user.press("J")
        await user.press("a", "tab", "h", "c", "tab", "enter", "j", "escape", "escape")
        await user.press("x", "2", "G", "enter", "x", "i", "escape", "p", "G", "g", "escape", "?", "escape")
        assert user.app.is_running
        assert user.call

    play(journey, size=size, source=source)
