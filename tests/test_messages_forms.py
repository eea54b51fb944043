"""A team's log in every form it may have: what was sent is rebuilt from it, byte for byte where the form allows."""

from __future__ import annotations

import copy
import json
import random
import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import ctxscope
from ctxscope.agents import messages
from ctxscope.model import CallView, Snapshot
from tests.conftest import CAPTURES, needs_captures
from tests.messages_cases import CALLS, CASES, CHAT_CASES, CLAUDE_CASES, TALK, Case, compact, jsonb, lines


@pytest.fixture(autouse=True)
def no_vocabulary(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ctxscope.analysis.vocabulary.encoding", lambda _: None)


def opened(folder: Path) -> tuple[Snapshot, list[CallView]]:
    inspection = ctxscope.open(folder)
    try:
        return inspection.snapshot, [inspection.view(call.n) for call in inspection.snapshot.calls if call.exchange]
    finally:
        inspection.close()


def borrowed(view: CallView) -> set[str]:
    return {p.path for p in view.pieces if p.provenance in ("learned", "echoed")}


@pytest.mark.parametrize("name", CASES)
def test_every_call_is_rebuilt_from_the_log(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    snapshot, views = opened(case.write(tmp_path))
    assert [v.call.rebuilt.state for v in views] == ["equal"] * len(case.exchanges)
    assert views[-1].call.rebuilt.scope == case.scope
    assert len(snapshot.sessions) == 1
    for view in views:
        assert view.served is not None
        assert b"".join(p.data for p in view.pieces) == view.served.data
        assert all(any(item.covers(path) for item in messages.learnable) for path in borrowed(view))
        assert not [p for p in view.pieces if p.provenance == "unknown"]


@pytest.mark.parametrize("name", CASES)
def test_what_was_said_is_logged(name: str, tmp_path: Path) -> None:
    """Every text of the conversation stands in a piece that is logged."""
    _, views = opened(CASES[name].write(tmp_path))
    for view in views:
        told = b"\0".join(p.data for p in view.pieces if p.provenance == "logged")
        for words in (b"How many", b"Twelve", b"Thanks", b"B-9"):
            assert view.served is not None
            assert told.count(words) == view.served.data.count(words)


@pytest.mark.parametrize("name", CASES)
def test_one_letter_changed_in_the_log_shows_at_that_letter(name: str, tmp_path: Path) -> None:
    case, chance = CASES[name], random.Random(name)
    anchors = [words for words in ("How many", "Twelve", "tally", "12 boxes") if words in case.log]
    assert len(anchors) == 3
    for number, anchor in enumerate(anchors):
        letter = chance.choice([i for i, c in enumerate(anchor) if c.isalpha()])
        other = anchor[:letter] + ("x" if anchor[letter] != "x" else "z") + anchor[letter + 1 :]
        _, views = opened(case.write(tmp_path / str(number), case.log.replace(anchor, other)))
        for view in views:
            assert view.served is not None
            holds = anchor.encode() in view.served.data
            assert (view.call.rebuilt.state == "differs") == holds, (anchor, view.call.n)
            if holds:
                difference = view.call.rebuilt.first_difference
                assert difference is not None
                at = view.served.data.index(anchor.encode()) + letter
                assert difference.raw_offset == at
                assert re.match(r"/(messages|input|contents)(/|$)", difference.path)


@pytest.mark.parametrize("name", [n for n, c in CASES.items() if c.file.endswith(".jsonl")])
def test_calls_before_the_change_stay_equal(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    changed = case.log.replace("And B-9?", "And B-8?").replace("Thanks", "Thonks")
    _, views = opened(case.write(tmp_path, changed))
    assert [v.call.rebuilt.state for v in views[:2]] == ["equal", "equal"]
    assert {v.call.rebuilt.state for v in views[2:]} <= {"differs"}


def test_the_first_call_shows_how_the_client_spells_and_it_is_held(tmp_path: Path) -> None:
    """A later call in another spelling differs: the form is never chosen call by call."""
    case = CHAT_CASES["lines"]
    folder = case.write(tmp_path)
    (folder / "wire/0003.req").write_text(json.dumps(CALLS[2][0]), encoding="utf-8")
    snapshot, views = opened(folder)
    assert [v.call.rebuilt.state for v in views] == ["equal", "equal", "differs"]
    assert views[2].call.rebuilt.first_difference.cls == "whitespace"
    assert any("compact, text raw" in words for words in snapshot.sessions[0].hypotheses)


@pytest.mark.parametrize("key", ["temperature", "tools", "model"])
def test_a_parameter_that_changes_later_differs(key: str, tmp_path: Path) -> None:
    """What the log does not hold is learned from the first call of a model, and not again."""
    calls = copy.deepcopy(list(CALLS))
    calls[1][0][key] = {"temperature": 0.3, "tools": [], "model": "m-2"}[key]
    _, views = opened(Case(CHAT_CASES["lines"].log, calls).write(tmp_path))
    states = [v.call.rebuilt.state for v in views]
    if key == "model":  # another model is another kind of call, with a head of its own
        assert states == ["equal", "equal", "equal"]
    else:
        assert states == ["equal", "differs", "equal"]
        assert views[1].call.rebuilt.first_difference.path.startswith(f"/{key}")
        assert "line 3" in views[1].call.rebuilt.first_difference.cause


@pytest.mark.parametrize("key", ["temperature", "tools", "model"])
def test_a_parameter_that_the_log_holds_is_not_learned(key: str, tmp_path: Path) -> None:
    calls = copy.deepcopy(list(CALLS))
    for request, _ in calls:
        request[key] = {"temperature": 0.3, "tools": [], "model": "m-2"}[key]
    _, views = opened(Case(CHAT_CASES["snapshots"].log, calls).write(tmp_path))
    assert {v.call.rebuilt.state for v in views} == {"differs"}
    assert {v.call.rebuilt.first_difference.path.split("/")[1] for v in views} == {key}


def test_a_message_that_was_left_out_shows(tmp_path: Path) -> None:
    calls = copy.deepcopy(list(CALLS))
    del calls[2][0]["messages"][1]
    _, views = opened(Case(CHAT_CASES["lines"].log, calls).write(tmp_path))
    assert [v.call.rebuilt.state for v in views] == ["equal", "equal", "differs"]
    assert views[2].call.rebuilt.first_difference.path == "/messages/1"


@pytest.mark.parametrize("name", ["lines", "snapshots", "spans"])
def test_a_message_that_was_put_in_shows(name: str, tmp_path: Path) -> None:
    calls = copy.deepcopy(list(CALLS))
    calls[2][0]["messages"].append({"role": "user", "content": "Be brief."})
    _, views = opened(Case(CASES[name].log, calls, file=CASES[name].file).write(tmp_path))
    assert [v.call.rebuilt.state for v in views] == ["equal", "equal", "differs"]
    assert views[2].call.rebuilt.first_difference.path == "/messages/6"


def test_a_reordered_tool_input_shows(tmp_path: Path) -> None:
    """Keys inside what the model sees are content."""
    case = CLAUDE_CASES["claude_lines"]
    log = case.log.replace('{"sku":"A-7","at":"Zürich"}', '{"at":"Zürich","sku":"A-7"}')
    assert log != case.log
    _, views = opened(case.write(tmp_path, log))
    assert [v.call.rebuilt.state for v in views] == ["equal", "differs", "differs"]
    assert views[1].call.rebuilt.first_difference.cls == "key_order"


def test_a_store_that_sorts_keys_is_told(tmp_path: Path) -> None:
    snapshot, _ = opened(CHAT_CASES["jsonb_column"].write(tmp_path))
    assert any("sorted" in words for words in snapshot.sessions[0].hypotheses)
    plain = CLAUDE_CASES["claude_lines"]
    ordered = lines([jsonb(json.loads(line)) for line in plain.log.splitlines()])
    _, views = opened(plain.write(tmp_path / "claude", ordered))
    assert {v.call.rebuilt.state for v in views} == {"equal"}


def test_the_log_wins_over_a_signature(tmp_path: Path) -> None:
    case = CLAUDE_CASES["claude_lines"]
    _, views = opened(case.write(tmp_path, case.log.replace("c2lnc2ln", "c2lnc2lX")))
    assert [v.call.rebuilt.state for v in views] == ["equal", "differs", "differs"]
    assert not any(path.endswith("signature") for v in views for path in borrowed(v))


def test_fields_that_a_team_adds_are_told_and_not_sent(tmp_path: Path) -> None:
    snapshot, _ = opened(CHAT_CASES["rows"].write(tmp_path))
    assert any("created_at" in notice and "(7)" in notice for notice in snapshot.notices)


def test_a_field_that_is_sent_is_found_out_once(tmp_path: Path) -> None:
    talk = [{**m, "trace": f"t{i}"} if m["role"] == "user" else m for i, m in enumerate(TALK)]
    kept = Case(lines(talk), CASES["lines"].exchanges and _calls_of(talk))
    snapshot, views = opened(kept.write(tmp_path))
    assert {v.call.rebuilt.state for v in views} == {"equal"}
    assert any("trace" in words for words in snapshot.sessions[0].hypotheses)


def _calls_of(talk: list[dict]) -> list:
    calls = copy.deepcopy(list(CALLS))
    for (request, _), count in zip(calls, (1, 3, 5), strict=True):
        request["messages"][1:] = talk[:count]
    return calls


def test_the_answers_and_their_tokens_are_those_stored(tmp_path: Path) -> None:
    snapshot, views = opened(CHAT_CASES["snapshots_with_replies"].write(tmp_path))
    assert [v.call.reply.state for v in views] == ["equal"] * 3
    assert [c.joined_by for c in snapshot.calls] == ["id"] * 3
    assert [c.turn for c in snapshot.calls] == [1, 1, 2]


def _untyped(value: Any) -> Any:
    """Blocks of text without their ``type``, which the API does not take."""
    if isinstance(value, list):
        return [_untyped(v) for v in value]
    if isinstance(value, dict):
        is_text = value.get("type") == "text" and "text" in value
        return {k: _untyped(v) for k, v in value.items() if not (is_text and k == "type")}
    return value


@pytest.mark.parametrize("name", CLAUDE_CASES)
@pytest.mark.parametrize("key", ["messages", "system"])
def test_a_block_without_its_type_differs(name: str, key: str, tmp_path: Path) -> None:
    calls = copy.deepcopy(list(CLAUDE_CASES[name].exchanges))
    for request, _ in calls:
        request[key] = _untyped(request[key])
    case = replace(CLAUDE_CASES[name], exchanges=calls)
    _, views = opened(case.write(tmp_path))
    if key == "messages" or '"system"' in case.log:
        assert "differs" in {v.call.rebuilt.state for v in views}
        assert {
            v.call.rebuilt.first_difference.path.split("/")[1] for v in views if v.call.rebuilt.first_difference
        } == {key}


def test_blocks_of_the_bundled_sample_without_their_type_differ(tmp_path: Path) -> None:
    sample = Path(__file__).parents[1] / "sample_sessions/messages/anthropic_trimmed"
    for key in ("messages", "system"):
        shutil.copytree(sample, tmp_path / key)
        for path in (tmp_path / key / "wire").glob("*.req"):
            request = json.loads(path.read_bytes())
            path.write_text(compact({**request, key: _untyped(request[key])}), encoding="utf-8")
        _, views = opened(tmp_path / key)
        states = [v.call.rebuilt.state for v in views]
        assert "differs" in states
        assert "equal" not in states


@needs_captures
def test_recorded_spans_rebuild_what_was_sent(tmp_path: Path) -> None:
    source = CAPTURES / "formats" / "otel_genai"
    for path in [source / "spans.jsonl", *(source / "wire").iterdir()]:
        target = tmp_path / path.relative_to(source)
        target.parent.mkdir(exist_ok=True)
        target.write_bytes(path.read_bytes())
    _, views = opened(tmp_path)
    assert [(v.call.rebuilt.state, v.call.rebuilt.scope, v.call.joined_by) for v in views] == [
        ("equal", "semantic", "id")
    ] * 2
    assert [v.call.reply.state for v in views] == ["equal"] * 2
    assert {p for v in views for p in borrowed(v)} == {"/stream", "/tool_choice"}
    log = (tmp_path / "spans.jsonl").read_text(encoding="utf-8")
    (tmp_path / "spans.jsonl").write_text(log.replace("21.5", "21.6"), encoding="utf-8")
    _, views = opened(tmp_path)
    assert [v.call.rebuilt.state for v in views] == ["equal", "differs"]
    assert views[1].call.rebuilt.first_difference.path == "/messages/3/content"


@needs_captures
def test_recorded_callbacks_of_litellm_rebuild_what_was_sent(tmp_path: Path) -> None:
    source = CAPTURES / "formats" / "litellm_callback"
    for path in [source / "pre_api.jsonl", *(source / "wire").iterdir()]:
        target = tmp_path / path.relative_to(source)
        target.parent.mkdir(exist_ok=True)
        target.write_bytes(path.read_bytes())
    snapshot, views = opened(tmp_path)
    assert [v.call.rebuilt.state for v in views] == ["equal"] * 4
    assert {words for s in snapshot.sessions for words in s.hypotheses} >= {
        "JSON is written compact, text raw",
        "JSON is written with spaces, text escaped to ASCII",
    }


def test_compact_is_what_clients_write() -> None:
    assert compact({"a": "ü"}) == '{"a":"ü"}'
