"""The history of a conversation's tokens as a chart of cells: calls from left to right, tokens upwards, a mark per count."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ctxscope.model import Call, Snapshot
from ctxscope.tui.paint import Spans, fit, short
from ctxscope.tui.words import reported

GUTTER = 9
"""Cells left of the chart, for the scale."""
_WIDEST = 8
"""Cells of one call's column, at most."""
_STEPS = " ▁▂▃▄▅▆▇█"
_FAR = 8
"""A window so many times the highest count would press the counts to the floor: then it lies above the chart."""
_HEADROOM = 1.02
_BELOW = 3
"""Lines below the chart: its floor, the events, the cursor."""
LEGEND: tuple[tuple[str, str, str], ...] = (
    ("█", "dim", "reported"),
    ("o", "log", "visible"),
    ("x", "served", "agent"),
    ("*", "head", "both"),
    ("─", "text", "window"),
    ("┄", "break", "threshold"),
    ("C", "compact", "compaction"),
)
"""Mark, style and name."""
_STYLE = {mark: style for mark, style, _ in LEGEND}


@dataclass(frozen=True, slots=True, eq=False)
class History:
    """The calls of one lineage, and where events shortened it."""

    calls: Sequence[Call]
    events: frozenset[int]
    """Numbers of the first calls after one."""
    waiting: int
    """Calls that are not counted yet."""

    def at(self, n: int) -> int:
        """Index of a call by its number; 0 for one that is not there."""
        at = bisect_left(self.calls, n, key=lambda call: call.n)
        return at if at < len(self.calls) and self.calls[at].n == n else 0

    def event_from(self, index: int, direction: int) -> int | None:
        """Index of the next call behind an event or, backwards, of the one before."""
        there = range(index + 1, len(self.calls)) if direction > 0 else range(index - 1, -1, -1)
        return next((i for i in there if self.calls[i].n in self.events), None)


def history_of(snapshot: Snapshot, call: Call) -> History:
    """The history a call stands in."""
    mine = (call.session, call.lineage)
    calls = [each for each in snapshot.calls if (each.session, each.lineage) == mine]
    events = frozenset(c.told.marker.call for c in snapshot.compactions if c.told.marker.call is not None)
    waiting = sum(each.tokens.visible is None and each.tokens.rebuilt is None for each in calls)
    return History(calls, events & frozenset(each.n for each in calls), waiting)


@dataclass(frozen=True, slots=True)
class _Column:
    """What one column stands for: the highest of each count among its calls."""

    reported: int | None
    visible: int | None
    agent: int | None
    window: int | None
    threshold: int | None
    event: bool


@dataclass(frozen=True, slots=True, eq=False)
class Chart:
    """A chart without its cursor."""

    grid: Sequence[Sequence[tuple[str, str]]]
    """Lines from the top, each of cells with style; the scale is no part of them."""
    scale: Sequence[str]
    """What stands left of each line."""
    events: Sequence[bool]
    """By column."""
    starts: Sequence[int]
    """By column the index of its first call and, last, the number of calls."""
    cells: int
    """Of one column."""

    def column(self, index: int) -> int:
        """The column that holds a call."""
        lowest, highest = 0, max(len(self.starts) - 2, 0)
        while lowest < highest:
            middle = (lowest + highest + 1) // 2
            lowest, highest = (middle, highest) if self.starts[middle] <= index else (lowest, middle - 1)
        return lowest

    def call_under(self, x: int) -> int | None:
        """Index of the first call of the column at a cell; ``None`` where there is none."""
        column = (x - GUTTER) // self.cells
        return self.starts[column] if 0 <= column < len(self.starts) - 1 else None


def chart(history: History, width: int, height: int) -> Chart:
    """A chart in so many cells; more calls than there are cells share columns."""
    room, count = max(width - GUTTER, 1), len(history.calls)
    columns = min(count, room)
    starts = [i * count // columns for i in range(columns)] + [count] if columns else [0]
    told = [_column(history, starts[i], starts[i + 1]) for i in range(columns)]
    cells = min(max(room // columns, 1), _WIDEST) if columns else 1
    lines = max(height - _BELOW, 1)
    top, far = _top(told, lines)
    painted = [_painted(column, top, lines, cells) for column in told]
    grid = [[cell for column in painted for cell in column[line]] for line in range(lines)]
    if far:  # nothing reaches into the top line then
        grid[0] = [(fit(far, room), "dim")]
    return Chart(grid, _scale(top, lines), [c.event for c in told], starts, cells)


def lines_of(drawn: Chart, index: int) -> list[Spans]:
    """The lines of a chart with its cursor on a call."""
    column = drawn.column(index)
    at = column * drawn.cells + (drawn.cells - 1) // 2
    lines: list[Spans] = []
    for label, row in zip(drawn.scale, drawn.grid, strict=True):
        cells = list(row)
        if at < len(cells) and cells[at][0] == " ":
            cells[at] = ("┊", "dim")
        lines.append([(label, "dim"), *_runs(cells)])
    width = len(drawn.events) * drawn.cells
    left = " " * ((drawn.cells - 1) // 2)
    marks = "".join(f"{left}{'C' if event else ' '}".ljust(drawn.cells) for event in drawn.events)
    lines.append([(f"{'0 ┼':>{GUTTER}}", "dim"), ("─" * width, "dim")])
    lines.append([(" " * GUTTER, "dim"), (marks, "compact")])
    lines.append([(" " * (GUTTER + at), "dim"), ("▲", "key")])
    return lines


def _runs(cells: Iterable[tuple[str, str]]) -> Spans:
    """Cells of one style in a row as one span."""
    runs: list[tuple[str, str]] = []
    for text, style in cells:
        if runs and runs[-1][1] == style:
            runs[-1] = (runs[-1][0] + text, style)
        else:
            runs.append((text, style))
    return runs


def _column(history: History, start: int, end: int) -> _Column:
    calls = history.calls[start:end]
    tokens, windows = [call.tokens for call in calls], [call.window for call in calls]
    return _Column(
        _highest([reported(call) for call in calls]),
        _highest([each.visible if each.visible is not None else each.rebuilt for each in tokens]),
        _highest([each.agent for each in tokens]),
        _highest([window.size for window in windows]),
        _highest([window.threshold for window in windows]),
        not history.events.isdisjoint([call.n for call in calls]),
    )


def _highest(values: Iterable[int | None]) -> int | None:
    return max([value for value in values if value is not None], default=None)


def _top(columns: Sequence[_Column], lines: int) -> tuple[float, str]:
    """Tokens at the upper edge, and in words what lies above it; then the top line is free."""
    counts = max((v for c in columns for v in (c.reported, c.visible, c.agent) if v is not None), default=0)
    limits = {"window": max((c.window or 0 for c in columns), default=0)}
    limits["threshold"] = max((c.threshold or 0 for c in columns), default=0)
    near = [limit for limit in limits.values() if limit and (not counts or limit < _FAR * counts)]
    above = lines / max(lines - 1, 1) if len(near) < sum(map(bool, limits.values())) else 1.0
    top = max(counts * _HEADROOM * above, *(limit * above for limit in near), 1.0)
    far = [f"{name} {short(limit)}" for name, limit in limits.items() if limit > top]
    return top, f"↑ {', '.join(far)}" if far else ""


def _painted(column: _Column, top: float, lines: int, cells: int) -> list[list[tuple[str, str]]]:
    """One column, line by line from the top."""
    steps = len(_STEPS) - 1
    filled = 0 if column.reported is None else max(round(column.reported / top * lines * steps), 1)
    whole, rest = divmod(min(filled, lines * steps), steps)
    heights = [0] * (lines - whole - bool(rest)) + [rest] * bool(rest) + [steps] * whole
    bar = cells - 1 if cells > 2 else cells  # noqa: PLR2004 - a gap between columns that are wide enough
    shapes = {step: [(_STEPS[step], _STYLE["█"] if step else "text")] * bar for step in {0, rest, steps}}
    gap = [(" ", "text")] * (cells - bar)
    out = [shapes[height] + gap for height in heights]
    for limit, mark in ((column.window, "─"), (column.threshold, "┄")):
        if limit is not None and limit <= top:
            out[_line(limit, top, lines)] = [(mark, _STYLE[mark])] * cells
    at = (cells - 1) // 2
    places = [(_line(v, top, lines), mark) for v, mark in ((column.visible, "o"), (column.agent, "x")) if v is not None]
    for line, mark in places:
        shown = "*" if out[line][at][0] in "ox" else mark
        out[line][at] = (shown, _STYLE[shown])
    return out


def _line(value: int, top: float, lines: int) -> int:
    """The line a value lies in, from the top."""
    return lines - 1 - min(int(value / top * lines), lines - 1)


def _scale(top: float, lines: int) -> list[str]:
    """Numbers at the top and about every fourth line."""
    out = []
    for line in range(lines):
        value = round(top * (lines - line) / lines)
        out.append(fit(f"{short(value):>{GUTTER - 2}} ┤" if line % 4 == 0 else f"{'│':>{GUTTER}}", GUTTER))
    return out
