"""Pane 3: the bytes, one comparison at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from textual.content import Content
from textual.message import Message

from ctxscope.model import Segment
from ctxscope.tui import byte_rows
from ctxscope.tui.comparison import Comparison, Side
from ctxscope.tui.context_rows import PROVENANCE_LETTER
from ctxscope.tui.paint import Spans, fit, number
from ctxscope.tui.rows import Form
from ctxscope.tui.sheet import Layout, Sheet, lay_out
from ctxscope.tui.visible import visible
from ctxscope.tui.widgets.row_view import RowView

MOST_HITS = 10_000
"""Per side; further ones are not walked."""


@dataclass(frozen=True, slots=True)
class Wish:
    """How the user wants bytes shown, whatever the call and the width."""

    form: Form = "raw"
    wrap: bool = True
    pictures: bool = True
    beside: bool | None = None
    """``None``: beside each other when the terminal is wide enough."""
    context: int = 3


class BytesPane(RowView):
    """Lines of a sheet: laid out by a worker, painted here."""

    headings = 1

    class Resized(Message):
        """The pane has another width: what it shows must be laid out anew."""

        def can_replace(self, message: Message) -> bool:
            """Only the last width counts."""
            return isinstance(message, BytesPane.Resized)

    def __init__(self) -> None:
        super().__init__(id="bytes")
        self.border_title = Content("3 Bytes")
        self.wish = Wish()
        self.sheet: Sheet | None = None
        self.needle = b""
        self.shift = 0
        self._opened: frozenset[int] = frozenset()
        self._hits: tuple[Sequence[int], Sequence[int]] = ((), ())

    def layout_now(self, *, terminal_width: int) -> Layout:
        """The layout this pane's size and the user's wishes ask for."""
        wish = self.wish
        beside = wish.beside if wish.beside is not None else terminal_width >= 120  # noqa: PLR2004 - terminal_ui §7
        width = byte_rows.text_width(self.size.width, beside=beside)
        return Layout(width, beside, wish.form, wish.wrap, wish.pictures, wish.context, byte_rows.hex_bytes(width))

    def show(self, sheet: Sheet, *, jump: bool) -> None:
        """Take over a laid-out comparison; ``jump`` to where the sides part, else stay at the same byte."""
        place = None if jump else self._place()
        self.sheet, self._opened = sheet, frozenset()
        comparison, right = sheet.comparison, sheet.comparison.right
        form = f" · {self.wish.form}" if self.wish.form != "raw" else ""
        self.border_title = Content(f"3 Bytes · {visible(comparison.title)}{form}")
        self._search()
        self.rows_changed()
        if place is not None:
            self.move_to(sheet.line_of(place[0], right=place[1] and right is not None))
        else:
            self.shift = 0
            self.move_to(self._first_line(), centre=True)
        self.say_position()

    def wait(self, n: int) -> None:
        """Say whose bytes are on their way; those of the call before stay until then."""
        self.border_title = Content(f"3 Bytes · reading call {n} …")

    def clear(self, words: str) -> None:
        """Show no bytes, and why."""
        self.sheet, self._opened, self._hits = None, frozenset(), ((), ())
        self.border_title, self.border_subtitle = Content(f"3 Bytes · {visible(words)}"), Content("")
        self.rows_changed()

    def relay(self, layout: Layout) -> None:
        """Lay the same comparison out anew: another width, form or fold; the cursor keeps its byte."""
        if self.sheet is not None:
            place = self._place()
            self.sheet = lay_out(self.sheet.comparison, self.sheet.alignment, layout, self._opened)
            self.rows_changed()
            if place is not None:
                self.move_to(self.sheet.line_of(place[0], right=place[1]))
            self.say_position()

    def open_fold(self) -> bool:
        """Open the fold the cursor stands on; False when it stands on none."""
        if self.sheet is None or not self.sheet.lines or not self.sheet.lines[self.cursor].folded:
            return False
        self._opened |= {self.sheet.lines[self.cursor].pair}
        self.relay(self.sheet.layout)
        return True

    def next_hunk(self, direction: int) -> bool:
        """Go to the next or previous difference within these bytes; False when there is none."""
        if self.sheet is None or not self.sheet.lines:
            return False
        hunks, pair = self.sheet.alignment.hunks, self.sheet.lines[self.cursor].pair
        beyond = [h for h in hunks if h > pair] if direction > 0 else [h for h in reversed(hunks) if h < pair]
        if beyond:
            self.move_to(self._emphasis_line(beyond[0]), centre=True)
        return bool(beyond)

    def go_to(self, offset: int, *, right: bool) -> None:
        """Put the cursor on the line that shows a byte, opening the fold that hides it."""
        if self.sheet is None or not self.sheet.lines:
            return
        line = self.sheet.line_of(offset, right=right)
        if self.sheet.lines[line].folded:
            self._opened |= {self.sheet.lines[line].pair}
            self.sheet = lay_out(self.sheet.comparison, self.sheet.alignment, self.sheet.layout, self._opened)
            self.rows_changed()
            line = self.sheet.line_of(offset, right=right)
        self.move_to(line, centre=True)

    def search(self, needle: bytes) -> int:
        """Look for bytes on both sides; how often the richer one holds them, at most ``MOST_HITS``."""
        self.needle = needle
        self._search()
        self.refresh()
        return max(map(len, self._hits))

    def next_hit(self, direction: int) -> bool:
        """Go to the next or previous line with a hit; False when there is none."""
        if self.sheet is None or not self.sheet.lines:
            return False
        candidates = []
        for right, hits in enumerate(self._hits):
            before, after = self._reach(right=bool(right))
            found = [h for h in hits if h >= after] if direction > 0 else [h for h in hits if h < before][::-1]
            if found:
                candidates.append((self.sheet.pair_of(found[0], right=bool(right)), found[0], bool(right)))
        if not candidates:
            return False
        _, offset, right = min(candidates) if direction > 0 else max(candidates)
        self.go_to(offset, right=right)
        return True

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
        sheet = self.sheet
        if sheet is None or not sheet.lines:
            return 0
        if sheet.comparison.first is not None:
            return sheet.line_of(sheet.comparison.first, right=False)
        return self._emphasis_line(sheet.alignment.hunks[0]) if sheet.alignment.hunks else 0

    def _emphasis_line(self, pair: int) -> int:
        """The line of a pair where its change begins; a long row may show it far below its first line."""
        assert self.sheet is not None  # callers have looked
        found = self.sheet.alignment.pairs[pair]
        emphasis, right = (found.left_emphasis, False) if found.left_emphasis else (found.right_emphasis, True)
        span = found.right if right else found.left
        if emphasis is None or span is None:
            return self.sheet.line_of_pair(pair)
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

    def _reach(self, *, right: bool) -> tuple[int, int]:
        """Where the cursor's line begins and ends on one side, so that a search goes on from there."""
        assert self.sheet is not None  # callers have looked
        for at in range(self.cursor, -1, -1):
            line = self.sheet.lines[at]
            if line.folded:
                pair = self.sheet.alignment.pairs[line.pair]
                span = pair.right if right else pair.left
                if span is not None:
                    return span[0], span[0]
            span = line.right if right else line.left
            if span is not None:
                return (span[0], span[1]) if at == self.cursor else (span[1], span[1])
        return 0, 0

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
        letter = PROVENANCE_LETTER[origin[0]]
        return [f"{letter} {origin[0]}" + (f" {visible(str(origin[1]))}" if origin[1] else "")]

    def _search(self) -> None:
        if self.sheet is None or not self.needle:
            self._hits = ((), ())
            return
        left, right = self.sheet.comparison.left, self.sheet.comparison.right
        other = byte_rows.find_all(right.data, self.needle, MOST_HITS) if right else ()
        self._hits = (byte_rows.find_all(left.data, self.needle, MOST_HITS), other)


def _heading(side: Side) -> str:
    return f" {visible(side.name)}  {number(len(side.data))} B"
