"""Themes are files; a bad one is told and left out."""

from __future__ import annotations

import pytest
from textual.color import Color
from textual.css.stylesheet import Stylesheet

from ctxscope import resources
from ctxscope.model import CtxscopeError
from ctxscope.tui import themes
from ctxscope.tui.app import DEFAULT_THEME, CtxscopeApp
from tests.tui_pilot import User, play
from tests.tui_session import FakeSource, themes_folder

BAD = {
    "not TOML": "name = ",
    "no name": 'dark = true\n[colors]\nprimary = "#fff"',
    "name that is markup": 'name = "[b]"\n[colors]\nprimary = "#fff"',
    "no primary colour": 'name = "x"',
    "a colour that is none": 'name = "x"\n[colors]\nprimary = "no-colour"',
    "a number for a colour": 'name = "x"\n[colors]\nprimary = 3',
    "an unknown colour": 'name = "x"\n[colors]\nprimary = "#fff"\npink = "#fff"',
    "an unknown meaning": 'name = "x"\n[colors]\nprimary = "#fff"\n[variables]\nserve = "#fff"',
    "a colour table that is none": 'name = "x"\ncolors = "#fff"',
    "an unknown key": 'name = "x"\nstyle = "y"\n[colors]\nprimary = "#fff"',
    "dark that is a word": 'name = "x"\ndark = "yes"\n[colors]\nprimary = "#fff"',
}


def test_the_two_bundled_themes_load_and_name_every_meaning():
    found = themes.load([resources.themes()])
    assert [t.name for t in found.themes] == ["okabe-dark", "okabe-light"]
    assert found.problems == ()
    assert [t.dark for t in found.themes] == [True, False]
    assert all(t.variables.keys() == themes.DEFAULTS.keys() for t in found.themes)


@pytest.mark.parametrize("theme", themes.load([themes_folder()]).themes, ids=lambda t: t.name)
def test_every_colour_can_be_read_on_its_background(theme):
    background = Color.parse(theme.background)
    for name, value in theme.variables.items():
        assert background.get_contrast_text(1) is not None
        assert contrast(Color.parse(value), background) >= 3, name


def contrast(one: Color, other: Color) -> float:
    """WCAG contrast ratio."""

    def luminance(color: Color) -> float:
        parts = [c / 255 for c in color.rgb]
        linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("name", ["okabe-dark", "okabe-light"])
def test_what_is_painted_can_be_read_in_a_pane_and_on_the_cursor(name):
    async def journey(user: User) -> None:
        user.app.theme = name
        await user.settle()
        pane = user.app.screen.calls_pane
        palette, pane_style = pane.palette(), pane.rich_style
        for below in (pane_style.bgcolor, palette["cursor"].bgcolor):
            background = Color.from_rich_color(below)
            for meaning, style in palette.items():
                assert contrast(Color.from_rich_color(style.color), background) >= 4.5, (meaning, below)

    play(journey)


def test_the_stylesheet_is_parsed_for_the_first_theme_alone(monkeypatch):
    parsed: list[object] = []
    monkeypatch.setattr(Stylesheet, "reparse", parsed.append)

    async def journey(user: User) -> None:
        assert user.app.theme == DEFAULT_THEME

    play(journey)
    assert parsed == []


def test_rows_painted_in_another_theme_are_not_shown_again():
    async def journey(user: User) -> None:
        pane = user.app.screen.calls_pane
        before = pane.render_line(3)
        assert pane.render_line(3) is before
        user.app.theme = "okabe-light"
        await user.settle()
        after = pane.render_line(3)
        assert after.text == before.text
        assert [s.style.color for s in after] != [s.style.color for s in before]

    play(journey)


@pytest.mark.parametrize("text", BAD.values(), ids=BAD.keys())
def test_a_bad_theme_is_named(tmp_path, text):
    (tmp_path / "mine.toml").write_text(text)
    with pytest.raises(CtxscopeError, match=r"mine\.toml"):
        themes.read(tmp_path / "mine.toml")


def test_a_bad_user_theme_is_told_and_a_good_one_offered(tmp_path):
    (tmp_path / "bad.toml").write_text("name = ")
    (tmp_path / "good.toml").write_text('name = "good"\n[colors]\nprimary = "#fff"')

    async def journey(user: User) -> None:
        assert "theme bad.toml" in user.screen
        assert "good" in user.app.available_themes
        assert user.app.theme == DEFAULT_THEME
        user.app.theme = "good"
        await user.settle()

    play_with(journey, tmp_path)


def test_themes_switch_the_painted_colours():
    async def journey(user: User) -> None:
        await user.press("d")
        pane = user.app.screen.calls_pane
        before = pane.palette()["diverge"].color
        user.app.theme = "okabe-light"
        await user.settle()
        assert pane.palette()["diverge"].color != before

    play(journey)


def test_without_colour_the_screen_says_the_same(monkeypatch):
    texts = []

    async def journey(user: User) -> None:
        await user.press("d")
        texts.append(user.screen)

    play(journey)
    monkeypatch.setenv("NO_COLOR", "1")
    play(journey)
    assert texts[0] == texts[1]


def play_with(journey, folder) -> None:
    import asyncio  # noqa: PLC0415 - this test alone builds its app by hand

    async def run() -> None:
        app = CtxscopeApp(FakeSource(), theme_folders=(themes_folder(), folder))
        async with app.run_test(size=(120, 40), notifications=True) as pilot:
            user = User(pilot, FakeSource())
            await user.settle()
            await journey(user)

    asyncio.run(run())
