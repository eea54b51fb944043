"""The screen of the next request, driven by keys."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest

from ctxscope import wire
from ctxscope.analysis.parting import parting
from ctxscope.model import NEXT_INPUT, Body, CacheVerdict, NextRequest
from ctxscope.wire.body import make_body
from tests.tui_pilot import SIZES, User, play
from tests.tui_session import HOSTILE, FakeSource

at_both_sizes = pytest.mark.parametrize("size", SIZES, ids=["80x24", "160x45"])


def body(answer: str, *more: str) -> Body:
    filler = [("user", f"plum {n}: " + "a row of trees " * 6) for n in range(30)]
    turns = [*filler, ("assistant", answer), *(("user", text) for text in more)]
    told = {"model": "plum-1", "messages": [{"role": role, "content": text} for role, text in turns]}
    return make_body(json.dumps(told).encode(), wire.by_name("openai-chat"))


def broken(session: str = "s1") -> NextRequest:
    was, now = body("the answer as it was"), body("the answer as stored", NEXT_INPUT)
    cache = CacheVerdict(
        "break", "history_rewritten", ("history_rewritten",), "consistent", "/messages/30", lost_tokens=70,
        lost_estimated=True, extra=63.0, why="a message already sent reads differently now",
    )  # fmt: skip
    return NextRequest(
        session, "pear", "Pear", now, (), "body", was, 4, previous_served=True, cache=cache, ttl=300.0,
        difference=parting(was, now, "/messages/30"), changes=("answers are cut", *HOSTILE), unknown=("the date",),
    )  # fmt: skip


class Foretelling(FakeSource):
    """Knows what comes next, or cannot find out."""

    def __init__(self, *requests: NextRequest, error: Exception | None = None) -> None:
        super().__init__()
        self.requests, self.error = requests, error

    def next_requests(self) -> Sequence[NextRequest]:
        if self.error is not None:
            raise self.error
        return self.requests


@at_both_sizes
def test_a_key_shows_what_would_be_sent_and_where_it_parts_from_the_last_request(size):
    async def journey(user: User) -> None:
        await user.press("r")
        for words in ("Pear · s1", "cache break (history_rewritten", "≈70 tokens lost", "kept for 5 min"):
            assert words in user.words
        assert "answers are cut" in user.words
        pane = user.app.screen.bytes_pane
        assert pane.segment.path == "/messages/30"
        assert "the answer as" in user.screen
        await user.press("g")
        assert pane.cursor == 0
        await user.press("d")
        assert pane.segment.path == "/messages/30"
        await user.press("x")
        assert "pretty" in user.words
        await user.press("escape")
        assert "if it were started anew" not in user.screen
        assert user.app.is_running

    play(journey, size=size, source=Foretelling(broken()))


@at_both_sizes
def test_the_session_of_the_call_comes_first_and_tab_goes_to_the_next(size):
    async def journey(user: User) -> None:
        await user.press("r")
        assert "Pear · s1" in user.words
        await user.press("tab")
        assert "Quince · s2" in user.words
        assert "not known: its form is not described" in user.words
        await user.press("tab")
        assert "Pear · s1" in user.words

    other = NextRequest("s2", "quince", "Quince", why="its form is not described")
    play(journey, size=size, source=Foretelling(other, broken()))


@at_both_sizes
def test_what_cannot_be_worked_out_says_why(size):
    async def journey(user: User) -> None:
        await user.press("r")
        assert "the log is torn" in user.words
        await user.press("r")
        assert user.app.is_running

    play(journey, size=size, source=Foretelling(error=ValueError("the log is torn")))
