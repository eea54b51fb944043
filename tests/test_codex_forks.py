"""Sessions of Codex that go on from another: forks, subagents, what was taken over."""

from __future__ import annotations

import json
from pathlib import Path

import ctxscope
from ctxscope.agents import codex
from ctxscope.model import Entry, Learned, Place, Record
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

    assert [(p.kind, p.lineage) for p in codex.requests(log_of(meta(1)))] == [("subagent", "sub:inner")]
    assert [p.lineage for p in codex.requests(log_of(meta(2)))] == ["sub:outer/inner"]
    assert [m.where for m in codex.markers(log_of(meta(1)))] == ["a subagent of session outer"]


# --- a history that stands in the parent's file ------------------------------------------------------------------------


def branched(home: Path) -> tuple[Path, Path, Path]:
    """A session, one forked from it after its first turn, and one forked from that; forks name where they begin."""
    parent = Session(uuid7(0, 1))
    parent.meta(0.0)
    conversation(parent, 1.0, "Basil", "resp_p1")
    end, kept = len(parent.lines), parent.history[:]
    conversation(parent, 9.0, "Thyme", "resp_p2")
    paths = [parent.write(home)]
    for n, word in ((2, "Sage"), (3, "Mint")):
        fork = Session(uuid7(100.0 * n, n))
        base = {"thread_id": paths[-1].stem[-36:], "end_ordinal_exclusive": end}
        fork.lines = [""] * end
        fork.meta(100.0 * n, forked_from_id=base["thread_id"], history_base=base)
        fork.lines, fork.history = fork.lines[end:], kept
        conversation(fork, 100.0 * n + 20, word, f"resp_f{n}")
        rows = [json.loads(line) for line in fork.lines]
        fork.lines = [json.dumps({**row, "ordinal": end + i}) for i, row in enumerate(rows)]
        end, kept = end + len(rows), fork.history[:]
        paths.append(fork.write(home, f"2026-02-01T09-0{n}-00"))
    return paths[0], paths[1], paths[2]


def said_before(path: Path) -> list[list[str]]:
    inspection = ctxscope.open(path)
    try:
        found = []
        for call in inspection.snapshot.calls:
            items = json.loads(inspection.view(call.n).rebuilt.data)["input"]
            found.append([i["content"][0]["text"] for i in items if i["role"] != "developer"][1:])
        return found
    finally:
        inspection.close()


def test_a_fork_that_names_its_beginning_is_read_with_it(tmp_path: Path):
    parent, fork, other = branched(tmp_path)
    assert said_before(parent)[:2] == [["Basil"], ["Basil", "Basil it is.", "Thyme"]]
    sage = ["Basil", "Basil it is.", "Sage"]
    assert sage in said_before(fork)
    assert [*sage, "Sage it is.", "Mint"] in said_before(other)
    refs = {r.paths[0]: r for r in codex.discover(tmp_path)}
    specs = codex.sources(refs[other])
    assert [(s.key.partition(":")[0], s.path, s.log) for s in specs[:-1]] == [
        ("base", fork, 1),
        ("base", parent, 2),
        ("session", other, 0),
    ]


def test_a_fork_whose_beginning_is_lost_holds_what_is_its_own(tmp_path: Path):
    parent, fork, _ = branched(tmp_path)
    parent.unlink()
    inspection = ctxscope.open(fork)
    try:
        assert any("whose rollout was not found" in notice for notice in inspection.snapshot.notices)
        assert "resp_f2" in str([p.ids for p in codex.requests(log_of(fork.read_bytes().splitlines()))])
    finally:
        inspection.close()
    (spec, _) = codex.sources(next(r for r in codex.discover(tmp_path) if r.paths[0] == fork))
    assert spec.key == "session"


def test_what_a_fork_begins_with_may_be_read_later(tmp_path: Path):
    parent, fork, _ = branched(tmp_path)
    base = f"base:{parent.stem[-36:]}"

    def entries(path: Path, source: str, log: int) -> list[Entry]:
        lines = enumerate(path.read_bytes().splitlines(), 1)
        records = (Record(source, str(n), Place(log, f"line {n}"), line) for n, line in lines)
        return [e for r in records for e in codex.entries(r)]

    def told(*parts: list[Entry]) -> list[tuple[str, int, bytes]]:
        log = log_of(())
        for entry in (e for part in parts for e in part):
            log.add(entry)
            codex.requests(log)
        made = ((p, codex.rebuild(log, p, codex.config(log), Learned())) for p in codex.requests(log))
        return [(p.key, p.turn, found.data) for p, found in made if found]

    own, first = entries(fork, "session", 0), entries(parent, base, 1)
    assert told(first, own) == told(own, first) == told(own[:2], first, own[2:])
    assert [turn for _, turn, _ in told(own, first)] == [2]
    assert b"Thyme" not in told(own, first)[0][2]


def test_an_answer_soon_after_a_fork_is_the_forks_own():
    """By 0.98, which does not say where what it took over ends: an input after a pause is no copy."""
    meta = {"id": "fork", "forked_from_id": "parent", "cli_version": "0.98.0"}
    rows = [("session_meta", meta), message("user", "one"), message("assistant", "One."), count(9)]
    later = [message("user", "two"), message("assistant", "Two."), count(20)]
    times = [*([0.0] * len(rows)), 0.02, 0.05, 0.06]
    lines = [
        json.dumps({"timestamp": f"2026-02-01T09:00:00.{round(at * 1000):03d}Z", "type": kind, "payload": row}).encode()
        for at, (kind, row) in zip(times, [*rows, *later], strict=True)
    ]
    assert [p.data["copied"] for p in codex.requests(log_of(lines))] == [True, False]
