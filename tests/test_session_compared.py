"""Copies that are watched: what is read of them again to tell whether they still are copies."""

from __future__ import annotations

import io
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ctxscope.agents.reading import files
from ctxscope.session import copies
from tests.conftest import SAMPLES


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many bytes were read of files that are opened by their path, one by one."""
    sizes: list[int] = []
    opened = Path.open

    class Counted(io.BufferedReader):
        def read(self, size: int | None = -1, /) -> bytes:
            data = super().read(size)
            sizes.append(len(data))
            return data

    def counting(path: Path, mode: str = "r", *args: Any) -> Any:
        return Counted(io.FileIO(path)) if mode == "rb" else opened(path, mode, *args)

    monkeypatch.setattr(Path, "open", counting)
    return sizes


@pytest.fixture
def twins(tmp_path: Path) -> copies.Copy:
    """Two files of a megabyte that hold the same."""
    for name in ("one", "two"):
        (tmp_path / name).write_bytes(b"".join(b"%09d\n" % i for i in range(100_000)))
    return copies.Copy(tmp_path / "two", tmp_path / "one", is_link=False)


def test_of_a_copy_that_grows_with_its_original_only_what_came_is_compared(twins: copies.Copy, read: list[int]):
    assert twins.lasts
    assert sum(read) >= 2_000_000
    for came in (b"and more\n", b"", b"and still more\n"):
        read.clear()
        for path in (twins.of, twins.path):
            with path.open("ab") as file:
                file.write(came)
        assert twins.lasts
        assert 0 < sum(read) <= 6 * files.HEAD_BYTES + 2 * len(came)


def test_of_a_recording_that_grows_with_its_copy_only_what_came_is_compared(tmp_path: Path, read: list[int]):
    wires = [Path(shutil.copytree(SAMPLES / "pi" / "clean_append" / "wire", tmp_path / name)) for name in "ab"]
    for wire in wires:
        (wire / "0001.req").write_bytes(b"x" * 1_000_000)
    copy = copies.Copy(wires[1], wires[0], is_link=False)
    assert copy.lasts
    read.clear()
    for wire in wires:
        (wire / "0099.req").write_bytes(b"more")
    assert copy.lasts
    assert sum(read) < 1_000_000


def replaced(path: Path, held: bytes) -> None:
    path.with_suffix(".new").write_bytes(held)
    path.with_suffix(".new").replace(path)


@pytest.mark.parametrize("name", ["one", "two"])
@pytest.mark.parametrize("write", [Path.write_bytes, replaced], ids=["in place", "replaced"])
@pytest.mark.parametrize("more", [b"", b"more\n"], ids=["as long", "longer"])
def test_a_copy_that_was_rewritten_is_told_apart(
    name: str, write: Callable[[Path, bytes], Any], more: bytes, twins: copies.Copy
):
    assert twins.lasts
    path = twins.path.with_name(name)
    held = path.read_bytes() + more
    at = 500_000 if write is replaced or not more else 10
    write(path, held[:at] + b"?" + held[at + 1 :])
    os.utime(path, (1_700_000_000, 1_700_000_000))
    assert not twins.lasts
