"""The rows of the breaks screen: what each session's cache gave, then what was lost, by cause, the dearest first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ctxscope.model import CacheCost, CacheUse, CacheVerdict, Call, Snapshot
from ctxscope.tui.paint import UNKNOWN, Spans, fit, number, plural
from ctxscope.tui.visible import visible
from ctxscope.tui.widgets.lines import wrapped

_MINUTE, _HOUR, _DAY = 60, 3_600, 86_400
_IN_SECONDS = 600
"""A gap is told to the second up to here: most lifetimes of a cache are shorter."""
_LOST, _GAP = 10, 7
_WIDE = 100
"""Cells from which the longest word for a confidence has room."""
_CONFIDENCE, _LONG_CONFIDENCE = 10, 14
_LETTER = {"break": "B", "miss": "M"}
_MOST_LINES = 9
"""Lines of one paragraph; none of them is that long."""
_HANG = 4
_CENT = 0.01


@dataclass(frozen=True, slots=True)
class BreakRow:
    """One line of the screen; the first cell of each is the pointer's."""

    spans: Spans
    call: Call | None = None
    """The call it leads to; only such a row can have the cursor."""


def rows_of(snapshot: Snapshot, words: str, width: int) -> list[BreakRow]:
    """All rows in ``width`` cells; of the calls those that hold every word of ``words``, in any case."""
    several = len({use.session for use in snapshot.uses} | {cost.session for cost in snapshot.costs}) > 1
    calls = {call.n: call for call in snapshot.calls}
    rows: list[BreakRow] = []
    for use in snapshot.uses:
        rows += [*_lines(_use(use, named=several), width), BreakRow(())]
    if not snapshot.uses:
        rows += [*_lines([[("use of the cache –: no reply tells what was read", "dim")]], width), BreakRow(())]
    groups = list(_groups(snapshot.costs, calls, words.lower().split(), width, named=several))
    if not groups:
        return [*rows, *_lines([[(_nothing(snapshot), "text")]], width)]
    return [*rows, BreakRow(_columns(width)), *groups]


def _columns(width: int) -> Spans:
    """Names of a call's columns."""
    confidence = _confidence_cells(width)
    return [(fit(f"     n turn  {'confidence':<{confidence}} {'lost':>{_LOST}} {'gap':>{_GAP}} why", width), "dim")]


def _nothing(snapshot: Snapshot) -> str:
    if snapshot.costs:
        return "no call matches"
    if not snapshot.calls:
        return "There are no calls yet, so nothing was lost."
    told = f"No cache break and no miss was found among {plural(len(snapshot.calls), 'call')}."
    unknown = sum(call.cache.verdict == "unknown" for call in snapshot.calls)
    return f"{told} Of {plural(unknown, 'call')} it cannot be told." if unknown else told


def _lines(paragraphs: Sequence[Spans], width: int) -> Iterator[BreakRow]:
    for paragraph in paragraphs:
        for line in wrapped([(" ", "text"), *paragraph], width, _MOST_LINES, _HANG):
            yield BreakRow(line)


# --- how a cache was used --------------------------------------------------------------------------------------------


def _use(use: CacheUse, *, named: bool) -> list[Spans]:
    """What was read beside what the same calls would have read append-only, and where it was read."""
    first: list[Spans] = [[(f"{_whose(use.session)}:", "head")]] if named else []
    return [
        *first,
        [
            ("read : new ", "head"),
            (f"{number(use.read)} : {number(use.new)} tokens ({_ratio(use.read, use.new)}) ", "text"),
            (f"· append-only bound {number(use.read_bound)} : {number(use.new_bound)} ", "dim"),
            (f"({_ratio(use.read_bound, use.new_bound)})", "dim"),
        ],
        [
            ("reuse ", "head"),
            (f"{_times(use.reuse)} ", "text"),
            (f"· append-only bound {_times(use.reuse_bound)} · sent ÷ new, {number(use.sent)} tokens sent by ", "dim"),
            (plural(use.calls, "call"), "dim"),
        ],
        [
            ("hit rate ", "head"),
            (f"{_share(use.unbroken)} in unbroken stretches ", "text"),
            (f"({_of(use.unbroken)}) ", "dim"),
            *_behind_seams(use),
        ],
    ]


def _behind_seams(use: CacheUse) -> Spans:
    if not use.seams:
        return [(f"· {UNKNOWN} right after seams (there is none)", "text")]
    told = f"· {_share(use.after_seam)} right after {plural(use.seams, 'seam')} "
    return [(told, "text"), (f"({_of(use.after_seam)}): a correlation, not a cause", "dim")]


def _whose(session: str | None) -> str:
    return "calls of no session" if session is None else f"session {visible(session)}"


def _ratio(read: int, new: int) -> str:
    return f"{read / new:.2f} : 1" if new > 0 else UNKNOWN


def _times(value: float | None) -> str:
    return UNKNOWN if value is None else f"{value:.2f}×"


def _share(part: tuple[int, int]) -> str:
    read, sent = part
    return f"{100 * read / sent:.0f}%" if sent else UNKNOWN


def _of(part: tuple[int, int]) -> str:
    """Read of sent, or that there is nothing to count."""
    read, sent = part
    return f"{number(read)} of {number(sent)} tokens" if sent else "no such call"


# --- what was lost ---------------------------------------------------------------------------------------------------


def _groups(
    costs: Sequence[CacheCost], calls: dict[int, Call], words: Sequence[str], width: int, *, named: bool
) -> Iterator[BreakRow]:
    for cost in costs:
        members = [calls[n] for n in cost.calls if n in calls]
        matching = [call for call in members if all(word in _text(call) for word in words)]
        if not matching:
            continue
        yield from _lines([_head(cost, len(matching), named=named)], width)
        yield from _lines([[("  → ", "key"), (visible(cost.remedy), "text")]], width)
        for call in matching:
            yield BreakRow(_row(call, calls.get(call.parent or 0), width), call)
        yield BreakRow(())


def _text(call: Call) -> str:
    """What the filter looks at."""
    cache = call.cache
    parts = (cache.cause, cache.verdict, cache.confidence, cache.path, cache.why, f"call {call.n}", f"t{call.turn}")
    return " ".join(part for part in parts if part).lower()


def _head(cost: CacheCost, shown: int, *, named: bool) -> Spans:
    count, noun = len(cost.calls), "miss" if cost.verdict == "miss" else "break"
    many = f"{count:,} {noun if count == 1 else {'miss': 'misses', 'break': 'breaks'}[noun]}"
    counted = many if shown == count else f"{shown:,} of {many}"
    about = "≈" if cost.estimated else ""
    lost = UNKNOWN if cost.lost_tokens is None else f"{about}{number(cost.lost_tokens)}"
    spans = [
        (f"{_LETTER[noun]} {visible(cost.cause or 'cause unknown')}  ", "break"),
        (f"{counted}  {lost} tokens lost  {_amount(cost.extra, about)} input tokens extra", "head"),
    ]
    if cost.money is not None:
        money = "<0.01" if 0 < cost.money < _CENT else f"{cost.money:,.2f}"
        spans.append((f"  {about}{money} {visible(cost.currency)}", "head"))
    if named:
        spans.append((f"  {_whose(cost.session)}", "dim"))
    return spans


def _amount(value: float | None, about: str) -> str:
    """A computed number of tokens."""
    if value is None:
        return UNKNOWN
    return f"{about}<1" if 0 < value < 0.5 else f"{about}{number(round(value))}"  # noqa: PLR2004 - what rounds to 0


def _row(call: Call, parent: Call | None, width: int) -> Spans:
    cache, confidence = call.cache, _confidence_cells(width)
    turn = UNKNOWN if call.turn is None else f"t{call.turn}"
    told = fit(cache.confidence.replace("_", " "), confidence)
    spans = [
        (f"{call.n:>5} {turn:<5} ", "text"),
        (f"{told} ", "dim"),
        (f"{lost(cache):>{_LOST}} {gap(call, parent):>{_GAP}} ", "text"),
    ]
    used = 1 + sum(len(text) for text, _ in spans)
    return [*spans, (fit(visible(cache.why) or UNKNOWN, max(width - used, 0)), "text")]


def _confidence_cells(width: int) -> int:
    return _LONG_CONFIDENCE if width >= _WIDE else _CONFIDENCE


def lost(cache: CacheVerdict) -> str:
    """Tokens lost, and how that is known."""
    if cache.lost_tokens is None:
        return UNKNOWN
    return f"{'≈' if cache.lost_estimated else ''}{number(cache.lost_tokens)}"


def gap(call: Call, parent: Call | None) -> str:
    """Time from the start of the parent's request to the start of this one, in one unit."""
    if parent is None or call.time is None or parent.time is None:
        return UNKNOWN
    past = call.time - parent.time
    if past < _IN_SECONDS:
        return f"{round(past)} s"
    if past < _HOUR:
        return f"{past / _MINUTE:.0f} min"
    return f"{past / _HOUR:.1f} h" if past < _DAY else f"{past / _DAY:.1f} d"
