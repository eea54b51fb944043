"""What the bundled samples say of the next request: no more than is so in each of them."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

import ctxscope
from ctxscope.model import NextRequest
from tests.conftest import SAMPLES
from tests.log_only import MOCK


def foretold(sample: str | Path, **options: str) -> Sequence[NextRequest]:
    inspection = ctxscope.open(SAMPLES / sample, **options)
    try:
        return inspection.next_requests()
    finally:
        inspection.close()


@pytest.mark.parametrize(
    ("sample", "verdict"),
    [
        ("claude_code/request_records", "break"),
        ("pi/clock_in_system", "break"),
        ("pi/tool_keys_reordered", "unknown"),  # whether a model sees the order of keys is not known of its host
    ],
)
def test_what_was_changed_on_its_way_to_the_model_is_not_put_down_to_the_restart(sample: str, verdict: str):
    (found,) = foretold(sample)
    assert (found.cache.verdict, found.cache.confidence) == (verdict, "ambiguous")
    assert f"call {found.previous_n} was served otherwise here than its log has it" in found.cache.why


@pytest.mark.parametrize(
    ("sample", "changes"),
    [
        ("sidecar_differs", ()),
        ("batch_marker_destroyed", ("one tool result loses its name",)),
        ("batch_compaction", ("2 tool results lose their name",)),
    ],
)
def test_hermes_loses_by_a_restart_what_the_last_request_had(sample: str, changes: tuple[str, ...]):
    (found,) = foretold(f"hermes/{sample}")
    assert found.changes == changes
    assert found.cache.verdict == ("break" if changes else "warm")


def test_a_session_that_takes_no_further_input_changes_nothing():
    rotated, going_on = foretold("hermes/rotation")
    assert (rotated.body, rotated.changes, rotated.unknown) == (None, (), ())
    assert going_on.changes


@pytest.mark.parametrize("sample", ["gemini/resume_doubles_results", "pydantic_ai/silent_4096"])
def test_a_log_alone_changes_neither_the_model_nor_the_api(sample: str, tmp_path: Path):
    shutil.copytree(SAMPLES / sample / "log", tmp_path / "log")
    (found,) = foretold(tmp_path / "log", provider=MOCK)
    assert found.cache.verdict == "unknown", "what was rebuilt of the last request is the beginning of the next"
    assert "model" not in found.cache.why
