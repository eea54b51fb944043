"""What counting a session costs, and what it says: each text is encoded once, and never again at the next opening."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import ctxscope
from ctxscope.analysis import vocabulary
from ctxscope.resources import cache_folder
from ctxscope.session.inspection import COUNTS_FILE, LEDGERS_FILE, Inspection
from tests.benchmarks.long_session import write_session
from tests.conftest import SAMPLES
from tests.counting import encoder

CALLS = 60
FIXTURES = (encoder,)
"""Used by their names."""


@pytest.fixture(scope="module")
def case(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("growing")
    write_session(folder, CALLS, 300)
    return folder


def opened(case: Path) -> Inspection:
    inspection = ctxscope.open(case)
    inspection.count()
    for call in inspection.snapshot.calls[-2:]:
        inspection.view(call.n)
    inspection.close()
    return inspection


def test_each_text_of_growing_calls_is_encoded_once_and_none_when_they_are_opened_again(case, encoder):
    first = opened(case)
    assert encoder.loaded == 1
    assert len(encoder.texts) < 6 * CALLS  # each call sends all before it: some 60 times as many were sent
    once = len(encoder.texts)
    second = opened(case)
    assert (encoder.loaded, len(encoder.texts)) == (1, once)
    assert [c.tokens for c in second.snapshot.calls] == [c.tokens for c in first.snapshot.calls]
    assert second.view(CALLS).segment_tokens == first.view(CALLS).segment_tokens


def test_what_is_counted_is_kept_before_anyone_closes_anything(case, encoder):
    ctxscope.open(case).count()
    once = len(encoder.texts)
    ctxscope.open(case).count()
    assert len(encoder.texts) == once


def test_a_call_more_costs_its_own_texts_after_another_launch(encoder, tmp_path):
    write_session(tmp_path, CALLS, 300)
    shutil.rmtree(tmp_path / "home")  # the log would tell of the last call before it is recorded
    index = tmp_path / "wire" / "index.jsonl"
    lines = index.read_bytes().splitlines(keepends=True)
    index.write_bytes(b"".join(lines[:-1]))
    opened(tmp_path)
    encoder.texts.clear()
    index.write_bytes(b"".join(lines))
    opened(tmp_path)
    assert 0 < len(encoder.texts) < 8


def test_no_text_is_kept(case, encoder):
    opened(case)
    kept = b"".join(path.read_bytes() for path in cache_folder().iterdir())
    assert sorted(path.name for path in cache_folder().iterdir()) == [COUNTS_FILE, LEDGERS_FILE]
    assert encoder.texts
    words = {text[:40] for text in encoder.texts if len(text) >= 20}
    assert not [word for word in words if word.encode() in kept]


def test_other_rules_and_another_vocabulary_read_nothing_of_what_was_kept(case, encoder, monkeypatch):
    opened(case)
    once = len(encoder.texts)
    monkeypatch.setattr("ctxscope.analysis.kept_counts.rules", lambda: b"other")
    opened(case)
    assert len(encoder.texts) == 2 * once
    monkeypatch.setattr("ctxscope.analysis.encoders.vocabulary_of", lambda _: vocabulary.CL100K)
    opened(case)
    assert len(encoder.texts) == 3 * once


def test_counts_by_bytes_are_not_kept(case, monkeypatch):
    monkeypatch.setattr(vocabulary, "encoding", lambda _: None)
    opened(case)
    assert not cache_folder().exists()


@pytest.mark.parametrize("damage", [b"", b"not a database " * 999, None])
def test_a_cache_that_cannot_be_used_changes_nothing(case, encoder, damage):
    first = opened(case)
    path = cache_folder() / COUNTS_FILE
    if damage is None:
        shutil.rmtree(path.parent)
        path.parent.write_bytes(b"in its place")
    else:
        path.write_bytes(damage)
    once = len(encoder.texts)
    second = opened(case)
    assert len(encoder.texts) == 2 * once
    assert [c.tokens for c in second.snapshot.calls] == [c.tokens for c in first.snapshot.calls]


# --- calibration -----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def sample() -> Inspection:
    inspection = ctxscope.open(SAMPLES / "pi" / "clean_append")
    inspection.count()
    return inspection


def test_the_segments_of_a_call_add_up_to_what_its_provider_reported(sample):
    for call in sample.snapshot.calls:
        view = sample.view(call.n)
        assert sum(view.calibrated_tokens.values()) == call.tokens.reported
        assert view.calibrated_tokens.keys() == view.segment_tokens.keys()
        assert sum(view.segment_tokens.values()) == call.tokens.visible


def test_a_session_has_one_factor_for_a_model_and_keeps_the_count_itself(sample):
    ledgers = [call.tokens for call in sample.snapshot.calls]
    (factor,) = {ledger.factor for ledger in ledgers}
    assert factor is not None
    assert [ledger.calibrated for ledger in ledgers] == [round(ledger.visible * factor) for ledger in ledgers]
    ratios = sorted(ledger.reported / ledger.visible for ledger in ledgers)
    assert ratios[0] <= factor <= ratios[-1]
