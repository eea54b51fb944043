"""Sessions of which only some calls were recorded: what a missing call did is not put down to the next one."""

from __future__ import annotations

import shutil
from pathlib import Path

import ctxscope
from ctxscope.model import Call
from tests.conftest import SAMPLES


def calls_without(sample: str, folder: Path, *lines: int) -> list[Call]:
    """The calls of a sample whose recording lacks some lines of its index."""
    case = folder / "case"
    shutil.copytree(SAMPLES / sample, case)
    index = case / "wire" / "index.jsonl"
    kept = [line for n, line in enumerate(index.read_text(encoding="utf-8").splitlines(), 1) if n not in lines]
    index.write_text("\n".join(kept) + "\n", encoding="utf-8")
    inspection = ctxscope.open(case)
    try:
        inspection.count()
        return list(inspection.snapshot.calls)
    finally:
        inspection.close()


def test_a_break_by_an_unrecorded_call_is_not_found_again_at_the_next_one(tmp_path: Path):
    calls = calls_without("omp/shaken_then_archived", tmp_path, 3)
    missing, following = calls[2:]
    assert missing.exchange is None
    assert missing.cache.verdict == "break"
    assert following.exchange is not None
    assert (following.parent, following.cache.verdict, following.cache.confidence) == (3, "unknown", "ambiguous")
    assert "call 3, which this one goes on from, was not recorded" in following.cache.why
    assert following.cache.lost_tokens is None


def test_what_the_first_recorded_call_read_was_not_written_by_another_session(tmp_path: Path):
    calls = calls_without("pi/clean_append", tmp_path, 1)
    assert (calls[0].exchange, calls[1].parent) == (None, 1)
    assert (calls[1].cache.verdict, calls[1].cache.confidence) == ("unknown", "ambiguous")
    assert calls[2].cache.verdict == "warm", "it goes on from a recorded one"
