"""Where pi's sessions are found, and what is said of files that are none."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ctxscope.agents import pi
from ctxscope.model import CtxscopeError
from tests.pi_sessions import Script

HEADER = {"type": "session", "version": 3, "id": "abc", "timestamp": "2026-01-01T10:00:00.000Z", "cwd": "/p"}


def put(home: Path, name: str, data: bytes) -> Path:
    folder = home / ".pi" / "agent" / "sessions" / "--p--"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(data)
    return folder / name


def test_sessions_are_found_in_the_home_layout_only(tmp_path: Path) -> None:
    path = put(tmp_path, "2026_abc.jsonl", Script().bytes())
    (tmp_path / "stray.jsonl").write_bytes(Script().bytes())
    put(tmp_path, "empty.jsonl", b"")
    deeper = path.parent / "--q--"
    deeper.mkdir()
    (deeper / "x.jsonl").write_bytes(Script().bytes())
    (found,) = pi.discover(tmp_path)
    assert (found.id, found.directory, found.paths, found.size) == ("0-session", "/p", (path,), path.stat().st_size)


def test_a_fork_names_its_parent(tmp_path: Path) -> None:
    header = {**HEADER, "parentSession": "/h/sessions/--p--/2026-01-01T09-00-00-000Z_0d1e.jsonl"}
    path = put(tmp_path, "f.jsonl", json.dumps(header).encode() + b"\n")
    assert next(iter(pi.refs(path, tmp_path))).parent == "0d1e"


@pytest.mark.parametrize(
    ("first", "found"),
    [
        (b"", "an empty file"),
        (b'{"type":"message"}\n', "a first line that is not it"),
        (b"\x00\xff\n", "a first line that is not it"),
    ],
)
def test_what_is_no_session_is_refused_by_name(tmp_path: Path, first: bytes, found: str) -> None:
    path = put(tmp_path, "x.jsonl", first)
    with pytest.raises(CtxscopeError, match=found) as raised:
        pi.refs(path, tmp_path)
    assert str(path) in str(raised.value)
    assert '"type":"session"' in str(raised.value)


def test_a_missing_file_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(CtxscopeError, match=r"gone\.jsonl: cannot be read"):
        pi.refs(tmp_path / "gone.jsonl", tmp_path)


def test_claims_pi_headers_and_leaves_the_forks_to_the_fork() -> None:
    head = json.dumps(HEADER).encode() + b"\n"
    assert pi.claims(Path("s.jsonl"), head) == pytest.approx(0.9)
    assert pi.claims(Path("s.jsonl"), b'{"type":"title","title":"t"}\n' + head) <= 0.5
    assert pi.claims(Path("s.jsonl"), b'{"type":"user"}\n{"type":"user"}\n') == 0
    assert pi.claims(Path("s.db"), head) == 0


def test_side_files_are_optional(tmp_path: Path) -> None:
    path = put(tmp_path, "s.jsonl", Script().bytes())
    session, *side = pi.sources(next(iter(pi.refs(path, tmp_path))))
    assert (session.key, session.kind, session.optional) == ("session", "jsonl", False)
    assert [(s.key, s.kind, s.optional, s.path.parent) for s in side] == [
        (key, "whole", True, tmp_path / ".pi" / "agent") for key in ("settings", "models")
    ]
