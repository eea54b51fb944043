"""Where sessions of the harness are found, which file counts, and which belong together."""

from __future__ import annotations

from pathlib import Path

import pytest

import ctxscope
from ctxscope.agents import dsh, hermes, pi
from ctxscope.model import CtxscopeError, SessionRef
from tests.conftest import SAMPLES
from tests.samples.dsh_form import SessionLog, frame

CWD = "/home/ada/herbarium"


def put(
    home: Path, log: SessionLog, name: str = "session.v4.jsonl.zstd", group: str = "--home-ada-herbarium--"
) -> Path:
    path = home / ".dsh" / "sessions" / group / log.id / name
    path.parent.mkdir(parents=True, exist_ok=True)
    data = "".join(f"{line}\n" for line in log.lines()).encode()
    path.write_bytes(frame(data) if path.suffix == ".zstd" else data)
    return path


def found(home: Path) -> list[tuple[str, str]]:
    return [(ref.id, ref.paths[0].name) for ref in dsh.discover(home)]


def test_the_newest_generation_of_a_log_counts(tmp_path: Path) -> None:
    for version, name in ((0, "session.jsonl.zstd"), (3, "session.v3.jsonl.zstd"), (12, "session.v12.jsonl")):
        put(tmp_path, SessionLog("s", CWD, version=version), name)
    (tmp_path / ".dsh/sessions/--home-ada-herbarium--/s/session.lock").touch()
    assert found(tmp_path) == [("s", "session.v12.jsonl")]


def test_one_that_cannot_be_read_gives_way_to_the_one_before(tmp_path: Path) -> None:
    path = put(tmp_path, SessionLog("s", CWD), "session.v3.jsonl.zstd")
    path.with_name("session.v4.jsonl.zstd").write_bytes(b"")
    assert found(tmp_path) == [("s", "session.v3.jsonl.zstd")]


def test_sessions_are_found_in_every_group_and_below_the_harness_s_own_folder(tmp_path: Path) -> None:
    put(tmp_path, SessionLog("a", CWD))
    put(tmp_path, SessionLog("b", ""), group="_no-cwd")
    put(tmp_path, SessionLog("c", ""), group="elsewhere")
    assert [i for i, _ in found(tmp_path)] == ["a", "b"]
    assert [i for i, _ in found(tmp_path / ".dsh")] == ["a", "b"]


def test_a_reference_says_what_the_header_says(tmp_path: Path) -> None:
    path = put(tmp_path, SessionLog("s", CWD, 5.0, {"parentSession": "p"}))
    (ref,) = dsh.refs(path, tmp_path)
    assert (ref.id, ref.directory, ref.parent, ref.started) == ("s", CWD, "p", 1769936405.0)
    assert ref.size == path.stat().st_size


def test_a_log_is_claimed_by_its_first_line() -> None:
    line = SessionLog("s", CWD).lines()[0].encode() + b"\n"
    path = Path("session.v4.jsonl.zstd")
    assert dsh.claims(path, line) > 0.9
    assert dsh.claims(path, b"") == dsh.claims(path, b"[1]\n") == dsh.claims(path, b'{"type":"session"}\n') == 0
    assert dsh.claims(path, line[:20]) == 0


def test_no_other_agent_s_sample_is_claimed() -> None:
    for path in (p for p in SAMPLES.glob("[hp]*/*/log/**/*") if p.is_file()):
        assert dsh.claims(path, path.read_bytes()[:65536]) < 0.5
    for path in SAMPLES.glob("dsh/*/log/**/*.zstd"):
        assert pi.claims(path, path.read_bytes()) == hermes.claims(path, path.read_bytes()) == 0


def test_what_is_no_log_is_told_in_a_sentence(tmp_path: Path) -> None:
    path = tmp_path / "session.v4.jsonl.zstd"
    with pytest.raises(CtxscopeError, match="cannot be read"):
        tuple(dsh.refs(path, tmp_path))
    path.write_bytes(frame(b'{"type":"other"}\n'))
    with pytest.raises(CtxscopeError, match="a first line that is not it"):
        tuple(dsh.refs(path, tmp_path))


def family(home: Path, name: str) -> set[str]:
    ref = next(r for r in dsh.discover(home) if r.id == name)
    return {r.id for r in dsh.family(ref)}


def test_a_family_is_what_a_session_goes_on_from_and_what_goes_on_from_it(tmp_path: Path) -> None:
    parents = {"root": None, "fork": "root", "sub": "fork", "sibling": "root", "alone": None, "loop": "loop"}
    for name, parent in parents.items():
        put(tmp_path, SessionLog(name, CWD, more={"parentSession": parent} if parent else {}))
    assert family(tmp_path, "fork") == {"root", "sub"}
    assert family(tmp_path, "root") == {"fork", "sub", "sibling"}
    assert family(tmp_path, "alone") == family(tmp_path, "loop") == set()


def test_a_log_outside_its_layout_has_no_family(tmp_path: Path) -> None:
    assert not [*dsh.family(SessionRef("dsh", "s", (tmp_path / "x.zstd",), tmp_path))]


def test_an_older_generation_can_be_asked_for_by_name(tmp_path: Path) -> None:
    old = put(tmp_path, SessionLog("s", CWD, version=3), "session.v3.jsonl")
    put(tmp_path, SessionLog("s", CWD))
    inspection = ctxscope.open(old)
    (info,) = inspection.snapshot.sessions
    inspection.close()
    assert (info.agent, info.id, Path(info.log[0]).name) == ("dsh", "s", "session.v3.jsonl")
