"""Recorded sessions of the Gemini CLI: every call is equal, one letter changed shows, usage and markers are those recorded."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

import ctxscope
from ctxscope.agents import gemini
from ctxscope.model import Call
from tests.agent_cases import about, copied
from tests.conftest import CAPTURES, needs_captures
from tests.session_cases import look, served, unchanged

pytestmark = needs_captures
CASES = sorted(p.parent for p in CAPTURES.glob("gemini/*/case.json"))
TOOLS = CAPTURES / "gemini" / "gemini_tool3"
LETTERS = "abcdefghijklmnopqrstuvwxyz"


@pytest.fixture(autouse=True)
def no_vocabulary(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("ctxscope.analysis.vocabulary.encoding", lambda _: None)


@pytest.mark.parametrize("case", CASES, ids=lambda p: p.name)
def test_every_call_is_equal_by_its_whole_body(case: Path):
    calls = unchanged(case)
    assert sorted(calls) == about(case)["rebuild"]["exact"]
    assert {(c.rebuilt.state, c.rebuilt.scope) for c in calls.values()} == {("equal", "body")}


@pytest.mark.parametrize("case", CASES, ids=lambda p: p.name)
def test_contents_are_logged_but_for_signatures(case: Path):
    inspection = ctxscope.open(case)
    for call in inspection.snapshot.calls:
        for piece in inspection.view(call.n).pieces:
            borrowed = piece.provenance in ("learned", "echoed")
            assert borrowed == (piece.path != "")
            assert not piece.path.startswith("/contents") or piece.path.endswith("/thoughtSignature")
    inspection.close()


@pytest.mark.parametrize("case", CASES, ids=lambda p: p.name)
def test_a_dropped_answer_is_an_attempt_and_the_rest_is_kept_as_delivered(case: Path):
    events = about(case)["events"]
    repeated = {e["n"] for e in events if e["type"] == "dropped_answer"}
    calls = unchanged(case)
    assert {n for n, c in calls.items() if c.kind == "retry"} == repeated
    assert {c.reply.state for n, c in calls.items() if n not in repeated} == {"equal"}


def test_resumes_and_usage_are_those_recorded():
    inspection = ctxscope.open(TOOLS)
    snapshot = inspection.snapshot
    inspection.close()
    resumed = [e["n"] for e in about(TOOLS)["events"] if e["type"] == "resume"]
    assert [(m.kind, m.call) for m in snapshot.markers] == [("resume", n) for n in resumed]
    reported = {
        d["n"]: d["usage"]
        for d in map(json.loads, (TOOLS / "wire" / "index.jsonl").read_text(encoding="utf-8").splitlines())
    }
    for call in snapshot.calls:
        usage = call.usage
        assert usage is not None
        told = reported[call.exchange.n]
        assert (usage.reported, usage.cache_read, usage.output) == (told["prompt"], told["cached"], told["out"])


def changed(log: Path, role: str, chance: random.Random) -> tuple[str, str]:
    """One letter of one text replaced in each line that has it; the text before and after."""
    (path,) = log.rglob("session-*.jsonl")
    rows = [json.loads(line) for line in path.read_bytes().split(b"\n") if line]
    texts = [t for row in rows if "id" in row for t in texts_of(row, role)]
    around = chance.choice(texts)
    at = chance.choice([i for i, c in enumerate(around) if c in LETTERS])
    other = around[:at] + chance.choice([c for c in LETTERS if c != around[at]]) + around[at + 1 :]
    old, new = (json.dumps(t, ensure_ascii=False)[1:-1].encode() for t in (around, other))
    path.write_bytes(path.read_bytes().replace(old, new))
    return around, other


def texts_of(row: dict, role: str) -> list[str]:
    if role == "assistant":
        found = [row["content"]] if row["type"] == "gemini" else []
    elif role == "argument":
        found = [v for c in row.get("toolCalls", ()) for v in c["args"].values() if " " in v]
    else:
        parts = row["content"] if row["type"] == "user" else []
        found = [p["text"] for p in parts if "text" in p] if role == "user" else []
        found += [
            p["functionResponse"]["response"]["output"] for p in parts if role == "tool" and "functionResponse" in p
        ]
    return [t for t in found if any(c in LETTERS for c in t)]


@pytest.mark.parametrize("role", ["user", "assistant", "tool", "argument"])
@pytest.mark.parametrize("seed", range(3))
def test_one_letter_shows_at_that_letter_in_exactly_the_calls_that_hold_it(role: str, seed: int, tmp_path: Path):
    around, other = changed(copied(TOOLS, tmp_path), role, random.Random(f"{role} {seed}"))
    old = json.dumps(around, ensure_ascii=False)[1:-1].encode()
    at = next(
        i
        for i, (a, b) in enumerate(zip(old, json.dumps(other, ensure_ascii=False)[1:-1].encode(), strict=True))
        if a != b
    )
    after: dict[int, Call] = look(tmp_path / "log", TOOLS / "wire")
    for n, call in after.items():
        data = served(TOOLS, n).data
        holds = old in data
        assert call.rebuilt.state == ("differs" if holds else "equal"), n
        if holds:
            assert call.rebuilt.first_difference is not None
            start = call.rebuilt.first_difference.raw_offset - at
            assert data[start : start + len(old)] == old


@pytest.mark.parametrize("case", CASES, ids=lambda p: p.name)
def test_discovery_finds_the_session_and_its_directory(case: Path):
    (ref,) = gemini.discover(case / "log")
    assert [str(p.relative_to(case)) for p in ref.paths] == about(case)["log"]["paths"]
    root = next((case / "log").rglob("tmp/*/.project_root")).read_text(encoding="utf-8")
    assert ref.directory == root
