"""Painted spans as strips: style names become colours through one palette for each screen."""

from __future__ import annotations

from typing import ClassVar, Generic

from rich.segment import Segment
from rich.style import Style
from textual.screen import Screen, ScreenResultType
from textual.strip import Strip

from ctxscope.tui.paint import COMPONENT_CLASSES, Spans

Palette = dict[str, Style]
"""Style by style name; another one, not a changed one, when the theme is another."""


def strip(spans: Spans, palette: Palette, base: Style, width: int) -> Strip:
    """Painted spans as exactly ``width`` cells; text goes to segments as it is, no markup parser in between."""
    segments = [Segment(text, base + palette[name]) for text, name in spans if text]
    return Strip(segments).adjust_cell_length(width, base)


class PaintedScreen(Screen[ScreenResultType], Generic[ScreenResultType]):
    """A screen whose widgets paint spans."""

    @property
    def palette(self) -> Palette:
        """The colours of the theme."""
        raise NotImplementedError


class ColouredScreen(PaintedScreen[ScreenResultType]):
    """A painted screen that looks up the colours, for what opens over it too.

    The component classes stand here and not on the widgets: Textual works each of them out anew whenever the widget's
    state changes, which for a screen is rarely.
    """

    COMPONENT_CLASSES: ClassVar[set[str]] = set(COMPONENT_CLASSES)
    _palette: Palette | None = None

    @property
    def palette(self) -> Palette:
        """The colours of the theme, looked up once."""
        if self._palette is None:
            self._palette = {name.removeprefix("paint--"): self._style(name) for name in COMPONENT_CLASSES}
        return self._palette

    def _style(self, name: str) -> Style:
        """A component's style, translucent colours mixed with what lies below; a background only where it has its own."""
        partial, mixed = self.get_component_rich_style(name, partial=True), self.get_component_rich_style(name)
        return partial + Style(color=mixed.color, bgcolor=mixed.bgcolor if partial.bgcolor else None)

    def notify_style_update(self) -> None:
        """Forget the palette when the stylesheet or the theme changes."""
        self._palette = None
        super().notify_style_update()


class Painted:
    """Mixed into widgets of a ``PaintedScreen``."""

    def palette(self) -> Palette:
        """The palette of the screen."""
        screen = self.screen  # type: ignore[attr-defined]  # the widget this is mixed into has it
        assert isinstance(screen, PaintedScreen)  # no other screen holds such a widget
        return screen.palette
