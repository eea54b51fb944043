"""Overlay folders that a run left behind when it was killed, and those of runs that just begin."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap

from ctxscope.cli import overlay as overlays
from ctxscope.cli.overlay import OverlayFolder, settle_left
from ctxscope.model import Overlay
from tests.conftest import ROOT
from tests.overlay_folders import OURS, base, files, original, rotate

FIXTURES = (base, original)
"""Used by their names."""


KILLED = """
import os, signal, sys
from pathlib import Path
from ctxscope.cli.overlay import OverlayFolder
from ctxscope.model import Overlay
overlay = OverlayFolder.make(Overlay("AGENT_HOME", Path(sys.argv[1]), {"config.yaml": b"secret of the user\\n"}), Path(sys.argv[2]))
(overlay.view / "lock").write_text("1")
overlay.settle()
(overlay.view / "lock").unlink()
(overlay.view / "auth.json.tmp").write_text("second")
(overlay.view / "auth.json.tmp").replace(overlay.view / "auth.json")
(overlay.view / "new.jsonl").write_text("1\\n")
if sys.argv[3:]:
    overlay.settle()
print(overlay.view, flush=True)
sys.stdin.readline()
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_a_killed_run_left_is_settled_by_the_next(original, base):
    command = [sys.executable, "-c", textwrap.dedent(KILLED), str(original), str(base)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT, text=True) as run:
        view = run.stdout.readline().strip()
        assert settle_left(base) == []
        assert os.path.exists(view)  # noqa: PTH110 - it is owned
        run.communicate("\n")
    assert settle_left(base) == []
    assert (original / "auth.json").read_text(encoding="utf-8") == "second"
    assert (original / "new.jsonl").read_text(encoding="utf-8") == "1\n"
    assert not (original / "lock").exists()
    assert list(base.iterdir()) == []


def test_what_was_used_since_a_run_was_killed_is_not_taken_back(original, base):
    command = [sys.executable, "-c", textwrap.dedent(KILLED), str(original), str(base)]
    subprocess.run(command, input="\n", capture_output=True, cwd=ROOT, text=True, check=False)
    rotate(original / "auth.json", "third")
    (said,) = settle_left(base)
    assert "killed" in said
    assert (original / "auth.json").read_text(encoding="utf-8") == "third"
    assert [kept.read_text(encoding="utf-8") for kept in (base / "kept").iterdir()] == ["second"]


def test_what_a_killed_run_had_brought_over_is_not_brought_over_again(original, base):
    command = [sys.executable, "-c", textwrap.dedent(KILLED), str(original), str(base), "settled"]
    subprocess.run(command, input="\n", capture_output=True, cwd=ROOT, text=True, check=False)
    assert (original / "auth.json").read_text(encoding="utf-8") == "second"
    rotate(original / "auth.json", "third")
    (original / "new.jsonl").unlink()
    (said,) = settle_left(base)
    assert str(original / "new.jsonl") in said
    assert "somebody else removed it" in said
    assert (original / "auth.json").read_text(encoding="utf-8") == "third"
    assert not (original / "new.jsonl").exists()
    assert [kept.read_text(encoding="utf-8") for kept in (base / "kept").iterdir()] == ["1\n"]


def test_an_overlay_being_made_is_not_taken_for_one_that_was_left(original, base, monkeypatch):
    take, theirs = overlays._take, []

    def late(lock):
        for path in base.rglob("lock"):  # what another run finds there just now, it owns
            theirs.append(path.open("r+b"))
            take(theirs[-1])
        take(lock)

    monkeypatch.setattr(overlays, "_take", late)
    try:
        made = OverlayFolder.make(Overlay("AGENT_HOME", original, {"config.yaml": OURS}), base)
    finally:
        for lock in theirs:
            lock.close()
    monkeypatch.setattr(overlays, "_take", take)
    assert settle_left(base) == []
    assert files(made.view) == {"config.yaml": OURS, "auth.json": b"old token"}
    assert made.close() == []
    assert list(base.iterdir()) == []


def test_an_overlay_that_never_came_to_be_one_is_removed(base):
    (base / "half" / "view").mkdir(parents=True)
    (base / "half" / "lock").touch()
    (base / "half" / "view" / "config.yaml").write_bytes(OURS)
    assert settle_left(base) == []
    assert not (base / "half").exists()


def test_a_folder_that_is_no_overlay_is_left_alone(base):
    (base / "kept").mkdir(parents=True)
    (base / "kept" / "x").write_text("mine", encoding="utf-8")
    (base / "other").mkdir()
    (base / "other" / "lock").touch()
    (base / "other" / "manifest.json").write_text(json.dumps({"original": 1}), encoding="utf-8")
    assert settle_left(base) == []
    assert (base / "kept" / "x").exists()
    assert (base / "other" / "manifest.json").exists()
