"""The base instructions: what the log holds of them, and which of its lines a request carries (codex.md §4.8).

0.98 sends them as logged. 0.171 logs more than it sends: sections on tools that are not offered are left out, whole
lines each. Which ones is seen in the first request and holds from then on.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from functools import lru_cache

from ctxscope.agents.codex.items import spelled
from ctxscope.model import Piece, Place

Kept = tuple[tuple[int, int], ...]
"""Runs of lines that are sent: first, and the one behind the last."""
MOST_CHANGED = 3
"""Lines next to each other that may read otherwise and still be the log's: a changed line is to show as a difference."""


@lru_cache(maxsize=16)
def kept_lines(logged: str, served: str) -> Kept | None:
    """The lines of the logged text that a served one is made of; ``None`` where it is another text."""
    if logged == served:
        return ((0, logged.count("\n") + 1),)
    ours, theirs = logged.split("\n"), served.split("\n")
    runs: list[tuple[int, int]] = []
    same = 0
    for tag, first, last, begin, end in SequenceMatcher(None, ours, theirs, autojunk=False).get_opcodes():
        if tag == "equal":
            same += last - first
        elif tag == "insert" or (tag == "replace" and (last - first != end - begin or last - first > MOST_CHANGED)):
            return None
        if tag != "delete":
            runs.append((first, last))
    return _joined(runs) if same * 2 > len(theirs) else None


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
