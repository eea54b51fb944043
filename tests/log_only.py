"""Logs opened without their recordings, beside what the recordings show."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path

import ctxscope
from ctxscope.model import Call
from tests.conftest import ROOT

MOCK = str(ROOT / "tests" / "providers" / "mock.toml")
"""Rules of the server that answered the recorded calls."""
Told = Mapping[tuple[str | None, str], Call]
"""Calls by session and point."""


def told_by(path: Path) -> Told:
    """The calls of a log alone, or of a case with its recordings; what was lost adds up."""
    inspection = ctxscope.open(path, provider=MOCK)
    try:
        inspection.count()
        shown = inspection.snapshot
    finally:
        inspection.close()
    breaks = sum(c.cache.verdict == "break" for c in shown.calls)
    assert shown.totals.breaks == breaks
    assert sum(len(cost.calls) for cost in shown.costs if cost.verdict == "break") == breaks
    assert sum(f.code == "CTX201" for f in shown.findings) == breaks
    return {(c.session, c.point): c for c in shown.calls if c.point is not None}


def alone(case: Path, folder: Path) -> Told:
    """The calls of a case's log in a folder of its own, where no recording lies near."""
    shutil.copytree(case / "log", folder / "log", ignore=shutil.ignore_patterns("wire", "*.ctxrec"))
    return told_by(folder / "log")


def agrees(logged: Told, recorded: Iterable[Call]) -> None:
    """A log alone says less than its recording, and never otherwise."""
    both = {(c.session, c.point): c for c in recorded if c.exchange is not None}
    for key, call in logged.items():
        beside, told = both.get(key), call.cache
        if beside is None:
            continue
        assert not (told.verdict == "break" and beside.cache.verdict in ("warm", "cold")), (call.n, told.why)
        assert not (told.verdict in ("break", "miss") and told.confidence == "confirmed"), (call.n, told.why)
        assert told.verdict != "unknown" or told.lost_tokens is None
