"""Recorded Claude Code sessions of 1.0, 2.0 and 2.1: what must rebuild is equal, and every byte says where it is from."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from pathlib import Path

import pytest

import ctxscope
from ctxscope.agents import claude_code
from ctxscope.agents.claude_code.records import request_digest
from ctxscope.model import CallView
from tests.claude_code_cases import CASES, PUBLIC, log_of, opened, transcripts
from tests.conftest import CAPTURES, needs_captures
from tests.session_cases import covered, look, rebuild_of

pytestmark = needs_captures
RECORDED = [case for case in CASES if case.name.startswith("cc332")]
CHAINED = [case for case in CASES if case not in RECORDED]


@pytest.fixture(autouse=True)
def no_vocabulary(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("ctxscope.analysis.vocabulary.encoding", lambda _: None)


@pytest.mark.parametrize("case", CASES, ids=lambda p: p.name)
def test_every_call_that_must_rebuild_is_equal(case: Path):
    _, views = opened(case)
    wanted = rebuild_of(case)["exact"]
    assert {n: views[n].call.rebuilt.state for n in wanted} == dict.fromkeys(wanted, "equal")
    assert {views[n].call.rebuilt.scope for n in wanted} == {"body" if case in RECORDED else "semantic"}


@pytest.mark.parametrize("case", RECORDED, ids=lambda p: p.name)
def test_a_recorded_request_leaves_only_billing_and_ids_to_learn(case: Path):
    for view in joined(case):
        borrowed = {p.path for p in view.pieces if p.provenance in ("learned", "echoed")}
        assert borrowed == {"/system/0/text", "/metadata"}
        found = covered(view)
        assert {part for part, p in found if p in ("learned", "echoed")} == {"system", "metadata"}


@pytest.mark.parametrize("case", CHAINED, ids=lambda p: p.name)
def test_of_the_conversation_only_reminders_and_forms_are_borrowed(case: Path):
    for view in joined(case):
        for piece in view.pieces:
            if piece.path.startswith("/messages"):
                assert piece.provenance == "echoed"
                words = piece.data.decode()
                assert "<system-reminder>" in words or words in ('[{"type":"text","text":', "}", "]"), words


@pytest.mark.parametrize("case", CHAINED, ids=lambda p: p.name)
def test_the_head_is_taken_once_a_thread_and_then_held(case: Path):
    seen: set[tuple[object, ...]] = set()
    for view in sorted(joined(case), key=lambda v: v.call.n):
        kind = (view.call.session, view.call.lineage, view.call.model)
        tools = {p.provenance for p in view.pieces if p.path == "/tools"}
        assert tools <= {"learned" if kind in seen else "echoed"}
        seen.add(kind)


def joined(case: Path) -> list[CallView]:
    _, views = opened(case)
    return [v for n, v in views.items() if v.call.entry is not None and v.call.rebuilt.state == "equal"]


def test_calls_the_log_cannot_tell_differ_where_the_case_says():
    _, views = opened(CAPTURES / "claude_code" / "cc112_misc")
    difference = views[2].call.rebuilt.first_difference
    assert difference is not None
    assert (difference.path, "does not log" in difference.cause) == ("/messages/2/content/0", True)
    _, views = opened(CAPTURES / "claude_code" / "cc10103_compact")
    for n in (13, 15):
        difference = views[n].call.rebuilt.first_difference
        assert difference is not None
        assert difference.path.startswith("/messages/0/content/1")
        assert "summary of a compaction" in difference.cause


@pytest.mark.parametrize("case", RECORDED, ids=lambda p: p.name)
def test_without_its_records_a_newer_log_is_read_by_its_chain(case: Path, tmp_path: Path):
    """They are optional: another setting, or the client's own cleaning up, leaves them out (claude_code.md §2, §4.1)."""
    shutil.copytree(case / "log", tmp_path / "log")
    for path in transcripts(tmp_path):
        path.chmod(0o600)
        path.parent.chmod(0o700)
        kept = [line for line in path.read_bytes().split(b"\n") if b'"type":"api-request' not in line]
        path.write_bytes(b"\n".join(kept))
    calls = look(tmp_path / "log", case / "wire")
    wanted = rebuild_of(case)["exact"]
    assert {n: (calls[n].rebuilt.state, calls[n].rebuilt.scope) for n in wanted} == dict.fromkeys(
        wanted, ("equal", "semantic")
    )


@pytest.mark.parametrize(("number", "first"), [(3, 1), (24, 2), (44, 4), (71, 10)])
def test_a_line_is_believed_against_a_record_that_repeats_it(number: int, first: int, tmp_path: Path):
    """A prompt, a text the client wrote itself, two results: what is changed is the line alone."""
    case = CAPTURES / "claude_code" / "cc332_misc"
    shutil.copytree(case / "log", tmp_path / "log")
    path = next(p for p in transcripts(tmp_path) if p.stem.startswith("3841"))
    path.chmod(0o600)
    lines = path.read_bytes().split(b"\n")
    row = json.loads(lines[number - 1])
    content = row["message"]["content"]
    words = content if isinstance(content, str) else content[0]["content"]
    words = words if isinstance(words, str) else words[0]["text"]
    at = next(i for i in range(len(words) - 1, -1, -1) if words[i] in "aeiou")
    old, new = (json.dumps(w, ensure_ascii=False).encode() for w in (words, f"{words[:at]}y{words[at + 1 :]}"))
    lines[number - 1] = lines[number - 1].replace(old, new, 1)
    path.write_bytes(b"\n".join(lines))
    before, calls = opened(case)[1], look(tmp_path / "log", case / "wire")
    main = [n for n, v in before.items() if v.call.lineage == "main" and n < 15]
    assert [n for n in calls if calls[n].rebuilt.state == "differs"] == [n for n in main if n >= first]
    for n in (n for n in main if n >= first):
        difference = calls[n].rebuilt.first_difference
        assert difference is not None
        body = (case / "wire" / f"{n:04d}.req").read_bytes()
        assert body[difference.raw_offset : difference.raw_offset + 1].decode() == words[at]


@pytest.mark.parametrize("case", RECORDED, ids=lambda p: p.name)
def test_the_digest_of_a_record_is_that_of_its_request(case: Path):
    rows = [json.loads(line) for path in transcripts(case) for line in path.read_bytes().splitlines()]
    kept = {row["requestDigest"]: row["params"]["betas"] for row in rows if row["type"] == "api-request"}
    for n in rebuild_of(case)["exact"]:
        body = (case / "wire" / f"{n:04d}.req").read_bytes()
        assert any(request_digest(body, betas) == digest for digest, betas in kept.items())


MARKERS = {
    "cc2030_compact": [("compaction", 985011, None, 0), ("compaction", 15251, None, 0)],
    "cc332_compact": [("compaction", 985015, 2658, 2), ("restore", None, None, 0), ("compaction", 13290, 2649, 1),
                      ("restore", None, None, 0)],
}  # fmt: skip
"""By case: kind, tokens before and after, lines kept."""


@pytest.mark.parametrize("name", MARKERS)
def test_compactions_are_found_with_what_they_dropped(name: str):
    snapshot, views = opened(CAPTURES / "claude_code" / name)
    assert [(m.kind, m.before_tokens, m.after_tokens) for m in snapshot.markers] == [m[:3] for m in MARKERS[name]]
    served = {v.call.n: n for n, v in views.items()}
    events = json.loads((CAPTURES / "claude_code" / name / "case.json").read_text())["events"]
    wanted = [e["n"] for e in events if e["type"] == "compaction"]
    assert [served[m.call] for m in snapshot.markers if m.kind == "compaction" and m.call] == wanted
    for marker, (kind, _, _, kept) in zip(snapshot.markers, MARKERS[name], strict=True):
        if kind == "compaction":
            assert marker.dropped
            assert (f"{kept} were kept" in marker.where) is bool(kept)


@pytest.mark.parametrize(("name", "after"), [("cc112_misc", [15]), ("cc332_misc", [15]), ("cc10103_a", [12, 16])])
def test_the_seam_of_a_fork_is_marked(name: str, after: list[int]):
    snapshot, views = opened(CAPTURES / "claude_code" / name)
    numbers = {v.call.n: n for n, v in views.items()}
    found = [m for m in snapshot.markers if m.kind == "resume"]
    assert sorted(numbers[m.call] for m in found if m.call) == after
    assert all("continues session" in m.where for m in found)
    assert all(view.call.point for view in views.values() if view.call.entry)


@pytest.mark.parametrize("name", ["cc112_misc", "cc332_misc", "cc10103_a"])
def test_copied_calls_count_once(name: str):
    snapshot, _ = opened(CAPTURES / "claude_code" / name)
    rows = {}
    for path in transcripts(CAPTURES / "claude_code" / name):
        for row in map(json.loads, path.read_bytes().splitlines()):
            if row["type"] == "assistant":
                rows[row["message"]["id"]] = row["message"]["usage"]["output_tokens"]
    logged = [c for c in snapshot.calls if c.entry is not None and c.kind != "retry"]
    assert len(logged) == len(rows)
    assert sum(c.usage.output for c in logged if c.usage and c.usage.output) == sum(rows.values())


PUBLISHED = {
    "claude_agent-sessions_small_2.1.80-220.jsonl": (2, 5, ["compaction", "compaction"]),
    "claude_ccviewer_1.0.98_real_774k.jsonl": (170, 51933, []),
    "claude_ccviewer_1af7_real_27k.jsonl": (7, 953, []),
    "claude_claude-code-log_synthetic.jsonl": (5, 445, []),
    "claude_entire_2.1.12_local_command.jsonl": (22, None, []),
    "claude_entire_2.1.37.jsonl": (4, 53, []),
    "claude_entire_2.1.5_compact.jsonl": (20, 3653, ["compaction"]),
}
"""Calls, output tokens (``None``: the log holds placeholders), compactions; as their README says, or counted by hand."""


@pytest.mark.parametrize("path", PUBLIC, ids=lambda p: p.name)
def test_published_logs_are_counted_once_an_answer(path: Path):
    log = log_of(line for line in path.read_bytes().split(b"\n") if line)
    points = claude_code.requests(log)
    calls, output, compactions = PUBLISHED[path.name]
    answered = [p for p in points if p.answer is not None]
    names = {json.loads(p.answer.raw)["message"]["id"] for p in answered if p.answer}
    assert (len(answered), len(names)) == (calls, calls)
    spent = [p.stored_usage.output for p in answered if p.stored_usage]
    assert sum(s for s in spent if s is not None) == (output or 0)
    assert any(s is None for s in spent) is (output is None)
    assert any("first event" in n for n in claude_code.notices(log)) is (output is None)
    assert [m.kind for m in claude_code.markers(log) if m.kind == "compaction"] == compactions
    for point in answered[:20]:
        assert claude_code.rebuild(log, point, claude_code.config(log), ctxscope.model.Learned()) is not None


def test_a_published_session_shows_its_inline_subagents():
    path = next(p for p in PUBLIC if "774k" in p.name)
    points = claude_code.requests(log_of(path.read_bytes().splitlines()))
    kinds = Counter(p.kind for p in points if p.answer)
    assert kinds == {"main": 9, "subagent": 161}
    assert all((p.kind == "subagent") == p.lineage.startswith("sub:") for p in points)
    assert all(p.turn for p in points)
