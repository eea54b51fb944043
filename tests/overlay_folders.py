"""An agent's folder, an overlay of it, and what agents do in both."""

from __future__ import annotations

import errno
import os

import pytest

from ctxscope.cli import settling
from ctxscope.cli.overlay import OverlayFolder
from ctxscope.model import Overlay

OURS = b"model: loopback\n"


@pytest.fixture
def original(tmp_path):
    """An agent's folder with settings, a token and sessions."""
    folder = tmp_path / "home" / ".agent"
    (folder / "sessions").mkdir(parents=True)
    (folder / "config.yaml").write_text("model: vendor\n", encoding="utf-8")
    (folder / "auth.json").write_text("old token", encoding="utf-8")
    (folder / "auth.json").chmod(0o600)
    (folder / "sessions" / "a.jsonl").write_text("1\n", encoding="utf-8")
    return folder


@pytest.fixture
def base(tmp_path):
    return tmp_path / "data" / "overlays"


@pytest.fixture
def overlay(original, base):
    made = OverlayFolder.make(Overlay("AGENT_HOME", original, {"config.yaml": OURS}), base)
    yield made
    made.lock.close()


@pytest.fixture
def across(monkeypatch, base):
    """Both folders lie in different file systems, so that no file can have a name in each."""
    inside = os.link

    def link(source, place, **options):
        if base not in place.parents:
            raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))
        inside(source, place, **options)

    monkeypatch.setattr(settling.os, "link", link)


def rotate(path, text, mode=0o600):
    """Replace a file as agents do: write aside, rename."""
    part = path.with_name(f"{path.name}.tmp")
    part.write_text(text, encoding="utf-8")
    part.chmod(mode)
    part.replace(path)


def append(path, text):
    with path.open("a", encoding="utf-8") as file:
        file.write(text)


def kept(overlay):
    """What was set aside, oldest name first."""
    return [path.read_text(encoding="utf-8") for path in sorted(overlay.settling.kept.glob("*"))]


def files(folder):
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}
