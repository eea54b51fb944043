"""The omp samples: the same bytes each time, and judged as their author expects where other sessions cannot disturb."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import ctxscope
from tests.conftest import SAMPLES
from tests.samples import omp_cases


@pytest.mark.parametrize("make", omp_cases.CASES, ids=lambda m: m.__name__)
def test_a_sample_is_what_its_script_writes(make: omp_cases.Make, tmp_path: Path) -> None:
    make(tmp_path)
    folder = SAMPLES / "omp" / make.__name__
    written = {p.relative_to(tmp_path): p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()}
    kept = {p.relative_to(folder): p.read_bytes() for p in folder.rglob("*") if p.is_file()}
    assert written == {name: data for name, data in kept.items() if name.name != "expected.json"}


@pytest.mark.parametrize("make", omp_cases.CASES, ids=lambda m: m.__name__)
def test_a_sample_is_judged_as_expected(make: omp_cases.Make) -> None:
    folder = SAMPLES / "omp" / make.__name__
    expected = json.loads((folder / "expected.json").read_text(encoding="utf-8"))
    inspection = ctxscope.open(folder)
    snapshot = inspection.snapshot
    pieces = [p for c in snapshot.calls for p in inspection.view(c.n).pieces]
    inspection.close()
    assert [c.rebuilt.state for c in snapshot.calls] == [c["rebuilt"] for c in expected["calls"]]
    assert [(m.kind, m.call) for m in snapshot.markers] == [(m["kind"], m["call"]) for m in expected["markers"]]
    assert any(p.external for p in pieces) is (make.__name__ == "shaken_then_archived")
