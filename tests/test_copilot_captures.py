"""Recorded Copilot CLI sessions: every call equal as values, what is not logged echoed once and held, changes shown."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import ctxscope
from ctxscope.agents import copilot
from tests.conftest import needs_captures
from tests.copilot_cases import CASES, copied, log_file, log_of, views

pytestmark = needs_captures
each_case = pytest.mark.parametrize("case", CASES, ids=lambda p: p.name)


@pytest.fixture(autouse=True)
def no_vocabulary(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("ctxscope.analysis.vocabulary.encoding", lambda _: None)


@each_case
def test_every_call_is_equal_as_values_and_each_byte_has_its_source(case: Path):
    found = views(log_file(case), case / "wire")
    rebuild = json.loads((case / "case.json").read_text())["rebuild"]
    assert found.keys() >= {*rebuild["exact"], *(i["n"] for i in rebuild["inexact"])}
    for view in found.values():
        assert (view.call.rebuilt.state, view.call.rebuilt.scope) == ("equal", "semantic")
        assert view.call.joined_by == "id"
        assert view.call.rebuilt.coverage is not None
        assert view.call.rebuilt.coverage.unknown == 0
        for piece in view.pieces:
            if piece.provenance in ("learned", "echoed"):
                assert any(item.covers(piece.path) for item in copilot.learnable), piece.path
            else:
                assert piece.path == ""


@each_case
def test_what_is_not_logged_is_echoed_where_it_shows_first_and_held_from_then_on(case: Path):
    seen: set[tuple[str, bytes]] = set()
    for view in views(log_file(case), case / "wire").values():
        for piece in view.pieces:
            if piece.provenance == "echoed":
                assert (piece.path, piece.data) not in seen
                seen.add((piece.path, piece.data))
            elif piece.provenance == "learned":
                assert (piece.path, piece.data) in seen
    deep = {path for path, _ in seen if path.startswith("/messages")}
    assert {p.rpartition("/")[2] for p in deep} == {"reasoning_details", "arguments"}


@each_case
def test_only_resumed_runs_lose_what_was_live_and_the_marker_says_so(case: Path):
    inspection = ctxscope.open(case)
    try:
        events = json.loads((case / "case.json").read_text())["events"]
        resumes = [(m.kind, inspection.snapshot.calls[m.call - 1].exchange.n) for m in inspection.snapshot.markers]
        assert resumes == [("resume", e["n"]) for e in events if e["type"] == "resume"]
        assert not inspection.snapshot.notices
        breaks = [c.exchange.n for c in inspection.snapshot.calls if c.cache.verdict == "break"]
        assert breaks == [n for _, n in resumes]
        for call in inspection.snapshot.calls:
            assert call.reply.state == "equal"
            assert call.reply.echo in ("equal", None)
    finally:
        inspection.close()


def text_of(row: dict, kind: str) -> str | None:
    data = row["data"]
    if kind == "tool.execution_complete":
        return data.get("result", {}).get("content") or data.get("error", {}).get("message")
    return data.get({"user.message": "transformedContent"}.get(kind, "content"))


@each_case
@pytest.mark.parametrize(
    ("kind", "member"),
    [
        ("user.message", "content"),
        ("assistant.message", "content"),
        ("tool.execution_complete", "content"),
        ("system.message", "content"),
    ],
)
def test_one_letter_changed_in_the_log_shows_in_exactly_the_calls_behind_it(
    case: Path, kind: str, member: str, tmp_path: Path
):
    path = log_file(case)
    lines = path.read_bytes().splitlines()
    rows = [json.loads(line) for line in lines]
    at = next(i for i, r in enumerate(rows) if r["type"] == kind and text_of(r, kind))
    words = text_of(rows[at], kind)
    spot = next(i for i in range(len(words) - 1, -1, -1) if words[i].isascii() and words[i].isalpha())
    other = words[:spot] + ("x" if words[spot] != "x" else "y") + words[spot + 1 :]
    old, new = (json.dumps(w, ensure_ascii=False).encode() for w in (words, other))
    assert old in lines[at]
    lines[at] = lines[at].replace(old, new)
    found = views(copied(tmp_path, lines), case / "wire")
    answers = [i for i, r in enumerate(rows) if r["type"] == "assistant.message"]
    behind = {n for n, i in enumerate(answers, 1) if i > at}
    assert {n for n, v in found.items() if v.call.rebuilt.state == "differs"} == behind
    for n in behind:
        difference = found[n].call.rebuilt.first_difference
        assert difference is not None
        assert difference.path.startswith("/messages/")
        assert difference.path.endswith(f"/{member}")
        served = found[n].served.data
        assert served[difference.raw_offset : difference.raw_offset + 1] == words[spot].encode()


@each_case
def test_a_changed_argument_shows_at_the_argument(case: Path, tmp_path: Path):
    path = log_file(case)
    lines = path.read_bytes().splitlines()
    at = next(i for i, line in enumerate(lines) if b'"type":"assistant.message"' in line and b'"command":"' in line)
    lines[at] = lines[at].replace(b'"command":"', b'"command":"x', 1)
    found = views(copied(tmp_path, lines), case / "wire")
    differs = {n: v.call.rebuilt.first_difference.path for n, v in found.items() if v.call.rebuilt.state == "differs"}
    assert set(differs.values()) == {"/messages/2/tool_calls/0/function/arguments"}
    assert min(differs) == 2
    assert found[1].call.rebuilt.state == "equal"


@each_case
def test_a_reordered_argument_is_another_argument(case: Path, tmp_path: Path):
    path = log_file(case)
    lines = path.read_bytes().splitlines()
    at = next(i for i, line in enumerate(lines) if b'"type":"assistant.message"' in line and b'"command":"' in line)
    row = json.loads(lines[at])
    asked = row["data"]["toolRequests"][0]
    asked["arguments"] = dict(reversed(asked["arguments"].items()))
    lines[at] = json.dumps(row, ensure_ascii=False).encode()
    found = views(copied(tmp_path, lines), case / "wire")
    assert found[2].call.rebuilt.first_difference.path == "/messages/2/tool_calls/0/function/arguments"


@each_case
def test_a_body_of_another_size_than_logged_is_told(case: Path, tmp_path: Path):
    wire = tmp_path / "wire"
    wire.mkdir()
    for file in (case / "wire").iterdir():
        (wire / file.name).write_bytes(file.read_bytes())
    body = (wire / "0002.req").read_bytes().replace(b'"reasoning.text"', b'"reasoning.texts"', 1)
    (wire / "0002.req").write_bytes(body)
    inspection = ctxscope.open(log_file(case), recording=str(wire))
    try:
        assert [n for n in inspection.snapshot.notices if f"the recorded body has {len(body):,}" in n]
    finally:
        inspection.close()
    states = {n: v.call.rebuilt.state for n, v in views(log_file(case), wire).items()}
    assert states[2] == "equal"  # opaque, and taken from there
    assert states[3] == "differs"  # and held: the next one has the value that was really sent


@each_case
def test_a_message_the_log_does_not_imply_differs(case: Path, tmp_path: Path):
    wire = tmp_path / "wire"
    wire.mkdir()
    for file in (case / "wire").iterdir():
        (wire / file.name).write_bytes(file.read_bytes())
    body = json.loads((wire / "0003.req").read_bytes())
    body["messages"].insert(2, {"role": "user", "content": "and the weather"})
    (wire / "0003.req").write_bytes(json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode())
    found = views(log_file(case), wire)
    assert found[3].call.rebuilt.state == "differs"
    assert found[3].call.rebuilt.first_difference.path.startswith("/messages/2")


@each_case
def test_usage_records_and_replies_report_the_same(case: Path):
    lines = log_file(case).read_bytes().splitlines()
    totals = json.loads(lines[-1])["data"]["modelMetrics"]
    (told,) = (m["usage"] for m in totals.values())
    points = copilot.requests(log_of(lines))
    assert sum(p.stored_usage.output for p in points) == told["outputTokens"]
    assert sum(p.stored_usage.cache_read for p in points) == told["cacheReadTokens"]
    assert sum(p.stored_usage.reported for p in points) == told["inputTokens"]
