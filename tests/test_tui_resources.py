"""Bundled files are found in a checkout and in an installed package."""

from __future__ import annotations

import subprocess
import sys

from ctxscope import resources
from tests.conftest import ROOT


def test_a_checkout_has_them_at_its_root():
    assert resources.themes() == ROOT / "themes"
    assert resources.sample_sessions() == ROOT / "sample_sessions"
    assert list(resources.themes().glob("*.toml"))


def test_an_installed_package_has_them_inside(tmp_path, monkeypatch):
    (tmp_path / "themes").mkdir()
    package = tmp_path / "ctxscope"
    (package / "data" / "themes").mkdir(parents=True)
    monkeypatch.setattr(resources, "_PACKAGE", package)
    assert resources.themes() == package / "data" / "themes"


def test_finding_them_needs_no_textual():
    code = "import sys, ctxscope.resources; sys.exit('textual' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
