"""pi's recorded sessions: every call listed as exact is rebuilt byte for byte; one letter changed shows at that letter."""

from __future__ import annotations

import json
import random
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from ctxscope.agents import pi
from ctxscope.model import Learned
from tests.conftest import needs_captures
from tests.pi_sessions import CASES, Capture, capture, log_of

pytestmark = needs_captures
LEARNED_PATHS = {item.path for item in pi.learnable}


@pytest.mark.parametrize("name", CASES)
def test_every_exact_call_is_equal(name: str) -> None:
    case = capture(name)
    calls = case.calls()
    sources = Counter(dict.fromkeys(("logged", "derived", "learned", "echoed"), 0))
    for made in calls:
        assert made.rebuilt is not None
        for piece in made.rebuilt.pieces:
            sources[piece.provenance] += len(piece.data)
            assert piece.provenance not in {"learned", "echoed"} or piece.path in LEARNED_PATHS
    print(name, f"{sum(c.equal for c in calls)}/{len(case.exact)}", dict(sources))  # noqa: T201 - coverage is to be printed per case
    assert [c.n for c in calls if c.equal and c.n in case.exact] == case.exact
    assert all(c.equal for c in calls)


@pytest.mark.parametrize("name", [c for c in CASES if c.startswith("pi16")])
def test_a_log_of_1x_leaves_only_limits_to_learn(name: str) -> None:
    paths = {p.path for c in capture(name).calls() for p in c.rebuilt.pieces if p.provenance in {"learned", "echoed"}}
    assert paths <= {"/max_tokens", "/max_completion_tokens", "/max_output_tokens", "/generationConfig"}


@pytest.mark.parametrize("name", [c for c in CASES if "goog" not in c])
def test_limits_of_the_model_table_give_the_same_cap(name: str) -> None:
    case = capture(name)
    run = json.loads((case.folder / "config.json").read_text())
    side = {"models": {"providers": run["providers"]}, "settings": run["settings"]}
    known = replace(case, side={k: json.dumps(v).encode() for k, v in side.items()})
    for made in known.calls():
        assert made.equal
        assert not {p for p in made.learned.values if p.startswith("/max")}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("role", ["user", "assistant", "toolResult", "system"])
def test_one_letter_changed_in_the_log_shows_at_that_letter(name: str, role: str) -> None:
    case = capture(name)
    clean = case.calls()
    if any(c.learned.choice.get("threads") for c in clean):
        pytest.skip("a thread's follow-ups do not repeat the entry")
    changed = _one_letter(case, role, random.Random(f"{name} {role}"))
    if changed is None:
        pytest.skip(f"no {role} text in a request")
    altered, key, old, new = changed
    calls = altered.calls()
    assert [c.n for c in calls] == [c.n for c in clean]
    newest = Path(str(len(case.logs) - 1))
    holding = {c.n for c in calls if c.log.ref.paths == (newest,) and any(e.key == key for e in c.point.context)}
    assert holding
    for made in calls:
        assert made.equal is (made.n not in holding)
        if not made.equal:
            served, other = made.body.data, made.rebuilt.data
            at = next(i for i, (a, b) in enumerate(zip(served, other, strict=True)) if a != b)
            assert (served[at : at + 1], other[at : at + 1]) == (old, new)


def _one_letter(case: Capture, role: str, chance: random.Random) -> tuple[Capture, str, bytes, bytes] | None:
    """A copy of the case with one letter of one entry replaced; its key, the letter, the new letter."""
    lines = case.logs[-1].split(b"\n")
    held = {e.key for p in pi.requests(log_of(case.logs[-1])) for e in p.context}
    rows = [json.loads(line) if line else {} for line in lines]
    fit = [i for i, r in enumerate(rows) if r.get("message", {}).get("role") == role and r["id"] in held]
    fit = [i for i in fit if _text(rows[i], role)]
    if not fit:
        return None
    at = chance.choice(fit)
    words = _text(rows[at], role)
    spot = chance.choice([i for i, c in enumerate(words) if c.isascii() and c.isalpha()])
    letter = words[spot]
    new = chance.choice([c for c in "abcdefghijklmnopqrstuvwxyz" if c != letter])
    spelled = json.dumps(words, ensure_ascii=False).encode()
    other = json.dumps(words[:spot] + new + words[spot + 1 :], ensure_ascii=False).encode()
    assert spelled in lines[at]
    lines[at] = lines[at].replace(spelled, other, 1)
    return replace(case, logs=[*case.logs[:-1], b"\n".join(lines)]), rows[at]["id"], letter.encode(), new.encode()


def _text(row: dict, role: str) -> str:
    if role == "system":
        return row["message"]["sections"].get("preamble", "")
    return next(
        (
            b["text"]
            for b in row["message"]["content"]
            if b["type"] == "text" and any(c.isalpha() and c.isascii() for c in b["text"])
        ),
        "",
    )


@pytest.mark.parametrize("name", CASES)
def test_any_batches_give_the_same_points_and_bodies(name: str) -> None:
    """A log read bit by bit, asked at every step, says what it says when read at once."""
    data = capture(name).logs[-1]
    whole, grown = log_of(data), log_of(b"")
    for entry in whole.entries:
        grown.add(entry)
        pi.requests(grown)
    ours, theirs = pi.requests(grown), pi.requests(whole)
    assert [(p.key, p.lineage, p.branched_from, p.turn) for p in ours] == [
        (p.key, p.lineage, p.branched_from, p.turn) for p in theirs
    ]
    for ours_point, point in zip(reversed(ours), reversed(theirs), strict=True):
        made = pi.rebuild(grown, ours_point, pi.config(grown), Learned())
        assert made is not None
        assert made.data == pi.rebuild(whole, point, pi.config(whole), Learned()).data


@pytest.mark.parametrize("name", [c for c in CASES if c.startswith("pi16")])
def test_1x_stores_every_answer_as_it_was_delivered(name: str) -> None:
    """But for ids: pi makes up one where a server gives two calls the same."""
    case = capture(name)
    replies = {row["n"]: reply for row, _, reply in case.exchanges()}
    for made in case.calls():
        delivered = [replace(b, id="", path="") for b in replies[made.n].blocks]
        assert [replace(b, id="") for b in made.point.blocks or ()] == delivered


@pytest.mark.parametrize("name", [c for c in CASES if "compact" in c])
def test_the_compaction_estimate_is_the_logged_one(name: str) -> None:
    """tokensBefore is pi's own estimate, made behind the last answer."""
    log = log_of(capture(name).logs[-1])
    said = [e.data["tokensBefore"] for e in log.entries if e.kind == "compaction"]
    assert [m.before_tokens for m in pi.markers(log) if m.kind == "compaction"] == said
    before = [e for e in log.entries if e.kind == "compaction"]
    answers = {e.key: e for e in log.entries}
    totals = [answers[e.data["parentId"]].data["message"]["usage"]["totalTokens"] for e in before]
    assert said == totals


def test_discovery_finds_each_captured_session() -> None:
    for name in CASES:
        case = capture(name)
        found = sorted(str(p.relative_to(case.folder)) for ref in pi.discover(case.folder / "log") for p in ref.paths)
        assert found == sorted(str(Path(p)) for p in case.case["log"]["paths"])
