"""A snapshot as a document: one module per format.

A module named ``<format>_report`` is a format; it registers itself by being there and has the face ``Format``. Listing
formats imports none of them.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol, cast

if TYPE_CHECKING:
    from ctxscope.model import CallView, NextRequest, Snapshot

Content = Literal["full", "redacted", "none"]
Views = Callable[[int], "CallView"]
"""The bytes of call ``n``; dear, so asked only for calls whose excerpts are shown."""


@dataclass(frozen=True, slots=True)
class Options:
    """What of a snapshot a report covers, and how much of its text."""

    call: int | None = None
    """Only this call."""
    turn: int | None = None
    """Only the calls of this turn, in every session."""
    content: Content = "redacted"
    """``full``: texts as they are; ``redacted``: secrets and home folders replaced; ``none``: also no excerpt at all."""
    home: str | None = None
    """The user's home folder, to be redacted beside the forms known by shape."""
    title: str = ""
    command: str = ""
    """Command line that gives this report again."""


class Format(Protocol):
    """What a module of this package offers."""

    def render(self, snapshot: Snapshot, views: Views, options: Options) -> str:
        """The report, ending in a newline; the same snapshot and options give the same text.

        Raises ``CtxscopeError`` when the options choose no call.
        """

    def render_next(self, requests: Sequence[NextRequest], options: Options) -> str:
        """What the sessions' agents would send next if they were started anew; otherwise as ``render``."""

    def spell(self, character: str) -> str:
        """How the format writes a character that the output's encoding lacks."""


@lru_cache
def names() -> tuple[str, ...]:
    """Names of all formats, sorted; imports none of them."""
    return tuple(sorted(p.stem.removesuffix("_report") for p in Path(__file__).parent.glob("*_report.py")))


@lru_cache
def load(name: str) -> Format:
    """One format by name; ``KeyError`` when there is none."""
    if name not in names():
        raise KeyError(name)
    return cast("Format", importlib.import_module(f"{__name__}.{name}_report"))
