"""The files of an omp session: its log, artifacts and blobs, and the sessions beside it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ctxscope.agents import omp
from ctxscope.agents.omp import disk
from ctxscope.model import CtxscopeError, SessionRef
from tests.omp_cases import Told


def test_sources_name_artifacts_and_the_blobs_that_exist(tmp_path: Path) -> None:
    script = Told().begin()
    digests = [c * 64 for c in "abc"]
    for digest in digests:
        script.user("see", images=[{"type": "image", "data": f"blob:sha256:{digest}"}])
    folder = tmp_path / ".omp" / "agent" / "sessions" / "-p"
    (folder / "s").mkdir(parents=True)
    (folder / "s.jsonl").write_bytes(script.bytes())
    (folder / "s" / "3.shake.log").write_text("x")
    (folder / "s" / "4.bash.log").write_text("x")
    (tmp_path / ".omp" / "agent" / "blobs").mkdir()
    for digest in digests[:2]:
        (tmp_path / ".omp" / "agent" / "blobs" / digest).write_bytes(b"x")
    (ref,) = omp.discover(tmp_path)
    assert [(s.key, s.log) for s in omp.sources(ref)] == [
        ("session", 0),
        ("artifact:3.shake.log", 1),
        (f"blob:{digests[0]}", 2),
        (f"blob:{digests[1]}", 3),
        ("settings", 0),
        ("models", 0),
    ]
    (tmp_path / ".omp" / "agent" / "blobs" / digests[2]).write_bytes(b"x")
    assert len(omp.sources(ref)) == 7
    assert omp.refs(folder / "s.jsonl", tmp_path)
    with pytest.raises(CtxscopeError, match="an omp session begins with"):
        omp.refs(folder / "s" / "4.bash.log", tmp_path)


def test_a_file_written_anew_names_the_blobs_it_names_now_and_who_followed_keeps_its_own(tmp_path: Path) -> None:
    def written(*names: str) -> None:
        script = Told().begin()
        for name in names:
            script.user("see", images=[{"type": "image", "data": f"blob:sha256:{name * 64}"}])
        log.write_bytes(script.bytes())

    def named(ref: SessionRef) -> list[str]:
        return [s.key[-1] for s in omp.sources(ref) if s.key.startswith("blob:")]

    log = tmp_path / ".omp" / "agent" / "sessions" / "-p" / "s.jsonl"
    log.parent.mkdir(parents=True)
    (tmp_path / ".omp" / "agent" / "blobs").mkdir()
    for name in "abc":
        (tmp_path / ".omp" / "agent" / "blobs" / (name * 64)).write_bytes(b"x")
    written("a", "b")
    (ref,) = omp.discover(tmp_path)
    assert named(ref) == ["a", "b"]
    followed = replace(ref, paths=tuple(s.path for s in omp.sources(ref) if s.key not in ("settings", "models")))
    written("a", "c")  # as many bytes as before
    assert named(ref) == ["a", "c"]
    assert [(s.key[-1], s.log) for s in omp.sources(followed) if s.log] == [("a", 1), ("c", 3), ("b", 2)]
    written("c", "a", "c")
    assert named(ref) == ["c", "a"]
    written()
    assert named(ref) == []


def test_references_are_found_wherever_a_file_is_cut_for_reading(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    digests = [c * 64 for c in "abcdef"]
    path = tmp_path / "s.jsonl"
    path.write_text("".join(f'{{"data":"blob:sha256:{d}"}}\n' for d in digests))
    for size in range(disk._OVERLAP + 1, disk._OVERLAP + 40):
        monkeypatch.setattr(disk, "_CHUNK", size)
        path.touch()
        assert disk.named_blobs(path) == tuple(digests)


def test_forks_and_subagents_are_the_family(tmp_path: Path) -> None:
    def written(path: Path, **header: Any) -> None:
        script = Told().begin()
        script.rows[1] |= header
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(script.bytes())

    folder = tmp_path / ".omp" / "agent" / "sessions" / "-p"
    stamp = "2026-01-02T03-04-05-006Z"
    written(folder / f"{stamp}_own.jsonl", id="own")
    written(folder / f"{stamp}_fork.jsonl", id="fork", parentSession="own")
    written(folder / f"{stamp}_other.jsonl", id="other")
    written(folder / f"{stamp}_own" / "5-Explorer.jsonl", id="child", parentSession=str(folder / f"{stamp}_own.jsonl"))
    written(folder / f"{stamp}_own" / "5-Explorer" / "Deep.jsonl", id="grandchild")
    own = next(r for r in omp.discover(tmp_path) if r.id == "own")
    fork = next(r for r in omp.discover(tmp_path) if r.id == "fork")
    family = {(r.id, r.parent) for r in omp.family(own)}
    assert family == {("fork", "own"), ("child", "own"), ("grandchild", "child")}
    assert {r.id for r in omp.family(fork)} == {"own"}
    found = list(omp.discover(tmp_path))
    assert {r.id: r.parent for r in found} == {"fork": "own", "other": None, "own": None, **dict(family)}
    names = {r.id: disk.subagent(r.paths[0]) for r in found}
    assert (names["own"], names["child"], names["grandchild"]) == ("", "5-Explorer", "5-Explorer/Deep")
