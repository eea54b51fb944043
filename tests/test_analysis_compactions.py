"""What a compaction cost and when it has paid; compactions on phantom bytes, under-counts and refused calls."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ctxscope.analysis.compactions import Around, judged, rates_of, resent
from ctxscope.analysis.findings import findings_of
from ctxscope.analysis.providers import Providers
from ctxscope.analysis.windows import is_too_long
from ctxscope.model import (
    BreakRate,
    CacheVerdict,
    Call,
    Compacted,
    Compaction,
    Estimate,
    Marker,
    Place,
    Point,
    TokenLedger,
    TokenParts,
    Usage,
    Window,
)
from tests.test_analysis_costs import call

RULES = Providers().rules("anthropic", "claude-opus-4-5", "anthropic-messages")
BILLED = Usage(2_000, 8_000, 10_000, 50)
WINDOW = Window(600_000, "config", 520_000, "rule")


def told(at: int | None, before: int | None = None, **about: Any) -> Compacted:
    marker = Marker("compaction", "k", True, "", Place(0, "row 9"), before, 900, (Place(0, "row 1"),), at, "s")
    return Compacted(marker, **{"unseen": 0, **about})


def asked(n: int, usage: Usage | None = None, **about: Any) -> Call:
    tokens = TokenLedger(reported=usage.reported if usage else None)
    return call(n, usage=usage, **{"tokens": tokens, "window": WINDOW, **about})


def around(*calls: Call, **about: Any) -> Around:
    return Around(calls, lambda _: RULES, lambda _: 4.0, **about)


def session() -> tuple[Call, ...]:
    lost = CacheVerdict("break", "compaction", lost_tokens=50_000, extra=50_000 * 1.15)
    return (
        asked(1, Usage(1_000, 0, 99_000, 50)),
        asked(2, Usage(500, 90_000, 0, 10), kind="compaction", lineage="compaction:1"),
        asked(3, Usage(2_000, 8_000, 10_000, 50), cache=lost),
        asked(4, Usage(100, 20_000, 0, 5)),
    )


def test_the_cost_is_its_request_and_what_was_billed_again_and_each_later_call_saves_what_it_need_not_read():
    (found,) = judged([told(3)], around(*session()))
    assert (found.before, found.tokens_before, found.tokens_after) == (1, 100_000, 20_000)
    assert (found.requests, found.usage) == ((2,), Usage(500, 90_000, 0, 10))
    assert (found.seconds, found.seconds_by) == (4.0, "exchange")
    assert (found.rebilled, found.rebilled_at_most) == (12_000, True)  # of 50,000 lost the rest is never sent again
    assert any("at most 12,000 tokens were billed again" in words for words in found.words)
    assert found.cost == pytest.approx(500 + 90_000 * 0.1 + 12_000 * 1.15)
    assert found.saving == pytest.approx(80_000 * 0.1)
    assert found.break_even == 3  # 23,300 / 8,000
    assert any("It would pay for itself after at most 3 calls (2 calls so far)" in words for words in found.words)
    (later,) = judged([told(3)], around(*session(), asked(5, Usage(100, 20_000, 0, 5))))
    assert any("It has paid for itself after at most 3 calls (3 calls so far)" in words for words in later.words)


def test_calls_behind_the_next_compaction_pay_for_that_one():
    lost = CacheVerdict("break", "compaction", lost_tokens=50_000, extra=50_000 * 1.15)
    calls = [
        *session(),
        asked(5, Usage(9_000, 0, 0, 5), cache=lost),
        *(asked(n, Usage(1, 20_000, 0, 5)) for n in range(6, 12)),
    ]
    both = [told(3), told(5, usage=Usage(100, 0, 0, 5))]
    words = [w for found in judged(both, around(*calls)) for w in found.words if "for itself" in w]
    assert (
        words[0]
        == "It had not paid for itself when the next compaction came, 2 calls later: that takes at most 3 calls."
    )
    assert words[1].endswith("(7 calls so far).")
    pruned = replace(told(5), marker=replace(told(5).marker, kind="prune"))
    (first, _) = judged([told(3), pruned], around(*calls))
    assert first.words[-1].endswith("(9 calls so far).")  # which takes nothing of what the compaction saved
    (once, _) = judged([told(3), told(None)], around(*calls))
    assert once.words[-1] == "It has paid for itself after at most 3 calls (9 calls until the next compaction)."
    (first, _) = judged([told(3), told(None)], around(*calls[:4]))
    assert "when the next compaction came, 2 calls later" in first.words[-1]


def test_only_what_stood_in_the_prompt_before_is_billed_again():
    """A summary, the last reply and a new input were never billed: they are part of what was billed for anew."""
    calls = session()
    (found,) = judged([told(3)], around(*calls, again=lambda one, two: 3_000 if (one.n, two.n) == (1, 3) else 0))
    assert (found.rebilled, found.rebilled_estimated, found.rebilled_at_most) == (3_000, True, False)
    assert found.cost == pytest.approx(500 + 90_000 * 0.1 + 3_000 * 1.15)
    assert found.break_even == 2
    assert any("≈3,000 tokens were billed again" in words for words in found.words)
    (rate,) = rates_of([found], around(*calls))
    assert rate.words == "1 of 1 broke the cache, in 1 call; ≈3,000 tokens billed again"


def test_of_what_was_sent_anew_those_segments_count_that_were_sent_before():
    prompt = [(b"head", 100.0), (b"summary", 40.0), (b"kept", 30.0), (b"input", 10.0)]
    assert resent(prompt[::-1], {b"head", b"kept", b"gone"}, 80) == 30
    assert resent(prompt[::-1], {b"head", b"kept"}, 105) == 55  # of the head the last quarter was not read
    assert resent(prompt[::-1], {b"head"}, 0) == 0
    assert resent(prompt[::-1], set(), 180) == 0


def test_what_is_not_known_is_not_zero():
    calls = session()
    no_price = Around(calls, lambda _: replace(RULES, price_read=None), lambda _: None)
    (found,) = judged([told(3)], no_price)
    assert (found.cost, found.saving, found.break_even, found.seconds) == (None, None, None, None)
    (last,) = judged([told(None)], around(*calls))
    assert (last.before, last.tokens_after, last.rebilled, last.cost) == (4, None, None, None)
    (longer,) = judged([told(3)], around(*calls[:2], asked(3, Usage(200_000, 0, 0, 1), cache=CacheVerdict("cold"))))
    assert longer.break_even is None
    assert any("does not pay" in words for words in longer.words)


def test_the_last_of_several_events_before_a_call_bears_its_break():
    found = judged([told(3), told(3)], around(*session()))
    assert [c.rebilled for c in found] == [None, 12_000]
    assert [c.requests for c in found] == [(), (2,)]
    (rate,) = rates_of(found, around(*session()))
    assert (rate.events, rate.unknown, rate.breaks, rate.calls, rate.rebilled) == (2, 1, 1, 1, 12_000)


def test_breaks_are_counted_by_setting():
    calls = (*session(), asked(5, Usage(1, 0, 0, 1), cache=CacheVerdict("break", "compaction", lost_tokens=7)))
    found = judged([told(3, setting="every 1"), told(5, setting="every 4")], around(*calls))
    rates = rates_of(found, around(*calls))
    assert [(r.setting, r.events, r.breaks, r.calls) for r in rates] == [("every 1", 1, 1, 1), ("every 4", 1, 1, 2)]


def broken(verdict: CacheVerdict | None, usage: Usage | None = BILLED) -> tuple[Compaction, BreakRate]:
    """What is made of an event whose first call after it has a verdict; ``None``: no call came."""
    calls = session()[:2] if verdict is None else (*session()[:2], asked(3, usage, cache=verdict))
    found = judged([told(None if verdict is None else 3)], around(*calls))
    return found[0], rates_of(found, around(*calls))[0]


@pytest.mark.parametrize(
    ("verdict", "words"),
    [
        (
            CacheVerdict("break", "volatile_content", ("volatile_content",), lost_tokens=9_000),
            "The break at call 3 has another",
        ),
        (CacheVerdict("break", "param_changed:betas", lost_tokens=9_000), "cause: param_changed:betas."),
        (CacheVerdict("break", None, ("tool_added", "system_changed")), "cause: tool_added or system_changed."),
        (CacheVerdict("unknown"), ""),
        (CacheVerdict("cold", "first_call_cold"), ""),
        (None, ""),
    ],
)
def test_nothing_is_put_down_to_an_event_that_another_cause_forestalled_or_no_call_tells_of(verdict, words):
    found, rate = broken(verdict)
    assert (found.broke, found.rebilled, found.cost, found.break_even) == (None, None, None, None)
    assert (rate.events, rate.unknown, rate.breaks, rate.rebilled) == (1, 1, 0, None)
    assert rate.words == "of 1 it is not known whether they broke the cache, in 1 call"
    assert [w for w in found.words if "another cause" in w] == [w for w in found.words if words and words in w]
    assert not words or any(words in w for w in found.words)
    assert not any("billed again" in w for w in found.words)


def test_a_cause_that_may_be_the_event_counts():
    either = CacheVerdict("break", "param_changed:betas", ("param_changed:betas", "compaction"), lost_tokens=9_000)
    found, rate = broken(either)
    assert (found.broke, found.rebilled, rate.breaks) == (True, 9_000, 1)
    assert not any("another cause" in w for w in found.words)


def test_a_call_that_was_not_billed_tells_of_breaks_and_of_no_tokens():
    lost = CacheVerdict("break", "compaction", lost_tokens=9_000)
    found, rate = broken(lost, None)
    assert (found.broke, found.rebilled, rate.breaks, rate.rebilled) == (True, None, 1, None)
    assert rate.words == "1 of 1 broke the cache, in 1 call"
    assert broken(CacheVerdict("warm", lost_tokens=0), None)[0].rebilled is None
    assert broken(CacheVerdict("warm", lost_tokens=0))[0].rebilled == 0
    missed = broken(CacheVerdict("miss", "ttl_expired", lost_tokens=9_000))[0]
    assert (missed.broke, missed.rebilled) == (False, None)
    assert "The miss at call 3 has another cause: ttl_expired." in missed.words


def phantom(reported: int | None, visible: int | None, figure: int | None, **about: Any) -> list[str]:
    """Findings on a compaction; ``about`` what is told of it, but for ``seen``: what else is known of the call before it."""
    seen: dict[str, Any] = {"tokens": {}, "call": {}} | about.pop("seen", {})
    tokens = TokenLedger(reported, visible, **{"agent": 533_000, "estimated": False, **seen["tokens"]})
    usage = Usage(reported, 0, 0, 0) if reported is not None else Usage(output=0)
    calls = (asked(1, **{"usage": usage, "tokens": tokens, **seen["call"]}), asked(2, Usage(9_000, 0, 0, 1)))
    found = judged([told(2, figure, **about)], around(*calls))
    assert [c.phantom for c in found] == [bool([w for w in found[0].words if "phantom" in w])]
    return [f.message for f in findings_of(calls, [], found) if f.code == "CTX401"]


def estimate(*, verified: bool) -> Estimate:
    return Estimate("Gardener 1", 533_000, {}, verified)


def test_a_compaction_on_phantom_bytes_is_told_with_its_three_figures():
    words = "estimated 533,000, visible 140,000, threshold 520,000"
    assert phantom(None, 140_000, 533_000) == [f"the compaction fired on phantom bytes: {words}"]
    assert phantom(None, 140_000, None) != []  # by the estimate before it
    assert phantom(None, 140_000, None, seen={"tokens": {"estimates": (estimate(verified=True),)}}) != []
    assert "reported 150,000, visible 140,000" in phantom(150_000, 140_000, 533_000)[0]


@pytest.mark.parametrize(
    ("tokens", "call"),
    [
        (
            {"visible": None, "rebuilt": 140_000},
            {},
        ),  # the log may not hold all of the request: tools, a part of the prompt
        ({"visible": 140_000, "parts": TokenParts(images=None)}, {}),  # an image of unknown size
        ({"visible": 140_000, "parts": TokenParts(images=390_000)}, {}),
        ({"visible": 140_000, "parts": TokenParts(documents=None)}, {}),  # pages nobody can count
        ({"visible": 140_000, "parts": TokenParts(documents=390_000)}, {}),
        ({"visible": 270_000, "estimated": True}, {}),  # counted with the tokenizer of another model
        ({"visible": 140_000}, {"usage": None}),  # a reply of unknown length
        ({"visible": 140_000}, {"usage": None, "requested_max": 390_000}),
    ],
)
def test_no_prompt_is_called_small_that_nobody_measured(tokens, call):
    visible = tokens["visible"]
    assert (
        phantom(
            None, visible, 533_000, seen={"tokens": {k: v for k, v in tokens.items() if k != "visible"}, "call": call}
        )
        == []
    )


def test_an_estimate_that_no_figure_was_met_with_accuses_nobody():
    seen = {"tokens": {"estimates": (estimate(verified=False),)}}
    assert phantom(150_000, 140_000, None, seen=seen) == []
    assert phantom(150_000, 140_000, 533_000, seen=seen) != []  # the agent's own word


@pytest.mark.parametrize(
    ("reported", "visible", "figure", "about"),
    [
        (525_000, 140_000, 533_000, {}),  # the bill says it was due
        (None, 140_000, 510_000, {}),  # the agent's own figure is below: it was asked for, or fired for another reason
        (None, 515_000, 533_000, {"unseen": 6_000}),  # what came since makes it due
        (None, 515_000, 533_000, {"unseen": 1_500}),  # it may: 6,000 characters can be as many tokens
        (None, 140_000, 533_000, {"unseen": None}),  # nobody knows what came since
        (None, 140_000, 533_000, {"automatic": False}),
        (None, None, 533_000, {}),
    ],
)
def test_no_compaction_is_called_phantom_that_may_have_been_due(reported, visible, figure, about):
    assert phantom(reported, visible, figure, **about) == []


def test_a_prompt_nobody_billed_is_as_large_as_the_models_other_calls_say():
    ledger = TokenLedger(visible=500_000, agent=533_000)
    counted = [asked(1, Usage(output=0), tokens=replace(ledger, calibrated=n)) for n in (530_000, 510_000)]
    due, not_due = (judged([told(2, 533_000)], around(before, asked(2)))[0] for before in counted)
    assert (due.phantom, not_due.phantom) == (False, True)


def test_a_reply_of_unknown_length_may_be_as_long_as_was_asked_for():
    tokens = TokenLedger(visible=500_000, agent=533_000, estimated=False)
    short, long = (asked(1, tokens=tokens, requested_max=most) for most in (10_000, 64_000))
    found = [judged([told(2, 533_000)], around(before, asked(2)))[0].phantom for before in (short, long)]
    assert found == [True, False]


def test_a_summary_nobody_recorded_is_not_taken_for_free():
    first, _, after, later = session()
    calls = (first, replace(after, n=2), replace(later, n=3))
    (unknown,) = judged([told(2)], around(*calls))
    assert (unknown.usage, unknown.cost, unknown.break_even) == (None, None, None)
    pruned = told(2)
    (free,) = judged([replace(pruned, marker=replace(pruned.marker, kind="prune"))], around(*calls))
    assert free.cost == pytest.approx(12_000 * 1.15)


def test_an_under_count_near_the_window_is_a_warning_unless_a_compaction_came():
    near = asked(1, Usage(530_000, 0, 0, 1), tokens=TokenLedger(530_000, agent=210_000))
    (found,) = findings_of([near], [])
    assert (found.code, found.severity, found.calls) == ("CTX402", "warning", (1,))
    assert "estimated 210,000, reported 530,000, threshold 520,000" in found.message
    far = asked(1, tokens=TokenLedger(300_000, agent=210_000))
    seen = asked(1, tokens=TokenLedger(530_000, agent=525_000))
    assert findings_of([far], []) == findings_of([seen], []) == []
    heeded = judged([told(2)], around(near, asked(2, Usage(9_000, 0, 0, 1))))
    assert findings_of([near], [], heeded) == []
    bare = replace(near, window=Window(560_000, "user"))
    assert "window 560,000" in findings_of([bare], [])[0].message


def test_a_refused_call_is_joined_to_the_estimate_before_it():
    before = asked(1, tokens=TokenLedger(500_000, agent=180_000))
    refused = asked(2, tokens=TokenLedger(visible=612_000), status=400)
    error = "prompt is too long: 612004 tokens > 600000 maximum"
    (found,) = findings_of([before, refused], [], refused={2: error})
    assert (found.code, found.severity, found.calls, found.evidence) == ("CTX403", "error", (1, 2), error)
    assert "the agent's last estimate, at call 1, was 180,000" in found.message
    assert "visible ≈612,000, window 600,000" in found.message
    own = replace(refused, tokens=TokenLedger(agent=190_000))
    assert "estimate of it was 190,000" in findings_of([before, own], [], refused={2: error})[0].message
    assert findings_of([before, refused], [], refused={2: "overloaded"}) == []


def test_an_input_that_was_refused_in_the_log_alone_is_told_too():
    point = Point("k", Place(0, "row 7"), (), None, turn=1)
    before = asked(1, tokens=TokenLedger(500_000, agent=180_000))
    dead = [("s", point, "HTTP 400: maximum context length is 600000 tokens")]
    found = [f for f in findings_of([before], dead) if f.code == "CTX403"]
    assert [(f.calls, f.evidence) for f in found] == [((1,), "«HTTP 400: maximum context length is 600000 tokens»")]


@pytest.mark.parametrize(
    ("error", "long"),
    [
        ("prompt is too long: 205148 tokens > 200000 maximum", True),
        (
            "This model's maximum context length is 128000 tokens. However, your messages resulted in 130001 tokens.",
            True,
        ),
        ("Your input exceeds the context window of this model.", True),
        ("The input token count (1048580) exceeds the maximum number of tokens allowed (1048576).", True),
        ("Input is too long for requested model.", True),
        ("the request exceeds the available context size, try increasing it", True),
        ("max_tokens: 9000 > 8192, which is the maximum allowed number of output tokens", False),
        ("Overloaded", False),
        ("Rate limit reached: too many requests", False),
    ],
)
def test_errors_for_length_are_known_by_their_words(error, long):
    assert is_too_long(error) is long
