"""What would be sent after a restart, from logs as they stood before one, beside what was sent."""

from __future__ import annotations

from pathlib import Path

import pytest

import ctxscope
from ctxscope import agents
from ctxscope.agents.reading import plain
from ctxscope.model import NEXT_INPUT, Body, NextRequest
from tests.conftest import needs_captures
from tests.restarts import restarts, stood
from tests.session_cases import given

pytestmark = needs_captures
MARK = NEXT_INPUT.encode()
RESTARTS = [(case, n) for case, n in restarts() if agents.load(case.parent.name).resume is not plain.resume]


def previewed(case: Path, n: int, folder: Path) -> NextRequest:
    cut = stood(case, n, folder / "case")
    inspection = ctxscope.open(cut / "log", recording=str(cut / "wire"))
    try:
        return next(found for found in inspection.next_requests() if found.body is not None)
    finally:
        inspection.close()


def content(body: Body) -> list[tuple[str, str, bytes]]:
    """Kind, role and bytes of each segment in cache order, what decides a request's parameters apart."""
    return [(s.kind, s.role or "", body.data[s.start : s.end]) for s in body.segments if s.kind != "param"]


@pytest.mark.parametrize(("case", "n"), RESTARTS, ids=[f"{case.name}-{n}" for case, n in RESTARTS])
def test_the_first_request_after_a_restart_is_what_was_foretold(case: Path, n: int, tmp_path: Path):
    found = previewed(case, n, tmp_path)
    assert found.body is not None
    assert found.previous_served
    real = given(case, n)
    at = found.body.data.rfind(MARK)
    assert at > 0
    if found.scope == "body":
        assert found.body.data[:at] == real.data[:at]
    here = next(i for i, (_, _, data) in enumerate(content(found.body)) if MARK in data)
    assert content(found.body)[:here] == content(real)[:here]
