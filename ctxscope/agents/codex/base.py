"""The base instructions: what the log holds of them, and which of its lines a request carries (codex.md §4.8).

0.98 sends them as logged. 0.171 logs more than it sends: sections on tools that are not offered are left out, each from
its heading to the next. Which ones is seen in the first request and holds from then on; nothing else may be missing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache

from ctxscope.agents.codex.items import spelled
from ctxscope.model import Piece, Place

Kept = tuple[tuple[int, int], ...]
"""Runs of lines that are sent: first, and the one behind the last."""
MOST_CHANGED = 3
"""Lines of a section that may read otherwise and still be the log's: a changed line is to show as a difference."""
MOST_LEFT_OUT = 4
"""Places where sections are left out; 0.171 was seen to leave them out in two, a fifth of the text."""


@lru_cache(maxsize=16)
def kept_lines(logged: str, served: str) -> Kept:
    """The sections of the logged text that a served one is made of; all of them where it is no such text."""
    ours, theirs = logged.split("\n"), served.split("\n")
    whole = whole_of(logged)
    runs: list[tuple[int, int]] = []
    at = 0
    for first, last in _sections(ours):
        size = _found(ours[first:last], theirs[at : at + last - first], is_end=at + last - first > len(theirs))
        if size:
            runs.append((first, first + size))
            at += size
        elif not first:
            return whole
    behind = runs[-1][1]
    if theirs[at:] == [""] and "" in ours[behind:]:  # the line break before a heading that is left out
        blank = ours.index("", behind)
        runs.append((blank, blank + 1))
        at += 1
    kept = _joined(runs)
    size = sum(len(line) + 1 for first, last in kept for line in ours[first:last])
    return kept if at == len(theirs) and size * 2 > len(logged) and len(kept) <= MOST_LEFT_OUT else whole


def whole_of(logged: str) -> Kept:
    """All lines."""
    return ((0, logged.count("\n") + 1),)


def _sections(lines: Sequence[str]) -> Iterator[tuple[int, int]]:
    """What stands before the first heading, if anything, and each heading with what follows it up to the next."""
    start, fenced = 0, False
    for number, line in enumerate(lines):
        fenced ^= line.lstrip().startswith("```")
        if number and not fenced and line.startswith("#") and line.lstrip("#")[:1] == " ":
            yield start, number
            start = number
    yield start, len(lines)


def _found(section: Sequence[str], served: Sequence[str], *, is_end: bool) -> int:
    """How many lines of a section are served, which are all of it; at the end of the text it may lack blank ones.

    Up to half of what it says may read otherwise; of what stands before all headings a line always may.
    """
    if is_end and any(section[len(served) :]):
        return 0
    other = sum(mine != theirs for mine, theirs in zip(section, served, strict=False))
    half = max(sum(map(bool, section)) // 2, 0 if section[0].startswith("#") else 1)
    return len(served) if other <= min(MOST_CHANGED, half) else 0


def _joined(runs: Sequence[tuple[int, int]]) -> Kept:
    joined: list[tuple[int, int]] = []
    for first, last in runs:
        if joined and joined[-1][1] == first:
            joined[-1] = (joined[-1][0], last)
        else:
            joined.append((first, last))
    return tuple(joined)


def told(kept: Kept, logged: str) -> str | None:
    """What is left out, in words; ``None`` where nothing is."""
    whole = logged.count("\n") + 1
    edges = [0, *(edge for run in kept for edge in run), whole]
    left = [(first + 1, last) for first, last in zip(edges[::2], edges[1::2], strict=True) if first < last]
    if not left:
        return None
    return "base instructions sent without lines " + ", ".join(f"{a}-{b}" if a < b else str(a) for a, b in left)


def pieces(logged: str, kept: Kept, place: Place | None) -> Iterator[Piece]:
    """The text as a JSON string, its runs each from the log."""
    lines = logged.split("\n")
    text = ["\n".join(lines[first:last]) for first, last in kept]
    yield Piece(b'"')
    for index, run in enumerate(text):
        if index:
            yield Piece(b"\\n")
        yield Piece(spelled(run)[1:-1], "logged", place) if place else Piece(spelled(run)[1:-1])
    yield Piece(b'"')
