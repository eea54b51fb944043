"""Overlay folders whose original others write to meanwhile: nothing of theirs is lost, nothing of the agent's, and it is told."""

from __future__ import annotations

import os
import stat

import pytest

from ctxscope.cli.overlay import OverlayFolder
from ctxscope.model import Overlay
from tests.overlay_folders import OURS, across, append, base, kept, original, overlay, rotate

FIXTURES = (across, base, original, overlay)
"""Used by their names."""


def test_what_is_newer_in_the_original_stays_and_the_agent_s_is_kept(overlay, original):
    rotate(overlay.view / "auth.json", "the agent's")
    rotate(original / "auth.json", "of another run")
    (said,) = overlay.close()
    assert (original / "auth.json").read_text(encoding="utf-8") == "of another run"
    (kept,) = overlay.settling.kept.iterdir()
    assert kept.read_text(encoding="utf-8") == "the agent's"
    assert str(kept) in said
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600


def test_a_token_that_another_process_rotates_after_the_agent_did_stays(overlay, original):
    rotate(overlay.view / "auth.json", "the agent's")
    overlay.settle()
    rotate(original / "auth.json", "newer, by another")
    for _ in range(2):
        overlay.settle()
        assert (overlay.view / "auth.json").read_text(encoding="utf-8") == "newer, by another"
    assert overlay.close() == []
    assert (original / "auth.json").read_text(encoding="utf-8") == "newer, by another"


def test_of_two_runs_at_once_the_later_rotation_stays(original, base):
    one, two = (OverlayFolder.make(Overlay("AGENT_HOME", original, {"config.yaml": OURS}), base) for _ in range(2))
    rotate(one.view / "auth.json", "first")
    one.settle()
    two.settle()
    assert (two.view / "auth.json").read_text(encoding="utf-8") == "first"
    rotate(two.view / "auth.json", "second")
    for _ in range(2):
        two.settle()
        one.settle()
        for folder in (original, one.view, two.view):
            assert (folder / "auth.json").read_text(encoding="utf-8") == "second"
    assert two.close() == one.close() == []
    assert (original / "auth.json").read_text(encoding="utf-8") == "second"
    assert kept(one) == []


def test_of_two_runs_that_rotate_at_once_neither_token_is_lost(original, base):
    one, two = (OverlayFolder.make(Overlay("AGENT_HOME", original, {"config.yaml": OURS}), base) for _ in range(2))
    rotate(two.view / "auth.json", "second")
    rotate(one.view / "auth.json", "first")
    one.settle()
    two.settle()
    assert one.close() == []
    (said,) = two.close()
    assert "somebody else wrote it too" in said
    assert (original / "auth.json").read_text(encoding="utf-8") == "first"
    assert kept(two) == ["second"]


def test_what_was_written_through_the_link_before_is_no_other_s_writing(overlay, original):
    append(overlay.view / "auth.json", ", used")
    changed = (original / "auth.json").stat().st_ctime_ns
    while (overlay.view / "auth.json").stat().st_mtime_ns <= changed:
        rotate(overlay.view / "auth.json", "second")
    overlay.settle()
    assert (original / "auth.json").read_text(encoding="utf-8") == "second"
    assert overlay.close() == []


def test_what_both_wrote_alike_is_not_told(overlay, original):
    rotate(overlay.view / "auth.json", "second")
    rotate(original / "auth.json", "second")
    overlay.settle()
    assert (overlay.view / "auth.json").is_symlink()
    assert overlay.close() == []


def test_a_file_of_another_is_not_removed_in_place_of_the_agent_s(overlay, original):
    (overlay.view / "a.lock").write_text("the agent's", encoding="utf-8")
    overlay.settle()
    rotate(original / "a.lock", "another's")
    (overlay.view / "a.lock").unlink()
    overlay.settle()
    (said,) = overlay.close()
    assert str(original / "a.lock") in said
    assert (original / "a.lock").read_text(encoding="utf-8") == "another's"


def test_a_file_removed_elsewhere_is_not_made_again(overlay, original):
    rotate(overlay.view / "auth.json", "second")
    (overlay.view / "new.json").write_text("new", encoding="utf-8")
    overlay.settle()
    (original / "auth.json").unlink()
    (original / "new.json").unlink()
    overlay.settle()
    assert not (overlay.view / "auth.json").exists()
    assert not os.path.lexists(overlay.view / "new.json")
    assert kept(overlay) == ["second", "new"]
    rotate(overlay.view / "auth.json", "logged in again")
    told = overlay.close()
    assert [said.partition(":")[0] for said in told] == [str(original / "auth.json"), str(original / "new.json")]
    assert (original / "auth.json").read_text(encoding="utf-8") == "logged in again"
    assert not (original / "new.json").exists()


def test_a_file_that_another_process_began_meanwhile_is_not_written_over(overlay, original):
    (overlay.view / "index.json").write_text("the agent's", encoding="utf-8")
    (original / "index.json").write_text("another's", encoding="utf-8")
    while (overlay.view / "index.json").stat().st_mtime_ns <= (original / "index.json").stat().st_ctime_ns:
        (overlay.view / "index.json").write_text("the agent's", encoding="utf-8")
    (said,) = overlay.close()
    assert "somebody else wrote it too" in said
    assert (original / "index.json").read_text(encoding="utf-8") == "another's"
    assert kept(overlay) == ["the agent's"]


def test_a_journal_is_never_brought_beside_another_s_database(overlay, original):
    for folder, name in ((overlay.view, "state.db"), (overlay.view, "state.db-wal"), (original, "state.db")):
        (folder / name).write_bytes(b"SQLite format 3\x00" + str(folder).encode() + name.encode())
    theirs = (original / "state.db").read_bytes()
    told = overlay.close()
    assert len(told) == 2
    assert (original / "state.db").read_bytes() == theirs
    assert not (original / "state.db-wal").exists()
    one, two = sorted(overlay.settling.kept.iterdir())
    assert two.name == f"{one.name}-wal"


def test_a_log_that_another_process_rotated_too_is_not_moved_again(original, base):
    (original / "agent.log").write_text("long ago\n", encoding="utf-8")
    overlay = OverlayFolder.make(Overlay("AGENT_HOME", original, {}), base)
    (overlay.view / "agent.log").rename(overlay.view / "agent.log.1")
    (overlay.view / "agent.log").write_text("now\n", encoding="utf-8")
    (original / "agent.log").rename(original / "agent.log.1")
    (original / "agent.log").write_text("now, of another\n", encoding="utf-8")
    overlay.settle()
    told = overlay.close()
    assert any("renamed it to agent.log.1" in said for said in told)
    assert (original / "agent.log.1").read_text(encoding="utf-8") == "long ago\n"
    assert (original / "agent.log").read_text(encoding="utf-8") == "now, of another\n"
    assert kept(overlay) == ["now\n"]


@pytest.mark.usefixtures("across")
class TestAcrossFileSystems:
    def test_what_another_agent_writes_there_is_seen(self, overlay, original):
        rotate(overlay.view / "auth.json", "second")
        overlay.settle()
        rotate(original / "auth.json", "third, by another")
        overlay.settle()
        assert (overlay.view / "auth.json").read_text(encoding="utf-8") == "third, by another"
        assert overlay.close() == []
        assert (original / "auth.json").read_text(encoding="utf-8") == "third, by another"

    def test_what_another_agent_appends_there_is_not_lost(self, overlay, original):
        (overlay.view / "history.jsonl").write_text("1\n", encoding="utf-8")
        overlay.settle()
        with (overlay.view / "history.jsonl").open("a", encoding="utf-8") as file:
            append(original / "history.jsonl", "another's\n")
            file.write("2\n")
            file.flush()
            overlay.settle()
            file.write("3\n")
        append(overlay.view / "history.jsonl", "4\n")
        (said,) = overlay.close()
        assert str(original / "history.jsonl") in said
        assert (original / "history.jsonl").read_text(encoding="utf-8") == "1\nanother's\n4\n"
        assert kept(overlay) == ["1\n2\n3\n"]

    def test_what_another_agent_removes_there_stays_removed(self, overlay, original):
        test_a_file_removed_elsewhere_is_not_made_again(overlay, original)
