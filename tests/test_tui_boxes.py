"""What opens over the session is kept: each opening must look like the first, and be whole in its first frame."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from textual.app import App
from textual.dom import DOMNode

from ctxscope.tui.screens.modal import Box
from ctxscope.tui.widgets.row_view import RowView
from tests.test_tui_breaks import lossy
from tests.test_tui_tokens_screen import compacted
from tests.tui_pilot import SIZES, User, play
from tests.tui_session import FakeSource

at_both_sizes = pytest.mark.parametrize("size", SIZES, ids=["80x24", "160x45"])
BOXES: dict[str, tuple[Callable[[], FakeSource], str, list[str]]] = {
    "tokens": (compacted, "a", ["K", "2", "left", "C", "3", "enter", "j", "j", "q"]),
    "breaks": (lossy, "p", ["j", "slash", "t", "2", "enter", "G", "q"]),
    "findings": (FakeSource, "i", ["j", "space", "q"]),
    "help": (FakeSource, "question_mark", ["space", "G", "escape"]),
    "next": (FakeSource, "r", ["x", "u", "d", "G", "q"]),
}
"""A source, the key that opens it, and keys that leave it other than it was opened."""
each_box = pytest.mark.parametrize("name", BOXES)


@pytest.fixture
def frames(monkeypatch) -> list[str]:
    """What has been painted of boxes, frame by frame."""
    painted: list[str] = []
    display = App._display

    def noted(app: App[None], screen: object, renderable: object) -> None:
        display(app, screen, renderable)
        if renderable is not None and isinstance(screen, Box):
            painted.append("\n".join(strip.text for strip in screen._compositor.render_strips()))

    monkeypatch.setattr(App, "_display", noted)
    return painted


@each_box
@at_both_sizes
def test_every_opening_looks_like_the_first(name, size):
    source, key, keys = BOXES[name]

    async def journey(user: User) -> None:
        await user.press(key)
        first = user.screen
        for _ in range(2):
            await user.press(*keys, "end", key)
            assert isinstance(user.app.screen, Box)
            assert user.screen == first

    play(journey, size=size, source=source())


@pytest.mark.parametrize("name", sorted(BOXES.keys() - {"next"}))  # its bytes come from a worker
def test_no_frame_shows_a_box_that_is_not_filled(name, frames):
    source, key, _ = BOXES[name]

    async def journey(user: User) -> None:
        for _ in range(2):
            frames.clear()
            await user.press(key)
            # a bar may come in a frame of its own: it is there or not, the words are the same
            words = [" ".join(frame.translate(dict.fromkeys(map(ord, "▁▂▃▄▅▆▇█"), " ")).split()) for frame in frames]
            assert words
            assert set(words) == {words[-1]}
            await user.press("escape")

    play(journey, source=source())


@each_box
def test_another_theme_and_another_size_while_it_is_closed(name):
    source, key, _ = BOXES[name]
    looks: list[str] = []

    async def journey(user: User, *, opened_before: bool) -> None:
        if opened_before:
            await user.press(key, "escape")
        user.app.theme = "textual-light"
        await user.pilot.resize_terminal(100, 30)
        await user.settle()
        await user.press(key)
        looks.append(str([list(strip) for strip in user.app.screen._compositor.render_strips()]))

    for before in (True, False):
        play(lambda user, before=before: journey(user, opened_before=before), source=source())
    assert looks[0] == looks[1]


@each_box
def test_a_closed_box_holds_nothing_of_a_session(name):
    source, key, keys = BOXES[name]
    of = source()

    async def journey(user: User) -> None:
        await user.press(key)
        box: DOMNode = user.app.screen
        await user.press(*keys)
        assert user.app.screen is not box
        of_session = {id(of), id(of.snapshot), *map(id, of.snapshot.calls), *map(id, of.snapshot.compactions)}
        held = {id(value) for node in box.walk_children(with_self=True) for value in vars(node).values()}
        assert not held & of_session
        assert not any(pane.row_count() for pane in box.query(RowView))

    play(journey, source=of)
