"""What people do in the app, key by key."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ctxscope.model import CtxscopeError
from tests.tui_pilot import SIZES, User, play
from tests.tui_session import FakeSource, Story, call

at_both_sizes = pytest.mark.parametrize("size", SIZES, ids=["80x24", "160x45"])


@at_both_sizes
def test_open_step_jump_read_the_why_see_the_reply_export_and_quit(size, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    async def journey(user: User) -> None:
        assert "demo · pi · log.jsonl" in user.screen
        assert user.call == 12
        await user.press("K")
        assert user.call == 11
        await user.press("d")
        assert user.call == 4
        assert "served │ rebuilt from the log" in user.screen
        assert "4096.0 was spelled 4096" in user.line("why")
        await user.press("d")
        assert user.call == 9
        await user.press("D", "J")
        assert user.call == 5
        await user.press("v", "v")
        assert "delivered │ stored in the log" in user.screen
        assert "the log lost a word" in user.line("why")
        assert "with every word" in user.screen
        assert "with a word" in user.screen
        await user.press("e", "enter")
        assert sorted(p.suffix for p in tmp_path.iterdir()) == [".json", ".md"]
        assert "call 5" in next(tmp_path.glob("*.md")).read_text()
        await user.press("q")

    app = play(journey, size=size)
    assert app.return_code == 0


@at_both_sizes
def test_the_difference_is_emphasised_inside_the_line(size):
    async def journey(user: User) -> None:
        await user.press("d")
        pane = user.app.screen.bytes_pane
        strips = [pane.render_line(y) for y in range(pane.size.height)]
        emphasised = [s.text for strip in strips for s in strip if s.style and s.style.reverse]
        assert ".0" in "".join(emphasised)

    play(journey, size=size)


def test_flags_lead_to_breaks_compactions_and_cut_replies():
    async def journey(user: User) -> None:
        await user.press("b")
        assert user.call == 6
        assert "previous: call 5 │ this: call 6" in user.screen
        assert "a clock in the system prompt" in user.line("why")
        assert "4,321 tokens lost" in user.line("why")
        assert "╳╳ break: system_changed" in user.screen
        await user.press("c")
        assert user.call == 8
        assert "compaction 162k→32k" in user.screen
        await user.press("t")
        assert user.call == 10
        assert "stop: max_tokens (truncated at its cap of 4,096)" in user.line("why")

    play(journey)


def test_a_key_that_could_do_nothing_is_greyed_and_does_nothing():
    source = FakeSource()
    source.snapshot = replace(source.snapshot, calls=(call(1), call(2)), markers=())

    async def journey(user: User) -> None:
        screen = user.app.screen
        assert screen.check_action("jump", (1, "B")) is None
        assert screen.check_action("hit", (1,)) is None
        await user.press("g", "b")
        assert user.call == 1

    play(journey, source=source)


def test_enter_leads_from_call_to_bytes_and_from_segment_to_where_it_stands():
    async def journey(user: User) -> None:
        screen = user.app.screen
        await user.press("d", "enter")
        assert screen.focused is screen.bytes_pane
        await user.press("2", "G", "k", "k", "enter")  # above the closed parameters and the breakpoint
        assert screen.focused is screen.bytes_pane
        assert "/messages/6/content/0" in str(screen.bytes_pane.border_subtitle)
        assert screen.context_pane.segment.path == "/messages/6/content/0"

    play(journey)


def test_a_fold_opens():
    async def journey(user: User) -> None:
        await user.press("d", "3", "G")
        assert "equal rows, enter opens" in user.screen
        await user.press("enter")
        assert "equal rows, enter opens" not in user.screen

    play(journey, size=(80, 24))


def test_bytes_can_be_raw_pretty_and_hex():
    async def journey(user: User) -> None:
        await user.press("d", "x")
        assert '"max_tokens":4096.0,' in user.screen
        assert "· pretty" in user.screen
        await user.press("x")
        assert "34 30 39 36" in user.screen

    play(journey)


def test_search_goes_from_hit_to_hit():
    async def journey(user: User) -> None:
        pane = user.app.screen.bytes_pane
        await user.press("d", "/", *"message", "enter")
        assert '"message 0' in user.screen
        before = pane.cursor
        await user.press("n")
        assert pane.cursor > before
        assert "hit " in str(pane.border_subtitle)
        await user.press("N")
        assert pane.cursor == before
        await user.press(*"NNN")
        assert pane.cursor > before  # round the beginning

    play(journey)


def test_side_by_side_when_wide_and_one_column_when_narrow():
    async def journey(user: User) -> None:
        await user.press("d", "3")
        beside = user.app.screen.bytes_pane.sheet.layout.beside
        assert beside == (user.app.size.width >= 120)
        assert ("-S   000000" in user.screen) == (not beside)
        await user.press("u")
        assert user.app.screen.bytes_pane.sheet.layout.beside != beside

    for size in SIZES:
        play(journey, size=size)


def test_context_and_bytes_share_one_place_when_narrow():
    async def journey(user: User) -> None:
        assert "2 Context" not in user.screen
        await user.press("2")
        assert "2 Context" in user.screen
        assert "3 Bytes" not in user.screen
        await user.press("3")
        assert "3 Bytes" in user.screen

    play(journey, size=(80, 24))


def test_a_pane_can_stand_alone():
    async def journey(user: User) -> None:
        await user.press("3", "+")
        assert "1 Calls" not in user.screen
        await user.press("escape")
        assert "1 Calls" in user.screen

    play(journey)


def test_new_calls_appear_and_follow_keeps_to_the_end():
    source = FakeSource()
    everything = source.snapshot
    source.snapshot = replace(everything, calls=everything.calls[:10])

    async def journey(user: User) -> None:
        assert user.call == 10
        source.publish(replace(everything, revision=2, calls=everything.calls[:11]))
        await user.settle()
        assert user.call == 11
        assert "answer number 11" in user.screen
        await user.press("K")
        source.publish(replace(everything, revision=3, partial=True))
        await user.settle()
        assert user.call == 10
        assert "answer number 12" in user.screen
        assert "writing…" in user.screen
        await user.press("F")
        assert user.call == 12

    play(journey, source=source)
    assert source.stopped


def test_a_call_that_became_better_known_is_shown_anew_where_the_user_looks():
    source = FakeSource()

    async def journey(user: User) -> None:
        await user.press("3", "j", "j")
        pane = user.app.screen.bytes_pane
        stood = pane.cursor
        calls = [*source.snapshot.calls[:-1], call(12, what="a better answer")]
        source.publish(replace(source.snapshot, revision=2, calls=tuple(calls)))
        await user.settle()
        assert "a better answer" in user.screen
        assert pane.cursor == stood
        assert source.viewed.count(12) == 2

    play(journey, source=source)


def test_without_a_recording_the_rebuilt_side_and_without_a_log_the_previous_call():
    class Halves(Story):
        def view(self, n, of=None):
            view = super().view(n, of)
            if n == 2:
                return replace(view, served=None, effective=None, delivered=None, delivered_blocks=None)
            return replace(view, rebuilt=None, pieces=(), stored_blocks=None, echoed_blocks=None)

    async def journey(user: User) -> None:
        await user.press("g", "j")
        assert "3 Bytes · rebuilt from the log" in user.screen
        await user.press("j")
        assert "3 Bytes · previous: call 2 │ this: call 3" in user.screen

    play(journey, source=FakeSource(Halves()))


def test_a_call_that_cannot_be_read_is_told_and_the_app_lives_on():
    class Torn(Story):
        def view(self, n, of=None):
            if n == 3 and of is None:
                raise CtxscopeError("log.jsonl: line 7 is gone [/foo]")
            return super().view(n, of)

    async def journey(user: User) -> None:
        await user.press("g", "j", "j")
        assert "line 7 is gone [/foo]" in user.line("why")
        assert "call 3 cannot be read" in user.screen
        await user.press("j")
        assert user.call == 4

    play(journey, source=FakeSource(Torn()))


def test_an_empty_session_says_so():
    source = FakeSource()
    source.snapshot = replace(source.snapshot, calls=(), markers=(), notices=("the file is empty",))

    async def journey(user: User) -> None:
        assert "the file is empty" in user.line("why")
        await user.press("d", "j", "G", "enter", "v", "y", "2", "enter", "1")

    assert play(journey, source=source).return_code is None


def test_export_never_overwrites_without_being_told_twice(tmp_path):
    path = tmp_path / "report.md"
    path.write_text("mine")

    async def journey(user: User) -> None:
        await user.press("e")
        user.app.screen.query_one("#file").value = str(tmp_path / "report.json")
        await user.press("enter")
        assert "report.md exists: enter again replaces it" in user.screen
        assert path.read_text() == "mine"
        assert not (tmp_path / "report.json").exists()
        await user.press("enter")

    play(journey)
    assert "Divergence report (md): call 12" in path.read_text()
    assert "Divergence report (json)" in (tmp_path / "report.json").read_text()


def test_export_tells_why_it_cannot_write(tmp_path):
    async def journey(user: User) -> None:
        await user.press("e")
        user.app.screen.query_one("#file").value = str(tmp_path / "nowhere" / "report")
        await user.press("enter")
        assert "not written" in user.screen
        await user.press("escape")
        assert "Export" not in user.screen.split("\n")[5]

    play(journey)


def test_copy_gives_the_command_line():
    async def journey(user: User) -> None:
        await user.press("d", "y")
        assert user.app.clipboard == "ctxscope report log.jsonl --call 4"
        assert user.line("$").strip() == "$ ctxscope report log.jsonl --call 4"

    play(journey)


def test_the_mouse_selects_calls_keys_and_segments():
    async def journey(user: User) -> None:
        screen = user.app.screen
        await user.pilot.click(screen.calls_pane, offset=(10, 5))
        await user.settle()
        assert user.call == 4
        await user.pilot.click(screen.keys, offset=(14, 0))
        await user.settle()
        assert user.call == 9
        _, begin, bar = screen.tokens._bar
        at = next(i for i, path in enumerate(bar.paths) if path.startswith("/messages/"))
        await user.pilot.click(screen.tokens, offset=(begin + at, 0))
        await user.settle()
        assert screen.focused is screen.bytes_pane
        assert "/messages/" in str(screen.bytes_pane.border_subtitle)

    play(journey)


def test_the_narrow_screen_looks_like_this():
    source = FakeSource()
    source.snapshot = replace(source.snapshot, calls=tuple(replace(c, time=None) for c in source.snapshot.calls))

    async def journey(user: User) -> None:
        await user.press("d")
        assert user.screen == NARROW.strip("\n")

    play(journey, size=(80, 24), source=source)


NARROW = r"""
 ctxscope  demo · pi · log.jsonl                   ● live  12 calls  2 diverged
╭─ 1 Calls ────────────────────────────────────────────────────────────────────╮
│    n turn  time   tokens cache DBCT =r what                                 ▅│
│    2          –    2,000   90% .... =  answer number 2                       │
│    3 t2       –    3,000   90% .... =  answer number 3                       │
│>   4          –    4,000   90% D... ≠  answer number 4                       │
│    5 t3       –    5,000   90% .... =r answer number 5                       │
│    6          –    6,000   90% .B.. =  answer number 6                       │
╰──────────────────────────────────────────────────────────── 4/12 · F follow ─╯
╭─ 3 Bytes · served │ rebuilt from the log ────────────────────────────────────╮
│ served  952 B  │ rebuilt from the log  954 B                                 │
│>-S   000000 {"model":"model-1","max_tokens":4096,"tools":[                   │
│ +R d 000000 {"model":"model-1","max_tokens":4096.0,"tools":[                 │
│    d 00002e {"name":"read_file","input_schema":{"type":"object"}},           │
│    d 000064 {"name":"write_file","input_schema":{"type":"object"}},         ▃│
│    d 00009b {"name":"run_tests","input_schema":{"type":"object"}}],          │
│    d 0000d2 "system":"You help. It is noon.\n                                │
│    d 0000f3 Rules follow.","messages":[                                      │
╰───────────────────────────────────────────── difference 1/1 · 0x000024 (36) ─╯
 ctx 4k/200k │TTTTTSMMMMMMMMMMmmm┊⋯░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░│ 2%
 tok  4,000 reported  3,600 cached  3,960 visible  3,960 rebuilt  ≈4,800 naive
 why served ≠ rebuilt · number_spelling: 4096.0 was spelled 4096 · at
     /max_tokens, byte 32 · CTX101
 J/K Call d/D Diff b/B Break c/C Comp t/T Cut v View e Export ? Help q Quit
"""
