"""The recorded session of Qwen Code: every call is equal, the compression's too; one letter changed shows."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

import ctxscope
from ctxscope.agents import qwen
from tests.agent_cases import about, copied
from tests.conftest import CAPTURES, needs_captures
from tests.session_cases import look, served, unchanged

pytestmark = needs_captures
CASE = CAPTURES / "qwen" / "qwen_tool3"
SHORT = 9
"""A shorter text may stand in the system prompt or a tool by chance."""
LETTERS = "abcdefghijklmnopqrstuvwxyz"


@pytest.fixture(autouse=True)
def no_vocabulary(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("ctxscope.analysis.vocabulary.encoding", lambda _: None)


def test_every_call_is_equal_by_its_whole_body_the_summary_s_too():
    calls = unchanged(CASE)
    assert {(c.rebuilt.state, c.rebuilt.scope) for c in calls.values()} == {("equal", "body")}
    assert {n for n, c in calls.items() if c.kind == "compaction"} == set(about(CASE)["wire"]["summary"])
    assert {c.reply.state for c in calls.values()} == {"equal"}
    assert {c.joined_by for c in calls.values()} == {"id"}


def test_only_the_head_and_the_environment_are_borrowed():
    inspection = ctxscope.open(CASE)
    paths = {
        p.path
        for c in inspection.snapshot.calls
        for p in inspection.view(c.n).pieces
        if p.provenance in ("learned", "echoed")
    }
    assert paths == {"/messages/0", "/messages/1", "/tools", "/max_tokens"}
    inspection.close()


def test_markers_and_usage_are_those_recorded():
    inspection = ctxscope.open(CASE)
    snapshot = inspection.snapshot
    inspection.close()
    (event,) = (e for e in about(CASE)["events"] if e["type"] == "compaction")
    assert [(m.kind, m.call) for m in snapshot.markers] == [("compaction", event["n"])]
    reported = {
        d["n"]: d["usage"]
        for d in map(json.loads, (CASE / "wire" / "index.jsonl").read_text(encoding="utf-8").splitlines())
    }
    (ref,) = qwen.discover(CASE / "log")
    assert ref.id == snapshot.sessions[0].id
    for call in snapshot.calls:
        told = reported[call.exchange.n]
        assert (call.usage.reported, call.usage.cache_read, call.usage.output) == (
            told["prompt"],
            told["cached"],
            told["out"],
        )


def texts_of(row: dict, role: str) -> list[str]:
    parts = row.get("message", {}).get("parts", [])
    if role == "tool":
        return [v for p in parts if "functionResponse" in p for v in p["functionResponse"]["response"].values()]
    if role == "argument":
        return [v for p in parts if "functionCall" in p for v in p["functionCall"]["args"].values() if " " in v]
    wanted = {"user": "user", "assistant": "assistant", "thought": "assistant"}[role]
    return [
        p["text"]
        for p in parts
        if row["type"] == wanted and "text" in p and bool(p.get("thought")) == (role == "thought")
    ]


@pytest.mark.parametrize("role", ["user", "assistant", "thought", "tool", "argument"])
@pytest.mark.parametrize("seed", range(3))
def test_one_letter_shows_at_that_letter_in_exactly_the_calls_that_hold_it(role: str, seed: int, tmp_path: Path):
    chance = random.Random(f"{role} {seed}")
    (path,) = copied(CASE, tmp_path).rglob("*.jsonl")
    lines = path.read_bytes().split(b"\n")
    texts = [t for row in map(json.loads, filter(None, lines)) for t in texts_of(row, role) if len(t) > SHORT]
    around = chance.choice(texts)
    at = chance.choice([i for i, c in enumerate(around) if c in LETTERS])
    other = around[:at] + chance.choice([c for c in LETTERS if c != around[at]]) + around[at + 1 :]
    old, new = (json.dumps(t, ensure_ascii=False)[1:-1].encode() for t in (around, other))
    path.write_bytes(b"\n".join(line if b"ui_telemetry" in line else line.replace(old, new) for line in lines))
    sent = json.dumps(around, ensure_ascii=False)[1:-1]
    sent = (json.dumps(sent, ensure_ascii=False)[1:-1] if role == "argument" else sent).encode()
    for n, call in look(tmp_path / "log", CASE / "wire").items():
        holds = sent in served(CASE, n).data
        assert call.rebuilt.state == ("differs" if holds else "equal"), n
        if holds:
            start = call.rebuilt.first_difference.raw_offset
            near = served(CASE, n).data[max(0, start - len(sent)) : start + len(sent)]
            assert sent in near
