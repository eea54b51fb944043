"""Which files are a team's own messages, which are nearly, and which are somebody else's."""

from __future__ import annotations

import json
import shutil
import sqlite3
import subprocess
from pathlib import Path

import pytest

import ctxscope
from ctxscope.agents import messages
from ctxscope.agents.reading.files import head as head_of
from ctxscope.model import CtxscopeError
from tests.conftest import CAPTURES, needs_captures
from tests.messages_cases import CALLS, CASES, CHAT_CASES, FULL, TALK, Case, chat_calls, compact, lines

OTHERS = (
    "aider",
    "claude_code",
    "cline",
    "codex",
    "copilot",
    "dsh",
    "gemini",
    "hermes",
    "kimi",
    "omp",
    "opencode",
    "pi",
    "public_logs",
    "pydantic_ai",
    "qwen",
)


def claim(path: Path) -> float:
    return messages.claims(path, path.read_bytes()[:65536])


@needs_captures
@pytest.mark.parametrize("agent", OTHERS)
def test_no_file_of_another_agent_is_claimed(agent: str) -> None:
    files = [p for p in (CAPTURES / agent).rglob("*") if p.is_file()]
    assert files
    assert {p: c for p in files if (c := messages.claims(p, head_of(p))) > 0} == {}


@needs_captures
@pytest.mark.parametrize("agent", OTHERS)
def test_nothing_is_discovered_at_another_agents_home(agent: str, monkeypatch: pytest.MonkeyPatch) -> None:
    folders = [p for p in CAPTURES.glob(f"{agent}/*/log") if p.is_dir()] or [CAPTURES / agent]
    for home in folders:
        monkeypatch.setenv("HOME", str(home))
        assert list(messages.discover(home)) == []
        monkeypatch.setenv("HOME", "/nowhere")
        assert [r for folder in (home, *home.rglob("*/")) for r in messages.discover(folder)] == []


@needs_captures
def test_no_body_or_index_of_a_recording_is_claimed() -> None:
    files = [p for p in CAPTURES.rglob("wire/*") if p.is_file()]
    assert {p for p in files[:4000] if claim(p) > 0} == set()


@pytest.mark.parametrize("name", CASES)
def test_own_forms_are_claimed_and_found_in_their_folder_only(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = CASES[name].write(tmp_path) / "log"
    assert claim(folder / CASES[name].file) == 0.55
    assert len(list(messages.discover(folder))) == 1
    assert list(messages.discover(tmp_path)) == []
    monkeypatch.setenv("HOME", str(folder))
    assert list(messages.discover(folder)) == []


def test_a_head_that_breaks_off_is_recognised(tmp_path: Path) -> None:
    long = [{"role": "system", "content": "x" * 90_000}, *TALK]
    for name, text in (
        ("a.json", json.dumps(long)),
        ("b.jsonl", lines(long)),
        ("c.json", json.dumps({"messages": long})),
    ):
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        assert claim(path) == 0.55
        assert len(list(messages.refs(path, tmp_path))) == 1


NEARLY = {
    "sender": ([{"sender": "human", "text": "Hi"}], "sender, text"),
    "share": ([{"conversations": [{"from": "human", "value": "Hi"}]}], "from, value"),
    "role": ([{"role": "human", "content": "Hi"}], "role is 'human'"),
    "content": ([{"role": "user", "words": "Hi"}], "without content"),
}


@pytest.mark.parametrize("name", NEARLY)
def test_what_is_nearly_one_is_told_what_is_wrong(name: str, tmp_path: Path) -> None:
    value, found = NEARLY[name]
    for suffix, text in ((".json", json.dumps(value)), (".jsonl", lines(value))):
        path = tmp_path / f"log{suffix}"
        path.write_text(text, encoding="utf-8")
        with pytest.raises(CtxscopeError) as told:
            ctxscope.open(path)
        assert str(path) in str(told.value)
        assert found in str(told.value)
        assert "expected OpenAI, Anthropic" in str(told.value)


def test_a_python_literal_is_told_from_json(tmp_path: Path) -> None:
    path = tmp_path / "log.json"
    path.write_text(repr(TALK), encoding="utf-8")
    with pytest.raises(CtxscopeError, match=r"single quotes.*json\.dumps"):
        ctxscope.open(path)


@pytest.mark.parametrize("text", ["{}", "[]", "[1,2]", '{"calls":[]}', "role,content\nuser,Hi\n", "null", '"text"', ""])
def test_other_json_is_not_claimed(text: str, tmp_path: Path) -> None:
    path = tmp_path / "data.json"
    path.write_text(text, encoding="utf-8")
    assert claim(path) == 0.0


def test_a_file_of_many_chats_gives_each_its_session(tmp_path: Path) -> None:
    other = [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Good day."}]
    Case(lines([FULL, other]), [*CALLS, *chat_calls(other, None)], file="chats.jsonl").write(tmp_path)
    inspection = ctxscope.open(tmp_path)
    assert [s.id for s in inspection.snapshot.sessions] == ["chats", "chats-2"]
    assert [(c.session, c.rebuilt.state) for c in inspection.snapshot.calls] == [("chats", "equal")] * 3 + [
        ("chats-2", "equal")
    ]
    inspection.close()


@pytest.mark.parametrize("stated", [True, False])
def test_requests_of_several_sessions_in_turn_are_told_apart(stated: bool, tmp_path: Path) -> None:
    other = [
        {"role": "user", "content": "Hello"},
        {"role": "assistant", "content": "Good day."},
        {"role": "user", "content": "Bye"},
        {"role": "assistant", "content": "Bye!"},
    ]
    two = chat_calls(other)
    mixed = [CALLS[0], two[0], CALLS[1], two[1], CALLS[2]]
    rows = [{**q, **({"session_id": f"s{1 + (c in two)}"} if stated else {})} for c in mixed for q in (c[0],)]
    Case(lines(rows), mixed).write(tmp_path)
    inspection = ctxscope.open(tmp_path)
    names = ["s1", "s2"] if stated else ["chat", "chat-2"]
    assert [c.session for c in inspection.snapshot.calls] == [names[i] for i in (0, 1, 0, 1, 0)]
    assert {c.rebuilt.state for c in inspection.snapshot.calls} == {"equal"}
    inspection.close()


def test_a_data_set_is_not_taken_for_sessions(tmp_path: Path) -> None:
    rows = [[{"role": "user", "content": f"Q{i}"}, {"role": "assistant", "content": f"A{i}"}] for i in range(80)]
    (tmp_path / "train.jsonl").write_text(lines([{"messages": r} for r in rows]), encoding="utf-8")
    assert list(messages.discover(tmp_path)) == []
    assert len(list(messages.refs(tmp_path / "train.jsonl", tmp_path))) == 80


def database(path: Path) -> Path:
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE chats (id INTEGER PRIMARY KEY, messages TEXT)")
    connection.execute("INSERT INTO chats VALUES (7, ?), (8, '[]')", (compact(FULL),))
    connection.execute(
        "CREATE TABLE messages (id INTEGER PRIMARY KEY, chat_id INTEGER, role, content, tool_calls, tool_call_id)"
    )
    for message in FULL:
        calls = compact(message["tool_calls"]) if "tool_calls" in message else None
        row = (message["role"], message["content"], calls, message.get("tool_call_id"))
        connection.execute(
            "INSERT INTO messages (chat_id, role, content, tool_calls, tool_call_id) VALUES (7, ?, ?, ?, ?)", row
        )
    connection.commit()
    connection.close()
    return path


ONE_COLUMN = "select messages from chats where id=7"
ONE_ROW_EACH = "select role, content, tool_calls, tool_call_id from messages where chat_id=7 order by id"


@pytest.mark.skipif(shutil.which("sqlite3") is None, reason="the sqlite3 command is not here")
@pytest.mark.parametrize(("options", "query"), [((), ONE_COLUMN), (("-json",), ONE_ROW_EACH)])
def test_the_one_line_export_of_the_readme_opens(options: tuple[str, ...], query: str, tmp_path: Path) -> None:
    """``sqlite3 app.db "select messages …" > chat.json``, opened beside a recording."""
    exported = subprocess.run(
        ["sqlite3", *options, str(database(tmp_path / "app.db")), query], capture_output=True, text=True, check=True
    ).stdout
    case = CHAT_CASES["array"]
    case.write(tmp_path / "case", exported)
    inspection = ctxscope.open(tmp_path / "case/log/chat.json", recording=str(tmp_path / "case/wire"))
    assert [c.rebuilt.state for c in inspection.snapshot.calls] == ["equal"] * 3
    inspection.close()


def test_the_same_by_python_alone(tmp_path: Path) -> None:
    connection = sqlite3.connect(database(tmp_path / "app.db"))
    (text,) = connection.execute(ONE_COLUMN).fetchone()
    connection.close()
    CHAT_CASES["array"].write(tmp_path / "case", text)
    inspection = ctxscope.open(tmp_path / "case")
    assert [c.rebuilt.state for c in inspection.snapshot.calls] == ["equal"] * 3
    inspection.close()
