"""CPU from a key press to the frame it paints, at 160×45 with bodies of 5 MB in 50,000 rows; and from start to first screen.

The app runs on Textual's headless driver, and each frame is turned into what a terminal would be sent. CPU is that of the
whole process, threads included, from the key's event to the end of the first frame after it; each key waits until all
before it has come to rest. Scenes and starts have processes of their own.
"""

from __future__ import annotations

import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from textual._compositor import CompositorUpdate
from textual.pilot import Pilot
from textual.screen import Screen
from textual.worker import WorkerCancelled

from ctxscope.cli.source import InspectionSource
from ctxscope.cli.target import Target
from ctxscope.model import CallView
from ctxscope.tui import app
from ctxscope.tui.app import CtxscopeApp
from ctxscope.tui.source import Source
from tests.benchmarks.frames_session import write_session
from tests.conftest import ROOT, SAMPLES
from tests.tui_session import FakeSource, Story, call, themes_folder

SIZE = (160, 45)
CALLS = 50_000
FRAME_BUDGET = "25 ms p95, 60 ms max"
START_BUDGET = "250 ms"
STARTS = 5
NO_BUDGET = "–"
Costs = dict[str, list[float]]


def measure() -> Iterable[tuple[str, str, str]]:
    """What was measured, the figure, the budget."""
    for name, title in (("bodies", "5 MB bodies"), ("calls", f"{CALLS:,} calls")):
        told = json.loads(_python("-m", "tests.benchmarks.frames", name))
        for label, costs in told["frame"].items():
            yield f"{title}; {label}", _figures(costs), FRAME_BUDGET
        for label in ("calls: next, previous", "bytes: raw, pretty, hex"):
            if label in told["rest"]:
                yield f"{title}; {label}, until nothing is under way", _figures(told["rest"][label]), NO_BUDGET
    with tempfile.TemporaryDirectory() as compiled:
        for title, words in (("a session", [str(SAMPLES / "pi" / "clean_append")]), ("the samples", ["demo"])):
            _start(words, compiled)  # as after an installation: modules are compiled
            first, rows = zip(*(_start(words, compiled) for _ in range(STARTS)), strict=True)
            yield f"start to first screen: {title}", _figures(first), START_BUDGET
            yield f"start to first rows: {title}", _figures(rows), NO_BUDGET


# --- one scene, in its own process -----------------------------------------------------------------------------------


class TimedApp(CtxscopeApp):
    """Notes when the first frame after a key is ready for the terminal."""

    CSS_PATH = [Path(app.__file__).parent / name for name in CtxscopeApp.CSS_PATH]  # noqa: RUF012 - Textual's own
    first_frame: float | None = None

    def _display(self, screen: Screen[object], renderable: Any) -> None:
        super()._display(screen, renderable)
        if isinstance(renderable, CompositorUpdate):
            renderable.render_segments(self.console)  # the headless driver leaves this out
            if self.first_frame is None:
                self.first_frame = time.process_time()


@dataclass
class Typist:
    """Presses keys and notes their cost in milliseconds of CPU: to the first frame, and until nothing is under way."""

    pilot: Pilot[None]
    app: TimedApp
    frame: Costs = field(default_factory=dict)
    rest: Costs = field(default_factory=dict)

    async def settle(self) -> None:
        for _ in range(2):
            await self.pilot.pause()
            with suppress(WorkerCancelled):
                await self.app.workers.wait_for_complete()
        await self.pilot.pause()

    async def press(self, *keys: str, label: str = "") -> None:
        for key in keys:
            await self.settle()
            self.app.first_frame, begun = None, time.process_time()
            await self.pilot.press(key)
            await self.settle()
            if label and self.app.first_frame is not None:
                self.frame.setdefault(label, []).append(1_000 * (self.app.first_frame - begun))
                self.rest.setdefault(label, []).append(1_000 * (time.process_time() - begun))


def play(source: Source, keys: Callable[[Typist], Awaitable[None]]) -> Typist:
    async def run() -> Typist:
        timed = TimedApp(source, theme_folders=(themes_folder(),))
        async with timed.run_test(size=SIZE) as pilot:
            typist = Typist(pilot, timed)
            await typist.settle()
            await keys(typist)
        return typist

    return asyncio.run(run())


async def _bodies(typist: Typist) -> None:
    """Every pane and every form, on calls whose bodies have 5 MB."""
    press = typist.press
    await press(*"KKJJKKJJ", label="calls: next, previous")
    for kind in ("served│rebuilt", "previous│this"):
        await press("3", "g")
        await press("down", "down", "down", "enter", label=f"bytes, {kind}: a fold opens")
        await press(*["down"] * 60, *["up"] * 30, label=f"bytes, {kind}: down, up")
        await press(*["pagedown"] * 20, *["pageup"] * 10, label=f"bytes, {kind}: page")
        await press(*"GgGgGg", label=f"bytes, {kind}: end, top")
        await press("v")
    await press(*"vvvvv", label="bytes: other comparison")
    await press(*"xxxxxx", label="bytes: raw, pretty, hex")
    await press(*"uuww", label="bytes: side by side, wrap")
    await press("g", "slash", *"keel", "enter")
    await press(*"nnnnnnnnnnNNNNNNNNN", label="bytes: next, previous hit")
    await press("2")
    await press("g", *["down"] * 20, *["up"] * 20, label="context: down, up")
    await press("1", *"dDdD", label="next, previous divergence")


async def _calls(typist: Typist) -> None:
    """Very many rows in the calls pane."""
    await typist.press(*["up"] * 40, *["down"] * 20, label="calls: down, up")
    await typist.press(*["pageup"] * 20, *["pagedown"] * 10, label="calls: page")
    await typist.press(*"gGgG", label="calls: end, top")
    await typist.press(*"dDdDbBcCtT", label="calls: jumps")


class _ManyCalls(FakeSource):
    """Very many calls, each with a small body."""

    def __init__(self) -> None:
        super().__init__(Story())
        few = self.story.calls
        changes = [{"n": n, "turn": (n + 1) // 2, "what": f"answer number {n}"} for n in range(1, CALLS + 1)]
        calls = tuple(replace(few[change["n"] % len(few)], **change) for change in changes)
        self.snapshot = replace(self.snapshot, calls=calls, markers=())

    def view(self, n: int) -> CallView:
        return self.story.view(n % 12 + 1, call(n))


def scene(name: str) -> dict[str, Costs]:
    """Play one scene in this process."""
    if name == "calls":
        typist = play(_ManyCalls(), _calls)
        return {"frame": typist.frame, "rest": typist.rest}
    with tempfile.TemporaryDirectory() as folder:
        write_session(Path(folder))
        source = InspectionSource.open(Target(Path(folder)))
        typist = play(source, _bodies)
        source.inspection.close()
    return {"frame": typist.frame, "rest": typist.rest}


# --- starting --------------------------------------------------------------------------------------------------------

_UNTIL_FIRST_SCREEN = """
import os, sys, time
from textual.app import App

display, first = App._display, []

def timed(app, screen, renderable):
    display(app, screen, renderable)
    if renderable is None or not screen.children:
        return
    first.append(time.process_time())
    pane = getattr(screen, "calls_pane", None) or getattr(screen, "pane", None)
    if pane is not None and pane.is_attached and pane.row_count():
        os.write(int(sys.argv[1]), f"{first[0]} {time.process_time()}".encode())
        os.kill(os.getpid(), 9)

App._display = timed
from ctxscope.cli.main import main
main(sys.argv[2:])
"""
"""Tells the first frame with anything on it, then the first with rows; the process is then no longer needed."""


def _start(words: Sequence[str], compiled: str) -> tuple[float, float]:
    """Milliseconds of CPU of a fresh process, on a terminal of its own, to its first frame and to the first with rows."""
    import pty  # noqa: PLC0415 - not on every system

    terminal, screen = pty.openpty()
    read, write = os.pipe()
    command = [sys.executable, "-c", _UNTIL_FIRST_SCREEN, str(write), *words]
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "160", "LINES": "45"}
    environment |= {"PYTHONPYCACHEPREFIX": compiled, "PYTHONDONTWRITEBYTECODE": ""}
    with subprocess.Popen(
        command, stdin=screen, stdout=screen, stderr=screen, pass_fds=[write], cwd=ROOT, env=environment
    ) as child:
        os.close(screen)
        os.close(write)
        with suppress(OSError):  # how a terminal says that its last user is gone
            while os.read(terminal, 65_536):
                pass
        told = os.read(read, 100)
        child.wait()
    os.close(terminal)
    os.close(read)
    first, rows = map(float, told.split())
    return 1_000 * first, 1_000 * rows


def _python(*words: str) -> str:
    return subprocess.run([sys.executable, *words], cwd=ROOT, capture_output=True, text=True, check=True).stdout


def _figures(costs: Sequence[float]) -> str:
    ordered = sorted(costs)
    p95 = ordered[min(round(0.95 * len(ordered)), len(ordered) - 1)]
    return f"{statistics.median(ordered):.1f} p50, {p95:.1f} p95, {ordered[-1]:.1f} max ms of {len(ordered)}"


if __name__ == "__main__":
    if len(sys.argv) > 1:
        sys.stdout.write(json.dumps(scene(sys.argv[1])))
    else:
        sys.stdout.writelines(" | ".join(row) + "\n" for row in measure())
