"""Overlay folders: what an agent does in one stands in its own folder, at once and after the end, whatever ends it."""

from __future__ import annotations

import errno
import os
import shutil
import sqlite3
import stat

import pytest

from ctxscope.cli import settling
from ctxscope.cli.overlay import OverlayFolder, watched
from ctxscope.model import CtxscopeError, Overlay
from tests.overlay_folders import OURS, across, append, base, files, original, overlay, rotate

FIXTURES = (across, base, original, overlay)
"""Used by their names."""


def test_the_agent_sees_our_file_and_everything_else_as_it_is(overlay, original):
    assert files(overlay.view) == {"config.yaml": OURS, "auth.json": b"old token"}
    assert (overlay.view / "sessions" / "a.jsonl").read_text(encoding="utf-8") == "1\n"
    assert [stat.S_IMODE(p.stat().st_mode) for p in (overlay.folder, overlay.view)] == [0o700, 0o700]
    assert stat.S_IMODE((overlay.view / "config.yaml").stat().st_mode) == 0o600
    assert overlay.close() == []
    assert not overlay.folder.exists()
    assert files(original) == {"config.yaml": b"model: vendor\n", "auth.json": b"old token", "sessions/a.jsonl": b"1\n"}


@pytest.mark.usefixtures("across")
class TestAcrossFileSystems:
    def test_a_rotated_token(self, overlay, original):
        test_a_token_rotated_by_rename_is_the_original_s_at_once(overlay, original)

    def test_a_new_session(self, overlay, original):
        (overlay.view / "history.jsonl").write_text("1\n", encoding="utf-8")
        overlay.settle()
        with (overlay.view / "history.jsonl").open("a", encoding="utf-8") as file:
            file.write("2\n")
        overlay.settle()
        assert (original / "history.jsonl").read_text(encoding="utf-8") == "1\n2\n"
        assert overlay.close() == []

    def test_a_big_file_waits_for_the_end(self, overlay, original, monkeypatch):
        monkeypatch.setattr(settling, "SMALL", 10)
        (overlay.view / "big").write_bytes(b"x" * 11)
        overlay.settle()
        assert not (original / "big").exists()
        assert overlay.close() == []
        assert (original / "big").read_bytes() == b"x" * 11


def test_a_token_rotated_by_rename_is_the_original_s_at_once(overlay, original):
    for text in ("second", "third"):
        rotate(overlay.view / "auth.json", text, 0o640)
        overlay.settle()
        assert (original / "auth.json").read_text(encoding="utf-8") == text
        assert stat.S_IMODE((original / "auth.json").stat().st_mode) == 0o640
    assert overlay.close() == []
    assert sorted(p.name for p in original.iterdir()) == ["auth.json", "config.yaml", "sessions"]


def test_a_temporary_file_that_was_brought_over_on_its_way_leaves_nothing(overlay, original):
    part = overlay.view / "auth.json.tmp"
    part.write_text("sec", encoding="utf-8")
    overlay.settle()
    append(part, "ond")
    part.replace(overlay.view / "auth.json")
    overlay.settle()
    assert (original / "auth.json").read_text(encoding="utf-8") == "second"
    assert not (original / "auth.json.tmp").exists()


def test_a_session_begun_in_the_run_goes_on_in_the_original(overlay, original):
    folder = overlay.view / "projects" / "p"
    folder.mkdir(parents=True)
    with (folder / "s.jsonl").open("w", encoding="utf-8") as file:
        file.write("1\n")
        file.flush()
        overlay.settle()
        file.write("2\n")
        file.flush()
        assert (original / "projects" / "p" / "s.jsonl").read_text(encoding="utf-8") == "1\n2\n"
    assert overlay.close() == []
    assert (original / "projects" / "p" / "s.jsonl").read_text(encoding="utf-8") == "1\n2\n"


def test_a_database_of_the_user_s_keeps_its_journal_beside_it(original, base):
    with sqlite3.connect(original / "state.db") as made:
        made.execute("CREATE TABLE t (x)")
    made.close()
    overlay = OverlayFolder.make(Overlay("AGENT_HOME", original, {"config.yaml": OURS}), base)
    database = sqlite3.connect(overlay.view / "state.db")
    database.execute("PRAGMA journal_mode=WAL")
    database.execute("INSERT INTO t VALUES (1)")
    database.commit()
    assert (original / "state.db-wal").exists()
    overlay.settle()
    database.execute("INSERT INTO t VALUES (2)")
    database.commit()
    database.close()
    assert overlay.close() == []
    with sqlite3.connect(original / "state.db") as read:
        assert read.execute("SELECT x FROM t").fetchall() == [(1,), (2,)]
    read.close()


def test_a_database_begun_in_the_run_comes_whole_at_the_end(overlay, original):
    database = sqlite3.connect(overlay.view / "state.db")
    database.execute("PRAGMA journal_mode=WAL")
    database.execute("CREATE TABLE t (x)")
    database.execute("INSERT INTO t VALUES (1)")
    database.commit()
    overlay.settle()
    assert not (original / "state.db").exists()
    shutil.copytree(overlay.view, original.parent / "as killed", symlinks=True)
    database.close()
    for name in ("state.db", "state.db-wal"):
        shutil.copy2(original.parent / "as killed" / name, overlay.view / name)
    assert overlay.close() == []
    with sqlite3.connect(original / "state.db") as read:
        assert read.execute("SELECT x FROM t").fetchall() == [(1,)]
    read.close()


def test_a_lock_made_and_removed_in_the_run_is_gone(overlay, original):
    (overlay.view / "auth.lock").write_text("1", encoding="utf-8")
    (overlay.view / "other.lock").mkdir()
    overlay.settle()
    assert (original / "auth.lock").exists()
    assert not (original / "other.lock").exists()
    (overlay.view / "auth.lock").unlink()
    overlay.settle()
    assert not (original / "auth.lock").exists()


def test_a_log_that_is_rotated_by_rename_keeps_both_parts(original, base):
    (original / "agent.log").write_text("long ago\n", encoding="utf-8")
    overlay = OverlayFolder.make(Overlay("AGENT_HOME", original, {}), base)
    (overlay.view / "agent.log").rename(overlay.view / "agent.log.1")
    (overlay.view / "agent.log").write_text("now\n", encoding="utf-8")
    overlay.settle()
    assert overlay.close() == []
    assert (original / "agent.log.1").read_text(encoding="utf-8") == "long ago\n"
    assert (original / "agent.log").read_text(encoding="utf-8") == "now\n"


def test_a_removal_of_what_was_there_before_is_told_not_done(overlay, original):
    (overlay.view / "auth.json").unlink()
    (said,) = overlay.close()
    assert str(original / "auth.json") in said
    assert "still there" in said
    assert (original / "auth.json").exists()


def test_a_link_of_the_agent_s_own_moves_nothing(overlay, original):
    (overlay.view / "latest").symlink_to(original / "sessions" / "a.jsonl")
    overlay.settle()
    assert (original / "sessions" / "a.jsonl").read_text(encoding="utf-8") == "1\n"
    assert (overlay.view / "latest").readlink() == original / "sessions" / "a.jsonl"
    assert overlay.close() == []


def test_only_what_is_new_is_read(overlay, monkeypatch):
    read = []
    monkeypatch.setattr(settling, "digest", lambda path: read.append(path.name) or str(path))
    (overlay.view / "new.jsonl").write_text("1\n", encoding="utf-8")
    overlay.settle()
    append(overlay.view / "new.jsonl", "2\n")
    shutil.copy2(overlay.view / "config.yaml", overlay.view / "config.yaml.bak")
    monkeypatch.setitem(overlay.settling.replaced, "config.yaml", str(overlay.view / "config.yaml.bak"))
    overlay.settle()
    overlay.settle()
    assert read == ["new.jsonl", "config.yaml.bak"]


def test_a_change_of_our_settings_by_the_agent_is_kept_aside(overlay, original):
    rotate(overlay.view / "config.yaml", "model: loopback\ntheme: dark\n")
    (said,) = overlay.close()
    (kept,) = overlay.settling.kept.iterdir()
    assert kept.read_text(encoding="utf-8") == "model: loopback\ntheme: dark\n"
    assert str(kept) in said
    assert (original / "config.yaml").read_text(encoding="utf-8") == "model: vendor\n"


def test_a_copy_of_our_settings_is_not_brought_over(overlay, original):
    shutil.copy2(overlay.view / "config.yaml", overlay.view / "config.yaml.bak")
    assert overlay.close() == []
    assert not (original / "config.yaml.bak").exists()
    assert not overlay.folder.exists()


def test_a_replaced_file_may_lie_deeper(original, base):
    (original / "agent").mkdir()
    (original / "agent" / "models.json").write_text("{}", encoding="utf-8")
    (original / "agent" / "auth.json").write_text("token", encoding="utf-8")
    overlay = OverlayFolder.make(Overlay("AGENT_HOME", original, {"agent/models.json": OURS}), base)
    assert (overlay.view / "agent" / "models.json").read_bytes() == OURS
    rotate(overlay.view / "agent" / "auth.json", "second")
    assert overlay.close() == []
    assert (original / "agent" / "auth.json").read_text(encoding="utf-8") == "second"
    assert (original / "agent" / "models.json").read_text(encoding="utf-8") == "{}"


def test_a_folder_that_is_not_there_yet_is_made_with_what_comes(tmp_path, base):
    original = tmp_path / "home" / ".new"
    overlay = OverlayFolder.make(Overlay("AGENT_HOME", original, {"config.yaml": OURS}), base)
    assert not original.exists()
    rotate(overlay.view / "auth.json", "first")
    assert overlay.close() == []
    assert files(original) == {"auth.json": b"first"}
    assert stat.S_IMODE(original.stat().st_mode) == 0o700


def test_what_cannot_be_brought_over_is_kept_and_told(overlay, original, monkeypatch):
    rotate(overlay.view / "auth.json", "second")

    def full(*_args, **_options):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(settling.os, "link", full)
    monkeypatch.setattr(settling.shutil, "copy2", full)
    told = overlay.close()
    assert any("No space left" in said for said in told)
    assert any(str(overlay.view) in said and "auth.json" in said for said in told)
    assert (overlay.view / "auth.json").read_text(encoding="utf-8") == "second"
    assert (original / "auth.json").read_text(encoding="utf-8") == "old token"


def test_a_folder_that_cannot_hold_one_is_told(original, tmp_path):
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(CtxscopeError, match="expected"):
        OverlayFolder.make(Overlay("AGENT_HOME", original, {}), tmp_path / "file" / "overlays")


def test_while_the_agent_runs_its_folder_follows(overlay, original, monkeypatch):
    monkeypatch.setattr("ctxscope.cli.overlay.EVERY_SECONDS", 0.01)
    told = []
    with watched(overlay, told.append):
        rotate(overlay.view / "auth.json", "second")
        while (original / "auth.json").read_text(encoding="utf-8") != "second":
            os.sched_yield()
    assert told == []
    assert not overlay.folder.exists()
