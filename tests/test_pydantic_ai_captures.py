"""Recorded pydantic-ai conversations: whole bodies equal, the failed run not in the history, changes shown at the byte."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import ctxscope
from ctxscope.agents import pydantic_ai
from tests.conftest import needs_captures
from tests.pydantic_ai_cases import CASES, feed, log_of, views

pytestmark = needs_captures
each_case = pytest.mark.parametrize("case", CASES, ids=lambda p: p.name)


@pytest.fixture(autouse=True)
def no_vocabulary(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("ctxscope.analysis.vocabulary.encoding", lambda _: None)


@each_case
def test_calls_of_the_history_are_equal_and_the_failed_run_is_not_in_it(case: Path):
    about = json.loads((case / "case.json").read_text())["rebuild"]
    inspection = ctxscope.open(case)
    try:
        (session,) = inspection.snapshot.sessions
        assert session.scope == "body"
        calls = {c.exchange.n: c for c in inspection.snapshot.calls if c.exchange}
        assert {n for n, c in calls.items() if c.rebuilt.state == "equal"} == set(about["exact"])
        assert {n for n, c in calls.items() if c.rebuilt.state == "not_logged"} == {i["n"] for i in about["inexact"]}
        learned = {item.path for item in pydantic_ai.learnable}
        for n in about["exact"]:
            assert (calls[n].joined_by, calls[n].reply.state) == ("id", "equal")
            assert calls[n].reply.echo in ("equal", None)
            for piece in inspection.view(calls[n].n).pieces:
                assert (piece.path in learned) == (piece.provenance in ("learned", "echoed"))
                assert piece.provenance != "echoed" or n == min(about["exact"])
    finally:
        inspection.close()


@each_case
def test_cut_answers_are_told_although_their_state_is_complete(case: Path):
    events = json.loads((case / "case.json").read_text())["events"]
    cut = {e["n"] for e in events if e["type"] == "truncated_answer"}
    found, notices = views(case / "log", case / "wire")
    assert {n for n, v in found.items() if v.call.stop.state == "truncated"} == cut
    assert sum("the answer was cut" in n and "complete" in n for n in notices) == len(cut) - 1
    silent = [n for n in notices if "max_tokens 4096" in n and "2.51.0" in n]
    assert len(silent) == ("4096" in case.name)


@each_case
@pytest.mark.parametrize("file", ["history.jsonl", "history_5.json"])
def test_either_file_alone_gives_the_same(case: Path, file: str):
    found, _ = views(case / "log" / file, case / "wire")
    equal = {n for n, v in found.items() if v.call.rebuilt.state == "equal"}
    assert equal == set(json.loads((case / "case.json").read_text())["rebuild"]["exact"])


@each_case
def test_an_early_snapshot_alone_gives_the_calls_it_holds(case: Path):
    found, _ = views(case / "log/history_1.json", case / "wire")
    assert {n for n, v in found.items() if v.call.rebuilt.state == "equal"} == {1, 2}


@each_case
@pytest.mark.parametrize("kind", ["user-prompt", "text", "thinking", "tool-return"])
def test_one_letter_changed_shows_at_that_letter_in_exactly_the_calls_behind_it(case: Path, kind: str, tmp_path: Path):
    data = json.loads((case / "log/history_5.json").read_bytes())
    parts = ((i, p) for i, m in enumerate(data) for p in m["parts"] if p["part_kind"] == kind)
    at, part = next((i, p) for i, p in parts if isinstance(p["content"], dict) or letters(p["content"]))
    if isinstance(part["content"], dict):
        key = next(k for k, v in part["content"].items() if letters(v))
        old, part["content"][key] = part["content"][key], changed(part["content"][key])
    else:
        old, part["content"] = part["content"], changed(part["content"])
    path = tmp_path / "log/history.json"
    path.parent.mkdir()
    path.write_text(json.dumps(data, ensure_ascii=False), encoding="utf-8")
    found, _ = views(path, case / "wire")
    behind = {n for n, v in found.items() if v.call.entry and int(v.call.entry.place.split()[-1]) > at + 1}
    differs = {n for n, v in found.items() if v.call.rebuilt.state == "differs"}
    assert differs == behind
    spot = letters(old)[-1]
    for n in behind:
        difference = found[n].call.rebuilt.first_difference
        assert difference is not None
        assert difference.path.startswith("/messages")
        assert found[n].served.data[difference.raw_offset : difference.raw_offset + 1] == old[spot].encode()


def letters(content: object) -> list[int]:
    return [i for i, c in enumerate(content) if c.isascii() and c.isalpha()] if isinstance(content, str) else []


def changed(content: str) -> str:
    spot = letters(content)[-1]
    return content[:spot] + ("x" if content[spot] != "x" else "y") + content[spot + 1 :]


@each_case
def test_reordered_keys_of_a_result_show_and_those_of_the_envelope_do_not(case: Path, tmp_path: Path):
    data = [dict(reversed(m.items())) for m in json.loads((case / "log/history_5.json").read_bytes())]
    path = tmp_path / "log/history.json"
    path.parent.mkdir()
    path.write_text(json.dumps(data), encoding="utf-8")
    found, _ = views(path, case / "wire")
    assert sum(v.call.rebuilt.state == "equal" for v in found.values()) == len(found) - 1
    (part,) = data[2]["parts"]
    part["content"] = dict(reversed(part["content"].items()))
    path.write_text(json.dumps(data), encoding="utf-8")
    found, _ = views(path, case / "wire")
    assert {n for n, v in found.items() if v.call.rebuilt.state == "equal"} == {1}


@each_case
def test_a_file_that_grows_says_at_its_end_what_it_says_at_once(case: Path):
    data = (case / "log/history_5.json").read_bytes()
    log = log_of(b"")
    for end in [*range(1, len(data), 997), len(data)]:
        feed(log, data[:end])
        pydantic_ai.requests(log)
        pydantic_ai.notices(log)
    whole = log_of(data)
    mine, theirs = pydantic_ai.requests(log), pydantic_ai.requests(whole)
    assert [(p.key, p.ids, p.turn, p.stored_usage) for p in mine] == [
        (p.key, p.ids, p.turn, p.stored_usage) for p in theirs
    ]
    assert pydantic_ai.notices(log) == pydantic_ai.notices(whole)
