"""Recorded sessions of real agents through the whole path: what must rebuild is equal, and one changed letter is found."""

from __future__ import annotations

import json
import random
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

import ctxscope
from ctxscope import agents
from ctxscope.model import Call
from tests.conftest import CAPTURES, needs_captures

CASES = sorted([*CAPTURES.glob("pi/*/case.json"), *CAPTURES.glob("hermes/*/case.json")])


def calls_of(folder: Path) -> dict[int, Call]:
    inspection = ctxscope.open(folder)
    try:
        return {c.exchange.n: c for c in inspection.snapshot.calls if c.exchange}
    finally:
        inspection.close()


@needs_captures
@pytest.mark.parametrize("case", CASES, ids=lambda p: p.parent.name)
def test_every_call_that_must_rebuild_is_equal(case: Path):
    exact = json.loads(case.read_text(encoding="utf-8"))["rebuild"]["exact"]
    calls = calls_of(case.parent)
    assert [n for n in exact if calls[n].rebuilt.state != "equal"] == []
    for n in exact:
        coverage = calls[n].rebuilt.coverage
        assert coverage is not None
        assert coverage.unknown == 0


@needs_captures
@pytest.mark.parametrize("case", CASES, ids=lambda p: p.parent.name)
def test_only_what_the_agent_lists_as_absent_from_its_log_is_learned(case: Path):
    inspection = ctxscope.open(case.parent)
    for call in inspection.snapshot.calls:
        if call.session is None or call.entry is None:
            continue
        agent = agents.load(next(s.agent for s in inspection.snapshot.sessions if s.id == call.session))
        listed = [item.path for item in agent.learnable]
        borrowed = {p.path for p in inspection.view(call.n).pieces if p.provenance in ("learned", "echoed")}
        assert {p for p in borrowed if not any(p == path or p.startswith(f"{path}/") for path in listed)} == set()
    inspection.close()


def changed(content: Any, rng: random.Random) -> tuple[str, int] | None:
    """Replace one letter in one text of a logged message; the word it was in and the letter's place in it."""
    blocks = [b for b in content if b.get("type") == "text"]
    words = [(b, m) for b in blocks for m in re.finditer(r"[A-Za-z]{4,}", b["text"])]
    if not words:
        return None
    block, word = rng.choice(words)
    at = rng.randrange(len(word[0]))
    place = word.start() + at
    letter = "q" if block["text"][place] != "q" else "z"
    block["text"] = block["text"][:place] + letter + block["text"][place + 1 :]
    return word[0], at


@needs_captures
@pytest.mark.parametrize("role", ["user", "assistant", "toolResult"])
@pytest.mark.parametrize("name", ["pi16_a_anth", "pi16_a_chat", "pi16_a_resp", "pi16_a_goog", "pi073_a_anth"])
def test_one_changed_letter_is_found_and_the_calls_still_join(name: str, role: str, tmp_path: Path):
    source = CAPTURES / "pi" / name
    shutil.copytree(source, tmp_path / name)
    (log,) = (tmp_path / name / "log").rglob("*.jsonl")
    log.chmod(0o600)
    lines = log.read_bytes().split(b"\n")
    rng = random.Random(f"{name}-{role}")
    entries = [(i, json.loads(line)) for i, line in enumerate(lines) if line]
    places = [(i, e) for i, e in entries if e["type"] == "message" and e["message"]["role"] == role]
    index, entry, word, at = next(
        (i, e, *found) for i, e in rng.sample(places, len(places)) if (found := changed(e["message"]["content"], rng))
    )
    lines[index] = json.dumps(entry, ensure_ascii=False, separators=(",", ":")).encode()
    log.chmod(0o600)
    log.write_bytes(b"\n".join(lines))
    before, after = calls_of(source), calls_of(tmp_path / name)
    assert {n: c.entry is not None for n, c in before.items()} == {n: c.entry is not None for n, c in after.items()}
    differing = {n for n, c in after.items() if c.rebuilt.state == "differs"}
    # The log only grows: an entry is in the context of exactly the calls answered behind it.
    behind = {n for n, c in after.items() if c.entry and int(c.entry.place.split()[1]) > index + 1}
    assert differing == behind
    for n in differing:
        found = after[n].rebuilt.first_difference
        assert found is not None
        served = (source / "wire" / f"{n:04d}.req").read_bytes()
        assert served[found.raw_offset - at : found.raw_offset - at + len(word)] == word.encode()
