"""omp's recorded sessions through the whole path: what must rebuild is equal; one letter changed shows at that letter."""

from __future__ import annotations

import json
import random
import shutil
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import ctxscope
from ctxscope.agents import omp, pi
from ctxscope.agents.omp import checksum
from ctxscope.model import Body, Config, Learned
from tests.conftest import needs_captures
from tests.omp_cases import CASES, FOLDER, Capture, capture, log_of

pytestmark = needs_captures
LISTED = [item.path for item in omp.learnable]
LATE = {"omp_i_shake_on": [7, 8, 9, 10], "omp_p_poll": [4, 5, 6]}
"""Calls whose tool results were pruned in the file since."""


@pytest.fixture(autouse=True)
def no_vocabulary(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tokens are not asked about here; loading the vocabulary for each case would take longer than all the rest."""
    monkeypatch.setattr("ctxscope.analysis.vocabulary.encoding", lambda _: None)


@pytest.mark.parametrize("name", CASES)
def test_every_call_that_can_be_is_equal_and_only_listed_paths_are_learned(name: str) -> None:
    inspection = ctxscope.open(FOLDER / name)
    about = capture(name).case
    seen: dict[int, str] = {}
    for call in inspection.snapshot.calls:
        assert call.exchange is not None
        seen[call.exchange.n] = call.rebuilt.state
        view = inspection.view(call.n)
        assert {p.path for p in view.pieces if p.provenance in ("learned", "echoed")} <= set(LISTED)
        assert {p.path for p in view.pieces if p.provenance == "learned"} <= {"/system", *LISTED}
        if call.rebuilt.state == "equal":
            assert view.served is not None
            assert b"".join(p.data for p in view.pieces) == view.served.data
            assert call.rebuilt.scope == "body"
    inspection.close()
    late = LATE.get(name, [])
    assert {n: seen[n] for n in about["wire"]["main"]} == {
        n: "differs" if n in late else "equal" for n in about["wire"]["main"]
    }
    assert all(seen[n] == "not_logged" for n in about["wire"]["summary"])


@pytest.mark.parametrize("name", LATE)
def test_a_call_made_before_a_prune_says_why_it_differs(name: str) -> None:
    inspection = ctxscope.open(FOLDER / name)
    causes = {c.rebuilt.first_difference.cause for c in inspection.snapshot.calls if c.rebuilt.first_difference}
    markers = [(m.kind, m.call, len(m.dropped)) for m in inspection.snapshot.markers]
    inspection.close()
    (cause,) = causes
    assert "rewritten in place after the request" in cause
    assert markers == [("prune", 11 if name == "omp_i_shake_on" else None, 1)]


def test_what_a_follower_saw_is_what_was_sent(tmp_path: Path) -> None:
    """The file after each step put in place of the one before; the versions seen are kept for the next opening, too."""
    case = FOLDER / "omp_i_shake_on"
    (final,) = case.glob("log/.omp/agent/sessions/*/*.jsonl")
    target = tmp_path / final.relative_to(case)
    target.parent.mkdir(parents=True)
    shutil.copytree(case / "wire", tmp_path / "wire")
    inspection = None
    for snap in [*sorted(case.glob("snap/s*.jsonl")), final]:
        shutil.copyfile(snap, tmp_path / "new")
        (tmp_path / "new").replace(target)
        if inspection is None:
            inspection = ctxscope.open(tmp_path)
        else:
            inspection.poll()
    assert inspection is not None
    states = Counter(c.rebuilt.state for c in inspection.snapshot.calls)
    inspection.close()
    assert states == {"equal": 11}
    again = ctxscope.open(tmp_path)
    assert Counter(c.rebuilt.state for c in again.snapshot.calls) == {"equal": 11}
    again.close()


@pytest.mark.parametrize("name", [c for c in CASES if "goog" not in c])
@pytest.mark.parametrize("role", ["user", "assistant", "toolResult", "branch_summary", "custom_message", "compaction"])
def test_one_letter_changed_in_the_log_shows_at_that_letter(name: str, role: str) -> None:
    case = capture(name)
    changed = _one_letter(case, role, random.Random(f"{name} {role}"))
    if changed is None:
        pytest.skip(f"no {role} text in a request")
    altered, key, old, new = changed
    clean, calls = case.calls(), altered.calls()
    assert [c.n for c in calls] == [c.n for c in clean]
    holding = {c.n for c in calls if any(e.key == key for e in c.point.context)}
    assert holding
    for before, made in zip(clean, calls, strict=True):
        if not before.equal:
            continue
        assert made.equal is (made.n not in holding)
        if not made.equal:
            assert made.rebuilt is not None
            served, other = made.body.data, made.rebuilt.data
            at = next(i for i, (a, b) in enumerate(zip(served, other, strict=True)) if a != b)
            assert (served[at : at + 1], other[at : at + 1]) == (old, new)


def _one_letter(case: Capture, role: str, chance: random.Random) -> tuple[Capture, str, bytes, bytes] | None:
    """A copy of the case with one letter of one entry replaced; its key, the letter, the new letter."""
    lines = case.data.split(b"\n")
    held = {e.key for p in omp.requests(case.log()) for e in p.context}
    rows = [json.loads(line) if line else {} for line in lines]
    fit = [i for i, r in enumerate(rows) if r.get("id") in held and _text(r, role)]
    if not fit:
        return None
    at = chance.choice(fit)
    words = _text(rows[at], role)
    spot = chance.choice([i for i, c in enumerate(words) if c.isascii() and c.isalpha()])
    new = chance.choice([c for c in "abcdefghijklmnopqrstuvwxyz" if c != words[spot]])
    spelled = json.dumps(words, ensure_ascii=False).encode()
    other = json.dumps(words[:spot] + new + words[spot + 1 :], ensure_ascii=False).encode()
    where = lines[at].rfind(b'"output_text"') if b"openaiResponsesHistory" in lines[at] else 0
    assert spelled in lines[at][where:]
    lines[at] = lines[at][:where] + lines[at][where:].replace(spelled, other, 1)
    return replace(case, data=b"\n".join(lines)), rows[at]["id"], words[spot].encode(), new.encode()


def _text(row: dict[str, Any], role: str) -> str:
    message = row.get("message", {})
    if role == "compaction" and row["type"] == role:
        return str(row["summary"])
    if row["type"] == role:
        return str(row.get("summary") or row["content"])
    if message.get("role") != role or message.get("stopReason") == "aborted":
        return ""
    texts = [b["text"] for b in message["content"] if b["type"] == "text"]
    return next((t for t in texts if any(c.isalpha() and c.isascii() for c in t)), "")


@pytest.mark.parametrize("name", CASES)
def test_a_log_read_bit_by_bit_says_what_it_says_at_once(name: str) -> None:
    case = capture(name)
    whole, grown = case.log(), log_of(b"")
    for entry in whole.versions:
        grown.add(entry)
        omp.requests(grown)
        omp.markers(grown)
        omp.notices(grown)
    ours, theirs = omp.requests(grown), omp.requests(whole)
    assert [(p.key, p.lineage, p.branched_from, p.turn, len(p.context)) for p in ours] == [
        (p.key, p.lineage, p.branched_from, p.turn, len(p.context)) for p in theirs
    ]
    assert omp.markers(grown) == omp.markers(whole)
    assert omp.notices(grown) == omp.notices(whole)
    for one, other in zip(reversed(ours), reversed(theirs), strict=True):
        made, again = (omp.rebuild(log, p, Config(), Learned()) for log, p in ((grown, one), (whole, other)))
        assert made is not None
        assert again is not None
        assert made.data == again.data


@pytest.mark.parametrize("name", CASES)
def test_every_recorded_checksum_follows_from_its_body(name: str) -> None:
    found = [checksum.verifies(body.data) for _, body, _ in capture(name).exchanges()]
    assert set(found) == ({True} if capture(name).case["api"] == "anthropic-messages" else {None})


def test_a_checksum_of_another_rule_is_echoed_as_its_digits_alone() -> None:
    case = capture("omp_a_anth")
    log = case.log()
    before: list[Any] = []
    for _, body, ids in case.exchanges():
        data = checksum.MARK.sub(lambda m: m[0][:-6] + b"00fee;", body.data)
        served = Body(data, body.api, body.segments, body.model, f"other {len(before)}")
        point = next(p for p in omp.requests(log) if ids & p.ids)
        learned = omp.learn(log, point, served, ctxscope.agents.at_hand(before))
        made = omp.rebuild(log, point, Config(), learned)
        before.append((point, served))
        assert made is not None
        assert made.data == data
        assert [p.data for p in made.pieces if p.path == "/system/0/text"] == [b"00fee"]
        assert any("checksum" in words for words in learned.hypotheses)


def test_images_and_frames_come_from_blobs() -> None:
    case = capture("omp_d_snapframes")
    made = case.calls()[-1]
    assert made.equal
    assert made.rebuilt is not None
    outside = [p for p in made.rebuilt.pieces if p.external]
    assert len(outside) == len(case.side) == 5
    assert all(p.provenance == "logged" and p.place is not None for p in outside)
    bare = replace(case, side={}).calls()[-1]
    assert not bare.equal
    assert len([n for n in omp.notices(log_of(case.data)) if "blob" in n]) == 5


@pytest.mark.parametrize("name", CASES)
def test_usage_counts_each_answer_once(name: str) -> None:
    case = capture(name)
    rows = [json.loads(line) for line in case.data.splitlines()]
    once = {m["responseId"]: m["usage"] for r in rows if (m := r.get("message", {})).get("responseId")}
    points = [p for p in omp.requests(case.log()) if p.answer is not None]
    if "goog" not in name:
        assert len(points) == len(once)
        assert sum(p.stored_usage.output or 0 for p in points if p.stored_usage) == sum(
            u["output"] for u in once.values()
        )


def test_discovery_finds_each_recorded_session_and_no_other_agents() -> None:
    for name in CASES:
        case = capture(name)
        (path,) = (p for ref in omp.discover(case.folder / "log") for p in ref.paths)
        assert path == case.folder / case.case["log"]["paths"][0]
        head = path.read_bytes()[:65536]
        assert omp.claims(path, head) > 0.9
        assert pi.claims(path, head) < 0.5
        assert not list(pi.discover(case.folder / "log"))


def test_no_file_of_another_agent_is_claimed() -> None:
    for path in FOLDER.parent.glob("*/*/log/**/*"):
        if path.is_file() and path.parts[-1] != "x" and "omp" not in path.relative_to(FOLDER.parent).parts[0]:
            assert omp.claims(path, path.read_bytes()[:65536]) <= 0.5, path


@pytest.mark.parametrize("name", ["omp_d_compact_anth", "omp_f_tree", "omp_s_steer", "omp_g_maxtok", "omp_x_abort"])
def test_markers_tell_what_happened(name: str) -> None:
    inspection = ctxscope.open(FOLDER / name)
    found = [(m.kind, m.call) for m in inspection.snapshot.markers]
    inspection.close()
    wanted = {
        "omp_d_compact_anth": [("compaction", 6), ("compaction", 8)],
        "omp_f_tree": [("rewind", 6), ("rewind", 9)],
        "omp_s_steer": [("steer", 2), ("steer", 5)],
    }
    assert found == wanted.get(name, [])


def test_the_estimate_behind_a_compaction_is_the_logged_one() -> None:
    """``tokensAfter`` is omp's own estimate; for a model whose tokenizer it does not know."""
    case = capture("omp_d_compact_resp")
    log = case.log()
    after = {e.place.number: e.data["tokensAfter"] for e in log.entries if e.kind == "compaction"}
    answers = [p for p in omp.requests(log) if p.answer is not None]
    for line, tokens in after.items():
        point = next(p for p in answers if p.place.number > line)
        asked = point.context[-1].data["message"]["content"][0]["text"]
        assert omp.estimates(log, point)[0].tokens == tokens + (len(asked.encode()) + 3) // 4
    assert omp.estimates(capture("omp_a_anth").log(), omp.requests(capture("omp_a_anth").log())[0]) == ()


@pytest.mark.parametrize("name", CASES)
def test_what_is_not_known_is_counted_and_changes_nothing(name: str) -> None:
    """A kind of record and a field of each envelope that no version had, and the envelopes' keys the other way round."""
    case = capture(name)
    rows = [json.loads(line) for line in case.data.splitlines()]
    turned = [dict(reversed([*row.items(), ("novel", 1)])) for row in rows]
    turned.append(
        {"type": "unheard_of", "id": "ffffffff", "parentId": rows[-1]["id"], "timestamp": rows[-1]["timestamp"]}
    )
    lines = (json.dumps(row, ensure_ascii=False, separators=(",", ":")).encode() for row in turned)
    altered = replace(case, data=b"\n".join(lines) + b"\n")
    assert [(c.n, c.equal) for c in altered.calls()] == [(c.n, c.equal) for c in case.calls()]
    told = [n for n in omp.notices(altered.log()) if n not in omp.notices(case.log())]
    assert len(told) == 2
    assert "unheard_of" in told[0]
    assert f"{len(rows)} fields" in told[1]


@pytest.mark.parametrize("name", ["omp_f_tree", "omp_d_snapframes", "omp_g_maxtok"])
def test_any_cut_of_a_log_can_be_read(name: str) -> None:
    data = capture(name).data
    for end in random.Random(name).sample(range(len(data)), 60):
        log = log_of(data[:end])
        omp.markers(log)
        omp.notices(log)
        for point in omp.requests(log):
            omp.rebuild(log, point, Config(), Learned())
