"""Visible counts scaled to what providers report: by model whatever the order of calls, by segment to the last token."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxscope.analysis.calibration import calibrated, factors, name_of, shares
from ctxscope.model import Call, ExchangeRef, TokenLedger, TokenParts
from tests.report_samples import known_call

counts = st.dictionaries(st.text("abc", max_size=3), st.integers(0, 5000), min_size=1, max_size=20)


def counted(
    reported: int | None, visible: int | None, images: int | None = 0, documents: int | None = 0, **more
) -> Call:
    parts = TokenParts(text=visible or 0, images=images, documents=documents)
    tokens = TokenLedger(reported, visible, parts=parts)
    return replace(known_call(1), tokens=tokens, **more)


@given(st.lists(st.tuples(st.integers(1, 9000), st.integers(1, 9000)), max_size=9), st.randoms())
def test_a_models_factor_is_the_same_in_any_order(pairs, rng):
    calls = [counted(*pair) for pair in pairs]
    found = factors(calls)
    rng.shuffle(calls)
    assert factors(calls) == found
    assert all(1 / 3 <= factor <= 3 for factor in found.values())


def test_a_factor_is_the_median_of_a_model_in_a_session_and_images_are_no_text():
    mine = [counted(120, 100), counted(1190, 1000, images=40), counted(130, 100), counted(5000, 100)]
    others = [counted(200, 100, model="pear-2"), counted(250, 100, session="s-2"), counted(90, 100, provider="grove")]
    found = factors([*mine, *others])
    assert found[name_of(mine[0])] == 1.2
    assert [found[name_of(call)] for call in others] == [2.0, 2.5, 0.9]


@pytest.mark.parametrize(
    "call",
    [
        counted(None, 100),
        counted(100, None),
        counted(0, 100),
        counted(100, 0),
        counted(100, 100, images=None),
        counted(100, 100, documents=None),
        counted(200, 100, documents=100),  # at most so many
        counted(301, 100),
        counted(33, 100),
        counted(100, 100, exchange=None),
        counted(100, 100, exchange=ExchangeRef(0, 1, "normalised")),
    ],
)
def test_what_is_not_known_in_full_or_cannot_be_a_tokenizers_doing_tells_no_factor(call):
    assert factors([call]) == {}


def test_the_count_itself_stays_and_no_factor_takes_the_scaled_one_back():
    ledger = TokenLedger(120, 100)
    scaled = calibrated(ledger, 1.2)
    assert (scaled.visible, scaled.factor, scaled.calibrated) == (100, 1.2, 120)
    assert calibrated(scaled, 1.2) is scaled
    assert calibrated(scaled, None) == ledger
    assert calibrated(TokenLedger(120), 1.2) == TokenLedger(120)


@given(counts, st.lists(st.integers(0, 400), max_size=3), st.floats(0.34, 2.99))
def test_segments_add_up_to_what_was_reported_and_none_is_scaled_by_more_than_a_token_otherwise(texts, sizes, factor):
    images = dict(zip(texts, sizes, strict=False))
    visible = sum(texts.values())
    reported = round(visible * factor) + sum(images.values())
    found = shares(texts, images, reported)
    text = reported - sum(images.values())
    if not visible or not 1 / 3 <= text / visible <= 3:
        assert found == {}
        return
    assert sum(found.values()) == reported
    assert list(found) == list(texts)
    for path, n in texts.items():
        assert abs(found[path] - images.get(path, 0) - n * text / visible) < 1.001


def test_an_image_that_is_unknown_leaves_every_segment_unscaled():
    assert shares({"a": 100, "b": 0}, {"b": None}, 130) == {}
    assert shares({"a": 100, "b": 0}, {"b": 20}, 130) == {"a": 110, "b": 20}
    assert shares({"a": 100}, {}, None) == {}
