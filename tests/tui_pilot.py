"""Driving the app in tests: press, wait until its workers are done, read the screen as text."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress

from textual.pilot import Pilot
from textual.worker import WorkerCancelled

from ctxscope.tui.app import CtxscopeApp
from ctxscope.tui.source import Source
from tests.tui_session import FakeSource, themes_folder

SIZES = ((80, 24), (160, 45))
FRAMES = {ord(c): " " for c in "│╭╮╰╯─▌"}
MOST_PAUSES = 400
"""Looks at a screen that should change; each lets everything come to rest first."""
Journey = Callable[["User"], Awaitable[None]]


class User:
    """Someone at the keyboard."""

    def __init__(self, pilot: Pilot[None], source: Source) -> None:
        self.pilot, self.app, self.source = pilot, pilot.app, source

    async def press(self, *keys: str) -> None:
        for key in keys:
            await self.pilot.press(key)
            await self.settle()

    async def settle(self) -> None:
        """Until nothing is under way: a worker's message may start another one, and one may wait for the next frame."""
        while True:
            await self.pilot.pause()
            running = [worker for worker in self.app.workers if not worker.is_finished]
            asked = self.app.is_running and getattr(self.app.screen, "_asked", None) is not None
            if not running and not asked:
                return
            with suppress(WorkerCancelled):
                await self.app.workers.wait_for_complete(running)

    async def until(self, condition: Callable[[], bool], what: str) -> None:
        """Until something that another thread brings about is so."""
        for _ in range(MOST_PAUSES):
            if condition():
                return
            await self.settle()
        raise AssertionError(f"it never came that {what}:\n{self.screen}")

    @property
    def screen(self) -> str:
        return "\n".join(s.text.rstrip() for s in self.app.screen._compositor.render_strips())

    @property
    def words(self) -> str:
        """All that is on screen, with no frames and no line ends: what is searched may be wrapped."""
        return " ".join(self.screen.translate(FRAMES).split())

    def line(self, beginning: str) -> str:
        """The screen line that begins so."""
        return next(line for line in self.screen.split("\n") if line.lstrip().startswith(beginning))

    @property
    def call(self) -> int:
        """Number of the call under the cursor."""
        return self.app.screen.calls_pane.call.n


def play(
    journey: Journey, *, size: tuple[int, int] = (160, 45), source: Source | None = None, **more: object
) -> CtxscopeApp:
    """Run the app at a size and let someone use it."""

    async def run() -> CtxscopeApp:
        shown = source or FakeSource()
        app = CtxscopeApp(None if more.pop("pick", False) else shown, theme_folders=(themes_folder(),), **more)
        async with app.run_test(size=size, notifications=True) as pilot:
            user = User(pilot, shown)
            await user.settle()
            await journey(user)
        return app

    try:
        return asyncio.run(run())
    finally:
        for thread in threading.enumerate():
            if thread.name == "ctxscope-close":
                thread.join()
