"""What lost prefixes cost: tokens by the provider's multiples, money only by the user's word, and the session's own bound."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ctxscope.analysis.costs import costs_of, priced, timed, unbilled, uses_of
from ctxscope.analysis.providers import Providers
from ctxscope.model import CacheVerdict, Call, RebuiltVerdict, ReplyVerdict, Stop, TokenLedger, Usage

LOSS = CacheVerdict("break", "system_changed", lost_tokens=1000)
ANTHROPIC = Providers().rules("anthropic", "claude-opus-4-5", "anthropic-messages")


def call(n: int, cache: CacheVerdict | None = None, usage: Usage | None = None, **about: object) -> Call:
    plain = Call(
        n=n,
        session="s",
        turn=1,
        lineage="main",
        parent=n - 1 or None,
        kind="main",
        exchange=None,
        entry=None,
        joined_by=None,
        api="anthropic-messages",
        provider="anthropic",
        model="claude-opus-4-5",
        time=None,
        request_bytes=None,
        request_sha256=None,
        rebuilt=RebuiltVerdict("not_logged"),
        reply=ReplyVerdict("not_recorded"),
        cache=cache or CacheVerdict("warm", expected_read=(0, 9)),
        tokens=TokenLedger(),
        usage=usage,
        stop=None,
        requested_max=None,
        at_cap=None,
        what="",
    )
    return replace(plain, **about)  # type: ignore[arg-type]


def test_a_loss_costs_what_writing_costs_more_than_reading():
    found = priced(LOSS, ANTHROPIC)
    assert found.extra == pytest.approx(1000 * (1.25 - 0.1))
    assert (found.money, found.currency) == (None, "")
    assert priced(CacheVerdict("warm", lost_tokens=0), ANTHROPIC).extra is None
    assert priced(replace(LOSS, lost_tokens=None), ANTHROPIC).extra is None


def test_a_refused_call_was_not_billed_for_what_it_broke():
    told = unbilled(priced(LOSS, ANTHROPIC))
    assert (told.verdict, told.cause, told.lost_tokens, told.extra) == ("break", "system_changed", 0, None)
    assert unbilled(CacheVerdict("warm")) == CacheVerdict("warm")


def test_money_is_only_ever_the_users_word():
    told = priced(LOSS, replace(ANTHROPIC, money=5.0, currency="USD"))
    assert told.money == pytest.approx(1150 * 5 / 1_000_000)
    assert told.currency == "USD"
    assert priced(LOSS, replace(ANTHROPIC, price_read=None, money=5.0)).money is None


def test_a_local_engine_is_timed_by_its_own_word_else_by_its_first_byte():
    engine, used = Providers().rules("llama_cpp", "any", "openai-chat"), Usage(4000, 0, None, 5)
    told = timed(LOSS, engine, used, 8.0, 9.0)
    assert (told.seconds, told.seconds_from) == (pytest.approx(2.0), "timings")
    waited = timed(LOSS, engine, used, None, 10.0)
    assert (waited.seconds, waited.seconds_from) == (pytest.approx(2.5), "first_byte")
    assert timed(LOSS, engine, used, None, None).seconds is None
    assert timed(LOSS, engine, None, 8.0, 9.0).seconds is None
    assert timed(LOSS, ANTHROPIC, used, 8.0, 9.0).seconds is None
    assert timed(CacheVerdict("warm", lost_tokens=0), engine, used, 8.0, 9.0).seconds is None


def test_losses_are_summed_by_cause_and_an_unknown_one_makes_the_sum_unknown():
    big, unknown = replace(LOSS, cause="compaction", lost_tokens=9000), replace(LOSS, lost_tokens=None)
    calls = [call(1, LOSS), call(2, big), call(3, LOSS), call(4)]
    found = costs_of(calls)
    assert [(c.cause, c.calls, c.lost_tokens) for c in found] == [
        ("compaction", (2,), 9000),
        ("system_changed", (1, 3), 2000),
    ]
    assert all(c.remedy for c in found)
    assert costs_of([*calls, call(5, unknown)])[-1].lost_tokens is None


def test_a_session_is_measured_by_what_its_own_calls_allow():
    calls = [
        call(1, usage=Usage(1000, 0, 0, 5)),
        call(2, usage=Usage(200, 1000, 0, 5)),
        call(3, LOSS, Usage(1500, 0, 0, 5), markers=("compaction",)),
        call(4, usage=Usage(100, 1400, 0, 5), stop=Stop("max_tokens", "truncated")),
        call(5, usage=Usage(100, 1500, 0, 5)),
    ]
    (use,) = uses_of(calls)
    assert (use.sent, use.read, use.new) == (6800, 3900, 2900)
    assert (use.read_bound, use.new_bound) == (1000 + 1200 + 1500 + 1500, 1600)
    assert use.reuse == pytest.approx(6800 / 2900)
    assert use.unbroken == (2400, 2700)
    assert (use.seams, use.after_seam) == (2, (1500, 3100))


def test_nothing_is_said_of_a_session_whose_provider_reports_no_reads():
    assert not list(uses_of([call(1, usage=Usage(1000, None, None, 5)), call(2)]))
