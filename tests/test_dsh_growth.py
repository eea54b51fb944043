"""Samples and recorded sessions of the harness as they grew, frame by frame: in any batches they say the same."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path

import pytest

from ctxscope.session.finding import find
from tests.agent_cases import frames
from tests.conftest import CAPTURES, SAMPLES
from tests.session_growth import Disk, Moment, observed
from tests.test_session_growth import in_any_batches

CASES = sorted(p.parent for root in (SAMPLES, CAPTURES) for p in root.glob("dsh/*/wire"))


def packed(path: Path) -> Iterator[tuple[float, bytes]]:
    """The frames of a log as they lie on disk, each with the time of its last record."""
    data = path.read_bytes()
    rest, times, found = data, [], []
    for text in frames(data):
        last = json.loads(text.rstrip(b"\n").split(b"\n")[-1])
        times.append(last.get("time", last.get("createdAt", last.get("time0"))) / 1000)
        end = _end(rest)
        found.append(rest[:end])
        rest = rest[end:]
    return zip(accumulate(times, max), found, strict=True)


def _end(data: bytes) -> int:
    """Where the first frame ends: where the next one begins, or with the file."""
    magic, at = b"\x28\xb5\x2f\xfd", 4
    while (at := data.find(magic, at)) >= 0:
        first = list(frames(data[:at]))
        if len(first) == 1 and list(frames(data))[:1] == first:
            return at
        at += 1
    return len(data)


def moments(case: Path) -> Iterator[Moment]:
    """A frame or a side of an exchange at a time, in the order they happened; a frame in two halves, as a poll may find it."""
    events: list[tuple[float, int, str, bytes]] = []
    for log in sorted(case.rglob("*.zstd")):
        events += [(at, 1, str(log.relative_to(case)), data) for at, data in packed(log)]
    index = case / "wire" / "index.jsonl"
    for line in index.read_bytes().splitlines(keepends=True):
        told = json.loads(line)
        for rank, kind, at in ((-2, "req", told["t"]), (0, "res", told.get("t_end", told["t"]))):
            path = index.with_name(f"{told['n']:04}.{kind}")
            events.append((at, rank, str(path.relative_to(case)), path.read_bytes()))
        events.append((told["t"], -1, str(index.relative_to(case)), line))
    grown: dict[str, bytes] = {}
    for _, _, name, data in sorted(events, key=lambda e: e[:2]):
        before = grown.get(name, b"")
        grown[name] = before + data
        if name.endswith(".zstd"):
            yield Moment({name: before + data[: len(data) // 2]})
        yield Moment({name: grown[name]})


@pytest.mark.parametrize("case", CASES, ids=lambda p: p.name)
def test_observations_in_any_batches_say_the_same_at_every_prefix_length(case: Path, tmp_path: Path) -> None:
    stream = observed(find(case), case, moments(case), Disk(tmp_path / "grown"))
    assert len(stream.observations) > 10
    in_any_batches(stream, case.name)
