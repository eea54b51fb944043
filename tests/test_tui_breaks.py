"""The breaks screen, and where the panes show that a cache broke."""

from __future__ import annotations

from dataclasses import replace

import pytest
from rich.cells import cell_len

from ctxscope.analysis.remedies import remedy
from ctxscope.model import CacheCost, CacheUse, CacheVerdict, Snapshot
from ctxscope.tui import bar_cells, break_rows, context_rows
from ctxscope.tui.comparison import lost_from
from ctxscope.tui.context_rows import Item, Mark
from tests.tui_pilot import SIZES, User, play
from tests.tui_session import HOSTILE, FakeSource, Story, call

at_both_sizes = pytest.mark.parametrize("size", SIZES, ids=["80x24", "160x45"])
SCHEMA = CacheVerdict(
    "break",
    "tool_schema_changed",
    ("tool_schema_changed",),
    "confirmed",
    "/tools/1",
    expected_read=(0, 300),
    reported_read=0,
    lost_tokens=20_600,
    lost_estimated=True,
    why="definition changed of tool: write_file",
)
EXPIRED = CacheVerdict(
    "miss", "ttl_expired", ("ttl_expired",), "consistent", lost_tokens=700, why="900 s after its parent, kept for 300 s"
)
USE = CacheUse("s1", 12, 90_000, 60_000, 30_000, 80_000, 10_000, (54_000, 60_000), (1_000, 4_000), 2)


def cost(verdict: CacheVerdict, *calls: int, **changes: object) -> CacheCost:
    advice = remedy(verdict.cause)
    plain = CacheCost("s1", verdict.verdict, verdict.cause, calls, None, False, None, None, "", advice)
    return replace(plain, **changes)


def lossy() -> FakeSource:
    """Calls 3 and 9 break at a tool, 6 at the system text for a price not known, 11 misses."""
    source = FakeSource()
    calls = list(source.snapshot.calls)
    for n in (3, 9):
        calls[n - 1] = replace(calls[n - 1], cache=SCHEMA)
    calls[10] = replace(calls[10], cache=EXPIRED, time=calls[9].time + 900)
    costs = (
        cost(SCHEMA, 3, 9, lost_tokens=41_200, estimated=True, extra=47_380.0),
        cost(EXPIRED, 11, lost_tokens=700, extra=805.0, money=0.0024, currency="USD"),
        cost(calls[5].cache, 6),
    )
    source.snapshot = replace(source.snapshot, calls=tuple(calls), costs=costs, uses=(USE,))
    return source


def lines(snapshot: Snapshot, words: str = "", width: int = 110) -> list[str]:
    return ["".join(text for text, _ in row.spans) for row in break_rows.rows_of(snapshot, words, width)]


# --- the rows --------------------------------------------------------------------------------------------------------


def test_groups_come_by_cost_with_their_remedy_and_their_calls():
    told = lines(lossy().snapshot)
    heads = [line for line in told if line[:3] in (" B ", " M ")]
    assert heads == [
        " B tool_schema_changed  2 breaks  ≈41,200 tokens lost  ≈47,380 input tokens extra",
        " M ttl_expired  1 miss  700 tokens lost  805 input tokens extra  <0.01 USD",
        " B system_changed  1 break  – tokens lost  – input tokens extra",
    ]
    at = told.index(heads[0])
    assert told[at + 1].startswith("   → freeze definitions")
    assert told[at + 2].split() == [*("3", "t2", "confirmed", "≈20,600", "60", "s"), *SCHEMA.why.split()]
    assert told[told.index(heads[1]) + 2].split()[:6] == ["11", "t6", "consistent", "700", "15", "min"]


def test_the_use_stands_at_the_top_beside_its_bound():
    told = lines(lossy().snapshot, width=150)
    assert told[0] == " read : new 60,000 : 30,000 tokens (2.00 : 1) · append-only bound 80,000 : 10,000 (8.00 : 1)"
    assert told[1].startswith(" reuse 3.00× · append-only bound 9.00× · sent ÷ new, 90,000 tokens sent by 12 calls")
    assert "90% in unbroken stretches (54,000 of 60,000 tokens)" in told[2]
    assert "25% right after 2 seams (1,000 of 4,000 tokens): a correlation, not a cause" in told[2]


def test_what_nobody_knows_is_a_dash():
    use = replace(USE, read=90_000, new=0, read_bound=90_000, new_bound=0, unbroken=(0, 0), after_seam=(0, 0), seams=0)
    told = " ".join(lines(replace(lossy().snapshot, uses=(use,))))
    assert "90,000 : 0 tokens (–)" in told
    assert "reuse – · append-only bound –" in told
    assert "hit rate – in unbroken stretches (no such call) · – right after seams (there is none)" in told
    assert "use of the cache –" in lines(replace(lossy().snapshot, uses=()))[0]
    lone = replace(lossy().snapshot.calls[2], turn=None, time=None, cache=CacheVerdict("break"))
    bare = Snapshot(1, calls=(lone,), costs=(cost(lone.cache, 3),))
    assert any(line.split() == ["3", "–", "not", "measurable", "–", "–", "–"] for line in lines(bare))
    assert any(" B cause unknown  1 break  – tokens lost" in line for line in lines(bare))


def test_sessions_are_named_where_there_are_several():
    source = lossy()
    assert not any("session s1" in line for line in lines(source.snapshot))
    other = replace(USE, session=None)
    told = lines(replace(source.snapshot, uses=(USE, other)))
    assert " session s1:" in told
    assert " calls of no session:" in told
    assert any(line.startswith(" B tool_schema_changed") and line.endswith("  session s1") for line in told)


@pytest.mark.parametrize(
    ("words", "calls"),
    [("", [3, 9, 11, 6]), ("SCHEMA", [3, 9]), ("break t5", [9]), ("miss", [11]), ("/system", [6]), ("nowhere", [])],
)
def test_the_filter_wants_every_word_in_any_case(words, calls):
    rows = break_rows.rows_of(lossy().snapshot, words, 90)
    assert [row.call.n for row in rows if row.call] == calls
    told = lines(lossy().snapshot, words)
    assert ("no call matches" in " ".join(told)) is not bool(calls)
    assert any("1 of 2 breaks" in line for line in told) is (words == "break t5")


def test_nothing_lost_is_a_sentence():
    told = Snapshot(1, calls=(call(1), call(2, cache=CacheVerdict())))
    assert lines(told)[-1] == " No cache break and no miss was found among 2 calls. Of 1 call it cannot be told."
    assert lines(Snapshot(1))[-1] == " There are no calls yet, so nothing was lost."


@pytest.mark.parametrize("width", [60, 76, 100, 148])
@pytest.mark.parametrize("text", HOSTILE, ids=[ascii(t) for t in HOSTILE])
def test_any_text_keeps_to_the_width_and_passes_the_gate(width, text):
    verdict = CacheVerdict("break", f"param_changed:{text}", path=text, lost_tokens=9, why=f"{text} and {text}" * 9)
    costs = (cost(verdict, 2, session=text, money=3.0, currency=text), cost(verdict, 1, session=None))
    uses = (replace(USE, session=text),)
    told = lines(Snapshot(1, calls=(call(1, cache=verdict), call(2, cache=verdict)), costs=costs, uses=uses), "", width)
    for line in told:
        assert cell_len(line.rstrip()) <= width
        assert line.isprintable()
        assert "\u202e" not in line


@pytest.mark.parametrize(
    ("seconds", "told"), [(0, "0 s"), (301, "301 s"), (700, "12 min"), (5_400, "1.5 h"), (200_000, "2.3 d")]
)
def test_a_gap_is_told_in_one_unit(seconds, told):
    assert break_rows.gap(call(2, time=1_000.0 + seconds), call(1, time=1_000.0)) == told
    assert break_rows.gap(call(2), None) == "–"


# --- the screen ------------------------------------------------------------------------------------------------------


@at_both_sizes
def test_from_the_list_to_the_break_in_the_bytes(size):
    async def journey(user: User) -> None:
        await user.press("p")
        assert "read : new 60,000 : 30,000" in user.words
        assert "a correlation, not a cause" in user.words
        assert "B tool_schema_changed 2 breaks ≈41,200 tokens lost ≈47,380 input tokens extra" in user.words
        assert "→ freeze definitions for the session" in user.words
        assert user.app.screen.pane.call.n == 3
        assert "cache break (tool_schema_changed, confirmed)" in user.words
        await user.press("j", "j", "j")
        assert user.app.screen.pane.call.n == 6
        assert "a clock in the system prompt · at /system" in user.words
        assert "> 6 t3" in user.words
        await user.press("enter")
        assert user.call == 6
        screen = user.app.screen
        assert "previous: call 5 │ this: call 6" in user.screen
        assert "/system" in str(screen.bytes_pane.border_subtitle)
        assert screen.focused is screen.bytes_pane

    play(journey, size=size, source=lossy())


@at_both_sizes
def test_the_cursor_stands_on_calls_and_what_is_above_them_is_seen(size):
    async def journey(user: User) -> None:
        await user.press("p", "G")
        pane = user.app.screen.pane
        assert pane.call.n == 6
        assert "B system_changed" in user.words
        await user.press("j")
        assert pane.call.n == 6
        await user.press("k")
        assert pane.call.n == 11
        await user.press("k", "k")
        assert pane.call.n == 3
        assert "read : new" in user.words
        await user.press("pagedown")
        assert pane.call.n == 6
        await user.press("g")
        assert pane.call.n == 3
        await user.pilot.click(pane, offset=(9, 0))
        assert pane.call.n == 3

    play(journey, size=size, source=lossy())


@at_both_sizes
def test_the_filter_leaves_what_matches_and_escape_ends_it_first(size):
    async def journey(user: User) -> None:
        await user.press("p", "slash", *"pq t5")
        assert "no call matches" in user.words
        await user.press(*["backspace"] * 5, *"t5", "enter")
        assert "1 of 2 breaks" in user.words
        assert "ttl_expired" not in user.words
        assert user.app.screen.pane.call.n == 9
        await user.press("escape")
        assert "M ttl_expired" in user.words
        assert user.app.screen.pane.call.n == 9
        await user.press("escape")
        assert "Cache breaks by cost" not in user.screen
        assert user.call == 12
        for key in ("q", "p"):
            await user.press("p", key)
            assert user.app.is_running
            assert "Cache breaks by cost" not in user.screen

    play(journey, size=size, source=lossy())


@at_both_sizes
def test_a_click_selects_and_a_second_one_goes_there(size):
    async def journey(user: User) -> None:
        await user.press("p")
        pane = user.app.screen.pane
        row = next(i for i, r in enumerate(pane._rows) if r.call and r.call.n == 9)
        await user.pilot.click(pane, offset=(9, row - pane.scroll_offset.y))
        await user.settle()
        assert pane.call.n == 9
        await user.pilot.click(pane, offset=(9, row - pane.scroll_offset.y), times=2)
        await user.settle()
        assert user.call == 9
        assert "previous: call 8" in user.screen

    play(journey, size=size, source=lossy())


@at_both_sizes
def test_nothing_lost_says_so_and_enter_does_nothing(size):
    source = FakeSource()
    source.snapshot = replace(source.snapshot, calls=(call(1), call(2)), markers=())

    async def journey(user: User) -> None:
        await user.press("p")
        assert "No cache break and no miss was found among 2 calls." in user.words
        await user.press("enter", "j", "k", "G", "pagedown")
        assert "No cache break" in user.words
        await user.press("escape")
        assert user.call == 2

    play(journey, size=size, source=source)


def test_where_many_sessions_stand_above_the_cursor_is_on_screen():
    source = lossy()
    uses = tuple(replace(USE, session=f"s{i}") for i in range(1, 9))
    source.snapshot = replace(source.snapshot, uses=uses)

    async def journey(user: User) -> None:
        await user.press("p")
        assert "B tool_schema_changed" in user.words
        assert "> 3 t2" in user.words
        assert "session s1:" not in user.words
        await user.press(*["pageup"] * 6)
        assert "session s1:" in user.words

    play(journey, size=(80, 24), source=source)


def test_the_rows_are_made_anew_when_the_terminal_changes():
    async def journey(user: User) -> None:
        await user.press("p", "j")
        await user.pilot.resize_terminal(80, 24)
        await user.settle()
        pane = user.app.screen.pane
        assert pane.call.n == 9
        assert all(cell_len("".join(t for t, _ in row.spans)) < 80 for row in pane._rows)

    play(journey, size=(160, 45), source=lossy())


def test_a_break_found_in_the_list_comes_to_the_front_where_context_and_bytes_share_a_place():
    async def journey(user: User) -> None:
        await user.press("2", "p", "enter")
        assert user.call == 3
        assert "3 Bytes" in user.screen

    play(journey, size=(80, 24), source=lossy())


# --- where it broke, in the panes ------------------------------------------------------------------------------------


def sized(of):
    """A body whose segments know the length of their prompt form, as wire cuts them."""
    return replace(of, segments=tuple(replace(s, prompt_bytes=s.end - s.start) for s in of.segments))


def view_of(verdict: CacheVerdict, tools: int = 3, left_out: int = 0, tokens: int = 40):
    """Call 6 against its parent; ``left_out``: tools at the end of the list that only the parent has."""
    view = Story().view(6, replace(Story().calls[5], cache=verdict))
    served, previous = sized(view.served), sized(view.previous)
    first = next(s for s in previous.segments if s.kind == "tool")
    rest = [s for s in previous.segments if s.kind != "tool"]
    many = tuple(replace(first, path=f"/tools/{i}", order=(0, i)) for i in range(tools))
    own = many[: tools - left_out]
    kept = [s for s in served.segments if s.kind != "tool"]
    served = replace(served, segments=(*own, *kept))
    previous = replace(previous, segments=(*many, *rest))
    counts = {s.path: tokens for s in served.segments}
    return replace(view, served=served, effective=served, rebuilt=served, previous=previous, segment_tokens=counts)


def offset(view, path: str) -> int:
    """Bytes of the parent's prompt before a segment."""
    ordered = sorted((s for s in view.previous.segments if s.kind != "param"), key=lambda s: s.order)
    at = [s.path for s in ordered].index(path)
    return sum(s.prompt_bytes for s in ordered[:at])


@pytest.mark.parametrize(
    ("cause", "path", "at", "left_out", "shown"),
    [
        ("system_changed", "/system", "/system", 0, "/system"),
        ("model_changed", "/model", "/tools/0", 0, "/tools/0"),
        ("param_changed:betas", "anthropic-beta", "/messages/0/content/0", 0, "/messages/0/content/0"),
        ("param_changed:images", "/messages/4/content/0", "/messages/0/content/0", 0, "/messages/0/content/0"),
        ("tool_removed", "/tools/2", "/tools/2", 1, "/system"),
        ("history_rewritten", "/messages/3/content/0", "/messages/3/content/0", 0, "/messages/3/content/0"),
    ],
)
def test_the_mark_stands_where_the_loss_begins(cause, path, at, left_out, shown):
    plain = view_of(CacheVerdict("break"), left_out=left_out)
    place = offset(plain, at) + (3 if path == at else 0)
    view = view_of(CacheVerdict("break", cause, path=path, prefix_offset=place), left_out=left_out)
    assert lost_from(view, view.served).path == shown
    rows = context_rows.build(view).rows
    marks = [i for i, row in enumerate(rows) if isinstance(row, Mark) and row.line == "╳"]
    assert len(marks) == 1
    assert rows[marks[0]].words == f"break: {cause}"
    assert isinstance(rows[marks[0] + 1], Item)
    assert rows[marks[0] + 1].segment.path == shown
    built = bar_cells.build(context_rows.build(view), 60_000, 100_000, 70)
    text = "".join(t for t, _ in built.spans)
    assert text.count("╳") == 1
    behind = built.paths[text.index("╳") + (0 if shown == "/tools/0" else 1)]
    assert behind == shown


def test_without_sizes_the_path_tells_the_place():
    view = Story().view(6)
    assert lost_from(view, view.served).path == "/system"
    assert lost_from(replace(view, previous=None), view.served).path == "/system"
    assert lost_from(replace(view, call=call(6)), view.served) is None


class Broken(Story):
    """Call 6 breaks at a tool, in a list long enough to begin closed, or by the model."""

    def __init__(self, path: str) -> None:
        plain = view_of(CacheVerdict("break"), tools=20)
        place = 0 if path == "/model" else offset(plain, path) + 9
        self.verdict = CacheVerdict("break", "tool_removed", path=path, prefix_offset=place)
        super().__init__()
        self.calls[5] = replace(self.calls[5], cache=self.verdict)

    def view(self, n, of=None):
        return view_of(self.verdict, tools=20) if n == 6 and of is None else super().view(n, of)


@at_both_sizes
@pytest.mark.parametrize("path", ["/tools/19", "/model", "/messages/7/content/0"])
def test_a_jump_to_a_break_shows_its_place_in_context_and_bar(size, path):
    async def journey(user: User) -> None:
        await user.press("2", "G", "b")
        assert user.call == 6
        assert "╳╳ break: tool_removed" in user.screen
        assert user.line("ctx ").count("╳") == 1

    play(journey, size=size, source=FakeSource(Broken(path)))


@at_both_sizes
def test_a_break_inside_a_closed_group_is_seen_from_above_and_from_below(size):
    async def journey(user: User) -> None:
        for edge in ("g", "G"):
            await user.press("1", "G", "2", edge, "b")
            assert "╳╳ break" in user.screen
            assert "▸ tools (20)" in user.screen

    play(journey, size=size, source=FakeSource(Broken("/tools/19")))


@at_both_sizes
def test_where_no_byte_differs_the_context_still_shows_where_the_loss_begins(size):
    """As when the provider leaves out reasoning of a body that only grew: the first difference is what it added."""

    async def journey(user: User) -> None:
        await user.press("2", "g", "b")
        assert "/messages/3" not in str(user.app.screen.bytes_pane.border_subtitle)
        assert user.app.screen.context_pane.segment.path == "/messages/3/content/0"
        assert "╳╳ break" in user.screen

    play(journey, size=size, source=FakeSource(Broken("/messages/3/content/0")))
