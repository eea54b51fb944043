"""Why counts part: the reasons add up to the gap, and each is named for what it is."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from ctxscope.analysis.gaps import contributors, gap_words
from ctxscope.analysis.token_sums import VISIBLE
from ctxscope.model import CHARGED, Estimate, TokenLedger, TokenParts

COUNTS = st.integers(0, 10**6)
HEADED = ("head", "system", "tools")


def estimate(**charged: int) -> Estimate:
    every = {name: charged.get(name, 0) for name in CHARGED}
    return Estimate("Agent 1", sum(every.values()), every)


@st.composite
def estimates(draw):
    charged = {name: draw(COUNTS) for name in CHARGED if name != "reported"}
    for name in draw(st.sampled_from([HEADED[:1], HEADED[1:]])):  # a head is noted in one sum, or piece by piece
        charged[name] = 0
    return estimate(**charged)


@given(estimates(), st.builds(TokenParts, **dict.fromkeys((*VISIBLE, "envelope", "images"), COUNTS)))
def test_the_reasons_add_up_to_the_gap(made, parts):
    seen = sum(getattr(parts, name) for name in VISIBLE) + parts.images
    assert sum(c.tokens for c in contributors(made, parts)) == made.tokens - seen


def ledger(made: Estimate, *, reported: int | None = None, **parts: int) -> TokenLedger:
    told = TokenParts(**dict.fromkeys((*VISIBLE, "envelope", "images"), 0) | parts)
    visible = sum(getattr(told, name) for name in VISIBLE)
    return TokenLedger(reported, visible, None, None, made.tokens, told, estimated=False, estimates=(made,))


def test_a_sidecar_counted_beside_its_content_and_an_envelope_are_named_with_their_share():
    found = gap_words(ledger(estimate(text=400, sidecar=300, thinking=28, envelope=72), sidecar=300, thinking=28))
    assert found[:3] == (
        "Agent 1 estimates 800, 2.44 × visible (328): it over-counts by 472",
        "sidecars counted beside the content they are sent instead of: +300",
        "text at 400 against 300 visible: +100",
    )
    assert found[3] == "opaque reasoning envelopes charged as text, 72 % of the reasoning it charges: +72"


def test_a_sidecar_that_takes_the_contents_place_is_no_reason():
    found = gap_words(ledger(estimate(text=100, sidecar=300), text=100, sidecar=300))
    assert found == ("Agent 1 estimates 400, 1.00 × visible (400): the same",)


def test_an_under_count_is_told_apart_and_beside_what_was_billed():
    found = gap_words(ledger(estimate(tool_results=900), reported=2000, tool_results=1600, envelope=50))
    assert found[:2] == (
        "Agent 1 estimates 900, 0.45 × reported (2,000): it under-counts by 1,100",
        "tool results at 900 against 1,600 visible: -700",
    )
    between = (
        "between them 400: envelopes 50 if taken for text, 400 that the provider adds, counts otherwise, or was given"
    )
    assert found[2:] == (f"visible 1,600 is 0.80 × reported; {between} beyond this text",)


def test_what_is_small_is_not_named_and_what_is_unknown_not_compared():
    assert gap_words(ledger(estimate(text=1000, bookkeeping=19), text=1000)) == (
        "Agent 1 estimates 1,019, 1.02 × visible (1,000): it over-counts by 19",
    )
    assert gap_words(TokenLedger(reported=5)) == ()
    assert gap_words(TokenLedger(None, None, None, None, 7, None, estimates=(estimate(text=7),))) == ()


def test_an_estimate_is_compared_where_the_request_cannot_be_taken_apart_and_with_what_is_rebuilt():
    bare = TokenLedger(1000, None, None, None, 900, None, estimates=(estimate(text=900),))
    assert gap_words(bare) == ("Agent 1 estimates 900, 0.90 × reported (1,000): it under-counts by 100",)
    parts = ledger(estimate(text=900), text=500).parts
    alone = TokenLedger(None, None, 500, None, 900, parts, estimates=(estimate(text=900),))
    assert gap_words(alone)[0] == "Agent 1 estimates 900, 1.80 × rebuilt (≈500): it over-counts by ≈400"


def test_a_base_taken_from_an_earlier_answer_is_not_split_into_kinds():
    assert gap_words(ledger(estimate(reported=5000, text=10), reported=5100, text=1100, tools=4000)) == (
        "Agent 1 estimates 5,010, 0.98 × reported (5,100): it under-counts by 90",
        "of it 5,000 are the usage of an earlier answer, taken over; the rest is estimated of what came since",
    )


def test_what_is_compared_with_the_rebuilt_request_names_no_served_one():
    charged = estimate(text=80, sidecar=300, head=900, tool_calls=5)
    parts = ledger(charged, system=100, tools=200, text=500, tool_results=70).parts
    told = TokenLedger(1500, None, 870, None, charged.tokens, parts, estimated=False, estimates=(charged,))
    found = gap_words(told)
    assert "the head (system and tools) at 900 against 300 rebuilt: +600" in found
    assert "tool results at 0 against 70 rebuilt: -70" in found
    assert found[-1].startswith("rebuilt 870 is 0.58 × reported; between them 630: ")
    assert "visible" not in " ".join(found)


def test_documents_and_what_the_provider_says_it_adds_explain_a_bill_that_is_higher_than_the_text():
    told = ledger(estimate(), reported=4000, text=1000, documents=1120, overhead=496, images=80)
    told = replace(told, estimates=(), overhead_for="the tools", overhead_from="a page, 2026-08-22")
    assert gap_words(told) == (
        (
            "visible 1,000 is 0.25 × reported; between them 3,000: images 80, documents ≈1,120, ≈496 that the provider "
            "says it adds for the tools, ≈1,304 that the provider adds beside that, counts otherwise, or was given beyond this "
            "text"
        ),
    )
    (unknown,) = gap_words(replace(told, parts=replace(told.parts, documents=None, images=None, overhead=None)))
    assert "between them 3,000: 3,000 that are images and documents of unknown size, or the provider adds, " in unknown
    (more,) = gap_words(replace(told, reported=1400))
    assert more.endswith("≈496 that the provider says it adds for the tools (more than that)")  # nothing is left
    assert "images 80, documents ≈1,120 (more than that)" in more


def test_without_a_served_side_the_rebuilt_one_is_what_is_named():
    made = estimate(text=80)
    told = replace(ledger(made, text=100), visible=None, rebuilt=100, estimated=True)
    assert gap_words(told)[0] == "Agent 1 estimates 80, 0.80 × rebuilt (≈100): it under-counts by ≈20"


def test_what_rests_on_another_vocabulary_is_marked_and_what_the_estimator_alone_says_is_not():
    made = estimate(tool_results=900, bookkeeping=200)
    found = gap_words(replace(ledger(made, reported=2000, tool_results=1600), estimated=True))
    assert found[1:3] == (
        "tool results at 900 against ≈1,600 visible: ≈-700",
        "keys, roles and ids of the agent's own messages: +200",
    )
