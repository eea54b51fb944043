"""Judging and counting cost what is new in a call, however long its conversation has become."""

from __future__ import annotations

from pathlib import Path

import ctxscope
from ctxscope.wire import cutting
from tests.benchmarks import judging
from tests.benchmarks.long_session import write_session


def test_as_many_segments_are_cut_and_counted_for_late_calls_as_for_early_ones(tmp_path: Path, monkeypatch):
    monkeypatch.setattr(judging, "STEP", 20)
    write_session(tmp_path / "case", 80, 300)
    cut, counted = judging.new_work(tmp_path / "case")
    assert len(cut) == len(counted) == 4
    assert 0 < max(cut[1:]) <= 1.1 * min(cut)
    assert 0 < max(counted[1:]) <= 1.1 * min(counted)


def test_a_log_alone_is_cut_anew_only_where_its_calls_differ(tmp_path: Path, monkeypatch):
    made: list[int] = []
    segments = cutting.segments

    def counting(layout, data, parent):
        found = segments(layout, data, parent)
        known = {id(s) for s in parent.segments} if parent is not None else set()
        made.append(sum(id(s) not in known for s in found))
        return found

    write_session(tmp_path / "case", 60, 300, wire=False)
    inspection = ctxscope.open(tmp_path / "case")
    monkeypatch.setattr(cutting, "segments", counting)
    inspection.count()
    inspection.close()
    assert len(made) == 60  # each request is rebuilt once, to be counted and to be judged
    assert sum(made) < 20 * len(made)
    assert {c.cache.verdict for c in inspection.snapshot.calls} == {"cold", "warm"}
