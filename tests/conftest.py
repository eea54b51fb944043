"""What many tests share: where recorded evidence lies, and the mark that skips without it."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SAMPLES = ROOT / "sample_sessions"
CAPTURES = ROOT.parent / "shared" / "captures"
"""Recorded sessions of real agents; not part of the project, present on its developers' machines."""

needs_captures = pytest.mark.skipif(not CAPTURES.is_dir(), reason="the recorded captures (../shared) are not here")
