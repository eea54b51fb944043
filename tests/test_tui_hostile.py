"""Texts that a log may hold and a terminal must not obey, on every part of the screen."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import replace
from pathlib import Path

import pytest
from rich.cells import cell_len

from ctxscope.analysis.sidecars import judged
from ctxscope.analysis.tokens import Counter
from ctxscope.model import (
    Block,
    CacheCost,
    CacheUse,
    CacheVerdict,
    Compacted,
    Compaction,
    Difference,
    EntryRef,
    Estimate,
    Finding,
    Logged,
    Marker,
    Piece,
    Place,
    RebuiltVerdict,
    ReplyVerdict,
    Sidecar,
    SidecarView,
    TailCut,
    TokenLedger,
)
from ctxscope.tui.source import PickerRow
from ctxscope.tui.visible import visible
from tests.tui_pilot import SIZES, User, play
from tests.tui_session import HOSTILE, FakeSource, Story, body

TUI = Path(__file__).parents[1] / "ctxscope" / "tui"
FORBIDDEN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


class Hostile(Story):
    """A session in which every text of a log is the same hostile one."""

    def __init__(self, text: str) -> None:
        self.text = text
        super().__init__(2)
        place = Place(0, text)
        self.markers = (Marker("compaction", None, False, text, place, None, None, (), 2),)
        difference = Difference(5, 5, 5, f"/{text}", "content", text, text, text)
        last = replace(
            self.calls[1],
            what=text,
            lineage=text,
            tokens=TokenLedger(7, 6, 6, 9, 8, estimates=(Estimate(text, 8, {"text": 8}),), gap=(text, text)),
            kind="subagent",
            entry=EntryRef(0, text),
            rebuilt=RebuiltVerdict("differs", "body", difference, None),
            reply=ReplyVerdict("differs", difference, "differs"),
            cache=CacheVerdict(
                "break",
                text,
                (text, text),
                "ambiguous",
                f"/{text}",
                prefix_offset=1,
                provider_says=text,
                why=text,
                facts=(text,),
            ),
        )
        self.calls[1] = last

    def view(self, n, of=None):
        served = body(self.text, [("user", self.text)], breakpoint_at=0)
        segments = tuple(replace(s, path=f"{s.path}/{self.text}", role=self.text) for s in served.segments)
        served = replace(served, segments=segments)
        rebuilt = body(f"{self.text}!", [("user", f"!{self.text}")])
        raw = self.text.encode("utf-8", "surrogatepass")
        blocks = (Block("text", self.text, self.text, self.text, self.text),)
        return replace(
            super().view(n, of or self.calls[n - 1] if hasattr(self, "calls") else of),
            served=served,
            effective=served,
            rebuilt=rebuilt,
            previous=rebuilt,
            previous_n=1,
            pieces=(Piece(rebuilt.data, "logged", Place(0, self.text)),),
            delivered=raw,
            delivered_blocks=blocks,
            stored_blocks=(Block("text", f"{self.text}?"),),
            echoed_blocks=blocks,
        )

    def snapshot(self, revision=1):
        finding = Finding(self.text, "warning", (2,), self.text, self.text, self.text)
        cost = CacheCost(self.text, "break", self.text, (2,), 7, True, 8.0, 9.0, self.text)
        lost = CacheCost(None, "miss", f"param_changed:{self.text}", (1,), None, False, None, None, "")
        use = CacheUse(self.text, 2, 9, 4, 5, 4, 5, (4, 9), (0, 0), 0)
        told = Compacted(
            self.markers[0],
            (Place(0, text := self.text), Place(0, f"{text}2")),
            0,
            1,
            (TailCut(text, 0),),
            setting=text,
        )
        compactions = (Compaction(told, before=1, words=(text,)),)
        plain = replace(super().snapshot(revision), compactions=compactions)
        return replace(plain, findings=(finding,), notices=(self.text,), costs=(cost, lost), uses=(use,))


class HostileSource(FakeSource):
    def report(self, n, fmt):
        return f"# {self.story.text}\n{super().report(n, fmt)}"

    def messages(self, session, places):  # noqa: ARG002 - the face
        return tuple(Logged(place, self.story.text, self.story.text) for place in places)

    def sidecars(self, n):  # noqa: ARG002 - the face
        text = self.story.text
        each = judged(Sidecar(Place(0, text), text, text, f"{text} "), Counter(), None, None)
        return tuple(SidecarView(each, text, f"{text} ") for _ in range(2))

    def command(self, n):  # noqa: ARG002 - the face
        return f"ctxscope report '{self.story.text}'"


def check(user: User) -> None:
    """Nothing on screen is a character that a terminal would act on, and nothing from the log is a link."""
    bad = [c for c in user.screen if c != "\n" and unicodedata.category(c) in FORBIDDEN]
    assert bad == []
    for strip in user.app.screen._compositor.render_strips():
        for segment in strip:
            assert segment.style is None or segment.style.link is None
            assert segment.control is None
            assert "app.quit" not in str(segment.style.meta if segment.style else "")


@pytest.mark.parametrize("text", HOSTILE, ids=[ascii(t) for t in HOSTILE])
def test_every_pane_and_dialog_shows_it_and_obeys_nothing(text):
    source = HostileSource(Hostile(text), title=text)
    shown = visible(text)

    async def journey(user: User) -> None:
        check(user)
        assert shown in user.screen
        for keys in (
            "v",
            "v",
            "v",
            "v",
            "v",
            "x",
            "x",
            "x",
            "s",
            "s",
            "w",
            "w",
            "2",
            "3",
            "u",
            "i",
            "escape",
            "p",
            "j",
            "escape",
            "a",
            "tab",
            "left",
            "tab",
            "enter",
            "j",
            "escape",
            "4",
            "j",
            "escape",
            "e",
            "escape",
            "y",
        ):
            await user.press(keys)
            check(user)
        user.app.say(text)
        await user.settle()
        check(user)
        assert user.app.is_running

    # Every text at one size, every size with half of the texts: a walk costs seconds.
    play(journey, size=SIZES[HOSTILE.index(text) % len(SIZES)], source=source)


@pytest.mark.parametrize("text", HOSTILE, ids=[ascii(t) for t in HOSTILE])
def test_the_bytes_pane_loses_nothing_of_it(text):
    source = HostileSource(Hostile(text))

    async def journey(user: User) -> None:
        await user.press("v", "v", "v", "v", "+")
        pane = user.app.screen.bytes_pane
        assert pane.sheet.comparison.kind == "wire"
        width = pane.columns
        lines = ["".join(t for t, _ in pane.row_spans(i, width, selected=False))[13:] for i in range(pane.row_count())]
        expected = visible(text.encode("utf-8", "surrogatepass"))
        assert "".join(lines).replace(" ", "") == expected.replace(" ", "")

    play(journey, source=source)


def test_the_picker_shows_hostile_rows():
    rows = [PickerRow(text, text, text, text, key=text) for text in HOSTILE]

    async def journey(user: User) -> None:
        check(user)
        assert "see [/foo] here" in user.screen
        assert "␛]52;c;" in user.screen

    play(journey, pick=True, list_sessions=lambda: rows, open_session=lambda row: FakeSource(title=row.title))


def columns(line: str, words: str) -> list[int]:
    """Where some words begin in a line of the screen, in cells."""
    return [cell_len(line[: found.start()]) for found in re.finditer(re.escape(words), line)]


def test_a_click_on_a_log_text_that_looks_like_a_link_does_nothing():
    source = HostileSource(Hostile("[@click=app.quit]x[/]"))

    async def journey(user: User) -> None:
        links = [(x, y) for y, line in enumerate(user.screen.split("\n")) for x in columns(line, "@click")]
        assert len(links) > 10
        for place in links:
            await user.pilot.click(offset=place)
        assert user.app.is_running
        assert user.app.return_code is None

    play(journey, source=source)


def code(pattern: str) -> list[str]:
    """Where the package holds a pattern, as ``file:line``."""
    return [
        f"{path.relative_to(TUI)}: {line.strip()}"
        for path in sorted(TUI.rglob("*.py"))
        for line in path.read_text("utf-8").split("\n")
        if re.search(pattern, line)
    ]


def test_no_markup_parser_is_in_the_package():
    assert code(r"from_markup|markup=True|\bTree\(|DataTable|RichLog|\bLabel\(") == []


def test_one_place_notifies_and_it_parses_no_markup():
    assert code(r"\.notify\(") == ["app.py: self.notify(visible(words), markup=False, timeout=NOTICE_SECONDS)"]


def test_static_texts_are_never_markup():
    assert all("markup=False" in line for line in code(r"\bStatic\("))


def test_borders_take_content_only():
    assert all("Content(" in line for line in code(r"border_(sub)?title(, self\.border_subtitle)? = "))
