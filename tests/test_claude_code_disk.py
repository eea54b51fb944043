"""Where Claude Code keeps its files: sessions found, subagents' files never among them, kin told apart."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

import ctxscope
from ctxscope.agents import claude_code
from ctxscope.agents.reading import files
from ctxscope.model import CtxscopeError, SessionRef
from ctxscope.wire import anthropic_messages
from ctxscope.wire.body import make_body
from tests.claude_code_cases import CASES, PUBLIC, SESSION, Lines, asked, said, served, spelled, text
from tests.conftest import CAPTURES, needs_captures

PROJECT = Path(".claude") / "projects" / "-srv-seeds"


def put(home: Path, name: str, lines: list[bytes], project: Path = PROJECT) -> Path:
    path = home / project / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(line + b"\n" for line in lines))
    return path


def two_turns(session: str = SESSION) -> Lines:
    lines = Lines()
    lines.user("One.", sessionId=session)
    lines.answer("m1", text("First."), sessionId=session)
    return lines


def sub(session: str = SESSION) -> list[bytes]:
    lines = Lines(tag="b")
    lines.user("Warmup", isSidechain=True, agentId="ab12cd34", sessionId=session)
    lines.answer("s1", text("Ready."), isSidechain=True, agentId="ab12cd34", sessionId=session)
    return lines.lines


@needs_captures
@pytest.mark.parametrize("case", CASES, ids=lambda p: p.name)
def test_exactly_the_sessions_of_a_home_are_found(case: Path):
    found = {r.paths[0] for r in claude_code.discover(case / "log")}
    there = {p for p in (case / "log").rglob("*.jsonl") if not p.name.startswith("agent-")}
    assert found == there


@needs_captures
@pytest.mark.parametrize("path", PUBLIC, ids=lambda p: p.name)
def test_a_published_log_is_claimed_wherever_it_lies(path: Path):
    assert claude_code.claims(path, files.head(path)) >= 0.9
    (ref,) = claude_code.refs(path, path.parent)
    assert ref.id != path.stem


@needs_captures
def test_no_file_of_another_agent_is_claimed():
    for path in sorted(CAPTURES.rglob("*.jsonl")):
        if "claude" in str(path.relative_to(CAPTURES)) or path.name == "index.jsonl":
            continue
        assert claude_code.claims(path, files.head(path)) <= 0.5, path


def test_a_file_of_another_form_is_refused(tmp_path: Path):
    path = put(tmp_path, "x.jsonl", [b'{"type":"user","message":{"parts":[]},"uuid":"u","sessionId":"s"}'])
    assert claude_code.claims(path, path.read_bytes()) == 0
    with pytest.raises(CtxscopeError, match=r"x\.jsonl.*isSidechain"):
        claude_code.refs(path, tmp_path)
    assert list(claude_code.discover(tmp_path)) == []


@pytest.mark.parametrize(
    "name",
    [
        "agent-ab12cd34.jsonl",
        f"{SESSION}/subagents/agent-ab12cd34.jsonl",
        f"{SESSION}/subagents/wf/agent-ab12cd34.jsonl",
    ],
)
def test_a_subagent_s_file_is_a_source_of_its_session_as_soon_as_it_appears(tmp_path: Path, name: str):
    put(tmp_path, f"{SESSION}.jsonl", two_turns().lines)
    (ref,) = claude_code.discover(tmp_path)
    assert [s.key for s in claude_code.sources(ref)] == ["session", "settings", "settings:local"]
    inspection = ctxscope.open(tmp_path)
    path = put(tmp_path, name, sub())
    put(tmp_path, "agent-ffff0000.jsonl", sub("5e55a0ff-0000-4000-8000-00000000c0de"))
    (again,) = claude_code.discover(tmp_path)
    assert again.paths == ref.paths
    specs = {s.key: s for s in claude_code.sources(ref)}
    assert (specs["agent:ab12cd34"].path, specs["agent:ab12cd34"].log) == (path, 1)
    assert "agent:ffff0000" not in specs
    inspection.poll()
    calls = {c.lineage: c for c in inspection.snapshot.calls}
    inspection.close()
    assert calls.keys() == {"main", "sub:ab12cd34"}
    entry = calls["sub:ab12cd34"].entry
    assert entry is not None
    assert entry.log == 1


def test_known_files_keep_their_number(tmp_path: Path):
    put(tmp_path, f"{SESSION}.jsonl", two_turns().lines)
    later = put(tmp_path, f"{SESSION}/subagents/agent-b.jsonl", sub())
    (ref,) = claude_code.discover(tmp_path)
    ref = replace(ref, paths=(*ref.paths, later))
    put(tmp_path, f"{SESSION}/subagents/agent-a.jsonl", sub())
    numbers = {s.key: s.log for s in claude_code.sources(ref) if s.key.startswith("agent:")}
    assert numbers == {"agent:a": 2, "agent:b": 1}


OLDER, NEWER, NEWEST = (f"5e55a0{n}0-0000-4000-8000-00000000c0de" for n in "123")


def forks(home: Path) -> dict[str, SessionRef]:
    """Three sessions, each copying the lines of the one before; and one of another conversation."""
    lines = two_turns(OLDER)
    put(home, f"{OLDER}.jsonl", lines.lines)
    for at, name in enumerate((NEWER, NEWEST)):
        for row in lines.rows:
            row["sessionId"] = name
        lines.user(f"And {at}?", sessionId=name)
        lines.answer(f"n{at}", text("Yes."), sessionId=name)
        put(home, f"{name}.jsonl", lines.lines)
    other = Lines(tag="f")
    other.user("One.")
    put(home, f"{SESSION}.jsonl", other.lines)
    return {r.id: r for r in claude_code.discover(home)}


def test_a_fork_names_the_session_whose_lines_it_copied(tmp_path: Path):
    found = forks(tmp_path)
    assert {name: ref.parent for name, ref in found.items()} == {
        OLDER: None,
        NEWER: OLDER,
        NEWEST: NEWER,
        SESSION: None,
    }
    assert {r.id: r.parent for r in claude_code.family(found[NEWER])} == {OLDER: None, NEWEST: NEWER}
    assert list(claude_code.family(found[SESSION])) == []


def test_a_fork_of_a_session_that_went_on_is_known_by_the_origin_it_names(tmp_path: Path):
    lines = two_turns(OLDER)
    copied = [json.loads(line) for line in lines.lines]
    lines.user("Go on.", sessionId=OLDER)
    lines.answer("m2", text("Yes."), sessionId=OLDER)
    put(tmp_path, f"{OLDER}.jsonl", lines.lines)
    rows = [{**row, "sessionId": NEWER, "requestSessionId": OLDER} for row in copied]
    put(tmp_path, f"{NEWER}.jsonl", [spelled(row) for row in rows])
    assert {r.id: r.parent for r in claude_code.discover(tmp_path)} == {OLDER: None, NEWER: OLDER}


def test_a_family_opens_together_and_copied_calls_count_once(tmp_path: Path):
    forks(tmp_path)
    (tmp_path / "one").mkdir()
    inspection = ctxscope.open(tmp_path / PROJECT / f"{NEWEST}.jsonl")
    calls = inspection.snapshot.calls
    inspection.close()
    assert len([c for c in calls if c.session == NEWEST]) in (1, 3)
    assert len(calls) == 3


def compacted(home: Path) -> tuple[Lines, list[bytes]]:
    """A session that was compacted and went on, and what a fork of it copies: what is behind the boundary."""
    lines = two_turns(OLDER)
    at = len(lines.rows)
    lines.compact(trigger="manual")
    lines.user("Go on.", sessionId=OLDER)
    lines.answer("m2", text("Yes."), sessionId=OLDER)
    put(home, f"{OLDER}.jsonl", lines.lines)
    return lines, lines.lines[at:]


def test_a_fork_of_a_compacted_session_is_its_kin_and_its_copied_calls_count_once(tmp_path: Path):
    lines, copied = compacted(tmp_path)
    lines.user("And?", sessionId=NEWER)
    lines.answer("m3", text("No."), sessionId=NEWER)
    fork = put(tmp_path, f"{NEWER}.jsonl", [*copied, *lines.lines[-2:]])
    other = Lines(tag="f")
    other.compact()
    put(tmp_path, f"{SESSION}.jsonl", other.lines)
    found = {r.id: r for r in claude_code.discover(tmp_path)}
    assert {name: ref.parent for name, ref in found.items()} == {OLDER: None, NEWER: OLDER, SESSION: None}
    assert list(claude_code.family(found[SESSION])) == []
    inspection = ctxscope.open(fork)
    calls = [(c.session, c.entry.place) for c in inspection.snapshot.calls if c.entry]
    inspection.close()
    assert len(calls) == 3


def test_a_call_that_a_session_took_over_from_its_fork_is_the_fork_s(tmp_path: Path):
    """2.0 goes on in the first file with the lines of the fork (measured): the fork's request names the fork."""
    lines = two_turns(OLDER)
    lines.user("And?", sessionId=NEWER)
    lines.answer("m2", text("No."), sessionId=NEWER)
    put(tmp_path, f"{NEWER}.jsonl", lines.lines)
    lines.user("So?", sessionId=OLDER)
    lines.answer("m3", text("Well."), sessionId=OLDER)
    head = {"type": "queue-operation", "timestamp": "2026-02-01T08:00:00.000Z", "sessionId": OLDER}
    first = put(tmp_path, f"{OLDER}.jsonl", [spelled(head), *lines.lines])
    said_before = [asked("One."), said(text("First.")), asked("And?"), said(text("No.")), asked("So?")]
    wire = tmp_path / "wire"
    wire.mkdir()
    with (wire / "index.jsonl").open("wb") as index:
        for n, (session, upto) in enumerate(((OLDER, 1), (NEWER, 3), (OLDER, 5)), 1):
            headers = {"X-Claude-Code-Session-Id": session}
            index.write(spelled({"n": n, "t": float(n), "path": "/v1/messages", "headers": headers}) + b"\n")
            (wire / f"{n:04d}.req").write_bytes(served(said_before[:upto]).data)
            reply = {"id": f"m{n}", "type": "message", "role": "assistant", "stop_reason": "end_turn"}
            words = ("First.", "No.", "Well.")[n - 1]
            (wire / f"{n:04d}.res").write_bytes(spelled({**reply, "content": [text(words)], "usage": {}}))
    inspection = ctxscope.open(first, recording=str(wire))
    calls = [(c.session, c.joined_by, c.rebuilt.state) for c in inspection.snapshot.calls]
    inspection.close()
    assert calls == [(OLDER, "id", "equal"), (NEWER, "id", "equal"), (OLDER, "id", "equal")]


@needs_captures
@pytest.mark.parametrize(
    ("name", "old"), [("cc112_misc", "a06845fd"), ("cc332_misc", "3841ba2c"), ("cc10103_a", "e54f3391")]
)
def test_recorded_forks_have_parents(name: str, old: str):
    refs = {r.id: r for r in claude_code.discover(CAPTURES / "claude_code" / name / "log")}
    assert [r.id[:8] for r in refs.values() if r.parent is None] == [old]
    assert all(r.parent in refs for r in refs.values() if r.parent)


def test_a_request_names_its_session(tmp_path: Path):
    body = served([asked("One.")])
    assert claude_code.named({"x-claude-code-session-id": "s1"}, body).session == "s1"
    new = served(
        [asked("One.")],
        metadata={"user_id": json.dumps({"device_id": "d", "session_id": "s-2"}, separators=(",", ":"))},
    )
    assert claude_code.named({}, new).session == "s-2"
    old = served([asked("One.")], metadata={"user_id": "user_ab_account__session_s-3"})
    assert claude_code.named({}, old).session == "s-3"
    assert claude_code.named({}, body).session is None
    assert not list(tmp_path.iterdir())


def test_a_warm_up_of_2_0_names_a_session_that_never_comes_to_be():
    plain = json.loads(served([asked("Warmup")], metadata={"user_id": "user_ab_account__session_s-3"}).data)
    del plain["tools"]
    assert claude_code.named({}, make_body(spelled(plain), anthropic_messages, None)).session is None


def without_tools(messages: list[dict[str, object]], system: str) -> bytes:
    return spelled({"model": "m", "messages": messages, "system": [text(system)], "max_tokens": 9})


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (served([asked("One.")]).data, None),
        (
            served([asked("One."), said(text("Yes.")), asked("CRITICAL: Respond with TEXT ONLY. Sum up.")]).data,
            "compaction",
        ),
        (without_tools([asked("Name a title.")], "You name things."), "side"),
        (without_tools([asked([text("<system-reminder>\nx\n</system-reminder>"), text("Warmup")])], "You look."), None),
        (without_tools([asked("One."), said(text("Yes.")), asked("Two.")], "You talk."), None),
        (spelled({"model": "m", "messages": [asked("quota")], "max_tokens": 1}), "probe"),
    ],
)
def test_kinds_of_requests_are_told_by_fixed_texts(data: bytes, kind: str | None):
    assert claude_code.classify(make_body(data, anthropic_messages, None)) == kind


@needs_captures
@pytest.mark.parametrize("case", CASES, ids=lambda p: p.name)
def test_side_and_compaction_requests_are_told_from_the_others(case: Path):
    about = json.loads((case / "case.json").read_text())["wire"]
    for n in (*about["main"], *about["summary"], *about.get("subagent", ())):
        path = case / "wire" / f"{n:04d}.req"
        kind = claude_code.classify(make_body(path.read_bytes(), anthropic_messages, None))
        assert kind == ("compaction" if n in about["summary"] else None)


def test_a_moved_transcript_is_named_by_its_lines(tmp_path: Path):
    path = put(tmp_path, f"{SESSION}.jsonl", two_turns().lines)
    moved = tmp_path / "kept.jsonl"
    shutil.move(path, moved)
    (ref,) = claude_code.refs(moved, tmp_path)
    assert (ref.id, ref.directory, ref.parent) == (SESSION, "/srv/seeds", None)
