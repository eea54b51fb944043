"""Sessions that begin with a copy of another: what is copied counts once, and is told there."""

from __future__ import annotations

from pathlib import Path

import pytest

import ctxscope
from ctxscope.agents import dsh
from tests.dsh_cases import answer, begun, read, reference
from tests.samples.dsh_form import SessionLog, frame
from tests.samples.pi_form import Say

SEED_ENDS = "session/end-seed"


def parent(version: int) -> SessionLog:
    """A session with a title, a refused attempt, an answer, a process that went on, and a second answer."""
    log = begun(version)
    block = {"id": "t", "content": [{"type": "text", "text": "Generate the session title from this JSON array: []"}]}
    route = {"provider": "deepseek-official", "model": "small"}
    log.event(1.1, "session/title-llm-request", {"route": route, "messageSeqs": [4], "messages": [block]})
    log.event(1.2, "session/title", {"title": "Look", "messageSeqs": [4], "source": {"kind": "provider"}})
    log.event(1.5, "llm/retry", {"retryId": "r", "retry": 1, "failure": {"code": "SERVER"}})
    log.event(1.7, "llm/retry-started", {"retryId": "r", "retry": 1})
    if version == 4:
        log.accepted(1.8, len(log.records) - 1)
    answer(log, Say("one"))
    log.ended(3.0, 1, 1, whole=True)
    log.event(3.1, SEED_ENDS, {})
    log.turn(4.0, 2, "two")
    log.user(4.0, "two")
    answer(log, Say("again"), step=(2, 1))
    log.ended(5.0, 2, 1, whole=True)
    return log


def child(old: SessionLog) -> SessionLog:
    """A session that goes on from all of it."""
    more = {"parentSession": old.id, "seedLength": len(old.records)}
    log = SessionLog("session-y", old.cwd, 6.0, more, old.version, [dict(r) for r in old.records])
    log.event(6.0, SEED_ENDS, {})
    log.turn(7.0, 3, "three")
    log.user(7.0, "three")
    answer(log, Say("third"), step=(3, 1))
    return log


@pytest.mark.parametrize("version", [0, 4])
def test_every_copied_call_has_the_ids_of_the_one_it_is_a_copy_of(version: int) -> None:
    old = parent(version)
    own = dsh.requests(read(old))
    known = frozenset().union(*(p.ids for p in own))
    copies = dsh.requests(read(child(old)))
    assert [p.kind for p in copies] == [*(p.kind for p in own), "main"]
    assert all(p.ids <= known for p in copies[:-1])
    assert not copies[-1].ids <= known


@pytest.fixture
def home(tmp_path: Path) -> Path:
    for log in (old := parent(4), child(old)):
        folder = tmp_path / ".dsh/sessions/--home-ada--" / log.id
        folder.mkdir(parents=True)
        (folder / "session.v4.jsonl.zstd").write_bytes(b"".join(frame(line.encode() + b"\n") for line in log.lines()))
    return tmp_path


def test_opened_together_each_call_counts_once(home: Path) -> None:
    inspection = ctxscope.open(next(home.glob(".dsh/sessions/*/session-y/*.zstd")))
    try:
        found = [(c.session, c.kind) for c in inspection.snapshot.calls]
        assert found.count(("session-y", "main")) == 1
        assert [kind for session, kind in found if session == "session-x"] == ["side", "retry", "main", "main"]
        assert [kind for session, kind in found if session == "session-y"] == ["main"]
        told = [(m.session, m.where) for m in inspection.snapshot.markers]
        assert told == [
            ("session-x", "a new process went on with the session"),
            ("session-y", "goes on from session session-x"),
        ]
    finally:
        inspection.close()


def test_without_its_parent_beside_it_a_fork_tells_all_it_holds() -> None:
    found = [m.where for m in dsh.markers(read(child(parent(4))))]
    assert found == ["a new process went on with the session", "goes on from session session-x"]


def test_the_place_of_a_parent_s_log_is_spelled_as_the_harness_spells_it() -> None:
    beside = Path("/h/.dsh/sessions/--w--/one/session.v4.jsonl.zstd")
    assert dsh.disk.folder_of("a b~é", beside) == Path("/h/.dsh/sessions/--w--/a~0020b~007E~00E9")


def test_records_that_plugins_write_do_not_void_a_log() -> None:
    log = begun(0)
    for kind in ("subagent/descriptor", "todo/write", "hook/invoked", "goal/change", "plan/mode", "command/run"):
        log.event(1.2, kind, {})
    held = read(log)
    assert dsh.rebuild(held, dsh.requests(held)[-1], dsh.config(held), ctxscope.model.Learned()) is not None
    assert dsh.notices(held) == ()
    assert reference().agent == "dsh"
