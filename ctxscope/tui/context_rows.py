"""The rows of the context pane: the segments of one call in cache order, grouped, with what is known of each."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ctxscope.model import Body, CallView, Segment
from ctxscope.tui.comparison import lost_from
from ctxscope.tui.paint import UNKNOWN, Spans, bar, fit, number, rule
from ctxscope.tui.visible import visible

_NAME = re.compile(rb'"name"\s*:\s*"((?:[^"\\]|\\.){1,80})')
_GROUPS = {"system": "system", "tool": "tools", "message": "messages", "param": "parameters", "opaque": "opaque body"}
_BLOCK_WORDS = {"other": "", "tool_call": "→", "tool_result": "result"}
"""Blocks by other than their own names: a call is an arrow before the tool's name."""
STYLE_OF_KIND = {"system": "system", "tool": "tools", "message": "messages", "param": "dim", "opaque": "messages"}
PROVENANCE_LETTER: Mapping[str, str] = {
    "logged": "L",
    "derived": "d",
    "learned": "l",
    "echoed": "e",
    "unknown": "?",
    "mixed": "m",
}
_COLLAPSE_FROM = 7
"""Tools; a longer list begins closed, because it hides the conversation."""
_BAR, _HASH, _SINCE = 4, 4, 5
_FIXED = 9 + _BAR + 2 + 2 + 1 + _HASH + _SINCE
"""Cells of all columns but the label: tokens, bar, provenance, the mark against the other side, short hash, since."""


@dataclass(frozen=True, slots=True)
class Heading:
    """A group of segments, open or closed."""

    group: str
    count: int
    tokens: int | None
    share: float


@dataclass(frozen=True, slots=True)
class Item:
    """One segment."""

    segment: Segment
    group: str
    label: str
    tokens: int | None
    share: float
    """Of the largest group, in tokens where all are known, else in bytes."""
    provenance: str
    beside: str
    """``=`` bytes equal to the other side's, ``~`` equal as a prompt, ``≠`` differs, ``+`` not there, blank: nothing to
    compare with."""
    since: int | None
    new: bool


@dataclass(frozen=True, slots=True)
class Mark:
    """A rule between segments: a breakpoint, a break, or what only the other side holds."""

    words: str
    style: str
    line: str


ContextRow = Heading | Item | Mark


@dataclass(frozen=True, slots=True, eq=False)
class Context:
    """All rows of one call, none hidden."""

    rows: Sequence[ContextRow]
    estimated: bool
    closed: frozenset[str]
    """Groups that begin closed."""
    against: str
    """What ``beside`` compares with, in words."""
    sum_of: int | None = None
    """The reported total that all counts add up to, where they are scaled to it."""

    @property
    def items(self) -> list[Item]:
        """The segments alone, in cache order."""
        return [row for row in self.rows if isinstance(row, Item)]

    def shown(self, toggled: frozenset[str]) -> list[ContextRow]:
        """The rows to show when the user has opened or closed the groups ``toggled``."""
        closed = self.closed ^ toggled
        shown: list[ContextRow] = []
        group = ""
        for row in self.rows:
            group = row.group if isinstance(row, Heading) else group
            if isinstance(row, Item) and row.group in closed:
                continue
            shown.append(row)
        return shown


def group_of(segment: Segment) -> str:
    """The group a segment is listed in."""
    return _GROUPS[segment.kind]


def build(view: CallView) -> Context:
    """The context rows of a call; reads the bodies once."""
    body = view.effective or view.served or view.rebuilt
    if body is None:
        return Context((), estimated=True, closed=frozenset(), against="")
    other, against = _other(view)
    items = _items(view, body, other)
    groups = list(dict.fromkeys(item.group for item in items))
    totals = {g: _total([i for i in items if i.group == g]) for g in groups}
    sizes = {g: sum(i.share for i in items if i.group == g) for g in groups}
    largest, broken = max(sizes.values(), default=1) or 1, lost_from(view, body)
    rows: list[ContextRow] = []
    for group in groups:
        members = [i for i in items if i.group == group]
        rows.append(Heading(group, len(members), totals[group], sizes[group] / largest))
        rows.extend(_with_marks(view, members, largest, broken))
    rows.extend(_missing(body, other, against))
    long = sum(i.group == "tools" for i in items) >= _COLLAPSE_FROM
    closed = frozenset({"parameters", "tools"} if long else {"parameters"})
    ledger = view.call.tokens
    return Context(rows, ledger.estimated, closed, against, ledger.reported if _is_scaled(view) else None)


def _is_scaled(view: CallView) -> bool:
    """Whether counts are shown as they add up to the reported total: not where they are the model's own already."""
    return view.call.tokens.estimated and bool(view.calibrated_tokens)


def _other(view: CallView) -> tuple[Body | None, str]:
    if view.rebuilt is not None and view.served is not None:
        return view.rebuilt, "rebuilt"
    if view.previous is not None:
        return view.previous, f"call {view.previous_n}"
    return None, ""


def _items(view: CallView, body: Body, other: Body | None) -> list[Item]:
    tokens = view.calibrated_tokens if _is_scaled(view) else _with_media(view)
    in_tokens = bool(body.segments) and all(s.path in tokens for s in body.segments if s.kind != "param")
    held = {s.digest for s in view.previous.segments} if view.previous else set()
    by_path = {s.path: s for s in other.segments} if other else {}
    by_digest = {s.digest: s for s in other.segments} if other else {}
    items = []
    for segment in sorted(body.segments, key=lambda s: s.order):
        share = tokens.get(segment.path) or 0 if in_tokens else segment.end - segment.start
        since = view.unchanged_since.get(segment.path)
        items.append(
            Item(
                segment,
                group_of(segment),
                _label(body, segment) + _opaque(view.segment_envelopes.get(segment.path)),
                tokens.get(segment.path),
                share,
                PROVENANCE_LETTER.get(view.provenance.get(segment.path, ""), " "),
                _beside(body, segment, other, by_digest.get(segment.digest) or by_path.get(segment.path)),
                since if since != view.call.n else None,
                new=view.previous is not None and segment.kind != "param" and segment.digest not in held,
            )
        )
    return items


def _with_media(view: CallView) -> dict[str, int | None]:
    """Visible tokens by segment, with those of its images; ``None`` where these are not known."""
    media = view.segment_media
    text = view.segment_tokens.items()
    return {path: n if path not in media else None if (more := media[path]) is None else n + more for path, n in text}


def _beside(body: Body, segment: Segment, other: Body | None, twin: Segment | None) -> str:
    if other is None:
        return " "
    if twin is None:
        return "+"
    if other.data[twin.start : twin.end] == body.data[segment.start : segment.end]:
        return "="
    return "~" if twin.digest == segment.digest and segment.digest else "≠"


def _with_marks(
    view: CallView, members: Sequence[Item], largest: float, broken: Segment | None
) -> Iterator[ContextRow]:
    for item in members:
        if item.segment is broken:
            yield Mark(f"break: {visible(view.call.cache.cause or 'cause unknown')}", "break", "╳")
        yield replace(item, share=item.share / largest)
        if item.segment.breakpoint:
            yield Mark("breakpoint", "break", "┊")


def _missing(body: Body, other: Body | None, against: str) -> Iterator[Mark]:
    """What only the other side holds: a count, since it has no place in this order."""
    if other is None:
        return
    held = {s.digest for s in body.segments} | {s.path for s in body.segments}
    absent = [s for s in other.segments if s.kind != "param" and s.digest not in held and s.path not in held]
    if absent:
        yield Mark(f"only in {against}: {len(absent)} segments, first {visible(absent[0].path)}", "diverge", "-")


def _label(body: Body, segment: Segment) -> str:
    numbers = ".".join(part for part in segment.path.split("/") if part.isdigit())
    name = _NAME.search(body.data, segment.start, segment.end) if _named(segment) else None
    if segment.kind == "param":
        return visible(segment.path.lstrip("/"))
    words = " ".join(filter(None, (segment.role, _BLOCK_WORDS.get(segment.block, segment.block))))
    if name:
        words = f"{words} {name[1].decode('utf-8', 'backslashreplace')}"
    return visible(f"{numbers:>4} {words.strip() or segment.path}".rstrip())


def _opaque(size: int | None) -> str:
    return f" +{number(size)} B opaque" if size else ""


def _named(segment: Segment) -> bool:
    return segment.kind == "tool" or segment.block == "tool_call"


def _total(items: Sequence[Item]) -> int | None:
    """Tokens of a group; unknown when any part is."""
    parts = [item.tokens for item in items]
    return None if not parts or None in parts else sum(p for p in parts if p is not None)


def paint(row: ContextRow, width: int, *, selected: bool, closed: bool, estimated: bool) -> Spans:
    """One row of the pane."""
    pointer = ">" if selected else " "
    if isinstance(row, Mark):
        return [(pointer, "text"), *rule(row.words, width - 1, row.style, row.line)]
    tokens = UNKNOWN if row.tokens is None else f"{'≈' if estimated else ''}{number(row.tokens)}"
    room = max(width - _FIXED, 8)
    if isinstance(row, Heading):
        label = f"{pointer}{'▸' if closed else '▾'} {row.group}" + (f" ({row.count})" if row.count > 1 else "")
        return [(fit(label, room), "head"), (f"{tokens:>8} ", "head"), (bar(row.share, _BAR), "dim")]
    since = f"@{row.since}" if row.since is not None else ""
    style = "new" if row.new else STYLE_OF_KIND[row.segment.kind]
    return [
        (fit(f"{pointer}{row.label}", room), style),
        (f"{tokens:>8} ", "text"),
        (bar(row.share, _BAR), style),
        (f" {row.provenance}", "dim"),
        (f" {row.beside}", "diverge" if row.beside in "≠+" else "dim"),
        (f" {row.segment.digest.hex()[:_HASH]:<{_HASH}}", "dim"),
        (f"{since:>{_SINCE}}"[:_SINCE], "dim"),
    ]
