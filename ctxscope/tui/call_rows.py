"""The rows of the calls pane: calls in order of arrival, with a rule for each marker before the call it precedes."""

from __future__ import annotations

import time
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from ctxscope.model import Call, Marker, Snapshot
from ctxscope.tui.paint import UNKNOWN, Spans, fit, number, rule, short
from ctxscope.tui.visible import visible

COMPACTING = frozenset({"compaction", "micro", "defrag", "prune", "shake", "strip"})
"""Marker kinds that drop content: flag C."""
STATE_LETTER = {
    "equal": "=",
    "differs": "≠",
    "pending": "…",
    "not_served": "L",
    "not_logged": "S",
    "not_supported": "?",
}
STATE_WORDS = {
    "equal": "served = rebuilt",
    "differs": "served ≠ rebuilt",
    "pending": "pending: its answer is not logged yet",
    "not_served": "log only: no exchange recorded for it",
    "not_logged": "served only: no log claims it",
    "not_supported": "the log side of this API cannot be rebuilt",
}
REPLY_LOST = frozenset({"differs", "empty", "prefix", "missing"})
"""Replies that the log holds otherwise than they were delivered."""
Row = Call | Marker


FLAGS: dict[str, Callable[[Call], bool]] = {
    "D": lambda call: call.rebuilt.state == "differs",
    "B": lambda call: call.cache.verdict == "break",
    "C": lambda call: call.kind == "compaction" or not COMPACTING.isdisjoint(call.markers),
    "T": lambda call: call.stop is not None and call.stop.state in ("truncated", "incomplete"),
}
_FLAG_STYLE = {"D": "diverge", "B": "break", "C": "compact", "T": "truncated", ".": "dim"}


def flags(call: Call) -> str:
    """The four columns ``DBCT``, a dot where one does not apply."""
    return "".join(letter if test(call) else "." for letter, test in FLAGS.items())


@dataclass(eq=False)
class CallRows:
    """Rows of the newest snapshot; a new snapshot costs what changed, not the length of the session."""

    rows: list[Row] = field(default_factory=list)
    row_of_call: list[int] = field(default_factory=list)
    """Row of ``calls[i]``, increasing."""
    flagged: dict[str, list[int]] = field(default_factory=lambda: {letter: [] for letter in FLAGS})
    """Rows that carry each flag, increasing."""
    calls: Sequence[Call] = ()
    markers: Sequence[Marker] = ()

    def update(self, snapshot: Snapshot) -> None:
        """Take over a snapshot, keeping the rows before the first call that is not the same object."""
        same = self._unchanged(snapshot)
        before: dict[int | None, list[Marker]] = defaultdict(list)
        for marker in snapshot.markers:
            before[marker.call].append(marker)
        keep = self.row_of_call[same - 1] + 1 if same else 0
        del self.rows[keep:]
        del self.row_of_call[same:]
        for positions in self.flagged.values():
            del positions[bisect_left(positions, keep) :]
        for call in snapshot.calls[same:]:
            self.rows.extend(before.get(call.n, ()))
            self._append(call)
        self.rows.extend(before.get(None, ()))
        self.calls, self.markers = snapshot.calls, snapshot.markers

    def call_at(self, row: int) -> Call | None:
        """The call of a row, or the next one below a marker's rule; ``None`` when there are no calls."""
        if not self.calls:
            return None
        return self.calls[min(bisect_left(self.row_of_call, row), len(self.calls) - 1)]

    def find(self, row: int, direction: int, flag: str) -> int | None:
        """The nearest row beyond ``row`` whose call has the flag; ``None`` when there is none."""
        return beyond(self.flagged[flag], row, direction)

    def step(self, row: int, direction: int) -> int | None:
        """The row of the next or previous call."""
        return beyond(self.row_of_call, row, direction)

    def _unchanged(self, snapshot: Snapshot) -> int:
        """How many calls at the beginning are the very objects already shown, markers among them the same."""
        if snapshot.markers != self.markers:
            return 0
        shared = min(len(self.calls), len(snapshot.calls))
        return next((i for i in range(shared) if self.calls[i] is not snapshot.calls[i]), shared)

    def _append(self, call: Call) -> None:
        row = len(self.rows)
        self.row_of_call.append(row)
        for letter, test in FLAGS.items():
            if test(call):
                self.flagged[letter].append(row)
        self.rows.append(call)


def beyond(positions: Sequence[int], at: int, direction: int) -> int | None:
    """The nearest of increasing ``positions`` after (or, backwards, before) ``at``."""
    if direction > 0:
        i = bisect_right(positions, at)
        return positions[i] if i < len(positions) else None
    i = bisect_left(positions, at) - 1
    return positions[i] if i >= 0 else None


def header(width: int) -> Spans:
    """Column names, fitted as the rows are."""
    return [(fit("    n turn  time   tokens cache DBCT =r what", width), "dim")]


def paint(row: Row, previous: Row | None, width: int, *, selected: bool) -> Spans:
    """One row; ``previous`` is the row above, to name a turn once."""
    if isinstance(row, Marker):
        return rule(_marker_words(row), width, "compact", "─" if row.logged else "┄")
    turn = row.turn if not isinstance(previous, Call) or previous.turn != row.turn else None
    aside = row.kind != "main"
    style = "dim" if aside else "text"
    state = STATE_LETTER[row.rebuilt.state]
    tokens, cached = _tokens(row), _cached(row)
    spans = [
        (f"{'>' if selected else ' '}{row.n:>4} ", style),
        (f"{'' if turn is None else f't{turn}':<5}", "dim"),
        (f"{_clock(row.time):>5} {tokens:>8} {cached:>5} ", style),
        *((letter, _FLAG_STYLE[letter]) for letter in flags(row)),
        (f" {state}", "diverge" if state == "≠" else "dim"),
        ("r " if row.reply.state in REPLY_LOST else "  ", "diverge"),
    ]
    room = width - 35
    hint = f"{row.kind} " if aside else ""
    if row.lineage not in ("main", "") and aside and not row.lineage.startswith(row.kind):
        hint += f"{visible(row.lineage)} "
    # what a subagent starts stands below it
    depth = 1 + row.lineage.count("/") if aside else 0
    spans.append((fit(f"{'↳ ' * depth}{hint}{visible(row.what)}", room), style))
    return spans


def _marker_words(marker: Marker) -> str:
    change = ""
    if marker.before_tokens is not None or marker.after_tokens is not None:
        change = f" {short(marker.before_tokens)}→{short(marker.after_tokens)}"
    silent = "" if marker.logged else " (not logged)"
    return visible(
        f"{marker.kind}{change}{silent}: {marker.where}" if marker.where else f"{marker.kind}{change}{silent}"
    )


def _clock(moment: float | None) -> str:
    return UNKNOWN if moment is None else time.strftime("%H:%M", time.localtime(moment))


def _tokens(call: Call) -> str:
    if call.tokens.reported is not None:
        return number(call.tokens.reported)
    if call.usage is not None and call.usage.reported is not None:
        return number(call.usage.reported)
    guess = call.tokens.visible if call.tokens.visible is not None else call.tokens.rebuilt
    return UNKNOWN if guess is None else f"≈{number(guess)}"


def _cached(call: Call) -> str:
    usage = call.usage
    if usage is None or usage.cache_read is None or not usage.reported:
        return UNKNOWN
    return f"{100 * usage.cache_read / usage.reported:.0f}%"
