"""The bundled samples say what their hand-written ``expected.json`` says, through the whole path from disk to report."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import ctxscope
from ctxscope import agents
from ctxscope.model import Call, Snapshot
from tests.conftest import SAMPLES

CASES = sorted(p.parent for p in SAMPLES.glob("*/*/expected.json"))


def opened(folder: Path, *, counted: bool) -> Snapshot:
    inspection = ctxscope.open(folder)
    try:
        if counted:
            inspection.count()
        return inspection.snapshot
    finally:
        inspection.close()


def said(call: Call) -> dict[str, Any]:
    return {
        "session": call.session,
        "turn": call.turn,
        "kind": call.kind,
        "joined_by": call.joined_by,
        "rebuilt": call.rebuilt.state,
        "reply": call.reply.state,
        "break": call.cache.cause if call.cache.verdict == "break" else None,
        "stop": call.stop.state if call.stop else None,
        "at_cap": call.at_cap,
    }


def agrees(wanted: Any, got: Any) -> bool:
    if isinstance(wanted, list):
        return got in wanted
    return got is not None if wanted == "*" else bool(got == wanted)


@pytest.mark.parametrize("folder", CASES, ids=lambda p: f"{p.parent.name}-{p.name}")
def test_a_sample_is_judged_as_its_author_expects(folder: Path):
    if folder.parent.name not in agents.names():
        pytest.skip(f"{folder.parent.name} is not read yet")
    expected = json.loads((folder / "expected.json").read_text(encoding="utf-8"))
    snapshot = opened(folder, counted="findings" in expected)
    calls = {(c.exchange.recording, c.exchange.n): c for c in snapshot.calls if c.exchange}
    for wanted in expected["calls"]:
        if wanted.get("exchange") is None:
            continue
        call = calls[wanted["exchange"]["recording"], wanted["exchange"]["n"]]
        got = said(call)
        assert {k: (wanted[k], got[k]) for k in got if k in wanted and not agrees(wanted[k], got[k])} == {}, wanted
        difference, first = call.rebuilt.first_difference, wanted.get("first_difference")
        assert (difference is None) == (first is None), wanted
        if first is not None and difference is not None:
            assert difference.raw_offset == first.get("raw_offset", difference.raw_offset)
            assert difference.path.startswith(first.get("path", ""))
            assert difference.cls == first.get("cls", difference.cls)
    markers = {(m.kind, m.call) for m in snapshot.markers}
    assert {(m["kind"], m["call"]) for m in expected.get("markers", [])} <= markers
    findings = {(f.code, f.calls) for f in snapshot.findings}
    assert {(f["code"], tuple(f["calls"])) for f in expected.get("findings", [])} <= findings


def test_there_are_samples():
    assert len(CASES) >= 12
