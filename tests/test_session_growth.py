"""The same observations say the same, however they are folded, at every prefix length (DESIGN law 3)."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest

import ctxscope
from ctxscope.model import Exchange
from ctxscope.session.finding import find
from tests.conftest import SAMPLES
from tests.session_growth import (
    SAMPLE_SCRIPTS,
    Disk,
    Stream,
    captures,
    difference,
    fold,
    grown,
    hermes_moments,
    observed,
    samples,
    told,
)
from tests.session_rewrites import HERMES, LATE, PI, edited, log_last

CASES = [*samples(), *captures()]
AT_ONCE = 250
"""Prefixes judged from nothing in one go; a longer stream has so many drawn, and its last, since each costs its length."""
RUNS = 3
"""Followers that poll at random moments; each prefix is the end of a batch of one of them."""


def in_any_batches(stream: Stream, seed: str) -> None:
    """One by one, in random batches and, for up to ``AT_ONCE`` prefixes, at once: compared at every prefix length.

    And all of it once more with the log ahead of the traffic, and behind.
    """
    rng = random.Random(seed)
    lengths = range(1, len(stream.observations) + 1)
    at_once = {*rng.sample(lengths, min(len(lengths), AT_ONCE)), len(lengths)}
    one_by_one, runs, read = stream.assembly(), [stream.assembly() for _ in range(RUNS)], [0] * RUNS
    for length in lengths:
        fold(one_by_one, stream.observations[length - 1 : length])
        said = told(one_by_one.snapshot)
        run = rng.randrange(RUNS)
        fold(runs[run], stream.observations[read[run] : length])
        read[run] = length
        assert difference(told(runs[run].snapshot), said) is None, f"in batches, the first {length}"
        if length in at_once:
            fresh = stream.assembly()
            fold(fresh, stream.observations[:length])
            assert difference(told(fresh.snapshot), said) is None, f"at once, the first {length}"
    for late in (Exchange, tuple):  # the log and the recording are different files: either may be read first
        lagging = stream.assembly()
        fold(lagging, [o for o in stream.observations if not isinstance(o, late)])
        for one in stream.observations:
            if isinstance(one, late):
                fold(lagging, [one])
        assert difference(told(lagging.snapshot), told(one_by_one.snapshot)) is None, f"{late.__name__} last"


@pytest.mark.parametrize("case", CASES, ids=lambda p: f"{p.parent.name}-{p.name}")
def test_observations_in_any_batches_say_the_same_at_every_prefix_length(case: Path, tmp_path: Path):
    stream = observed(find(case), case, *grown(case, tmp_path))
    assert len(stream.observations) > 10
    in_any_batches(stream, case.name)


@pytest.mark.parametrize("script", [*HERMES, *LATE], ids=lambda f: f.__name__)
def test_a_rewritten_hermes_log_in_any_batches_says_the_same(script, tmp_path: Path):
    written = tmp_path / "written"
    moments = hermes_moments(script, written)
    in_any_batches(observed(find(written), written, moments, Disk(tmp_path / "grown")), script.__name__)


@pytest.mark.parametrize("name", ["batch_compaction", "micro_stale_after_resume"])
def test_a_log_beside_the_log_that_comes_last_says_the_same_in_any_batches(name: str, tmp_path: Path):
    written = tmp_path / "written"
    moments = log_last(hermes_moments(SAMPLE_SCRIPTS[name], written))
    in_any_batches(observed(find(written), written, moments, Disk(tmp_path / "grown")), name)


@pytest.mark.parametrize("edit", PI, ids=lambda f: f.__name__)
def test_a_rewritten_pi_log_in_any_batches_says_the_same(edit, tmp_path: Path):
    case = SAMPLES / "pi/clean_append"
    in_any_batches(observed(find(case), case, edited(edit), Disk(tmp_path)), edit.__name__)


@pytest.mark.parametrize(
    ("case", "side"),
    [
        ("pi/clean_append", "models.json"),
        ("hermes/sidecar_differs", "session_*.json"),
        ("hermes/rotation", "agent.log"),
    ],
)
def test_a_side_file_that_comes_late_is_judged_as_if_it_had_always_been_there(case: str, side: str, tmp_path: Path):
    folder = tmp_path / "case"
    shutil.copytree(SAMPLES / case, folder)
    late = sorted(folder.rglob(side))
    assert late
    held = {path: path.read_bytes() for path in late}
    for path in late:
        path.unlink()
    followed = ctxscope.open(folder)
    without = told(followed.snapshot)
    for path, data in held.items():
        path.write_bytes(data)
    followed.poll()
    fresh = ctxscope.open(folder)
    assert difference(told(followed.snapshot), told(fresh.snapshot)) is None
    assert side == "agent.log" or told(fresh.snapshot) != without
    followed.close()
    fresh.close()
