"""What a further line of a long log costs in memory: its entry, its head and its place in the chain, not its content."""

from __future__ import annotations

import gc
import sys
import types
from pathlib import Path

import pytest

import ctxscope
from ctxscope.agents.claude_code import lines
from ctxscope.session import deferred
from ctxscope.session.inspection import Inspection
from ctxscope.sources import jsonl
from tests.benchmarks.long_claude import write_log

LOG_BYTES, TEXT_BYTES = 400_000, 300
"""Small results, so that a short log has as many lines as one of megabytes."""
BYTES_A_LINE = 1450
"""Of a further line with its part of its call, which has four: 1,250 were measured, and 2,470 when each was kept on its own."""
NO_VALUES = (types.ModuleType, type, types.FunctionType, types.BuiltinFunctionType)


@pytest.fixture(autouse=True)
def read_again(monkeypatch: pytest.MonkeyPatch):
    """Every log is long; of lines looked at, hardly any is kept."""
    monkeypatch.setattr("ctxscope.analysis.vocabulary.encoding", lambda _: None)
    monkeypatch.setattr(jsonl.LineReader, "holds_from", 0)
    monkeypatch.setattr("ctxscope.session.fold.FROM_BYTES", 0)
    monkeypatch.setattr(deferred, "AT_HAND_BYTES", 1)
    monkeypatch.setattr(lines, "FRESH_LINES", 1)
    lines._value.cache_clear()


def reachable(inspection: Inspection) -> dict[str, list[object]]:
    """All objects an inspection keeps, by type."""
    found: dict[str, list[object]] = {}
    seen: set[int] = set()
    left: list[object] = [inspection]
    while left:
        one = left.pop()
        if id(one) not in seen and not isinstance(one, NO_VALUES):
            seen.add(id(one))
            found.setdefault(type(one).__name__, []).append(one)
            left += gc.get_referents(one)
    return found


def opened(home: Path, size: int) -> Inspection:
    write_log(home, size, TEXT_BYTES)
    return ctxscope.open(home)


def test_a_further_line_costs_a_bounded_number_of_bytes(tmp_path: Path):
    short, long = opened(tmp_path / "short", LOG_BYTES), opened(tmp_path / "long", 2 * LOG_BYTES)
    sizes, counts = [], []
    for inspection in (short, long):
        sizes.append(sum(sys.getsizeof(one) for some in reachable(inspection).values() for one in some))
        counts.append(len(inspection.assembly.sessions[0].log.entries))
        inspection.close()
    assert (sizes[1] - sizes[0]) / (counts[1] - counts[0]) < BYTES_A_LINE


def test_no_line_is_kept_and_what_says_the_same_is_one_object(tmp_path: Path):
    inspection = opened(tmp_path / "home", LOG_BYTES)
    log, calls = inspection.assembly.sessions[0].log, inspection.snapshot.calls
    found = {name: len(some) for name, some in reachable(inspection).items()}
    assert len(calls) > 100
    assert found["DeferredEntry"] == found["Place"] == len(log.entries)
    assert found.get("Line", 0) <= 1
    assert not {"Record", "Run", "Item", "Before"} & set(found)
    assert found["CacheVerdict"] == found["ReplyVerdict"] == found["Judged"] == found["Endpoint"] == 1
    assert found.get("frozenset", 0) < len(calls)
    inspection.close()
