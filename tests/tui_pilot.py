"""Driving the app in tests: press, wait until its workers are done, read the screen as text."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from textual.pilot import Pilot
from textual.worker import WorkerCancelled

from ctxscope.tui.app import CtxscopeApp
from tests.tui_session import FakeSource, themes_folder

SIZES = ((80, 24), (160, 45))
Journey = Callable[["User"], Awaitable[None]]


class User:
    """Someone at the keyboard."""

    def __init__(self, pilot: Pilot[None], source: FakeSource) -> None:
        self.pilot, self.app, self.source = pilot, pilot.app, source

    async def press(self, *keys: str) -> None:
        for key in keys:
            await self.pilot.press(key)
            await self.settle()

    async def settle(self) -> None:
        """Until nothing is under way: a worker's message may start another one."""
        for _ in range(3):
            await self.pilot.pause()
            try:
                await self.app.workers.wait_for_complete()
            except WorkerCancelled:
                continue
        await self.pilot.pause()

    @property
    def screen(self) -> str:
        return "\n".join(s.text.rstrip() for s in self.app.screen._compositor.render_strips())

    def line(self, beginning: str) -> str:
        """The screen line that begins so."""
        return next(line for line in self.screen.split("\n") if line.lstrip().startswith(beginning))

    @property
    def call(self) -> int:
        """Number of the call under the cursor."""
        return self.app.screen.calls_pane.call.n


def play(
    journey: Journey, *, size: tuple[int, int] = (160, 45), source: FakeSource | None = None, **more: object
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

    return asyncio.run(run())
