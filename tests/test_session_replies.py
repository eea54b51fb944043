"""Replies whose answer is not in the log yet, or is another attempt's."""

from __future__ import annotations

import shutil
from pathlib import Path

import ctxscope
from tests.conftest import SAMPLES


def last_reply(case: Path) -> tuple[str, list[str]]:
    inspection = ctxscope.open(case)
    try:
        snapshot = inspection.snapshot
        return snapshot.calls[-1].reply.state, [f.code for f in snapshot.findings]
    finally:
        inspection.close()


def test_an_answer_whose_line_is_half_written_is_not_said_to_be_lost(tmp_path: Path):
    case = tmp_path / "case"
    shutil.copytree(SAMPLES / "pi" / "clean_append", case)
    (log,) = (p for p in case.rglob("*.jsonl") if p.name != "index.jsonl")
    whole = log.read_bytes()
    log.write_bytes(whole[:-2])
    assert last_reply(case) == ("not_logged", [])
    log.write_bytes(whole)
    assert last_reply(case) == ("equal", [])


def test_an_answer_without_a_line_of_its_own_is_missing(tmp_path: Path):
    case = tmp_path / "case"
    shutil.copytree(SAMPLES / "pi" / "clean_append", case)
    (log,) = (p for p in case.rglob("*.jsonl") if p.name != "index.jsonl")
    log.write_bytes(b"".join(log.read_bytes().splitlines(keepends=True)[:-1]))
    assert last_reply(case) == ("missing", ["CTX102"])
