"""Windows, thresholds and compactions of recorded sessions, whole; and the window the user names."""

from __future__ import annotations

import argparse
import json
import shutil
from functools import cache

import pytest

import ctxscope
from ctxscope import report
from ctxscope.cli.target import add_choices
from ctxscope.model import NO_WINDOW, Snapshot, Window
from ctxscope.report import Options
from ctxscope.tui.ledger_rows import filling
from tests.conftest import CAPTURES, needs_captures


@cache
def opened(case: str, window: int | None = None, provider: str | None = None) -> tuple[Snapshot, str, str]:
    """A recorded case counted: its snapshot, and both its reports."""
    inspection = ctxscope.open(CAPTURES / case, window=window, provider=provider)
    try:
        inspection.count()
        snapshot, view = inspection.snapshot, inspection.view
        texts = [report.load(fmt).render(snapshot, view, Options(content="none")) for fmt in ("md", "json")]
        return snapshot, texts[0], texts[1]
    finally:
        inspection.close()


@needs_captures
@pytest.mark.parametrize(
    ("case", "window"),
    [
        ("hermes/c_compact_inplace_N", Window(100_000, "config", 75_000, "rule")),
        ("codex/cx98_compact", Window(258_400, "log", 50_000, "config")),
        ("kimi/kimi_tool3", Window(200_000, "log", 150_000, "rule")),
        ("pi/pi073_d_compact_anth", NO_WINDOW),
    ],
)
def test_a_call_has_the_window_its_agent_says(case, window):
    calls = [c for c in opened(case)[0].calls if c.kind == "main"]
    assert {c.window for c in calls} == {window}
    share = [c.occupancy for c in calls if c.tokens.reported is not None]
    assert share == [window.size and c.tokens.reported / window.size for c in calls if c.tokens.reported is not None]


@needs_captures
@pytest.mark.parametrize(
    ("case", "window"),
    [
        ("pi/pi073_d_compact_anth", Window(50_000, "user", 50_000 - 16_384, "rule")),
        ("omp/omp_d_snapframes", Window(50_000, "user", 50_000 - 16_384, "rule")),
        ("hermes/c_compact_inplace_N", Window(50_000, "user", 42_500, "rule")),
        ("codex/cx98_compact", Window(50_000, "user", 50_000, "config")),
    ],
)
def test_the_user_names_a_window_and_the_agents_rule_gives_its_threshold(case, window):
    snapshot = opened(case, 50_000)[0]
    assert {c.window for c in snapshot.calls if c.kind == "main"} == {window}


@needs_captures
@pytest.mark.parametrize(
    ("case", "threshold", "by"),
    [("pi/pi073_d_compact_anth", None, None), ("omp/omp_d_snapframes", 16_384 - 2457, "rule")],
)
def test_a_window_smaller_than_what_the_agent_keeps_free_has_a_threshold_only_if_its_rule_knows_one(
    case, threshold, by
):
    calls = opened(case, 16_384)[0].calls
    assert {c.window for c in calls if c.kind == "main"} == {Window(16_384, "user", threshold, by)}


@needs_captures
def test_a_threshold_above_the_window_is_told_as_such():
    snapshot, markdown, _ = opened("codex/cx98_compact", 40_000)
    assert "window 40,000 tokens (by you), compacts at 50,000 (by its settings, above the window)" in markdown
    call = next(c for c in snapshot.calls if c.kind == "main")
    assert "threshold 50,000 (by the settings), above the window" in filling(call)
    assert "above the window" not in opened("codex/cx98_compact")[1]


@needs_captures
def test_both_reports_tell_what_each_compaction_did():
    snapshot, markdown, document = opened("hermes/c_compact_inplace_N", provider="anthropic")
    told = json.loads(document)
    first = told["compactions"][0]
    assert (first["call"], first["before_call"], first["requests"]) == (13, 10, [12])
    assert first["messages"]["summarised"] == ["row 2", "row 3"]
    assert first["tokens"]["agent"]["after"] == first["tokens"]["reproduced"]["after"] == 12_753
    assert first["usage"]["input"] + first["usage"]["cache_read"] + (first["usage"]["cache_write"] or 0) == 3_385
    assert (first["seconds"], first["seconds_by"]) == (2.42, "agent")

    after = snapshot.calls[12]
    assert (
        0 < first["rebilled"] < after.usage.input + (after.usage.cache_write or 0)
    )  # the summary and the input are new
    assert (first["rebilled_estimated"], first["rebilled_at_most"]) == (True, False)
    assert first["break_even"] == 2
    assert told["calls"][12]["window"]["occupancy"] == round(12_715 / 100_000, 4)
    assert "window 100,000 tokens (by its settings), compacts at 75,000 (by the agent's rule)" in markdown
    assert "| compaction | 13 | 19 | 2 | 90,000 | 12,715 | 3,385 + 47 | 2.4 |" in markdown
    assert "2 of 2 broke the cache, in 15 calls" in markdown
    assert not [f for f in snapshot.findings if f.code.startswith("CTX4")]


@needs_captures
def test_pi_tells_the_entries_it_kept():
    found = opened("pi/pi073_d_compact_anth")[0].compactions
    assert [(len(c.told.messages), c.told.head, c.told.cut) for c in found] == [(11, 0, 0), (16, 0, 15)]
    assert [c.told.reckoned_before for c in found] == [c.told.marker.before_tokens for c in found]
    assert [(c.told.marker.after_tokens, c.told.reckoned_after) for c in found] == [(None, 206), (None, 96)]
    assert "Tokens after, by the agent's estimator reproduced: 206." in found[0].words


@needs_captures
@pytest.mark.parametrize(
    ("case", "told"),
    [
        ("omp/omp_d_snapframes", ["The break at call 4 has another cause: volatile_content."]),
        ("claude_code/cc332_compact", ["The break at call 6 has another cause: volatile_content."]),
    ],
)
def test_a_break_with_another_cause_is_not_put_down_to_the_compaction(case, told):
    snapshot, markdown, _ = opened(case)
    first = snapshot.compactions[0]
    assert [words for words in first.words if "another cause" in words] == told
    assert (first.broke, first.rebilled) == (None, None)
    assert not [words for words in first.words if "billed again" in words]
    assert "of 1 it is not known whether they broke the cache" in markdown


@needs_captures
def test_a_log_alone_does_not_tell_what_was_billed_again(tmp_path):
    shutil.copytree(CAPTURES / "kimi/kimi_tool3/log", tmp_path / "log")
    inspection = ctxscope.open(tmp_path / "log")
    try:
        inspection.count()
        snapshot = inspection.snapshot
    finally:
        inspection.close()
    assert [c.rebilled for c in snapshot.compactions] == [None]
    assert [r.rebilled for r in snapshot.break_rates] == [None]


@needs_captures
def test_claude_code_tells_who_asked_and_how_long_it_took():
    found = opened("claude_code/cc332_compact")[0].compactions
    assert [(c.told.automatic, c.seconds, c.seconds_by) for c in found] == [
        (True, 0.707, "agent"),
        (False, 0.453, "agent"),
    ]
    assert {"Tokens before, by the agent: 985,015.", "Tokens after, by the agent: 2,658."} <= set(found[0].words)


def test_a_window_is_a_number_of_tokens(capsys):
    parser = argparse.ArgumentParser()
    add_choices(parser)
    assert [parser.parse_args(["--window", w]).window for w in ("200000", "200,000", "1_000_000")] == [
        200_000,
        200_000,
        1_000_000,
    ]
    for wrong in ("0", "-5", "many", "2e5", "9" * 13):
        with pytest.raises(SystemExit):
            parser.parse_args([f"--window={wrong}"])
        assert "expected a number of tokens" in capsys.readouterr().err
