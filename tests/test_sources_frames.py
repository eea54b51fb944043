"""Logs that are zstd frames: read like the lines they hold, whole or growing, torn or followed by something else."""

from __future__ import annotations

import importlib
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctxscope.model import SourceSpec
from ctxscope.sources import frames, jsonl, reader
from tests.test_sources_jsonl import LINES, drain, expected, fold, held

zstd = importlib.import_module("compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd")


def packed(path: Path):
    return reader(SourceSpec("session", path, "jsonl"))


def written(lines) -> bytes:
    return b"".join(line + b"\n" for line in lines)


@settings(deadline=None, max_examples=60)
@given(st.lists(LINES, max_size=5), st.integers(0, 400))
def test_frames_that_come_in_pieces_give_the_lines_they_hold(batches, cut):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "log.jsonl.zst"
        content = b"".join(zstd.compress(written(batch)) for batch in batches)
        path.write_bytes(content[:cut])
        source = packed(path)
        records = drain(source)
        with path.open("ab") as file:
            file.write(content[cut:])
        records += drain(source)
        assert held(fold(records)) == expected([line for batch in batches for line in batch])
        assert not source.partial
        assert source.notices == ()


def test_a_frame_that_holds_a_line_in_part_is_held_back_and_said(tmp_path):
    path = tmp_path / "log.jsonl.zstd"
    path.write_bytes(zstd.compress(b"one\ntw"))
    source = packed(path)
    assert held(fold(drain(source))) == {"1": b"one"}
    assert source.partial
    with path.open("ab") as file:
        file.write(zstd.compress(b"o\n"))
    assert [r.value for r in drain(source)] == [b"two"]
    assert not source.partial


def test_an_unfinished_frame_gives_the_lines_that_are_in_it(tmp_path):
    lines = [bytes([65 + i % 26]) * 3000 for i in range(400)]
    whole = zstd.compress(written(lines))
    path = tmp_path / "log.jsonl.zst"
    path.write_bytes(whole[: len(whole) - 5])
    source = packed(path)
    state = fold(drain(source))
    assert source.partial
    path.write_bytes(whole)  # the same file, longer
    assert held(fold(drain(source), state)) == expected(lines)
    assert not source.partial


def test_a_small_frame_that_holds_much_is_read_in_bounded_steps(tmp_path, monkeypatch):
    monkeypatch.setattr(frames, "POLL_BYTES", 3 * frames.MOST_AT_ONCE)
    lines = [b"x" * 999 for _ in range(9000)]
    path = tmp_path / "log.jsonl.zst"
    path.write_bytes(zstd.compress(written(lines)))
    source = packed(path)
    first = source.poll()
    assert source.more
    assert len(first) < len(lines) / 2
    assert held(fold([*first, *drain(source)])) == expected(lines)


def test_bytes_that_are_no_frame_end_the_reading_and_are_told(tmp_path):
    path = tmp_path / "log.jsonl.zst"
    good = zstd.compress(b"one\n")
    path.write_bytes(good + b"not a frame at all")
    source = packed(path)
    assert held(fold(drain(source))) == {"1": b"one"}
    assert source.notices == (f"log.jsonl.zst: found no zstd frame behind byte {len(good)}; what follows is not read",)


@pytest.mark.parametrize("count", [1, 3])
def test_another_file_in_its_place_is_read_from_its_start(tmp_path, count):
    path = tmp_path / "log.jsonl.zst"
    path.write_bytes(zstd.compress(b"one\ntwo\nthree\n"))
    source = packed(path)
    state = fold(drain(source))
    new = tmp_path / "new"
    new.write_bytes(b"".join(zstd.compress(f"line {i}\n".encode()) for i in range(count)))
    new.replace(path)
    assert held(fold(drain(source) + drain(source), state)) == expected([f"line {i}".encode() for i in range(count)])
    assert any(jsonl.REPLACED in notice for notice in source.notices)
