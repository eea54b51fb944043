"""Ledgers that outlast a launch: never another's, never an older one, and nothing but a saving."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import ctxscope
from ctxscope.model import CHARGED, Estimate, SidecarSum, TokenLedger, TokenParts
from ctxscope.resources import cache_folder
from ctxscope.session.counts import Counts
from ctxscope.session.deferred import DeferredEntry
from ctxscope.session.inspection import Inspection
from ctxscope.session.kept_ledgers import packed, unpacked
from ctxscope.sources.jsonl import LineReader
from tests.conftest import SAMPLES

numbers = st.one_of(st.none(), st.integers(0, 2**63))
parts = st.builds(TokenParts, *([st.integers(0, 10**7)] * 8), images=numbers, documents=numbers, overhead=numbers)
estimates = st.builds(
    lambda name, counts, verified: Estimate(name, sum(counts), dict(zip(CHARGED, counts, strict=True)), verified),
    st.text(st.characters(codec="utf-8")),
    st.lists(st.integers(-(10**6), 10**6), min_size=len(CHARGED), max_size=len(CHARGED)),
    st.booleans(),
)
ledgers = st.builds(
    TokenLedger,
    *([numbers] * 5),
    parts=st.one_of(st.none(), parts),
    estimated=st.booleans(),
    estimates=st.lists(estimates, max_size=3).map(tuple),
    gap=st.lists(st.text(st.characters(codec="utf-8")), max_size=3).map(tuple),
    factor=st.one_of(st.none(), st.floats(0.3, 3)),
    calibrated=numbers,
    sidecars=st.one_of(st.none(), st.builds(SidecarSum, *([st.integers(0, 10**7)] * 7))),
    envelope_bytes=numbers,
    overhead_for=st.text(st.characters(codec="utf-8")),
    overhead_from=st.text(st.characters(codec="utf-8")),
)


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Numbers of the calls that were really counted."""
    found: list[int] = []
    real = Counts._count

    def counting(self: Counts, slot: Any, sides: Any) -> TokenLedger:
        found.append(slot.n)
        return real(self, slot, sides)

    monkeypatch.setattr(Counts, "_count", counting)
    return found


def ledgers_of(inspection: Inspection) -> list[TokenLedger]:
    inspection.poll()
    inspection.count()
    return [call.tokens for call in inspection.snapshot.calls]


def opened(path: Path) -> list[TokenLedger]:
    inspection = ctxscope.open(path)
    try:
        return ledgers_of(inspection)
    finally:
        inspection.close()


def uncached(path: Path) -> list[TokenLedger]:
    """What a launch says that finds nothing of an earlier one."""
    shutil.rmtree(cache_folder(), ignore_errors=True)
    return opened(path)


@pytest.mark.parametrize(
    "name",
    ["hermes/compacted_on_phantom_bytes", "codex/local_compaction", "dsh/retry_and_subagent", "pi/two_recordings"],
)
@pytest.mark.parametrize("alone", [False, True], ids=["recorded", "log alone"])
def test_a_session_opened_again_says_the_same_and_counts_nothing(name, alone, counted, tmp_path):
    case = tmp_path / "case"
    kept_out = shutil.ignore_patterns("wire*", "*.ctxrec") if alone else None
    shutil.copytree(SAMPLES / name, case, ignore=kept_out)
    first = opened(case)
    assert counted
    assert len(first) >= len(counted)
    counted.clear()
    assert opened(case) == first
    assert counted == []


def test_a_call_that_differs_from_its_log_is_counted_each_time(counted):
    case = SAMPLES / "omp" / "pruned_in_place"
    first = opened(case)
    counted.clear()
    assert opened(case) == first
    inspection = ctxscope.open(case)
    differing = [c.n for c in inspection.snapshot.calls if c.rebuilt.first_difference is not None]
    inspection.close()
    assert differing
    assert sorted(counted) == differing


@pytest.fixture
def log(tmp_path) -> Path:
    """A log alone, whose bytes a test may change."""
    shutil.copytree(SAMPLES / "pi" / "clean_append" / "log", tmp_path / "log")
    (found,) = (tmp_path / "log").rglob("*.jsonl")
    return found


def rewritten(log: Path, lines: Sequence[bytes]) -> None:
    log.write_bytes(b"".join(lines))


def test_no_count_outlives_what_its_log_said(log):
    lines = log.read_bytes().splitlines(keepends=True)
    at = next(i for i, line in enumerate(lines) if json.loads(line).get("message", {}).get("role") == "user")
    before = opened(log)
    rewritten(
        log,
        [*lines[:at], lines[at].replace(b'"text":"', b'"text":"In other words, and more of them. '), *lines[at + 1 :]],
    )
    after = opened(log)
    assert after[0].rebuilt > before[0].rebuilt
    assert after[0].agent > before[0].agent
    assert after == uncached(log)


def test_a_log_that_grew_says_what_it_says_to_one_who_never_saw_it(log):
    lines = log.read_bytes().splitlines(keepends=True)
    rewritten(log, lines[: len(lines) // 2])
    half = opened(log)
    rewritten(log, lines)
    whole = opened(log)
    assert len(whole) > len(half)
    assert whole == uncached(log)


def test_what_was_followed_is_not_counted_again(log, counted):
    lines = log.read_bytes().splitlines(keepends=True)
    rewritten(log, lines[: len(lines) // 2])
    inspection = ctxscope.open(log)
    for end in range(len(lines) // 2, len(lines) + 1):
        rewritten(log, lines[:end])
        followed = ledgers_of(inspection)
    inspection.close()
    counted.clear()
    assert opened(log) == followed
    assert counted == []


@pytest.fixture
def long_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every log is taken for a long one."""
    monkeypatch.setattr(LineReader, "holds_from", 0)
    monkeypatch.setattr("ctxscope.session.fold.FROM_BYTES", 0)
    monkeypatch.setattr("ctxscope.session.deferred.AT_HAND_BYTES", 1)


@pytest.mark.usefixtures("long_lines")
def test_a_long_log_is_not_read_again_to_tell_that_it_is_the_same(monkeypatch):
    (source,) = (SAMPLES / "claude_code" / "request_records" / "log").rglob("*.jsonl")
    read = Counter[int]()
    real = LineReader.again
    monkeypatch.setattr(LineReader, "again", lambda self, n: (read.update([n]), real(self, n))[1])
    inspection = ctxscope.open(source)
    before = read.total()
    for slot in inspection.assembly.slots:
        inspection.assembly._counts.kept.name(slot, as_served=True)
    inspection.close()
    assert any(isinstance(entry, DeferredEntry) for entry in inspection.assembly.sessions[0].log.versions)
    assert read.total() == before


@pytest.mark.usefixtures("long_lines")
def test_another_word_in_a_long_line_gives_its_calls_other_names(tmp_path):
    case = tmp_path / "log"
    shutil.copytree(SAMPLES / "claude_code" / "request_records" / "log", case)

    def names() -> list[bytes | None]:
        inspection = ctxscope.open(case)
        kept = inspection.assembly._counts.kept
        found = [kept.name(slot, as_served=True) for slot in inspection.assembly.slots]
        inspection.close()
        return found

    before = names()
    assert names() == before
    (log,) = case.rglob("*.jsonl")
    log.write_bytes(log.read_bytes().replace(b'"text":"', b'"text":"And ', 1))
    assert not set(names()) & set(before)


def test_other_code_reads_nothing_of_what_was_kept(log, counted, monkeypatch):
    first = opened(log)
    monkeypatch.setattr("ctxscope.analysis.kept_counts.rules", lambda: b"other")
    counted.clear()
    assert opened(log) == first
    assert len(counted) == len(first)
    monkeypatch.setattr("ctxscope.analysis.kept_counts.rules", lambda: None)  # code that cannot be read
    counted.clear()
    assert opened(log) == first
    assert len(counted) == len(first)


# --- as bytes --------------------------------------------------------------------------------------------------------


@given(ledgers)
def test_a_ledger_comes_back_as_it_was(ledger):
    value = packed(ledger)
    assert value is not None
    assert unpacked(value) == ledger


shapes = st.recursive(st.none() | st.integers() | st.text(), st.lists)
others = shapes.filter(lambda shape: not isinstance(shape, list) or len(shape) != len(fields(TokenLedger)))


@given(st.binary(max_size=60) | others.map(lambda shape: json.dumps(shape).encode()))
def test_other_bytes_are_no_ledger(value):
    assert unpacked(value) is None


def test_a_number_that_no_value_holds_is_not_kept():
    assert packed(TokenLedger(reported=2**64)) is None
