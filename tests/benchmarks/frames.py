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
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from textual import events
from textual._compositor import CompositorUpdate
from textual.pilot import Pilot
from textual.screen import Screen
from textual.worker import WorkerCancelled

from ctxscope.cli.source import InspectionSource
from ctxscope.cli.target import Target
from ctxscope.model import CallView
from ctxscope.tui import app
from ctxscope.tui.app import CtxscopeApp
from ctxscope.tui.screens.next_request import NextRequestScreen
from ctxscope.tui.source import Source
from ctxscope.tui.widgets.row_view import RowView
from tests.benchmarks.frames_boxes import JUDGED, JudgedSource
from tests.benchmarks.frames_session import write_session
from tests.conftest import ROOT, SAMPLES
from tests.tui_session import FakeSource, Story, call, themes_folder

SIZE = (160, 45)
CALLS = ROWS = 50_000
FRAME_BUDGET = "25 ms p95, 60 ms max"
START_BUDGET = "250 ms"
STARTS, OPENINGS = 5, 20
LONGEST_FRAME = 1.0
"""Seconds after which a key has changed nothing."""
NO_BUDGET = "–"
Costs = dict[str, list[float]]


def measure() -> Iterable[tuple[str, str, str]]:
    """What was measured, the figure, the budget."""
    with tempfile.TemporaryDirectory() as data:
        # what a followed session makes the app keep goes where nobody else's is
        os.environ["XDG_DATA_HOME"] = data
        yield from _frames()
        yield from _starts()


def _frames() -> Iterator[tuple[str, str, str]]:
    scenes = {"bodies": "5 MB bodies", "calls": f"{CALLS:,} calls", "boxes": f"{JUDGED:,} calls"}
    for name, title in scenes.items():
        told = json.loads(_python("-m", "tests.benchmarks.frames", name))
        for label, costs in told["frame"].items():
            yield f"{title}; {label}", _figures(costs), FRAME_BUDGET
        for label in ("calls: next, previous", "bytes: raw, pretty, hex", "next: open"):
            if label in told["rest"]:
                yield f"{title}; {label}, until nothing is under way", _figures(told["rest"][label]), NO_BUDGET


def _starts() -> Iterator[tuple[str, str, str]]:
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
    first_frame: tuple[float, float] | None = None
    """CPU of the process and of the UI thread when it was ready."""
    painted: asyncio.Event

    def _display(self, screen: Screen[object], renderable: Any) -> None:
        super()._display(screen, renderable)
        if isinstance(renderable, CompositorUpdate):
            renderable.render_segments(self.console)  # the headless driver leaves this out
            if self.first_frame is None and _is_filled(screen):
                self.first_frame = (time.process_time(), time.thread_time())
                self.painted.set()


def _is_filled(screen: Screen[object]) -> bool:
    """Whether all panes have rows: a box may be painted before. The next request is worked out while the box is open."""
    panes = screen.query(RowView)
    return bool(panes) and (isinstance(screen, NextRequestScreen) or all(pane.row_count() for pane in panes))


@dataclass
class Typist:
    """Presses keys and notes their cost in milliseconds of CPU: to the first frame, and until nothing is under way."""

    pilot: Pilot[None]
    app: TimedApp
    frame: Costs = field(default_factory=dict)
    rest: Costs = field(default_factory=dict)

    async def settle(self) -> None:
        """Until no worker is left and the process idles."""
        await self.pilot.pause()
        with suppress(WorkerCancelled):
            await self.app.workers.wait_for_complete()
        await self.pilot.pause()

    async def press(self, *keys: str, label: str = "") -> None:
        """Keys one by one, each when all is at rest."""
        for key in keys:
            begun = time.process_time()
            frame = await self._tap(key)
            await self.settle()
            if label and frame is not None:
                self.frame.setdefault(label, []).append(1_000 * (frame[0] - begun))
                self.rest.setdefault(label, []).append(1_000 * (time.process_time() - begun))

    async def rush(self, *keys: str, label: str) -> None:
        """Keys one by one, each at the frame of the one before, whatever other threads are at; CPU of the UI thread."""
        for key in keys:
            begun = time.thread_time()
            frame = await self._tap(key)
            if frame is not None:
                self.frame.setdefault(label, []).append(1_000 * (frame[1] - begun))
        await self.settle()

    async def _tap(self, key: str) -> tuple[float, float] | None:
        """CPU at the first frame after a key; ``None`` when it changes nothing on the screen."""
        self.app.first_frame = None
        self.app.painted.clear()
        character = {"slash": "/"}.get(key, key if len(key) == 1 else None)
        self.app.post_message(events.Key(key, character))
        with suppress(TimeoutError):
            await asyncio.wait_for(self.app.painted.wait(), LONGEST_FRAME)
        return self.app.first_frame

    async def show(self, kind: str) -> None:
        """Bring a comparison to the screen."""
        while self.screen.shown.kind != kind:
            await self.press("v")

    @property
    def screen(self) -> Any:
        """The session's screen."""
        return self.app.screen


def play(source: Source, keys: Callable[[Typist], Awaitable[None]]) -> Typist:
    async def run() -> Typist:
        timed = TimedApp(source, theme_folders=(themes_folder(),))
        timed.painted = asyncio.Event()
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
    await typist.rush(*"KKKKKKKKJJJJJJJJKKKKJJJJ", label="calls: next, previous, in a rush, UI thread")
    for kind in ("rebuilt", "previous"):
        await typist.show(kind)
        await press("3", "g")
        await press("enter", label=f"bytes, {kind}: a fold opens")
        assert typist.screen.bytes_pane.row_count() > ROWS
        await press(*["down"] * 30, *["up"] * 15, label=f"bytes, {kind}: down, up")
        await press(*["pagedown"] * 15, *["pageup"] * 8, label=f"bytes, {kind}: page")
        await press(*"GgGgGg", label=f"bytes, {kind}: end, top")
    await press(*"vvvvvvvvvv", label="bytes: other comparison")
    await typist.show("rebuilt")
    await press(*"xxxxxx", label="bytes: raw, pretty, hex")
    await press(*"uuww", label="bytes: side by side, wrap")
    await press("g", "slash", *"keel", "enter")
    await press(*"nnnnnnnnnnNNNNNNNNN", label="bytes: next, previous hit")
    await press("2")
    await press("g", *["down"] * 12, *["up"] * 12, label="context: down, up")
    await press("1", *"dDdD", label="next, previous divergence")


async def _calls(typist: Typist) -> None:
    """Very many rows in the calls pane."""
    await typist.press(*["up"] * 30, *["down"] * 15, label="calls: down, up")
    await typist.press(*["pageup"] * 15, *["pagedown"] * 8, label="calls: page")
    await typist.press(*"gGgG", label="calls: end, top")
    await typist.press(*"dDdDbBcCtT", label="calls: jumps")


async def _boxes(typist: Typist) -> None:
    """What opens over the session, over and over."""
    for key, name in (("a", "tokens"), ("p", "breaks"), ("i", "findings"), ("question_mark", "help"), ("r", "next")):
        for _ in range(OPENINGS):
            await typist.press(key, label=f"{name}: open")
            await typist.press("escape", label=f"{name}: close")
    await typist.press("a")
    await typist.press(*["tab"] * 18, label="tokens: other part")
    await typist.press(*["left"] * 8, *["right"] * 8, label="tokens, ledger: next, previous call")
    await typist.press(*["down"] * 8, label="tokens, ledger: down")
    await typist.press("2")
    await typist.press(*["left"] * 8, *["right"] * 8, label="tokens, history: next, previous call")
    await typist.press("3")
    await typist.press(*["down"] * 8, *["pagedown"] * 4, *"GgGg", label="tokens, compactions: down, page, end")
    await typist.press(*["enter", "escape"] * 5, label="tokens, compactions: what one dropped, back")
    await typist.press("q", "p")
    await typist.press(*["down"] * 8, *["pagedown"] * 4, *"GgGg", label="breaks: down, page, end")
    await typist.press("slash", *"clock", label="breaks: filter")


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
    small = {"calls": (_ManyCalls, _calls), "boxes": (JudgedSource, _boxes)}
    if name in small:
        source, keys = small[name]
        typist = play(source(), keys)
        return {"frame": typist.frame, "rest": typist.rest}
    with tempfile.TemporaryDirectory() as folder:
        write_session(Path(folder))
        opened = InspectionSource.open(Target(Path(folder)))
        typist = play(opened, _bodies)
        opened.inspection.close()
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
