"""A followed session closed and opened again says what it said, although the files hold less by then (DESIGN law 3)."""

from __future__ import annotations

import errno
import os
import random
import shutil
import stat
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import ctxscope
from ctxscope.cli.main import main
from ctxscope.model import CtxscopeError, Snapshot
from ctxscope.session import fold
from ctxscope.session.inspection import Inspection
from ctxscope.sources import kept
from tests.conftest import SAMPLES
from tests.session_growth import Disk, Moment, captures, difference, grown, hermes_moments, samples, told
from tests.session_rewrites import (
    HERMES,
    PI,
    edited,
    filled_in,
    log_rotated,
    migrated,
    prompt_rebuilt,
    retried,
    shortened,
)

Case = Path | Callable[..., Any]
RECORDED: list[Case] = [*samples(), *captures()]
HONEST: list[Case] = [filled_in, log_rotated, retried, migrated, shortened]
"""Rewrites after which the files still tell that something is missing."""
LOOKS = 12
"""Moments, drawn, at which a case is opened again."""


def name_of(case: Case) -> str:
    return f"{case.parent.name}-{case.name}" if isinstance(case, Path) else case.__name__


def moments_of(case: Case, scratch: Path) -> tuple[list[Moment], Disk]:
    if isinstance(case, Path):
        moments, disk = grown(case, scratch)
        return list(moments), disk
    moments = edited(case) if case in PI else hermes_moments(case, scratch / "written")
    return list(moments), Disk(scratch / "grown")


@pytest.fixture
def versions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the followers of a test keep what they see rewritten."""
    monkeypatch.setenv("CTXSCOPE_DATA_DIR", str(tmp_path / "data"))
    return tmp_path / "data/versions"


@pytest.fixture
def cold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Path], Inspection]:
    """Opens a folder as one who never followed it."""

    def opened(folder: Path) -> Inspection:
        with monkeypatch.context() as own:
            own.setenv("CTXSCOPE_DATA_DIR", str(tmp_path / "nothing"))
            return ctxscope.open(folder)

    return opened


def follow(moments: list[Moment], disk: Disk) -> Iterator[Inspection]:
    """One inspection from the first moment on at which there is a session and a recording, after each later one."""
    followed: Inspection | None = None
    for moment in moments:
        disk.put(moment)
        if followed is not None:
            followed.poll()
            yield followed
        elif any(disk.folder.rglob("index.jsonl")):
            followed = first_look(disk.folder)
    assert followed is not None
    followed.close()


def first_look(folder: Path) -> Inspection | None:
    try:
        opened = ctxscope.open(folder)
    except CtxscopeError:
        return None
    return opened if opened.assembly.sessions else None


def said(inspection: Inspection) -> Any:
    """What an inspection says, but for what is one opening's own.

    What befell the files while one process read them the next one cannot know; a title is as it was listed when the
    session was found.
    """
    befell = {notice for s in inspection.assembly.sessions for r in s.readers for notice in r.notices}
    snapshot = inspection.snapshot
    notices = tuple(n for n in snapshot.notices if n not in befell)
    return told(replace(snapshot, sessions=tuple(replace(s, title=None) for s in snapshot.sessions), notices=notices))


def found_by(inspection: Inspection) -> Any:
    """What lay there when it was opened: following looks for no further sessions and recordings."""
    return {s.ref.id for s in inspection.assembly.sessions}, inspection.snapshot.recordings


def contradictions(full: Snapshot, less: Snapshot) -> list[str]:
    """Where one that knows less says something else instead of nothing."""
    by_exchange = {c.exchange: c for c in full.calls if c.exchange}
    out = []
    for call in less.calls:
        if call.exchange is None:
            continue
        other = by_exchange[call.exchange]
        if call.rebuilt.state not in (other.rebuilt.state, "not_logged"):
            out.append(f"call {call.n}: {call.rebuilt.state}, was {other.rebuilt.state}")
        elif call.rebuilt.coverage and other.rebuilt.coverage:
            if call.rebuilt.coverage.logged > other.rebuilt.coverage.logged:
                out.append(f"call {call.n}: more logged than was")
            if call.rebuilt.first_difference != other.rebuilt.first_difference:
                out.append(f"call {call.n}: differs elsewhere")
        if call.reply.state not in (other.reply.state, "not_logged", "missing"):
            out.append(f"call {call.n}: reply {call.reply.state}, was {other.reply.state}")
        if call.cache.verdict != other.cache.verdict:
            out.append(f"call {call.n}: {call.cache.verdict}, was {other.cache.verdict}")
    return out


@pytest.mark.usefixtures("versions")
@pytest.mark.parametrize("case", [*RECORDED, *HERMES, *PI], ids=name_of)
def test_what_was_said_is_said_again(case: Case, tmp_path: Path, cold):
    """Each one opened again is followed from there, so that the last one stands on what several kept."""
    moments, disk = moments_of(case, tmp_path)
    rng = random.Random(name_of(case))
    looks = {*rng.sample(range(len(moments)), min(LOOKS, len(moments))), len(moments) - 1}
    followed: Inspection | None = None
    compared, proven = 0, set()
    for at, moment in enumerate(moments):
        disk.put(moment)
        if followed is None:
            followed = first_look(disk.folder)
            continue
        followed.poll()
        states = {c.exchange: c.rebuilt.state for c in followed.snapshot.calls if c.exchange}
        assert not {e for e in proven if states[e] == "differs"}, f"after moment {at}"
        proven |= {e for e, state in states.items() if state == "equal"}
        if at not in looks:
            continue
        again = ctxscope.open(disk.folder)
        if found_by(again) == found_by(followed):
            assert difference(said(again), said(followed)) is None, f"after moment {at}"
            compared += 1
        if case in RECORDED or case in HONEST:
            fresh = cold(disk.folder)
            assert contradictions(again.snapshot, fresh.snapshot) == []
            fresh.close()
        followed.close()
        followed = again
    assert followed is not None
    followed.close()
    assert compared


@pytest.mark.usefixtures("versions")
@pytest.mark.parametrize("case", [*HERMES, migrated], ids=name_of)
def test_a_follower_proves_every_call_whatever_is_rewritten(case: Case, tmp_path: Path):
    *_, followed = follow(*moments_of(case, tmp_path))
    calls = followed.snapshot.calls
    assert {c.rebuilt.state for c in calls if c.exchange} == {"equal"}
    assert {c.rebuilt.coverage.unknown for c in calls if c.rebuilt.coverage} == {0}
    again = ctxscope.open(tmp_path / "grown")
    assert told(again.snapshot.calls) == told(calls)
    again.close()


@pytest.mark.usefixtures("versions")
@pytest.mark.parametrize("case", [prompt_rebuilt, retried, log_rotated, shortened], ids=name_of)
def test_the_files_alone_would_not_have_told_it(case: Case, tmp_path: Path, cold):
    """The cases above prove something: read for the first time, these logs say less."""
    *_, followed = follow(*moments_of(case, tmp_path))
    assert difference(said(cold(tmp_path / "grown")), said(followed)) is not None


def test_a_log_only_read_leaves_nothing_of_it_behind(versions: Path, capsys):
    for case in samples():
        ctxscope.open(case).close()
    assert main(["report", str(SAMPLES / "hermes/batch_compaction")]) == 0
    capsys.readouterr()
    assert {path.name for path in versions.parent.glob("*")} <= {"cache"}  # numbers and hashes alone


@pytest.mark.parametrize("case", ["pi/clean_append", "hermes/tail_tool_call_lost"])
def test_a_log_that_only_grows_leaves_nothing_of_it_behind(case: str, versions: Path, tmp_path: Path):
    for _ in follow(*moments_of(SAMPLES / case, tmp_path)):
        pass
    assert {path.name for path in versions.parent.glob("*")} <= {"cache"}  # numbers and hashes alone


def test_reading_what_was_kept_adds_nothing(versions: Path, tmp_path: Path, capsys):
    moments, disk = moments_of(prompt_rebuilt, tmp_path)
    for _ in follow(moments[:-3], disk):
        pass
    for moment in moments[-3:]:
        disk.put(moment)
    before = {path: path.read_bytes() for path in versions.iterdir()}
    assert main(["report", str(disk.folder)]) == 0
    capsys.readouterr()
    assert {path: path.read_bytes() for path in versions.iterdir()} == before


def test_kept_versions_are_private_and_lie_beside_nothing_of_the_agent(versions: Path, tmp_path: Path):
    moments, disk = moments_of(prompt_rebuilt, tmp_path)
    for _ in follow(moments, disk):
        pass
    written = {str(p.relative_to(disk.folder)) for p in disk.folder.rglob("*") if p.is_file()}
    assert written == {name for moment in moments for name in moment.files} | {"log/.hermes/state.db"}
    assert stat.S_IMODE(versions.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in versions.iterdir()} == {0o600}


@pytest.mark.parametrize("trouble", ["no folder", "disk full", "too much"])
def test_what_cannot_be_kept_costs_one_notice(trouble: str, versions: Path, tmp_path: Path, monkeypatch):
    def full(*_: Any) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    kept_well = [said(f) for f in follow(*moments_of(prompt_rebuilt, tmp_path / "well"))]
    shutil.rmtree(versions)
    if trouble == "no folder":
        versions.write_bytes(b"")
    elif trouble == "disk full":
        monkeypatch.setattr(kept.os, "write", full)
    else:
        monkeypatch.setattr(fold, "KeptVersions", partial(kept.KeptVersions, limit=10))
    moments, disk = moments_of(prompt_rebuilt, tmp_path / "ill")
    for followed, well in zip(follow(moments, disk), kept_well, strict=True):
        ill = said(followed)
        notices = [n for n in ill["notices"] if n.startswith("versions rewritten from now on are not kept")]
        assert len(notices) <= 1
        ill["notices"].remove(*notices) if notices else None
        assert difference(_at(ill, disk.folder), _at(well, tmp_path / "well/grown")) is None
    assert len(notices) == 1


def _at(value: Any, folder: Path) -> Any:
    """A told value without the folder it was found in."""
    if isinstance(value, dict):
        return {k: _at(v, folder) for k, v in value.items()}
    if isinstance(value, list):
        return [_at(v, folder) for v in value]
    return value.replace(str(folder), "") if isinstance(value, str) else value


@pytest.mark.usefixtures("versions")
@pytest.mark.parametrize("case", [prompt_rebuilt, retried, SAMPLES / "hermes/batch_compaction"], ids=name_of)
def test_several_followers_of_one_session_keep_it_once(case: Case, tmp_path: Path):
    moments, disk = moments_of(case, tmp_path)
    rng = random.Random(name_of(case))
    slow: Inspection | None = None
    for number, followed in enumerate(follow(moments, disk)):
        if slow is None:
            slow = ctxscope.open(disk.folder)
        if rng.random() < 0.5 or number == len(moments) - 2:
            slow.poll()
        again = ctxscope.open(disk.folder)
        assert difference(said(again), said(followed)) is None
        again.close()
    assert slow is not None
    slow.close()


@pytest.mark.usefixtures("versions")
def test_what_was_kept_outlives_what_nobody_saw_rewritten(tmp_path: Path):
    moments, disk = moments_of(prompt_rebuilt, tmp_path)
    *_, followed = follow(moments, disk)
    tables = moments[-1].tables
    assert tables is not None
    (session,) = tables["sessions"]
    prompt = {"hash": "another", "prompt": "Made anew while nobody looked."}
    rewritten = {"sessions": [{**session, "system_prompt_hash": "another"}], "system_prompts": [prompt]}
    disk.put(Moment(tables={**tables, **rewritten}))
    again = ctxscope.open(disk.folder)
    before, after = followed.snapshot.calls, again.snapshot.calls
    # The first two calls were sent the prompt that the follower saw go; the other two are what the files lost since.
    assert [told(c.rebuilt) for c in after[:2]] == [told(c.rebuilt) for c in before[:2]]
    assert [c.rebuilt.state for c in before] == ["equal"] * 4
    again.close()
