"""What would be sent after a restart, from logs as they stood before one, beside what was sent."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

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


def previewed(case: Path, n: int, folder: Path) -> NextRequest | None:
    cut = stood(case, n, folder / "case")
    inspection = ctxscope.open(cut / "log", recording=str(cut / "wire"))
    try:
        known = [found for found in inspection.next_requests() if found.body is not None]
        return max(known, key=lambda found: found.previous_n or 0, default=None)
    finally:
        inspection.close()


def content(body: Body) -> list[tuple[str, str, bytes]]:
    """Kind, role and bytes of each segment in cache order, what decides a request's parameters apart."""
    return [(s.kind, s.role or "", body.data[s.start : s.end]) for s in body.segments if s.kind != "param"]


def said(body: Body) -> list[tuple[str, Any]]:
    """Role and value of each segment of the conversation: reminders, cache marks and a text's form set aside."""
    found = ((role, json.loads(data)) for kind, role, data in content(body) if kind == "message")
    blocks = ((role, {"type": "text", "text": b} if isinstance(b, str) else b) for role, b in found)
    plain = [(role, {k: v for k, v in block.items() if k != "cache_control"}) for role, block in blocks]
    return [found for found in plain if not str(found[1].get("text", "")).startswith("<system-reminder>")]


def place(found: Sequence[tuple[Any, ...]]) -> int:
    """Index of the input."""
    return next(i for i, told in enumerate(found) if MARK.decode() in str(told[-1]))


def goes_on_behind_a_command(folder: Path) -> bool:
    """Whether the newest conversation ends with what a command of the client wrote, and no answer."""
    newest = max((folder / "case" / "log").rglob("*.jsonl"), key=lambda path: path.stat().st_size)
    kinds = [json.loads(line).get("type") for line in newest.read_bytes().split(b"\n") if line]
    return next(kind for kind in reversed(kinds) if kind in ("user", "assistant")) == "user"


def without_new_id(data: bytes) -> bytes:
    """A body up to its input, without the id that the input's own item is given only now."""
    return re.sub(rb'"id":"[^"]*",(?=[^{}]*\{?[^{}]*$)', b'"id":"",', data)


@pytest.mark.parametrize(("case", "n"), RESTARTS, ids=[f"{case.name}-{n}" for case, n in RESTARTS])
def test_the_first_request_after_a_restart_is_what_was_foretold(case: Path, n: int, tmp_path: Path):
    found = previewed(case, n, tmp_path)
    if found is None:
        assert goes_on_behind_a_command(tmp_path)
        pytest.skip("what is sent there is not known")
    assert found.body is not None
    assert found.previous_served
    real = given(case, n)
    if n in json.loads((case / "case.json").read_text(encoding="utf-8"))["wire"]["summary"]:
        assert any("a compaction comes first" in word for word in found.unknown)
        here = place(said(found.body))
        assert said(found.body)[:here] == said(real)[:here]
        return
    here = place(content(found.body))
    assert content(found.body)[:here] == content(real)[:here]
    if found.scope == "body":
        at = found.body.data.find(MARK)
        assert without_new_id(found.body.data[:at]) == without_new_id(real.data[:at])
