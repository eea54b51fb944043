"""What a call cost by its log alone is what the server reported of it, for every recorded case of every agent."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest

import ctxscope
from ctxscope.model import Call, CtxscopeError, Usage
from tests.conftest import CAPTURES

CASES = sorted(p.parent for p in CAPTURES.glob("*/*/case.json") if (p.parent / "log").is_dir())
UNREAD = ("aider", "cline", "formats")
"""Agents without a log that is read on its own, and captures that are of no agent."""
At = tuple[str, str | None, str]
"""File, session and place."""


def calls_of(path: Path) -> Mapping[At, list[Call]]:
    """The calls that have a place in a log, by it, in order; none where no agent's log is known."""
    try:
        inspection = ctxscope.open(path)
    except CtxscopeError:
        return {}
    shown = inspection.snapshot
    inspection.close()
    files = {session.id: session.log for session in shown.sessions}
    found: dict[At, list[Call]] = {}
    for call in shown.calls:
        if call.entry is not None and call.session in files:
            name = Path(files[call.session][call.entry.log]).name
            found.setdefault((name, call.session, call.entry.place), []).append(call)
    return found


def both_of(case: Path, folder: Path) -> Iterable[tuple[Call, Call]]:
    """Calls by the log alone, each with its last recorded attempt, of which the server reported usage."""
    recorded = calls_of(case)
    shutil.copytree(case / "log", folder / "log", ignore=shutil.ignore_patterns("wire", "*.ctxrec"), symlinks=True)
    for at, calls in calls_of(folder / "log").items():
        served = [c for c in recorded.get(at, ()) if c.exchange is not None and c.usage is not None]
        if served:
            yield calls[-1], served[-1]


def prompt_of(usage: Usage) -> tuple[int, ...]:
    return usage.input or 0, usage.cache_read or 0, usage.cache_write or 0


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.parent.name}-{case.name}")
def test_usage_by_the_log_alone_is_what_the_server_reported(case, tmp_path):
    pairs = list(both_of(case, tmp_path))
    assert pairs or case.parent.name in UNREAD
    for logged, served in pairs:
        told, reported = logged.usage, served.usage
        if told is None:
            untold_by_rule(case, served)
            continue
        assert prompt_of(told) == prompt_of(reported), (logged.n, told, reported)
        outputs = [reported.output]
        if served.api == "gemini":  # an agent may add the thoughts to counts that hold them already
            outputs.append((reported.output or 0) + (reported.reasoning or 0))
        assert told.output in outputs, (logged.n, told, reported)


def untold_by_rule(case: Path, served: Call) -> None:
    """Hermes does not tell what was written to a cache, nor what an answer cost that was cut off."""
    if case.parent.name == "hermes":
        assert served.usage.cache_write or served.stop.state == "truncated", (served.n, served.usage)
