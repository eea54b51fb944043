"""What the bytes pane can show of a call: which two bodies stand side by side, and where to look first."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Literal

from ctxscope.model import Block, Body, CacheVerdict, CallView, NextRequest, Piece, Segment
from ctxscope.tui.visible import is_mark, widths

Span = tuple[int, int]
ComparisonKind = Literal["rebuilt", "previous", "stored", "echoed", "wire", "next"]
CYCLE: tuple[ComparisonKind, ...] = ("rebuilt", "previous", "stored", "echoed", "wire")


_CONTROL = re.compile(rb"[\x00-\x1f\x7f]")
_NOT_ASCII = re.compile(rb"[\x80-\xff]+")


@dataclass(frozen=True, eq=False)
class Side:
    """One body of a comparison."""

    name: str
    letter: str
    """Stands beside its rows where both sides share one column: S served, R rebuilt, P previous…"""
    role: Literal["served", "log"]
    """Which pair of colours it has."""
    data: bytes
    segments: Sequence[Segment] = ()
    pieces: Sequence[Piece] = ()
    piece_ends: Sequence[int] = ()
    """Where each piece ends in ``data``."""
    sha256: str = ""
    """Of ``data``; empty when nobody knows it."""

    @cached_property
    def ascii(self) -> bool:
        """Whether every byte stands for one character."""
        return self.data.isascii()

    @cached_property
    def printable(self) -> bool:
        """Whether no byte is a control."""
        return _CONTROL.search(self.data) is None

    @cached_property
    def narrow(self) -> bool:
        """Whether every character takes one cell, a control (as a picture) among them, and none attaches to another."""
        others = "".join(run.decode("utf-8", "surrogateescape") for run in set(_NOT_ASCII.findall(self.data)))
        return not any(map(is_mark, set(others))) and set(widths("".join(set(others)))) <= {1}

    def origin(self, at: int) -> Piece | None:
        """What the byte at ``at`` is a piece of; ``None`` when this side does not say."""
        i = bisect_right(self.piece_ends, at)
        return self.pieces[i] if i < len(self.pieces) else None

    def segment(self, at: int) -> Segment | None:
        """The segment that holds the byte at ``at``; ``None`` in a gap."""
        i = bisect_right(self.segments, at, key=lambda s: s.start) - 1
        return self.segments[i] if i >= 0 and at < self.segments[i].end else None


@dataclass(frozen=True, slots=True, eq=False)
class Comparison:
    """Two sides, or one with nothing beside it."""

    kind: ComparisonKind
    left: Side
    right: Side | None
    first: Span | None = None
    """Bytes where the verdict says that the sides part: the place to look at first is the first difference from its
    beginning on. ``None``: the first difference there is."""
    first_right: bool = False
    """Whether these are bytes of the right side."""

    @property
    def title(self) -> str:
        """Both names, as the pane's border shows them."""
        return f"{self.left.name} │ {self.right.name}" if self.right else self.left.name


def available(view: CallView) -> tuple[ComparisonKind, ...]:
    """The comparisons that have something to show for this call, in the order ``v`` walks them; never empty."""
    has = {
        "rebuilt": view.served is not None or view.rebuilt is not None,
        "previous": view.previous is not None and _this(view) is not None,
        "stored": view.delivered_blocks is not None or view.stored_blocks is not None,
        "echoed": view.stored_blocks is not None and view.echoed_blocks is not None,
        "wire": view.delivered is not None,
    }
    return tuple(kind for kind in CYCLE if has[kind]) or ("rebuilt",)


def best(view: CallView, wanted: ComparisonKind) -> ComparisonKind:
    """``wanted`` if the call has it. Without a log or a recording, a request is best seen against the previous one."""
    offered = available(view)
    if wanted == "rebuilt" and view.rebuilt is None and "previous" in offered:
        return "previous"
    return wanted if wanted in offered else offered[0]


def compare(view: CallView, kind: ComparisonKind) -> Comparison:
    """The two sides of one kind of comparison."""
    if kind == "rebuilt":
        return _served_and_rebuilt(view)
    if kind == "previous":
        return _previous_and_this(view)
    if kind == "wire":
        return Comparison(kind, Side("delivered, as it crossed the wire", "D", "served", view.delivered or b""), None)
    stored = None if view.stored_blocks is None else _blocks("stored in the log", "L", "log", view.stored_blocks)
    if kind == "echoed":
        echoed = _blocks(f"echoed by call {view.echoed_n}", "E", "served", view.echoed_blocks or ())
        return Comparison(kind, stored or echoed, echoed if stored else None)
    if view.delivered_blocks is None:
        return Comparison(kind, stored or Side("nothing stored", "L", "log", b""), None)
    delivered = _blocks("delivered", "D", "served", view.delivered_blocks)
    cut = view.call.stop is not None and view.call.stop.state in ("truncated", "incomplete")
    same = stored is not None and stored.data == delivered.data
    end = len(delivered.data)
    return Comparison(kind, delivered, stored, (end - 1, end) if cut and same and end else None)


def foretold(request: NextRequest) -> Comparison | None:
    """The last request of a session and the one its agent would send next; ``None`` when that one is not known."""
    if request.body is None:
        return None
    after = _body("next, by a new process", "N", "log", request.body, request.pieces)
    if request.previous is None:
        return Comparison("next", after, None)
    role: Literal["served", "log"] = "served" if request.previous_served else "log"
    last = _body(f"last: call {request.previous_n}", "L", role, request.previous)
    parts = request.difference
    first = (parts.raw_offset, parts.raw_offset + 1) if parts is not None else None
    return Comparison("next", last, after, first)


def blocks_text(blocks: Iterable[Block]) -> bytes:
    """Reply blocks as rows that can stand beside one another: a heading for each, its text, its envelope."""
    lines = []
    for block in blocks:
        lines.append(" ".join(part for part in (f"[{block.kind}]", block.name, block.id) if part))
        lines.append(block.text)
        if block.envelope:
            lines.append(f"(envelope) {block.envelope}")
    return "".join(f"{line}\n" for line in lines).encode("utf-8", "surrogatepass")


def _blocks(name: str, letter: str, role: Literal["served", "log"], blocks: Iterable[Block]) -> Side:
    return Side(name, letter, role, blocks_text(blocks))


def _body(name: str, letter: str, role: Literal["served", "log"], body: Body, pieces: Sequence[Piece] = ()) -> Side:
    ends = list(accumulate(len(p.data) for p in pieces))
    return Side(name, letter, role, body.data, body.segments, pieces, ends, body.sha256)


def _served_and_rebuilt(view: CallView) -> Comparison:
    rebuilt = _body("rebuilt from the log", "R", "log", view.rebuilt, view.pieces) if view.rebuilt else None
    served = _body("served", "S", "served", view.served) if view.served else None
    if served is None:
        return Comparison("rebuilt", rebuilt or Side("nothing served, nothing rebuilt", "R", "log", b""), None)
    difference = view.call.rebuilt.first_difference
    if difference is None or rebuilt is None:
        return Comparison("rebuilt", served, rebuilt)
    return Comparison("rebuilt", served, rebuilt, (difference.raw_offset, difference.raw_offset + 1))


def _previous_and_this(view: CallView) -> Comparison:
    this = _this(view)
    assert view.previous is not None and this is not None  # noqa: PT018 - available() offers it only then
    role: Literal["served", "log"] = "served" if view.served else "log"
    previous = _body(f"previous: call {view.previous_n}", "P", "log", view.previous)
    pieces = view.pieces if this is view.rebuilt else ()
    sides = (previous, _body(f"this: call {view.call.n}", "T", role, this, pieces))
    broken = break_segment(view.call.cache, this.segments) or lost_from(view, this)
    return Comparison("previous", *sides, (broken.start, broken.end) if broken else None, first_right=True)


def break_segment(cache: CacheVerdict, segments: Iterable[Segment]) -> Segment | None:
    """The segment the verdict blames: the one its path names, is inside of, or begins with."""
    if cache.verdict != "break" or not cache.path:
        return None
    within = (s for s in segments if f"{cache.path}/".startswith(f"{s.path}/") or s.path.startswith(f"{cache.path}/"))
    return next(within, None)


def lost_from(view: CallView, body: Body) -> Segment | None:
    """The first segment of a call's prompt, in cache order, that could not be read because the cache broke.

    That is where the parent's prompt parts from this one, so it has as many segments before it as there. A parameter
    that is to blame (a model, the web tools) stands elsewhere, and what it takes away begins here.
    """
    cache, mine = view.call.cache, _in_cache_order(body.segments)
    if cache.verdict != "break" or not mine:
        return None
    theirs = _in_cache_order(view.previous.segments) if view.previous else []
    if cache.prefix_offset is not None and any(s.prompt_bytes for s in theirs):
        place = bisect_right(list(accumulate(s.prompt_bytes for s in theirs)), cache.prefix_offset)
        return mine[min(place, len(mine) - 1)]
    return break_segment(cache, mine)


def _in_cache_order(segments: Iterable[Segment]) -> list[Segment]:
    return sorted((s for s in segments if s.kind in ("tool", "system", "message")), key=lambda s: s.order)


def _this(view: CallView) -> Body | None:
    return view.effective or view.served or view.rebuilt
