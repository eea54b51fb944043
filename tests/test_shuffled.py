"""Shuffled input gives the same report: lines of an index, files of a folder, calls that all bear one time."""

from __future__ import annotations

import json
import os
import random
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ctxscope
from ctxscope import report
from ctxscope.report import Options
from tests.conftest import CAPTURES, needs_captures
from tests.planted import TRANSITIONS, write

RENDER = report.load("json").render
CASES = ("pi/pi073_f_fork", "claude_code/cc332_misc", "omp/omp_x_abort", "codex/cx98_a")
PLANTED = ("llama_cpp/subagent_between", "gpt-5.4/chat/tool_removed")
chances = st.integers(0, 1 << 16).map(random.Random)


def told(folder: Path) -> str:
    """The JSON report of all that lies in a folder."""
    inspection = ctxscope.open(folder)
    try:
        return RENDER(inspection.snapshot, inspection.view, Options(content="full"))
    finally:
        inspection.close()


@contextmanager
def shuffled(chance: random.Random) -> Iterator[None]:
    """A file system that lists its folders in any order."""
    names, entries = os.listdir, os.scandir

    class Entries(list[Any]):
        def __enter__(self) -> Self:
            return self

        def __exit__(self, *_: object) -> None:
            """Nothing is left open."""

        def close(self) -> None:
            """Likewise."""

    def in_any_order(make: Callable[..., Any], kind: type[list[Any]]) -> Callable[..., Any]:
        def listed(*args: Any) -> list[Any]:
            found = kind(sorted(make(*args), key=lambda item: getattr(item, "name", item)))
            chance.shuffle(found)
            return found

        return listed

    with patch("os.listdir", in_any_order(names, list)), patch("os.scandir", in_any_order(entries, Entries)):
        yield


def lines_of(index: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in index.read_text(encoding="utf-8").splitlines()]


def write_lines(index: Path, lines: list[dict[str, Any]]) -> None:
    index.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")


@pytest.fixture(scope="module", params=CASES)
def case(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A capture, its logs beside its recording, all of whose calls came at one time."""
    folder = tmp_path_factory.mktemp("case") / "home"
    shutil.copytree(CAPTURES / request.param, folder)
    index = folder / "wire" / "index.jsonl"
    lines = lines_of(index)
    write_lines(index, [line | {"t": lines[0]["t"]} for line in lines])
    return folder


@pytest.fixture(scope="module")
def recordings(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Several recordings of no session, their calls at equal times."""
    folder = tmp_path_factory.mktemp("recordings")
    for name in PLANTED:
        write(folder / name.replace("/", "_"), next(t for t in TRANSITIONS if t.name == name))
    return folder


def same_however_shuffled(folder: Path, chance: random.Random) -> None:
    """The report of a folder, and of the same one with its index lines and its files in any order."""
    first = told(folder)
    for index in folder.rglob("index.jsonl"):
        lines = lines_of(index)
        chance.shuffle(lines)
        write_lines(index, lines)
    with shuffled(chance):
        assert told(folder) == first


@needs_captures
@settings(max_examples=2, deadline=None)
@given(chance=chances)
def test_a_session_and_its_recording(case: Path, chance: random.Random):
    same_however_shuffled(case, chance)


@settings(max_examples=4, deadline=None)
@given(chance=chances)
def test_several_recordings_with_equal_times(recordings: Path, chance: random.Random):
    same_however_shuffled(recordings, chance)


@needs_captures
def test_a_log_without_its_recording(case: Path):
    log = case.parent / "log"
    shutil.copytree(case / "log", log)
    first = told(log)
    for seed in range(2):
        with shuffled(random.Random(seed)):
            assert told(log) == first
