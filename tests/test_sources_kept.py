from __future__ import annotations

import stat

from ctxscope.model import Place, Record
from ctxscope.sources.kept import KeptVersions

LINE = Record("session", "3", Place(1, "line 3"), b"\xff\x00 not text", 2)
ROW = Record("messages", "7", Place(0, "row 7"), {"id": 7, "text": "a\udcff\u2028", "blob": b"\0", "none": None}, 0)
GONE = Record("session", "3", Place(1, "line 3"), None, 3)


def test_what_was_kept_is_found_at_the_next_opening(tmp_path):
    KeptVersions(tmp_path / "versions").keep("a", [(4, LINE), (9, ROW)])
    KeptVersions(tmp_path / "versions").keep("a", [(11, GONE)])
    KeptVersions(tmp_path / "versions").keep("b", [(1, ROW)])
    assert KeptVersions(tmp_path / "versions").load("a") == [(4, LINE), (9, ROW), (11, GONE)]
    assert KeptVersions(tmp_path / "versions").load("c") == []


def test_the_data_folder_follows_its_variable(tmp_path, monkeypatch):
    monkeypatch.setenv("CTXSCOPE_DATA_DIR", str(tmp_path / "data"))
    KeptVersions().keep("a", [(1, LINE)])
    [path] = (tmp_path / "data" / "versions").iterdir()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_nothing_kept_makes_no_folder(tmp_path):
    KeptVersions(tmp_path / "versions").keep("a", [])
    assert not (tmp_path / "versions").exists()


def test_a_torn_tail_loses_only_itself(tmp_path):
    kept = KeptVersions(tmp_path)
    kept.keep("a", [(1, LINE), (2, ROW)])
    [path] = tmp_path.iterdir()
    path.write_bytes(path.read_bytes()[:-20])
    assert kept.load("a") == [(1, LINE)]
    kept.keep("a", [(3, GONE)])
    assert kept.load("a") == [(1, LINE), (3, GONE)]


def test_two_openings_that_keep_the_same_count_once(tmp_path):
    kept = KeptVersions(tmp_path)
    kept.keep("a", [(1, LINE)])
    kept.keep("a", [(5, LINE)])
    assert kept.load("a") == [(1, LINE)]


def test_the_oldest_are_dropped_beyond_the_bound(tmp_path):
    kept = KeptVersions(tmp_path, limit=4000)
    big = [(n, Record("s", str(n), Place(0, f"line {n}"), b"x" * 1000, 0)) for n in range(2)]
    kept.keep("old", big)
    kept.keep("new", big)
    assert kept.load("old") == []
    assert kept.load("new") == big
    many = [(n, Record("s", str(n), Place(0, f"line {n}"), b"x" * 100, 0)) for n in range(40)]
    kept.keep("new", many)
    left = kept.load("new")
    assert left
    assert left == many[-len(left) :]
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) <= 4000
