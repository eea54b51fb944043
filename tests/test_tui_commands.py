"""One table of commands: keys, palette, help and key line say the same."""

from __future__ import annotations

from ctxscope.tui.commands import BINDINGS, COMMANDS, LEGEND
from ctxscope.tui.screens.help import help_lines
from ctxscope.tui.screens.session import SessionScreen, parsed
from tests.tui_pilot import User, play
from tests.tui_session import FakeSource

SHOWN_AS = {
    "down": "↓",
    "up": "↑",
    "left": "←",
    "right": "→",
    "slash": "/",
    "plus": "+",
    "minus": "-",
    "underscore": "_",
    "left_curly_bracket": "{",
    "right_curly_bracket": "}",
    "colon": ":",
    "question_mark": "?",
    "escape": "esc",
    "pagedown": "pgdn",
    "pageup": "pgup",
}
IMPLIED = {"pgdn", "Q", "ctrl+p"}
"""Second names of keys that help leaves out, and the palette's own key, which Textual binds."""


def help_keys() -> dict[str, str]:
    """Description by keys, as help shows them."""
    text = ["".join(t for t, _ in line) for line in help_lines()]
    rows = [line for line in text[: text.index(" MARKS")] if line.startswith("   ")]
    return {line[18:]: line[:18] for line in rows}


def test_help_shows_every_command_with_the_keys_of_the_table():
    shown = help_keys()
    for command in COMMANDS:
        keys = {SHOWN_AS.get(key, key) for key in command.keys.split(",")}
        assert set(shown[command.description].split()) ^ keys <= IMPLIED, command.name
    assert len(shown) == len(COMMANDS)


def test_help_on_the_screen_is_the_table():
    async def journey(user: User) -> None:
        await user.press("?")
        assert "next call, from any pane" in user.screen
        await user.press(*["space"] * 8)
        assert LEGEND[-1][1] in user.screen
        await user.press("escape")
        assert "next call, from any pane" not in user.screen

    play(journey, size=(80, 24))


def test_no_key_means_two_things():
    keys = [key for command in COMMANDS for key in command.keys.split(",")]
    assert len(keys) == len(set(keys))


def test_every_command_has_an_action_and_a_binding():
    for command in COMMANDS:
        namespace, name, _ = parsed(command.action)
        assert namespace == "app" or hasattr(SessionScreen, f"action_{name}"), command.name
    assert {b.action for b in BINDINGS} == {c.action for c in COMMANDS}
    assert len({b.id for b in BINDINGS}) == len(COMMANDS)


def test_the_palette_offers_what_applies():
    async def journey(user: User) -> None:
        offered = {c.title for c in user.app.get_system_commands(user.app.screen)}
        assert {c.name for c in COMMANDS if user.app.screen.applies(c)} - {"command palette"} <= offered
        assert "next hit" not in offered
        await user.press(":", *"next break", "enter")
        assert user.call == 6

    play(journey)


def test_the_key_line_shows_what_fits():
    def shown(size):
        lines = []

        async def journey(user: User) -> None:
            lines.append(user.screen.split("\n")[-1])

        play(journey, size=size, source=FakeSource())
        return lines[0]

    for size in ((80, 24), (160, 45)):
        assert "q Quit" in shown(size)
        assert "d/D Diff" in shown(size)
    assert "F Follow" in shown((160, 45))
