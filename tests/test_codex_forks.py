"""Sessions of Codex that go on from another: forks, subagents, what was taken over."""

from __future__ import annotations

import json
from pathlib import Path

from ctxscope.agents import codex
from tests.codex_cases import log_of, seen
from tests.codex_lines import (
    SMALL,
    conversation,
    count,
    message,
    old,
)
from tests.samples.codex_form import Session, uuid7


def forked(home: Path) -> tuple[Path, Path]:
    """A session and a fork of it, the parent's lines in it written anew at once."""
    parent = Session(uuid7(0, 1))
    parent.meta(0.0)
    conversation(parent, 1.0, "Basil", "resp_p1")
    conversation(parent, 9.0, "Thyme", "resp_p2")
    fork = Session(uuid7(100, 2))
    fork.meta(100.0, forked_from_id=parent.name)
    for line in parent.lines:
        row = json.loads(line)
        fork.line(100.01, row["type"], row["payload"])
    fork.history = parent.history[:]
    conversation(fork, 120.0, "Sage", "resp_f1")
    return parent.write(home), fork.write(home, "2026-02-01T09-01-40")


def test_a_fork_says_what_it_took_over_and_from_whom(tmp_path: Path):
    parent, fork = forked(tmp_path)
    log = log_of(fork.read_bytes().splitlines())
    points = codex.requests(log)
    assert [(sorted(p.ids), p.data["copied"]) for p in points] == [
        (["resp_p1"], True),
        (["resp_p2"], True),
        (["resp_f1"], False),
    ]
    resumes = [m for m in codex.markers(log) if m.kind == "resume"]
    assert [m.point for m in resumes] == [points[2].key]
    assert resumes[0].where.startswith("forked from session")
    refs = {r.paths[0]: r for r in codex.discover(tmp_path)}
    assert refs[fork].parent == refs[parent].id
    assert [r.id for r in codex.family(refs[parent])] == [refs[fork].id]
    assert [r.id for r in codex.family(refs[fork])] == [refs[parent].id]


def test_copied_calls_of_a_fork_count_once(tmp_path: Path):
    _, fork = forked(tmp_path)
    snapshot, _ = seen(fork)
    assert len(snapshot.sessions) == 2
    assert len(snapshot.calls) == 3
    assert sum(c.usage.reported for c in snapshot.calls if c.usage) == 3 * SMALL.input


def test_a_copy_is_known_where_no_id_is_logged():
    rows = [message("user", "one"), message("assistant", "a"), count(5)]
    meta = {"id": "other", "forked_from_id": "thread", "cli_version": "0.98.0"}
    lines = old(*rows)
    copy = [
        lines[0].replace(b'"id": "thread"', b'"id": "other"'),
        *lines,
        *old(message("user", "two"), message("assistant", "b"))[1:],
    ]
    copy[0] = json.dumps({"timestamp": "2026-02-01T09:00:00.000Z", "type": "session_meta", "payload": meta}).encode()
    (own,), (again, new) = codex.requests(log_of(lines)), codex.requests(log_of(copy))
    assert own.ids == again.ids
    assert not new.ids & own.ids


def test_a_subagents_calls_have_a_lineage_of_their_own():
    def meta(depth: int) -> list[bytes]:
        spawn = {"thread_spawn": {"parent_thread_id": "outer", "depth": depth}}
        row = {"type": "session_meta", "payload": {"id": "inner", "source": {"subagent": spawn}}}
        return [json.dumps(row).encode(), *old(message("user", "dig"), message("assistant", "dug"))[1:]]

    assert [(p.kind, p.lineage) for p in codex.requests(log_of(meta(1)))] == [("subagent", "subagent:inner")]
    assert [p.lineage for p in codex.requests(log_of(meta(2)))] == ["subagent:outer/inner"]
    assert [m.where for m in codex.markers(log_of(meta(1)))] == ["a subagent of session outer"]
