"""A session followed as it grows says at every moment what opening it anew says."""

from __future__ import annotations

import json
import random
import shutil
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

import ctxscope
from ctxscope.model import Snapshot
from tests.conftest import SAMPLES


def told(snapshot: Snapshot) -> list[tuple[Any, ...]]:
    return [
        (
            c.n,
            c.session,
            c.turn,
            c.kind,
            c.lineage,
            c.parent,
            c.joined_by,
            c.entry,
            c.rebuilt,
            c.reply,
            c.cache,
            c.stop,
            c.markers,
        )
        for c in snapshot.calls
    ]


def steps(case: Path, to: Path) -> list[tuple[Path, bytes]]:
    """What to append where, one log line or exchange at a time, in the order it happened."""
    found: list[tuple[float, int, list[tuple[Path, bytes]]]] = []
    for log in case.rglob("*.jsonl"):
        if log.name == "index.jsonl":
            for line in log.read_bytes().splitlines(keepends=True):
                exchange = json.loads(line)
                name = f"{exchange['n']:04d}"
                files = [(log.with_name(f"{name}.req"), b""), (log.with_name(f"{name}.res"), b"")]
                writes = [(to / f.relative_to(case), f.read_bytes()) for f, _ in files if f.exists()]
                found.append((exchange["t"], 0, [*writes, (to / log.relative_to(case), line)]))
        else:
            for number, line in enumerate(log.read_bytes().splitlines(keepends=True)):
                stamp = json.loads(line)["timestamp"]
                found.append((_seconds(stamp), number + 1, [(to / log.relative_to(case), line)]))
    return [write for _, _, writes in sorted(found, key=lambda f: f[:2]) for write in writes]


def _seconds(stamp: str) -> float:
    return datetime.fromisoformat(stamp).timestamp()


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("name", ["clean_append", "reply_cut_4096", "tool_keys_reordered"])
def test_following_in_any_batches_says_what_a_fresh_look_says(name: str, seed: int, tmp_path: Path):
    case = SAMPLES / "pi" / name
    rng = random.Random(seed)
    for folder in [case, *(p for p in case.rglob("*") if p.is_dir())]:
        (tmp_path / folder.relative_to(case)).mkdir(exist_ok=True)
    for side in case.rglob("*.json"):
        if side.name in ("models.json", "settings.json"):
            shutil.copy(side, tmp_path / side.relative_to(case))
    writes = steps(case, tmp_path)
    followed = None
    for i, (path, data) in enumerate(writes):
        with path.open("ab") as file:
            file.write(data)
        if followed is None:
            if not any(w[0].name == "index.jsonl" for w in writes[: i + 1]):
                continue
            followed = ctxscope.open(tmp_path)
        elif rng.random() < 0.5 and i + 1 < len(writes):
            continue
        followed.poll()
        fresh = ctxscope.open(tmp_path)
        assert told(followed.snapshot) == told(fresh.snapshot)
        fresh.close()
    assert followed is not None
    assert told(followed.snapshot) == told(ctxscope.open(case).snapshot)
    followed.close()


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
    assert told(followed.snapshot) == told(fresh.snapshot)
    assert side == "agent.log" or told(fresh.snapshot) != without
    followed.close()
    fresh.close()
