"""What opens over the session screen: boxes that are kept and filled anew, their keys, and the simplest, a box of lines."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from functools import lru_cache

from rich.console import RenderableType
from rich.segment import Segment
from rich.style import Style
from textual.app import ComposeResult
from textual.await_complete import AwaitComplete
from textual.binding import Binding, BindingType
from textual.color import Color
from textual.content import Content
from textual.renderables.background_screen import BackgroundScreen
from textual.screen import ModalScreen, ScreenResultType

from ctxscope.tui.paint import Spans
from ctxscope.tui.widgets.painted import ColouredScreen, PaintedScreen, Palette
from ctxscope.tui.widgets.row_view import RowView
from ctxscope.tui.widgets.stops import StopsPane

MOVES: Sequence[BindingType] = (
    Binding("j,down", "step(1)", "down", show=False),
    Binding("k,up", "step(-1)", "up", show=False),
    Binding("space,pagedown,ctrl+d", "page(1)", "page down", show=False),
    Binding("pageup,ctrl+u", "page(-1)", "page up", show=False),
    Binding("g,home", "edge(-1)", "first", show=False),
    Binding("G,end", "edge(1)", "last", show=False),
)
"""Keys that move in every box."""


class Box(PaintedScreen[ScreenResultType], ModalScreen[ScreenResultType]):
    """A modal box; there is one of its kind, which is kept when it closes.

    Textual paints a new screen bare, then laid out, then filled, and dresses all its widgets twice: too much for one key.
    A box that has been open is filled while it is out of sight; one that has not holds back its first frame until it is.
    """

    pane: RowView
    """The pane that keys move in."""

    def __init__(self) -> None:
        super().__init__()
        self._sized = False
        self._unpainted = ExitStack()

    @property
    def palette(self) -> Palette:
        """The colours of the screen it lies over: both have the same ground."""
        return next(screen.palette for screen in self.app.screen_stack if isinstance(screen, ColouredScreen))

    def fill(self) -> None:
        """Show what was handed over; the panes have their sizes."""
        raise NotImplementedError

    def empty(self) -> None:
        """Let go of what was shown."""
        raise NotImplementedError

    def handed_over(self) -> None:
        """Fill it now or, before there are sizes, right before its first frame."""
        if self._sized:
            self.fill()

    def on_mount(self) -> None:
        """Hold back what would be painted bare."""
        self._unpainted.enter_context(self.app.batch_update())

    def on_screen_resume(self) -> None:
        """Come before what this message has painted, and behind the layout that it brings."""
        if not self._sized:
            self.call_later(self._fill_first)

    def _fill_first(self) -> None:
        self._sized = True
        with self._unpainted:
            self.fill()

    def dismiss(self, result: ScreenResultType | None = None) -> AwaitComplete:
        """Close it, and forget what it showed."""
        closed = super().dismiss(result)
        self.workers.cancel_node(self)
        self.empty()
        return closed

    def render(self) -> RenderableType:
        """The screen below, dimmed."""
        below = super().render()
        return _Dimmed(below.screen, below.color) if isinstance(below, BackgroundScreen) else below

    # --- keys ---------------------------------------------------------------------------------------------------------

    def action_step(self, count: int) -> None:
        """Move the cursor."""
        self.pane.move_to(self.pane.cursor + count)

    def action_page(self, direction: int) -> None:
        """Move the cursor by about what is on screen."""
        self.action_step(direction * max(self.pane.page - 1, 1))

    def action_edge(self, direction: int) -> None:
        """Move the cursor to the first or last row."""
        self.pane.move_to(0 if direction < 0 else self.pane.row_count() - 1)


class _Dimmed(BackgroundScreen):
    """As Textual dims a screen, each style once and not each piece of text."""

    @classmethod
    def process_segments(cls, segments: Iterable[Segment], color: Color) -> Iterable[Segment]:
        """Segments with the colour laid over theirs."""
        for segment in segments:
            if segment.control:
                yield segment
            else:
                yield Segment(segment.text, _dimmed(segment.style, color))


@lru_cache(1024)
def _dimmed(style: Style | None, color: Color) -> Style | None:
    (segment,) = BackgroundScreen.process_segments([Segment("", style)], color)
    return segment.style


class LinesScreen(Box[None]):
    """A box of lines that are there already; they scroll and have no cursor."""

    BINDINGS = [Binding("escape,q,question_mark,i", "dismiss", "close", show=False), *MOVES]  # noqa: RUF012 - Textual's own declaration

    def __init__(self, title: str) -> None:
        super().__init__()
        self.pane: StopsPane = StopsPane(id="lines")
        self.pane.border_title = Content(title)
        self.pane.border_subtitle = Content("j k scroll · esc close")
        self._lines: Sequence[Spans] = ()

    def compose(self) -> ComposeResult:
        """The box."""
        yield self.pane

    def show(self, lines: Sequence[Spans]) -> None:
        """Show other lines, from the top."""
        self._lines = lines
        self.handed_over()

    def fill(self) -> None:
        """Show the lines."""
        self.pane.take(self._lines, ())
        self.pane.edge(-1)

    def empty(self) -> None:
        """Let go of the lines."""
        self._lines = ()
        self.pane.take((), ())

    def action_step(self, count: int) -> None:
        """Scroll."""
        self.pane.step(count)

    def action_edge(self, direction: int) -> None:
        """Scroll to the top or bottom."""
        self.pane.edge(direction)
