"""Where the Gemini CLI's chats are found, and what is taken for one."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from ctxscope.agents import gemini
from ctxscope.agents.gemini import disk
from ctxscope.model import CtxscopeError
from ctxscope.session.fold import SessionLog
from tests.gemini_cases import CONTEXT, Chat

CWD = "/home/x/port"


def write(path: Path, rows: list[dict]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(r) + "\n" for r in rows), encoding="utf-8")
    return path


def begun(identity: str = "s-1") -> list[dict]:
    project = hashlib.sha256(CWD.encode()).hexdigest()
    return [
        {"sessionId": identity, "projectHash": project, "startTime": "2026-01-01T10:00:00.000Z", "kind": "main"},
        {"$set": {"messages": [CONTEXT]}},
    ]


def chats(home: Path) -> Path:
    return home / ".gemini" / "tmp" / "port" / "chats"


def test_a_session_is_found_once_though_a_resume_left_a_second_file(tmp_path: Path) -> None:
    said = {"id": "u1", "type": "user", "content": [{"text": "hi"}]}
    main = write(chats(tmp_path) / "session-2026-01-01T10-00-s-1.jsonl", [*begun(), said])
    write(chats(tmp_path) / "session-2026-01-01T10-05-s-1.jsonl", begun())
    new = write(chats(tmp_path) / "session-2026-01-01T10-09-s-2.jsonl", begun("s-2"))
    assert [(r.id, r.paths) for r in gemini.discover(tmp_path)] == [("s-1", (main,)), ("s-2", (new,))]


@pytest.mark.parametrize("named", ["beside", "projects.json", "nowhere", "wrong"])
def test_the_directory_is_the_one_whose_hash_the_header_has(tmp_path: Path, named: str) -> None:
    path = write(chats(tmp_path) / "session-2026-01-01T10-00-s-1.jsonl", begun())
    if named in ("beside", "wrong"):
        (path.parent.parent / ".project_root").write_text(CWD if named == "beside" else "/elsewhere", encoding="utf-8")
    if named == "projects.json":
        (tmp_path / ".gemini" / "projects.json").write_text(
            json.dumps({"projects": {"/a": "a", CWD: "port"}}), encoding="utf-8"
        )
    (ref,) = gemini.discover(tmp_path)
    assert ref.directory == (CWD if named in ("beside", "projects.json") else None)
    assert ref.started == 1767261600.0


def test_chats_of_subagents_are_sources_of_the_session_and_may_appear_later(tmp_path: Path) -> None:
    path = write(chats(tmp_path) / "session-2026-01-01T10-00-s-1.jsonl", begun())
    (ref,) = gemini.discover(tmp_path)
    session = SessionLog.open(ref)
    session.poll()
    inner = Chat()
    inner.add(sessionId="a-1", projectHash="p", startTime=inner.now(), kind="subagent")
    inner.user("u", "task")
    inner.answer("g", "done")
    one = write(path.parent / "s-1" / "a-1.jsonl", inner.rows)
    two = write(path.parent / "a-1" / "b-2.jsonl", inner.rows)
    session.poll()
    keys = {spec.key: spec.log for spec in gemini.sources(session.ref)}
    assert keys == {"session": 0, "agent:a-1": 1, "agent:a-1/b-2": 2, "settings": 0}
    assert session.ref.paths == (path, one, two)
    assert [p.lineage for p in gemini.requests(session.log)] == ["sub:a-1", "sub:a-1/b-2"]
    session.close()


def test_only_the_header_s_form_is_claimed() -> None:
    sure = b'{"projectHash":"p","sessionId":"s","kind":"main"}\n'
    assert gemini.claims(Path("session-a.jsonl"), sure) > 0.5
    assert gemini.claims(Path("session-a.json"), sure) == 0
    for other in (b"", b"{", b"[]", b'{"sessionId":"s"}\n', b'{"sessionId":"","projectHash":"p"}\n', b"\xff\xfe"):
        assert gemini.claims(Path("session-a.jsonl"), other) == 0


def test_a_file_that_is_none_is_named_with_what_was_expected(tmp_path: Path) -> None:
    empty = write(tmp_path / "a.jsonl", [])
    with pytest.raises(CtxscopeError, match="an empty file"):
        gemini.refs(empty, tmp_path)
    with pytest.raises(CtxscopeError, match="cannot be read"):
        gemini.refs(tmp_path / "none.jsonl", tmp_path)


def test_a_session_id_never_leads_out_of_the_folder(tmp_path: Path) -> None:
    write(tmp_path / "x.jsonl", begun())
    path = write(chats(tmp_path) / "session-1.jsonl", begun("../../.."))
    (ref,) = disk.refs(path, tmp_path)
    assert [spec.key for spec in gemini.sources(ref)] == ["session", "settings"]
