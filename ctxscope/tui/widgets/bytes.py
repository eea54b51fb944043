"""Pane 3: the bytes, one comparison at a time."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

from textual.content import Content
from textual.message import Message

from ctxscope.model import Segment
from ctxscope.tui import byte_rows
from ctxscope.tui.call_rows import beyond
from ctxscope.tui.comparison import Comparison, Side
from ctxscope.tui.context_rows import PROVENANCE_LETTER
from ctxscope.tui.paint import Spans, fit, number
from ctxscope.tui.rows import Form
from ctxscope.tui.sheet import NO_FOLDS, Folds, Sheet, lay_out
from ctxscope.tui.visible import visible
from ctxscope.tui.widgets.row_view import RowView
from ctxscope.tui.wrapping import Layout

MOST_HITS = 10_000
"""Per side; further ones are not walked."""
_BESIDE_FROM = 88
"""Cells of the pane: with fewer, two columns are too narrow to be read."""


@dataclass(frozen=True, slots=True)
class Wish:
    """How the user wants bytes shown, whatever the call and the width."""

    form: Form = "raw"
    wrap: bool = True
    pictures: bool = True
    beside: bool | None = None
    """``None``: beside each other when the pane is wide enough."""
    context: int | None = None
    """``None``: as much as fills the pane."""


class BytesPane(RowView):
    """Lines of a sheet: laid out by a worker, painted here."""

    headings = 1

    class Resized(Message):
        """The pane has another width: what it shows must be laid out anew."""

        def can_replace(self, message: Message) -> bool:
            """Only the last width counts."""
            return isinstance(message, BytesPane.Resized)

    def __init__(self, name: str = "3 Bytes") -> None:
        super().__init__(id="bytes")
        self._called = name
        """What its title begins with."""
        self.border_title = Content(name)
        self.wish = Wish()
        self.sheet: Sheet | None = None
        self.needle = b""
        self.shift = 0
        self.folds = NO_FOLDS
        self._hits: tuple[Sequence[int], Sequence[int]] = ((), ())

    def layout_now(self) -> Layout:
        """The layout this pane's size and the user's wishes ask for."""
        wish = self.wish
        beside = wish.beside if wish.beside is not None else self.columns >= _BESIDE_FROM
        width, whole = (byte_rows.text_width(self.columns, beside=b) for b in (beside, False))
        hex_bytes, alone = byte_rows.hex_bytes(width), (whole, byte_rows.hex_bytes(whole))
        return Layout(width, beside, wish.form, wish.wrap, wish.pictures, wish.context, self.page, hex_bytes, alone)

    def show(self, sheet: Sheet, *, jump: bool) -> None:
        """Take over a laid-out comparison; ``jump`` to where the sides part, else stay at the same byte."""
        place = None if jump else self._place()
        if self.sheet is not None and sheet.alignment is self.sheet.alignment and sheet.folds != self.folds:
            sheet = lay_out(sheet.comparison, sheet.alignment, sheet.asked, self.folds)  # opened meanwhile
        self.sheet, self.folds = sheet, sheet.folds
        comparison, right = sheet.comparison, sheet.comparison.right
        form = f" · {sheet.layout.form}" if sheet.layout.form != "raw" else ""
        self.border_title = Content(f"{self._called} · {visible(comparison.title)}{form}")
        self._search()
        self.rows_changed()
        if place is not None:
            self.move_to(sheet.line_of(place[0], right=place[1] and right is not None))
        else:
            self.shift = 0
            self.move_to(self._first_line(), centre=True)
        self.say_position()

    def wait(self, words: str) -> None:
        """Say what is under way; the bytes of before stay until it is done."""
        self.border_title = Content(f"{self._called} · {words}")

    def clear(self, words: str) -> None:
        """Show no bytes, and why."""
        self.sheet, self.folds, self._hits = None, NO_FOLDS, ((), ())
        self.border_title, self.border_subtitle = Content(f"{self._called} · {visible(words)}"), Content("")
        self.rows_changed()

    def open_fold(self) -> bool:
        """Open the fold the cursor stands on; False when it stands on none."""
        if self.sheet is None or not self.sheet.lines or not self.sheet.lines[self.cursor].folded:
            return False
        place = self._place()
        self._open(self.sheet, self.sheet.lines[self.cursor].pair)
        if place is not None:
            self.move_to(self.sheet.line_of(place[0], right=place[1]))
        self.say_position()
        return True

    def _open(self, sheet: Sheet, pair: int) -> None:
        """Open the fold that begins with a pair."""
        self.folds = Folds(self.folds.opened | {pair}, sheet.context)
        self.sheet = lay_out(sheet.comparison, sheet.alignment, sheet.asked, self.folds)
        self.rows_changed()

    def next_hunk(self, direction: int) -> bool:
        """Go to the next or previous difference within these bytes; False when there is none."""
        if self.sheet is None or not self.sheet.lines:
            return False
        hunk = beyond(self.sheet.alignment.hunks, self.sheet.lines[self.cursor].pair, direction)
        if hunk is not None:
            self.move_to(self._emphasis_line(hunk), centre=True)
        return hunk is not None

    def go_to(self, offset: int, *, right: bool) -> None:
        """Put the cursor on the line that shows a byte, opening the fold that hides it."""
        if self.sheet is None or not self.sheet.lines:
            return
        line = self.sheet.line_of(offset, right=right)
        if self.sheet.lines[line].folded:
            self._open(self.sheet, self.sheet.lines[line].pair)
            line = self.sheet.line_of(offset, right=right)
        self.move_to(line, centre=True)

    def search(self, needle: bytes) -> int:
        """Look for bytes on both sides; how often the richer one holds them, at most ``MOST_HITS``."""
        self.needle = needle
        self._search()
        self.repaint()
        self.say_position()
        return max(map(len, self._hits))

    def next_hit(self, direction: int) -> bool:
        """Go to the next or previous line with a hit, from the other end when there is none further on; False without hits."""
        if self.sheet is None or not self.sheet.lines:
            return False
        further, all_hits = [], []
        for right, hits in ((bool(i), hits) for i, hits in enumerate(self._hits) if hits):
            before, after = self.sheet.reach(self.cursor, right=right)
            i = bisect_left(hits, after) if direction > 0 else bisect_left(hits, before) - 1
            further += [self._at(hits[i], right=right)] if 0 <= i < len(hits) else []
            all_hits.append(self._at(hits[0 if direction > 0 else -1], right=right))
        places = further or all_hits
        if places:
            _, offset, right = min(places) if direction > 0 else max(places)
            self.go_to(offset, right=right)
        return bool(places)

    def _at(self, offset: int, *, right: bool) -> tuple[int, int, bool]:
        """A byte in an order that both sides share."""
        assert self.sheet is not None  # callers have looked
        return self.sheet.alignment.pair_of(offset, right=right), offset, right

    @property
    def segment(self) -> Segment | None:
        """The segment under the cursor, of the body that stands for the call."""
        place = self._place()
        if place is None or self.sheet is None:
            return None
        side = self._side(right=place[1])
        return side.segment(place[0]) if side else None

    @property
    def has_hunks(self) -> bool:
        """Whether there is a difference to go to."""
        return self.sheet is not None and bool(self.sheet.alignment.hunks)

    def say_position(self) -> None:
        """Difference, offset, path and provenance under the cursor, in the lower border."""
        place = self._place()
        if place is None or self.sheet is None:
            self.border_subtitle = Content("")
            return
        hunks, parts = self.sheet.alignment.hunks, []
        if hunks:
            more = "" if self.sheet.alignment.final else "+"
            parts.append(f"difference {self.sheet.hunk_at(self.cursor)}/{len(hunks)}{more}")
        hits = self._hits[place[1]]
        if hits:
            end = self.sheet.reach(self.cursor, right=place[1])[1]
            parts.append(f"hit {number(bisect_left(hits, end))}/{number(len(hits))}")
        parts.append(f"0x{place[0]:06x} ({number(place[0])})")
        segment = self.segment
        if segment is not None:
            parts.append(visible(segment.path))
        parts.extend(self._origin_words(place))
        self.border_subtitle = Content(" · ".join(parts))

    def on_resize(self) -> None:
        """Ask for lines of the new width."""
        super().on_resize()
        self.post_message(self.Resized())

    def row_count(self) -> int:
        """Lines of the sheet."""
        return len(self.sheet.lines) if self.sheet else 0

    def row_spans(self, row: int, width: int, *, selected: bool) -> Spans:
        """A line of bytes or a fold."""
        assert self.sheet is not None  # there are no rows without one
        return byte_rows.paint(self.sheet, row, width, self.needle, selected=selected, shift=self.shift)

    def heading_spans(self, line: int, width: int) -> Spans:  # noqa: ARG002 - there is one heading line
        """Name and length of each side."""
        if self.sheet is None:
            return [("", "dim")]
        comparison = self.sheet.comparison
        left, right = _heading(comparison.left), _heading(comparison.right) if comparison.right else None
        if right is None:
            return [(fit(left, width), comparison.left.role)]
        half = width // 2 if self.sheet.layout.beside else min(len(left) + 2, width)
        role = comparison.right.role if comparison.right else "log"
        return [(fit(left, half), comparison.left.role), ("│", "dim"), (fit(right, width - half - 1), role)]

    def _first_line(self) -> int:
        """Where to look first: at the difference the verdict names, else at the first there is."""
        sheet = self.sheet
        if sheet is None or not sheet.lines:
            return 0
        comparison, alignment = sheet.comparison, sheet.alignment
        if comparison.first is None or comparison.right is None:
            return self._emphasis_line(alignment.hunks[0]) if alignment.hunks else 0
        start, end = comparison.first
        first, last = (alignment.pair_of(at, right=comparison.first_right) for at in (start, end - 1))
        # a difference that ends right before it is what this side lacks there
        i = bisect_left(alignment.hunk_ends, first)
        if i < len(alignment.hunks) and alignment.hunks[i] <= last:
            within = alignment.hunks[i] <= first < alignment.hunk_ends[i]
            if not within or end - start > 1:
                return self._emphasis_line(first if within else alignment.hunks[i])
        return sheet.line_of(start, right=comparison.first_right)

    def _emphasis_line(self, pair: int) -> int:
        """The line of a pair where its change begins; a long row may show it far below its first line."""
        assert self.sheet is not None  # callers have looked
        found = self.sheet.alignment.pairs[pair]
        emphasis, right = (found.left_emphasis, False) if found.left_emphasis else (found.right_emphasis, True)
        span = found.right if right else found.left
        if emphasis is None or span is None:
            return self.sheet.lines.first_of(pair)
        return self.sheet.line_of(min(emphasis[0], span[1] - 1), right=right)

    def _place(self) -> tuple[int, bool] | None:
        """Byte under the cursor and whether it is the right side's."""
        if self.sheet is None or not self.sheet.lines:
            return None
        line = self.sheet.lines[min(self.cursor, len(self.sheet.lines) - 1)]
        pair = self.sheet.alignment.pairs[line.pair]
        left, right = (pair.left, pair.right) if line.folded else (line.left, line.right)
        if left is not None:
            changed = pair.left_emphasis
            return (changed[0] if changed and left[0] <= changed[0] < left[1] else left[0]), False
        return (right[0], True) if right is not None else None

    def _side(self, *, right: bool) -> Side | None:
        comparison: Comparison | None = self.sheet.comparison if self.sheet else None
        return None if comparison is None else comparison.right if right else comparison.left

    def _origin_words(self, place: tuple[int, bool]) -> list[str]:
        """Provenance and place in the log of the byte under the cursor; an equal row has it on the rebuilt side."""
        assert self.sheet is not None  # callers have looked
        line = self.sheet.lines[self.cursor]
        at, side = place[0], self._side(right=place[1])
        if line.right is not None and self.sheet.comparison.right is not None:
            at, side = line.right[0], self.sheet.comparison.right
        origin = side.origin(at) if side else None
        if origin is None:
            return []
        words = f"{PROVENANCE_LETTER[origin.provenance]} {origin.provenance}"
        words += f" {visible(str(origin.place))}" if origin.place else ""
        return [f"{words} from a store outside the log" if origin.external else words]

    def _search(self) -> None:
        if self.sheet is None or not self.needle:
            self._hits = ((), ())
            return
        left, right = self.sheet.comparison.left, self.sheet.comparison.right
        other = byte_rows.find_all(right.data, self.needle, MOST_HITS) if right else ()
        self._hits = (byte_rows.find_all(left.data, self.needle, MOST_HITS), other)


def _heading(side: Side) -> str:
    return f" {visible(side.name)}  {number(len(side.data))} B"
