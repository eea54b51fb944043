"""The rows of the session picker: columns as wide as what they hold, titles as wide as there is room."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from rich.cells import cell_len

from ctxscope.tui.paint import UNKNOWN, Spans, fit, fit_end, number, size
from ctxscope.tui.source import PickerRow
from ctxscope.tui.visible import visible

_MINUTE, _HOUR, _DAY = 60, 3_600, 86_400
_WEEKS, _HALF_YEAR = 28 * _DAY, 183 * _DAY
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_WIDEST_AGENT = 14
_POINTER = 3
"""Cells of the pointer, the live mark and a space."""
_GAP = 2


@dataclass(frozen=True, slots=True)
class Cells:
    """One row as text, printable."""

    agent: str
    title: str
    directory: str
    updated: str
    calls: str
    size: str


HEADINGS = Cells("agent", "session", "directory", "updated", "calls", "size")


@dataclass(frozen=True, slots=True)
class Columns:
    """Widths in cells."""

    agent: int
    title: int
    directory: int
    updated: int
    calls: int
    size: int


def ago(then: float | None, now: float) -> str:
    """How long since, in one unit; after some weeks the day, after half a year the month."""
    if then is None:
        return UNKNOWN
    past = max(now - then, 0)
    if past >= _WEEKS:
        day = time.localtime(then)
        month = _MONTHS[day.tm_mon - 1]
        return f"{day.tm_mday} {month}" if past < _HALF_YEAR else f"{month} {day.tm_year}"
    for unit, seconds in (("d", _DAY), ("h", _HOUR), ("min", _MINUTE)):
        if past >= seconds:
            return f"{past // seconds:.0f} {unit} ago"
    return f"{past:.0f} s ago"


def cells(row: PickerRow, now: float, home: str) -> Cells:
    """What the columns say; ``home`` is the folder that is written ``~``."""
    return Cells(
        visible(row.agent),
        visible(row.title),
        visible(short_path(row.directory, home)) or UNKNOWN,
        ago(row.updated, now),
        number(row.calls),
        size(row.size),
    )


def short_path(path: str, home: str) -> str:
    """A path with the home folder as ``~``."""
    inside = bool(home) and (path == home or path.startswith(f"{home}/"))
    return f"~{path[len(home) :]}" if inside else path


def columns(rows: Sequence[Cells], width: int) -> Columns:
    """Widths for all rows in ``width`` cells: numbers whole, titles and directories share what is left."""

    def widest(name: str) -> int:
        return max(cell_len(getattr(row, name)) for row in (HEADINGS, *rows))

    agent, updated, calls, bytes_ = (
        min(widest("agent"), _WIDEST_AGENT),
        widest("updated"),
        widest("calls"),
        widest("size"),
    )
    room = max(width - _POINTER - agent - updated - calls - bytes_ - 5 * _GAP - 1, 2)
    title, directory = widest("title"), widest("directory")
    if title + directory > room:
        # the title says most: it is cut only when the directory has no more than a third
        directory = min(directory, max(room - title, room // 3))
    return Columns(agent, room - directory, directory, updated, calls, bytes_)


def paint(row: Cells, wide: Columns, *, live: bool, selected: bool, style: str = "text") -> Spans:
    """One row."""
    gap = " " * _GAP
    return [
        (">" if selected else " ", style),
        ("● " if live else "  ", "live"),
        (fit(row.agent, wide.agent) + gap + fit(row.title, wide.title) + gap, style),
        (fit_end(row.directory, wide.directory), "dim"),
        (f"{gap}{row.updated:>{wide.updated}}{gap}{row.calls:>{wide.calls}}{gap}{row.size:>{wide.size}}", style),
    ]


def matching(rows: Sequence[PickerRow], words: str) -> list[PickerRow]:
    """The rows that hold every word, in any text, whatever the case."""
    wanted = words.lower().split()
    return [r for r in rows if all(w in f"{r.agent} {r.title} {r.directory} {r.path} {r.key}".lower() for w in wanted)]
