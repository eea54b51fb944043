"""No line and no value in one is too much for the reader of Claude Code, and a log read bit by bit says the same."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given as drawn
from hypothesis import settings
from hypothesis import strategies as st

from ctxscope.agents import Log, at_hand, claude_code
from ctxscope.model import Config, Learned, Place, Point, Record, SessionRef
from tests.claude_code_cases import (
    CASES,
    SESSION,
    Lines,
    asked,
    log_of,
    record,
    said,
    served,
    spelled,
    text,
    transcripts,
    use,
)
from tests.conftest import CAPTURES, needs_captures

WORDS = ["type", "text", "id", "content", "message", "tool_result", "uuid", "user", "api-request", "", "\ud800"]
ANY = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-5, 5)
    | st.floats(allow_nan=True)
    | st.text(max_size=3)
    | st.sampled_from(WORDS),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(WORDS), inner, max_size=3),
    max_leaves=5,
)


def whole() -> list[dict[str, Any]]:
    """A line of every kind that something is made of."""
    lines = Lines(version="2.1.332")
    lines.user("Sort both trays.", requestSessionId="x")
    lines.attach("skill_listing", content="- sift: Sift.", rendered=[{"content": "x"}])
    _, one, two = lines.answer("m1", text("Both."), use("t1", tray=1), use("t2", tray=2), requestRef="r1")
    lines.result("t2", "rye", parent=two)
    lines.result("t1", [text("oats")], parent=one)
    lines.add("progress", data={"type": "hook_progress", "hookName": "Stop"})
    (kept,) = lines.answer("m2", text("Done."), requestRef="r2")
    lines.add("system", subtype="microcompact_boundary", microcompactMetadata={"compactedToolIds": ["t1"]})
    lines.compact([kept])
    lines.attach("hook_additional_context", content=["wet"], hookName="SessionStart")
    lines.attach("queued_command", prompt="Skip.")
    lines.user([text("Next."), {"type": "image", "source": {}}])
    lines.add("assistant", message={"id": "e", "content": "x", "model": "<synthetic>"}, isApiErrorMessage=True)
    lines.user("Count.", None, isSidechain=True, agentId="ab")
    lines.add("system", subtype="local_command", content="<local-command-stdout>x</local-command-stdout>")
    shape = {"system": [text("s")], "tools": []}
    message = asked([text("Sort both trays.")])
    return [
        *lines.rows,
        {"type": "api-request-shape", "shapeHash": "s", "shape": shape},
        {"type": "api-request-blob", "hash": "h", "message": message},
        {"type": "api-request", "id": "r1", "shapeHash": "s", "params": {"model": "m"}, "keep": 0, "tail": ["h"]},
        {
            "type": "api-request", "id": "r2", "base": "r1", "keep": 1, "tail": ["k"], "params": {"model": "m"},
            "cacheControl": [{"path": ["messages", 0, "content", 0], "value": {}}], "shapeHash": "s",
        },
    ]  # fmt: skip


WHOLE = whole()
BODY = served(
    [asked([text("<system-reminder>\nx\n</system-reminder>"), text("Sort both trays.")]), said(text("Both."))]
)


def ask_all(log: Log) -> None:
    """Everything the face offers."""
    points = claude_code.requests(log)
    claude_code.markers(log)
    claude_code.notices(log)
    config = claude_code.config(log)
    for point in points:
        claude_code.endpoint(log, point)
        hash(claude_code.basis(log, point))
        claude_code.naive(log, point)
        claude_code.error_line(log, point)
        assert point.blocks is None or all(b.kind for b in point.blocks)
        for learned in (Learned(), claude_code.learn(log, point, BODY, at_hand())):
            made = claude_code.rebuild(log, point, config, learned)
            assert made is not None
            made.data.decode("utf-8", "surrogatepass")


def test_the_whole_is_read():
    log = log_of(map(spelled, WHOLE), {"agent:ab": [spelled(WHOLE[0])], "meta:ab": [spelled({"toolUseId": "t1"})]})
    ask_all(log)
    assert len(claude_code.requests(log)) >= 3


@settings(max_examples=200, deadline=None)
@drawn(st.data())
def test_no_value_in_any_place_is_too_much(data: st.DataObject):
    rows = json.loads(json.dumps(WHOLE))
    for _ in range(data.draw(st.integers(1, 6))):
        target: Any = data.draw(st.sampled_from(rows))
        while True:
            keys = list(target) if isinstance(target, dict) else list(range(len(target)))
            key = data.draw(st.sampled_from(keys))
            if isinstance(target[key], dict | list) and target[key] and data.draw(st.booleans()):
                target = target[key]
                continue
            target[key] = data.draw(ANY)
            break
    ask_all(log_of(json.dumps(row).encode() for row in rows))


@settings(max_examples=150, deadline=None)
@drawn(
    st.lists(st.binary(max_size=60) | st.sampled_from([spelled(r)[:n] for r in WHOLE for n in (9, 60, 4000)])),
    st.sampled_from(["session", "agent:ab", "meta:ab", "settings"]),
)
def test_no_bytes_are_too_much(lines: list[bytes], source: str):
    ask_all(log_of((), {source: lines}))


def test_a_line_whose_parents_go_in_circles_ends():
    lines = Lines()
    first = lines.user("One.")
    second = lines.user("Two.")
    lines.rows[0]["parentUuid"] = second
    lines.rows[1]["parentUuid"] = first
    lines.answer("m1", text("Yes."))
    lines.rows[2]["parentUuid"] = lines.rows[2]["uuid"]
    log = lines.log
    ask_all(log)
    assert any("parent" in n for n in claude_code.notices(log))


def test_a_line_that_left_and_one_that_came_again_are_taken():
    lines = Lines()
    lines.user("One.")
    lines.answer("m1", text("Yes."))
    log = lines.log
    assert len(claude_code.requests(log)) == 1
    again = json.loads(lines.lines[1])
    again["message"]["content"] = [text("No.")]
    for entry in claude_code.entries(record(2, spelled(again))):
        log.add(entry)
    (point,) = claude_code.requests(log)
    assert [b.text for b in point.blocks or ()] == ["No."]
    for entry in claude_code.entries(Record("session", "2", Place(0, "line 2"), None)):
        log.add(entry)
    ask_all(log)


def growing(files: dict[str, list[bytes]]) -> tuple[Log, list[Point]]:
    """A log asked after every line."""
    log = Log(SessionRef("claude_code", SESSION, (Path("main.jsonl"),), Path("/")))
    for at, (source, lines) in enumerate(files.items()):
        for number, line in enumerate(lines, 1):
            for entry in claude_code.entries(record(number, line, source, min(at, 1))):
                log.add(entry)
            claude_code.requests(log)
            claude_code.markers(log)
            claude_code.notices(log)
    return log, list(claude_code.requests(log))


def told(log: Log) -> list[Any]:
    points = claude_code.requests(log)
    rows: list[Any] = [(p.key, p.lineage, p.turn, p.branched_from, p.ids, p.stored_usage, p.blocks) for p in points]
    rows += [[str(e.place) for e in p.context] for p in points]
    for point in points:
        made = claude_code.rebuild(log, point, Config(), Learned())
        assert made is not None
        rows.append(made.data)
    return [*rows, claude_code.markers(log), claude_code.notices(log)]


def test_a_made_log_read_bit_by_bit_says_what_it_says_at_once():
    lines = [spelled(row) for row in WHOLE]
    grown, _ = growing({"session": lines})
    assert told(grown) == told(log_of(lines))


@needs_captures
def test_files_of_a_session_may_grow_by_turns():
    folder = CAPTURES / "claude_code" / "cc332_misc"
    main = next(p for p in transcripts(folder) if p.stem.startswith("3841"))
    sub = next(p for p in transcripts(folder) if p.name.startswith("agent-"))
    own, others = ([line for line in p.read_bytes().split(b"\n") if line] for p in (main, sub))
    at = len(own) - 23  # while the subagent runs
    turns = [*((line, "session", n) for n, line in enumerate(own[:at], 1))]
    turns += [(line, "agent:a6690b49d84dc942b", n) for n, line in enumerate(others, 1)]
    turns += [(line, "session", n) for n, line in enumerate(own[at:], at + 1)]
    log = Log(SessionRef("claude_code", SESSION, (Path("main.jsonl"),), Path("/")))
    for line, source, number in turns:
        for entry in claude_code.entries(record(number, line, source, int(source != "session"))):
            log.add(entry)
        if number % 5 == 0:
            claude_code.requests(log)
    assert told(log) == told(log_of(own, {"agent:a6690b49d84dc942b": others}))


@needs_captures
@pytest.mark.parametrize("case", CASES, ids=lambda p: p.name)
def test_a_recorded_log_read_bit_by_bit_says_what_it_says_at_once(case: Path):
    for path in transcripts(case):
        lines = [line for line in path.read_bytes().split(b"\n") if line]
        grown, points = growing({"session": lines})
        assert points or b'"assistant"' not in path.read_bytes()
        assert told(grown) == told(log_of(lines))


@needs_captures
def test_a_published_log_read_bit_by_bit_says_what_it_says_at_once():
    path = CAPTURES / "public_logs" / "claude_entire_2.1.5_compact.jsonl"
    lines = [line for line in path.read_bytes().split(b"\n") if line]
    grown, _ = growing({"session": lines})
    assert told(grown) == told(log_of(lines))
