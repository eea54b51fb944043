"""The token ledger of a call and of its turn: rows are counts, columns are parts, each number with how it is known."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields

from rich.cells import cell_len

from ctxscope.model import COLUMNS, Call, TokenParts
from ctxscope.tui.bar_cells import PARTS
from ctxscope.tui.paint import UNKNOWN, Spans, fit, number, plural, short
from ctxscope.tui.visible import visible
from ctxscope.tui.widgets.lines import wrapped
from ctxscope.tui.words import ASIDE, reported

_TITLES = {
    "tool_calls": "calls",
    "tool_results": "results",
    "bookkeeping": "bookkeep",
    "documents": "docs",
    "reported": "usage",
}
"""Of columns that are not called as their part is."""
_STYLES = {"system": "system", "tools": "tools", "tool_calls": "tools", "tool_results": "results"}
_STYLES |= {"thinking": "thinking", "text": "messages", "sidecar": "messages"}
_MEASURED = frozenset(field.name for field in fields(TokenParts))
"""Parts that a text has; the others only an estimator charges for."""
_WIDE = 110
_MOST_NAME, _HOW, _RATIO, _LEAST_TOTAL = 20, 22, 6, 8
_MOST_LINES, _HANG = 9, 3
_UNVERIFIED = "from the formula, not verified"


@dataclass(frozen=True, slots=True)
class Count:
    """One row."""

    name: str
    how: str
    """In words, how it is known."""
    total: int | None
    estimated: bool
    parts: Mapping[str, int | None] | None = None
    """By ``COLUMNS``; a name that is missing is nothing this count has. ``None``: unknown."""
    aside: frozenset[str] = frozenset()
    """Parts that are not in the total."""
    verified: bool = True


def lines_of(call: Call, turn: Sequence[Call], width: int) -> list[Spans]:
    """The ledger of a call and why its counts part; then that of its turn, where it has more than this call."""
    counts = counts_of(call)
    lines = [*_table(f"call {call.n}", counts, width), (), *_told_in(_notes(call), width), ()]
    if len(turn) > 1:
        title = f"turn {call.turn}: {plural(len(turn), 'call')} of {visible(call.lineage)}, added up"
        lines += [
            *_table(title, summed([counts_of(each) for each in turn]), width),
            *_told_in(_opaque(turn), width),
            (),
        ]
    return [*lines, *_told_in(_legend(counts), width)]


def _told_in(paragraphs: Iterable[Spans], width: int) -> Iterator[Spans]:
    for told in paragraphs:
        yield from wrapped([(" ", "text"), *told], width, _MOST_LINES, _HANG)


def turn_of(call: Call, calls: Sequence[Call]) -> list[Call]:
    """The calls of a call's turn in its lineage, itself among them."""
    if call.turn is None:
        return [call]
    mine = (call.session, call.turn, call.lineage)
    return [each for each in calls if (each.session, each.turn, each.lineage) == mine]


# --- counts ----------------------------------------------------------------------------------------------------------


def counts_of(call: Call) -> list[Count]:
    """Every count there is of a call's context, known or not."""
    tokens, parts = call.tokens, _measured(call.tokens.parts)
    how = "estimated" if tokens.estimated else "counted"
    of_both = tokens.visible is None or call.rebuilt.state == "equal"
    found = [
        Count("reported", "by the provider", reported(call), estimated=False),
        Count("visible", how, tokens.visible, tokens.estimated, parts if tokens.visible is not None else None, ASIDE),
        Count("rebuilt", how, tokens.rebuilt, tokens.estimated, parts if of_both else None, ASIDE),
        Count("naive", "characters / 4", tokens.naive, estimated=True),
    ]
    for estimate in tokens.estimates:
        told = "verified" if estimate.verified else "formula, not verified"
        found.append(
            Count(estimate.estimator, told, estimate.tokens, True, dict(estimate.charged), verified=estimate.verified)
        )
    if not tokens.estimates:
        found.append(Count("agent", "not reproduced", tokens.agent, estimated=True))
    return found


def _measured(parts: TokenParts | None) -> dict[str, int | None] | None:
    return None if parts is None else {name: getattr(parts, name) for name in _MEASURED}


def summed(ledgers: Sequence[Sequence[Count]]) -> list[Count]:
    """Counts added up over calls, by name; unknown where that of one call is."""
    by_name: dict[str, list[Count]] = {}
    for count in (count for ledger in ledgers for count in ledger):
        by_name.setdefault(count.name, []).append(count)
    return [_sum(same, missing=len(same) < len(ledgers)) for same in by_name.values()]


def _sum(same: Sequence[Count], *, missing: bool) -> Count:
    parts: dict[str, int | None] | None = None
    held = [count.parts for count in same]
    if not missing and all(each is not None for each in held):
        known = [each for each in held if each is not None]
        names = {name for each in known for name in each}
        parts = {name: _added([each.get(name, 0) for each in known]) for name in names}
    first = same[0]
    return Count(
        first.name,
        first.how,
        None if missing else _added([count.total for count in same]),
        any(count.estimated for count in same),
        parts,
        first.aside,
        all(count.verified for count in same),
    )


def _added(values: Sequence[int | None]) -> int | None:
    return None if None in values else sum(value for value in values if value is not None)


# --- the table -------------------------------------------------------------------------------------------------------


def _table(title: str, counts: Sequence[Count], width: int) -> list[Spans]:
    """Title and rows; where the columns have no room side by side in full, shortened, and then in blocks."""
    shown = [p for p in COLUMNS if any(_has(count, p) for count in counts)]
    wide = width >= _WIDE
    names = min(max(cell_len(_name(count, wide=wide)) for count in counts), _MOST_NAME)
    first = 1 + names + 1 + (_HOW if wide else 0) + _total_cells(counts) + _RATIO
    for spell in (number, short):
        cells = {part: _cells(part, counts, spell) for part in shown}
        blocks = _blocks(cells, width - first)
        if len(blocks) <= 1:
            break
    lines: list[Spans] = [[(fit(f" {title}", width), "head")]]
    for block in blocks or [[]]:
        head = f"{'tokens':>{first - _RATIO}}{'÷rep.':>{_RATIO}}"
        lines.append([(head, "dim"), *((f"{_title(part):>{cells[part]}}", _style(part)) for part in block)])
        lines += [_row(count, block, cells, spell, names, counts, wide=wide) for count in counts]
    return lines


def _has(count: Count, part: str) -> bool:
    """Whether there is something to show of a part; of overhead mostly nothing is said at all."""
    value = count.parts.get(part, 0) if count.parts else 0
    return value != 0 and (value is not None or part != "overhead")


def _blocks(cells: Mapping[str, int], room: int) -> list[list[str]]:
    """Columns in as few blocks as have room, in order."""
    blocks: list[list[str]] = []
    left = 0
    for part, wanted in cells.items():
        if not blocks or wanted > left:
            blocks.append([])
            left = room
        blocks[-1].append(part)
        left -= wanted
    return blocks


def _cells(part: str, counts: Sequence[Count], spell: Callable[[int | None], str]) -> int:
    """Cells of a column, with those before it that keep it from its neighbour."""
    return 2 + max(len(_title(part)), *(len(_part(count, part, spell)) for count in counts))


def _title(part: str) -> str:
    return _TITLES.get(part, part)


def _name(count: Count, *, wide: bool) -> str:
    return visible(count.name) + ("" if count.verified or wide else "?")


def _total_cells(counts: Sequence[Count]) -> int:
    return max(_LEAST_TOTAL, *(len(_told(count.total, count.estimated, number)) for count in counts)) + 1


def _told(value: int | None, estimated: bool, spell: Callable[[int | None], str]) -> str:
    return f"≈{spell(value)}" if estimated and value is not None else spell(value)


def _part(count: Count, part: str, spell: Callable[[int | None], str]) -> str:
    if count.parts is None:
        return UNKNOWN
    if part not in count.parts:
        return ""
    about = count.estimated or part in ("documents", "overhead")
    told = _told(count.parts[part], about, spell) if count.parts[part] != 0 else "0"
    return f"({told})" if part in count.aside and count.parts[part] else told


def _style(part: str) -> str:
    return _STYLES.get(part, "text")


def _row(
    count: Count,
    block: Sequence[str],
    cells: Mapping[str, int],
    spell: Callable[[int | None], str],
    names: int,
    counts: Sequence[Count],
    *,
    wide: bool,
) -> Spans:
    measure = counts[0].total
    ratio = f"{count.total / measure:.2f}" if count.total is not None and measure else UNKNOWN
    how: Spans = [(fit(count.how, _HOW), "dim")] if wide else []
    total = _told(count.total, count.estimated, number)
    spans = [(f" {fit(_name(count, wide=wide), names)} ", "head"), *how]
    spans += [(f"{total:>{_total_cells(counts)}}", "text"), (f"{ratio:>{_RATIO}}", "dim")]
    for part in block:
        told = _part(count, part, spell)
        spans.append((f"{told:>{cells[part]}}", "dim" if told in ("0", UNKNOWN) else _style(part)))
    return spans


# --- what stands below it --------------------------------------------------------------------------------------------


def _notes(call: Call) -> Iterator[Spans]:
    usage, tokens = call.usage, call.tokens
    if tokens.visible is None and tokens.rebuilt is None:
        yield [("not counted yet, or there is nothing to count", "dim")]
    for i, sentence in enumerate(tokens.gap):
        yield [("why they part " if i == 0 else "  · ", "head"), (visible(sentence), "text")]
    yield from _opaque([call])
    if tokens.overhead_for:
        told = f"what the provider says it adds for {tokens.overhead_for}; more is not told ({tokens.overhead_from})"
        yield [("overhead ", "head"), (visible(told), "text")]
    yield [("window ", "head"), (filling(call), "text")]
    if usage is not None:
        cache = f"{number(usage.cache_read)} read, {number(usage.cache_write)} written"
        reply = f"output {number(usage.output)}, of it reasoning {number(usage.reasoning)}"
        yield [("usage ", "head"), (f"{number(usage.input)} new, {cache} · {reply}", "text")]


def _opaque(calls: Sequence[Call]) -> Iterator[Spans]:
    """The bytes of envelopes, beside the tokens they would be mistaken for in the table."""
    told = _added([call.tokens.envelope_bytes for call in calls])
    if told:
        yield [("envelope ", "head"), (f"{plural(told, 'byte')} of opaque reasoning", "text")]


def _legend(counts: Sequence[Count]) -> Iterator[Spans]:
    unverified = [visible(count.name) for count in counts if not count.verified]
    if unverified:
        yield [(f"{', '.join(unverified)}: {_UNVERIFIED}", "dim")]
    letters = [span for letter, style, name in PARTS for span in ((f"{letter} ", style), (f"{name}  ", "dim"))]
    yield [("in the bar: ", "dim"), *letters, ("small letters: new in this call", "dim")]
    yield [
        ("≈ estimated · – unknown · (…) not in the sum · blank: this count has none · ÷rep. against reported", "dim")
    ]


def filling(call: Call) -> str:
    """How full the window is, how far the threshold is, and how each is known."""
    window, used = call.window, call.filled
    about = "" if call.tokens.reported is not None or used is None else "≈"
    parts = [
        f"{number(window.size)}{_by(window.size_by)}",
        f"threshold {number(window.threshold)}{_by(window.threshold_by)}"
        + (", above the window" if window.is_out_of_reach else ""),
    ]
    if used is not None and call.occupancy is not None:
        parts.append(f"{about}{number(used)} used, {100 * call.occupancy:.0f}%")
    if used is not None and window.threshold is not None:
        left = window.threshold - used
        parts.append(f"{about}{number(abs(left))} {'below' if left >= 0 else 'above'} the threshold")
    return " · ".join(parts)


def _by(source: str | None) -> str:
    words = {"config": "by the settings", "log": "by the log", "rule": "by the agent's rule", "user": "as you say"}
    return f" ({words[source]})" if source is not None else ""
