"""A recording that is begun anew, cut short or rewritten while it is followed: a fresh look says the same."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import ctxscope
from tests.conftest import SAMPLES
from tests.session_growth import difference, samples
from tests.session_looks import agrees, said


def cut_short(wire: Path) -> None:
    index = wire / "index.jsonl"
    index.write_bytes(b"".join(index.read_bytes().splitlines(keepends=True)[:2]))


def begun_anew(wire: Path) -> None:
    """A new run of the recorder: the old files are gone, its first exchange is what was the third."""
    line = json.loads((wire / "index.jsonl").read_bytes().splitlines()[2])
    request, reply = (wire / "0003.req").read_bytes(), (wire / "0003.res").read_bytes()
    for file in wire.iterdir():
        file.unlink()
    (wire / "0001.req").write_bytes(request)
    (wire / "0001.res").write_bytes(reply)
    (wire / "index.jsonl").write_text(json.dumps({**line, "n": 1}) + "\n")


def request_rewritten(wire: Path) -> None:
    file = wire / "0002.req"
    content = file.read_bytes()
    file.write_bytes(content.replace(b"the", b"tha"))
    assert file.read_bytes() != content


def reply_rewritten(wire: Path) -> None:
    file = wire / "0002.res"
    content = file.read_bytes()
    file.write_bytes(content.replace(b"e", b"i"))
    assert file.read_bytes() != content


def request_gone(wire: Path) -> None:
    (wire / "0002.req").unlink()


@pytest.mark.parametrize("rewrite", [cut_short, begun_anew, request_rewritten, reply_rewritten, request_gone])
@pytest.mark.parametrize("case", samples(), ids=lambda p: f"{p.parent.name}-{p.name}")
def test_a_recording_rewritten_while_it_is_followed_says_what_a_fresh_look_says(
    case: Path, rewrite: Callable[[Path], None], tmp_path: Path
):
    shutil.copytree(case, tmp_path, dirs_exist_ok=True)
    wires = {path.parent for path in tmp_path.rglob("index.jsonl")}
    wire = max(wires, key=lambda folder: len(list(folder.iterdir())))
    if not (wire / "0003.res").exists():
        pytest.skip("fewer than three exchanges")
    followed = ctxscope.open(tmp_path)
    before = said(followed)
    rewrite(wire)
    assert followed.poll()
    assert agrees(followed) is None
    assert difference(said(followed), before) is not None
    followed.count()
    followed.view(1)


def test_a_notice_of_a_recording_goes_when_what_it_told_of_is_mended(tmp_path: Path):
    shutil.copytree(SAMPLES / "pi" / "clean_append", tmp_path, dirs_exist_ok=True)
    index = tmp_path / "wire" / "index.jsonl"
    lines = index.read_bytes()
    followed = ctxscope.open(tmp_path)
    calm = followed.snapshot.notices
    with index.open("ab") as file:
        file.write(b'{"n": 99, ')
    assert followed.poll()
    assert len(followed.snapshot.notices) == len(calm) + 1
    index.write_bytes(lines)
    assert followed.poll()
    assert followed.snapshot.notices == calm
