"""The Claude Code samples: the same bytes each time, and what is special of the agent in them."""

from __future__ import annotations

from pathlib import Path

import pytest

import ctxscope
from tests.conftest import SAMPLES
from tests.samples import claude_code_cases

FOLDER = SAMPLES / "claude_code"


@pytest.mark.parametrize("make", claude_code_cases.CASES, ids=lambda m: m.__name__)
def test_a_sample_is_what_its_script_writes(make: claude_code_cases.Make, tmp_path: Path) -> None:
    make(tmp_path)
    folder = FOLDER / make.__name__
    written = {p.relative_to(tmp_path): p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()}
    kept = {p.relative_to(folder): p.read_bytes() for p in folder.rglob("*") if p.is_file()}
    assert written == {name: data for name, data in kept.items() if name.name != "expected.json"}


def test_what_the_hook_put_back_is_logged_and_from_outside() -> None:
    inspection = ctxscope.open(FOLDER / "hooks_around_compaction")
    pieces = inspection.view(6).pieces
    markers = inspection.snapshot.markers
    inspection.close()
    assert [(p.provenance, p.data) for p in pieces if p.external] == [("logged", claude_code_cases.HOOKED.encode())]
    assert "SessionStart:compact, Stop" in next(m.where for m in markers if m.kind == "compaction")


def test_a_digest_tells_that_the_wire_and_not_the_log_was_changed() -> None:
    inspection = ctxscope.open(FOLDER / "request_records")
    difference = inspection.snapshot.calls[2].rebuilt.first_difference
    inspection.close()
    assert difference is not None
    assert "its digest holds" in difference.cause


def test_a_digest_tells_that_the_log_was_changed(tmp_path: Path) -> None:
    claude_code_cases.request_records(tmp_path)
    (path,) = (tmp_path / "log").rglob("*.jsonl")
    path.write_bytes(path.read_bytes().replace(b"two teal", b"two tern"))
    inspection = ctxscope.open(tmp_path)
    difference = inspection.snapshot.calls[1].rebuilt.first_difference
    inspection.close()
    assert difference is not None
    assert "was changed since" in difference.cause
