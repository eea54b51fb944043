"""Logs and recordings that lie in one tree twice: links, backups, files under other names. They count once."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

import ctxscope
from ctxscope.capture.events import Meta
from ctxscope.cli.main import main
from ctxscope.session import copies
from ctxscope.session.finding import find, survey
from ctxscope.session.inspection import Inspection
from ctxscope.session.lookout import MOST_COPIES
from tests.conftest import SAMPLES
from tests.session_looks import agrees
from tests.test_session_recorded import written

CASE = SAMPLES / "pi" / "clean_append"


@pytest.fixture(autouse=True)
def no_vocabulary(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("ctxscope.analysis.vocabulary.encoding", lambda _: None)


@pytest.fixture
def case(tmp_path: Path) -> Path:
    """A session with its recording."""
    shutil.copytree(CASE, tmp_path / "case")
    for file in (tmp_path / "case").rglob("*"):
        os.utime(file, (1_700_000_000, 1_700_000_000))
    return tmp_path / "case"


def log_of(case: Path) -> Path:
    return next(case.glob("log/.pi/agent/sessions/*/*.jsonl"))


def beside(log: Path) -> Path:
    return log.with_name(f"{log.stem} copy{log.suffix}")


def copied(inspection: Inspection) -> list[str]:
    return [notice for notice in inspection.snapshot.notices if "counts once" in notice]


def once(inspection: Inspection, original: Path) -> bool:
    """Whether the case is told as it is told without copies."""
    alone = ctxscope.open(CASE).snapshot
    now = inspection.snapshot
    told = [[(c.kind, c.rebuilt.state, c.cache.verdict) for c in snapshot.calls] for snapshot in (alone, now)]
    return told[0] == told[1] and [s.log for s in now.sessions] == [(str(original),)]


def test_a_copy_of_a_log_beside_it_counts_once_and_is_told(case: Path):
    log = log_of(case)
    shutil.copy(log, beside(log))
    inspection = ctxscope.open(case)
    assert once(inspection, log)
    assert copied(inspection) == [f"{beside(log)}: a copy of {log}; what both hold counts once"]


@pytest.mark.parametrize("link", [os.symlink, os.link], ids=["symlink", "hard link"])
def test_another_name_of_a_log_counts_once_and_is_told(link, case: Path):
    log = log_of(case)
    link(log, beside(log))
    inspection = ctxscope.open(case)
    assert once(inspection, log)
    assert copied(inspection) == [f"{beside(log)}: another name of {log}; what both hold counts once"]


def test_a_folder_linked_into_the_layout_counts_once(case: Path):
    log = log_of(case)
    (log.parent.parent / "--elsewhere--").symlink_to(log.parent)
    assert once(ctxscope.open(case), log)


def test_a_backup_of_log_and_recording_counts_once(case: Path):
    shutil.copytree(case, case / "backup")
    inspection = ctxscope.open(case)
    assert once(inspection, log_of(case))
    assert inspection.snapshot.recordings == (str(case / "wire"),)
    assert len(copied(inspection)) == 2


@pytest.mark.parametrize("sample", sorted(p.parent for p in SAMPLES.glob("*/*/expected.json")), ids=lambda p: p.name)
def test_whatever_the_agent_a_backup_changes_nothing(sample: Path, tmp_path: Path):
    case = Path(shutil.copytree(sample, tmp_path / "case"))
    alone = ctxscope.open(case).snapshot
    shutil.copytree(sample, case / "backup")
    both = ctxscope.open(case).snapshot
    told = [[(c.kind, c.rebuilt.state, c.cache.verdict) for c in snapshot.calls] for snapshot in (alone, both)]
    assert told[0] == told[1]
    assert len(alone.sessions) == len(both.sessions)


def test_a_backup_from_before_the_session_went_on_counts_once(case: Path):
    log = log_of(case)
    lines = log.read_bytes().splitlines(keepends=True)
    beside(log).write_bytes(b"".join(lines[:-2]) + lines[-2][:20])
    early = case / "early"
    shutil.copytree(case / "wire", early)
    (early / "index.jsonl").write_bytes((case / "wire" / "index.jsonl").read_bytes().partition(b"\n")[0] + b"\n")
    for body in early.glob("000[2-9].*"):
        body.unlink()
    inspection = ctxscope.open(case)
    assert once(inspection, log)
    assert inspection.snapshot.recordings == (str(case / "wire"),)


@pytest.fixture
def recorded(case: Path) -> Path:
    """The same with its recording in one file."""
    written(CASE, case / "one.ctxrec", Meta(1.0))
    shutil.rmtree(case / "wire")
    return case


@pytest.mark.parametrize("how", [shutil.copy, os.symlink, os.link], ids=["copy", "symlink", "hard link"])
def test_a_recording_file_under_a_second_name_counts_once(how, recorded: Path):
    how(recorded / "one.ctxrec", recorded / "two.ctxrec")
    for path in (recorded, log_of(recorded)):
        inspection = ctxscope.open(path)
        assert once(inspection, log_of(recorded))
        assert inspection.snapshot.recordings == (str(recorded / "one.ctxrec"),)
        assert [notice.split(": ")[0] for notice in copied(inspection)] == [str(recorded / "two.ctxrec")]


def test_a_recording_that_was_copied_and_went_on_otherwise_is_another(case: Path):
    other = shutil.copytree(case / "wire", case / "other")
    (other / "0002.req").write_bytes((other / "0002.req").read_bytes().replace(b"e", b"a", 1))
    found = find(case)
    assert (found.recordings, found.copies) == ([case / "other", case / "wire"], [])


def test_a_log_that_was_copied_and_went_on_otherwise_is_another(case: Path):
    log = log_of(case)
    *lines, last = log.read_bytes().splitlines(keepends=True)
    beside(log).write_bytes(b"".join(lines) + last.replace(b"e", b"a", 1))
    assert len(find(case).sessions) == 2


@pytest.mark.parametrize("backup", [True, False], ids=["alike", "one begins as the other"])
def test_logs_without_ids_are_one_only_where_they_are_the_very_same(backup: bool, tmp_path: Path):
    (source,) = (SAMPLES / "messages" / "openai_lines").rglob("chat.jsonl")
    whole = source.read_bytes()
    for folder, held in (("monday", whole), ("tuesday", whole if backup else whole[: whole.index(b"\n") + 1])):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "chat.jsonl").write_bytes(held)
    assert [ref.id for ref in find(tmp_path).sessions] == ["chat"] * (1 if backup else 2)


def test_what_was_imported_from_a_recording_that_is_here_counts_once(case: Path):
    assert main(["import", str(case / "wire"), "-o", str(case / "imported.ctxrec")]) == 0
    inspection = ctxscope.open(case)
    assert once(inspection, log_of(case))
    assert inspection.snapshot.recordings == (str(case / "wire"),)
    assert copied(inspection) == [f"{case / 'imported.ctxrec'}: a copy of {case / 'wire'}; what both hold counts once"]
    asked = case / "wire" / "0002.req"
    asked.write_bytes(asked.read_bytes().replace(b"e", b"a", 1))
    assert len(find(case).recordings) == 2


def test_of_what_was_imported_together_each_part_counts_once(case: Path):
    other = SAMPLES / "pi" / "clock_in_system" / "wire"
    assert main(["import", str(case / "wire"), str(other), "-o", str(case / "imported.ctxrec")]) == 0
    found = find(case)
    assert found.recordings == [case / "imported.ctxrec"]
    assert [copy.path for copy in found.copies] == [case / "wire"]


@pytest.mark.parametrize("wal", [b"", b"more"], ids=["alike", "one has gone on"])
def test_a_copied_database_counts_once_while_it_is_the_same(wal: bytes, tmp_path: Path):
    shutil.copytree(SAMPLES / "hermes" / "rotation", tmp_path / "case")
    shutil.copytree(tmp_path / "case" / "log", tmp_path / "case" / "backup")
    for database, held in (("log", wal and b"some"), ("backup", wal)):
        (tmp_path / "case" / database / ".hermes" / "state.db-wal").write_bytes(held)
    found = find(tmp_path / "case")
    assert (len(found.sessions), len(found.copies)) == ((4, 0) if wal else (2, 1))


def test_the_copy_that_was_named_is_the_one_that_is_opened(case: Path):
    shutil.copy(log_of(case), beside(log_of(case)))
    inspection = ctxscope.open(beside(log_of(case)))
    assert once(inspection, beside(log_of(case)))
    assert copied(inspection) == []


def test_copies_of_a_recording_that_only_lies_near_a_named_log_are_nothing_to_tell(case: Path):
    for name in ("other", "other copy"):
        shutil.copytree(SAMPLES / "pi" / "two_sessions_one_recording" / "wire", case / name)
    assert copied(ctxscope.open(log_of(case))) == []


def test_the_list_of_a_home_names_a_session_once(case: Path, capsys: pytest.CaptureFixture[str]):
    shutil.copy(log_of(case), beside(log_of(case)))
    assert [ref.paths[0] for ref in survey(case / "log").sessions] == [log_of(case)]
    assert main(["sessions", "--home", str(case / "log")]) == 0
    out, err = capsys.readouterr()
    assert len(out.splitlines()) == 2
    assert f"a copy of {log_of(case)}" in err


def test_many_copies_are_told_in_bounds(case: Path):
    for i in range(2 * MOST_COPIES):
        shutil.copy(log_of(case), beside(log_of(case)).with_suffix(f".{i}.jsonl"))
    told = ctxscope.open(case).snapshot.notices
    assert len([notice for notice in told if "copy of" in notice]) == MOST_COPIES
    assert f"{MOST_COPIES} more copies of logs or recordings count once" in told


# --- followed ----------------------------------------------------------------------------------------------------------


def test_a_copy_that_appears_while_the_session_is_followed_counts_once(case: Path):
    log = log_of(case)
    followed = ctxscope.open(case)
    followed.poll()
    shutil.copy(log, beside(log))
    shutil.copytree(case / "wire", case / "wire copy")
    for _ in range(2):
        followed.poll()
        assert once(followed, log)
        assert agrees(followed) is None
    assert len(copied(followed)) == 2


def test_a_copy_that_goes_on_while_it_is_followed_is_the_one_that_is_shown(case: Path):
    """Which of two that are alike the agent writes to shows once it does."""
    log = log_of(case)
    whole = log.read_bytes()
    log.write_bytes(whole[: whole.rindex(b"\n", 0, -1) + 1])
    shutil.copy2(log, beside(log))
    followed = ctxscope.open(case)
    assert [s.log for s in followed.snapshot.sessions] == [(str(log),)]
    beside(log).write_bytes(whole)
    followed.poll()
    assert once(followed, beside(log))
    assert agrees(followed) is None


def test_a_session_that_began_as_a_copy_and_went_on_otherwise_is_followed_into(case: Path):
    log = log_of(case)
    followed = ctxscope.open(case)
    whole = log.read_bytes()
    at = whole.rindex(b"\n", 0, -1) + 1
    beside(log).write_bytes(whole[:at])
    followed.poll()
    assert once(followed, log)
    beside(log).write_bytes(whole[:at] + whole[at:].replace(b"e", b"a", 1))
    followed.poll()
    assert agrees(followed) is None
    assert copied(followed) == []


@pytest.mark.parametrize("shorter", ["", "a", "b"])
@pytest.mark.parametrize("batches", [["ab"], ["a", "b"], ["b", "a"]], ids="-".join)
def test_copies_that_appear_together_or_one_by_one_count_once(batches: list[str], shorter: str, case: Path):
    log = log_of(case)
    whole = log.read_bytes()
    log.unlink()
    shutil.copytree(SAMPLES / "pi" / "two_sessions_one_recording" / "log", case / "log", dirs_exist_ok=True)
    log.parent.mkdir(parents=True, exist_ok=True)
    followed = ctxscope.open(case)
    for batch in batches:
        for name in batch:
            held = whole[: whole.rindex(b"\n", 0, -1) + 1] if name == shorter else whole
            log.with_name(f"{name}.jsonl").write_bytes(held)
        followed.poll()
    followed.poll()
    assert agrees(followed) is None
    assert len(copied(followed)) == 1


def test_a_session_taken_up_in_a_further_file_with_all_that_was_said_is_followed_into(case: Path):
    log = log_of(case)
    whole = log.read_bytes()
    log.write_bytes(whole[: whole.rindex(b"\n", 0, -1) + 1])
    followed = ctxscope.open(case)
    shutil.copy(log, beside(log))
    followed.poll()
    assert [s.log for s in followed.snapshot.sessions] == [(str(log),)]
    beside(log).write_bytes(whole)
    for _ in range(2):
        followed.poll()
    assert once(followed, beside(log))
    assert agrees(followed) is None
    lookout = followed._nearby
    followed.poll()
    assert followed._nearby is lookout, "looked for afresh again, though nothing changed"


def test_what_a_fresh_look_would_not_find_is_not_looked_for_again_and_again(case: Path):
    log = log_of(case)
    whole = log.read_bytes()
    log.write_bytes(whole[: whole.rindex(b"\n", 0, -1) + 1])
    followed = ctxscope.open(log)
    lookout = followed._nearby
    beside(log).write_bytes(whole)
    for _ in range(3):
        followed.poll()
    assert followed._nearby is lookout
    assert agrees(followed) is None


def test_a_poll_without_news_does_not_compare_again(case: Path, monkeypatch: pytest.MonkeyPatch):
    shutil.copytree(case, case / "backup")
    monkeypatch.setattr("ctxscope.session.lookout.racy", lambda _: False)
    followed = ctxscope.open(case)
    followed.poll()

    def never(*_: object) -> bool:
        raise AssertionError

    monkeypatch.setattr(copies, "holds", never)
    monkeypatch.setattr(copies, "holds_recording", never)
    assert not followed.poll()


# --- others ------------------------------------------------------------------------------------------------------------


def only(inspection: Inspection) -> list[str]:
    return [notice for notice in inspection.snapshot.notices if notice.startswith("only the session")]


@pytest.fixture
def several(tmp_path: Path) -> list[Path]:
    """Sessions in one home without a recording, the newest last."""
    home = shutil.copytree(SAMPLES / "pi" / "two_sessions_one_recording" / "log", tmp_path / "home")
    shutil.copytree(CASE / "log", home, dirs_exist_ok=True)
    logs = sorted(home.rglob("sessions/*/*.jsonl"))
    for at, log in enumerate(logs):
        os.utime(log, (1_700_000_000 + at, 1_700_000_000 + at))
    return logs


def test_the_sessions_beside_the_newest_are_counted_and_named(several: list[Path], tmp_path: Path):
    inspection = ctxscope.open(tmp_path / "home")
    ids = [log.stem.partition("_")[2] for log in several]
    assert [s.id for s in inspection.snapshot.sessions] == ids[-1:]
    told = "only the session last written to is shown; 2 other sessions found here: --session ID shows one of them"
    assert only(inspection) == [f"{told} ({ids[1]}, {ids[0]})"]
    assert only(ctxscope.open(tmp_path / "home", session=ids[0])) == []
    assert only(ctxscope.open(several[0])) == []


def test_a_session_that_appears_is_counted_too(several: list[Path], tmp_path: Path):
    whole = several[0].read_bytes()
    several[0].unlink()
    followed = ctxscope.open(tmp_path / "home")
    (one,) = only(followed)
    assert "1 other session found here" in one
    several[0].write_bytes(whole)
    followed.poll()
    (two,) = only(followed)
    assert "2 other sessions found here" in two


def test_the_sessions_that_belong_to_the_one_shown_are_none_beside_it(tmp_path: Path):
    shutil.copytree(SAMPLES / "hermes" / "rotation" / "log", tmp_path / "home")
    inspection = ctxscope.open(tmp_path / "home")
    assert len(inspection.snapshot.sessions) == 2
    assert only(inspection) == []


def test_what_a_recording_joins_is_no_choice(case: Path):
    assert only(ctxscope.open(case)) == []
